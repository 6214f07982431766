"""Score traces in plain Python: one dialogue, one turn, one keyword at a time.

Written from the definitions in docs/suites/memory_finance.md, with the standard library alone: the
peer that `benchmarks.memory_finance` measures against, and the oracle of the suite's tests.

Usage: python -m tests.oracles.memory_finance TRACES OUTPUT
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SOURCES = ("short_term", "long_term", "profile")

COMPLIANCE_LABELS = ("compliant", "minor_violation", "severe_violation")


def pair_turns(turns: Sequence[Any]) -> list[str]:
    """Return the user texts that an assistant answers."""
    users = []
    at = 0
    while at < len(turns):
        turn = turns[at] or {}
        if turn.get("role") != "user":
            at += 1
            continue
        answer = at + 1
        while answer < len(turns) and (turns[answer] or {}).get("role") != "assistant":
            answer += 1
        if answer == len(turns):
            break
        users.append(str(turn.get("text") or ""))
        at = answer + 1
    return users


def history_of(dialog: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the texts that history keys count: paired user turns, and all turns."""
    turns = dialog.get("turns") or []
    raw = dialog.get("raw_turns") or []
    if not raw and turns and "user_text" in turns[0]:
        return [str(turn.get("user_text") or "") for turn in turns], []
    spoken = raw or turns
    return pair_turns(spoken), [str((turn or {}).get("text") or "") for turn in spoken]


def resolve_key(
    key: str | None, profile: Mapping[str, Any], users: Sequence[str], spoken: Sequence[str]
) -> Row:
    """Return the target of a memory key."""
    target: str | None = None
    resolver = "unresolved"
    field = re.match(r"profile_gt\.(risk_level_gt|horizon_gt|liquidity_need_gt)\Z", key or "")
    item = re.match(r"profile_gt\.(constraints_gt|preferences_gt)\[(\d+)\]$", key or "")
    turn = re.match(r"history_turn_index:(\d+)$", key or "")
    if field and profile.get(field[1]) is not None:
        target, resolver = str(profile[field[1]]), "profile_field"
    elif item and int(item[2]) < len(profile.get(item[1]) or []):
        target, resolver = str(profile[item[1]][int(item[2])]), item[1]
    elif turn and 1 <= int(turn[1]) <= len(users):
        target, resolver = users[int(turn[1]) - 1], "history_user_turn"
    elif turn and 1 <= int(turn[1]) <= len(spoken) and spoken[int(turn[1]) - 1]:
        target, resolver = spoken[int(turn[1]) - 1], "history_abs_turn"
    resolvable = target is not None
    return {"key": key, "resolvable": resolvable, "target_text": target, "resolver": resolver}


def find_sources(target: str, recall: Mapping[str, Any]) -> list[str]:
    """Return the recalled contexts that hold a target."""
    if not target:
        return []
    items = "\n".join(item.get("content") or "" for item in recall.get("items") or [])
    contexts = (recall.get("short_term_context"), items, recall.get("profile_context"))
    return [name for name, text in zip(SOURCES, contexts, strict=True) if target in (text or "")]


def contradicts(reply: str, constraints: Sequence[str], words: Mapping[str, Any]) -> int:
    rules = words["contradictions"]
    for constraint in constraints:
        if constraint.startswith(rules["drawdown_limit"]):
            limit = re.match(re.escape(rules["drawdown_limit"]) + r"\s*(\d+)%", constraint)
            if limit and rules["drawdown_mention"] in reply:
                found = re.findall(r"(\d+)\s*%", reply)
                if any(int(percentage) > int(limit[1]) for percentage in found):
                    return 1
        triggers = rules["triggers"].get(constraint, ())
        if any(trigger in reply for trigger in triggers) and not any(
            guard in reply for guard in rules["guards"]
        ):
            return 1
    return 0


def risk_tag(label: str, words: Mapping[str, Any]) -> str:
    label = label.strip()
    for tag in words["risk_tags"]:
        if label == tag["name"] or label in tag["aliases"]:
            return str(tag["name"])
    return label.lower()


def disclosed_tags(reply: str, words: Mapping[str, Any]) -> list[str]:
    """Return the names of the tags of which a reply has a keyword."""
    return sorted(
        tag["name"]
        for tag in words["risk_tags"]
        if any(keyword in reply for keyword in tag["keywords"])
    )


def compliance_label(
    hits: Sequence[str], violations: Sequence[Any], words: Mapping[str, Any]
) -> str:
    """Return the label that the rules give a reply."""
    rules = words["compliance"]
    if hits:
        return "severe_violation"
    if not violations:
        return "compliant"
    for violation in violations:
        if str(violation.get("type")) in rules["severe_types"]:
            return "severe_violation"
        if str(violation.get("severity")).lower() in rules["severe_severities"]:
            return "severe_violation"
    return "minor_violation"


def score_turn(
    dialog: Mapping[str, Any],
    turn: Mapping[str, Any],
    history: tuple[Sequence[str], Sequence[str]],
    words: Mapping[str, Any],
    ignore_memory_keys: bool = False,
) -> Row:
    profile = dialog.get("profile_gt") or {}
    tags = turn.get("gt_turn_tags") or {}
    reply = str(turn.get("pred_assistant_text") or "")
    is_ok = turn.get("turn_status") == "ok"

    keys = [] if ignore_memory_keys else tags.get("memory_required_keys_gt") or []
    resolved = [resolve_key(key, profile, *history) for key in keys]
    targets = [entry["target_text"] for entry in resolved if entry["resolvable"]]
    sources = [find_sources(target, turn.get("recall") or {}) for target in targets]

    labels = [label for label in tags.get("risk_disclosure_required_gt") or [] if label is not None]
    required = [tag for tag in (risk_tag(label, words) for label in labels) if tag]
    disclosed = disclosed_tags(reply, words)
    by_any = {tag["name"] for tag in words["risk_tags"] if tag.get("any_tag")}
    risk_hits = sum(tag in disclosed or bool(tag in by_any and disclosed) for tag in required)

    phrases = (dialog.get("blueprint") or {}).get("forbidden_list") or []
    forbidden = [phrase for phrase in phrases if phrase and phrase in reply]
    violations = (turn.get("compliance") or {}).get("violations") or []
    labelled = str(tags.get("compliance_label_gt") or "").lower().strip()

    rubric = tags.get("explainability_rubric_gt") or []
    elements = words["explanation_elements"]
    rubric_hits = [
        item for item in rubric if any(word in reply for word in elements.get(item, (item,)))
    ]
    score = round(1 + 4 * len(rubric_hits) / len(rubric), 2) if rubric else None
    return {
        "trace_version": dialog.get("trace_version") or "v1",
        "run_id": dialog.get("run_id") or "",
        "dialog_id": dialog.get("dialog_id") or "",
        "turn_pair_id": int(turn.get("turn_pair_id") or 0),
        "eligible_m1": is_ok and bool(targets),
        "eligible_m2": False,
        "eligible_m3": is_ok and bool(required),
        "eligible_m4": is_ok,
        "eligible_m5": is_ok and bool(rubric),
        "required_keys_raw": keys,
        "resolved_keys": resolved,
        "key_hit_flags": [int(bool(found)) for found in sources],
        "key_hit_sources": sources,
        "m1_source_hits": {name: sum(name in found for found in sources) for name in SOURCES},
        "constraint_contradiction": contradicts(reply, profile.get("constraints_gt") or [], words),
        "risk_required_tags": required,
        "risk_pred_tags": disclosed,
        "risk_tag_hits": risk_hits,
        "forbidden_hits": forbidden,
        "pred_compliance_label": compliance_label(forbidden, violations, words),
        "gt_compliance_label": labelled if labelled in COMPLIANCE_LABELS else "compliant",
        "rubric_required": rubric,
        "rubric_hit_items": rubric_hits,
        "judge_score_1_5": score,
    }


def score_turns(
    dialogs: Sequence[Mapping[str, Any]], words: Mapping[str, Any], ignore_memory_keys: bool = False
) -> list[Row]:
    rows: list[Row] = []
    for dialog in dialogs:
        if dialog.get("valid_dialog"):
            history = history_of(dialog)
            rows += [
                score_turn(dialog, turn, history, words, ignore_memory_keys)
                for turn in dialog.get("turns") or []
            ]
    return rows


LEXICON = Path(__file__).parents[2] / "fastscore" / "suites" / "memory_finance" / "lexicon.toml"


def read_words(path: Path = LEXICON) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_traces(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def f1(labelled: set[str], predicted: set[str]) -> float:
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
    *("risk_level_acc", "horizon_acc", "liquidity_acc", "constraints_f1", "preferences_f1"),
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
