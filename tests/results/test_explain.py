"""Explanations: their numbers are the run's, and their evidence adds up to them."""

import csv
import dataclasses
import functools
import gzip
import io
import itertools
import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from rich.console import Console

import fastscore
from fastscore.api.examples import write_example
from fastscore.errors import InputError, UsageError
from fastscore.logs.plan.shards import plan_shards
from fastscore.results.explaining import (
    Dialogues,
    Explanations,
    choose_dialogue,
    explain_metrics,
    print_evidence,
    print_explanations,
)
from fastscore.results.runs import Run
from fastscore.suites.declarations import Metric, OutputColumn, Table
from fastscore.suites.showing import Evidence, Explanation, matched_characters, occurrences
from tests.by_keywords import score_by_keywords
from tests.conftest import fastscore_command, often
from tests.results.comparing import guests
from tests.results.conftest import PROFILES, SUITES
from tests.vectors.conftest import masked_cache, masked_folder  # noqa: F401

_DST = {
    f"dst_{part}{end}"
    for part in ("precision", "recall", "f1", "joint_accuracy")
    for end in ("", "_mean")
}
PAIRS = often(100, 200)
NEVER = {
    "score_dialogue": {"pppl_prediction", "pppl_ground_truth", "pppl_penalty"},
    "preference_shift": _DST,
    "preference_shift/published": _DST,
    "preference_shift/legacy": _DST | {"cas_all"},
}
"""What these runs have no value of; another test has it."""
NO_RATIOS = {
    *("lexical_similarity", "semantic_cosine_raw", "semantic_similarity", "earliness"),
    *(
        "semantic_baseline_b",
        "U_step",
        "U_best",
        "pppl_prediction",
        "pppl_ground_truth",
        "pppl_penalty",
    ),
    *("W2", "W3", "M13", "M7_total_turns", "M7_feedback_turn_overhead"),
    *("tas", "segment_tas", "delay", "delay_cosine", "cr", "segment_cr", "i", "cas", "cas_all"),
    *("segment_i", "i_around_shift", "topic_interference", "context_adaptation_score"),
    *("cross_coherence", "context_retention", *(id for id in _DST if id.endswith("_mean"))),
    *("missing_concepts_total", "hallucinated_concepts_total"),
    *("judge_score_1_5", "profile_score"),
    *("PAS", "BVS", "ORA", "DEI", "CRRS"),
}
"""Maxima, products, sums, means of rows and counts."""


@pytest.mark.parametrize("suite", [*SUITES, *PROFILES[:: often(2, 1)]])
def test_numbers_are_the_runs_and_follow_from_their_evidence(
    suite: str, suite_runs: Mapping[str, Run]
) -> None:
    """Pairs of dialogue and metric at random, every metric among them as often as any other."""
    dialogues = Dialogues(suite_runs[suite])
    declared = {metric.id: metric for metric in dialogues.suite.metrics}
    choices = random.Random(suite)
    rows = range(len(dialogues.names))
    metrics = itertools.cycle(choices.sample(list(declared), len(declared)))
    chosen: dict[int, list[str]] = {}
    for _ in range(PAIRS):
        chosen.setdefault(choices.choice(rows), []).append(next(metrics))
    followed: set[str] = set()
    for row, asked in chosen.items():
        committed = dialogues.tables([row])[0]
        found = explain_metrics(dialogues, row, asked)
        values = [value for id in asked for value in committed[declared[id].table][id]]
        assert [one.value for one in found] == values
        for one in found:
            followed |= _check(one)
    never = {id for id, metric in declared.items() if _is_null(dialogues, metric)}
    assert followed | never == set(declared)
    assert never <= NEVER.get(suite, set())


def _is_null(dialogues: Dialogues, metric: Metric) -> bool:
    values = dialogues.run.scan(metric.table).select(metric.id).collect()[metric.id]
    return values.null_count() == len(values)


def _check(one: Explanation) -> set[str]:
    """Check an explanation by itself; return the metric it explains, if it has a value."""
    assert (one.value is None) == bool(one.reason)
    assert one.lines
    if one.value is None:
        return set()
    assert one.working
    assert one.evidence
    assert one.result == pytest.approx(one.value, abs=1e-6), one
    if one.denominator is None:
        # 0 or 1 of nothing, by the metric's own rule
        assert one.metric in NO_RATIOS or one.value in (0, 1), one
    else:
        assert one.numerator is not None
        assert one.numerator / one.denominator == pytest.approx(one.value, abs=1e-6), one
    return {one.metric}


def test_a_number_of_a_dialogue_stands_on_all_its_lines(tmp_path: Path) -> None:
    write_example("guest_simulation", tmp_path)
    run = fastscore.score(
        tmp_path / "logs",
        fastscore.GuestSimulation(personas=str(tmp_path / "personas.json")),
        output=tmp_path / "run",
        embedder=None,
    )
    dialogues = Dialogues(run)
    (one,) = explain_metrics(dialogues, 0, ["PAS"])
    with Path(dialogues.tables([0])[0]["dialogues"]["file"][0]).open(newline="") as log:
        assert one.lines == tuple(range(2, 1 + sum(1 for _ in csv.reader(log))))


def test_perplexities_follow_from_their_evidence(
    tmp_path: Path,
    masked_cache: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FASTSCORE_CACHE", str(masked_cache))
    said = [("the cat sat", "the cat sat"), ("sat sat the", "the cat"), ("", "the dog")]
    lines = [
        {"event": event, "utterance_index": number, "step": 0, "dialogue_uid": "d", name: text}
        for number, (prediction, truth) in enumerate(said)
        for event, name, text in (
            ("predicted", "prediction", prediction),
            ("utterance_complete", "ground_truth", truth),
        )
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = {"lex_weight": 1.0, "pppl_model": "tiny-mlm", "pppl_weight": 0.5}
    run = score_by_keywords(log, "score_dialogue", output=tmp_path / "run", **settings)
    found = explain_metrics(
        Dialogues(run), 0, ["pppl_prediction", "pppl_ground_truth", "pppl_penalty"]
    )
    assert set().union(*map(_check, found)) == {one.metric for one in found}


@pytest.mark.parametrize("suite", SUITES)
def test_every_metric_is_printed_and_written(suite: str, suite_runs: Mapping[str, Run]) -> None:
    dialogues = Dialogues(suite_runs[suite])
    ids = [metric.id for metric in dialogues.suite.metrics]
    found = explain_metrics(dialogues, 0, ids)
    assert {one.metric for one in found} <= set(ids)
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    whole = Explanations("d", "log", tuple(found), dialogues.suite)
    print_explanations(console, whole)
    text = console.export_text()
    for id in {one.metric for one in found}:
        assert f"({id})" in text.replace("\n", "")
    content = json.loads(whole.json)
    assert len(content["explanations"]) == len(found)


def test_counts_are_printed_without_decimals(suite_runs: Mapping[str, Run]) -> None:
    dialogues = Dialogues(suite_runs["group_travel"])
    found = explain_metrics(dialogues, 0, ["M7_total_turns"])
    console = Console(width=80, record=True, file=io.StringIO())
    long = dataclasses.replace(found[0], evidence=found[0].evidence * 2)
    print_explanations(console, Explanations("d", "log", (long,), dialogues.suite, "my run"))
    text = console.export_text()
    assert "6 more: `fastscore explain 'my run' d M7_total_turns --json` has all" in text
    assert f"(M7_total_turns): {found[0].value}\n" in "\n".join(map(str.strip, text.split("\n")))


def test_evidence_hangs_below_its_mark_and_keeps_its_lines() -> None:
    console = Console(width=30, record=True, file=io.StringIO())
    print_evidence(console, Evidence(what="word " * 10, text="one\ntwo\x1b[2J " + "more " * 8))
    lines = console.export_text().splitlines()
    assert lines[0].startswith("  - word")
    assert all(line.startswith("    ") for line in lines[1:])
    assert [line.strip() for line in lines if line.strip() == "one"]
    assert "two\\x1b[2J" in "".join(lines)


def test_evidence_deep_in_a_text_is_shown() -> None:
    text = "x" * 5_000 + "needle" + "y" * 5_000
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_evidence(console, Evidence(what="reply", text=text, marks=occurrences(text, "needle")))
    shown = console.export_text().replace("\n", "")
    assert "[needle]" in shown
    assert "4,606 more characters" in shown


def test_a_dialogue_is_chosen_by_name_by_score_or_at_random(suite_runs: Mapping[str, Run]) -> None:
    dialogues = Dialogues(suite_runs["group_travel"])
    name = dialogues.names[3]
    assert choose_dialogue(dialogues, name) == 3
    values = dialogues.run.scan("dialogues").select("M9").collect()["M9"]
    worst = choose_dialogue(dialogues, worst="M9")
    assert values[worst] == values.min()
    assert values[choose_dialogue(dialogues, best="M9")] == values.max()
    least = dialogues.run.scan("dialogues").select("M13").collect()["M13"]
    assert least[choose_dialogue(dialogues, best="M13")] == least.min()  # lower is better
    assert choose_dialogue(dialogues, random=True, seed=1) == choose_dialogue(
        dialogues, random=True, seed=1
    )
    with pytest.raises(UsageError, match="seed is given without random"):
        choose_dialogue(dialogues, seed=1)
    with pytest.raises(UsageError, match=r"names of \d+ dialogues begin with 's0'"):
        choose_dialogue(dialogues, "s0")
    with pytest.raises(UsageError, match=r"no dialogue's name contains 'zz'\. Its \d+ dial"):
        choose_dialogue(dialogues, "zz")
    with pytest.raises(UsageError, match="dialogues contain '-c'"):
        choose_dialogue(dialogues, "-c")
    with pytest.raises(UsageError, match=r"'M9'\. That is a metric: .* set worst to M9\."):
        choose_dialogue(dialogues, "M9")
    with pytest.raises(UsageError, match="in one way, not in 2"):
        choose_dialogue(dialogues, name, worst="M9")
    with pytest.raises(UsageError, match=rf"No dialogue .* such as '{dialogues.names[0]}', or"):
        choose_dialogue(dialogues)


@pytest.mark.parametrize("suite", SUITES[:: often(2, 1)])
def test_a_dialogue_is_found_by_any_part_that_it_alone_has(
    suite: str, suite_runs: Mapping[str, Run]
) -> None:
    dialogues = Dialogues(suite_runs[suite])
    names = dialogues.names.to_list()
    for row, name in enumerate(names[:20]):
        others = [other for other in names if other != name]
        starts = [name[:n] for n in range(1, len(name))]
        alone = next((s for s in starts if not any(o.startswith(s) for o in others)), name)
        assert dialogues.find(alone) == dialogues.find(name) == row
        ends = [name[n:] for n in range(len(name) - 1, 0, -1)]
        end = next((e for e in ends if not any(e in other for other in others)), name)
        assert dialogues.find(end) == row


def test_the_name_itself_counts_before_those_that_begin_with_it(
    suite_runs: Mapping[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    dialogues = Dialogues(suite_runs["guest_simulation"])
    names = pl.Series("dialogue", ["guest", "guest-1", "a guest"])
    monkeypatch.setitem(vars(dialogues), "names", names)
    assert [dialogues.find(name) for name in ("guest", "guest-", "a ")] == [0, 1, 2]


def test_a_changed_log_is_refused(tmp_path: Path) -> None:
    run = guests(tmp_path, "one", ("c", 3, [1.0]))
    log = Path(run.manifest.inputs[0]["name"])
    content = log.read_bytes()
    for changed in (content + b"\n", content.replace(b"a", b"b", 1)):
        log.write_bytes(changed)
        with pytest.raises(InputError, match="no longer what was scored"):
            explain_metrics(Dialogues(run), 0, ["PAS"])


def test_dialogues_of_a_packed_log_are_read_from_any_of_its_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests(tmp_path, "one", *((f"c{n}", 3, [1.0]) for n in range(6)))
    whole = b"".join(log.read_bytes() for log in sorted((tmp_path / "one/logs").iterdir()))
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(whole))
    run = fastscore.score(packed, "guest_simulation", output=tmp_path / "run", embedder=None)
    small = functools.partial(plan_shards, shard_bytes=len(whole) // 3)
    monkeypatch.setattr("fastscore.results.explaining.plan_shards", small)
    assert [len(each.raw) for each in Dialogues(run).read(range(6))] == [2] * 6


def test_the_command_explains(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["guest_simulation"]
    done = fastscore_command(["explain", run.path, "--worst", "CRRS"])
    assert done.returncode == 0, done.stderr
    assert "0.25 * " in done.stdout
    wrong = fastscore_command(["explain", run.path, "--worst", "CRSS"])
    assert wrong.returncode == 2
    assert "Did you mean 'CRRS'" in wrong.stderr


def test_a_notebook_shows_text_once_and_without_codes_of_a_terminal(
    suite_runs: Mapping[str, Run], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    found = fastscore.explain(suite_runs["score_dialogue"], random=True)
    expected = repr(found)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert repr(found) == expected
    assert capsys.readouterr().out == ""
    assert "\x1b" not in expected


def test_alignment_goes_back_by_exchanges() -> None:
    """An a is kept and one exchanged; to keep the last one takes two edits more."""
    (kept,) = matched_characters("aa", "ab")
    assert (kept.start, kept.stop) == (0, 1)


@pytest.mark.parametrize(
    ("text", "other", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2)],
)
def test_alignment_keeps_what_a_shortest_edit_keeps(text: str, other: str, distance: int) -> None:
    kept = sum(mark.stop - mark.start for mark in matched_characters(text, other))
    assert kept >= max(len(text), len(other)) - distance
    assert [(m.start, m.stop) for m in occurrences("Abc abc", "ABC")] == [(0, 3), (4, 7)]


def test_a_suite_whose_dialogues_name_no_log_is_said() -> None:
    named = OutputColumn(name="dialogue", dtype=pl.String(), description="Its name.")
    tables = (Table(name="dialogues", grain="one", columns=(named,)),)
    suite = SimpleNamespace(name="short", tables=tables)
    run = SimpleNamespace(suite=suite, manifest=SimpleNamespace(suite="short"))
    with pytest.raises(UsageError, match="Suite 'short': table 'dialogues' has no column 'file'"):
        _ = Dialogues(run).names  # type: ignore[arg-type]
