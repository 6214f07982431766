"""Which character separates the cells of a CSV file: told by its header, or by Excel's ``sep=``."""

import re
from dataclasses import dataclass

SEPARATOR_NAMES = {b",": "commas", b";": "semicolons", b"\t": "tabs"}
_MOST_HEADER = 1 << 16
_BOM = b"\xef\xbb\xbf"
_SEPARATOR_LINE = re.compile(rb'"?sep=([!-~\t])"?[,;\t]*(?:\r\n|\r|\n|$)', re.IGNORECASE)
_QUOTED = re.compile(rb'"[^"]*(?:"|$)')
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Separator:
    """How cells are separated.

    Parameters
    ----------
    character
        One ASCII character.
    skipped
        The bytes of a line ``sep=`` before the header, its end included.
    """

    character: bytes = b","
    skipped: int = 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return SEPARATOR_NAMES.get(self.character, repr(self.character.decode()))


def find_separator(text: bytes) -> Separator:
    """Find the separator of a file that begins with some text, its header at least.

    It is the one that a line ``sep=`` names, else the one of commas, semicolons and tabs that
    stands most often in the header, outside of quotes; of equals the comma.
    """
    begin = len(_BOM) if text.startswith(_BOM) else 0
    named = _SEPARATOR_LINE.match(text, begin)
    if named is not None and named[1] != b'"':
        return Separator(named[1], named.end() - begin)
    text = text[begin : begin + _MOST_HEADER].lstrip(b"\r\n")
    line = _LINE_END.split(_QUOTED.sub(b"", text), maxsplit=1)[0]
    return Separator(max(SEPARATOR_NAMES, key=line.count))
