"""Score traces in plain Python: one dialogue, one turn, one keyword at a time.

Written from the definitions in docs/suites/memory_finance.md, with the standard library alone: the
peer that `benchmarks.memory_finance` measures against, and the oracle of the suite's tests.

Usage: python -m tests.oracles.memory_finance TRACES OUTPUT
"""

import json
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tests.oracles.memory_finance_turns import SOURCES, Row, score_turns

LEXICON = Path(__file__).parents[2] / "fastscore" / "suites" / "memory_finance" / "lexicon.toml"


def read_words(path: Path = LEXICON) -> dict[str, Any]:
    """Read a lexicon."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_traces(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Read one dialogue a line."""
    return [json.loads(line) for line in lines]


def f1(labelled: set[str], predicted: set[str]) -> float:
    """Return the F1 of two sets."""
    if not labelled and not predicted:
        return 1.0
    shared = len(labelled & predicted)
    precision = shared / len(predicted) if predicted else 0.0
    recall = shared / len(labelled) if labelled else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score_profile(dialog: Mapping[str, Any], words: Mapping[str, Any]) -> list[float]:
    """Return the five parts of a dialogue's profile score."""
    turns = dialog.get("turns") or []
    text = "\n".join(str(turn.get("pred_assistant_text") or "") for turn in turns)
    snapshots = [turn.get("profile_snapshot") for turn in turns]
    snapshot: Mapping[str, Any] = next(
        (found for found in reversed(snapshots) if isinstance(found, dict)), {}
    )
    profile = dialog["profile_gt"]
    parts = []
    for name, label, stated in (
        ("risk_level", "risk_level_gt", "risk_level"),
        ("horizon", "horizon_gt", "investment_horizon"),
        ("liquidity", "liquidity_need_gt", "liquidity_need"),
    ):
        field = words["profile"][name]
        expected = field["values"].get(str(profile.get(label)).strip(), "unknown")
        level = field["values"].get(str(snapshot.get(stated)).strip(), "unknown")
        if level == "unknown":
            level = next(
                (
                    mention["level"]
                    for mention in field["mentions"]
                    if any(keyword in text for keyword in mention["keywords"])
                ),
                "unknown",
            )
        parts.append(float(level == expected != "unknown"))
    for label, stated in (
        ("constraints_gt", "forbidden_assets"),
        ("preferences_gt", "preferred_topics"),
    ):
        labelled = set(profile.get(label) or [])
        predicted = set(snapshot.get(stated) or [])
        predicted |= {entry for entry in labelled if entry in text}
        parts.append(f1(labelled, predicted))
    return parts


def ratio(part: float, whole: float) -> float:
    """Return a ratio, 0.0 of nothing."""
    return part / whole if whole else 0.0


def mean(values: Sequence[float]) -> float:
    """Return the sum from left to right over the number; 0.0 of nothing."""
    return ratio(reduce(add, values, 0.0), len(values))


def _m1(rows: Sequence[Row]) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    required = sum(len(row["key_hit_flags"]) for row in rows)
    hits = sum(sum(row["key_hit_flags"]) for row in rows)
    by_source = {name: sum(row["m1_source_hits"][name] for row in rows) for name in SOURCES}
    rates = {
        "key_coverage": ratio(hits, required),
        "strict_key_hit_rate": ratio(sum(all(row["key_hit_flags"]) for row in rows), len(rows)),
        "contradiction_rate": ratio(
            sum(row["constraint_contradiction"] for row in rows), len(rows)
        ),
    }
    extra = {f"{name}_hit_rate": ratio(count, required) for name, count in by_source.items()}
    counts = {"required_key_total": required, "required_key_hit_total": hits}
    return rates, extra, counts | {f"{name}_hit_total": n for name, n in by_source.items()}


def _m3(rows: Sequence[Row]) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    required = sum(len(row["risk_required_tags"]) for row in rows)
    hits = sum(row["risk_tag_hits"] for row in rows)
    strict = sum(row["risk_tag_hits"] >= len(row["risk_required_tags"]) for row in rows)
    rates = {
        "risk_coverage": ratio(hits, required),
        "strict_risk_coverage_rate": ratio(strict, len(rows)),
    }
    return rates, {}, {"risk_required_total": required, "risk_hit_total": hits}


def _m4(rows: Sequence[Row]) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    agreed = sum(row["pred_compliance_label"] == row["gt_compliance_label"] for row in rows)
    severe = sum(row["pred_compliance_label"] == "severe_violation" for row in rows)
    rates = {
        "compliance_label_acc": ratio(agreed, len(rows)),
        "severe_violation_rate": ratio(severe, len(rows)),
        "forbidden_hit_rate": ratio(sum(bool(row["forbidden_hits"]) for row in rows), len(rows)),
    }
    return rates, {}, {"severe_count": severe}


def _m5(rows: Sequence[Row]) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    required = sum(len(row["rubric_required"]) for row in rows)
    hits = sum(len(row["rubric_hit_items"]) for row in rows)
    rates = {
        "rubric_hit_rate": ratio(hits, required),
        "judge_score_mean": mean([row["judge_score_1_5"] for row in rows]),
    }
    counts = {
        "rubric_required_total": required,
        "rubric_hit_total": hits,
        "judge_scored_turns": len(rows),
    }
    return rates, {}, counts


def summarise_metric(rows: Sequence[Row], name: str, flag: str, measure: Any) -> Row:
    """Return micro, macro, counts and by_dialog of a metric of turns."""
    eligible = [row for row in rows if row[flag]]
    groups: dict[str, list[Row]] = {}
    for row in eligible:
        groups.setdefault(str(row["dialog_id"] or ""), []).append(row)
    by_dialog = {key: measure(group)[0] for key, group in groups.items()}
    # turns of one dialogue together, but one running sum over all of them
    rates, extra, counts = measure([row for group in groups.values() for row in group])
    macro = {key: mean([found[key] for found in by_dialog.values()]) for key in rates}
    return {
        "metric_name": name,
        "micro": rates | extra,
        "macro": macro,
        "counts": {
            "eligible_count": len(eligible),
            "skipped_count": len(rows) - len(eligible),
            "failed_count": 0,
            **counts,
        },
        "by_dialog": by_dialog,
    }


PROFILE_NAMES = (
    "risk_level_acc",
    "horizon_acc",
    "liquidity_acc",
    "constraints_f1",
    "preferences_f1",
)


def summarise_profiles(dialogs: Sequence[Mapping[str, Any]], words: Mapping[str, Any]) -> Row:
    """Return M2 of all dialogues."""
    eligible = [d for d in dialogs if d.get("valid_dialog") and d.get("profile_gt")]
    parts = [score_profile(dialog, words) for dialog in eligible]
    means = [mean([part[position] for part in parts]) for position in range(5)]
    micro = dict(zip(PROFILE_NAMES, means, strict=True))
    micro["profile_score"] = reduce(add, means, 0.0) / 5
    by_dialog = {}
    for dialog, part in zip(eligible, parts, strict=True):
        scores = dict(zip(PROFILE_NAMES, part, strict=True))
        scores["profile_score"] = reduce(add, part, 0.0) / 5
        by_dialog[str(dialog.get("dialog_id"))] = scores
    return {
        "metric_name": "m2_profile_accuracy",
        "micro": micro,
        "macro": dict(micro),
        "counts": {
            "eligible_count": len(eligible),
            "skipped_count": len(dialogs) - len(eligible),
            "failed_count": sum(not dialog.get("valid_dialog") for dialog in dialogs),
        },
        "by_dialog": by_dialog,
    }


def summarise(
    dialogs: Sequence[Mapping[str, Any]],
    rows: Sequence[Row],
    words: Mapping[str, Any],
    dataset_path: str = "",
) -> Row:
    """Return the content of metrics_summary.json."""
    metrics = [
        summarise_metric(rows, "m1_context_continuity", "eligible_m1", _m1),
        summarise_profiles(dialogs, words),
        summarise_metric(rows, "m3_risk_coverage", "eligible_m3", _m3),
        summarise_metric(rows, "m4_compliance", "eligible_m4", _m4),
        summarise_metric(rows, "m5_explainability", "eligible_m5", _m5),
    ]
    return {
        "run_id": (dialogs[0].get("run_id") or "") if dialogs else "",
        "trace_version": "v1",
        "dataset_path": dataset_path,
        "metrics": {metric["metric_name"]: metric for metric in metrics},
        "counters": {
            "total_dialogs": len(dialogs),
            "valid_dialogs": sum(bool(dialog.get("valid_dialog")) for dialog in dialogs),
            "skipped_dialogs": sum(d.get("dialog_status") == "skipped" for d in dialogs),
            "failed_dialogs": sum(d.get("dialog_status") == "failed" for d in dialogs),
            "total_turn_pairs": sum(len(dialog.get("turns") or []) for dialog in dialogs),
        },
    }


def evaluate(traces: Path, output: Path) -> Row:
    """Score a trace file and write the public evaluation's files: turn rows and a summary."""
    words = read_words()
    with traces.open(encoding="utf-8") as lines:
        dialogs = read_traces(lines)
    rows = score_turns(dialogs, words)
    summary = summarise(dialogs, rows, words, str(traces))
    output.mkdir(parents=True, exist_ok=True)
    with (output / "turn_eval.jsonl").open("w", encoding="utf-8") as turn_rows:
        for row in rows:
            turn_rows.write(json.dumps(row, ensure_ascii=False) + "\n")
    content = json.dumps(summary, ensure_ascii=False, indent=2)
    (output / "metrics_summary.json").write_text(content, encoding="utf-8")
    return summary


if __name__ == "__main__":
    evaluate(Path(sys.argv[1]), Path(sys.argv[2]))
