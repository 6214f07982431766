"""UTF-8 in flat buffers, decoded."""

import numpy as np

from fastscore_jit.compiling import inlined


@inlined
def decode(data, start, stop, out):  # type: ignore[no-untyped-def]
    """Write a row's code points to ``out`` and return how many there are."""
    count = np.int64(0)
    at = start
    while at < stop:
        lead = np.int64(data[at])
        if lead < 0x80:
            out[count] = lead
            at += 1
        elif lead < 0xE0:
            out[count] = ((lead & 0x1F) << 6) | (np.int64(data[at + 1]) & 0x3F)
            at += 2
        elif lead < 0xF0:
            out[count] = (
                ((lead & 0x0F) << 12)
                | ((np.int64(data[at + 1]) & 0x3F) << 6)
                | (np.int64(data[at + 2]) & 0x3F)
            )
            at += 3
        else:
            out[count] = (
                ((lead & 0x07) << 18)
                | ((np.int64(data[at + 1]) & 0x3F) << 12)
                | ((np.int64(data[at + 2]) & 0x3F) << 6)
                | (np.int64(data[at + 3]) & 0x3F)
            )
            at += 4
        count += 1
    return count
