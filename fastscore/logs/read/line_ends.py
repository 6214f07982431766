"""Line ends in bytes: a newline, a return, or a return with a newline after it."""


def first_end(data: bytes) -> tuple[int, int]:
    """Bounds of the first line end that surely is one, (-1, -1) without any."""
    newline = data.find(b"\n")
    returned = data.find(b"\r", 0, newline if newline >= 0 else max(len(data) - 1, 0))
    if returned < 0:
        return (newline, newline + 1) if newline >= 0 else (-1, -1)
    return returned, returned + (2 if newline == returned + 1 else 1)
