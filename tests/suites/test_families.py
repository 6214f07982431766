"""Which metrics are headline, which are copies, and over which tests corrections run."""

import pytest

from fastscore.suites.base import families, headline_metrics
from fastscore.suites.declarations import Formula, Metric, Scale
from fastscore.suites.registry import load_suite

HEADLINE = {
    "score_dialogue": "average_U_best_early",
    "group_travel": "W1 W2 W3 M1 M2 M3 M4 M4b M5 M8 M9 M11 M12 M13 M14 M15 M16",
    "guest_simulation": "PAS BVS ORA DEI CRRS",
    "preference_shift": "cross_coherence context_retention topic_interference "
    "context_adaptation_score topic_recovery_rate avg_recovery_delay",
    "memory_finance": "key_coverage strict_key_hit_rate contradiction_rate risk_level_acc "
    "horizon_acc liquidity_acc profile_score risk_coverage strict_risk_coverage_rate "
    "compliance_label_acc severe_violation_rate rubric_hit_rate judge_score_mean",
}
"""The main tables of the source documents: of preference_shift the columns of its table of models,
of memory_finance what its section 6 asks for."""


def metric(id: str, **how: object) -> Metric:
    return Metric(
        id=id,
        name=id,
        formula=Formula(text=""),
        scale=Scale("higher"),
        source="",
        **how,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_headline_metrics_are_those_of_the_source(name: str) -> None:
    found = headline_metrics(load_suite(name).metrics)
    assert [one.id for one in found] == HEADLINE[name].split()
    assert not any(one.role == "part" or one.same_test_as for one in found)


@pytest.mark.parametrize("name", HEADLINE)
def test_every_metric_is_in_one_test_of_one_family(name: str) -> None:
    suite = load_suite(name)
    found = families(suite.metrics)
    assert sorted(found) == sorted(metric.id for metric in suite.metrics)
    tests = {test for family, test in found.values() if family == "headline"}
    assert tests == {*HEADLINE[name].split()}


def test_copies_are_counted_once() -> None:
    metrics = [
        metric("percent", same_test_as="share"),
        metric("share", role="headline"),
        metric("one_minus", same_test_as="share"),
        metric("length"),
    ]
    assert families(metrics) == {
        **dict.fromkeys(("share", "percent", "one_minus"), ("headline", "share")),
        "length": ("others", "length"),
    }


def test_copies_without_their_original_are_one_test() -> None:
    metrics = [metric("percent", same_test_as="share"), metric("one_minus", same_test_as="share")]
    test = ("others", "percent")
    assert families(metrics) == {"percent": test, "one_minus": test}


def test_without_a_headline_metric_all_that_are_chosen_are_one_family() -> None:
    metrics = [metric("score"), metric("count", role="part")]
    assert families(metrics) == {"score": ("others", "score"), "count": ("others", "count")}


def test_a_suite_without_headline_metrics_shows_all_but_parts() -> None:
    metrics = [metric("score"), metric("count", role="part")]
    assert headline_metrics(metrics) == (metrics[0],)
    assert families([]) == {}
