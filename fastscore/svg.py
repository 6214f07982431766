"""Figures of matplotlib as SVG that is small enough to stand in a page many times."""

import io
import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PLACES = re.compile(r'( (?:d|x|y|x1|x2|y1|y2|width|height|points)="|translate\()[^")]*')
_REFERRED = re.compile(r'(?:xlink:href="#|url\(#)([^")]*)')
_LETTER = re.compile(r'<path id="([^"]*)"(?: d="[^"]*")? transform="scale\(0\.015625\)"/>')


def svg_of(figure: "Figure") -> str:
    """Write a figure as SVG, places to a hundredth of a point, without what nothing refers to.

    Returns
    -------
    str
        The element ``svg``; the same figure gives the same text.
    """
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # texts that stay texts are set in fonts of the reader, which may have more letters
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    return _compact(svg[svg.index("<svg") :])


def with_own_ids(svg: str, name: str) -> str:
    """Begin ids with a name, so that many drawings stand in one page; but not those of letters.

    The outline of a letter is the same in every drawing.
    """
    letters = set(_LETTER.findall(svg))
    return re.sub(
        r'( id="|xlink:href="#|url\(#)([^")]*)',
        lambda id: id[0] if id[2] in letters else f"{id[1]}{name}-{id[2]}",
        svg,
    )


def with_new_letters(svg: str, known: set[str]) -> str:
    """Leave out the outlines that a page has already, and add the others to what it has."""

    def once(letter: re.Match[str]) -> str:
        is_new = letter[1] not in known
        known.add(letter[1])
        return letter[0] if is_new else ""

    return _LETTER.sub(once, svg).replace("<defs></defs>", "")


def _compact(svg: str) -> str:
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.S)
    referred = set(_REFERRED.findall(svg))
    svg = re.sub(r' id="([^"]*)"', lambda id: id[0] if id[1] in referred else "", svg)
    svg = _PLACES.sub(lambda places: _LONG_NUMBER.sub(_rounded, places[0]), svg)
    return re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><").strip()


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
