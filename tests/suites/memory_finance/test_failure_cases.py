"""The failure cases of a report: the gravest first, then those that fail most checks."""

import polars as pl

from fastscore.suites.base import CommittedRun
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.schema import TURNS
from fastscore.suites.memory_finance.show import report_sections


def turn(number: int, **values: object) -> dict[str, object]:
    return {
        "file": "log.jsonl",
        "line": 1,
        "dialogue": "d",
        "turn_pair_id": number,
        "pred_compliance_label": "compliant",
        "constraint_contradiction": 0,
        "forbidden_hits": [],
        "eligible_m1": False,
        "eligible_m3": False,
        "key_hit_flags": [],
        "risk_required_tags": [],
        "risk_tag_hits": 0,
        "rubric_required": [],
        "rubric_hit_items": [],
    } | values


def test_cases_stand_by_gravity_then_by_failed_checks() -> None:
    rows = [
        turn(1, eligible_m1=True, key_hit_flags=[0, 0]),
        turn(2, constraint_contradiction=1),
        turn(3, constraint_contradiction=1, rubric_required=["a", "b"], rubric_hit_items=["a"]),
        turn(4, eligible_m3=True, risk_required_tags=["r", "s"]),
        turn(5, pred_compliance_label="severe_violation", forbidden_hits=["sure profit"]),
        turn(6),
    ]
    names = list(rows[0])
    frame = pl.DataFrame(rows, schema={name: TURNS.schema[name] for name in names})
    run = CommittedRun(name="run", signature="", tables={"turns": frame.lazy()})
    (section,) = report_sections(run, MemoryFinance())
    by_problem, cases = (listing.frame for listing in section.listings)
    assert by_problem["problem"].to_list() == [
        "severe violation",
        "contradicts a constraint",
        "no required risk disclosed",
        "no memory key recalled",
    ]
    assert cases["turn"].to_list() == [5, 3, 2, 4, 1]
    # a violation and a phrase; a contradiction and an element; a contradiction; two risks; two keys
    assert cases["failed checks"].to_list() == [2, 2, 1, 2, 2]
