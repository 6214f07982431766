"""Hashes of parts of files: by blocks, however they were read."""

import itertools

import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore import files
from fastscore.files import BlockHash, hash_part, whole_blocks

CELL = 8


def by_definition(data, start, stop):
    """Hash the hashes of each cell's content."""
    edges = [start, *(edge for edge in range(0, stop, CELL) if edge > start), stop]
    parts = [data[left:right] for left, right in itertools.pairwise(edges)]
    hashes = [xxhash.xxh3_128_digest(part) for part in parts if part]
    return xxhash.xxh3_128_digest(b"".join(hashes))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=60),
    edges=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    known=st.integers(0, 8),
)
def test_a_part_has_one_hash_however_it_is_read(tmp_path, monkeypatch, data, edges, cuts, known):
    monkeypatch.setattr(files, "HASH_BLOCK_BYTES", CELL)
    start, stop = sorted(min(edge, len(data)) for edge in edges)
    expected = by_definition(data, start, stop)
    streamed = BlockHash(start)
    places = [start, *sorted(cut for cut in cuts if start < cut < stop), stop]
    for left, right in itertools.pairwise(places):
        streamed.update(data[left:right])
    assert streamed.digest() == expected
    path = tmp_path / "file"
    path.write_bytes(data)
    whole = BlockHash()
    whole.update(data)
    blocks = whole.blocks[:known]
    inside = blocks[whole_blocks(start, stop)]
    assert hash_part(str(path), start, stop, inside) == expected
    # known blocks are not read again
    path.write_bytes(bytes(byte ^ 255 for byte in data))
    inner = range(-(-start // CELL), min(stop // CELL, len(blocks)))
    covered = bool(inner) and start % CELL == 0 and stop == inner.stop * CELL
    assert (hash_part(str(path), start, stop, inside) == expected) == (covered or start == stop)
