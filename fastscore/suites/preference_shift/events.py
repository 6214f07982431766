"""Logs as frames: conversations, their turns in pairs, shift points and gold constraints.

A turn of the suite is a pair: a USER turn at an even place of the conversation and the SYSTEM turn
after it, as published. Turns that pair with nothing are listed; a conversation with a value that
cannot be used is rejected. All others are read.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, INTEGER, OBJECT
from polars import col as C

from fastscore.suites.base import Events, Nulls
from fastscore.suites.columns import unknown_words
from fastscore.suites.declarations import (
    PAIRED_TURNS,
    PARTIAL_REJECTS,
    ROW_SCHEMA,
    UNPAIRED_TURNS,
    rejects_of,
)
from fastscore.suites.grouping import place_in_group
from fastscore.suites.identity import IDENTITY, identify
from fastscore.suites.json_values import (
    JsonValues,
    Problems,
    booleans,
    column_values,
    either,
    elements,
    expect,
    expect_texts,
    members,
    python_texts,
    raw_texts,
    read_sound,
    whole_numbers,
)
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import concepts_of, topics_of
from fastscore.suites.preference_shift.options import PLOT, PreferenceShift
from fastscore.suites.preference_shift.schema import SHIFT_KEY, SOURCE, SYSTEM, USER

_SPEAKER = next(
    item for column in SOURCE.columns for item in column.items if item.name == "speaker"
)
_ALIASES = {"title": "name", "plot_keywords": PLOT}
_SUFFIXES = r"(\.(json|jsonl|ndjson|parquet))?(\.(gz|zst))?$"


def read_messages(conversations: pl.Series, problems: Problems) -> tuple[pl.DataFrame, JsonValues]:
    """Read the arrays of turns, and their metadata; note what cannot be used.

    A text is empty where there is none. ``shifts``: whether metadata say that the preference does.
    """
    arrays = column_values(conversations)
    problems.note(arrays, np.flatnonzero(arrays.is_missing), "an array of turns", "missing_field")
    problems.note(arrays, np.flatnonzero(arrays.tags != ARRAY), "an array of turns")
    turn, dialogue = elements(arrays)
    problems.note(turn, np.flatnonzero(turn.tags != OBJECT), "an object that holds a turn")
    spoken = members(turn, ("speaker", "text", "user_meta", "meta"), problems)
    # a turn's user_meta, or its meta where there is none
    own, other = (
        expect(spoken[name], OBJECT, "an object or null", problems)
        for name in ("user_meta", "meta")
    )
    meta = either(own, other, (own.tags == OBJECT) | (other.tags != OBJECT))
    flags = members(meta, ("shift_event", "is_shift"), problems)
    number = np.arange(len(dialogue))
    messages = pl.DataFrame(
        {
            "dialogue_row": dialogue,
            "place": place_in_group(dialogue),
            "speaker": expect_texts(spoken["speaker"], problems, or_empty=False),
            "text": expect_texts(spoken["text"], problems, or_empty=True),
            "has_text": ~spoken["text"].is_missing,
            "has_meta": meta.tags == OBJECT,
            "shifts": booleans(flags["shift_event"], problems)
            | booleans(flags["is_shift"], problems),
            "meta_row": number,
            "message": number,
        }
    )
    return messages, meta


def merge_speakers(spoken: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Join consecutive messages of a speaker; return them, and what they are made of, numbered.

    What is joined has its texts on lines of their own, the last metadata, and any one's shift.
    """
    goes_on = C("speaker").eq_missing(C("speaker").shift()) & (
        C("dialogue_row") == C("dialogue_row").shift()
    )
    spoken = spoken.with_columns(message=(~goes_on.fill_null(False)).cast(pl.Int64).cum_sum() - 1)
    messages = spoken.group_by("message", maintain_order=True).agg(
        C("dialogue_row", "speaker").first(),
        C("text").str.join("\n"),
        C("has_text", "has_meta", "shifts").any(),
        meta_row=C("meta_row").filter("has_meta").last(),
    )
    # a system turn at the start answers nothing
    leads = (C("speaker").first() == SYSTEM).fill_null(False).cast(pl.Int64)
    place = (pl.int_range(pl.len()) - leads).over("dialogue_row")
    return messages.with_columns(place=place), spoken


def pair_turns(messages: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the messages of USER at even places, and those of SYSTEM right after them."""
    same = C("dialogue_row") == C("dialogue_row").shift(-1)
    answered = (C("speaker") == USER) & (C("speaker").shift(-1) == SYSTEM) & same
    marked = messages.with_columns(asks=(answered & (C("place") % 2 == 0)).fill_null(False))
    return marked.filter("asks"), marked.filter(C("asks").shift(fill_value=False))


def read_events(raw: pl.DataFrame, options: PreferenceShift) -> Events:
    """Read conversations."""
    events, rejects = read_sound(raw, lambda rows: _read(rows, options))
    return replace(events, rejects=pl.concat([rejects, events.rejects]))


def _read(raw: pl.DataFrame, options: PreferenceShift) -> tuple[Events, Problems]:
    problems = Problems()
    spoken, meta = read_messages(raw["conversation"], problems)
    messages = spoken
    if options.merge_speakers:
        messages, spoken = merge_speakers(spoken)
    user, system = pair_turns(messages)
    paired = pl.concat([user["message"], system["message"]])
    unpaired = spoken.filter(~C("message").is_in(paired.implode()))

    events, has_events, ignored = _read_shift_events(raw, problems)
    if options.merge_speakers:
        events = _renumber_shift_events(events, _number(spoken), _number(messages))
    with_metadata = messages.filter(C("speaker") == USER, "has_meta")["dialogue_row"]
    user_meta = meta.take(user["meta_row"].fill_null(0).to_numpy()).where(
        user["has_meta"].to_numpy()
    )
    gold, has_gold = _read_gold(user_meta, options, problems)
    as_empty = options.zero_without_turns
    turns = user.select(
        "dialogue_row",
        turn=1 + place_in_group(user["dialogue_row"].to_numpy()),
        user_text="text",
        user_meta=raw_texts(user_meta),
        has_gold=has_gold,
        has_user_text=C("has_text") | as_empty,
    ).hstack(system.select(system_text="text", has_system_text=C("has_text") | as_empty))
    dialogues = (
        name_dialogues(raw)
        .with_columns(dialogue_row=pl.int_range(raw.height))
        .join(
            unpaired.group_by("dialogue_row").len("n_unpaired"),
            on="dialogue_row",
            how="left",
            maintain_order="left",
        )
        .with_columns(
            C("n_unpaired").cast(pl.Int64).fill_null(0),
            has_shift_metadata=has_events | C("dialogue_row").is_in(with_metadata.implode()),
        )
    )
    # of a conversation no turn of which pairs, one of the parts left aside weighs as a reject
    without_pair = dialogues.filter(C("n_unpaired") > 0).join(turns, on="dialogue_row", how="anti")
    about = unpaired.select(
        field=pl.format("conversation[{}]", "place"),
        found=pl.format("a turn of {}", C("speaker").fill_null("nobody")),
    )
    unpaired_rejects = _rejects(
        raw,
        unpaired["dialogue_row"].to_numpy(),
        **about.to_dict(),
        reason="unpaired_turn",
        expected="USER at an even place (from 0) with SYSTEM after it",
    )
    rejects = pl.concat([unpaired_rejects, ignored])
    shifts = pl.concat([events, _number(messages).filter("shifts").select(SHIFT_KEY)])
    read = Events(
        {
            "dialogues": dialogues,
            "turns": turns,
            "shifts": shifts.unique().sort(SHIFT_KEY),
            "gold": gold,
        },
        rejects,
        {
            "dialogues": dialogues.height,
            PAIRED_TURNS: turns.height,
            UNPAIRED_TURNS: unpaired.height,
            PARTIAL_REJECTS: rejects.height - without_pair.height,
        },
        _nulls(spoken),
        nulls_are_empty=as_empty,
        n_units=turns.height,
    )
    return read, problems


def _number(messages: pl.DataFrame) -> pl.DataFrame:
    """Return the messages of USER with their number in the conversation, ``turn``."""
    asked = messages.filter(C("speaker") == USER)
    return asked.with_columns(turn=1 + place_in_group(asked["dialogue_row"].to_numpy()))


def _nulls(spoken: pl.DataFrame) -> dict[str, Nulls]:
    """Count what messages lack; metadata are asked of the user's."""
    user = spoken.filter(C("speaker") == USER)
    words = unknown_words(spoken["speaker"], _SPEAKER.vocabulary)
    return {
        "conversation[].speaker": Nulls(spoken["speaker"].null_count(), spoken.height, words),
        "conversation[].text": Nulls(spoken.filter(~C("has_text")).height, spoken.height),
        "conversation[].user_meta": Nulls(user.filter(~C("has_meta")).height, user.height),
    }


def _renumber_shift_events(
    events: pl.DataFrame, asked: pl.DataFrame, merged: pl.DataFrame
) -> pl.DataFrame:
    """Renumber shift events, which count messages of USER, by the merged ones.

    Points beyond the last turn stay as far beyond the last that is merged.
    """
    moved = asked.select(*SHIFT_KEY, "message").join(
        merged.select("message", merged_turn="turn"), on="message"
    )
    beyond = C("turn") - C("n_asked").fill_null(0) + C("n_merged").fill_null(0)
    return (
        events.join(moved, on=SHIFT_KEY, how="left")
        .join(asked.group_by("dialogue_row").len("n_asked"), on="dialogue_row", how="left")
        .join(merged.group_by("dialogue_row").len("n_merged"), on="dialogue_row", how="left")
        .select("dialogue_row", turn=pl.coalesce("merged_turn", beyond.cast(pl.Int64)))
    )


def _read_shift_events(
    raw: pl.DataFrame, problems: Problems
) -> tuple[pl.DataFrame, pl.Series, pl.DataFrame]:
    """Read top-level shift events: their turns, whose logs have any, and rejects without a turn.

    As published these count for nothing.
    """
    arrays = column_values(raw["shift_events"])
    problems.note(
        arrays,
        np.flatnonzero((arrays.tags != ARRAY) & ~arrays.is_missing),
        "an array of shift events or null",
    )
    event, owner = elements(arrays)
    problems.note(event, np.flatnonzero(event.tags != OBJECT), "an object that holds a shift event")
    turn = members(event, ("turn",), problems)["turn"]
    number = whole_numbers(turn.where(turn.tags == INTEGER), problems)
    events = pl.DataFrame({"dialogue_row": owner, "turn": number})
    ignored = np.flatnonzero(number < 1)
    rejects = _rejects(
        raw,
        owner[ignored],
        field=[turn.path(row) for row in ignored.tolist()],
        reason="out_of_range",
        found=[turn.describe(row) for row in ignored.tolist()],
        expected="the number of a user turn, from 1",
    )
    return events.filter(C("turn") >= 1), pl.Series(arrays.tags == ARRAY), rejects


def _read_gold(
    meta: JsonValues, options: PreferenceShift, problems: Problems
) -> tuple[pl.DataFrame, Mask]:
    """Read the constraints that user turns carry, a row a value, and which turns carry any."""
    constraints = expect(
        members(meta, ("constraints",), problems)["constraints"],
        OBJECT,
        "an object of values by field, or null",
        problems,
    )
    fields = (*options.field_names, *((PLOT,) if options.plot_keywords else ()))
    keys = (*fields, *(alias for alias, name in _ALIASES.items() if name in fields))
    schema = {"turn_row": pl.Int64, "text": pl.String, "field": pl.String}
    frames = [pl.DataFrame(schema=schema)]
    for key, values in members(constraints, keys, problems).items():
        name = _ALIASES.get(key, key)
        listed, owner = elements(values)
        single = np.flatnonzero((values.tags != ARRAY) & ~values.is_missing)
        for turn_row, given in ((owner, listed), (single, values.take(single))):
            nested = np.flatnonzero((given.tags == ARRAY) | (given.tags == OBJECT))
            problems.note(given, nested, "a text or a number")
            text = python_texts(given, problems, falsy_is_empty=True)
            field = pl.Series([name]).new_from_index(0, text.len())
            frames.append(pl.DataFrame({"turn_row": turn_row, "text": text, "field": field}))
    gold = pl.concat(frames).filter(C("text").str.strip_chars() != "")
    return gold.sort("turn_row", maintain_order=True), constraints.tags == OBJECT


_WITHIN_FILE = r"((?:[:/](?:row=)?\d+)+)$"


def name_dialogues(raw: pl.DataFrame) -> pl.DataFrame:
    """Return what names each conversation and where it is; without an id its place does."""
    stem = C("file").str.split("/").list.last().str.replace(_SUFFIXES, "")
    # of a document that is one conversation the file is all of its place
    within = C(IDENTITY).str.replace(r"/model=.*$", "").str.extract(_WITHIN_FILE)
    return identify(raw, SOURCE).select(
        "file",
        "line",
        C(IDENTITY).alias("dialogue"),
        pl.coalesce("session_id", pl.concat_str(stem, within.fill_null(""))),
        C("model_name").alias("model"),
        "true_genre",
        "judge",
    )


def _rejects(
    raw: pl.DataFrame, rows: Indices, **columns: str | Sequence[str] | pl.Series
) -> pl.DataFrame:
    """Make rejects of these conversations."""
    told = {
        name: what if isinstance(what, str) else pl.Series(what, dtype=pl.String)
        for name, what in columns.items()
    }
    return rejects_of(raw.select(*ROW_SCHEMA)[rows], **told)


def texts_to_embed(events: Events, options: PreferenceShift) -> pl.Series:
    """Return the distinct texts that need a vector with these options.

    For the extractor ``embed`` all texts and all values; for segments the user's texts in
    conversations of several turns without shift metadata.
    """
    turns, dialogues = events.frames["turns"], events.frames["dialogues"]
    parts = [pl.Series("text", [], dtype=pl.String)]
    if options.extract == "embed":
        concepts = concepts_of(load_catalogue(options.catalogue), options)
        texts = [turns["user_text"], turns["system_text"], events.frames["gold"]["text"]]
        parts += [*texts, concepts.terms["value"]]
    if options.is_legacy:
        texts = [turns["user_text"], turns["system_text"]]
        parts += [*texts, *(topics_of(each)[1] for each in texts)]
    elif options.extract != "embed" and options.segments != "metadata":
        several = turns["dialogue_row"].is_duplicated()
        without = ~dialogues["has_shift_metadata"].gather(turns["dialogue_row"])
        parts.append(turns["user_text"].filter(several & without))
    return pl.concat([part.rename("text") for part in parts]).unique(maintain_order=True)
