"""Under which condition a dialogue was held, and who took part, by its metadata."""

from typing import Any

import polars as pl

from fastscore.suites.group_travel.catalogue import (
    as_flag,
    as_object,
    as_text,
    frame_of,
    parse_cells,
)
from fastscore.suites.group_travel.terms import (
    ACTIONABLE,
    CONDITIONS,
    CUSTOM,
    FLAGS,
    PROVIDE,
    SYNTHESIZE,
    SYS_FEEDBACK,
    USER_FEEDBACK,
)
from fastscore.suites.group_travel.turns import Turns, dialogue_metadata
from fastscore.suites.grouping import factorize

_CONDITION_IN_NAME = r"(?i)(?:^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)([1-5])(?:[^0-9a-z]|$)"
_CONDITION_AND_SEPARATOR = r"(?i)(^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)[1-5]($|[^0-9a-z])"
_NESTED = ("condition_flags", "flags")
_MOST_MEMBERS = 1 << 53
_OF_METADATA = pl.Schema(
    {
        **dict.fromkeys(FLAGS, pl.Boolean),
        "stated_condition": pl.String,
        **dict.fromkeys(("member_count", "listed_members"), pl.Int64),
        **dict.fromkeys(
            ("group_type", "stated_scenario", "stated_id", "metadata_fault"), pl.String
        ),
    }
)
_SOURCES = ("metadata", "condition", "file_name", "content")


def read_metadata(cells: pl.Series) -> pl.DataFrame:
    """Read what the metadata of dialogues' first turns says; null where it does not.

    Returns
    -------
    pl.DataFrame
        A row a cell: the flags, ``stated_condition``, ``member_count``, ``listed_members``,
        ``group_type``, ``stated_scenario``, ``stated_id`` and ``metadata_fault``, what could not
        be read.
    """
    codes, found = factorize(cells)
    rows = [_read_metadata(value) for value in parse_cells(found)]
    return frame_of(rows, _OF_METADATA)[codes]


def _read_metadata(value: Any) -> tuple[Any, ...]:
    found = as_object(value)
    places = [found, *(as_object(found.get(name)) for name in _NESTED)]
    stated = found.get("condition")
    condition = stated.strip().upper() if isinstance(stated, str) else None
    members, count = found.get("members"), _count(found.get("member_count"))
    fault = None
    if value is not None and not isinstance(value, dict):
        fault = "no object; ignored"
    elif count is None and found.get("member_count") is not None:
        fault = "member_count is no whole number; ignored"
    return (
        *(_first_flag(places, flag) for flag in FLAGS),
        condition if condition in CONDITIONS else None,
        count,
        (len(members) or None) if isinstance(members, list) else None,
        *(_name(found.get(name)) for name in ("group_type", "scenario", "dialogue_id")),
        fault,
    )


def _first_flag(places: list[dict[str, Any]], flag: str) -> bool | None:
    flags = (as_flag(place.get(flag)) for place in places)
    return next((value for value in flags if value is not None), None)


def read_stated_ids(rows: pl.DataFrame) -> pl.Series:
    """Return the id in the metadata of rows that are dialogues, null without one."""
    codes, found = factorize(dialogue_metadata(rows).fill_null(""))
    ids = [_name(as_object(value).get("dialogue_id")) for value in parse_cells(found)]
    return pl.Series(ids, dtype=pl.String).gather(codes)


def _name(value: Any) -> str | None:
    """Return texts and whole numbers as text."""
    return None if isinstance(value, float) else as_text(value)


def _count(value: object) -> int | None:
    """Return a whole number that is not negative, nor absurd, also from a text."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _MOST_MEMBERS and value % 1 == 0 else None


def name_conditions(read: Turns, synthesis: pl.DataFrame) -> pl.DataFrame:
    """Give dialogues their id, flags, condition and members.

    Parameters
    ----------
    read
        The dialogues and their turns.
    synthesis
        By dialogue and slot: `synthesis.read_synthesis`.

    Returns
    -------
    pl.DataFrame
        The dialogues with ``dialogue``, the flags, ``flag_source``, ``condition``,
        ``scenario``, ``group_type``, ``member_count`` and ``listed_members`` (null if unknown)
        and ``metadata_fault``.
    """
    stated = read_metadata(read.dialogues["metadata"].fill_null(""))
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
        pl.coalesce("dialogue_id", "stated_id", _stem_id()).alias("dialogue"),
        pl.when(one_source)
        .then(sources[0])
        .otherwise(pl.concat_str(sources, separator=","))
        .alias("flag_source"),
        _condition().alias("condition"),
    ).with_columns(pl.coalesce("stated_scenario", _scenario()).alias("scenario"))


def _scenario() -> pl.Expr:
    """Name what dialogues of several conditions have in common: the id without the condition."""
    without = pl.col("dialogue").str.replace(_CONDITION_AND_SEPARATOR, "${1}${2}")
    bare = without.str.strip_chars(" -_.:/")
    return (
        pl.when(bare == "")
        .then("dialogue")
        .otherwise(pl.when(without == pl.col("dialogue")).then("dialogue").otherwise(bare))
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
