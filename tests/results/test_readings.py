"""Values in documents: the bounds of bands, equal in cards and docs."""

from pathlib import Path

import pytest

from fastscore.results.metric_text import bands_text, metrics_text, reading_of
from fastscore.suites.registry import load_suite, suite_names

GUESTS = {metric.id: metric.scale.bands for metric in load_suite("guest_simulation").metrics}
DOCS = Path(__file__).parents[2] / "docs" / "suites"


@pytest.mark.parametrize(
    ("metric", "value", "reading"),
    [
        ("PAS", 1.0, "perfect"),
        ("PAS", 0.81, "excellent"),
        ("PAS", 0.8, None),
        ("PAS", 0.49, "poor"),
        ("PAS", 0.0, "complete mismatch"),
        ("BVS", 0.7, None),
        ("BVS", 0.29, "too rigid or too erratic"),
        ("BVS", 0.3, None),
        ("ORA", 0.9, None),
        ("ORA", 0.49, "significant deviation"),
        ("DEI", 0.99, None),
        ("DEI", 1.0, "full explainability"),
        ("CRRS", 0.86, "excellent"),
        ("CRRS", 0.85, "good"),
        # the document has 0.70 in two bands: the better one is named first
        ("CRRS", 0.70, "good"),
        ("CRRS", 0.50, "acceptable"),
        ("CRRS", 0.4999, "poor"),
        ("CRRS", None, None),
    ],
)
def test_readings_of_guest_simulation_are_the_documents(
    metric: str, value: float | None, reading: str | None
) -> None:
    assert reading_of(value, value, value, GUESTS[metric]) == reading


@pytest.mark.parametrize(
    ("metric", "interval", "reading"),
    [
        ("PAS", (0.81, 0.99), "excellent"),
        ("PAS", (0.79, 0.99), None),
        ("CRRS", (0.70, 0.85), "good"),
        ("CRRS", (0.69, 0.75), None),
        ("CRRS", (None, None), None),
    ],
)
def test_a_band_holds_a_whole_interval(
    metric: str, interval: tuple[float | None, float | None], reading: str | None
) -> None:
    low, high = interval
    middle = 0.5 if low is None or high is None else (low + high) / 2
    assert reading_of(middle, low, high, GUESTS[metric]) == reading


def test_cards_and_docs_have_every_band() -> None:
    with_bands = 0
    for name in suite_names():
        suite = load_suite(name)
        card, docs = metrics_text(suite), (DOCS / f"{name}.md").read_text(encoding="utf-8")
        for metric in suite.metrics:
            if not metric.scale.bands:
                continue
            with_bands += 1
            assert f"  bands    {bands_text(metric.scale.bands)}\n" in card
            assert f"**Bands.** {bands_text(metric.scale.bands)}.\n" in docs
    assert with_bands == 5
