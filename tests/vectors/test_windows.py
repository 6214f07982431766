"""Long texts: sums over windows against windows that are embedded by themselves, and counts."""

import random
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fastscore.run.request import EmbedderSettings
from fastscore.run.scoring import TextsToEmbed
from fastscore.suites.group_travel import SUITE
from fastscore.vectors.embedder import Embedder, TokenCounter, WindowEmbedder
from tests.suites.group_travel.travelling import DEFAULTS, opening, read, turn
from tests.vectors.conftest import WORDS


def words_of(count: int, seed: int) -> list[str]:
    return random.Random(seed).choices(WORDS, k=count)


def expected_sum(embedder: Embedder, words: list[str], room: int) -> np.ndarray:
    """Embed each window by itself; every word is one token."""
    windows = [words[at : at + room] for at in range(0, len(words), room)]
    vectors = embedder.encode([" ".join(window) for window in windows]).astype(np.float64)
    return np.array([len(window) for window in windows]) @ vectors


def test_every_window_counts_by_its_tokens(tiny: Embedder) -> None:
    room = tiny.recipe.max_tokens - 2
    sizes = [1, room, room + 1, 3 * room, 3 * room + 2, 2]
    texts = [words_of(size, seed) for seed, size in enumerate(sizes)]
    sums = WindowEmbedder(tiny).encode([" ".join(words) for words in texts])
    assert sums.dtype == np.float32
    for words, found in zip(texts, sums, strict=True):
        np.testing.assert_allclose(found, expected_sum(tiny, words, room), atol=1e-5)


def test_a_text_alone_decides_its_sum(tiny: Embedder) -> None:
    texts = [" ".join(words_of(size, size)) for size in (5, 90, 40, 90, 200, 1)]
    windows = WindowEmbedder(tiny)
    together = windows.encode(texts)
    alone = np.concatenate([windows.encode([text]) for text in reversed(texts)])[::-1]
    np.testing.assert_array_equal(together, alone)


def test_every_window_has_the_prefix(tiny_cache: Path) -> None:
    embedder = Embedder("tiny", cache_dir=tiny_cache)
    exported = embedder.exported
    prefixed = replace(exported, recipe=msgspec.structs.replace(exported.recipe, prefix="w1 w2 "))
    embedder._exported = prefixed
    words = words_of(3 * exported.recipe.max_tokens, 0)
    found = WindowEmbedder(embedder).encode([" ".join(words)])[0]
    room = exported.recipe.max_tokens - 4
    # the embedder puts the prefix before each window that it is given
    np.testing.assert_allclose(found, expected_sum(embedder, words, room), atol=1e-5)


def test_what_is_stored_is_told_apart(tiny: Embedder) -> None:
    fingerprints = {each.fingerprint for each in (tiny, WindowEmbedder(tiny), TokenCounter(tiny))}
    assert len(fingerprints) == 3
    assert (WindowEmbedder(tiny).dim, TokenCounter(tiny).dim) == (tiny.dim, 1)


def test_tokens_are_counted_with_the_special_ones(tiny: Embedder) -> None:
    counter = TokenCounter(tiny)
    assert counter.limit == tiny.recipe.max_tokens
    texts = ["", "w1", "w1 w2", " ".join(words_of(500, 1))]
    assert counter.encode(texts)[:, 0].tolist() == [2, 3, 4, 502]


def test_texts_that_cannot_be_cut_are_not_counted(minilm: Embedder) -> None:
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
def test_m12_of_a_raw_output_of_many_windows(
    tiny: Embedder, tiny_cache: Path, tmp_path: Path, dim: int | None
) -> None:
    room = tiny.recipe.max_tokens - 2
    # what is wanted stands in the short windows, the long ones say something else
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

    def similarity(target: np.ndarray) -> float:
        kept = target[:dim]
        return float(wanted @ kept / np.linalg.norm(wanted) / np.linalg.norm(kept))

    assert similarity(total) > 0.1
    assert row["M12"] == pytest.approx(similarity(total), abs=1e-6)
    # neither the first window alone nor windows that count alike come near it
    for other in (vectors[1], vectors.sum(axis=0)):
        assert abs(row["M12"] - similarity(other)) > 1e-5
