"""Evidence of metrics by what their records declare."""

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from fastscore.results.explaining import derive
from fastscore.suites.base import Dialogue
from fastscore.suites.declarations import Formula, Metric, Ratio, Scale
from fastscore.suites.showing import EvidenceRows, Explanation, occurrences

TURNS = pl.DataFrame(
    {
        "file": ["log"] * 3,
        "turn": [1, 2, 3],
        "share": [0.5, None, 1.0],
        "reply": ["a cat", "a dog", None],
        "word": ["cat", "cat", "cat"],
    }
)
ROW = {"words": 0.75, "n_hits": 3, "n_words": 4, "turn": 2}


def derived(*evidence: EvidenceRows, row: dict[str, Any] = ROW, **declared: Any) -> Explanation:
    metric = Metric(
        id="words",
        name="Words",
        formula=Formula(),
        scale=Scale("higher"),
        source="this test",
        evidence=evidence,
        **declared,
    )
    options = SimpleNamespace(mode="plain", window=2)
    return derive(Dialogue(tables={"turns": TURNS}), metric, row, options)


def test_a_ratio_of_columns_that_evidence_adds_is_written_with_its_values() -> None:
    found = derived(derivation=Ratio("n_hits", "n_words"))
    assert (found.working, found.result) == ("3 / 4", 0.75)
    assert (found.numerator, found.denominator) == (3, 4)
    of_nothing = derived(row={**ROW, "n_words": 0}, derivation=Ratio("n_hits", "n_words"))
    assert (of_nothing.working, of_nothing.denominator) == ("0.75", None)


def test_a_derivation_is_a_template_or_a_function_of_row_and_options() -> None:
    rows = EvidenceRows(table="turns", names=("turn",), columns=("share",))
    assert derived(rows, derivation="mean of {share}").working == "mean of 0.5000, 1.0000"
    by_options = derived(derivation=lambda row, options: f"{row['n_hits']} in {options.mode}")
    assert by_options.working == "3 in plain"


@pytest.mark.parametrize(("mode", "shown"), [("plain", 2), ("other", 0)])
def test_evidence_counts_with_one_value_of_an_option(mode: str, shown: int) -> None:
    rows = EvidenceRows(table="turns", columns=("share",), only_with=("mode", mode))
    assert [piece.what for piece in derived(rows).evidence] == (["turns"] * shown or ["words"])


def test_rows_are_chosen_by_the_row_of_the_metric() -> None:
    window = EvidenceRows(
        table="turns",
        columns=("turn",),
        where=lambda row, options: pl.col("turn").is_between(
            row["turn"], row["turn"] + options.window - 1
        ),
    )
    same = EvidenceRows(table="turns", columns=("turn",), same=("turn",))
    assert [piece.values["turn"] for piece in derived(window, same).evidence] == [2, 3, 2]


def test_rows_without_declared_columns_are_shown_whole() -> None:
    first, *_ = derived(EvidenceRows(table="turns")).evidence
    assert first.found == "turn 1, share 0.5000, reply a cat, word cat"


def test_marks_are_looked_for_in_the_text_of_their_row() -> None:
    rows = EvidenceRows(
        table="turns",
        columns=("turn",),
        text="reply",
        marks=lambda row: occurrences(row["reply"], row["word"]),
    )
    assert [len(piece.marks) for piece in derived(rows).evidence] == [1, 0, 0]
    (own,) = derived(EvidenceRows(text="said"), row={**ROW, "said": "a cat"}).evidence
    assert (own.what, own.found, own.text) == ("said", None, "a cat")
