"""Why the numbers of memory_finance are what they are."""

from collections.abc import Mapping
from typing import Any

from fastscore.suites.alignment import occurrences
from fastscore.suites.base import Metric
from fastscore.suites.memory_finance.show import read_turns
from fastscore.suites.showing import Dialogue, Evidence, Working

Row = Mapping[str, Any]

_OF_TURNS = {
    "key_coverage": "eligible_m1",
    "strict_key_hit_rate": "eligible_m1",
    "contradiction_rate": "eligible_m1",
    "short_term_hit_rate": "eligible_m1",
    "long_term_hit_rate": "eligible_m1",
    "profile_hit_rate": "eligible_m1",
    "risk_coverage": "eligible_m3",
    "strict_risk_coverage_rate": "eligible_m3",
    "compliance_label_acc": "eligible_m4",
    "severe_violation_rate": "eligible_m4",
    "forbidden_hit_rate": "eligible_m4",
    "rubric_hit_rate": "eligible_m5",
    "judge_score_mean": "eligible_m5",
}
_PARTS = ("risk_level_acc", "horizon_acc", "liquidity_acc", "constraints_f1", "preferences_f1")


def explain(dialogue: Dialogue, metric: Metric, row: Row) -> Working:
    """Explain a metric's value in a row of its table."""
    if metric.id == "judge_score_1_5":
        return _judged(dialogue, row)
    if metric.id == "profile_score":
        parts = [row[part] for part in _PARTS]
        known = all(part is not None for part in parts)
        listed = " + ".join("none" if part is None else f"{part:.4f}" for part in parts)
        return Working(
            text=f"({listed}) / 5",
            result=sum(parts) / 5 if known else None,
            evidence=tuple(
                Evidence(what=name, found=part) for name, part in zip(_PARTS, parts, strict=True)
            ),
        )
    if metric.id in _OF_TURNS:
        return _share(dialogue, metric, row)
    return _profile(dialogue, metric)


def _share(dialogue: Dialogue, metric: Metric, row: Row) -> Working:
    replies = {} if dialogue.raw is None else read_turns(dialogue.raw)
    numerator, denominator = row[metric.numerator or ""], row[metric.denominator or ""]
    evidence = []
    for turn in dialogue.tables["turns"].iter_rows(named=True):
        if not turn[_OF_TURNS[metric.id]]:
            continue
        answered = replies.get(turn["turn_pair_id"], ("", ""))[1]
        phrases = turn["forbidden_hits"] if metric.id == "forbidden_hit_rate" else []
        evidence.append(
            Evidence(
                what=f"turn {turn['turn_pair_id']}",
                found=_counted(metric.id, turn),
                text=answered,
                marks=tuple(
                    mark
                    for phrase in phrases
                    for mark in occurrences(answered, phrase, good=False, label="forbidden")
                ),
            )
        )
    return Working(
        text=f"{numerator} / {denominator}",
        result=numerator / denominator if denominator else None,
        evidence=tuple(evidence),
    )


def _counted(metric: str, turn: Row) -> str:
    """Say what a turn adds to a metric's counts."""
    if metric.startswith("contradiction"):
        return "contradicts a constraint" if turn["constraint_contradiction"] else "does not"
    if _OF_TURNS[metric] == "eligible_m1":
        keys = [
            f"{key['key']} ({key['resolver']}): "
            f"{'found in ' + ', '.join(sources) if hit else 'not found'}, wanted "
            f"{key['target_text']!r}"
            for key, hit, sources in zip(
                turn["resolved_keys"], turn["key_hit_flags"], turn["key_hit_sources"], strict=True
            )
        ]
        hits = sum(1 for hit in turn["key_hit_flags"] if hit)
        return f"{hits} of {len(keys)} keys; {'; '.join(keys)}"
    if _OF_TURNS[metric] == "eligible_m3":
        return (
            f"{turn['risk_tag_hits']} of {len(turn['risk_required_tags'])} tags; required "
            f"{', '.join(turn['risk_required_tags'])}; disclosed "
            f"{', '.join(turn['risk_pred_tags']) or 'none'}"
        )
    if metric == "forbidden_hit_rate":
        return ", ".join(turn["forbidden_hits"]) or "no forbidden phrase"
    if _OF_TURNS[metric] == "eligible_m4":
        return f"{turn['pred_compliance_label']}, labelled {turn['gt_compliance_label']}"
    return (
        f"{len(turn['rubric_hit_items'])} of {len(turn['rubric_required'])} elements; found "
        f"{', '.join(turn['rubric_hit_items']) or 'none'}; score {turn['judge_score_1_5']}"
    )


def _judged(dialogue: Dialogue, row: Row) -> Working:
    required, hits = len(row["rubric_required"]), len(row["rubric_hit_items"])
    replies = {} if dialogue.raw is None else read_turns(dialogue.raw)
    missed = [item for item in row["rubric_required"] if item not in row["rubric_hit_items"]]
    return Working(
        text=f"1 + 4 * {hits} / {required}, rounded to two decimals",
        result=round(1 + 4 * hits / required, 2) if required else None,
        evidence=(
            Evidence(what="elements found", found=", ".join(row["rubric_hit_items"]) or "none"),
            Evidence(what="elements missing", found=", ".join(missed) or "none"),
            Evidence(what="reply", text=replies.get(row["turn_pair_id"], ("", ""))[1]),
        ),
    )


def _profile(dialogue: Dialogue, metric: Metric) -> Working:
    """Show the labelled profile beside what the trace says of it."""
    evidence = []
    if dialogue.raw is not None and dialogue.raw["profile_gt"][0] is not None:
        evidence.append(Evidence(what="labelled profile", text=dialogue.raw["profile_gt"][0]))
    if dialogue.events is not None:
        frame = dialogue.events.frames["dialogues"]
        names = [name for name in frame.columns if name.startswith(("gt_", "snapshot_"))]
        found = frame.select(names).row(0, named=True)
        evidence += [Evidence(what=name, found=str(value)) for name, value in found.items()]
        for name in ("constraints", "preferences", "topics", "assets"):
            listed = ", ".join(map(str, dialogue.events.frames[name]["text"]))
            evidence.append(Evidence(what=name, found=listed or "none"))
    return Working(text=metric.formula, evidence=tuple(evidence))
