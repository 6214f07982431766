"""Score the turns of traces in plain Python: one dialogue, one turn, one keyword at a time.

Written from the definitions in docs/suites/memory_finance.md, with the standard library alone; see
`tests.oracles.memory_finance`.
"""

import re
from collections.abc import Mapping, Sequence
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
    """Return 1 if the reply breaks a constraint."""
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
    """Return the name of the tag that a label means."""
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
    """Make the row of one turn."""
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
    """Make the rows of all turns of valid dialogues."""
    rows: list[Row] = []
    for dialog in dialogs:
        if dialog.get("valid_dialog"):
            history = history_of(dialog)
            rows += [
                score_turn(dialog, turn, history, words, ignore_memory_keys)
                for turn in dialog.get("turns") or []
            ]
    return rows
