"""The command, the files that it leaves, and the page."""

import random
import re
import shutil
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from unittest import mock

import polars as pl
import pytest

import fastscore
from benchmarks.preference_shift_logs import KINDS, read_source, write_jsonl
from fastscore.errors import InputError, RunConflictError, UsageError
from fastscore.results.analyse import analyse
from fastscore.suites.preference_shift import analysis
from fastscore.suites.preference_shift.analysis import figures as drawing
from fastscore.suites.preference_shift.analysis.figures import (
    COLOURS,
    HATCHES,
    LINES,
    MARKERS,
    MODELS_SHOWN,
)
from fastscore.suites.svg import svg_of
from tests.conftest import NIGHTLY, fastscore_command, fastscore_process, often
from tests.results import test_report_in_a_browser as reports

browser = reports.browser

FIGURES = {"ablations", "distributions", "judge", "radar", "recovery", "timelines"}
TABLES = {
    "ablations", "components", "construct_validity", "convergent_validity", "judge_rejects",
    "top_concepts", "weight_grid", "window_sweep",
}  # fmt: skip

LONG_NAMES = (
    "meta-llama/Meta-Llama-3.1-70B-Instruct",
    "anthropic/claude-3-5-sonnet-20241022",
    "mistralai/Mixtral-8x22B-Instruct-v0.1",
    "openai/gpt-4o-2024-08-06",
    "Qwen/Qwen2.5-72B-Instruct",
    "google/gemini-1.5-pro-002",
)
MODEL = LONG_NAMES[0]


def score(folder, kind, names=()):
    """Score logs of a kind; under these names each of its models stands, again and again."""
    dialogues, movies = read_source()
    rows = list(KINDS[kind](dialogues, movies, random.Random(0)))
    models = sorted({row["model_name"] for row in rows})
    rows = [
        row | {"model_name": name}
        for place, name in enumerate(names or models)
        for row in rows
        if row["model_name"] == models[place % len(models)]
    ]
    write_jsonl(folder / "catalogue.jsonl", movies)
    write_jsonl(folder / f"{kind}.jsonl", rows)
    fastscore.score(
        folder / f"{kind}.jsonl",
        fastscore.PreferenceShift(catalogue=str(folder / "catalogue.jsonl"), segments="metadata"),
        output=folder / f"{kind}_run",
        embedder=None,
    )
    return folder / f"{kind}_run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return score(tmp_path_factory.mktemp("models"), "models", LONG_NAMES)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Return a run of two models, which is analysed in a third of the time."""
    return score(tmp_path_factory.mktemp("few"), "models", LONG_NAMES[:2])


@pytest.fixture(scope="module")
def drawn(run):
    """Return what the analysis of six models leaves, and the figures as they were drawn."""
    figures = []

    def draw(figure):
        figures.append(figure)
        return svg_of(figure)

    with warnings.catch_warnings(), mock.patch.object(drawing, "svg_of", draw):
        warnings.simplefilter("error")  # a layout that collapses is a warning
        return analyse(run), figures


@pytest.fixture(scope="module")
def folder(drawn):
    return drawn[0].page.parent


def files_of(folder):
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_the_exact_files_that_an_analysis_leaves(run, folder):
    assert folder == run.with_name(f"{run.name}-analysis")
    assert set(files_of(folder)) == {
        "analysis.html",
        *(f"figures/{name}.svg" for name in FIGURES),
        *(f"tables/{name}.{suffix}" for name in TABLES for suffix in ("csv", "parquet")),
    }
    assert not (run / "figures").exists()


def analyse_again(run, folder, again):
    """Check that the command, in a process of its own, leaves the same bytes."""
    done = fastscore_process(["analyse", run, "-o", again])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{again / 'analysis.html'}\n"
    assert files_of(again) == files_of(folder)


@pytest.mark.skipif(not NIGHTLY, reason="a smaller run is analysed again by day")
def test_the_command_gives_the_same_bytes_again(run, folder, tmp_path):
    analyse_again(run, folder, tmp_path / "again")


def test_the_page_stands_alone_and_every_figure_is_described(folder):
    page = (folder / "analysis.html").read_text()
    outside = re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)[^)]*\)|@import|<script', page)
    assert outside == ["<script"]  # the page's own: its policy knows no other
    assert "default-src 'none'" in page
    assert "script-src 'sha256-" in page
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for link in re.findall(r'href="#([^"]+)"', page):
        assert link in ids, link
    assert page.count('role="img" aria-label="') == len(FIGURES)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == len(FIGURES)
    assert all(re.search(r"\d", caption) and "null" in caption for caption in captions)
    assert "nan" not in re.sub(r"<(svg|script).*?</\1>", "", page, flags=re.S).lower()


def test_six_long_names_leave_room_for_what_is_drawn(drawn):
    figures = drawn[-1]
    wide = 0
    for figure in figures:
        whole = figure.bbox
        for legend in figure.legends:
            box = legend.get_window_extent()
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1
            assert box.y1 <= whole.y1
        seen = [text.get_text().replace("\n", "") for one in figure.legends for text in one.texts]
        wide += set(seen) == set(LONG_NAMES)
        shares = [axis.get_position() for axis in figure.axes if axis.get_visible()]
        inches = [(box.width * 7.2, box.height * figure.get_figheight()) for box in shares]
        assert min(width for width, _ in inches) > 1.4
        assert min(height for _, height in inches) > 0.6
    assert wide == 4  # radar, recovery, ablations, judge
    boxes = figures[0]
    named = [axis.yaxis.get_tick_params()["labelleft"] for axis in boxes.axes]
    assert named == [True, False, True, False]
    names = [label.get_text().replace("\n", "") for label in boxes.axes[0].get_yticklabels()]
    assert names == [f"{name} (16)" for name in sorted(LONG_NAMES)]


def test_the_page_opens_with_findings_and_a_table_of_models_and_ends_with_the_signature(
    run, drawn, browser
):
    made, _ = drawn
    reports.show(browser, made.page)
    headings = [one.text for one in browser.find_elements("css selector", "h2")]
    assert headings[:2] == ["Findings", "Models by scores"]
    assert headings[-1] == "Signature"
    last = browser.find_elements("css selector", "main p")[-1]
    assert last.text == fastscore.open_run(run).signature
    components = made.tables["components"].filter(group="model", score="tas").sort("mean")
    first = browser.find_element("css selector", "main").text.split("\n")
    highest = next(line for line in first if line.startswith("Mean TAS is highest for"))
    assert components["value"][-1] in highest
    table = browser.find_element("css selector", "table.listing")
    head = table.find_elements("css selector", "thead th")[2]
    assert head.text.startswith("TAS")
    button = head.find_element("css selector", "button")
    button.send_keys("\ue007")
    assert head.get_attribute("aria-sort") == "ascending"
    names = [one.text for one in table.find_elements("css selector", "tbody td:first-child")]
    means = dict(components.select("value", pl.col("mean").round(3)).iter_rows())
    assert [means[name] for name in names] == sorted(means.values())
    # contents beside the text, whose width is used
    contents, text = (browser.find_element("css selector", one).rect for one in ("nav", "main"))
    assert contents["x"] + contents["width"] <= text["x"]
    assert text["width"] >= 1_050
    assert table.rect["width"] <= text["width"]


def test_figures_are_whole_documents(folder):
    for name in FIGURES:
        root = ET.fromstring((folder / "figures" / f"{name}.svg").read_bytes())
        assert root.tag.endswith("svg")
        assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(7.2 * 72)


def test_tables_carry_the_signature_and_no_nan(run, folder):
    for name in TABLES:
        path = folder / "tables" / f"{name}.parquet"
        assert (
            pl.read_parquet_metadata(path)["fastscore.signature"]
            == fastscore.open_run(run).signature
        )
        frame = pl.read_parquet(path)
        floats = frame.select(pl.selectors.float().is_nan().any())
        assert not any(floats.row(0)) if floats.width else True
        csv = pl.read_csv(folder / "tables" / f"{name}.csv", infer_schema_length=None)
        assert csv.columns == frame.columns
        assert csv.height == frame.height


def test_no_two_models_look_alike_even_in_grey():
    for part in (COLOURS, MARKERS, LINES, HATCHES):
        assert len({*map(str, part)}) == len(part) == MODELS_SHOWN


def test_without_shifts_or_a_judge_the_page_says_so(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "out")
    assert (tmp_path / "out" / "figures" / "judge.svg").exists()
    plain = score(tmp_path, "plain")
    made = analyse(plain, tmp_path / "out")
    assert set(made.figures) == {"ablations", "distributions", "radar"}
    assert made.page.read_text().count("Nothing to draw here") == 3
    # figures of an earlier analysis in the same folder are not left behind
    assert files_of(made.page.parent).keys() == {
        *(f"figures/{name}.svg" for name in made.figures),
        *(f"tables/{name}.{suffix}" for name in TABLES for suffix in ("csv", "parquet")),
        "analysis.html",
    }
    analyse_again(plain, made.page.parent, tmp_path / "again")


@pytest.fixture
def no_figures(monkeypatch):
    """Draw nothing, which takes seconds, where tables and notes are the subject."""
    monkeypatch.setattr(analysis, "draw_figures", lambda *_, **__: [])


@pytest.mark.usefixtures("no_figures")
def test_a_judges_file_is_joined_and_what_it_cannot_say_is_listed(few, tmp_path):
    judge = tmp_path / "judge.csv"
    judge.write_text(f"session_id,model,coherence\n00000,{MODEL},7\n00001,{MODEL},4\nx,{MODEL},3\n")
    done = fastscore_command(["analyse", few, "-o", tmp_path / "out", "--judge", judge])
    assert done.returncode == 0, done.stderr
    assert "Note: 2 judge values refused, the first " in done.stderr
    rejects = pl.read_csv(tmp_path / "out" / "tables" / "judge_rejects.csv")
    assert rejects["line"].sort().to_list() == [2, 4]


@pytest.mark.usefixtures("no_figures")
def test_a_catalogue_that_changed_is_not_used(few, tmp_path):
    catalogue = Path(fastscore.open_run(few).manifest.options["catalogue"])
    content = catalogue.read_bytes()
    try:
        catalogue.write_bytes(content + b'{"name": "new"}\n')
        made = analyse(few, tmp_path / "out")
    finally:
        catalogue.write_bytes(content)
    assert [note for note in made.notes if "not the catalogue" in note]
    table = made.tables["construct_validity"]
    across = table.filter(pl.col("first") == "within")
    assert across["reason"].unique().to_list() == ["missing_input"]


def test_what_cannot_be_analysed_is_refused(run, tmp_path):
    with pytest.raises(UsageError, match="no run there"):
        analyse(tmp_path)
    with pytest.raises(UsageError, match="judge_scale"):
        analyse(run, judge_scale=(5, 1))
    with pytest.raises(UsageError, match="no label column 'modell'"):
        analyse(run, tmp_path / "o", cluster="modell")
    shutil.copytree(run, tmp_path / "other_run")
    for folder in (run, tmp_path / "other_run"):
        with pytest.raises(
            RunConflictError, match="holds a run, and an analysis would overwrite it"
        ):
            analyse(run, folder)
        assert not (folder / "tables").exists()
    judge = tmp_path / "judge.csv"
    judge.write_text(f"session_id,model,tone\n00000,{MODEL},4\n")
    with pytest.raises(
        UsageError, match=r"csv: no column 'tones', which judge_columns names\. Columns: session_id"
    ):
        analyse(run, tmp_path / "o", judge=judge, judge_columns=["tone", "tones"])
    with pytest.raises(InputError, match=r"no score was found\. .* not read: tone \('4'\)"):
        analyse(run, tmp_path / "o", judge=judge)
    with pytest.raises(UsageError, match="judge_columns names tone, but there is no judge's file"):
        analyse(run, tmp_path / "o", judge_columns=["tone"])
    missing = fastscore_command(
        ["analyse", run, "-o", tmp_path / "o", "--judge", tmp_path / "no.csv"]
    )
    assert missing.returncode == 3
    assert "No such file" in missing.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.usefixtures("no_figures")
def test_units_are_the_values_of_a_column(few, tmp_path):
    done = fastscore_command(["analyse", few, "-o", tmp_path / "out", "--cluster", "model"])
    assert done.returncode == 0, done.stderr
    components = pl.read_csv(tmp_path / "out" / "tables" / "components.csv")
    whole = components.filter(group="all", score="tas")
    models = fastscore.open_run(few).scan("dialogues").select("model").collect()
    assert whole["n_units"].item() == models["model"].n_unique()
    page = (tmp_path / "out" / "analysis.html").read_text()
    assert "the value of column model: " in page


@pytest.mark.parametrize(("width", "dark"), [(390, True), (800, False)][: often(1, 2)])
def test_the_page_fits_every_width_in_light_and_dark(width, dark, folder, browser):
    reports.show(browser, folder / "analysis.html", width=width, dark=dark)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert reports.violations(browser) == "[]"
    background, ink = browser.execute_script(
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    lighter = max((background, ink), key=lambda colour: int(re.findall(r"\d+", colour)[0]))
    assert (lighter == ink) == dark
