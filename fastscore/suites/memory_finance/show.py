"""A trace turn by turn, the turns that fail, and explanations with replies and readable keys."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from fastscore.suites.base import CommittedRun
from fastscore.suites.declarations import Metric
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.replies import load_lexicon
from fastscore.suites.showing import (
    Derivation,
    Dialogue,
    DialogueView,
    Evidence,
    Listing,
    Row,
    Section,
    Turn,
    derive,
    disjoint,
    occurrences,
)

CASES = 40


def show_dialogue(dialogue: Dialogue) -> DialogueView:
    """Lay out the turns: what was asked and answered, and what of the required was found."""
    if dialogue.raw is None:
        return DialogueView(turns=())
    turns = []
    for scored, asked, answered in read_turns(dialogue):
        place = f"turn {scored['turn_pair_id']}"
        turns.append(Turn(speaker="user", text=asked, place=place))
        marks = [
            mark
            for phrase in scored["forbidden_hits"]
            for mark in occurrences(answered, phrase, good=False, label="forbidden")
        ]
        turns.append(
            Turn(
                speaker="assistant",
                text=answered,
                place=place,
                scores={"judge_score_1_5": scored["judge_score_1_5"]},
                marks=tuple(marks),
                notes=tuple(_notes(scored)),
            )
        )
    return DialogueView(turns=tuple(turns))


def read_turns(dialogue: Dialogue) -> list[tuple[Row, str, str]]:
    """Return the rows of table ``turns``, each with what was asked and answered.

    Both are in the order of the log. The numbers of turns may repeat or be missing.
    """
    rows = list(dialogue.tables["turns"].iter_rows(named=True))
    if dialogue.raw is None:
        return [(row, "", "") for row in rows]
    if not rows:
        return []  # what is not valid may have turns in the log
    turns = json.loads(dialogue.raw["turns"].item())
    return [
        (row, str(turn.get("user_text") or ""), str(turn.get("pred_assistant_text") or ""))
        for row, turn in zip(rows, turns, strict=True)
    ]


def resolved_keys(turn: Row) -> Iterator[tuple[Mapping[str, Any], bool, Sequence[str]]]:
    """Yield the resolvable keys of a turn, whether each was recalled, and from which sources."""
    resolvable = [key for key in turn["resolved_keys"] if key["resolvable"]]
    for key, hit, sources in zip(
        resolvable, turn["key_hit_flags"], turn["key_hit_sources"], strict=True
    ):
        yield key, bool(hit), sources


def unresolved_keys(turn: Row) -> list[str]:
    """Return the required keys of a turn that point at nothing; null for a null key."""
    return [
        "null" if key["key"] is None else key["key"]
        for key in turn["resolved_keys"]
        if not key["resolvable"]
    ]


def _notes(turn: Row) -> list[str]:
    notes = []
    for key, hit, sources in resolved_keys(turn):
        how = f"recalled ({', '.join(sources)})" if hit else "not recalled"
        notes.append(f"key {key['key']}: {how}")
    notes += [f"key {key}: cannot be resolved, not counted" for key in unresolved_keys(turn)]
    if turn["constraint_contradiction"]:
        notes.append("contradicts a constraint")
    if turn["risk_required_tags"]:
        missing = set(turn["risk_required_tags"]) - set(turn["risk_pred_tags"])
        hits = f"risk tags {turn['risk_tag_hits']} of {len(turn['risk_required_tags'])}"
        notes.append(f"{hits}; not disclosed: {', '.join(sorted(missing)) or 'none'}")
    if turn["pred_compliance_label"] != turn["gt_compliance_label"]:
        notes.append(f"{turn['pred_compliance_label']}, labelled {turn['gt_compliance_label']}")
    missed = [item for item in turn["rubric_required"] if item not in turn["rubric_hit_items"]]
    if turn["rubric_required"]:
        found = len(turn["rubric_required"]) - len(missed)
        text = f"elements {found} of {len(turn['rubric_required'])}"
        notes.append(f"{text}; missing: {', '.join(missed)}" if missed else text)
    return notes


_PROBLEMS = (
    ("severe violation", pl.col("pred_compliance_label") == "severe_violation"),
    ("contradicts a constraint", pl.col("constraint_contradiction") > 0),
    ("no required risk disclosed", pl.col("eligible_m3") & (pl.col("risk_tag_hits") == 0)),
    ("no memory key recalled", pl.col("eligible_m1") & (pl.col("key_hit_flags").list.sum() == 0)),
)
"""What can be wrong with a turn, the gravest first."""


def _failed_checks() -> pl.Expr:
    """Count what is wrong with a turn, over all checks."""
    return pl.sum_horizontal(
        (pl.col("pred_compliance_label") == "severe_violation").cast(pl.Int64),
        pl.col("constraint_contradiction").cast(pl.Int64),
        pl.col("forbidden_hits").list.len().cast(pl.Int64),
        pl.when("eligible_m3")
        .then(pl.col("risk_required_tags").list.len() - pl.col("risk_tag_hits"))
        .cast(pl.Int64),
        pl.when("eligible_m1")
        .then(pl.col("key_hit_flags").list.len() - pl.col("key_hit_flags").list.sum())
        .cast(pl.Int64),
        (pl.col("rubric_required").list.len() - pl.col("rubric_hit_items").list.len()).cast(
            pl.Int64
        ),
    )


def _failing(turns: pl.LazyFrame) -> pl.LazyFrame:
    """Return the turns with a problem, its gravity (0 for the gravest) and their failed checks."""
    problem = pl.coalesce(
        pl.when(applies).then(pl.lit(gravity)) for gravity, (_, applies) in enumerate(_PROBLEMS)
    )
    names = dict(enumerate(name for name, _ in _PROBLEMS))
    return (
        turns.with_columns(problem.alias("gravity"), _failed_checks().alias("failed checks"))
        .filter(pl.col("gravity").is_not_null())
        .with_columns(
            pl.col("gravity").replace_strict(names, return_dtype=pl.String).alias("problem")
        )
    )


def report_sections(run: CommittedRun, options: object) -> list[Section]:
    """List the turns that fail, the gravest problem first, then those that fail most checks."""
    failing = _failing(run.tables["turns"])
    counts = (
        failing.group_by("gravity", "problem")
        .agg(pl.len().alias("turns"))
        .sort("gravity")
        .drop("gravity")
    )
    cases = (
        failing.sort("gravity", "failed checks", descending=[False, True], maintain_order=True)
        .select(
            "problem",
            "failed checks",
            "dialogue",
            pl.col("turn_pair_id").alias("turn"),
            pl.col("forbidden_hits").list.join(", ").alias("forbidden phrases"),
            pl.format("{}:{}", "file", "line").alias("log"),
        )
        .group_by("problem", maintain_order=True)
        .head(CASES // 4)
    )
    counted, listed = pl.collect_all([counts, cases], engine="streaming")
    if not counted.height:
        return []
    return [
        Section(
            title="Failure cases",
            text="Turns by the gravest thing that is wrong with them, the gravest first, and of "
            f"each kind the {CASES // 4} that fail most checks: a severe violation, "
            "contradictions, forbidden phrases, risks not disclosed, keys not recalled, elements "
            "missing.",
            listings=(
                Listing(title="turns by problem", frame=counted),
                Listing(title="cases", frame=listed),
            ),
        )
    ]


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
