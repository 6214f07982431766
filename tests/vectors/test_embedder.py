import json
import math
import random
import shutil
from pathlib import Path

import fastscore_models
import numpy as np
import pytest
from fastscore_models import export
from hypothesis import given
from hypothesis import strategies as st

from fastscore.errors import ModelError, UsageError
from fastscore.vectors.accuracy import reference_texts
from fastscore.vectors.embedder import Embedder, cut_batches, load_tokenizer
from fastscore.vectors.models import list_models
from tests.models.tiny_bert import forward, make_config, make_recipe, make_weights, word_tokenizer
from tests.vectors.conftest import WORDS

REFERENCE = Path(fastscore_models.__file__).parent / "reference"
TEXTS = [" ".join(WORDS[start : start + length]) for length in range(7) for start in range(9)]


def tiny_vector(text, prefix="", max_tokens=8):
    known = {word: row + 4 for row, word in enumerate(WORDS)}
    words = (prefix + text).split()
    words = words[: max_tokens - 2]
    ids = [2, *(known.get(word, 1) for word in words), 3]
    config = make_config()
    return forward(make_weights(config), config, ids, "mean")


def test_equals_sentence_transformers(minilm):
    reference = np.load(REFERENCE / "minilm-l6-v2.npz")["vectors"]
    found = minilm.encode(reference_texts())
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.shape == reference.shape == (500, 384)
    assert np.abs(found - reference).max() <= 1e-6


def test_a_vector_depends_on_its_text_alone(minilm):
    sentences = reference_texts()[-60:]
    together = minilm.encode(sentences)
    backwards = minilm.encode(sentences[::-1])[::-1]
    alone = np.concatenate([minilm.encode([sentence]) for sentence in sentences[::4]])
    repeated = minilm.encode([sentences[7]] * 40)
    np.testing.assert_array_equal(backwards, together)
    np.testing.assert_array_equal(alone, together[::4])
    np.testing.assert_array_equal(repeated, np.tile(together[7], (40, 1)))


def test_the_size_of_a_batch_changes_no_bit(tiny):
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=6)) for _ in range(40)]  # all of eight tokens
    together = tiny.encode(texts)
    for size in (1, 2, 3, 7, 39):
        apart = [tiny.encode(texts[at : at + size]) for at in range(0, len(texts), size)]
        np.testing.assert_array_equal(np.concatenate(apart), together)


@given(texts=st.integers(0, 3000), tokens=st.integers(1, 2000))
def test_no_text_is_left_alone_in_a_batch(texts, tokens):
    cuts = list(cut_batches(texts, tokens))
    assert [row for cut in cuts for row in range(texts)[cut]] == list(range(texts))
    sizes = [cut.stop - cut.start for cut in cuts]
    assert sizes == [1] * (texts == 1) or all(size > 1 for size in sizes)
    assert all((size - 1) * tokens <= 512 or size <= 3 for size in sizes)


def test_default_model_truncates_at_256_tokens(minilm):
    long = "table " * 254
    vectors = minilm.encode([long, long + "for two", "table " * 253 + "two", "table " * 126])
    assert np.abs(vectors[0] - vectors[1]).max() == 0
    assert np.abs(vectors[0] - vectors[2]).max() > 1e-4
    assert np.abs(vectors[0] - vectors[3]).max() > 1e-6


def test_equals_a_plain_forward_pass(tiny):
    expected = np.array([tiny_vector(text) for text in TEXTS])
    np.testing.assert_allclose(tiny.encode(TEXTS), expected, atol=1e-5)
    assert (tiny.name, tiny.dim) == ("tiny", 12)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_bit(tiny_cache, tiny, threads):
    other = Embedder("tiny", threads=threads, cache_dir=tiny_cache)
    np.testing.assert_array_equal(other.encode(TEXTS), tiny.encode(TEXTS))


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[GONE]", "type_id": 0}}],
    "pair": [],
    "special_tokens": {},
}
PADDING = {
    "strategy": {"Fixed": 1 << 42}, "direction": "Right", "pad_to_multiple_of": None,
    "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b'{"model": {}}', b'{"a": ' + b"[" * 100_000, {"post_processor": TEMPLATE}],
)
def test_a_tokenizer_that_is_damaged_is_named(tmp_path, tiny_cache, content):
    path = tmp_path / "tokenizer.json"
    if isinstance(content, dict):
        whole = (tiny_cache / "models" / "tiny" / path.name).read_bytes()
        content = json.dumps(json.loads(whole) | content).encode()
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        load_tokenizer(path, 16)


def test_padding_that_takes_all_memory_is_not_done(tmp_path, tiny_cache):
    path = tmp_path / "tokenizer.json"
    whole = json.loads((tiny_cache / "models" / "tiny" / path.name).read_bytes())
    plain = [each.ids for each in tokens_of(path, whole)]
    assert [each.ids for each in tokens_of(path, whole | {"padding": PADDING})] == plain


def tokens_of(path, content):
    path.write_text(json.dumps(content))
    return load_tokenizer(path, 16).encode_batch(["w1 w2", ""])


def test_prefix_goes_before_every_text(tmp_path, tiny_cache):
    recipe = make_recipe(name="prefixed", prefix="w3 w4 ")
    export(recipe, tmp_path, folder=tiny_cache / "source")
    found = Embedder("prefixed", cache_dir=tmp_path).encode(["", "w1"])
    expected = [tiny_vector("", "w3 w4 "), tiny_vector("w1", "w3 w4 ")]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_dim_truncates_then_normalises(tiny):
    full, cut = tiny.encode(TEXTS), tiny.encode(TEXTS, dim=5)
    assert cut.shape == (len(TEXTS), 5)
    assert cut.flags.c_contiguous
    for whole, short in zip(full.tolist(), cut.tolist(), strict=True):
        length = math.sqrt(sum(component**2 for component in whole[:5]))
        np.testing.assert_allclose(
            short, [component / length for component in whole[:5]], atol=1e-6
        )


@pytest.mark.parametrize("dim", [0, -1, 13])
def test_a_width_that_the_model_lacks_is_refused(tiny, dim):
    with pytest.raises(UsageError, match="1 to 12"):
        tiny.encode(TEXTS, dim=dim)


def test_null_is_refused(tiny):
    with pytest.raises(UsageError, match="1 of the texts"):
        tiny.encode(["a", None])


def test_fingerprint_follows_all_that_decides_a_vector(tmp_path, tiny_cache, tiny):
    seen = {tiny.fingerprint}
    assert Embedder("tiny", threads=1, cache_dir=tiny_cache).fingerprint in seen
    shutil.copytree(tiny_cache / "source", tmp_path / "source")
    changes = [{}, {"pooling": "cls"}, {"prefix": "w1 "}, {"max_tokens": 7}]
    for number, change in enumerate(changes):
        recipe = make_recipe(name=f"tiny{number}", **change)
        export(recipe, tmp_path, folder=tmp_path / "source")
        seen.add(Embedder(recipe.name, cache_dir=tmp_path).fingerprint)
    assert len(seen) == len(changes)  # the first is the tiny model under another name
    tokenizer = json.loads(word_tokenizer(WORDS))
    tokenizer["truncation"] = None
    (tmp_path / "source" / "tokenizer.json").write_text(json.dumps(tokenizer))
    export(make_recipe(name="other"), tmp_path, folder=tmp_path / "source")
    assert Embedder("other", cache_dir=tmp_path).fingerprint not in seen


def test_a_model_that_was_not_exported(tmp_path):
    with pytest.raises(ModelError, match=r"Run `fastscore models export minilm-l6-v2`\."):
        Embedder("minilm-l6-v2", cache_dir=tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_model_is_refused(tmp_path, tiny_cache, name):
    cache = tmp_path / "cache"
    shutil.copytree(tiny_cache, cache)
    path = cache / "models" / "tiny" / name
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(ModelError, match="SHA-256"):
        Embedder("tiny", cache_dir=cache).encode(["a"])
    path.unlink()
    with pytest.raises(ModelError, match="lacks"):
        Embedder("tiny", cache_dir=cache).encode(["a"])


def test_a_recipe_file_that_changed_since_the_export_is_refused(tmp_path, tiny_cache):
    path = tmp_path / "tiny.toml"
    path.write_text(
        'name = "tiny"\npooling = "mean"\ndims = [12]\nmax_tokens = 8\nlicence = "none"'
    )
    assert Embedder(str(path), cache_dir=tiny_cache).dim == 12
    path.write_text(path.read_text().replace("8", "7"))
    with pytest.raises(ModelError, match="another recipe"):
        Embedder(str(path), cache_dir=tiny_cache)


def test_a_damaged_manifest_does_not_hide_other_models(own_cache, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(own_cache))
    for name in ("broken", "minilm-l6-v2"):
        (own_cache / "models" / name).mkdir()
        (own_cache / "models" / name / "manifest.json").write_text("{")
    listings = {listing.name: listing for listing in list_models()}
    assert {name: listing.state for name, listing in listings.items()} == {
        "minilm-l6-v2": "damaged",
        "mxbai-embed-large-v1": "not exported",
        "paraphrase-multilingual-minilm-l12-v2": "not exported",
        "broken": "damaged",
        "tiny": "exported",
    }
    assert listings["broken"].line.split() == ["broken", "?", "?", "?", "damaged"]
    assert listings["minilm-l6-v2"].line.split()[1:] == ["384", "mean", "Apache-2.0", "damaged"]
    assert "exported (" in listings["tiny"].line
