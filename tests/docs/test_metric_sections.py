"""Pages of suites contain the suites' declarations."""

import re

import pytest

from docs.metric_sections import PAGES, filled
from fastscore.suites.registry import load_suite
from tests.docs import prose

SUITES = sorted(path.stem for path in PAGES.glob("*.md"))


@pytest.mark.parametrize("name", SUITES)
def test_a_page_has_what_its_suite_declares(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert filled(page, load_suite(name)) == page, "run python docs/metric_sections.py"
    markers = re.findall(r"<!-- begin (\w+) -->", page)
    common = ["columns", "headline", "metrics", "overview", "sources"]
    assert sorted(set(markers) - {"uses"}) == common
    assert len(markers) == len(set(markers)) == page.count("<!-- end -->")


@pytest.mark.parametrize("name", SUITES)
def test_every_metric_has_a_formula_an_example_and_a_reading(name):
    for metric in load_suite(name).metrics:
        assert all((metric.formula.latex, metric.example, metric.reading)), metric.id
        texts = [prose.Text(1, text) for text in (metric.reading, metric.example, metric.note)]
        assert not prose.banned_in(texts), metric.id
        assert not re.search(r"\bsee \[", metric.note), "terminals show no links"
