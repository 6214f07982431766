"""``fastscore vectors verify`` tells of damage by its exit code, whoever finds it first."""

import pytest

from fastscore.vectors.embedder import Embedder
from fastscore.vectors.store import VectorStore, embed_missing
from tests.conftest import fastscore_command

TEXTS = ["w1", "w2 w3", "w4 w5 w6"]


def flip(content):
    return content[:600] + bytes([content[600] ^ 1]) + content[601:]


@pytest.mark.parametrize(("suffix", "damage"), [(".ids", flip), (".faiss", None)])
def test_verify_fails_on_damage_that_opening_finds(tmp_path, tiny_cache, suffix, damage):
    tiny = Embedder("tiny", cache_dir=tiny_cache)
    store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)
    # enough texts that byte 600 lies within ids, and a second segment that stays intact
    embed_missing([f"{text} w{number}" for text in TEXTS for number in range(10)], tiny, store)
    (path,) = store.folder.glob(f"*{suffix}")
    embed_missing(TEXTS, tiny, store)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    command = ["vectors", "verify", "--embedder", "tiny", "--store", tmp_path]
    done = fastscore_command(command, FASTSCORE_CACHE=str(tiny_cache))
    assert done.returncode == 1
    assert done.stdout == "3 vectors in 1 segments are intact\n"
    assert f"{path.stem}: " in done.stderr
