"""Why the numbers of memory_finance are what they are."""

import json
from collections.abc import Sequence
from typing import Any

from fastscore.errors import counted
from fastscore.suites.alignment import disjoint, occurrences
from fastscore.suites.declarations import Metric
from fastscore.suites.memory_finance.lexicon import UNKNOWN, load_lexicon
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.show import read_turns, resolved_keys, unresolved_keys
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, ratio

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
_LEVELS = {
    "risk_level_acc": ("risk_level", "risk_level_gt", "risk_level"),
    "horizon_acc": ("horizon", "horizon_gt", "investment_horizon"),
    "liquidity_acc": ("liquidity", "liquidity_need_gt", "liquidity_need"),
}
"""A field of the lexicon, and its keys in the labelled profile and in snapshots."""
_LISTS = {
    "constraints_f1": ("constraints_gt", "forbidden_assets"),
    "preferences_f1": ("preferences_gt", "preferred_topics"),
}
_PARTS = (*_LEVELS, *_LISTS)


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: MemoryFinance) -> Derivation:
    """Explain a metric's value in a row of its table."""
    if metric.id == "judge_score_1_5":
        return _judged(dialogue, row)
    if metric.id == "profile_score":
        parts = [row[part] for part in _PARTS]
        return ratio(
            sum(parts),
            len(parts),
            [Evidence(what=name, found=part) for name, part in zip(_PARTS, parts, strict=True)],
            text=f"({' + '.join(f'{part:.4f}' for part in parts)}) / {len(parts)}",
        )
    if metric.id in _OF_TURNS:
        return _share(dialogue, metric, row)
    if metric.id in _LEVELS:
        return _level(dialogue, metric.id, options)
    return _list(dialogue, metric.id)


def _share(dialogue: Dialogue, metric: Metric, row: Row) -> Derivation:
    evidence = []
    for turn, _, answered in read_turns(dialogue):
        if not turn[_OF_TURNS[metric.id]]:
            continue
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
    return ratio(row[metric.numerator or ""], row[metric.denominator or ""], evidence)


def _counted(metric: str, turn: Row) -> str:
    """Say what a turn adds to a metric's counts."""
    if metric.startswith("contradiction"):
        return "contradicts a constraint" if turn["constraint_contradiction"] else "does not"
    if _OF_TURNS[metric] == "eligible_m1":
        keys = [
            f"{key['key']} ({key['resolver']}): "
            f"{'found in ' + ', '.join(sources) if hit else 'not found'}, wanted "
            f"{key['target_text']!r}"
            for key, hit, sources in resolved_keys(turn)
        ]
        hits = sum(turn["key_hit_flags"])
        others = [f"{key}: cannot be resolved, not counted" for key in unresolved_keys(turn)]
        return f"{hits} of {counted(len(keys), 'keys')}; {'; '.join([*keys, *others])}"
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


def _judged(dialogue: Dialogue, row: Row) -> Derivation:
    required, hits = len(row["rubric_required"]), len(row["rubric_hit_items"])
    reply = next((answered for turn, _, answered in read_turns(dialogue) if turn == row), "")
    missed = [item for item in row["rubric_required"] if item not in row["rubric_hit_items"]]
    return Derivation(
        text=f"1 + 4 * {hits} / {required}, rounded to two decimals",
        result=round(1 + 4 * hits / required, 2) if required else None,
        evidence=(
            Evidence(what="elements found", found=", ".join(row["rubric_hit_items"]) or "none"),
            Evidence(what="elements missing", found=", ".join(missed) or "none"),
            Evidence(what="reply", text=reply),
        ),
    )


def _level(dialogue: Dialogue, metric: str, options: MemoryFinance) -> Derivation:
    """Hold the level that the assistant saw to the labelled one."""
    name, label, stated = _LEVELS[metric]
    field = load_lexicon(options.lexicon).profile[name]
    profile, snapshot, replies = _profiles(dialogue)
    labelled = field.level(_text_or_none(profile.get(label)))
    predicted = field.level(_text_or_none(snapshot.get(stated)))
    of_snapshot = predicted != UNKNOWN
    found = ""
    if not of_snapshot:
        predicted, found = next(
            (
                (mention.level, keyword)
                for mention in field.mentions
                for keyword in mention.keywords
                if keyword in replies
            ),
            (UNKNOWN, ""),
        )
    return ratio(
        int(predicted == labelled != UNKNOWN),
        1,
        [
            Evidence(what=f"labelled {label}", found=f"{profile.get(label)!r}: {labelled}"),
            Evidence(what=f"last snapshot's {stated}", found=repr(snapshot.get(stated))),
            Evidence(what="read from", found=_read_from(of_snapshot, found)),
            *_spoken(replies, (found,) if found else ()),
        ],
        text=f"{predicted} was seen, {labelled} is labelled: 1 if equal and known",
    )


def _read_from(of_snapshot: bool, keyword: str) -> str:
    if of_snapshot:
        return "the snapshot"
    return f"the replies, which have {keyword!r}" if keyword else "nothing: it is unknown"


def _list(dialogue: Dialogue, metric: str) -> Derivation:
    """Hold what the assistant saw, and what its replies mention, to the labelled list."""
    label, stated = _LISTS[metric]
    profile, snapshot, replies = _profiles(dialogue)
    labelled, seen = (
        {text for text in found.get(key) or () if isinstance(text, str)}
        for found, key in ((profile, label), (snapshot, stated))
    )
    mentioned = {text for text in labelled if text in replies}
    predicted = seen | mentioned
    shared = len(labelled & predicted)
    return ratio(
        2 * shared,
        len(labelled) + len(predicted),
        [
            Evidence(what=f"labelled {label}", found=_listed(labelled)),
            Evidence(what=f"last snapshot's {stated}", found=_listed(seen)),
            Evidence(what="labelled and mentioned in replies", found=_listed(mentioned)),
            *_spoken(replies, sorted(mentioned)),
        ],
        text=f"2 * {shared} / ({len(labelled)} labelled + {len(predicted)} predicted)",
        of_nothing=1.0,
        because="nothing is labelled and nothing predicted",
    )


def _listed(texts: set[str]) -> str:
    return ", ".join(sorted(texts)) or "none"


def _spoken(replies: str, keywords: Sequence[str]) -> list[Evidence]:
    marks = [mark for word in keywords if word for mark in occurrences(replies, word)]
    return [Evidence(what="replies", text=replies, marks=disjoint(marks))] if marks else []


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _profiles(dialogue: Dialogue) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the labelled profile, the last snapshot of the user's, and the replies, joined."""
    assert dialogue.raw is not None
    profile, turns = (
        json.loads(text or "null") for text in dialogue.raw.select("profile_gt", "turns").row(0)
    )
    snapshots = [turn.get("profile_snapshot") for turn in turns or ()]
    last = next((found for found in reversed(snapshots) if isinstance(found, dict)), {})
    replies = "\n".join(str(turn.get("pred_assistant_text") or "") for turn in turns or ())
    return profile, last, replies
