"""Comparisons of small runs against the same statistics, computed dialogue by dialogue."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import fastscore
from fastscore.errors import UsageError
from fastscore.results.comparison import comparison_grids
from fastscore.results.metric_text import p_text
from fastscore.results.runs import Run
from fastscore.statistics.clustered import Clusters, clustered_difference, hedges_g
from tests.conftest import fastscore_command
from tests.results.comparing import miner_rows, row_of, scored

METRICS = ("U_best", "average_U_best_early", "earliness")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def base(folder: Path) -> Run:
    return scored(folder, "base", ("m", 0.4, range(11)))


@pytest.fixture(scope="module")
def better(folder: Path) -> Run:
    return scored(folder, "better", ("m", 0.8, range(1, 13)))


@pytest.fixture(scope="module")
def both(folder: Path) -> Run:
    return scored(folder, "both", ("m1", 0.4, range(11)), ("m2", 0.8, range(1, 13)))


def values_by_dialogue(run: Run, metric: str, where: str | None = None) -> dict[str, list[float]]:
    """Collect a metric's values by the id in the log."""
    uid = {
        row["dialogue"]: row["dialogue_uid"]
        for row in run.scan("dialogues").collect().to_dicts()
        if where in (None, row["miner_uid"], row["challenge_type"])
    }
    found = defaultdict(list)
    for table in run.lazy_tables.values():
        for row in table.collect().to_dicts():
            if row.get(metric) is not None and row["dialogue"] in uid:
                found[uid[row["dialogue"]]].append(row[metric])
    return dict(found)


def clusters_of(values: dict[str, list[float]], chosen: Iterable[str]) -> Clusters:
    rows = [values[name] for name in chosen]
    return Clusters(np.array([*map(sum, rows)]), np.array([float(len(row)) for row in rows]))


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_of_two_runs(base: Run, better: Run, metric: str) -> None:
    found = fastscore.compare(base, better, test="t")
    first, second = (values_by_dialogue(run, metric) for run in (base, better))
    common = sorted(first.keys() & second.keys())
    a, b = clusters_of(first, common), clusters_of(second, common)
    row = row_of(found.differences, metric=metric)
    assert (row["design"], row["n_a"], row["n_b"]) == ("paired", len(common), len(common))
    assert (row["mean_a"], row["mean_b"]) == pytest.approx((a.mean, b.mean))
    assert row["difference"] == pytest.approx(b.mean - a.mean)
    assert row["reason"] == ("zero_variance" if metric == "earliness" else None)
    if metric != "earliness":  # depends on the step alone, so that no pair differs
        expected = clustered_difference(a, b, shared=True)
        assert row["standard_error"] == pytest.approx(expected.standard_error)
        assert row["degrees_of_freedom"] == pytest.approx(expected.degrees_of_freedom)
        half = stats.t.ppf(0.975, row["degrees_of_freedom"]) * row["standard_error"]
        ends = (row["difference"] - half, row["difference"] + half)
        assert (row["low"], row["high"]) == pytest.approx(ends)
    else:  # without a p nothing is significant or not
        found_of_p = [row[name] for name in ("p", "p_holm", "significant", "verdict")]
        assert found_of_p == [None, None, None, ""]
    if metric == "average_U_best_early":  # one row a dialogue: the paired t test itself
        x, y = ([side[name][0] for name in common] for side in (first, second))
        assert row["p"] == pytest.approx(stats.ttest_rel(y, x).pvalue)


def test_a_verdict_cannot_have_another_sign_than_the_difference(folder: Path) -> None:
    """Twelve dialogues around .5, against eleven short ones around .4 and a long one around .66."""
    even = [(f"d{k:02d}", 10, 0.5 + (k - 5.5) / 50) for k in range(12)]
    uneven = [*((f"e{k:02d}", 4, 0.4 + (k - 5) / 50) for k in range(11)), ("e11", 60, 0.66)]
    a, b = (lexical(folder, name, rows) for name, rows in (("even", even), ("uneven", uneven)))
    found = fastscore.compare(a, b, unpaired=True, metrics=["U_best"])
    row = row_of(found.differences)
    assert row["difference"] > 0
    assert row["effect"] > 0
    assert row["low"] < 0 < row["high"]
    assert (row["significant"], row["verdict"]) == (False, "")
    assert "cannot be told apart" in str(found)


def lexical(folder: Path, name: str, dialogues: list[tuple[str, int, float]]) -> Run:
    """Score dialogues of (id, utterances, lexical similarity of each utterance's only step)."""
    rows = []
    for uid, n, similarity in dialogues:
        right = round(100 * similarity)
        for index in range(n):
            place = {"dialogue_uid": uid, "utterance_index": index}
            guess = "a" * right + "b" * (100 - right)
            rows.append({**place, "event": "predicted", "step": 0, "prediction": guess})
            rows.append({**place, "event": "utterance_complete", "ground_truth": "a" * 100})
    source = folder / f"{name}.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = fastscore.score(
        source, fastscore.ScoreDialogue(lex_weight=1.0), output=folder / name, embedder=None
    )
    assert isinstance(run, Run)
    return run


def test_what_one_side_lacks_is_in_the_line_of_each_verdict(folder: Path) -> None:
    """Text, page, JSON, findings and checks name it: the rest may be the easy dialogues."""
    old = scored(folder, "whole", ("m1", 0.2, range(3, 15)))
    new = scored(folder, "parts", ("m1", 0.9, range(5, 18)))
    only = {"metrics": ["average_U_best_early"]}
    compared = fastscore.compare(old, new, **only)
    assert (compared.notes, compared.sides["side"].to_list()) == (
        (),
        [str(old.path), str(new.path)],
    )
    row = row_of(compared.differences)
    assert (row["missing_a"], row["missing_b"], row["verdict"]) == (3, 2, "better")
    told = f"3 dialogues missing in {old.path}, 2 dialogues missing in {new.path}"
    assert row["lacking"] == told
    assert f"; {told} (pairs by" in str(fastscore.compare(old, new, **only))
    words = ["compare", old.path, new.path, "--metric", "average_U_best_early"]
    shown = fastscore_command(words, COLUMNS="400").stdout
    assert "better (3 dialogues missing in a, 2 dialogues missing in b)" in shown
    (row,) = json.loads(fastscore_command([*words, "--format", "json"]).stdout)["differences"]
    assert row["lacking"] == told
    page = fastscore.report(old, new, output=folder / "lacking.html").read_text()
    assert re.search(
        r'<td class="better">better \(3 dialogues missing in whole, 2 dialogues missing in parts\)',
        page,
    )
    drop, _ = fastscore.check(new, against=old, max_drop={"average_U_best_early": 0.1})
    assert told in drop.detail
    # independent samples have no pair to lack
    alone = row_of(fastscore.compare(old, new, unpaired=True, **only).differences)
    assert (alone["missing_a"], alone["missing_b"], alone["lacking"]) == (None, None, "")


def test_utterances_that_one_side_leaves_out_are_in_the_line_of_each_verdict(folder: Path) -> None:
    """A miner is the better the more hard utterances it leaves out, which its mean cannot show."""
    dialogues = range(3, 15)
    old = scored(folder, "all", ("m1", 0.2, dialogues))
    rows = [
        row
        for row in miner_rows("m1", 0.9, dialogues)
        if row["event"] != "predicted" or row["utterance_index"] == 0
    ]
    new = fastscore.score(
        rows, fastscore.ScoreDialogue(lex_weight=1.0), output=folder / "few", embedder=None
    )
    # of the 24 utterances of 12 dialogues (1, 2 or 3 each), 12 are the first of theirs
    differences = fastscore.compare(old, new).differences
    for metric in ("average_U_best_early", "U_best"):
        row = row_of(differences, metric=metric)
        assert (row["null_b"], row["parts_a"], row["parts_b"]) == (0, 0, 12)
        assert (row["verdict"], row["lacking"]) == ("better", f"12 parts missing in {new.path}")
    alone = row_of(fastscore.compare(old, new, unpaired=True).differences, metric="U_best")
    assert (alone["parts_a"], alone["parts_b"]) == (None, None)


def test_places_without_a_row_are_told_as_null_ones_are(folder: Path) -> None:
    """Utterances that the log of one side lacks; of one dialogue, all of them."""
    old = scored(folder, "every", ("m1", 0.2, range(3, 15)))
    rows = [row for row in miner_rows("m1", 0.9, range(3, 15)) if row["utterance_index"] < 2]
    rows = [
        row | {"event": "revealed", "step": 0} if row["dialogue_uid"] == "d03" else row
        for row in rows
    ]
    new = fastscore.score(
        rows, fastscore.ScoreDialogue(lex_weight=1.0), output=folder / "two", embedder=None
    )
    mean, place = "average_U_best_early", "U_best"
    told = f"1 null in {new.path} only, 4 parts missing in {new.path}"
    for metric in (mean, place):
        row = row_of(fastscore.compare(old, new, metrics=[metric]).differences)
        assert (row["lacking"], row["missing_b"], row["partial_b"]) == (told, 0, 4)
    # the bound counts dialogues, whichever limit a difference has
    for limit in ("max_drop", "no_worse", "equal_within"):
        for allowed, outcome in ((4, "failed"), (5, "passed")):
            found = fastscore.check(
                new, against=old, max_missing=allowed, **{limit: {mean: 0.9, place: 0.9}}
            )
            bounds = [one for one in found if "incomplete" in one.name]
            assert [(one.found, one.outcome, one.detail) for one in bounds] == [
                ("5 of 12 (41.67%)", outcome, told)
            ] * 2
    page = fastscore.report(old, new, output=folder / "places.html").read_text()
    assert "(1 null in two only, 4 parts missing in two)" in page


def test_holm_runs_over_distinct_tests_of_a_family(base: Run, better: Run) -> None:
    rows = fastscore.compare(base, better).differences
    # U_best has the utterances of which average_U_best_early is the dialogue's mean: one test
    copy = row_of(rows, metric="U_best")
    assert copy["p_holm"] == min(1.0, copy["p"] * copy["family_size"])
    assert (copy["family"], copy["family_size"]) == ("headline", 1)
    rows = rows.filter(pl.col("metric") != "U_best")
    for (family,), part in rows.drop_nulls("p").group_by("family"):
        ordered = part.sort("p")
        raw, n = ordered["p"].to_list(), ordered.height
        assert set(ordered["family_size"]) == {n}, family
        stepped = [min(1.0, max((n - j) * raw[j] for j in range(i + 1))) for i in range(n)]
        assert ordered["p_holm"].to_list() == pytest.approx(stepped)
    assert set(rows["family"]) == {"headline", "others"}


def test_groups_of_two_runs_are_compared_each_by_itself(base: Run, better: Run) -> None:
    found = fastscore.compare(base, better, by="challenge_type", metrics=["U_best"])
    assert found.differences["group"].to_list() == ["easy", "hard"]
    for group in ("easy", "hard"):
        first = values_by_dialogue(base, "U_best", group)
        second = values_by_dialogue(better, "U_best", group)
        common = sorted(first.keys() & second.keys())
        row = row_of(found.differences, group=group)
        assert row["n_a"] == len(common)
        assert row["mean_b"] == pytest.approx(clusters_of(second, common).mean)


def test_levels_of_one_run_are_pairs_if_they_share_ids(both: Run) -> None:
    found = fastscore.compare(both, by="miner_uid", pair_by="dialogue_uid", metrics=["U_best"])
    row = row_of(found.differences)
    assert (row["design"], row["a"], row["b"], row["n_a"]) == ("paired", "m1", "m2", 9)
    assert row["lacking"] == "2 dialogues missing in m1, 1 dialogue missing in m2"
    assert found.notes == ()


def test_levels_of_one_run_without_common_ids_are_independent_samples(both: Run) -> None:
    found = fastscore.compare(
        both, by="miner_uid", pair_by="dialogue", metrics=["average_U_best_early"], test="t"
    )
    first, second = (
        values_by_dialogue(both, "average_U_best_early", miner) for miner in ("m1", "m2")
    )
    x, y = ([values[0] for values in side.values()] for side in (first, second))
    row = row_of(found.differences)
    assert (row["design"], row["n_a"], row["n_b"]) == ("independent", len(x), len(y))
    expected = stats.ttest_ind(y, x, equal_var=False)
    ends = expected.confidence_interval()
    assert row["p"] == pytest.approx(expected.pvalue)
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    (note,) = found.notes
    assert note.startswith("m1 and m2 are independent samples: 0 of 11 values of dialogue")
    assert "pair_by names columns" in note
    alone = fastscore.compare(both, by="miner_uid", unpaired=True, levels=["m2", "m1"])
    assert set(alone.differences["design"]) == {"independent"}
    assert set(alone.differences["a"]) == {"m2"}


def test_pairs_are_found_within_ids_by_a_regular_expression(both: Run) -> None:
    found = fastscore.compare(both, by="miner_uid", pair_by=r"(d\d\d)", metrics=["U_best"])
    by_column = fastscore.compare(both, by="miner_uid", pair_by="dialogue_uid", metrics=["U_best"])
    named = ("pair", "unit")
    assert found.differences.select(named).row(0) == (r"dialogue ~ (d\d\d)",) * 2
    assert_frame_equal(found.differences.drop(named), by_column.differences.drop(named))
    for pattern, message in (
        ("(x)(y)", "has 2 groups, expected one"),
        ("(", "is no regular expression"),
        ("(?=s)(s)", "is no regular expression: look-around"),
        ("(zzz)", "matches no dialogue id"),
    ):
        with pytest.raises(UsageError) as refused:
            fastscore.compare(both, by="miner_uid", pair_by=pattern)
        assert message in f"{refused.value.message} {refused.value.hint}"


def test_another_column_is_the_unit(both: Run) -> None:
    found = fastscore.compare(
        both, by="miner_uid", pair_by="dialogue_uid", cluster="challenge_type", metrics=["U_best"]
    )
    row = row_of(found.differences)
    assert (row["n_a"], row["n_units"], row["reason"]) == (9, 2, "too_few_units")
    assert (row["low"], row["p"], row["verdict"]) == (None, None, "")
    assert found.unit == "challenge_type"
    with pytest.raises(UsageError, match="Did you mean 'challenge_type'"):
        fastscore.compare(both, by="miner_uid", cluster="challenge_typ")


def test_units_that_are_named_are_shared_by_independent_samples(both: Run) -> None:
    asked: dict[str, Any] = {"by": "miner_uid", "metrics": ["U_best"]}
    apart = row_of(fastscore.compare(both, unpaired=True, **asked).differences)
    shared = row_of(
        fastscore.compare(both, unpaired=True, cluster="dialogue_uid", **asked).differences
    )
    assert apart["difference"] == shared["difference"]
    assert apart["standard_error"] != pytest.approx(shared["standard_error"], rel=1e-3)


def test_three_independent_systems_share_no_dialogue_in_a_ranking(
    base: Run, better: Run, both: Run
) -> None:
    found = fastscore.compare(base, better, both, unpaired=True, metrics=["U_best"])
    assert set(found.ranking["sample"]) == {"own dialogues"}
    assert sorted(set(found.differences["n_a"]) | set(found.differences["n_b"])) == [10, 11, 21]


def test_the_headline_names_no_copy_of_another_metric(base: Run, better: Run) -> None:
    first = str(fastscore.compare(base, better)).partition("(Holm")[0]
    assert "average_U_best_early" in first
    assert "U_best " not in first.replace("average_U_best_early", "")


def test_only_headline_metrics_are_called_so(base: Run, better: Run) -> None:
    others = fastscore.compare(base, better, metrics=["lexical_similarity", "U_best"])
    told = [str(others), *others.notes, *(grid.title for grid in comparison_grids(others))]
    assert not any("headline" in text for text in told), told
    assert set(others.differences["family"]) == {"others"}
    assert set(others.differences["family_size"]) == {2}
    # Holm's: both are the smallest p that swaps of nine pairs can give
    assert others.differences["p_holm"].to_list() == [2 * 2 / 2**9] * 2


def test_dialogues_that_are_left_out_of_every_table_have_one_note(base: Run, better: Run) -> None:
    found = fastscore.compare(base, better, repeats="challenge_uid")
    assert found.notes == tuple(
        f"{run.path}: {run.tables['dialogues'].height} dialogues without challenge_uid left out"
        for run in (base, better)
    )
    assert str(found) == "Nothing is compared: no metric has a value on both sides."
    with pytest.raises(UsageError, match=r"gives no values .*without challenge_uid left out\."):
        fastscore.compare(base, by="miner_uid", repeats="challenge_uid")


def test_what_is_named_twice_is_said_or_taken_once(both: Run) -> None:
    twice = fastscore.compare(both, both, metrics=["U_best"])
    assert f"{both.path} is the same run as {both.path}, or a copy of it" in twice.notes
    options = {"by": "miner_uid", "metrics": ["U_best"]}
    levels = fastscore.compare(both, **options, levels=["m1", "m2", "m1"])
    assert levels.differences.equals(fastscore.compare(both, **options).differences)
    spaced = fastscore.compare(both, **options, pair_by="dialogue_uid, challenge_uid")
    assert spaced.differences.equals(
        fastscore.compare(both, **options, pair_by="dialogue_uid,challenge_uid").differences
    )


def test_published_statistics_have_one_variance_over_n(both: Run) -> None:
    found = fastscore.compare(both, by="miner_uid", published_statistics=True, metrics=["U_best"])
    sides = (values_by_dialogue(both, "U_best", miner) for miner in ("m1", "m2"))
    x, y = ([float(np.mean(values)) for values in side.values()] for side in sides)
    row = row_of(found.published)
    student = stats.ttest_ind(y, x, equal_var=True)
    welch = stats.ttest_ind(y, x, equal_var=False)
    ranks = stats.mannwhitneyu(y, x)
    assert (row["student_t"], row["student_p"]) == pytest.approx(
        (student.statistic, student.pvalue)
    )
    assert (row["welch_t"], row["welch_p"]) == pytest.approx((welch.statistic, welch.pvalue))
    assert (row["mann_whitney_u"], row["mann_whitney_p"]) == pytest.approx(
        (ranks.statistic, ranks.pvalue)
    )
    pooled = np.sqrt((np.var(x) + np.var(y)) / 2)
    assert row["cohens_d"] == pytest.approx((np.mean(y) - np.mean(x)) / pooled)
    high = np.mean(x) + 1.96 * np.std(x) / np.sqrt(len(x))
    assert row["normal_high_a"] == pytest.approx(high)
    shown = fastscore_command(
        ["compare", both.path, "--by", "miner_uid", "--metric", "U_best", "--published-statistics"],
        COLUMNS="160",
    )
    assert "p Student" in shown.stdout, shown.stderr
    assert fastscore.compare(both, by="miner_uid").published.is_empty()


def test_effects_are_hedges_g_and_significance_needs_both(both: Run) -> None:
    worse: dict[str, Any] = {"by": "miner_uid", "levels": ["m2", "m1"], "unpaired": True}
    worse |= {"metrics": ["average_U_best_early"]}
    at_default, at_tiny = (
        row_of(fastscore.compare(both, **worse, **alpha).differences)
        for alpha in ({}, {"alpha": 1e-9})
    )
    sides = [values_by_dialogue(both, "average_U_best_early", miner) for miner in ("m2", "m1")]
    expected = hedges_g(*(clusters_of(side, side) for side in sides), paired=False)
    ends = [at_default[name] for name in ("effect", "effect_low", "effect_high")]
    assert expected == pytest.approx(ends)
    assert at_default["effect_low"] < at_default["effect"] < at_default["effect_high"] < 0
    assert (at_default["significant"], at_default["verdict"]) == (True, "worse")
    assert (at_tiny["significant"], at_tiny["verdict"], at_tiny["alpha"]) == (False, "", 1e-9)


def test_printed_tables_mark_what_is_below_alpha(both: Run) -> None:
    worse: dict[str, Any] = {"by": "miner_uid", "levels": ["m2", "m1"], "metrics": ["U_best"]}
    worse["unpaired"] = True
    for alpha, sign in ((0.05, "*"), (1e-9, "")):
        found = fastscore.compare(both, **worse, alpha=alpha)
        row = row_of(found.differences)
        (grid,) = (grid for grid in comparison_grids(found) if grid.title.startswith("independent"))
        cells = {column.header: column.cells for column in grid.columns}
        below = sign if row["p_holm"] < 0.05 else ""
        assert cells[f"p (Holm, α={alpha:g})"] == (f"{p_text(row['p_holm'])}{below}",)


def test_different_signatures_are_refused_by_name(base: Run, folder: Path) -> None:
    other = scored(folder, "other", ("m", 0.4, range(4)), semantic="jaccard", lex_weight=0.5)
    with pytest.raises(UsageError, match=r"lex_weight is 1\.0 in .*base and 0\.5 in .*other; sem"):
        fastscore.compare(base, other)
    found = fastscore.compare(base, other, allow_different_signatures=True, metrics=["U_best"])
    assert any("signatures differ: semantic is" in note for note in found.notes)
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    rows = [{"id": "c", "messages": turns}, {"id": "d", "messages": turns}]
    guest = fastscore.GuestSimulation(level=1)
    by_layout = [fastscore.score(rows, guest, layout=name) for name in ("openai", "hf-messages")]
    with pytest.raises(UsageError, match=r"layout is openai in .* and hf-messages in "):
        fastscore.compare(*by_layout)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"by": "minerr_uid"}, "Did you mean 'miner_uid'?"),
        ({"by": "miner_uid", "levels": ["m3", "m1"]}, "no miner_uid is 'm3'. Did you mean"),
        (
            {"by": "miner_uid", "levels": ["m1"]},
            "'miner_uid' gives only 'm1' to compare; expected two",
        ),
        ({"levels": ["m1"], "by": None}, "Name the column with by."),
        ({"by": "miner_uid", "metrics": ["U_bets"]}, "Did you mean 'U_best'?"),
        ({"by": "miner_uid", "metrics": ["turns"]}, "no metric 'turns'"),
        ({"by": "average_U_best_early"}, "has no label column 'average_U_best_early'"),
    ],
)
def test_unknown_names_are_refused(both: Run, words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        fastscore.compare(both, **words)
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_command_shows_tables_and_json(base: Run, better: Run) -> None:
    words = ["compare", base.path, better.path, "--metric", "U_best"]
    shown = fastscore_command(words, COLUMNS="200")
    assert shown.returncode == 0, shown.stderr
    for words in ("U_best", "missing_input", "g_z", "Holm", "better", "1 dialogue missing in b"):
        assert words in shown.stdout
    printed = json.loads(fastscore_command(["compare", base.path, better.path, "--json"]).stdout)
    found = fastscore.compare(base, better)
    assert printed["differences"] == found.differences.to_dicts()
    assert printed["sides"] == found.sides.to_dicts()
    refused = fastscore_command(["compare", base.path, base.path / "none"])
    assert refused.returncode == 2
    assert "no run there" in refused.stderr


def test_a_table_without_rows_is_left_out_and_the_others_are_compared(tmp_path: Path) -> None:
    """Chats without shifts leave the table of shifts empty."""
    catalogue = tmp_path / "catalogue.jsonl"
    catalogue.write_text('{"id": 1, "name": "Alien", "genre": ["horror"]}\n')
    logs = [
        {
            "session_id": f"s{number}",
            "model_name": model,
            "conversation": [
                {"speaker": "USER", "text": "a horror film"},
                {"speaker": "SYSTEM", "text": reply if number else "a film"},
            ],
        }
        for number in range(4)
        for model, reply in (("a", "a horror film"), ("b", "no idea"))
    ]
    options = fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")
    run = fastscore.score(logs, options, embedder="none")
    found = fastscore.compare(run, by="model", levels=["b", "a"])
    row = row_of(found.differences, metric="cross_coherence")
    assert (row["a"], row["b"], row["difference"]) == ("b", "a", 0.75)
    assert any(note.startswith("table shifts is left out: it has 0 levels") for note in found.notes)
    with pytest.raises(UsageError, match=r"no model is 'c'\. .*Known: 'a', 'b'"):
        fastscore.compare(run, by="model", levels=["c"])
    with pytest.raises(UsageError, match="Column 'model' gives no values to compare; expected two"):
        fastscore.compare(run, by="model", metrics=["delay"])


def test_alpha_is_the_level_of_the_command_too(both: Run) -> None:
    command = ["compare", both.path, "--by", "miner_uid", "--metric", "U_best", "--alpha"]
    assert "p < 0.01" in fastscore_command([*command, "0.01"], COLUMNS="200").stdout
    assert fastscore_command([*command, "1"]).returncode == 2


def test_a_page_of_runs_without_common_pairs_says_so_once(base: Run, folder: Path) -> None:
    other = scored(folder, "elsewhere", ("m", 0.5, range(50, 54)))
    page = fastscore.report(base, other, output=folder / "apart.html").read_text()
    text = re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", page)))
    told = f"elsewhere is not compared with {base.path.name}: No dialogue_uid / challenge_uid of"
    (sentence,) = re.findall(f"{re.escape(told)}[^)]*\\)[^)]*\\)\\.+", text)
    assert not sentence.endswith("..")
