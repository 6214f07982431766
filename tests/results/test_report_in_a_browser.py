"""Reports in a browser: nothing fails or is asked for, all is reached, hostile texts do nothing."""

import json
import shutil
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import fastscore
from fastscore.results.analyse import analyse
from tests.conftest import NIGHTLY, often
from tests.results.conftest import ATTACK, SECOND, SUITES
from tests.results.pages import Page

PAGES = [*SUITES, *(f"{suite}/{SECOND}" for suite in SUITES if NIGHTLY)]
"""One run of a suite, and by night two side by side; by day reports of six runs are tried."""
WIDTHS = (400, 1_400)
LOOKS = [
    (suite, width, width == min(WIDTHS))
    for place, suite in enumerate(PAGES)
    for width in (WIDTHS if NIGHTLY else WIDTHS[place % 2 :][:1])
]
"""Pages, their width and whether they are dark; by day each page has one look, by turns."""
EVERY_WIDTH = [
    (width, dark)
    for place, width in enumerate((390, 800, 1_400))
    for dark in (False, True)
    if NIGHTLY or dark == bool(place % 2)
]
"""Widths, and whether it is dark there; by day one look for each width, by turns."""
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a headless browser where there is one: see `make browser`."""
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
    browser: Any,
    path: Path,
    anchor: str = "",
    *,
    width: int = 1_400,
    dark: bool = False,
    media: str = "",
) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 1_000, "deviceScaleFactor": 1, "mobile": False},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(f"{path.as_uri()}{anchor}")


def violations(browser: Any) -> str:
    """Return what axe finds of accessibility in the first elements of each kind, as JSON."""
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
    return str(found["result"].get("value", found))


def requests(browser: Any) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize(("suite", "width", "dark"), LOOKS)
def test_the_page_asks_for_nothing_fits_and_has_no_accessibility_violation(
    suite: str, width: int, dark: bool, pages: Mapping[str, Path], browser: Any
) -> None:
    show(browser, pages[suite], width=width, dark=dark)
    assert browser.get_log("browser") == []
    assert requests(browser) == [pages[suite].as_uri()]
    browser.execute_script(
        "document.querySelectorAll('details').forEach(function (d, k) { d.open = k % 7 === 0 })"
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert violations(browser) == "[]"


def test_tables_are_sorted_and_searched_by_keyboard(
    pages: Mapping[str, Path], browser: Any
) -> None:
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
    show(browser, path, "#dialogue=100%", width=1_200)
    assert browser.get_log("browser") == []
    # the verdicts are seen without scrolling
    box = browser.find_element(By.CSS_SELECTOR, ":has(> #table-metrics)")
    assert box.get_property("scrollWidth") <= box.get_property("clientWidth")


def test_a_dialogue_is_found_by_its_whole_name(pages: Mapping[str, Path], browser: Any) -> None:
    show(browser, pages["guest_simulation"])
    rows = browser.find_elements(By.CSS_SELECTOR, "#table-dialogues-1 tbody tr")
    name = rows[2].get_attribute("data-name")
    browser.find_element(By.ID, "find-dialogues-1").send_keys(name)
    assert [row.get_attribute("data-name") for row in rows if row.is_displayed()] == [name]


@pytest.mark.parametrize("suite", SUITES)
def test_hostile_logs_of_every_suite_do_nothing_beside_another_run(
    suite: str, pages: Mapping[str, Path], browser: Any
) -> None:
    path = pages[f"{suite}/{SECOND}"]
    text = path.read_text(encoding="utf-8")
    assert escape(ATTACK) in text
    assert ATTACK not in text
    show(browser, path, width=WIDTHS[0])
    assert browser.execute_script("return window.hit") is None
    assert browser.get_log("browser") == []
    assert requests(browser) == [path.as_uri()]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= WIDTHS[0]


@pytest.mark.parametrize(("width", "dark"), EVERY_WIDTH)
def test_pages_of_six_runs_fit_every_width(
    width: int, dark: bool, six: tuple[Path, Path], browser: Any
) -> None:
    for page in six:
        show(browser, page, width=width, dark=dark)
        assert browser.get_log("browser") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        if width == 1_400:  # no table has to be scrolled
            script = "return [...document.querySelectorAll('.matrix')].map(t => [t, t.parentNode])"
            pairs = browser.execute_script(script)
            assert all(table.rect["width"] <= box.rect["width"] for table, box in pairs)
        assert violations(browser) == "[]"


def test_hostile_models_do_nothing_on_the_page_of_an_analysis(browser: Any, tmp_path: Path) -> None:
    fastscore.example("preference_shift", tmp_path / "example")
    log = tmp_path / "example" / "logs" / "conversations.jsonl"
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for row in rows:
        row["model_name"] += ATTACK
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    catalogue = str(tmp_path / "example" / "catalogue.jsonl")
    options = fastscore.PreferenceShift(catalogue=catalogue, segments="metadata")
    run = fastscore.score(log, options, output=tmp_path / "run", embedder=None)
    path = analyse(run, tmp_path / "analysis").page
    text = path.read_text(encoding="utf-8")
    assert escape(ATTACK) in text
    assert ATTACK not in text
    show(browser, path, width=WIDTHS[0])
    assert browser.execute_script("return window.hit") is None
    assert browser.get_log("browser") == []
    assert requests(browser) == [path.as_uri()]
