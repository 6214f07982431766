"""A folder of `fastscore judge` is a run: summaries, comparisons, checks and pages of any chat."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import cli
from fastscore.errors import FastscoreError, InputError, RunError, UsageError
from fastscore.llm.judgements import load_rubric
from fastscore.llm.spending import TooManyFailuresError
from tests.conftest import write_lines
from tests.llm.stub_server import Stub, serving

OLD, NEW = (2, 3, 1, 4, 2, 3, 2, 1, 3, 2), (3, 4, 2, 5, 2, 4, 4, 2, 3, 3)


@pytest.fixture(scope="module")
def served():
    """Answer each chat with the score that its last turn names, in all dimensions."""

    def answer(body):
        told = body["messages"][1]["content"].rsplit("score ", 1)[1][0]
        if not told.isdigit():
            return "I cannot tell."
        score = int(told)
        return json.dumps({"helpfulness": score, "coherence": score, "honesty": 5})

    with pytest.MonkeyPatch.context() as patch, serving(Stub(answer=answer)) as stub:
        patch.setenv("FASTSCORE_BASE_URL", stub.url)
        patch.setenv("FASTSCORE_API_KEY", "sk-test")
        yield stub


def chats(version, given):
    return [
        {
            "id": f"c{number}",
            "version": version,
            "messages": [
                {"role": "user", "content": f"Question {number}?"},
                {"role": "assistant", "content": f"{version}: score {score}"},
            ],
        }
        for number, score in enumerate(given)
    ]


@pytest.fixture(scope="module")
def judged(served, tmp_path_factory):
    """Judge both versions in one log, and each in a log of its own."""
    folder: Path = tmp_path_factory.mktemp("judged")
    both = write_lines(folder / "both.jsonl", chats("old", OLD) + chats("new", NEW))
    how = {"layout": "openai", "answers": folder / "answers.sqlite"}
    fastscore.judge(both, "m", output=folder / "both", columns={"model": "version"}, **how)
    for version, given in (("old", OLD), ("new", NEW)):
        log = write_lines(folder / f"{version}.jsonl", chats(version, given))
        fastscore.judge(log, "m", output=folder / version, **how)
    return folder


def test_tables_and_summary_are_the_scores(judged):
    run = fastscore.open_run(judged / "both")
    rows = run.tables["dialogues"]
    assert rows["dialogue"].to_list()[:2] == ["c0/model=old", "c1/model=old"]
    assert rows.filter(model="new")["helpfulness"].to_list() == list(NEW)
    assert fastscore.open_run(judged / "old").tables["dialogues"]["model"].null_count() == len(OLD)
    found = {
        row["metric"]: row
        for row in fastscore.summary(judged / "old").iter_rows(named=True)
        if row["group"] == "all"
    }
    told = json.loads((judged / "old" / "summary.json").read_text())["dimensions"]
    assert found["helpfulness"]["mean"] == sum(OLD) / len(OLD) == told["helpfulness"]["mean"]
    for name in ("helpfulness", "coherence", "honesty"):
        interval = found[name]["ci_low"], found[name]["ci_high"]
        assert interval == pytest.approx((told[name]["low"], told[name]["high"]))
    question = load_rubric("assistant").questions["honesty"]
    assert question in run.suite.metric_by_id["honesty"].formula.text


@pytest.mark.parametrize("sides", [["both"], ["old", "new"]])
def test_models_and_folders_are_compared_in_pairs(judged, sides):
    how = {"by": "model", "levels": ["old", "new"]} if sides == ["both"] else {}
    found = fastscore.compare(*(judged / side for side in sides), **how)
    row = found.differences.row(0, named=True)
    assert row["metric"] == "helpfulness"
    assert row["difference"] == pytest.approx(0.9)
    assert row["p"] == 2 / 2**8  # all eight differences that are not 0 are above it
    assert row["n_a"] == 10
    told = fastscore.check(judged / "new", against=judged / "old", no_worse={"helpfulness": 0.2})
    assert {one.outcome for one in told} == {"passed"}
    told = fastscore.check(judged / "old", against=judged / "new", max_drop={"helpfulness": 0})
    assert told[0].outcome == "failed"


def test_a_page_is_written_and_runs_are_listed(judged):
    pytest.importorskip("matplotlib")
    page = fastscore.report(judged / "old", judged / "new", output=judged / "page.html")
    shown = page.read_text()
    assert "helpfulness" in shown
    assert "Question 1?" not in shown
    lines = (judged / "old.jsonl").read_text().splitlines(keepends=True)
    (judged / "broken.jsonl").write_text("".join(lines) + "{\n")
    out, answers = judged / "broken", judged / "answers.sqlite"
    fastscore.judge(
        judged / "broken.jsonl", "m", output=out, layout="openai", answers=answers, max_rejects=1
    )
    page = fastscore.report(out, output=judged / "broken.html")
    assert "1 line of the logs could not be read" in page.read_text()
    assert "No line was rejected" not in page.read_text()
    assert ">None<" not in page.read_text()
    assert fastscore.open_run(out).rejects["count"].to_list() == [1]
    assert fastscore.check(out, max_rejects=0)[0].outcome == "failed"
    shutil.rmtree(out)
    page = fastscore.report(judged / "old", judged / "both", output=judged / "page.html")
    assert page.is_file()  # one of them has models
    listed = fastscore.runs(judged)
    assert {Path(run).name for run in listed["run"]} == {"both", "old", "new"}
    assert listed["problem"].null_count() == 3


def test_the_command_compares_the_models_of_a_log_and_names_what_is_next(judged, served):
    words = ["judge", str(judged / "both.jsonl"), "--model", "m", "--layout", "openai"]
    more = ["--column", "model=version", "-o", str(judged / "both"), "--replay"]
    answers = ["--answers", str(judged / "answers.sqlite")]
    done = CliRunner().invoke(cli, [*words, *more, *answers])
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "old against new: worse in 2 metrics: helpfulness -0.9000, coherence -0.9000" in told
    assert f"next fastscore report {judged / 'both'} -o report.html" in told


def test_what_a_judge_does_not_give_is_refused(judged, tmp_path):
    with pytest.raises(UsageError, match=r"'c7' \(.*old.jsonl:8\) was scored by a judge"):
        fastscore.explain(judged / "old", "c7")
    with pytest.raises(UsageError, match=r"'c2' .* was scored by a judge"):
        fastscore.explain(judged / "old", worst="helpfulness")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "judgements.jsonl").touch()
    with pytest.raises(RunError, match=r"summary\.json: missing or damaged"):
        fastscore.open_run(tmp_path / "empty")
    (tmp_path / "empty" / "summary.json").write_text('{"suite": "chats", "dimensions": {}}')
    (tmp_path / "empty" / "manifest.json").write_text('{"too_many_failures": false}')
    with pytest.raises(InputError, match="no dialogue has a score"):
        fastscore.open_run(tmp_path / "empty")


def test_other_judges_are_not_compared_unless_that_is_allowed(judged, served, tmp_path):
    log = judged / "old.jsonl"
    how = {"layout": "openai", "answers": tmp_path / "answers.sqlite"}
    fastscore.judge(log, "other", output=tmp_path / "other", **how)
    with pytest.raises(UsageError, match=r"model is m in .*old and other in .*other"):
        fastscore.compare(judged / "old", tmp_path / "other")
    runs = judged / "old", tmp_path / "other"
    found = fastscore.compare(*runs, allow_different_signatures=True)
    assert found.differences["difference"].to_list() == [0, 0, 0]


def test_an_incomplete_judge_is_no_run(served, tmp_path):
    unread = [*chats("old", OLD), {"id": "x", "messages": [{"role": "user", "content": "score ?"}]}]
    how = {"layout": "openai", "answers": tmp_path / "answers.sqlite", "output": tmp_path / "out"}
    log = write_lines(tmp_path / "log.jsonl", unread)
    with pytest.raises(TooManyFailuresError):
        fastscore.judge(log, "m", **how)
    with pytest.raises(RunError, match="not complete: 10 of 11 dialogues have scores"):
        fastscore.check(tmp_path / "out", minimum={"helpfulness": 1})
    fastscore.judge(log, "m", max_failures=1, **how)
    run = fastscore.open_run(tmp_path / "out")
    assert run.tables["dialogues"].height == 10
    assert "1 of 11 dialogues have no score" in run.notes[0]


@pytest.mark.parametrize("name", ["model", "id", "unit", "row", "label", "all"])
def test_a_dimension_with_the_name_of_a_column_is_refused_before_it_is_asked(judged, name):
    rubric = judged / "clash.toml"
    rubric.write_text(f'title = "t"\n[[dimension]]\nname = "{name}"\nquestion = "Is it?"\n')
    with pytest.raises(UsageError, match="another name than columns of runs have"):
        load_rubric(rubric)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("judgements.jsonl", "{bad"),
        ("judgements.jsonl", '{"a": 1}\n'),
        ("summary.json", "{}"),
        ("manifest.json", "[]"),
    ],
)
def test_a_damaged_folder_is_named_and_hides_no_other_run(judged, tmp_path, name, content):
    shutil.copytree(judged / "old", tmp_path / "damaged")
    shutil.copytree(judged / "new", tmp_path / "new")
    (tmp_path / "damaged" / name).write_text(content)
    with pytest.raises(RunError, match=rf"{name}: missing or damaged"):
        fastscore.open_run(tmp_path / "damaged")
    assert fastscore.runs(tmp_path).height == 2


def test_a_summary_without_a_scale_leaves_it_at_1_to_5(judged, tmp_path):
    folder = shutil.copytree(judged / "old", tmp_path / "old")
    (folder / "summary.json").write_text("[]")
    people = [
        {"dialogue": f"c{n}", "rater": "p", "helpfulness": score} for n, score in enumerate(OLD)
    ]
    assert fastscore.agreement(folder, people).coefficients.height > 0


def test_another_process_knows_a_pickled_run(judged, tmp_path):
    run = fastscore.open_run(judged / "old")
    (tmp_path / "run").write_bytes(pickle.dumps(run))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).suite.name)"
    words = [sys.executable, "-c", code, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == run.suite.name


def test_a_folder_of_an_older_release_is_a_run_if_all_was_judged(judged, tmp_path):
    older = shutil.copytree(judged / "old", tmp_path / "older")
    for file, lost in (
        ("manifest.json", "too_many_failures"),
        ("summary.json", "questions"),
        ("summary.json", "log_rows"),
    ):
        about = json.loads((older / file).read_text())
        del about[lost]
        (older / file).write_text(json.dumps(about))
    rows = [json.loads(line) for line in (older / "judgements.jsonl").read_text().splitlines()]
    write_lines(
        older / "judgements.jsonl",
        [{key: row[key] for key in row if key != "unit"} for row in rows],
    )
    assert fastscore.open_run(older).manifest.counts["lines"] == len(OLD)
    found = fastscore.compare(judged / "old", older)
    assert found.differences["difference"].to_list() == [0, 0, 0]


def test_more_models_than_are_compared_are_judged_all_the_same(served, tmp_path):
    rows = [row | {"version": str(n)} for n in range(101) for row in chats("old", OLD[:1])]
    log = write_lines(tmp_path / "log.jsonl", rows)
    words = ["judge", str(log), "--model", "m", "--layout", "openai", "--column", "model=version"]
    more = ["-o", str(tmp_path / "out"), "--answers", str(tmp_path / "answers.sqlite")]
    done = CliRunner().invoke(cli, [*words, *more])
    assert done.exit_code == 0, done.output
    assert "101 models" in done.stdout
    assert "next       fastscore report" in done.stdout


def test_verdicts_on_pairs_are_no_run(tmp_path):
    (tmp_path / "pairs.jsonl").touch()
    with pytest.raises(UsageError, match=r"verdicts of a judge on pairs.*fastscore rank"):
        fastscore.open_run(tmp_path)


def test_folder_of_an_unfinished_judge_says_what_to_do(served, judged, tmp_path):
    how = {"layout": "openai", "answers": tmp_path / "answers.sqlite"}
    with pytest.raises(FastscoreError):
        fastscore.judge(judged / "old.jsonl", "m", output=tmp_path / "cut", max_requests=1, **how)
    with pytest.raises(RunError, match="the judge wrote no scores yet"):
        fastscore.open_run(tmp_path / "cut")


@pytest.mark.parametrize(
    ("name", "mark", "message"),
    [
        ("experiment.json", '{"agents": []}', "no run: it holds an experiment. Its run is"),
        ("manifest.json", '{"annotations": "states"}', "no run: it holds annotations"),
    ],
)
def test_folders_of_other_commands_are_named(tmp_path, name, mark, message):
    (tmp_path / name).write_text(mark)
    with pytest.raises(UsageError, match=message):
        fastscore.open_run(tmp_path)
