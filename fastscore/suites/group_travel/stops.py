"""The stops of days: their names, and when they begin and end."""

import numpy as np
import polars as pl

from fastscore.suites.group_travel.plain_intervals import plain_intervals
from fastscore.suites.grouping import factorize

_TIME = r"\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?"
_TO = r"\s*(?:to|until|till|-|–|—)\s*"
_VERBS = (
    *("visit", "stay", "check-in", "check-out", "attend", "explore", "dine", "eat", "arrive"),
    "depart",
)
_VERB = rf"(?:{'|'.join(_VERBS)})"
_LEADS = [f", {verb} from " for verb in _VERBS]
_TIME_FIRST = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*[:,;–—-]?\s*(.+)$"
_TIME_LAST = (
    rf"(?is)^\s*(.+?)(?:\s*,\s*|\s+)(?:{_VERB}(?:\s*,\s*|\s+))?"
    rf"(?:from\s+)?\(?({_TIME}){_TO}({_TIME})"
)
_INTERVAL = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*$"
_CLOCK = r"(?i)^\s*(\d{1,2}):(\d{2})\s*(?:([ap])\.?m\.?)?\s*$"
_TRANSIT = r"(?i),\s*nearest transit\s*:.*$"
_OF_STOP = ("place", "plan", "day", "kind")


def read_stops(values: pl.DataFrame) -> pl.DataFrame:
    """Read the stops of a day: name, and start and end in minutes (null where unparsed)."""
    is_object = pl.any_horizontal(pl.col("start", "end", "interval").is_not_null())
    placed = values.with_row_index("place")
    entries = (
        placed.filter(~is_object)
        .select(*_OF_STOP, pl.col("text").str.split(";"))
        .explode("text", empty_as_null=False)
        .with_columns(pl.col("text").str.strip_chars())
    )
    objects = placed.filter(is_object)
    within = pl.col("interval").str.extract_groups(_INTERVAL)
    of_objects = objects.select(
        pl.col("text").alias("name"),
        pl.coalesce("start", within.struct[0]).alias("start"),
        pl.coalesce("end", within.struct[1]).alias("end"),
    )
    return pl.concat(
        [
            entries.select(_OF_STOP).hstack(_read_entries(entries["text"])),
            objects.select(_OF_STOP).hstack(_in_minutes(of_objects)),
        ]
    ).sort("place", maintain_order=True)


def _read_entries(texts: pl.Series) -> pl.DataFrame:
    """Read stops that are texts; those that are not in the plain form by patterns."""
    begin, size, *interval = plain_intervals(texts, _LEADS)
    start, end = (pl.Series(minutes).set(pl.Series(minutes < 0), None) for minutes in interval)
    plain = pl.DataFrame({"name": texts, "start": start, "end": end}).with_columns(
        pl.col("name").str.slice(pl.Series(np.maximum(begin, 0)), pl.Series(np.maximum(size, 0)))
    )
    others = np.flatnonzero(size < 0)
    if not len(others):
        return plain
    matched = _match_entries(texts.gather(others))
    return plain.with_columns(plain[name].scatter(others, matched[name]) for name in plain.columns)


def _match_entries(texts: pl.Series) -> pl.DataFrame:
    # most entries begin with a name: they cannot begin with a time
    leading = pl.when(pl.col("text").str.contains(r"^\d")).then("text")
    first = leading.str.extract_groups(_TIME_FIRST)
    last = pl.col("text").str.extract_groups(_TIME_LAST)
    leads = first.struct[0].is_not_null()
    matched = texts.to_frame("text").select(
        pl.coalesce(first.struct[2], last.struct[0], "text")
        .str.replace(_TRANSIT, "")
        .alias("name"),
        pl.when(leads).then(first.struct[0]).otherwise(last.struct[1]).alias("start"),
        pl.when(leads).then(first.struct[1]).otherwise(last.struct[2]).alias("end"),
    )
    return _in_minutes(matched)


def _in_minutes(stops: pl.DataFrame) -> pl.DataFrame:
    """Read the clock times ``start`` and ``end`` of stops."""
    codes, clocks = factorize(pl.concat([stops["start"], stops["end"].rename("start")]))
    minutes = clocks.to_frame("clock").select(_minutes("clock")).to_series().gather(codes)
    return stops.with_columns(
        minutes.head(stops.height).alias("start"), minutes.tail(stops.height).alias("end")
    )


def _minutes(column: str) -> pl.Expr:
    """Read a clock time; null for an impossible one: 10:75, 25:00, 0:30 am, 13:00 pm.

    Digits of other scripts make none either.
    """
    parts = pl.col(column).str.extract_groups(_CLOCK)
    hour, minute = (parts.struct[place].cast(pl.Int64, strict=False) for place in (0, 1))
    half_of_day = parts.struct[2].str.to_lowercase()
    twelve = hour.is_between(1, 12)
    of_day = (
        pl.when(half_of_day.is_null() & (hour <= 24))
        .then(hour)
        .when((half_of_day == "a") & twelve)
        .then(hour % 12)
        .when((half_of_day == "p") & twelve)
        .then(hour % 12 + 12)
    )
    return pl.when(minute <= 59).then(of_day * 60 + minute).alias(column)
