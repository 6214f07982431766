"""Replies, profiles and readable keys beside the tables of memory_finance for explanations."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from fastscore.suites.alignment import disjoint, occurrences
from fastscore.suites.declarations import Metric
from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.show import read_turns, resolved_keys, unresolved_keys
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, derive

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


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: MemoryFinance) -> Derivation:
    """Explain a metric's value in a row of its table."""
    rows = read_turns(dialogue)
    turns = dialogue.tables["turns"].with_columns(
        pl.Series("reply", [answered for _, _, answered in rows], dtype=pl.String),
        pl.Series("keys", [list(_keys(turn)) for turn, _, _ in rows], dtype=pl.List(pl.String)),
    )
    evidence: tuple[Evidence, ...] = ()
    known: dict[str, int] = {}
    if metric.table == "turns":
        evidence = tuple(Evidence(what="reply", text=text) for turn, _, text in rows if turn == row)
    elif metric.id in _LEVELS:
        evidence = tuple(_of_level(dialogue, metric.id, options))
    elif metric.id in _LISTS:
        evidence = tuple(_of_lists(dialogue, metric.id))
        labelled, stated, mentioned = (set(one.values["texts"]) for one in evidence[:3])
        predicted = stated | mentioned
        known = {"shared": 2 * len(labelled & predicted), "sizes": len(labelled) + len(predicted)}
        metric = replace(metric, numerator="shared", denominator="sizes")
    shown = replace(dialogue, tables={**dialogue.tables, "turns": turns})
    found = derive(shown, metric, {**row, **known})
    if metric.id in (*_LEVELS, *_LISTS):
        return replace(found, evidence=evidence)
    return replace(found, evidence=(*map(_marked, found.evidence), *evidence))


def _keys(turn: Row) -> Iterator[str]:
    """Describe the required keys of a turn."""
    for key, hit, sources in resolved_keys(turn):
        place = f"found in {', '.join(sources)}" if hit else "not found"
        yield f"{key['key']} ({key['resolver']}): {place}, wanted {key['target_text']!r}"
    for unresolved in unresolved_keys(turn):
        yield f"{unresolved}: cannot be resolved, not counted"


def _marked(piece: Evidence) -> Evidence:
    """Mark forbidden phrases in a reply."""
    marks = tuple(
        mark
        for phrase in piece.values.get("forbidden_hits", ())
        for mark in occurrences(piece.text, phrase, good=False, label="forbidden")
    )
    return replace(piece, marks=marks) if marks else piece


def _of_level(dialogue: Dialogue, metric: str, options: MemoryFinance) -> Iterator[Evidence]:
    """Show the labelled level, the snapshot's, and the keywords of levels in the replies."""
    name, label, stated = _LEVELS[metric]
    field = load_lexicon(options.lexicon).profile[name]
    profile, snapshot, replies = _profiles(dialogue)
    for what, text in (
        (f"labelled {label}", profile.get(label)),
        (f"last snapshot's {stated}", snapshot.get(stated)),
    ):
        level = field.level(text if isinstance(text, str) else None)
        yield Evidence(what=what, found=f"{text!r}: {level}", values={"level": level})
    for mention in field.mentions:
        words = [word for word in mention.keywords if word in replies]
        if words:
            yield _mentioned("replies", f"{mention.level}: {', '.join(words)}", replies, words)


def _of_lists(dialogue: Dialogue, metric: str) -> Iterator[Evidence]:
    """Show the labelled list, the snapshot's, and the labelled texts in the replies."""
    label, stated = _LISTS[metric]
    profile, snapshot, replies = _profiles(dialogue)
    labelled, seen = (
        sorted({text for text in found.get(key) or () if isinstance(text, str)})
        for found, key in ((profile, label), (snapshot, stated))
    )
    mentioned = [text for text in labelled if text in replies]
    for what, texts in ((f"labelled {label}", labelled), (f"last snapshot's {stated}", seen)):
        yield Evidence(what=what, found=", ".join(texts) or "none", values={"texts": texts})
    found = ", ".join(mentioned) or "none"
    shown = _mentioned("labelled and mentioned in replies", found, replies, mentioned)
    yield replace(shown, values={"texts": mentioned})


def _mentioned(what: str, found: str, replies: str, words: list[str]) -> Evidence:
    marks = disjoint([mark for word in words for mark in occurrences(replies, word)])
    return Evidence(what=what, found=found, text=replies if marks else "", marks=marks)


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
