"""Comparisons of ids with several conversations, and of dialogues without a partner."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest

import fastscore
from fastscore.results.comparison import headline
from fastscore.results.runs import Run
from tests.results.comparing import guests, row_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conversations")


# persona adherence (PAS) of a message whose every state fits, and of one in which none does


@pytest.fixture(scope="module")
def stems_at_levels(folder: Path) -> tuple[Run, Run]:
    """Two runs of two conversation ids, each at levels 3 and 5, whose scores differ."""
    first = guests(
        folder, "one", ("x", 3, [0.0, 1.0]), ("y", 3, [0.0]), ("x", 5, [0.0]), ("y", 5, [0.0, 1.0])
    )
    second = guests(
        folder, "two", ("x", 3, [1.0]), ("y", 3, [1.0]), ("x", 5, [0.0]), ("y", 5, [1.0])
    )
    return first, second


def test_conversations_of_one_id_are_paired_level_by_level(
    stems_at_levels: tuple[Run, Run],
) -> None:
    found = fastscore.compare(*stems_at_levels, by="experiment_level", metrics=["PAS"])
    three, five = (row_of(found.differences, group=level) for level in ("3", "5"))
    assert (three["n_a"], three["mean_a"], three["mean_b"]) == (2, 0.25, 1.0)
    assert (five["n_a"], five["mean_a"], five["mean_b"]) == (2, 0.25, 0.5)
    assert found.notes == ()
    levels = fastscore.compare(stems_at_levels[0], by="experiment_level", metrics=["PAS"])
    assert row_of(levels.differences, design="paired")["n_a"] == 2
    assert levels.notes == ()


def test_conversations_of_one_test_case_are_pooled(stems_at_levels: tuple[Run, Run]) -> None:
    found = fastscore.compare(*stems_at_levels, metrics=["PAS"])
    # x: (0.5 + 0) / 2 and (1 + 0) / 2; y: (0 + 0.5) / 2 and (1 + 1) / 2
    row = row_of(found.differences, metric="PAS")
    assert (row["pair"], row["unit"]) == ("test_case", "test_case")
    assert (row["n_a"], row["mean_a"], row["mean_b"]) == (2, 0.25, 0.75)
    assert (row["effect"], row["reason"]) == (None, "too_few_units")
    assert found.notes == tuple(
        f"2 values of test_case in {run.path} with several dialogues each, whose rows are pooled"
        for run in stems_at_levels
    )


def test_repeats_that_no_label_tells_apart_are_told(folder: Path) -> None:
    twice = guests(folder, "twice", ("x", 3, [0.0, 1.0]), ("x", 3, [1.0]), ("y", 3, [0.0]))
    once = guests(folder, "once", ("x", 3, [1.0]), ("y", 3, [1.0]))
    found = fastscore.compare(twice, once, metrics=["PAS"])
    assert row_of(found.differences, metric="PAS")["n_a"] == 2
    (pooled,) = found.notes
    assert row_of(found.differences)["lacking"] == f"1 dialogue missing in {once.path}"
    assert pooled.startswith(f"1 value of test_case in {twice.path} with several dialogues each")


def test_levels_say_which_dialogues_have_no_partner(folder: Path) -> None:
    run = guests(
        folder, "levels", ("u", 1, [0.0, 1.0]), ("v", 1, [0.0]), *(
            (stem, level, [1.0]) for level in (3, 5) for stem in ("x", "y")
        ), ("z", 5, [0.0, 1.0]),
    )  # fmt: skip
    found = fastscore.compare(run, by="experiment_level", metrics=["PAS"])
    row = row_of(found.differences, a="3", b="5")
    assert row["lacking"] == "1 dialogue missing in 3"
    assert found.notes == (
        "1 and 3 are independent samples: 0 of 2 values of test_case have a partner "
        "(1 has 'u', 3 'x'). pair_by names columns that they share. So is 1 more pair",
    )


def test_the_outcome_counts_tests_and_not_what_has_none(folder: Path) -> None:
    marks = [0.0, 1.0]
    run = guests(
        folder,
        "levels",
        *(
            (name, level, marks[: 1 + (row + level) % 2])
            for level in (3, 4, 5)
            for row, name in enumerate("uvwxyz")
        ),
    )
    found = fastscore.compare(run, by="experiment_level")
    headlines = found.differences.filter(
        pl.col("family") == "headline", pl.col("difference").is_not_null()
    )
    n_tested = headlines["p"].count()
    assert 0 < n_tested < len(headlines)
    assert f"None of {n_tested} tested differences in headline metrics" in headline(found)
    assert f"{len(headlines) - n_tested} have no test" in headline(found)
    untested, tested = (
        headlines.filter(where).head(n)
        for where, n in ((pl.col("p").is_null(), 1), (pl.col("p").is_not_null(), 2))
    )
    one = dataclasses.replace(found, differences=pl.concat([untested, tested]))
    assert "; 1 has no test." in headline(one)
