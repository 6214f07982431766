"""Under which condition a dialogue was held, and who took part, by its metadata."""

import numpy as np
import polars as pl
from fastscore_readers.json.places import Shape
from fastscore_readers.json.tokens import FLOAT, OBJECT

from fastscore.suites.group_travel.catalogue import cell_values, no_object
from fastscore.suites.group_travel.json_members import BLANKS, flags, scalars, texts_or_replaced
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
from fastscore.suites.json_values import (
    JsonPlaces,
    JsonValues,
    Problems,
    elements,
    members,
    places,
    python_values,
)

_CONDITION_IN_NAME = r"(?i)(?:^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)([1-5])(?:[^0-9a-z]|$)"
_CONDITION_AND_SEPARATOR = r"(?i)(^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)[1-5]($|[^0-9a-z])"
_NESTED = ("condition_flags", "flags")
_MOST_MEMBERS = 1 << 53
_NAMES = {"group_type": "group_type", "scenario": "stated_scenario", "dialogue_id": "stated_id"}
_OF_METADATA: Shape = {
    **dict.fromkeys((*FLAGS, *_NAMES, "condition", "members", "member_count")),
    **{name: dict.fromkeys(FLAGS) for name in _NESTED},
}
_SOURCES = ("metadata", "condition", "file_name", "content")


def read_metadata(cells: pl.Series) -> pl.DataFrame:
    """Read what the metadata of dialogues' first turns says; null where it does not."""
    codes, distinct = factorize(cells)
    values = cell_values(distinct)
    found = places(values.where(values.tags == OBJECT), _OF_METADATA, Problems())
    stated = texts_or_replaced(found["condition"].values)
    condition = stated.str.strip_chars(BLANKS).str.to_uppercase()
    stated_count = found["member_count"].values
    count = _counts(stated_count)
    is_no_count = pl.lit(count.is_null() & pl.Series(~stated_count.is_missing))
    read = pl.select(
        *(_first_flag(found, flag).alias(flag) for flag in FLAGS),
        condition.set(~condition.is_in([*CONDITIONS]).fill_null(False), None).alias(
            "stated_condition"
        ),
        count.alias("member_count"),
        _sizes(found["members"].values).alias("listed_members"),
        *(_names(found[key].values).alias(name) for key, name in _NAMES.items()),
        pl.coalesce(
            no_object(values),
            pl.when(is_no_count).then(pl.lit("member_count is no whole number; ignored")),
        ).alias("metadata_fault"),
    )
    return read[codes]


def _first_flag(found: JsonPlaces, flag: str) -> pl.Expr:
    return pl.coalesce(
        pl.lit(flags(place[flag].values)) for place in (found, *(found[name] for name in _NESTED))
    )


def _counts(values: JsonValues) -> pl.Series:
    rows = np.flatnonzero(~values.is_missing)
    counts = [_count(value) for value in python_values(values, rows, Problems())]
    none = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(values))
    return none.scatter(rows, counts)


def _sizes(values: JsonValues) -> pl.Series:
    """Return how many elements lists have, null for none."""
    _, owner = elements(values)
    sizes = pl.Series(np.bincount(owner, minlength=len(values)), dtype=pl.Int64)
    return sizes.set(sizes == 0, None)


def read_stated_ids(rows: pl.DataFrame) -> pl.Series:
    """Return the id in the metadata of each row that is a dialogue or its first turn."""
    codes, distinct = factorize(dialogue_metadata(rows).fill_null(""))
    found = members(cell_values(distinct), ("dialogue_id",), Problems())
    return _names(found["dialogue_id"]).gather(codes)


def _names(values: JsonValues) -> pl.Series:
    """Return texts and whole numbers as text."""
    return scalars(values.where(values.tags != FLOAT))


def _count(value: object) -> int | None:
    """Return a whole number that is not negative, nor absurd, also from a text."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _MOST_MEMBERS and value % 1 == 0 else None


def name_conditions(read: Turns, synthesis: pl.DataFrame) -> pl.DataFrame:
    """Give dialogues their id, flags, condition and members."""
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
