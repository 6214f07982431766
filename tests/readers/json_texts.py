"""JSON texts that fill whole blocks, and bytes of invalid UTF-8."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st


def as_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def ranges(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join texts; return them with the start and end of each."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    return as_bytes(b"".join(texts)), starts, ends


CHARACTERS = ["\u0080", "߿", "ࠀ", "一", "\ud7ff", "\ue000", "\uffff", "𐀀", "\U0010ffff"]
FAULTS = [
    b"\x80",
    b"\xbf",
    b"\xc0\x80",
    b"\xc1\xbf",
    b"\xc3",
    b"\xe0\x9f\xbf",
    b"\xe4\xb8",
    b"\xed\xa0\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xf0\x90\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xff",
]
LONG_TEXT = st.lists(
    st.one_of(
        st.integers(0, 70).map(lambda length: b"x" * length),
        st.lists(st.sampled_from(CHARACTERS), max_size=40).map(lambda c: "".join(c).encode()),
        st.sampled_from([b"\\n", b'\\"', b"\\u4e00", b"\\x", b"\x1f", b"\x7f", b'"']),
    ),
    max_size=8,
)
