"""Line ends in bytes: a newline, a return, or a return with a newline after it."""

_STEP_BYTES = 1 << 10


def last_end(data: bytes | memoryview) -> int:
    """Position after the last line end of ``data`` that surely is one, 0 without any."""
    end, step = len(data), _STEP_BYTES
    while end > 0:
        begin = max(0, end - step)
        cut = bytes(data[begin:end]).rfind(b"\n") + 1
        if cut:
            return begin + cut
        end, step = begin, 2 * step
    # a return at the very end may be half of a line end
    return bytes(data).rfind(b"\r", 0, max(len(data) - 1, 0)) + 1


def first_end(data: bytes) -> tuple[int, int]:
    """Bounds of the first line end that surely is one, (-1, -1) without any."""
    newline = data.find(b"\n")
    returned = data.find(b"\r", 0, newline if newline >= 0 else max(len(data) - 1, 0))
    if returned < 0:
        return (newline, newline + 1) if newline >= 0 else (-1, -1)
    return returned, returned + (2 if newline == returned + 1 else 1)
