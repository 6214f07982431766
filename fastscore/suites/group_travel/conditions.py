"""Under which condition a dialogue was held, and who took part, by its metadata."""

from typing import Any, NamedTuple

import polars as pl

from fastscore.suites.group_travel.cells import read_distinct, truth
from fastscore.suites.group_travel.schema import ACTIONABLE, CONDITIONS, CUSTOM, FLAGS
from fastscore.suites.group_travel.turns import (
    PROVIDE,
    SYNTHESIZE,
    SYS_FEEDBACK,
    USER_FEEDBACK,
    Turns,
)

_CONDITION_IN_NAME = r"(?i)(?:^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)([1-5])(?:[^0-9a-z]|$)"
_SOURCES = ("metadata", "condition", "file_name", "content")


class Metadata(NamedTuple):
    """What the metadata of a dialogue's first turn says; None where it does not."""

    multi_user: bool | None = None
    enable_synthesis: bool | None = None
    use_social_theory: bool | None = None
    enable_feedback: bool | None = None
    stated_condition: str | None = None
    member_count: int | None = None
    listed_members: int | None = None
    group_type: str | None = None
    stated_id: str | None = None
    is_readable: bool = True


def read_metadata(value: Any) -> Metadata:
    """Read a parsed metadata cell."""
    if not isinstance(value, dict):
        return Metadata(is_readable=value is None)
    nested = [value.get(key) for key in ("condition_flags", "flags")]
    places = [value, *(place for place in nested if isinstance(place, dict))]
    flags = {
        flag: next(
            (found for place in places if (found := truth(place.get(flag))) is not None), None
        )
        for flag in FLAGS
    }
    condition = str(value.get("condition") or "").strip().upper()
    members = value.get("members")
    group_type, stated_id = value.get("group_type"), value.get("dialogue_id")
    return Metadata(
        multi_user=flags["multi_user"],
        enable_synthesis=flags["enable_synthesis"],
        use_social_theory=flags["use_social_theory"],
        enable_feedback=flags["enable_feedback"],
        stated_condition=condition if condition in CONDITIONS else None,
        member_count=_count(value.get("member_count")),
        listed_members=len(members) if isinstance(members, list) and members else None,
        group_type=str(group_type) if isinstance(group_type, str | int) else None,
        stated_id=str(stated_id) if isinstance(stated_id, str | int) else None,
    )


def _count(value: object) -> int | None:
    """Return a whole number that is not negative, also from a text."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value % 1 == 0 else None


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
        ``group_type``, ``member_count`` and ``listed_members`` (null where unknown) and
        ``metadata_is_readable``.
    """
    codes, values = read_distinct(read.dialogues["metadata"].fill_null(""), read_metadata)
    schema = {
        **dict.fromkeys(FLAGS, pl.Boolean),
        "stated_condition": pl.String,
        "member_count": pl.Int64,
        "listed_members": pl.Int64,
        "group_type": pl.String,
        "stated_id": pl.String,
        "metadata_is_readable": pl.Boolean,
    }
    stated = pl.DataFrame(values, schema=schema, orient="row")[codes]
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
    provider = pl.col("member").filter((kind == PROVIDE) & ~pl.col("is_system"))
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
