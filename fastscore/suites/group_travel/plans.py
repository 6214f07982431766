"""Plans: their days, the places they name, and when the day's stops begin and end."""

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from fastscore.suites.group_travel.cells import canonical_key, first_list, read_distinct
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.schema import UNFILLED
from fastscore.suites.ragged import Indices

MEALS = ("breakfast", "lunch", "dinner")
SLOT_OF_KIND = {
    "breakfast": "cuisine",
    "lunch": "cuisine",
    "dinner": "cuisine",
    "accommodation": "lodging",
    "attraction": "attraction",
    "event": "event",
}
STOP = "stop"
_KINDS = (*SLOT_OF_KIND, STOP)
_KIND_OF_KEY = {
    **{meal: meal for meal in MEALS},
    **dict.fromkeys(("accommodation", "accommodations", "lodging", "hotel"), "accommodation"),
    **dict.fromkeys(("attraction", "attractions"), "attraction"),
    **dict.fromkeys(("event", "events"), "event"),
    **dict.fromkeys(
        ("poilist", "pointofinterestlist", "pointsofinterest", "pointofinterest", "pois"), STOP
    ),
}
_DAY_KEYS = ("days", "plan", "itinerary")
NAME_KEYS = ("name", "title", "eventname", "restaurantname", "attractionname", "hotelname")
_STOP_NAME_KEYS = (*NAME_KEYS, "place", "poi")
_COST = r"(?i)^(?:cost|price|rating|total)\s*:"

_TIME = r"\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?"
_TO = r"\s*(?:to|until|till|-|–|—)\s*"
_VERB = r"(?:visit|stay|check-in|check-out|attend|explore|dine|eat|arrive|depart)"
_TIME_FIRST = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*[:,;–—-]?\s*(.+)$"
_TIME_LAST = (
    rf"(?is)^\s*(.+?)(?:\s*,\s*|\s+)(?:{_VERB}(?:\s*,\s*|\s+))?"
    rf"(?:from\s+)?\(?({_TIME}){_TO}({_TIME})"
)
_INTERVAL = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*$"
_CLOCK = r"(?i)^\s*(\d{1,2}):(\d{2})\s*(?:([ap])\.?m\.?)?\s*$"
_TRANSIT = r"(?i),\s*nearest transit\s*:.*$"
_MINUTES_A_DAY = 1440


@dataclass(slots=True)
class _Values:
    """What the plans' days hold, as columns that grow.

    ``times`` has start, end and interval of the stops that are objects, with their row.
    """

    plan: list[int] = field(default_factory=list)
    day: list[int] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    times: list[tuple[int, str | None, str | None, str | None]] = field(default_factory=list)

    def add(self, plan: int, day: int, kind: str, text: str) -> None:
        self.plan.append(plan)
        self.day.append(day)
        self.kind.append(kind)
        self.text.append(text)

    def frame(self) -> pl.DataFrame:
        """Return a row a value; ``start``, ``end`` and ``interval`` are null where it has none."""
        text = pl.String()
        times = pl.DataFrame(
            self.times,
            schema={"row": pl.Int64(), "start": text, "end": text, "interval": text},
            orient="row",
        )
        values = pl.DataFrame(
            {"plan": self.plan, "day": self.day, "kind": self.kind, "text": self.text},
            schema={"plan": pl.Int64(), "day": pl.Int64(), "kind": text, "text": text},
        )
        return (
            values.with_columns(
                pl.int_range(pl.len(), dtype=pl.Int64).alias("row"),
                pl.col("kind").cast(pl.Enum(_KINDS)),
            )
            .join(times, on="row", how="left", maintain_order="left")
            .drop("row")
        )


@dataclass(frozen=True, slots=True)
class Plans:
    """Distinct plans.

    Attributes
    ----------
    plans
        A row a plan: ``raw_output``, ``n_days``, ``is_plain_text``.
    names
        A row a place that is named, by plan: ``plan``, ``day``, ``kind`` (a meal, accommodation,
        attraction, event or stop), ``name``.
    entries
        A row a filled value that is no stop, as it stands: ``plan``, ``slot``, ``text``; by day,
        and in it by kind.
    checks
        A row a plan that has days: ``plan``, ``passed``, ``checks``.
    """

    plans: pl.DataFrame
    names: pl.DataFrame
    entries: pl.DataFrame
    checks: pl.DataFrame


def read_plans(cells: pl.Series, *, strict_overnight: bool) -> tuple[Indices, Plans]:
    """Read plan cells.

    Returns
    -------
    tuple
        The row of each cell's plan, and the distinct plans.
    """
    codes, payloads = read_distinct(cells, lambda payload: payload)
    read, raw_outputs, n_days, plain = _Values(), [], [], []
    for row, payload in enumerate(payloads):
        days = [day for day in first_list(payload, _DAY_KEYS) or () if day and _is_day(day)]
        for number, day in enumerate(days):
            _read_day(read, row, number, day)
        raw = payload.get("raw_output") if isinstance(payload, dict) else payload
        raw_outputs.append(raw if isinstance(raw, str) else "")
        n_days.append(len(days))
        plain.append(isinstance(payload, str))
    plans = pl.DataFrame(
        {"raw_output": raw_outputs, "n_days": n_days, "is_plain_text": plain},
        schema={"raw_output": pl.String, "n_days": pl.Int64, "is_plain_text": pl.Boolean},
    )
    values = read.frame()
    of_slots = values.filter(pl.col("kind") != STOP).select("plan", "day", "kind", "text")
    of_slots = of_slots.sort("plan", "day", "kind", maintain_order=True)
    stops = _read_stops(values.filter(pl.col("kind") == STOP))
    names = _split_names(of_slots)
    columns_of_name = ("plan", "day", "kind", "name")
    stop_names = _filled_names(stops.select(*columns_of_name))
    return codes, Plans(
        plans,
        pl.concat([names, stop_names]).sort("plan", "day", maintain_order=True),
        of_slots.filter(is_filled(of_slots["text"])).select(
            "plan", pl.col("kind").cast(pl.String).replace(SLOT_OF_KIND).alias("slot"), "text"
        ),
        _check_days(plans, names, stops, strict_overnight),
    )


def _is_day(day: object) -> bool:
    return isinstance(day, dict)


def _read_day(read: _Values, plan: int, number: int, day: dict[str, Any]) -> None:
    for key, value in day.items():
        plain = canonical_key(key)
        kind = _KIND_OF_KEY.get(plain)
        if kind is None and plain == "meals" and isinstance(value, dict):
            for meal, served in value.items():
                if canonical_key(meal) in MEALS:
                    _read_value(read, plan, number, canonical_key(meal), served)
        elif kind is not None:
            _read_value(read, plan, number, kind, value)


def _read_value(read: _Values, plan: int, day: int, kind: str, value: Any) -> None:
    """Read a string, an object with a name, or a list of such."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, str):
            read.add(plan, day, kind, item)
        elif isinstance(item, dict):
            known = {canonical_key(key): content for key, content in reversed(item.items())}
            keys = _STOP_NAME_KEYS if kind == STOP else NAME_KEYS
            name = next((known[key] for key in keys if isinstance(known.get(key), str)), None)
            if name is not None:
                start, end = (
                    next((known[key] for key in (edge, f"{edge}time") if key in known), None)
                    for edge in ("start", "end")
                )
                interval = _text_or_none(known.get("time"))
                times = (_text_or_none(start), _text_or_none(end), interval)
                read.times.append((len(read.plan), *times))
                read.add(plan, day, kind, name)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def is_filled(texts: pl.Series) -> pl.Series:
    """Tell which texts are more than a stand-in for nothing."""
    return ~normalise(texts).is_in(UNFILLED)


def _split_names(values: pl.DataFrame) -> pl.DataFrame:
    """Split values at semicolons into names; leave out costs and what is not filled."""
    split = values.select("plan", "day", "kind", pl.col("text").str.split(";").alias("name"))
    return _filled_names(split.explode("name", empty_as_null=False))


def _filled_names(names: pl.DataFrame) -> pl.DataFrame:
    stripped = names.with_columns(
        pl.col("name").str.strip_chars().str.strip_chars_end(".,").str.strip_chars_end()
    ).filter(~pl.col("name").str.contains(_COST))
    return stripped.filter(is_filled(stripped["name"]))


def _read_stops(values: pl.DataFrame) -> pl.DataFrame:
    """Read the stops of a day: name, and start and end in minutes (null where unparsed)."""
    is_object = pl.any_horizontal(pl.col("start", "end", "interval").is_not_null())
    objects = values.filter(is_object).with_row_index("place")
    texts = (
        values.with_row_index("place")
        .filter(~is_object)
        .with_columns(pl.col("text").str.split(";"))
        .explode("text", empty_as_null=False)
        .with_columns(pl.col("text").str.strip_chars())
    )
    first, last = (
        pl.col("text").str.extract_groups(pattern) for pattern in (_TIME_FIRST, _TIME_LAST)
    )
    leads = first.struct[0].is_not_null()
    texts = texts.select(
        "place",
        *("plan", "day", "kind"),
        pl.coalesce(first.struct[2], last.struct[0], "text")
        .str.replace(_TRANSIT, "")
        .alias("name"),
        pl.when(leads).then(first.struct[0]).otherwise(last.struct[1]).alias("start"),
        pl.when(leads).then(first.struct[1]).otherwise(last.struct[2]).alias("end"),
    )
    within = pl.col("interval").str.extract_groups(_INTERVAL)
    objects = (
        values.with_row_index("place")
        .filter(is_object)
        .select(
            "place",
            *("plan", "day", "kind"),
            pl.col("text").alias("name"),
            pl.coalesce("start", within.struct[0]).alias("start"),
            pl.coalesce("end", within.struct[1]).alias("end"),
        )
    )
    return (
        pl.concat([texts, objects])
        .sort("place", maintain_order=True)
        .with_columns(_minutes("start"), _minutes("end"))
    )


def _minutes(column: str) -> pl.Expr:
    """Read a clock time; null for an impossible one: 10:75, 25:00, 0:30 am, 13:00 pm."""
    parts = pl.col(column).str.extract_groups(_CLOCK)
    hour, minute = (parts.struct[place].cast(pl.Int64) for place in (0, 1))
    half = parts.struct[2].str.to_lowercase()
    twelve = hour.is_between(1, 12)
    of_day = (
        pl.when(half.is_null() & (hour <= 24))
        .then(hour)
        .when((half == "a") & twelve)
        .then(hour % 12)
        .when((half == "p") & twelve)
        .then(hour % 12 + 12)
    )
    return pl.when(minute <= 59).then(of_day * 60 + minute).alias(column)


def _check_days(
    plans: pl.DataFrame, names: pl.DataFrame, stops: pl.DataFrame, strict_overnight: bool
) -> pl.DataFrame:
    """Count the checks of each plan and those that it passes."""
    days = (
        plans.with_row_index("plan")
        .filter(pl.col("n_days") > 0)
        .select(pl.col("plan").cast(pl.Int64), pl.int_ranges("n_days").alias("day"))
        .explode("day")
    )
    served = names.group_by("plan", "day").agg(
        pl.col("name").filter(pl.col("kind") == meal).str.join("; ").alias(meal) for meal in MEALS
    )
    met = days.join(served, on=["plan", "day"], how="left", maintain_order="left").with_columns(
        pl.col(*MEALS).fill_null("")
    )
    met = met.join(
        _timely_days(stops, strict_overnight),
        on=["plan", "day"],
        how="left",
        maintain_order="left",
    )
    varied = normalise(met["lunch"]) != normalise(met["dinner"])
    passed = pl.sum_horizontal(
        *((pl.col(meal) != "").cast(pl.Int64) for meal in MEALS),
        pl.col("is_varied").cast(pl.Int64),
        pl.col("is_timely").fill_null(False).cast(pl.Int64),
    )
    met = met.with_columns(varied.alias("is_varied")).with_columns(passed.alias("passed"))
    return met.group_by("plan", maintain_order=True).agg(
        pl.col("passed").sum(),
        (4 * pl.len() + pl.col("is_timely").count()).cast(pl.Int64).alias("checks"),
    )


def _timely_days(stops: pl.DataFrame, strict_overnight: bool) -> pl.DataFrame:
    """Tell for each day with an interval whether its stops follow each other."""
    timed = stops.filter(pl.col("start").is_not_null() & pl.col("end").is_not_null())
    day = ["plan", "day"]
    is_last = pl.int_range(pl.len()).over(day) == pl.len().over(day) - 1
    wraps = is_last & (pl.col("end") < pl.col("start")) & (not strict_overnight)
    end = pl.col("end") + pl.when(wraps).then(_MINUTES_A_DAY).otherwise(0)
    return (
        timed.with_columns(
            ((end > pl.col("start")) & (pl.col("start").diff().over(day).fill_null(1) > 0)).alias(
                "ok"
            )
        )
        .group_by(day)
        .agg(pl.col("ok").all().alias("is_timely"))
    )
