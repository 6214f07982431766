"""What cells of CSV spell: booleans and numbers."""

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_readers.json.tokens import FALSE, FLOAT, INTEGER, SPACE, STRING, TRUE

from fastscore.logs.read.arrow_series import texts_at

_NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_FORMS = {
    INTEGER: "[+-]?[0-9]+",
    FLOAT: f"[+-]?(?:{_NUMBER}|(?i-u:nan|inf|infinity))",
    TRUE: "(?i-u:true)",
    FALSE: "(?i-u:false)",
}


def spelled(data: Bytes, tags: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Tell which cells spell a boolean or a number.

    Returns
    -------
    tuple of arrays
        Tags and ranges as given, but where a cell without quotes inside it holds, within spaces
        and tabs, ``true`` or ``false`` in any case, a decimal integer, a JSON number, ``nan``,
        ``inf`` or ``infinity`` in any case: that value's tag, and the bytes that spell it, without
        a plus sign.
    """
    texts = texts_at(data, starts, ends, tags == STRING)
    found, starts, ends = tags.copy(), starts.copy(), ends.copy()
    for tag, form in _FORMS.items():
        unknown = found == STRING
        if unknown.any():
            spells = texts.str.contains(rf"^[ \t]*{form}[ \t]*$").fill_null(False).to_numpy()
            found[unknown & spells] = tag
    rows = np.flatnonzero(found != tags)
    spaced = rows[(data[starts[rows]] <= SPACE) | (data[ends[rows] - 1] <= SPACE)]
    after = texts.gather(spaced).str.strip_chars_start(" \t")
    starts[spaced] = ends[spaced] - after.str.len_bytes().to_numpy()
    ends[spaced] = starts[spaced] + after.str.strip_chars_end(" \t").str.len_bytes().to_numpy()
    starts[rows] += data[starts[rows]] == ord("+")
    return found, starts, ends
