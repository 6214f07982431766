"""Embedders against plain forward passes: models, functions, columns and windows."""

import hashlib
import json
import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import fastscore_models
import msgspec
import numpy as np
import polars as pl
import pytest
from fastscore_models.export import export
from hypothesis import given
from hypothesis import strategies as st

import fastscore
from fastscore.errors import FastscoreError, ModelError, StoreError, UsageError
from fastscore.run.context import PerplexitySettings
from fastscore.run.request import EmbedderSettings
from fastscore.run.scoring import TextsToEmbed, open_embedder, open_perplexity_model
from fastscore.suites.group_travel import SUITE
from fastscore.vectors.accuracy import reference_texts
from fastscore.vectors.embedder import (
    Embedder,
    FunctionEmbedder,
    TokenCounter,
    WindowEmbedder,
    cut_batches,
    load_tokenizer,
)
from fastscore.vectors.models import list_models
from fastscore.vectors.store import VectorStore
from tests.conftest import write_lines
from tests.models.tiny_bert import (
    forward,
    make_config,
    make_recipe,
    make_weights,
    word_tokenizer,
    write_folder,
)
from tests.run.logs import utterance
from tests.suites.group_travel.travelling import DEFAULTS, opening, read, turn
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


# --- models that the tasks of a process share


def test_runs_whose_caches_differ_share_no_embedder(tiny_cache, tmp_path, monkeypatch):
    other = tmp_path / "cache"
    other.mkdir()
    source = write_folder(other / "source", word_tokenizer(WORDS))
    export(make_recipe(max_tokens=6), other, folder=source)
    settings = EmbedderSettings("tiny", "fp32", None, tmp_path)
    opened = []
    for cache in (tiny_cache, other, tiny_cache):
        monkeypatch.setenv("FASTSCORE_CACHE", str(cache))
        opened.append(open_embedder(settings))
    assert opened[1].exported.recipe.max_tokens == 6 != opened[0].exported.recipe.max_tokens
    assert opened[1].fingerprint != opened[0].fingerprint
    assert opened[2] is opened[0]


def test_runs_whose_caches_differ_share_no_perplexity_model(masked_cache, tmp_path, monkeypatch):
    other = shutil.copytree(masked_cache, tmp_path / "cache")
    settings = PerplexitySettings("tiny-mlm", tmp_path)
    opened = []
    for cache in (masked_cache, other, masked_cache):
        monkeypatch.setenv("FASTSCORE_CACHE", str(cache))
        opened.append(open_perplexity_model(settings))
    assert opened[1] is not opened[0]
    assert opened[2] is opened[0]


# --- columns


SAID = pl.Series("said", ["b", None, "a", "b", "a b"])


def as_rows(vectors):
    return [None if each is None else list(each) for each in vectors.to_list()]


def test_a_column_of_texts_becomes_a_column_of_vectors(tiny):
    vectors = tiny.embed(SAID)
    assert vectors.name == "said"
    assert vectors.dtype == pl.Array(pl.Float32, tiny.dim)
    b, a, both = tiny.encode(["b", "a", "a b"]).tolist()
    assert as_rows(vectors) == [b, None, a, b, both]
    assert as_rows(tiny.embed(["a", None])) == [a, None]
    cut = tiny.embed(SAID, dim=2)
    assert cut.dtype == pl.Array(pl.Float32, 2)
    np.testing.assert_array_equal(cut.drop_nulls().to_numpy()[1], tiny.encode(["a"], dim=2)[0])
    frame = pl.DataFrame(SAID).with_columns(vector=vectors)
    assert frame.filter(pl.col("said") == "b")["vector"].n_unique() == 1


def test_errors_name_what_to_do(tiny, tmp_path):
    store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)
    with pytest.raises(UsageError, match=r"no embedder\. Open it by `VectorStore\.of\(embedder\)`"):
        store.get_or_embed(SAID)
    with pytest.raises(StoreError, match=r"Embed them first: `VectorStore\.get_or_embed` does"):
        store.view(SAID)
    with pytest.raises(StoreError, match=r"Embed them first: `VectorStore\.get_or_embed` does"):
        store.view(pl.Series([], dtype=pl.String)).codes(SAID)
    for wrong, found in ((pl.Series([1]), "dtype Int64"), ("a", "type str"), ([1], "type list")):
        with pytest.raises(UsageError, match=f"`texts` is of {found}; expected a Series or list"):
            tiny.embed(wrong)
    with pytest.raises(UsageError, match=r"The dimension asked for is 9999"):
        VectorStore.of(tiny, root=tmp_path).get_or_embed(SAID, dim=9_999)


# --- what `embedder=` takes


OPTIONS = fastscore.ScoreDialogue(lex_weight=0.0, semantic="cosine")
ROWS = utterance("w1 w4", "w1 w2", "w3")


def lengths_and_firsts(texts):
    """A vector that a person works out: the text's length, and the code of its last character."""
    return [[float(len(text)), float(ord(text[-1]))] for text in texts]


def cosine(a, b):
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


def cosines(**given):
    run = fastscore.score(ROWS, OPTIONS, **given)
    return list(run.tables["steps"]["semantic_cosine_raw"])


def test_a_function_gives_the_vectors(tmp_path):
    run = fastscore.score(ROWS, OPTIONS, embedder=lengths_and_firsts, store=tmp_path)
    (truth,) = lengths_and_firsts(["w1 w4"])
    expected = [cosine(each, truth) for each in lengths_and_firsts(["w1 w2", "w3"])]
    found = run.tables["steps"]["semantic_cosine_raw"].to_list()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert "embedder=lengths_and_firsts@" in run.signature
    assert run.signature.count("dim=2")


def test_a_vector_of_zeros_is_refused_by_its_text():
    """Its cosines would be 0 without a word."""

    def embed(texts):
        return [[0.0, 0.0] if text == "w3" else [1.0, 2.0] for text in texts]

    with pytest.raises(ModelError, match=r"The embedder .*embed gave a vector of zeros for 'w3'"):
        cosines(embedder=embed)
    blank = [{**row, "prediction": " "} if row.get("step") == 1 else row for row in ROWS]
    scored = fastscore.score(
        blank, OPTIONS, embedder=lambda texts: [[float(bool(text.strip())), 0.0] for text in texts]
    )
    assert scored.tables["steps"].height == 2


def test_a_run_of_a_function_is_explained_with_it(tmp_path):
    log, output = tmp_path / "log.jsonl", tmp_path / "run"
    write_lines(log, ROWS)
    of_frame = fastscore.score(ROWS, OPTIONS, embedder=lengths_and_firsts)
    of_log = fastscore.score(log, OPTIONS, embedder=lengths_and_firsts, output=output)
    # what another process has: the folder alone
    opened = fastscore.open_run(output)
    again = fastscore.explain(opened, random=True, embedder=lengths_and_firsts)
    values = {
        tuple(one.value for one in found.explanations)
        for found in (*(fastscore.explain(of, random=True) for of in (of_frame, of_log)), again)
    }
    assert values == {(of_log.tables["dialogues"]["average_U_best_early"][0],)}
    with pytest.raises(ModelError, match=r"scored with the embedder lengths_and_firsts.*=lengths"):
        fastscore.explain(opened, random=True)
    with pytest.raises(FastscoreError, match=r"other files, models or versions.*embedder"):
        fastscore.explain(opened, random=True, embedder=lambda texts: [[1.0, 2.0]] * len(texts))


def test_another_function_of_one_name_is_another_model(tmp_path):
    def function(salt):
        def embed(texts):
            digests = [hashlib.sha256((salt + text).encode()).digest() for text in texts]
            return np.array([list(digest) for digest in digests]) - 128.0

        return embed

    assert (
        FunctionEmbedder(function("a")).fingerprint == FunctionEmbedder(function("a")).fingerprint
    )
    assert (
        FunctionEmbedder(function("a")).fingerprint != FunctionEmbedder(function("b")).fingerprint
    )
    first = cosines(embedder=function("a"), store=tmp_path)
    assert first != cosines(embedder=function("b"), store=tmp_path)
    assert first == cosines(embedder=function("a"), store=tmp_path)


def test_vectors_of_a_function_do_not_outlive_the_call():
    """It may give other vectors tomorrow, of texts that nothing compares it by."""
    known = {"w1 w4": [1.0, 0.0]}

    def embed(texts):
        return [known.get(text, [0.0, 1.0]) for text in texts]

    assert cosines(embedder=embed) == [0.0, 0.0]
    known["w3"] = [1.0, 0.0]
    assert cosines(embedder=embed) == [0.0, 1.0]


def test_names_folders_and_embedders_are_one_model(tiny_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tiny_cache))
    embedder, folder = Embedder("tiny"), tiny_cache / "models" / "tiny"
    by_name = fastscore.score(ROWS, OPTIONS, embedder="tiny", store=tmp_path)
    for named in (embedder, folder, str(folder)):
        run = fastscore.score(ROWS, OPTIONS, embedder=named, store=tmp_path)
        assert run.signature == by_name.signature
        assert run.tables["steps"].equals(by_name.tables["steps"])
    assert fastscore.Scorer(OPTIONS, embedder=embedder).signature == by_name.signature
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path / "empty"))
    monkeypatch.chdir(folder.parent)
    assert Embedder("tiny").fingerprint == embedder.fingerprint


class Model:
    def __call__(self, texts):
        raise NotImplementedError

    def encode(self, texts):
        return lengths_and_firsts(texts)


@pytest.mark.parametrize("given", [3, ["minilm-l6-v2"], b"minilm-l6-v2", Embedder, np.eye(2)])
def test_anything_else_is_refused_in_one_sentence(given):
    with pytest.raises(FastscoreError, match="expected the name or folder of a model") as raised:
        fastscore.score(ROWS, OPTIONS, embedder=given)
    assert type(given).__name__ in str(raised.value)


def test_the_method_of_a_model_object_is_named(tmp_path):
    with pytest.raises(FastscoreError, match=r"embedder=model\.encode"):
        fastscore.score(ROWS, OPTIONS, embedder=Model())
    assert len(cosines(embedder=Model().encode, store=tmp_path)) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda texts: 1 / 0,
        lambda texts: None,
        lambda texts: np.full((len(texts), 3), 1j),
        lambda texts: np.ones(len(texts)),
        lambda texts: np.ones((len(texts) + 1, 3)),
        lambda texts: np.full((len(texts), 3), np.nan),
    ],
)
def test_a_function_that_gives_no_matrix_is_refused(function, tmp_path):
    with pytest.raises(ModelError, match=r"The embedder <lambda> (gave|failed)"):
        fastscore.score(ROWS, OPTIONS, embedder=function, store=tmp_path)


def test_a_text_of_a_function_is_read_whole_and_counts_by_its_characters():
    (found,) = WindowEmbedder(FunctionEmbedder(lengths_and_firsts)).encode(["abc"])
    vector = np.array([3.0, 99.0])
    np.testing.assert_allclose(found, 3 * vector / np.linalg.norm(vector), rtol=1e-6)


# --- windows of long texts


def words_of(count, seed):
    return random.Random(seed).choices(WORDS, k=count)


def expected_sum(embedder, words, room):
    """Embed each window by itself; every word is one token."""
    windows = [words[at : at + room] for at in range(0, len(words), room)]
    vectors = embedder.encode([" ".join(window) for window in windows]).astype(np.float64)
    return np.array([len(window) for window in windows]) @ vectors


def test_every_window_counts_by_its_tokens(tiny):
    room = tiny.exported.recipe.max_tokens - 2
    sizes = [1, room, room + 1, 3 * room, 3 * room + 2, 2]
    texts = [words_of(size, seed) for seed, size in enumerate(sizes)]
    sums = WindowEmbedder(tiny).encode([" ".join(words) for words in texts])
    assert sums.dtype == np.float32
    for words, found in zip(texts, sums, strict=True):
        np.testing.assert_allclose(found, expected_sum(tiny, words, room), atol=1e-5)


def test_a_text_alone_decides_its_sum(tiny):
    texts = [" ".join(words_of(size, size)) for size in (5, 90, 40, 90, 200, 1)]
    windows = WindowEmbedder(tiny)
    together = windows.encode(texts)
    alone = np.concatenate([windows.encode([text]) for text in reversed(texts)])[::-1]
    np.testing.assert_array_equal(together, alone)


def test_every_window_has_the_prefix(tiny_cache):
    embedder = Embedder("tiny", cache_dir=tiny_cache)
    exported = embedder.exported
    prefixed = replace(exported, recipe=msgspec.structs.replace(exported.recipe, prefix="w1 w2 "))
    embedder.exported = prefixed
    words = words_of(3 * exported.recipe.max_tokens, 0)
    found = WindowEmbedder(embedder).encode([" ".join(words)])[0]
    room = exported.recipe.max_tokens - 4
    # the embedder puts the prefix before each window that it is given
    np.testing.assert_allclose(found, expected_sum(embedder, words, room), atol=1e-5)


def test_what_is_stored_is_told_apart(tiny):
    fingerprints = {each.fingerprint for each in (tiny, WindowEmbedder(tiny), TokenCounter(tiny))}
    assert len(fingerprints) == 3
    assert (WindowEmbedder(tiny).dim, TokenCounter(tiny).dim) == (tiny.dim, 1)


def test_tokens_are_counted_with_the_special_ones(tiny):
    counter = TokenCounter(tiny)
    assert counter.limit == tiny.exported.recipe.max_tokens
    texts = ["", "w1", "w1 w2", " ".join(words_of(500, 1))]
    assert counter.encode(texts)[:, 0].tolist() == [2, 3, 4, 502]


def test_texts_that_cannot_be_cut_are_not_counted(minilm):
    import polars as pl

    counter = TokenCounter(minilm)
    texts = pl.Series(["a" * 248, "a" * 249, "\ufdfa" * 13, "\ufdfa" * 14, ""])
    assert counter.may_be_cut(texts).tolist() == [False, True, False, True, False]
    # whatever the text, none that is left out is over the limit
    characters = "a \u00e9\ufdfa\uac00\u4e00\U0001f600"
    rng = random.Random(0)
    drawn = pl.Series(["".join(rng.choices(characters, k=rng.randint(1, 200))) for _ in range(300)])
    counts = counter.encode(drawn)[:, 0]
    assert not (counts[~counter.may_be_cut(drawn)] > counter.limit).any()


@pytest.mark.parametrize("dim", [None, 5])
def test_m12_of_a_raw_output_of_many_windows(tiny, tiny_cache, tmp_path, dim):
    room = tiny.exported.recipe.max_tokens - 2
    # what is wanted is in the short windows, the long ones say something else
    raw = ["w13"] * (3 * room) + ["w16"] * 2
    plan = {"days": [{"lunch": "w16 w16"}], "raw_output": " ".join(raw)}
    events = read(
        [
            opening("C2"),
            turn("a", "user_provide_cuisine", "w16"),
            turn("System", "sys_present_plan", plan=plan),
        ]
    )
    settings = EmbedderSettings("tiny", "fp32", dim, tmp_path, tiny_cache)
    view = TextsToEmbed.of(SUITE, events, DEFAULTS).view(settings)
    row = SUITE.score(events, view, DEFAULTS)["dialogues"].row(0, named=True)
    # four windows of the raw output, one of the entries, each by its tokens; cut to the width
    windows = [["w16", "w16"], *(raw[at : at + room] for at in range(0, len(raw), room))]
    tokens = np.array([2, room, room, room, 2])
    vectors = tiny.encode([" ".join(each) for each in windows]).astype(np.float64)
    total = tokens @ vectors
    wanted = tiny.encode(["w16"])[0][:dim].astype(np.float64)

    def similarity(target):
        kept = target[:dim]
        return float(wanted @ kept / np.linalg.norm(wanted) / np.linalg.norm(kept))

    assert similarity(total) > 0.1
    assert row["M12"] == pytest.approx(similarity(total), abs=1e-6)
    # neither the first window alone nor windows that count alike come near it
    for other in (vectors[1], vectors.sum(axis=0)):
        assert abs(row["M12"] - similarity(other)) > 1e-5
