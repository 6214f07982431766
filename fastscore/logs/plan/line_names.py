"""What the lines of a JSON Lines file name, found while its blocks pass by."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from fastscore_readers.json.names import NamedLines, named_lines

from fastscore.logs.read.lines import Lines


def line_names(
    blocks: Iterable[Lines], keys: Sequence[bytes], *, one_by_one: bool
) -> Iterator[NamedLines]:
    """Find what lines name; their starts are those in the file.

    Parameters
    ----------
    blocks
        The file's lines; each block is used no more once the next is asked for.
    keys
        What names something.
    one_by_one
        Whether every line counts for itself; otherwise neighbours that name the same may be one.
    """
    for lines in blocks:
        if lines.long_line or lines.refused is not None:
            continue
        data = np.frombuffer(lines.data, np.uint8)
        found = named_lines(data, keys, line=lines.line, one_by_one=one_by_one)
        if found.line.size:
            start, last = found.start + lines.offset, found.last + lines.offset
            yield replace(found, start=start, last=last)
