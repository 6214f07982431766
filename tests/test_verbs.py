"""Every verb of the command line is a function, for runs on disk and in memory alike."""

import json
import pickle
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import VERBS, cli
from fastscore.errors import UsageError
from fastscore.llm.judgements import Judged
from fastscore.vectors.embedder import FunctionEmbedder
from tests.conftest import fastscore_command

SHELL_ONLY = {
    "completion": "for a shell",
    "doctor": "about the installation",
    "kernels": "about the installation",
    "models": "about the installation",
    "vectors": "about the installation",
    "experiment": "asks a chat model",
    "simulate": "asks a chat model",
    "migrate": "a group of one command",
}
LEXICAL = fastscore.ScoreDialogue(lex_weight=1.0)
METRIC = "average_U_best_early"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return fastscore.example("score_dialogue", tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def both(example, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "run"
    return [
        fastscore.score(example.logs, LEXICAL, output=output),
        fastscore.score(example.logs, LEXICAL),
    ]


def test_a_run_lists_what_is_for_users_and_names_its_tables(both):
    for run in both:
        assert (
            set(dir(run))
            == set(dir(fastscore.Run))
            == {
                *("cut_texts", "manifest", "notes", "options", "path", "plot", "rejects"),
                *("scan", "signature", "suite", "summary", "tables", "to_arrow", "to_pandas"),
            }
        )
        for tables in (run.tables, run.lazy_tables):
            with pytest.raises(
                fastscore.FastscoreError,
                match=r"no table 'dialogue'\. Did you mean 'dialogues'\? Known: 'dialogues', ",
            ):
                tables["dialogue"]
            assert "dialogue" not in tables
            assert tables.get("dialogue") is None


def test_every_verb_is_a_function_or_it_is_said_why_not():
    assert set(SHELL_ONLY) <= set(VERBS)
    for verb in set(VERBS) - set(SHELL_ONLY):
        assert callable(getattr(fastscore, verb)), verb


@pytest.mark.usefixtures("undrawn")
def test_runs_in_memory_and_on_disk_are_alike(both, tmp_path):
    stored, held = both
    assert stored.signature == held.signature
    assert stored.suite.name == held.suite.name == "score_dialogue"
    assert list(stored.tables) == list(held.tables)
    assert stored.summary.equals(held.summary)
    assert json.loads(stored.summary_json) == json.loads(held.summary_json)
    assert stored.rejects.equals(held.rejects)
    assert stored.notes == held.notes
    assert stored.cut_texts.equals(held.cut_texts)
    of_stored = fastscore.summary(stored, by="miner_uid")
    assert of_stored.equals(fastscore.summary(held, by=["miner_uid"]))
    assert repr(held).partition("\n")[2] == repr(stored).partition("\n")[2]
    # beside the run that its last line names
    explained = replace(fastscore.explain(stored, worst=METRIC), run="RUN")
    assert explained.text == fastscore.explain(held, worst=METRIC).text
    checks = [
        fastscore.check(run, minimum={METRIC: 0.0}, max_rejects=0.5, max_null={METRIC: 1.0})
        for run in both
    ]
    assert checks[0] == checks[1]
    assert {one.outcome for one in checks[0]} == {"passed"}
    pages = [fastscore.report(run, output=tmp_path / "page.html").read_text() for run in both]
    assert all("<!doctype html>" in page.lower() for page in pages)
    for frame in (held.to_arrow(), held.to_pandas()):
        assert pl.DataFrame(frame).equals(stored.tables["dialogues"]) or len(frame) == len(
            stored.tables["dialogues"]
        )
    assert stored.to_arrow("steps").equals(stored.tables["steps"].to_arrow())
    assert list(held.to_pandas("steps").columns) == stored.tables["steps"].columns


def test_scores_in_memory_are_compared(both, example):
    stored, held = both
    other = fastscore.score(example.logs, LEXICAL)
    found = fastscore.compare(held, other, metrics=[METRIC])
    assert found.differences["difference"].to_list() == [0.0]
    named = found.differences.select(pl.col(pl.String)).row(0)
    assert f"{example.logs} (2)" in named
    assert fastscore.compare(held, stored, metrics=[METRIC]).differences.height == 1
    assert fastscore.compare(held, by="miner_uid", metrics=[METRIC]).suite == "score_dialogue"


def test_rows_in_memory_are_called_by_their_place_or_name(example):
    (log,) = example.logs.iterdir()
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    first, second = (fastscore.score(rows, LEXICAL) for _ in range(2))
    found = fastscore.compare(first, second, metrics=[METRIC])
    assert found.differences.select("a", "b").row(0) == ("run 1", "run 2")
    assert str(found).startswith("run 2 equals run 1")
    by_name = {"old prompt": first, "new prompt": second}
    found = fastscore.compare(by_name, metrics=[METRIC], repeats="miner_uid")
    assert set(found.sides["side"]) == {"old prompt", "new prompt"}
    assert not any("frame" in note for note in found.notes)


@pytest.mark.parametrize(("form", "output"), [(list, "run"), (pl.DataFrame, None), (iter, None)])
def test_rows_in_memory_are_explained(form, output, example, tmp_path):
    lines = [path.read_text().splitlines() for path in sorted(example.logs.iterdir())]
    rows = [json.loads(line) for of_file in lines for line in of_file]
    run = fastscore.score(form(rows), LEXICAL, output=output and tmp_path / output)
    assert run.tables["dialogues"].height
    explained = fastscore.explain(run, best=METRIC)
    assert explained.file == "frame"
    (one,) = explained.explanations
    assert one.value == one.result
    assert repr(explained).startswith(explained.dialogue[:60])


@pytest.mark.usefixtures("undrawn")
def test_a_run_is_explained_and_reported_from_another_folder(example, tmp_path, monkeypatch):
    monkeypatch.chdir(example.folder)
    run = fastscore.score("logs", LEXICAL, output=tmp_path / "run")
    (entry, *_) = run.manifest.inputs
    assert entry["name"].startswith("logs/")
    assert entry["path"] == str(example.folder / entry["name"])
    monkeypatch.chdir(tmp_path)
    assert fastscore.explain("run", worst=METRIC).file == entry["name"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastscore.report("run", output="page.html")


@pytest.mark.usefixtures("undrawn")
def test_a_report_without_texts_warns(tmp_path):
    example = fastscore.example("memory_finance", tmp_path / "example")
    run = fastscore.score(example.logs, "memory_finance", output=tmp_path / "run")
    for path in example.logs.iterdir():
        path.unlink()
    with pytest.warns(fastscore.LogsWarning, match="The texts of dialogues are not shown"):
        fastscore.report(run, output=tmp_path / "page.html")
    done = fastscore_command(["report", tmp_path / "run", "-o", tmp_path / "page.html"])
    assert "Note: The texts of dialogues are not shown" in done.stderr


def test_runs_of_a_folder_are_listed(both, tmp_path):
    folder = both[0].path.parent
    found = fastscore.runs(folder)
    (row,) = found.rows(named=True)
    dialogues = both[0].tables["dialogues"]
    assert row["suite"] == "score_dialogue"
    assert row["options"] == "lex_weight=1.0"
    assert row["rows"] == dialogues.height
    means = {one["metric"]: one["mean"] for one in row["headline"]}
    assert means[METRIC] == pytest.approx(float(dialogues[METRIC].mean()))
    assert row["problem"] is None
    shown = " ".join(fastscore_command(["runs", folder], COLUMNS="120").stdout.split())
    assert f"run score_dialogue {dialogues.height}" in shown
    assert shown.endswith(f"{METRIC} {means[METRIC]:.3f} lex_weight=1.0")
    listed = json.loads(fastscore_command(["runs", folder, "--json"]).stdout)
    assert [one["suite"] for one in listed] == ["score_dialogue"]
    page = tmp_path / "index.html"
    assert fastscore_command(["runs", folder, "-o", page]).returncode == 0
    text = page.read_text()
    (link,) = re.findall(r'href="([^#"]+)"', text)
    assert (tmp_path / link).is_file()
    # a page that stays says when, not how long ago
    assert re.search(r'<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d\+00:00">', text)
    assert not re.search(r"\d (seconds|minutes|hours|days)", text)
    (folder / "broken" / "receipts").mkdir(parents=True)
    (folder / "broken" / "manifest.json").write_text("{}")
    broken = fastscore.runs(folder).filter(pl.col("problem").is_not_null())
    assert broken["run"].to_list() == [str(folder / "broken")]
    assert fastscore.runs(tmp_path).is_empty()


def test_a_damaged_run_leaves_the_others_their_pages(both, tmp_path):
    folder = tmp_path / "runs"
    for name in ("x" * 250, "damaged"):
        shutil.copytree(both[0].path, folder / name)
    (part,) = (folder / "damaged" / "dialogues").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-1])
    page = tmp_path / "index.html"
    assert fastscore_command(["runs", folder, "-o", page]).returncode == 0
    (link,) = re.findall(r'href="([^#"]+)"', page.read_text())
    assert (tmp_path / link).is_file()
    assert "damaged/dialogues" in page.read_text()


def test_metrics_and_layouts_are_listed():
    found = fastscore.metrics("score_dialogue")
    assert METRIC in found["metric"].to_list()
    assert set(fastscore.metrics()["suite"]) >= {"score_dialogue", "group_travel"}
    assert "https://aclanthology.org/2020.acl-main.240" in found["papers"][0]
    assert "openai" in fastscore.layouts()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda run: fastscore.scan("score_dialogue", "logs"),
            "The logs come first: fastscore.scan(logs, 'score_dialogue').",
        ),
        (
            lambda run: fastscore.score(LEXICAL, [{"step": 0}]),
            "The logs come first: fastscore.score(logs, options).",
        ),
        (lambda run: fastscore.scan("logs", LEXICAL, values="a"), "values is of type str"),
        (lambda run: fastscore.open_run(__file__), "no run there (no manifest.json)"),
        (lambda run: fastscore.VectorStore.of("m"), "type str, expected a fastscore.Embedder."),
        (lambda run: fastscore.inspect(pl.DataFrame({"a": [1]})), "Write rows to a file: polars"),
        (
            lambda run: fastscore.agreement([{"dialogue": "a", "q": 1}]),
            'named: columns=["q"], in a shell the option judge_column.',
        ),
        (lambda run: fastscore.score(iter([]), LEXICAL), "there is nothing to read"),
        (
            lambda run: fastscore.score([{"step": 0}], LEXICAL, embedder="minilm"),  # unused
            "Unknown model 'minilm'. Did you mean 'minilm-l6-v2'?",
        ),
        (
            lambda run: fastscore.score([{"step": 0}], LEXICAL, embedder="hub/all-MiniLM-L6-v2"),
            "There is no exported model 'hub/all-MiniLM-L6-v2'. Did you mean 'minilm-l6-v2'? For a "
            "model of the Hugging Face hub, run `fastscore models export hub/all-MiniLM-L6-v2`",
        ),
        (
            lambda run: fastscore.score([{"step": 0}], LEXICAL, embedder=fastscore.Embedder),
            "Make an object of the class Embedder.",
        ),
        (
            lambda run: fastscore.score([{"step": 0}], LEXICAL, store="s3://bucket/vectors"),
            "s3://bucket/vectors is an address, and a vector store is written to this computer.",
        ),
        (
            lambda run: fastscore.score(["logs"], fastscore.MemoryFinance(legacy_files=True)),
            "Name a run directory as output.",
        ),
        (
            lambda run: fastscore.explain(run, worst=METRIC.upper()),
            f"Did you mean '{METRIC}'?",
        ),
        (
            lambda run: fastscore.summary(run, by="challenge"),
            "Did you mean 'challenge_uid'?",
        ),
        (
            lambda run: fastscore.score([{"step": 0}], LEXICAL, metrics=[METRIC]),
            "All metrics of the suite are scored anyway.",
        ),
        (
            lambda run: fastscore.inspect([{"step": 0}]),
            "expected files, folders and globs. Give each as an argument of its own: "
            "fastscore.inspect(*logs).",
        ),
        (lambda run: fastscore.check(run), 'max_drop={"METRIC": 0.01}.'),
        (
            lambda run: fastscore.example(Path("folder"), "score_dialogue"),
            'The suite comes first: fastscore.example("score_dialogue", folder).',
        ),
        (
            lambda run: fastscore.metrics(LEXICAL),
            "A name is of type ScoreDialogue; expected suites",
        ),
        (lambda run: fastscore.open_run(run), "type Run; expected a run directory"),
        (lambda run: fastscore.report([run, run]), "The run is of type list"),
        (lambda run: fastscore.agreement(), "No file is named"),
    ],
)
def test_other_arguments_are_refused_in_a_sentence(call, message, both):
    with pytest.raises(fastscore.FastscoreError) as refused:
        call(both[1])
    assert message in str(refused.value)
    assert "--" not in str(refused.value)


def test_a_generator_of_rows_is_scanned_as_often_as_it_is_asked_for(example):
    lines = [path.read_text().splitlines() for path in sorted(example.logs.iterdir())]
    rows = [json.loads(line) for of_file in lines for line in of_file]
    expected = fastscore.scan(rows, "score_dialogue").collect()
    scanned = fastscore.scan((row for row in rows), LEXICAL)
    assert scanned.collect().equals(expected)
    assert scanned.collect().equals(expected)
    by_path = fastscore.scan((path for path in [example.logs]), LEXICAL).collect()
    assert by_path["prediction"].equals(expected["prediction"])


def test_scores_in_memory_are_plotted(both):
    pictures = [run.plot(METRIC)._repr_svg_() for run in both]
    assert all(re.search(r"<svg\b", picture) for picture in pictures)
    assert [picture.count("<path") for picture in pictures] == [pictures[0].count("<path")] * 2


def test_plots_show_n_and_leave_a_margin(both):
    run = both[0]
    values = run.tables["dialogues"][METRIC].drop_nulls()
    axis = run.plot(METRIC).axes[0]
    assert axis.get_xlabel() == f"{METRIC} (n={len(values)})"
    low, high = axis.get_xlim()
    assert low < float(values.min()) <= float(values.max()) < high
    assert axis.get_ylim()[1] > max(bar.get_height() for bar in axis.patches)
    axis = run.plot(METRIC, by="miner_uid").axes[0]
    names = [label.get_text().replace("\n", " ") for label in axis.get_yticklabels()]
    sizes = run.tables["dialogues"].drop_nulls(METRIC).group_by("miner_uid").len().sort("miner_uid")
    shown = [text.get_text() for text in axis.texts]
    assert list(zip(names, shown, strict=True)) == [
        (miner, f" n {n}") for miner, n in sizes.iter_rows()
    ]
    assert axis.get_ylim()[0] > len(names) - 1


def test_progress_is_told(example, tmp_path, capfd):
    told = []
    for output in (None, tmp_path / "run"):
        told.clear()
        fastscore.score(
            example.logs, LEXICAL, output=output, progress=lambda *stage: told.append(stage)
        )
        scored = [(done, total) for stage, done, total in told if stage == "score"]
        assert scored[0] == (0, 1)
        assert scored[-1] == (1, 1)
    assert capfd.readouterr().err == ""
    fastscore.score(example.logs, LEXICAL, progress=True)
    assert "score: 1/1 tasks" in capfd.readouterr().err


def test_an_option_has_one_name_in_messages(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    words = ["score", "score_dialogue", log, "-o", tmp_path / "run", "--limit", 1, "--sample", 1]
    with pytest.raises(fastscore.FastscoreError) as refused:
        fastscore.score(log, LEXICAL, limit=1, sample=1)
    message = "Both limit and sample are given."
    assert refused.value.message == refused.value.args[0] == message
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (copied.message, copied.hint) == (message, refused.value.hint)
    assert fastscore_command(words).stderr.strip() == f"Error: {refused.value}"


def test_notes_of_a_run_are_those_of_its_manifest(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"conversation_id": "c", "role": "agent", "content": "so", "mood_tone": "casual"}\n'
        '{"conversation_id": "c", "role": "agent", "content": "no", "mood_tone": "confused"}\n'
    )
    run = fastscore.score(
        log, fastscore.GuestSimulation(level=1), output=tmp_path / "run", embedder=None
    )
    told = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert run.notes == (*told["lacking"], *told["notes"])
    assert any("or give personas" in note for note in run.notes)
    assert fastscore.open_run(tmp_path / "run").notes == run.notes


def test_what_verbs_return_is_short_when_printed(both, tmp_path):
    on_disk, in_memory = both
    assert repr(on_disk.tables) == "tables: steps, utterances, dialogues"
    compared = fastscore.compare({"base": in_memory, "new": on_disk})
    assert (
        repr(compared) == str(compared) == "new equals base in the mean of every headline metric."
    )
    assert set(compared.sides["side"]) == {"base", "new"}
    scores = pl.DataFrame({"dialogue": ["a", "b", "c"], "overall": [4, 2, 5]})
    for name in ("judge.csv", "people.csv"):
        scores.write_csv(tmp_path / name)
    agreed = fastscore.agreement(tmp_path / "judge.csv", tmp_path / "people.csv")
    shown = f"{tmp_path / 'judge.csv'}, {tmp_path / 'people.csv'}"
    assert repr(agreed) == (
        f"Agreement of {shown} on overall\n  overall: Krippendorff's alpha, ordinal 1.000 "
        "(95 % interval: too few dialogues; n 3)\nall coefficients in .coefficients"
    )
    assert agreed._repr_html_().count("<table>") == 2
    rows = [("u1", "x", "y", "A"), ("u2", "x", "y", "B"), ("u3", "x", "y", "A")]
    names = ["dialogue", "model_a", "model_b", "overall"]
    pl.DataFrame(rows, names, orient="row").write_csv(tmp_path / "verdicts.csv")
    ranked = fastscore.rank(tmp_path / "verdicts.csv")
    assert repr(ranked) == "Ranking of 2 systems, first: overall: x"
    assert ranked._repr_html_().count("<table>") == 1
    analysed = fastscore.Analysis(Path("a.html"), {"one": scores}, (), ("lacking",))
    assert repr(analysed) == "Analysis a.html: 1 table, 0 figures, 1 note"
    judged = Judged(Path("judged"), {"dialogues": 3, "dialogues_judged": 2})
    assert repr(judged) == "Judged judged: 2 of 3 dialogues"


def test_a_printed_run_counts_its_notes(example):
    rows = fastscore.scan(str(example.logs), LEXICAL).collect()
    run = fastscore.score(rows, LEXICAL)
    assert not run.notes
    assert "notes" not in repr(run)
    noted = replace(run, manifest=replace(run.manifest, notes=("one", "two")))
    assert "rejects: 0, notes: 2\n" in repr(noted)


def test_runs_that_are_named_are_a_dict_alone(both):
    for runs in ([{}], [{"a": both[0]}, both[1]], [{"a": both[0]}], [{"a": both[0], "b": 5}]):
        with pytest.raises(fastscore.FastscoreError):
            fastscore.compare(*runs)


def test_vectors_that_are_not_finite_are_named():
    embedder = FunctionEmbedder(lambda texts: np.full((len(texts), 3), np.nan))
    with pytest.raises(fastscore.FastscoreError, match="NaN or an infinity in it"):
        embedder.encode(["tea"])
    with pytest.raises(fastscore.FastscoreError, match=r"one text \('tea'\): expected a list"):
        embedder.encode("tea")


def test_a_picture_of_too_few_units_promises_no_interval(example):
    pytest.importorskip("matplotlib")
    rows = fastscore.scan(str(example.logs), LEXICAL).collect()
    of_one = pl.col("dialogue_uid") == rows["dialogue_uid"][0]
    for run, words in (
        (fastscore.score(rows, LEXICAL), "95 % confidence interval"),
        (fastscore.score(rows.filter(of_one), LEXICAL), "too few units for an interval"),
    ):
        (axis,) = run.plot(METRIC, by="miner_uid").axes
        assert axis.get_xlabel() == f"mean of {METRIC}, {words}"


def test_a_printed_run_says_why_a_part_has_no_interval(tmp_path):
    logs = fastscore.example("guest_simulation", tmp_path / "example").logs
    run = fastscore.score(logs, "guest_simulation", sample=4)
    levels = run.tables["dialogues"]["experiment_level"]
    assert levels.n_unique() > 1
    parts = [line for line in repr(run).splitlines() if "experiment_level" in line and "0." in line]
    assert parts
    assert all("[< 3 test_case]" in line for line in parts)


def test_tables_of_a_document_are_those_of_the_command_line(both, tmp_path):
    stored, held = both
    written = CliRunner().invoke(
        cli, ["summary", str(stored.path), "--by=miner_uid", "--metric", METRIC, "--format=latex"]
    )
    for run in (stored.path, held):
        assert fastscore.table(run, by="miner_uid", metrics=[METRIC]) == written.stdout
    assert r"\toprule" in written.stdout
    guests = fastscore.example("guest_simulation", tmp_path)
    shown = fastscore.table(fastscore.score(guests.logs, guests.suite), metrics=["DEI"])
    assert shown.count("DEI, experiment\\_level") == 4  # no mean is over all levels
    compared = fastscore.compare(stored, by="miner_uid")
    written = CliRunner().invoke(
        cli, ["compare", str(stored.path), "--by=miner_uid", "--format=markdown"]
    )
    assert fastscore.table(compared, "markdown") == written.stdout
    with pytest.raises(UsageError, match="of a run, and a comparison is given"):
        fastscore.table(compared, by="miner_uid")
    # fewer rows, the same p-values and family
    one = fastscore.table(compared, "markdown", metrics=["U_best"]).splitlines()
    (row,) = [line for line in one if line.startswith("| U\\_best |") and "\\[-" in line]
    assert row[: row.index("| worse")] in written.stdout
    assert METRIC.replace("_", r"\_") not in "".join(one)
    with pytest.raises(UsageError, match="Did you mean 'U_best'"):
        fastscore.table(compared, metrics=["u_best"])
