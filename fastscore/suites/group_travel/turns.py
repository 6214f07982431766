"""From raw rows to turns: whole dialogues of a row, or a row a turn, become one frame.

Few turns have cells: these are in frames of their own, column by column. Metadata of a dialogue's
first turn say under which condition it was held, and who took part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from fastscore_readers.json.tokens import ARRAY, INTEGER, OBJECT, STRING

from fastscore.suites.base import Nulls
from fastscore.suites.columns import put_at, unknown_words
from fastscore.suites.declarations import ROW_SCHEMA, rejects_of
from fastscore.suites.group_travel.catalogue import (
    as_flag,
    as_text,
    is_present,
    no_object,
    read_each,
)
from fastscore.suites.group_travel.lexicon import (
    ACCEPT_PLAN,
    ACTIONABLE,
    APPROVE,
    CATALOGUE_COLUMNS,
    CONDITIONS,
    CUSTOM,
    EVERYONE,
    FLAGS,
    INTENTS,
    INTENTS_OF_SLOTS,
    PLAIN_INTENTS,
    PROVIDE,
    SLOT_ALIASES,
    SYNTHESIZE,
    SYS_FEEDBACK,
    SYSTEM_SPEAKERS,
    USER_FEEDBACK,
)
from fastscore.suites.grouping import first_of_each, row_numbers
from fastscore.suites.identity import IDENTITY, refuse_blank_ids
from fastscore.suites.json_values import (
    JsonValues,
    Problems,
    column_values,
    elements,
    members,
    places,
    raw_texts,
    texts,
)

TEXTS = ("speaker", "intent", "utterance")
CELLS = ("metadata", "constraint_state", "plan", *CATALOGUE_COLUMNS)

_ROW_DIALOGUES = r"(?i)\.(?:jsonl|ndjson)(?:\.(?:gz|zst))?$"
_SUFFIX = r"(?i)(?:\.(?:csv|jsonl|ndjson|json|parquet))?(?:\.(?:gz|zst))?$"


@dataclass(frozen=True, slots=True)
class Turns:
    """Dialogues, their turns, and the rows that are neither."""

    # `file`, `line`, `stem`, `dialogue_id` and `metadata` (cell), by first appearance
    dialogues: pl.DataFrame
    # by dialogue and in order: `dialogue_row`, `line`, `speaker`, `member`, `member_row` (its
    # number, each dialogue's members apart), `is_system`, `is_everyone`, `intent`, `kind`, `slot`,
    # `utterance`, `has_speaker` and `has_utterance` (these were given, be it empty), `is_said` (the
    # utterance is not blank), `is_counted` (it or the intent is not), and the `CELLS` as text.
    # `kind` and `slot` are null for other intents, `slot` for plain ones.
    turns: pl.DataFrame
    rejects: pl.DataFrame  # in the schema of `REJECT_SCHEMA`
    # how many of them are turns, or parts of turns, of a row whose other turns are used
    n_partial: int
    nulls: Mapping[str, Nulls]  # how often the texts of turns in arrays are null, by path


def read_turns(raw: pl.DataFrame) -> Turns:
    """Read raw rows."""
    unusable = _reject_rows(raw)
    if unusable.height:
        raw = raw.join(
            unusable, on=[*ROW_SCHEMA], how="anti", nulls_equal=True, maintain_order="left"
        )
    rows, dialogues = _number_dialogues(raw)
    whole = rows.filter(pl.col("turns").is_not_null())
    nested, rejects = _turns_of(whole)
    nulls = {
        f"turns[].{name}": Nulls(nested[name].null_count(), nested.height)
        for name in (*TEXTS, "plan")
    }
    nulls["turns[].intent"] = replace(
        nulls["turns[].intent"], unknown=unknown_words(nested["intent"], INTENTS)
    )
    flat = _flat_turns(rows.filter(pl.col("turns").is_null()))
    turns = pl.concat([flat, nested]).sort("dialogue_row", maintain_order=True)
    first = turns.unique("dialogue_row", keep="first", maintain_order=True)
    dialogues = dialogues.join(
        first.select("dialogue_row", of_turn="metadata"),
        on="dialogue_row",
        how="left",
        maintain_order="left",
    ).with_columns(pl.when(is_present(dialogues["metadata"])).then("metadata").otherwise("of_turn"))
    # those of other turns are of what they synthesise
    n_described = int(is_present(dialogues["metadata"]).sum())
    nulls["metadata"] = Nulls(dialogues.height - n_described, dialogues.height)
    used = whole.join(first, on="dialogue_row", how="semi")
    # dialogues without a turn are rejects
    dialogues = (
        dialogues.drop("of_turn")
        .join(first, on="dialogue_row", how="semi", maintain_order="left")
        .with_columns(dialogue_row=pl.int_range(pl.len()))
    )
    turns = turns.with_columns(
        pl.col("dialogue_row").rle_id().cast(pl.Int64), pl.col(TEXTS).fill_null("")
    )
    turns = _with_speakers(_with_intents(turns))
    rejects = pl.concat([unusable, rejects, _reject_nameless(turns, dialogues)])
    n_partial = rejects.join(used, on=["file", "line"], how="semi").height if rejects.height else 0
    return Turns(dialogues, turns, rejects, n_partial, nulls)


def _reject_rows(raw: pl.DataFrame) -> pl.DataFrame:
    """List rows that are neither a turn nor a dialogue, and turns without a dialogue's id."""
    no_dialogue = pl.col("dialogue_id").is_null() & pl.col("file").str.contains(_ROW_DIALOGUES)
    no_speaker, no_intent = pl.col("speaker").is_null(), pl.col("intent").is_null()
    nothing = no_intent & (no_speaker | no_intent.all().over("file"))
    field = (
        pl.when(nothing & no_speaker)
        .then(pl.lit("speaker"))
        .when(nothing)
        .then(pl.lit("intent"))
        .otherwise(pl.lit("dialogue_id"))
    )
    rows = raw.filter(pl.col("turns").is_null() & (nothing | no_dialogue))
    return rejects_of(
        rows.select(*ROW_SCHEMA, field=field),
        reason="missing_field",
        found="nothing",
        expected="a turn's speaker, intent and dialogue_id, or a dialogue's turns",
    )


def _number_dialogues(raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give rows their ``dialogue_row``, and return the dialogues by first appearance."""
    is_whole = pl.col("turns").is_not_null()
    dialogues = (
        raw.group_by(IDENTITY, maintain_order=True)
        .agg(
            pl.col("file", "line").first(),
            pl.col("dialogue_id").drop_nulls().first(),
            pl.when(is_whole).then("metadata").first().alias("metadata"),
            is_whole=is_whole.first(),
        )
        .with_columns(
            dialogue_row=pl.int_range(pl.len()),
            dialogue=IDENTITY,
            stem=pl.col("file").str.split("/").list.last().str.replace(_SUFFIX, ""),
        )
    )
    refuse_blank_ids(dialogues.filter(~pl.col("is_whole")), "dialogue_id")
    rows = raw.join(
        dialogues.select(IDENTITY, "dialogue_row"), on=IDENTITY, how="left", maintain_order="left"
    )
    return rows, dialogues.drop(IDENTITY, "is_whole")


def _flat_turns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows that are turns."""
    return rows.select(
        *("dialogue_row", "line", *TEXTS, *CELLS),
        has_speaker=pl.col("speaker").is_not_null(),
        has_utterance=pl.col("utterance").is_not_null(),
    )


def _turns_of(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the turns in rows that are dialogues, and the rejects."""
    values, problems = column_values(rows["turns"]), Problems()
    problems.note(values, np.flatnonzero(values.tags != ARRAY), "an array of turns")
    fields = (*TEXTS, "text", *CELLS)
    found = places(values, [dict.fromkeys(fields)], problems).each
    is_turn = found.values.tags == OBJECT
    problems.note(found.values, np.flatnonzero(~is_turn), "an object that holds a turn")
    turn = {name: found[name].values.take(np.flatnonzero(is_turn)) for name in fields}
    owner = found.owner[is_turn]
    n_turns = np.bincount(owner, minlength=len(values))
    problems.note(values, np.flatnonzero(n_turns == 0), "at least one turn")
    texts = {name: _texts(turn[name], problems) for name in (*TEXTS, "text")}
    turns = pl.DataFrame(
        {
            **{name: rows[name][owner] for name in ("dialogue_row", "line")},
            **{name: texts[name] for name in ("speaker", "intent")},
            "utterance": texts["utterance"].fill_null(texts["text"]),
            **{name: _cells(turn[name], problems) for name in CELLS},
            # what is of another type was given: it is a reject
            "has_speaker": ~turn["speaker"].is_missing,
            "has_utterance": ~(turn["utterance"].is_missing & turn["text"].is_missing),
        }
    )
    return turns, problems.rejects(rows)


def dialogue_metadata(rows: pl.DataFrame) -> pl.Series:
    """Return the metadata of rows that are dialogues: the row's, or else its first turn's."""
    own = is_present(rows["metadata"])
    turn, row = elements(column_values(pl.select(pl.when(~own).then(rows["turns"])).to_series()))
    is_turn = np.flatnonzero(turn.tags == OBJECT)
    first = is_turn[first_of_each(row[is_turn])]
    cells = _cells(members(turn.take(first), ("metadata",), Problems())["metadata"], Problems())
    of_turns = put_at(row[first], cells, rows.height)
    return pl.select(pl.when(own).then(rows["metadata"]).otherwise(of_turns)).to_series()


def _texts(values: JsonValues, problems: Problems) -> pl.Series:
    """Return strings, and integers as their digits."""
    is_integer = values.tags == INTEGER
    usable = values.is_text | values.is_missing | is_integer
    problems.note(values, np.flatnonzero(~usable), "a string")
    found = texts(values, problems)
    return found.fill_null(raw_texts(values.where(is_integer))) if is_integer.any() else found


def _cells(values: JsonValues, problems: Problems) -> pl.Series:
    """Return values as cells: strings as they are, everything else as its JSON text."""
    is_written = values.is_text | values.is_missing
    written = replace(values, tags=np.where(is_written, values.tags, STRING))
    return texts(written, problems)


def _with_intents(turns: pl.DataFrame) -> pl.DataFrame:
    """Add what turns do by their intent, ``kind`` and ``slot``, and whether they say anything."""
    intents = [(intent, *_intent(intent)) for intent in turns["intent"].unique()]
    schema = dict.fromkeys(("intent", "kind", "slot"), pl.String)
    known = pl.DataFrame(intents, schema, orient="row")
    is_said = pl.col("utterance").str.strip_chars() != ""
    has_intent = pl.col("intent").str.strip_chars() != ""
    return turns.join(known, on="intent", how="left", maintain_order="left").with_columns(
        is_said=is_said, is_counted=is_said | has_intent
    )


def _intent(intent: str) -> tuple[str | None, str | None]:
    """Return an intent's kind and slot."""
    name = intent.strip().casefold()
    if name in PLAIN_INTENTS:
        return name, None
    for kind in INTENTS_OF_SLOTS:
        if name.startswith(f"{kind}_") and len(name) > len(kind) + 1:
            return kind, canonical_slot(name[len(kind) + 1 :])
    return None, None


@lru_cache(maxsize=4096)
def canonical_slot(name: str) -> str:
    """Return a slot's usual name."""
    plain = name.strip().casefold()
    return SLOT_ALIASES.get(plain, plain)


def _with_speakers(turns: pl.DataFrame) -> pl.DataFrame:
    """Add the ``member`` who speaks, and whether it is the system or everyone."""
    names = [(name, " ".join(name.casefold().split())) for name in turns["speaker"].unique()]
    schema = dict.fromkeys(("speaker", "member"), pl.String)
    known = pl.DataFrame(names, schema, orient="row")
    turns = turns.join(known, on="speaker", how="left", maintain_order="left")
    return turns.with_columns(
        member_row=pl.Series(row_numbers(turns, ["dialogue_row", "member"])),
        is_system=pl.col("member").is_in(SYSTEM_SPEAKERS),
        is_everyone=pl.col("member").is_in(EVERYONE),
    )


def _reject_nameless(turns: pl.DataFrame, dialogues: pl.DataFrame) -> pl.DataFrame:
    """List the turns that state or accept something, without a speaker."""
    nameless = turns.filter(
        (pl.col("member") == "") & pl.col("kind").is_in([PROVIDE, ACCEPT_PLAN, APPROVE])
    )
    return rejects_of(
        nameless,
        file=dialogues["file"].gather(nameless["dialogue_row"]),
        field="speaker",
        reason="missing_field",
        found="no name",
        expected=pl.format("who speaks in a turn of intent {}", "intent"),
    )


_CONDITION_IN_NAME = r"(?i)(?:^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)([1-5])(?:[^0-9a-z]|$)"
_CONDITION_AND_SEPARATOR = r"(?i)(^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)[1-5]($|[^0-9a-z])"
_NESTED = ("condition_flags", "flags")
_MOST_MEMBERS = 1 << 53
_NAMES = {"group_type": "group_type", "scenario": "stated_scenario", "dialogue_id": "stated_id"}
_OF_METADATA = pl.Schema(
    {
        **dict.fromkeys(FLAGS, pl.Boolean()),
        "by_condition": pl.String(),
        **dict.fromkeys(("member_count", "listed_members"), pl.Int64()),
        **dict.fromkeys((*_NAMES.values(), "metadata_fault"), pl.String()),
    }
)
_SOURCES = ("metadata", "condition", "file_name", "content")


def _read_metadata(value: Any) -> tuple[Any, ...]:
    """Return what the metadata of a dialogue's first turn says, null where it says nothing."""
    told = value if isinstance(value, dict) else {}
    places = [told, *(told[name] for name in _NESTED if isinstance(told.get(name), dict))]
    flags = [[as_flag(place.get(flag)) for place in places] for flag in FLAGS]
    stated, members = told.get("condition"), told.get("members")
    condition = stated.strip().upper() if isinstance(stated, str) else None
    stated_count = told.get("member_count")
    count = _count(stated_count)
    faults = [no_object(value)]
    if stated_count is not None and count is None:
        faults.append("member_count is no whole number; ignored")
    if stated not in (None, "") and condition not in (*CONDITIONS, CUSTOM.upper()):
        faults.append(f"condition is {stated!r:.60}, not C1 to C5; ignored. Use group_type")
    return (
        *(next((flag for flag in of_places if flag is not None), None) for of_places in flags),
        condition if condition in CONDITIONS else None,
        count,
        (len(members) if isinstance(members, list) else 0) or None,
        *(_name(told.get(key)) for key in _NAMES),
        "; ".join(filter(None, faults)) or None,
    )


def read_stated_ids(rows: pl.DataFrame) -> pl.Series:
    """Return the id in the metadata of each row that is a dialogue or its first turn."""
    return read_each(
        dialogue_metadata(rows).fill_null(""),
        lambda value: [_name(value.get("dialogue_id")) if isinstance(value, dict) else None],
        pl.Schema({"id": pl.String()}),
    ).to_series()


def _name(value: Any) -> str | None:
    """Return a text, or a whole number as text."""
    return None if isinstance(value, float) else as_text(value)


def _count(value: object) -> int | None:
    """Return a whole number that is not negative, nor absurd, also from a text."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _MOST_MEMBERS and value % 1 == 0 else None


def name_conditions(read: Turns, synthesis: pl.DataFrame) -> pl.DataFrame:
    """Give dialogues their id, flags, condition and members."""
    stated = read_each(read.dialogues["metadata"].fill_null(""), _read_metadata, _OF_METADATA)
    told = read.dialogues.hstack(stated).with_columns(
        by_file_name=pl.format("C{}", pl.col("stem").str.extract(_CONDITION_IN_NAME))
    )
    rows = [(name, *flags) for name, flags in CONDITIONS.items()]
    conditions = pl.DataFrame(rows, ("condition", *FLAGS), orient="row")
    for origin in ("condition", "file_name"):
        flags_of = conditions.select(
            pl.col("condition").alias(f"by_{origin}"),
            pl.col(FLAGS).name.suffix(f"_by_{origin}"),
        )
        told = told.join(flags_of, on=f"by_{origin}", how="left", maintain_order="left")
    told = told.join(
        _flags_by_content(read, synthesis), on="dialogue_row", how="left", maintain_order="left"
    )
    # the first that tells a flag decides
    origins = {
        flag: {"metadata": flag, **{name: f"{flag}_by_{name}" for name in _SOURCES[1:]}}
        for flag in FLAGS
    }
    told = told.with_columns(
        *(pl.coalesce(columns.values()).alias(flag) for flag, columns in origins.items()),
        *(
            pl.coalesce(
                pl.when(pl.col(column).is_not_null()).then(pl.lit(source))
                for source, column in columns.items()
            ).alias(f"{flag}_source")
            for flag, columns in origins.items()
        ),
    )
    sources = [pl.col(f"{flag}_source") for flag in FLAGS]
    one_source = pl.all_horizontal(source == sources[0] for source in sources)
    return (
        told.join(conditions, on=FLAGS, how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("dialogue_id", "stated_id", _stem_id()),
            pl.col("condition").fill_null(CUSTOM),
            flag_source=pl.when(one_source)
            .then(sources[0])
            .otherwise(pl.concat_str(sources, separator=",")),
        )
        .with_columns(scenario=pl.coalesce("stated_scenario", _scenario()))
    )


def _scenario() -> pl.Expr:
    """Name what dialogues of several conditions have in common: the id without the condition."""
    without = pl.col("dialogue_id").str.replace(_CONDITION_AND_SEPARATOR, "${1}${2}")
    bare = without.str.strip_chars(" -_.:/")
    return (
        pl.when(bare == "")
        .then("dialogue_id")
        .otherwise(pl.when(without == pl.col("dialogue_id")).then("dialogue_id").otherwise(bare))
    )


def _stem_id() -> pl.Expr:
    """Name a dialogue by its file; by its line too where the file has several of them."""
    several = pl.len().over("file") > 1
    return pl.when(several).then(pl.format("{}:{}", "stem", "line")).otherwise("stem")


def _flags_by_content(read: Turns, synthesis: pl.DataFrame) -> pl.DataFrame:
    """Return what the flags are by the turns themselves."""
    kind = pl.col("kind")
    provider = pl.col("member").filter(
        (kind == PROVIDE) & ~pl.col("is_system") & (pl.col("member") != "")
    )
    turns = read.turns.group_by("dialogue_row").agg(
        multi_user_by_content=provider.n_unique() >= 2,
        enable_synthesis_by_content=(kind == SYNTHESIZE).any(),
        enable_feedback_by_content=kind.is_in([USER_FEEDBACK, SYS_FEEDBACK]).any(),
    )
    names_theory = pl.col("slot").is_in(ACTIONABLE) & pl.col("has_strategy")
    theory = synthesis.group_by("dialogue_row").agg(use_social_theory_by_content=names_theory.any())
    return turns.join(theory, on="dialogue_row", how="left").with_columns(
        pl.col("use_social_theory_by_content").fill_null(False)
    )
