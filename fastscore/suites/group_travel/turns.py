"""From raw rows to turns: whole dialogues of a row, or a row a turn, become one frame.

Few turns have cells: these are in frames of their own, column by column. Metadata of a dialogue's
first turn say under which condition it was held, and who took part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_readers.json.tokens import ARRAY, INTEGER, OBJECT, STRING

from fastscore.suites.base import Nulls
from fastscore.suites.columns import first_rows, gather_or_null, put_at, unknown_words
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
from fastscore.suites.grouping import factorize, first_of_each, offsets_of, row_numbers
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

Cells = Mapping[str, pl.DataFrame]

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
    # utterance is not blank) and `is_counted` (it or the intent is not). `kind` and `slot` are null
    # for other intents, `slot` for plain ones.
    turns: pl.DataFrame
    cells: Cells  # by column the cells that are not null, as text, by `turn`, a row of `turns`
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
    dialogue_row, dialogues = _number_dialogues(raw)
    rows = raw.with_columns(dialogue_row)
    is_whole = raw["turns"].is_not_null()
    whole = rows.filter(is_whole)
    nested, rejects = _turns_of(column_values(whole["turns"]), whole)
    of_whole, cells_of_whole = nested
    nulls = {f"turns[].{name}": _nulls(of_whole[name]) for name in TEXTS}
    nulls["turns[].intent"] = replace(
        nulls["turns[].intent"], unknown=unknown_words(of_whole["intent"], INTENTS)
    )
    n_turns = of_whole.height
    nulls["turns[].plan"] = Nulls(n_turns - cells_of_whole["plan"].height, n_turns)
    turns, cells = _in_order([_flat_turns(rows.filter(~is_whole)), nested])
    owner = turns["dialogue_row"].to_numpy()
    first_turn = first_rows(owner, np.arange(len(owner)), dialogues.height)
    dialogues = dialogues.with_columns(
        pl.when(is_present(dialogues["metadata"]))
        .then("metadata")
        .otherwise(cells_of_turns(cells["metadata"], first_turn))
        .alias("metadata")
    )
    # those of other turns are of what they synthesise
    n_described = int(is_present(dialogues["metadata"]).sum())
    nulls["metadata"] = Nulls(dialogues.height - n_described, dialogues.height)
    used = whole.filter(pl.Series(first_turn >= 0).gather(whole["dialogue_row"]))
    turns, dialogues = _with_turns(turns, dialogues)
    turns = _with_speakers(_with_intents(turns.with_columns(pl.col(*TEXTS).fill_null(""))))
    nameless = _reject_nameless(turns, dialogues)
    rejects = pl.concat([unusable, rejects, nameless])
    n_partial = rejects.join(used, on=["file", "line"], how="semi").height if rejects.height else 0
    return Turns(dialogues, turns, cells, rejects, n_partial, nulls)


def _nulls(texts: pl.Series) -> Nulls:
    return Nulls(texts.null_count(), len(texts))


def cells_of_turns(cells: pl.DataFrame, turns: Indices) -> pl.Series:
    """Return the cell of each turn, null where it has none or is negative."""
    turn = np.append(cells["turn"].to_numpy(), -1)
    place = np.searchsorted(turn[:-1], turns)
    return gather_or_null(cells["cell"], np.where((turn[place] == turns) & (turns >= 0), place, -1))


def _reject_rows(raw: pl.DataFrame) -> pl.DataFrame:
    """List the rows that are neither a turn nor a dialogue, or a turn of nobody knows which one."""
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


def _number_dialogues(raw: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """Return each row's dialogue, and the dialogues by first appearance."""
    number, _ = factorize(raw[IDENTITY])
    first = first_of_each(number)
    ids = raw.group_by(IDENTITY, maintain_order=True).agg(
        pl.col("dialogue_id").drop_nulls().first()
    )
    whole = pl.col("turns").is_not_null()
    dialogues = raw.select(
        "file",
        "line",
        IDENTITY,
        pl.col(IDENTITY).alias("dialogue"),
        pl.col("file").str.split("/").list.last().str.replace(_SUFFIX, "").alias("stem"),
        pl.when(whole).then("metadata").alias("metadata"),
    )[first]
    dialogues = dialogues.insert_column(0, pl.Series("dialogue_row", np.arange(len(first))))
    dialogues = dialogues.with_columns(ids["dialogue_id"])
    of_turns = dialogues.filter(~pl.Series(raw["turns"].is_not_null()).gather(first))
    refuse_blank_ids(of_turns, "dialogue_id")
    return pl.Series("dialogue_row", number), dialogues.drop(IDENTITY)


def _flat_turns(rows: pl.DataFrame) -> tuple[pl.DataFrame, Cells]:
    """Return rows that are turns, and their cells."""
    turn = np.arange(rows.height)
    cells = {
        name: pl.DataFrame({"turn": turn, "cell": rows[name]}).drop_nulls("cell") for name in CELLS
    }
    turns = rows.select(
        *("dialogue_row", "line", *TEXTS),
        pl.col("speaker").is_not_null().alias("has_speaker"),
        pl.col("utterance").is_not_null().alias("has_utterance"),
    )
    return turns, cells


def _in_order(parts: Sequence[tuple[pl.DataFrame, Cells]]) -> tuple[pl.DataFrame, Cells]:
    """Put turns, and the cells of each part's, together by dialogue."""
    turns = pl.concat([turns for turns, _ in parts], rechunk=True)
    of_parts = offsets_of(np.array([turns.height for turns, _ in parts])).tolist()
    cells = {
        name: pl.concat(
            [
                of_part[name].with_columns(pl.col("turn") + first) if first else of_part[name]
                for (_, of_part), first in zip(parts, of_parts[:-1], strict=True)
            ],
            rechunk=True,
        )
        for name in CELLS
    }
    row = turns["dialogue_row"].to_numpy()
    if (row[1:] >= row[:-1]).all():
        return turns, cells
    order = np.argsort(row, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return turns[order], {
        name: found.with_columns(pl.Series("turn", place[found["turn"].to_numpy()])).sort("turn")
        for name, found in cells.items()
    }


def _turns_of(
    values: JsonValues, rows: pl.DataFrame
) -> tuple[tuple[pl.DataFrame, Cells], pl.DataFrame]:
    problems = Problems()
    problems.note(values, np.flatnonzero(values.tags != ARRAY), "an array of turns")
    found = places(values, [dict.fromkeys((*TEXTS, "text", *CELLS))], problems).each
    is_turn = found.values.tags == OBJECT
    problems.note(found.values, np.flatnonzero(~is_turn), "an object that holds a turn")
    turn = {name: found[name].values for name in (*TEXTS, "text", *CELLS)}
    owner = found.owner[is_turn]
    if not is_turn.all():
        turn = {name: each.take(np.flatnonzero(is_turn)) for name, each in turn.items()}
    n_turns = np.bincount(owner, minlength=len(values))
    problems.note(values, np.flatnonzero(n_turns == 0), "at least one turn")
    texts = {name: _texts(turn[name], problems) for name in (*TEXTS, "text")}
    frame = pl.DataFrame(
        {
            "dialogue_row": rows["dialogue_row"][owner],
            "line": rows["line"][owner],
            "speaker": texts["speaker"],
            "intent": texts["intent"],
            "utterance": texts["utterance"].fill_null(texts["text"]),
            # what is of another type was given: it is a reject
            "has_speaker": ~turn["speaker"].is_missing,
            "has_utterance": ~(turn["utterance"].is_missing & turn["text"].is_missing),
        }
    )
    cells = {name: _cells(turn[name], problems) for name in CELLS}
    return (frame, cells), problems.rejects(rows)


def dialogue_metadata(rows: pl.DataFrame) -> pl.Series:
    """Return the metadata of rows that are dialogues: the row's, or else its first turn's."""
    own = is_present(rows["metadata"])
    turn, row = elements(column_values(pl.select(pl.when(~own).then(rows["turns"])).to_series()))
    is_turn = np.flatnonzero(turn.tags == OBJECT)
    first = is_turn[first_of_each(row[is_turn])]
    cells = _cells(members(turn.take(first), ("metadata",), Problems())["metadata"], Problems())
    of_turns = put_at(row[first[cells["turn"].to_numpy()]], cells["cell"], rows.height)
    return pl.select(pl.when(own).then(rows["metadata"]).otherwise(of_turns)).to_series()


def _texts(values: JsonValues, problems: Problems) -> pl.Series:
    """Return strings, and integers as their digits."""
    is_integer = values.tags == INTEGER
    usable = values.is_text | values.is_missing | is_integer
    problems.note(values, np.flatnonzero(~usable), "a string")
    found = texts(values, problems)
    return found.fill_null(raw_texts(values.where(is_integer))) if is_integer.any() else found


def _with_turns(turns: pl.DataFrame, dialogues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Leave out dialogues without a turn, which are rejects."""
    has_turns = np.zeros(dialogues.height, np.bool_)
    has_turns[turns["dialogue_row"].to_numpy()] = True
    if has_turns.all():
        return turns, dialogues
    number = pl.Series("dialogue_row", np.cumsum(has_turns) - 1)
    return (
        turns.with_columns(pl.lit(number).gather("dialogue_row").alias("dialogue_row")),
        dialogues.filter(pl.Series(has_turns)).with_columns(number.filter(pl.Series(has_turns))),
    )


def _cells(values: JsonValues, problems: Problems) -> pl.DataFrame:
    """Return values as cells: strings as they are, everything else as its JSON text."""
    turn = np.flatnonzero(~values.is_missing)
    present = values.take(turn)
    written = replace(present, tags=np.where(present.is_text, present.tags, STRING))
    return pl.DataFrame({"turn": turn, "cell": texts(written, problems)}).drop_nulls("cell")


def _with_intents(turns: pl.DataFrame) -> pl.DataFrame:
    codes, intents = factorize(turns["intent"])
    kinds = [_intent(intent) for intent in intents]
    is_said = turns["utterance"].str.strip_chars() != ""
    has_intent = (intents.str.strip_chars() != "")[codes]
    return turns.with_columns(
        is_said.alias("is_said"),
        (is_said | has_intent).alias("is_counted"),
        pl.Series("kind", [kind for kind, _ in kinds], dtype=pl.String)[codes],
        pl.Series("slot", [slot for _, slot in kinds], dtype=pl.String)[codes],
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
    codes, speakers = factorize(turns["speaker"])
    names = [" ".join(name.casefold().split()) for name in speakers]
    number, members = factorize(pl.Series("member", names, dtype=pl.String))
    member = members[number[codes]]
    turns = turns.with_columns(member)
    return turns.with_columns(
        pl.Series("member_row", row_numbers(turns, ["dialogue_row", "member"])),
        (member.is_in(SYSTEM_SPEAKERS)).alias("is_system"),
        (member.is_in(EVERYONE)).alias("is_everyone"),
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
        "stated_condition": pl.String(),
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
    is_no_count = stated_count is not None and count is None
    return (
        *(next((flag for flag in of_places if flag is not None), None) for of_places in flags),
        condition if condition in CONDITIONS else None,
        count,
        (len(members) if isinstance(members, list) else 0) or None,
        *(_name(told.get(key)) for key in _NAMES),
        no_object(value) or ("member_count is no whole number; ignored" if is_no_count else None),
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
    named = pl.col("stem").str.extract(_CONDITION_IN_NAME)
    told = pl.concat([read.dialogues, stated], how="horizontal").with_columns(
        pl.format("C{}", named).alias("named_condition")
    )
    seen = _flags_by_content(read, synthesis)
    told = told.join(seen, on="dialogue_row", how="left", maintain_order="left")
    by_condition = [
        [
            pl.col(f"{origin}_condition").replace_strict(
                {name: flags[place] for name, flags in CONDITIONS.items()},
                default=None,
                return_dtype=pl.Boolean,
            )
            for origin in ("stated", "named")
        ]
        for place in range(len(FLAGS))
    ]
    told = told.with_columns(
        *(
            pl.coalesce(flag, *by_condition[place], pl.col(f"{flag}_seen").fill_null(False))
            for place, flag in enumerate(FLAGS)
        ),
        *(_source(flag, by_condition[place]) for place, flag in enumerate(FLAGS)),
    )
    sources = [pl.col(f"{flag}_source") for flag in FLAGS]
    one_source = pl.all_horizontal(source == sources[0] for source in sources)
    return told.with_columns(
        pl.coalesce("dialogue_id", "stated_id", _stem_id()),
        pl.when(one_source)
        .then(sources[0])
        .otherwise(pl.concat_str(sources, separator=","))
        .alias("flag_source"),
        _condition().alias("condition"),
    ).with_columns(pl.coalesce("stated_scenario", _scenario()).alias("scenario"))


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


def _source(flag: str, by_condition: list[pl.Expr]) -> pl.Expr:
    metadata, condition, file_name, content = map(pl.lit, _SOURCES)
    return (
        pl.when(pl.col(flag).is_not_null())
        .then(metadata)
        .when(by_condition[0].is_not_null())
        .then(condition)
        .when(by_condition[1].is_not_null())
        .then(file_name)
        .otherwise(content)
        .alias(f"{flag}_source")
    )


def _condition() -> pl.Expr:
    names = [
        pl.when(
            pl.all_horizontal(
                pl.col(flag) == wanted for flag, wanted in zip(FLAGS, flags, strict=True)
            )
        ).then(pl.lit(name))
        for name, flags in CONDITIONS.items()
    ]
    return pl.coalesce(*names, pl.lit(CUSTOM))


def _flags_by_content(read: Turns, synthesis: pl.DataFrame) -> pl.DataFrame:
    """Return what the flags are by the turns themselves."""
    kind = pl.col("kind")
    provider = pl.col("member").filter(
        (kind == PROVIDE) & ~pl.col("is_system") & (pl.col("member") != "")
    )
    turns = read.turns.group_by("dialogue_row").agg(
        (provider.n_unique() >= 2).alias("multi_user_seen"),
        (kind == SYNTHESIZE).any().alias("enable_synthesis_seen"),
        kind.is_in([USER_FEEDBACK, SYS_FEEDBACK]).any().alias("enable_feedback_seen"),
    )
    theory = (
        synthesis.filter(pl.col("slot").is_in(ACTIONABLE) & pl.col("has_strategy"))
        .select("dialogue_row")
        .unique()
        .with_columns(pl.lit(True).alias("use_social_theory_seen"))
    )
    return turns.join(theory, on="dialogue_row", how="left")
