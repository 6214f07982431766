"""A trace turn by turn, the turns that fail, and explanations with replies and readable keys."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.suites.base import CommittedRun, Dialogue, Events
from fastscore.suites.memory_finance.events import Frames
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.score import (
    PROFILE_FIELDS,
    STATED_LISTS,
    Lexicon,
    Replies,
    compare_levels,
    compare_lists,
    count_texts,
    load_lexicon,
    score_events,
    search_replies,
)
from fastscore.suites.showing import DialogueView, Listing, Row, Section, Turn, occurrences, spoken

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

TEXTS_IN_LOGS = True

CASES = 40


def show_dialogue(dialogue: Dialogue) -> DialogueView:
    """Lay out the turns: what was asked and answered, and what of the required was found."""
    if dialogue.raw is None:
        return DialogueView(turns=())
    turns, rows = [], dialogue.tables["turns"].to_dicts()
    # in the order of the log; what is not valid may have turns there
    traced = json.loads(dialogue.raw["turns"].item()) if rows else []
    for scored, turn in zip(rows, traced, strict=True):
        asked, answered = (str(turn.get(f"{who}_text") or "") for who in ("user", "pred_assistant"))
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


def _keys(turn: Row) -> Iterator[str]:
    """Describe the required keys of a turn."""
    found = iter(zip(turn["key_hit_flags"], turn["key_hit_sources"], strict=True))
    for key in turn["resolved_keys"]:
        if not key["resolvable"]:
            yield f"{'null' if key['key'] is None else key['key']}: cannot be resolved, not counted"
            continue
        hit, sources = next(found)
        place = f"found in {', '.join(sources)}" if hit else "not found"
        yield f"{key['key']} ({key['resolver']}): {place}, wanted {key['target_text']!r}"


def _notes(turn: Row) -> list[str]:
    notes = [f"key {key}" for key in _keys(turn)]
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


def evidence(
    events: Events, vectors: "VectorView", options: MemoryFinance
) -> dict[str, pl.DataFrame]:
    """Score one dialogue; add replies and keys to its turns, and how its profile was found."""
    tables, frames = score_events(events, vectors, options), events.frames
    lexicon = load_lexicon(options.lexicon)
    replies = search_replies(frames, lexicon)
    keys = [list(_keys(turn)) for turn in tables["turns"].iter_rows(named=True)]
    turns = tables["turns"].with_columns(
        frames["turns"]["reply"], pl.Series("keys", keys, dtype=pl.List(pl.String))
    )
    counts: dict[str, pl.Series] = {}
    for name in STATED_LISTS:
        of = count_texts(compare_lists(frames, replies, name), frames["dialogues"])
        counts[f"{name}_shared_twice"] = 2 * of["shared"].cast(pl.Int64)
        counts[f"{name}_sizes"] = (of["predicted"] + of["labelled"]).cast(pl.Int64)
    columns = ("field", "found_in", "level", "texts", "replies")
    return {
        "turns": turns,
        "dialogues": tables["dialogues"].with_columns(**counts),
        "profile": pl.DataFrame(
            list(_profile(frames, replies, lexicon)),
            columns,
            orient="row",
            infer_schema_length=None,
        ),
    }


def _profile(frames: Frames, replies: Replies, lexicon: Lexicon) -> Iterator[tuple[Any, ...]]:
    """Yield where the fields of one dialogue's profile were found, and in which words."""
    joined = "\n".join(frames["turns"]["reply"])
    for name in PROFILE_FIELDS:
        field = lexicon.profile[name]
        levels = compare_levels(frames, replies, name, field)
        for place, column, how in (
            ("label", "gt", "labelled"),
            ("last snapshot", "snapshot", "stated"),
        ):
            text = frames["dialogues"][f"{column}_{name}"].drop_nulls().to_list()
            yield name, place, levels[how][0], text, ""
        for mention in field.mentions:
            if words := [word for word in mention.keywords if word in joined]:
                yield name, "replies", mention.level, words, joined
    for name in STATED_LISTS:
        texts = compare_lists(frames, replies, name)
        for place, how in (
            ("label", "is_labelled"),
            ("last snapshot", "is_stated"),
            ("label and replies", "is_mentioned"),
        ):
            found = texts.filter(how)["text"].sort().to_list()
            yield name, place, None, found, joined if found and how == "is_mentioned" else ""


def spoken_turns(raw: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Return what was asked and answered, or turns that are one text each; see `SPOKEN_TURNS`."""
    turns = [
        (number, speaker, text if isinstance(text, str) else None)
        for number, cell in enumerate(raw["turns"])
        for turn in _objects(cell)
        for speaker, text in _speech(turn)
    ]
    schema = {"dialogue_row": pl.Int64, "speaker": pl.String, "text": pl.String}
    # a judge names dialogues as the log does
    named = pl.coalesce("dialog_id", pl.format("{}:{}", "file", "line")).alias("dialogue")
    return spoken(pl.DataFrame(turns, schema, orient="row"), raw.select("file", "line", named))


def _objects(cell: str | None) -> list[dict[str, Any]]:
    found = json.loads(cell or "null")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _speech(turn: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if turn.get("role"):
        return ((str(turn["role"]), turn.get("text")),)
    return ("USER", turn.get("user_text")), ("ASSISTANT", turn.get("pred_assistant_text"))
