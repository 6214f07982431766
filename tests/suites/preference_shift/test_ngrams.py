"""Extraction by character n-grams, exactly as scikit-learn's vectoriser gives it."""

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.preference_shift_logs import DATA, read_lines, read_source
from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE, PreferenceShift
from fastscore.suites.preference_shift.catalogue import Record, compile_records, load_catalogue
from fastscore.suites.preference_shift.concepts import Concepts, concepts_by_ngrams, concepts_of
from tests.conftest import often
from tests.oracles.ngrams import Published
from tests.suites.preference_shift.conversing import exchange, log, options, score, write_catalogue


def check(texts: list[str], concepts: Concepts, chosen: PreferenceShift) -> None:
    """Compare every set with the vectoriser's, field by field."""
    found = concepts.names(concepts_by_ngrams(pl.Series(texts), concepts, chosen)).to_list()
    expected: list[list[str]] = [[] for _ in texts]
    for (field,), terms in concepts.terms.group_by("field"):
        published = Published(terms["value"].to_list())
        nearest = published.nearest(texts, chosen.embed_top, chosen.embed_threshold)
        for names, values in zip(expected, nearest, strict=True):
            names += [f"{field}={value}" for value in values]
    assert found == [sorted(names) for names in expected]


def test_a_text_by_hand(catalogue: str) -> None:
    # of " dramx " the n-grams " dr", "dra", "ram", " dra", "dram" and " dram" are known, of the
    # twelve of " drama "; no other genre has them, so that all have one weight
    cosine = 6 / math.sqrt(6 * 12)
    for threshold, expected in ((cosine - 1e-9, ["genre=drama"]), (cosine + 1e-9, [])):
        chosen = options(catalogue, extract="ngrams", fields="genre", embed_threshold=threshold)
        tables = score([log(*exchange("Dramx", "..."))], chosen)
        assert tables["turns"]["user_concepts"].to_list() == [expected]


def test_no_embedder_is_needed_and_constraints_are_found_too(catalogue: str) -> None:
    chosen = options(catalogue, extract="ngrams")
    assert not SUITE.needs_vectors(chosen)
    turns = [
        {"speaker": "USER", "text": "?", "user_meta": {"constraints": {"actor": ["Pacino, Al"]}}},
        {"speaker": "SYSTEM", "text": "al pacino"},
    ]
    (row,) = score([log(*turns)], chosen)["turns"].to_dicts()
    assert row["gold_concepts"] == row["system_concepts"] == ["actor=al pacino"]


def test_plot_keywords_are_matched_beside(catalogue: str) -> None:
    chosen = options(catalogue, extract="ngrams", profile="published", fields="genre")
    tables = score([log(*exchange("horrors of a spaceship crew", "..."))], chosen)
    found = ["genre=horror", "plot=crew", "plot=spaceship"]
    assert tables["turns"]["user_concepts"].to_list() == [found]
    tables = score([log(*exchange("horrors", "crew"))], chosen)
    assert tables["turns"]["user_concepts"].to_list() == [["genre=horror"]]
    assert tables["turns"]["system_concepts"].to_list() == [["plot=crew"]]


def test_real_texts_against_the_vectoriser(tmp_path: Path) -> None:
    _, movies = read_source(DATA)
    chosen = options(write_catalogue(tmp_path, movies), extract="ngrams")
    rows = read_lines(DATA, ("redial_sample.jsonl.gz",))
    texts = list(dict.fromkeys(turn[1] for row in rows for turn in row["turns"]))
    texts = texts[: often(60, 2_000)]
    concepts = concepts_of(load_catalogue(chosen.catalogue), chosen)
    assert len(concepts) > 1000
    check(texts, concepts, chosen)
    values = concepts.terms["value"].to_list()
    every = often(60, 20)
    check([*values[::every], *(f"{value}, please" for value in values[7::every])], concepts, chosen)


PIECES = (
    *("drama", "Drama", "comedy", "rom com", "né", "NÉ", "ΣΑΣ", "ΑΣ", "İs", "x", "ab", "abc"),
    *(" ", "  ", "\t\n", "\u00a0", "\u3000", "\x1c", "-", ", ", "\x00", "\U0001f600", "of the"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@settings(max_examples=often(30, 400), suppress_health_check=list(HealthCheck))
@given(
    said=st.lists(texts, min_size=1, max_size=6, unique=True),
    values=st.lists(texts, min_size=1, max_size=8),
    top=st.integers(1, 4),
    threshold=st.sampled_from((0.05, 0.35, 0.7)),
)
def test_any_texts_against_the_vectoriser(
    said: list[str], values: list[str], top: int, threshold: float
) -> None:
    chosen = PreferenceShift(
        catalogue="x", extract="ngrams", fields="tag,genre", embed_top=top,
        embed_threshold=threshold,
    )  # fmt: skip
    records = [
        Record("", None, {"name": "x", "tag": value, "genre": ["horror", value]})
        for value in values
    ]
    records.append(Record("", None, {"name": "y", "tag": "always"}))
    check(said, concepts_of(compile_records(records), chosen), chosen)


def test_a_threshold_of_nothing_is_refused(catalogue: str) -> None:
    with pytest.raises(UsageError, match="expected one above 0 with extract ngrams"):
        options(catalogue, extract="ngrams", embed_threshold=0.0)
