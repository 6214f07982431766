"""Index pairs as Python's Mersenne Twister draws them."""

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import inlined, kernel
from fastscore_jit.validation import read_only

_STATE_WORDS = 624
_MIDDLE = 397


def mt19937_pairs(n: int, pairs: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw index pairs exactly as ``random.Random(seed)`` does with ``randrange``.

    Each pair is ``i = randrange(n)``, ``j = randrange(n)``, and ``j = (j + 1) % n`` where both
    are equal: the sampler of babelbit's similarity baseline.

    Parameters
    ----------
    n
        Number of items, from 2 to 2**32.
    pairs
        Number of pairs, 0 or more.
    seed
        Any Python integer; its sign does not matter.

    Returns
    -------
    int64 (pairs, 2)
        Indices from 0 to ``n - 1``, the two of a pair always different.
    """
    for name, value in (("n", n), ("pairs", pairs), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"`{name}` is {type(value).__name__}; expected an integer")
    if not 2 <= n <= 2**32:
        raise ValueError(f"`n` is {n}; expected 2 to 2**32 items")
    if pairs < 0:
        raise ValueError(f"`pairs` is {pairs}; expected 0 or more")
    out = np.empty((int(pairs), 2), np.int64)
    _draw_pairs(np.int64(n), np.int64(int(n).bit_length()), _seed_words(int(seed)), out)
    return out


def _seed_words(seed: int) -> npt.NDArray[np.uint32]:
    magnitude = abs(seed)
    words = max(1, -(-magnitude.bit_length() // 32))
    return read_only(np.frombuffer(magnitude.to_bytes(4 * words, "little"), np.dtype("<u4")))


@inlined
def _seed_state(key, state):  # type: ignore[no-untyped-def]
    """Fill the state from the seed's 32-bit words (Matsumoto and Nishimura's init_by_array)."""
    mask = np.uint64(0xFFFFFFFF)
    size = np.int64(_STATE_WORDS)
    state[0] = np.uint64(19650218)
    for i in range(1, size):
        previous = state[i - 1] ^ (state[i - 1] >> np.uint64(30))
        state[i] = (np.uint64(1812433253) * previous + np.uint64(i)) & mask
    i = 1
    j = 0
    for _ in range(max(size, key.size)):
        mixed = (state[i - 1] ^ (state[i - 1] >> np.uint64(30))) * np.uint64(1664525) & mask
        state[i] = ((state[i] ^ mixed) + np.uint64(key[j]) + np.uint64(j)) & mask
        i += 1
        j += 1
        if i >= size:
            state[0] = state[size - 1]
            i = 1
        if j >= key.size:
            j = 0
    for _ in range(size - 1):
        mixed = (state[i - 1] ^ (state[i - 1] >> np.uint64(30))) * np.uint64(1566083941) & mask
        state[i] = (((state[i] ^ mixed) | (mask + np.uint64(1))) - np.uint64(i)) & mask
        i += 1
        if i >= size:
            state[0] = state[size - 1]
            i = 1
    state[0] = np.uint64(0x80000000)


@inlined
def _refill(state):  # type: ignore[no-untyped-def]
    """Advance the whole state by one generation."""
    size = np.int64(_STATE_WORDS)
    for i in range(size):
        mixed = (state[i] & np.uint64(0x80000000)) | (state[(i + 1) % size] & np.uint64(0x7FFFFFFF))
        twisted = state[(i + _MIDDLE) % size] ^ (mixed >> np.uint64(1))
        if mixed & np.uint64(1):
            twisted ^= np.uint64(0x9908B0DF)
        state[i] = twisted


@inlined
def _temper(word):  # type: ignore[no-untyped-def]
    word ^= word >> np.uint64(11)
    word ^= (word << np.uint64(7)) & np.uint64(0x9D2C5680)
    word ^= (word << np.uint64(15)) & np.uint64(0xEFC60000)
    return (word ^ (word >> np.uint64(18))) & np.uint64(0xFFFFFFFF)


@kernel("int64, int64, uint32[:], out(int64[:, :])", fastmath=False)
def _draw_pairs(n, bits, key, out):  # type: ignore[no-untyped-def]
    """Write pairs (pairs, 2) of numbers below ``n``, of so many bits, seeded by ``key``."""
    state = np.empty(_STATE_WORDS, np.uint64)
    _seed_state(key, state)
    position = np.int64(_STATE_WORDS)
    for row in range(out.shape[0]):
        for side in range(2):
            value = n
            while value >= n:
                # A draw of 33 bits (n = 2**32) takes a whole word, then the top bit of the next.
                low = np.int64(0)
                for part in range(1 if bits <= 32 else 2):
                    if position == _STATE_WORDS:
                        _refill(state)
                        position = np.int64(0)
                    word = np.int64(_temper(state[position]))
                    position += 1
                    if bits <= 32:
                        value = word >> (np.int64(32) - bits)
                    elif part == 0:
                        low = word
                    else:
                        value = ((word >> np.int64(31)) << np.int64(32)) | low
            out[row, side] = value
        if out[row, 0] == out[row, 1]:
            out[row, 1] = (out[row, 1] + 1) % n
