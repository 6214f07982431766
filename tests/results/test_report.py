"""A report as text: self-contained, with the findings, and no log text as markup."""

import gzip
import json
import re
import shutil
from collections.abc import Mapping
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

import fastscore
from benchmarks import inference
from fastscore import open_run
from fastscore.errors import InputError, RunError, UsageError
from fastscore.results.explaining import Dialogues
from fastscore.results.findings import list_findings, read_headlines
from fastscore.results.report.metrics import Charts, axis_reach, shortened
from fastscore.results.report.write import (
    LONGEST_TEXT,
    _common_start,
    marked,
    readable,
    write_report,
)
from fastscore.results.runs import Run
from fastscore.results.show import show_summary
from fastscore.suites.showing import Mark
from fastscore.suites.summary import overall_rows
from tests.conftest import NIGHTLY, fastscore_command
from tests.results.comparing import guests
from tests.results.conftest import SUITES
from tests.results.pages import BREAKING_OUT, Page

LARGEST = 5_000_000


@pytest.mark.parametrize("suite", SUITES)
def test_the_page_stands_alone_and_says_what_was_found(
    suite: str, pages: Mapping[str, Path], suite_runs: Mapping[str, Run]
) -> None:
    text = pages[suite].read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    page = Page(text)
    assert len(page.of("script")) == 1
    assert not page.of("link")
    assert not page.of("img")
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"@import|url\((?!#)", text)
    policy = next(m for m in page.of("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in (policy["content"] or "")
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    words = " ".join(page.words)
    assert re.search(r"scored on \d{4}-\d\d-\d\d", words)
    assert "Groups are compared in pairs, as by" in words
    for finding in list_findings(read_headlines(suite_runs[suite])):
        # means are in the overview alone
        assert (finding.text in words) == (finding.kind != "mean")
    declared = {metric.id for metric in suite_runs[suite].suite.metrics}
    for metric in declared.intersection(suite_runs[suite].summary["metric"]):
        assert f"metric-{metric}" in ids
    links = [anchor["href"] or "" for anchor in page.of("a")]
    dialogues = {one["data-dialogue"] for one in page.of("details") if "data-dialogue" in one}
    assert dialogues
    for link in links:
        if link.startswith("#dialogue="):
            assert link.removeprefix("#dialogue=") in {quote(name or "") for name in dialogues}
        else:
            assert link.removeprefix("#") in ids


def spoken_texts(value: Any) -> list[str]:
    """All texts of a parsed log that are more than a word or two."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in spoken_texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in spoken_texts(each)]
    return [value] if isinstance(value, str) and len(value) > 30 and value.count(" ") > 3 else []


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("suite", SUITES if NIGHTLY else ("guest_simulation", "memory_finance"))
def test_a_page_without_texts_has_none(
    suite: str, suite_runs: Mapping[str, Run], pages: Mapping[str, Path], tmp_path: Path
) -> None:
    run = suite_runs[suite]
    said: list[str] = []
    for about in run.manifest.inputs:
        path = Path(about["name"])
        if path.suffix == ".csv":
            said += spoken_texts(pl.read_csv(path, infer_schema=False).rows(named=True))
        else:
            content = path.read_bytes()
            packed = content.startswith(b"\x1f\x8b")
            lines = (gzip.decompress(content) if packed else content).decode().splitlines()
            said += [text for line in lines for text in spoken_texts(json.loads(line))]
    with_texts = " ".join(Page(pages[suite].read_text(encoding="utf-8")).words)
    assert sum(text in with_texts for text in said) > 3
    text = write_report([run], tmp_path / "page.html", texts=False).read_text(encoding="utf-8")
    words = " ".join(Page(text).words)
    assert not [text for text in said if text in words]
    assert "Texts of dialogues are left out" in words
    assert not re.search(r"#dialogue=\w", text.split("<script")[0])


@pytest.mark.usefixtures("undrawn")
def test_rejected_lines_of_a_page_without_texts_are_counted_alone(
    hostile: Run, tmp_path: Path
) -> None:
    page = fastscore.report(hostile, output=tmp_path / "page.html", texts=False).read_text()
    assert "predicted&lt;script" not in page
    assert "not_json" in page


ANNABEL, TRICKY = "Annabel Kundin", """O'Neil" in 1; known: 'Peter'; type --x"""


@pytest.mark.usefixtures("undrawn")
def test_notes_of_a_page_without_texts_count_words_of_the_log_alone(tmp_path: Path) -> None:
    """A speaker that the suite does not know may be a customer's name."""
    catalogue = tmp_path / "catalogue.jsonl"
    catalogue.write_text('{"name": "Heat", "genre": "drama"}\n')
    turn = {"speaker": "USER", "text": "A drama?"}, {"speaker": "SYSTEM", "text": "Heat."}
    # a key that tells rows of one name apart, and has a quote in its name
    rows = [
        {"session_id": id, "it's": of, "conversation": [*turn, {"speaker": name, "text": "Bye."}]}
        for id, name in (("1", ANNABEL), ("2", TRICKY))
        for of in ("Ute", "Uwe")
    ]
    options = fastscore.PreferenceShift(catalogue=catalogue, segments="metadata")
    log, folder = tmp_path / "log.jsonl", tmp_path / "Ann's run"
    log.write_text("\n".join(map(json.dumps, rows)))
    run = fastscore.score(log, options, output=folder, embedder=None, max_rejects=1)
    shown = [
        " ".join(Page(write_report([run], tmp_path / "p.html", texts=texts).read_text()).words)
        for texts in (True, False)
    ]
    for name in ("Annabel", "Neil", "Peter", "Ute", "Uwe"):
        assert [name in text for text in shown] == [True, False]
    assert "conversation[].speaker: … in 2, … in 2 of" in shown[1]
    assert "tells rows of one name apart (it is …, …)." in shown[1]
    assert "Each … is a word that is left out" in shown[1]
    assert "a word that is left out" not in shown[0]


def test_spoken_texts_logs_are_never_markup(hostile: Run, tmp_path: Path) -> None:
    page = Page(write_report([hostile, hostile], tmp_path / "page.html").read_text())
    assert len(page.of("script")) == 1
    assert not page.of("img")
    assert all("onerror" not in attributes for _, attributes in page.elements)
    assert BREAKING_OUT in "".join(page.words)
    assert "predicted<script>window.hit=1</script>" in "".join(page.words)


def test_marks_are_cut_to_the_text_and_escape_it() -> None:
    shown = marked("a<b>c", (Mark(1, 4, label='"x'), Mark(3, 99, good=False)))
    assert shown == (
        'a<mark class="good" title="&#34;x">&lt;b&gt;</mark><mark class="bad" title="">c</mark>'
    )
    assert "3 more characters" in marked("x" * (LONGEST_TEXT + 3), ())


def texts_of(drawing: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawing)


def test_axes_count_in_whole_numbers_and_show_the_range_of_a_single_value() -> None:
    counts = texts_of(Charts().histogram([0.0, 1.0, 2.0], [("run", [1, 2])], "values"))
    assert counts[-4:] == ["0", "1", "2", "values"]
    panels = [("", [(0.0, 0.0, 0.0, 5), (0.0, None, None, 1_234)])]
    reach = axis_reach(inference.metric("x"), [pl.Series([0.0])])
    ends = texts_of(Charts().means(["a", "b"], panels, "means", reach=reach))
    assert ends[0] == "0.0"
    assert "1.0" in ends
    assert [end.strip() for end in ends if "n " in end] == ["n 5", "n 1,234"]


def test_names_of_dialogues_are_read_as_they_were_given() -> None:
    name = "00002/model=anthropic%2Fclaude-3-5-sonnet-20241022"
    assert readable(name) == "00002 · model=anthropic/claude-3-5-sonnet-20241022"
    assert len(readable("x" * 200)) == 72


def test_a_title_names_systems_and_date(
    suite_runs: Mapping[str, Run], pages: Mapping[str, Path]
) -> None:
    run = suite_runs["preference_shift"]
    day = date.fromtimestamp((run.folder / "manifest.json").stat().st_mtime).isoformat()
    page = pages["preference_shift"].read_text(encoding="utf-8")
    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert title[1] == f"model echoing, recorded, restating and 1 more: preference_shift, {day}"
    assert f"<h1>{title[1].partition(':')[0]}</h1>" in page


def test_cards_of_metrics_that_are_not_headlines_are_folded(
    suite_runs: Mapping[str, Run], pages: Mapping[str, Path]
) -> None:
    run = suite_runs["preference_shift"]
    text = pages["preference_shift"].read_text(encoding="utf-8")
    metrics = text[text.index('<section id="metrics"') : text.index('<section id="section-1"')]
    shown = re.findall('id="metric-(\\w+)"', metrics[: metrics.index("<details><summary>Other")])
    assert shown == [metric.id for metric in run.suite.metrics if metric.role == "headline"]
    folded = re.findall('id="metric-(\\w+)"', metrics[metrics.index("<details><summary>Other") :])
    whole = overall_rows(run.summary)
    assert set(folded) == set(whole) - set(shown)
    empty = re.findall(
        'id="metric-(\\w+)"', metrics[metrics.index("<details><summary>Without a") :]
    )
    assert set(empty) == {metric for metric, row in whole.items() if not row["n"]}


@pytest.mark.usefixtures("undrawn")
def test_a_run_beside_itself_is_said_to_be_itself(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    run = suite_runs["score_dialogue"]
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    page = write_report([run, copy], tmp_path / "page.html").read_text()
    assert f"copy is the same run as {run.path.name}, or a copy of it" in page
    assert (
        fastscore.compare(run, copy).notes[0]
        == f"{copy} is the same run as {run.path}, or a copy of it"
    )
    second = suite_runs["score_dialogue/second"]
    page = write_report([run, second], tmp_path / "page.html").read_text()
    assert "is the same run" not in page


def test_six_runs_are_one_chart_and_one_matrix(
    suite_runs: Mapping[str, Run], six: tuple[Path, Path]
) -> None:
    run = suite_runs["score_dialogue"]
    text, index = (page.read_text() for page in six)
    matrix = text[text.index('id="table-runs"') : text.index("</table>", text.index("table-runs"))]
    assert matrix.count("<tr>") == 1 + 6
    headlines = [metric for metric in run.suite.metrics if metric.role == "headline"]
    assert matrix.count("<th ") == 1 + len(headlines) + 6
    chart = text[text.index('aria-label="Chart of the runs"') : text.index('id="table-runs"')]
    assert chart.count("<svg") == 1
    # a part of the contents for each section, not for each run
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert contents.count("<a ") == 9
    assert index.count("<svg") == 1
    assert index.count("<table") == 1
    assert index.count("<tr>") == 1 + 6


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["light", "dark", "chosen dark"])
def test_colours_of_the_pages_contrast(place: int) -> None:
    style = (files("fastscore.results.report") / "templates" / "page.css").read_text()
    schemes = re.findall(r"--paper:[^}]*", style)
    assert len(schemes) == 3
    colours = dict(re.findall(r"--([\w-]+):(#\w+)", schemes[place]))

    def contrast(one: str, other: str) -> float:
        lights = sorted((luminance(colours[one]), luminance(colours[other])))
        return (lights[1] + 0.05) / (lights[0] + 0.05)

    texts = [(ink, on) for ink in ("ink", "soft", "link") for on in ("paper", "wash")]
    texts += [("good-ink", "good"), ("bad-ink", "bad"), ("c2", "paper"), ("c3", "paper")]
    assert [pair for pair in texts if contrast(*pair) < 4.5] == []
    lines = [(f"c{number}", "paper") for number in range(1, 7)]
    assert [pair for pair in lines if contrast(*pair) < 3.0] == []


def test_runs_of_two_suites_are_refused(suite_runs: Mapping[str, Run], tmp_path: Path) -> None:
    runs = [suite_runs["guest_simulation"], suite_runs["memory_finance"]]
    with pytest.raises(UsageError, match="Numbers of different suites cannot be compared"):
        write_report(runs, tmp_path / "page.html")


@pytest.mark.parametrize(("folder", "column"), [("rejects", "count"), ("dialogues", "PAS")])
def test_a_run_of_another_version_is_refused(
    folder: str, column: str, suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    copy = tmp_path / "old"
    shutil.copytree(suite_runs["guest_simulation"].path, copy)
    for part in (copy / folder).glob("*.parquet"):
        pl.read_parquet(part).drop(column).write_parquet(part)
    run = open_run(copy, verify=False)
    with pytest.raises(RunError, match=f"no column '{column}': another version of fastscore"):
        write_report([run], tmp_path / "page.html")


def test_names_that_begin_alike_are_told_apart_in_a_page(
    suite_runs: Mapping[str, Run], pages: Mapping[str, Path]
) -> None:
    long = "a_long_name_that_all_guests_of_a_log_have_before_theirs_"
    assert shortened(f"{long}Ada@1", 48, long) == "…Ada@1"
    assert shortened("short", 48, long) == "short"
    assert len(shortened(f"{long}{'x' * 80}", 48, long)) == 48
    for suite in SUITES:
        names = Dialogues(suite_runs[suite]).names
        prefix = _common_start(names)
        assert names.str.starts_with(prefix).all()
        short = [shortened(name, 48, prefix) for name in names]
        assert all(len(name) <= 48 for name in short)
        assert suite == "score_dialogue" or len(set(short)) == len(set(names))


@pytest.mark.usefixtures("undrawn")
def test_logs_that_are_gone_cost_the_texts_alone(tmp_path: Path) -> None:
    run = guests(tmp_path, "one", ("c", 3, [1.0]), ("d", 5, [0.0]))
    Path(run.manifest.inputs[0]["name"]).unlink()
    text = write_report([run], tmp_path / "page.html").read_text()
    assert "The texts of dialogues are not shown." in text
    assert "the log is no longer there" in text
    listed = fastscore_command(["runs", str(tmp_path), "-o", str(tmp_path / "runs.html")])
    assert listed.stderr.startswith("Note: The texts of dialogues are not shown.")


@pytest.mark.usefixtures("undrawn")
def test_runs_of_different_signatures_are_not_called_better(tmp_path: Path) -> None:
    turns = [
        {"dialogue_uid": str(number), "event": event, "utterance_index": 0, "step": 0, **text}
        for number in range(6)
        for event, text in (
            ("predicted", {"prediction": "hello" + number * "x"}),
            ("utterance_complete", {"ground_truth": "hello world"}),
        )
    ]
    runs = [
        fastscore.score(
            turns, fastscore.ScoreDialogue(lex_weight=1.0, max_text=most), output=tmp_path / name
        )
        for name, most in (("one", 1000), ("two", 900))
    ]
    page = write_report(runs, tmp_path / "report.html").read_text()
    assert "have different signatures, so no side is called better: max_text is 1000 in" in page
    assert not re.search('class="(better|worse|higher|lower)"', page)


@pytest.mark.usefixtures("undrawn")
def test_a_run_in_which_nothing_was_scored_has_a_page_with_its_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"dialogue_uid": "d", "miner_uid": "7"}
    rows = [
        {**named, "event": "predicted", "utterance_index": 0, "step": 0, "prediction": "tea"},
        {**named, "event": "utterance_complete", "utterance_index": 1, "ground_truth": "tea"},
    ]
    log = tmp_path / "log.jsonl"
    pl.DataFrame(rows).write_ndjson(log)
    folder = tmp_path / "run"
    with pytest.raises(InputError, match="Nothing was scored"):
        fastscore.score(log, fastscore.ScoreDialogue(lex_weight=1.0), output=folder)
    page = tmp_path / "page.html"
    write_report([open_run(folder)], page)
    noted = "1 utterance has no utterance_complete and so no score"
    assert noted in page.read_text(encoding="utf-8")
    show_summary(open_run(folder))
    assert noted in " ".join(capsys.readouterr().out.split())
