"""The report: what stands in the page, and how it behaves in a browser."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

import fastscore
from fastscore.errors import RunError, UsageError
from fastscore.results.dialogues import Dialogues
from fastscore.results.findings import GROUP_DIFFERENCES, find
from fastscore.results.report.charts import Charts, shortened
from fastscore.results.report.dialogues import _common_start
from fastscore.results.report.marked import LONGEST_TEXT, marked
from fastscore.results.report.write import write_report
from fastscore.results.runs import Run, open_run
from fastscore.suites.showing import Mark
from tests.conftest import often
from tests.results.conftest import ATTACK, SECOND, SUITES
from tests.results.conftest import HOSTILE as ATTACKED

HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>\"'>"
LARGEST = 5_000_000
WIDTHS = (400, 1_400)
ALIKE = often(8, 1_000_000)
"""How many elements of one kind in one place are tried for accessibility: by day the first ones."""
LEAVE_OUT_ELEMENTS_ALIKE = """
document.querySelectorAll('details:not([open])').forEach(function (closed) {
  closed.replaceChildren(closed.querySelector('summary'))
})
const most = arguments[0]
document.querySelectorAll('*').forEach(function (parent) {
  const seen = {}
  Array.from(parent.children).forEach(function (child) {
    const kind = child.tagName + '.' + child.getAttribute('class')
    seen[kind] = (seen[kind] || 0) + 1
    if (seen[kind] > most) child.remove()
  })
})
"""
PAGES = [*SUITES, *(f"{suite}/{SECOND}" for suite in SUITES)]
"""One run of a suite, and two side by side."""


class Page(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


class _Pages(Mapping[str, Path]):
    """Reports of the suites, and of two runs of each, written when they are first asked for."""

    def __init__(self, runs: Mapping[str, Run], folder: Path) -> None:
        self._runs = runs
        self._folder = folder

    def __getitem__(self, suite: str) -> Path:
        path = self._folder / f"{suite.replace('/', '-')}.html"
        if path.exists():
            return path
        base, _, other = suite.partition("/")
        return write_report([self._runs[one] for one in (base, suite)[: 2 if other else 1]], path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


@pytest.fixture(scope="session")
def pages(
    suite_runs: Mapping[str, Run], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Path]:
    return _Pages(suite_runs, tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of score_dialogue whose every text tries to leave its element."""
    folder = tmp_path_factory.mktemp("hostile")
    rows: list[dict[str, Any]] = []
    for dialogue in ("one", "two"):
        name = {"dialogue_uid": f"{dialogue}{HOSTILE}", "miner_uid": f"{dialogue}{HOSTILE}"}
        for step, text in enumerate((HOSTILE, f"{HOSTILE} again")):
            rows.append(
                {**name, "event": "predicted", "utterance_index": 0, "step": step}
                | {"prediction": text}
            )
        rows.append(
            {**name, "event": "utterance_complete", "utterance_index": 0, "ground_truth": HOSTILE}
        )
    log = folder / "log.jsonl"
    bad = '{"event": "predicted<script>window.hit=1</script>'
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + f"{bad}\n")
    return fastscore.score(
        log, "score_dialogue", output=folder / "run", lex_weight=1.0, max_rejects=0.5
    )


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
    for finding in find(suite_runs[suite]):
        assert finding.text in words
    for metric in set(suite_runs[suite].summary["metric"]) & {
        metric.id for metric in fastscore_metrics(suite)
    }:
        assert f"metric-{metric}" in ids
    links = [anchor["href"] or "" for anchor in page.of("a")]
    dialogues = {one["data-dialogue"] for one in page.of("details") if "data-dialogue" in one}
    assert dialogues
    for link in links:
        if link.startswith("#dialogue="):
            assert link.removeprefix("#dialogue=") in {quote(name or "") for name in dialogues}
        else:
            assert link.removeprefix("#") in ids


def fastscore_metrics(suite: str) -> Sequence[Any]:
    from fastscore.suites.registry import load_suite

    return load_suite(suite).metrics


def test_texts_of_logs_are_never_markup(hostile: Run, tmp_path: Path) -> None:
    page = Page(write_report([hostile, hostile], tmp_path / "page.html").read_text())
    assert len(page.of("script")) == 1
    assert not page.of("img")
    assert all("onerror" not in attributes for _, attributes in page.elements)
    assert HOSTILE in "".join(page.words)
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
    rows = [("a", 0.0, 0.0, 0.0), ("b", 0.0, None, None)]
    ends = texts_of(Charts().intervals(rows, "means", minimum=0.0, maximum=1.0))
    assert (ends[0], ends[-3]) == ("0.0", "1.0")


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("dialogue", 8) == "dialogue"
    assert shortened("dialogue_of_guest_17", 9) == "dial…t_17"


def test_two_runs_stand_side_by_side(suite_runs: Mapping[str, Run], tmp_path: Path) -> None:
    run = suite_runs["guest_simulation"]
    copy = tmp_path / "other"
    shutil.copytree(run.path, copy)
    text = write_report([run, copy], tmp_path / "page.html").read_text()
    assert "other against run-3" in text
    assert "in the mean of every metric" in text


def test_runs_of_two_suites_are_refused(suite_runs: Mapping[str, Run], tmp_path: Path) -> None:
    runs = [suite_runs["guest_simulation"], suite_runs["memory_finance"]]
    with pytest.raises(UsageError, match="a report is about one suite"):
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
        names = Dialogues(suite_runs[suite]).names["name"]
        prefix = _common_start(names)
        assert names.str.starts_with(prefix).all()
        short = [shortened(name, 48, prefix) for name in names]
        assert all(len(name) <= 48 for name in short)
        assert suite == "score_dialogue" or len(set(short)) == len(set(names))


def test_logs_that_are_gone_cost_the_texts_alone(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    run = suite_runs["guest_simulation"]
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    assert manifest["inputs"]
    log = Path(manifest["inputs"][0]["name"])
    moved = log.rename(log.with_name("moved-away"))
    try:
        text = write_report([copy], tmp_path / "page.html").read_text()
    finally:
        moved.rename(log)
    assert "The texts of dialogues are not shown." in text
    assert "the log is no longer there" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a headless browser where there is one: see `make browser`."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium with chromedriver: run `make browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(service=Service(driver), options=options)
    yield opened
    opened.quit()


def show(
    browser: Any, path: Path, anchor: str = "", *, width: int = 1_400, dark: bool = False
) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 1_000, "deviceScaleFactor": 1, "mobile": False},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(f"{path.as_uri()}{anchor}")


def requests(browser: Any) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("suite", PAGES)
def test_in_a_browser_nothing_fails_or_is_asked_for(
    suite: str, pages: Mapping[str, Path], browser: Any
) -> None:
    show(browser, pages[suite])
    assert browser.get_log("browser") == []
    assert requests(browser) == [pages[suite].as_uri()]


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1_400, False)])
@pytest.mark.parametrize("suite", PAGES)
def test_the_page_fits_and_has_no_accessibility_violation(
    suite: str, width: int, dark: bool, pages: Mapping[str, Path], browser: Any
) -> None:
    show(browser, pages[suite], width=width, dark=dark)
    browser.execute_script(
        "document.querySelectorAll('details').forEach(function (d, k) { d.open = k % 7 === 0 })"
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_script(LEAVE_OUT_ELEMENTS_ALIKE, ALIKE)
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    found = browser.execute_cdp_cmd(
        "Runtime.evaluate",
        {
            "expression": f"{axe}; axe.run(document, {{resultTypes: ['violations']}})"
            ".then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.length,"
            " v.nodes[0].html, v.nodes[0].failureSummary])))",
            "awaitPromise": True,
        },
    )
    assert found["result"].get("value") == "[]", found["result"]


def test_tables_are_sorted_and_searched_by_keyboard(
    pages: Mapping[str, Path], browser: Any
) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, pages["group_travel"])
    table = browser.find_element(By.ID, "table-metrics")
    head = table.find_elements(By.CSS_SELECTOR, "thead th")[2]

    def values() -> list[float]:
        cells = table.find_elements(By.CSS_SELECTOR, "tbody tr td:nth-child(3)")
        found = [cell.get_attribute("data-value") for cell in cells]
        return [float(value) for value in found if value]

    head.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(values())
    head.find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    assert head.get_attribute("aria-sort") == "descending"
    assert values() == sorted(values(), reverse=True)
    box = browser.find_element(By.ID, "find-metrics")
    box.send_keys("serendip")
    shown = [row for row in table.find_elements(By.CSS_SELECTOR, "tbody tr") if row.is_displayed()]
    assert len(shown) == 1
    assert "1 of" in browser.find_element(By.CSS_SELECTOR, ".find [role=status]").text


def test_links_open_a_dialogue(pages: Mapping[str, Path], browser: Any) -> None:
    from selenium.webdriver.common.by import By

    page = Page(pages["guest_simulation"].read_text(encoding="utf-8"))
    name = next(one["data-dialogue"] for one in page.of("details") if "data-dialogue" in one)
    assert name is not None
    show(browser, pages["guest_simulation"], f"#dialogue={quote(name)}")
    opened = browser.find_elements(By.CSS_SELECTOR, "details.dialogue[open]")
    assert [one.get_attribute("data-dialogue") for one in opened] == [name]
    assert browser.execute_script("return document.activeElement.tagName") == "SUMMARY"
    assert 0 <= opened[0].rect["y"] - browser.execute_script("return scrollY") < 400


def test_of_two_runs_a_link_opens_the_dialogue_of_its_own(
    pages: Mapping[str, Path], browser: Any
) -> None:
    from selenium.webdriver.common.by import By

    path = pages[f"guest_simulation/{SECOND}"]
    page = Page(path.read_text(encoding="utf-8"))
    shown = [
        (one["data-dialogue"], one["data-run"]) for one in page.of("details") if "data-run" in one
    ]
    runs = list(dict.fromkeys(run for _, run in shown))
    name = next(name for name, run in shown if run == runs[1] and (name, runs[0]) in shown)
    for run in runs:
        link = f"#dialogue={quote(name)}&run={quote(run)}"
        assert any(one.get("href") == link for one in page.of("a"))
        show(browser, path, link)
        (opened,) = browser.find_elements(By.CSS_SELECTOR, "details.dialogue[open]")
        assert opened.get_attribute("data-run") == run
    show(browser, path, "#dialogue=100%")
    assert browser.get_log("browser") == []


def test_a_dialogue_is_found_by_its_whole_name(pages: Mapping[str, Path], browser: Any) -> None:
    from selenium.webdriver.common.by import By

    show(browser, pages["guest_simulation"])
    rows = browser.find_elements(By.CSS_SELECTOR, "#table-dialogues-1 tbody tr")
    name = rows[2].get_attribute("data-name")
    browser.find_element(By.ID, "find-dialogues-1").send_keys(name)
    assert [row.get_attribute("data-name") for row in rows if row.is_displayed()] == [name]


def test_hostile_texts_do_nothing_in_a_browser(hostile: Run, browser: Any, tmp_path: Path) -> None:
    path = write_report([hostile], tmp_path / "page.html")
    for width in WIDTHS:
        show(browser, path, width=width)
        assert browser.execute_script("return window.hit") is None
        assert browser.get_log("browser") == []
        assert requests(browser) == [path.as_uri()]
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("suite", SUITES)
def test_hostile_logs_of_every_suite_do_nothing_beside_another_run(
    suite: str, pages: Mapping[str, Path], browser: Any
) -> None:
    path = pages[f"{suite}/{ATTACKED}"]
    text = path.read_text(encoding="utf-8")
    assert escape(ATTACK) in text
    assert ATTACK not in text
    show(browser, path, width=WIDTHS[0])
    assert browser.execute_script("return window.hit") is None
    assert browser.get_log("browser") == []
    assert requests(browser) == [path.as_uri()]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= WIDTHS[0]


def test_findings_name_values_of_the_summary(suite_runs: Mapping[str, Run]) -> None:
    for run in suite_runs.values():
        whole = run.summary.filter(pl.col("group") == "all")
        for finding in find(run):
            if finding.kind in ("high", "low"):
                mean = whole.filter(pl.col("metric") == finding.metric)["mean"][0]
                assert f"{mean:.3f}" in finding.text


def test_findings_count_every_group_difference_that_they_do_not_tell(
    suite_runs: Mapping[str, Run],
) -> None:
    found = [one for one in find(suite_runs["preference_shift"]) if one.kind == "groups"]
    told = [one for one in found if one.metric]
    others = [one.text for one in found if not one.metric]
    assert len(others) == (1 if len(told) == GROUP_DIFFERENCES else 0)
    for text in others:
        for part in text.removeprefix("Others that differ ").removesuffix(".").split("; "):
            about, _, ids = part.partition("): ")
            assert int(about.rpartition("(")[2]) == len(ids.split(", "))
    assert others
