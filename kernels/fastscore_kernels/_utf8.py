"""UTF-8 in flat buffers: lengths, decoding, common affixes."""

import numpy as np

from fastscore_kernels._jit import inlined


@inlined
def code_points(data, start, stop):  # type: ignore[no-untyped-def]
    """Count the code points of a row."""
    count = np.int64(0)
    for at in range(start, stop):
        count += np.int64((data[at] & 0xC0) != 0x80)
    return count


@inlined
def is_ascii(data, start, stop):  # type: ignore[no-untyped-def]
    """Tell whether every byte of a row is below 128."""
    seen = np.uint8(0)
    for at in range(start, stop):
        seen |= data[at]
    return seen < 128


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


@inlined
def strip_common(a, a_start, a_stop, b, b_start, b_stop):  # type: ignore[no-untyped-def]
    """Cut the common prefix and suffix off two rows, never through a code point."""
    a_first = a_start
    while a_start < a_stop and b_start < b_stop and a[a_start] == b[b_start]:
        a_start += 1
        b_start += 1
    if a_start < a_stop and b_start < b_stop:
        while a_start > a_first and (a[a_start] & 0xC0) == 0x80:
            a_start -= 1
            b_start -= 1
    a_last = a_stop
    while a_stop > a_start and b_stop > b_start and a[a_stop - 1] == b[b_stop - 1]:
        a_stop -= 1
        b_stop -= 1
    while a_stop < a_last and (a[a_stop] & 0xC0) == 0x80:
        a_stop += 1
        b_stop += 1
    return a_start, a_stop, b_start, b_stop
