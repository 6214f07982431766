"""Figures of matplotlib as SVG, small enough for many figures in one page."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PLACES = re.compile(r'( (?:d|x|y|x1|x2|y1|y2|width|height|points)="|translate\()[^")]*')
_REFERRED = re.compile(r'(?:xlink:href="#|url\(#)([^")]*)')
_LETTER = re.compile(r'<path id="([^"]*)"(?: d="[^"]*")? transform="scale\(0\.015625\)"/>')


@contextmanager
def drawing_settings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Draw with these settings of matplotlib, and nothing that a user's own would change.

    Texts are names from logs, never formulas.
    """
    import matplotlib as mpl  # late: an extra

    with mpl.rc_context():
        mpl.rcdefaults()
        parameters: Any = mpl.rcParams
        parameters.update({**settings, "text.parse_math": False})
        yield


def svg_of(figure: "Figure") -> str:
    """Write a figure as SVG, to a hundredth of a point, without unused elements."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # late: an extra

    canvas: Any = FigureCanvasSVG(figure)
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # text elements use the reader's fonts, which may have more letters
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # `savefig` draws everything once more before, for a layout that drawing makes anyway
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    return _compact(svg[svg.index("<svg") :])


def with_own_ids(svg: str, name: str) -> str:
    """Prefix ids with a name, so that one page can contain many drawings; ids of letters excepted.

    The outline of a letter is equal in every drawing.
    """
    letters = set(_LETTER.findall(svg))
    return re.sub(
        r'( id="|xlink:href="#|url\(#)([^")]*)',
        lambda id: id[0] if id[2] in letters else f"{id[1]}{name}-{id[2]}",
        svg,
    )


def with_new_letters(svg: str, known: set[str]) -> str:
    """Remove the outlines that a page already has, and add the others to its set."""

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
