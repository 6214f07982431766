"""From raw rows to what is compared: plans, preferences, syntheses, places and records.

Of plans these are the days, the places and stops that they name, and the checks that they pass.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.suites.base import Events
from fastscore.suites.declarations import PARTIAL_REJECTS
from fastscore.suites.group_travel.catalogue import (
    KIND_DTYPE,
    NAME_KEYS,
    Catalogue,
    as_flag,
    as_text,
    built_in_components,
    canonical_key,
    frame_of,
    is_present,
    no_object,
    parse_cells,
    read_catalogue,
    read_each,
    shortfall,
    warnings_of,
)
from fastscore.suites.group_travel.lexicon import (
    ACTIONABLE,
    CATALOGUE_COLUMNS,
    CATALOGUES,
    CATEGORY_SLOTS,
    KIND_OF_SLOT,
    MEALS,
    NULLS,
    PLAN_KINDS,
    PRESENT_PLAN,
    PROVIDE,
    SLOT_OF_KIND,
    STOP,
    SYNTHESIZE,
    UNFILLED,
    Lexicon,
    load_lexicon,
    normalise,
)
from fastscore.suites.group_travel.metrics.dialogue import check_days, mark_syntheses, mark_theory
from fastscore.suites.group_travel.metrics.plan import check_itineraries, choices_of, ground_places
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.schema import SOURCE
from fastscore.suites.group_travel.similarity import number_compared
from fastscore.suites.group_travel.turns import Turns, canonical_slot, name_conditions, read_turns
from fastscore.suites.grouping import factorize, row_numbers
from fastscore.suites.identity import identify

_MEALS = "meals"
_KIND_OF_KEY = {
    **{meal: meal for meal in (*MEALS, _MEALS)},
    **dict.fromkeys(("accommodation", "accommodations", "lodging", "hotel"), "accommodation"),
    **dict.fromkeys(("attraction", "attractions"), "attraction"),
    **dict.fromkeys(("event", "events"), "event"),
    **dict.fromkeys(
        ("poilist", "pointofinterestlist", "pointsofinterest", "pointofinterest", "pois"), STOP
    ),
}
_DAY_KEYS = ("days", "plan", "itinerary")
_STOP_NAME_KEYS = ("place", "poi")
_TIME_KEYS = {"start": ("start", "starttime"), "end": ("end", "endtime"), "interval": ("time",)}
_NO_TIMES = (None,) * len(_TIME_KEYS)


_OF_PLANS = pl.Schema({"raw_output": pl.String(), "n_days": pl.Int64(), "fault": pl.String()})
_OF_VALUES = pl.Schema(
    {
        **dict.fromkeys(("plan", "day"), pl.Int64()),
        "kind": pl.Enum(PLAN_KINDS),
        **dict.fromkeys(("text", *_TIME_KEYS), pl.String()),
    }
)


def read_days(cells: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read plan cells: a row each, and a row for each value of a day that names something."""
    plans, values = [], []
    for plan, value in enumerate(parse_cells(cells)):
        listed = _day_list(value)
        days = [day for day in listed or () if isinstance(day, dict)]
        filled = [list(_values_of(day)) for day in days if day]
        read = [[(kind, _named_text(kind, item)) for kind, item in day] for day in filled]
        values += [
            (plan, day, kind, *texts)
            for day, of_day in enumerate(read)
            for kind, texts in of_day
            if texts is not None
        ]
        named = [texts is not None for of_day in read for _, texts in of_day]
        raw = value.get("raw_output") if isinstance(value, dict) else value
        raw = raw if isinstance(raw, str) else None
        if isinstance(value, str):
            fault: str | None = "neither JSON nor a literal; read as raw output"
        elif listed is None and raw is None and value is not None:
            fault = "no list of days; ignored"
        else:
            n_days, n_values = len(listed or ()), len(named)
            fault = shortfall(n_days - len(days), n_days, "days are not objects")
            fault = fault or shortfall(
                n_values - sum(named), n_values, "values of days name no place"
            )
        plans.append((raw or "", len(filled), fault))
    return frame_of(plans, _OF_PLANS), frame_of(values, _OF_VALUES)


def _day_list(plan: Any) -> list[Any] | None:
    """Return the list of days of a plan: itself, or that under the first of the keys."""
    if isinstance(plan, dict):
        return next((plan[key] for key in _DAY_KEYS if isinstance(plan.get(key), list)), None)
    return plan if isinstance(plan, list) else None


def _values_of(day: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a day with their kinds, lists item by item, nulls left out."""
    for key, value in day.items():
        kind = _kind_of(key)
        if kind == _MEALS and isinstance(value, dict):
            meals = {name: of for name, of in value.items() if _kind_of(name) in MEALS}
            yield from _values_of(meals)
        elif kind is not None:
            items = value if isinstance(value, list) and kind != _MEALS else [value]
            yield from ((kind, item) for item in items if item is not None)


def _kind_of(key: str) -> str | None:
    return _KIND_OF_KEY.get(canonical_key(key))


def _named_text(kind: str, item: Any) -> tuple[str | None, ...] | None:
    """Return an item's text or name, and the times of a stop; None if it names nothing."""
    if isinstance(item, str) and kind != _MEALS:
        return (item, *_NO_TIMES)
    if not isinstance(item, dict):
        return None
    found: dict[str, Any] = {}
    for key, value in item.items():
        found.setdefault(canonical_key(key), value)
    names = (*NAME_KEYS, *_STOP_NAME_KEYS) if kind == STOP else NAME_KEYS
    name = next((found[key] for key in names if isinstance(found.get(key), str)), None)
    if name is None:
        return None
    if kind != STOP:
        return (name, *_NO_TIMES)
    times = (
        next((found[key] for key in keys if found.get(key) is not None), None)
        for keys in _TIME_KEYS.values()
    )
    return (name, *(time if isinstance(time, str) else None for time in times))


_OF_NAME = ("plan", "day", "kind", "name")
_COST = r"(?i)^(?:cost|price|rating|total)\s*:"
_TIME = r"\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?"
_TO = r"\s*(?:to|until|till|-|–|—)\s*"
_VERBS = (
    *("visit", "stay", "check-in", "check-out", "attend", "explore", "dine", "eat", "arrive"),
    "depart",
)
_VERB = rf"(?:{'|'.join(_VERBS)})"
_TIME_FIRST = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*[:,;–—-]?\s*(.+)$"
_TIME_LAST = (
    rf"(?is)^\s*(.+?)(?:\s*,\s*|\s+)(?:{_VERB}(?:\s*,\s*|\s+))?"
    rf"(?:from\s+)?\(?({_TIME}){_TO}({_TIME})"
)
_INTERVAL = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*$"
_CLOCK = r"(?i)^\s*(\d{1,2}):(\d{2})\s*(?:([ap])\.?m\.?)?\s*$"
_TRANSIT = r"(?i),\s*nearest transit\s*:.*$"
_OF_STOP = ("place", "plan", "day", "kind")


@dataclass(frozen=True, slots=True)
class Plans:
    """Distinct plans."""

    plans: pl.DataFrame  # a row a plan: `raw_output`, `n_days`, `fault`
    # a row a place that is named, by plan: `plan`, `day`, `kind` (a meal, accommodation,
    # attraction, event or stop), `name`
    names: pl.DataFrame
    # a row for each filled value that is not a stop, unchanged: `plan`, `slot`, `text`. They are in
    # the order of days, then of kinds.
    entries: pl.DataFrame
    checks: pl.DataFrame  # a row a plan that has days: `plan`, `passed`, `checks`


def read_plans(cells: pl.Series, *, strict_overnight: bool) -> Plans:
    """Read plan cells, a plan each."""
    plans, values = read_days(cells)
    is_stop = pl.col("kind") == STOP
    entries = values.filter(~is_stop).sort("plan", "day", "kind", maintain_order=True)
    stops = read_stops(values.filter(is_stop))
    parts = entries.select("plan", "day", "kind", name=pl.col("text").str.split(";"))
    named = [parts.explode("name", empty_as_null=False), stops.select(_OF_NAME)]
    names = _clean_names(pl.concat(named, rechunk=True).sort("plan", "day", maintain_order=True))
    return Plans(
        plans,
        names.select(_OF_NAME),
        entries.filter(is_filled(entries["text"])).select(
            "plan", "text", slot=pl.col("kind").cast(pl.String).replace(SLOT_OF_KIND)
        ),
        check_days(plans, names, stops, strict_overnight),
    )


def is_filled(texts: pl.Series) -> pl.Series:
    """Tell which texts are more than a placeholder."""
    return ~normalise(texts).is_in(UNFILLED)


def _clean_names(names: pl.DataFrame) -> pl.DataFrame:
    """Strip names and leave out costs and placeholders; add ``normal``."""
    stripped = names.with_columns(
        pl.col("name").str.strip_chars().str.strip_chars_end(".,").str.strip_chars_end()
    ).filter(~pl.col("name").str.contains(_COST))
    normal = stripped.with_columns(normal=normalise(stripped["name"]))
    return normal.filter(~pl.col("normal").is_in(UNFILLED))


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
    codes, texts = factorize(entries["text"])
    objects = placed.filter(is_object)
    within = pl.col("interval").str.extract_groups(_INTERVAL)
    of_objects = objects.select(
        pl.col("text").alias("name"),
        pl.coalesce("start", within.struct[0]).alias("start"),
        pl.coalesce("end", within.struct[1]).alias("end"),
    )
    return pl.concat(
        [
            entries.select(_OF_STOP).hstack(_read_entries(texts)[codes]),
            objects.select(_OF_STOP).hstack(_in_minutes(of_objects)),
        ]
    ).sort("place", maintain_order=True)


def _read_entries(texts: pl.Series) -> pl.DataFrame:
    """Read stops that are texts: a name with an interval before or after it."""
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
    minutes = clocks.to_frame("clock").select(_minutes()).to_series()[codes]
    return stops.with_columns(
        minutes.head(stops.height).alias("start"), minutes.tail(stops.height).alias("end")
    )


def _minutes() -> pl.Expr:
    """Read a clock time; null for an impossible one: 10:75, 25:00, 0:30 am, 13:00 pm.

    Digits of other scripts make none either.
    """
    parts = pl.col("clock").str.extract_groups(_CLOCK)
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
    return pl.when(minute <= 59).then(of_day * 60 + minute)


MOST_LINES = 400
_LINE_ENDS = r"\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x{85}\x{2028}\x{2029}]"


def read_events(raw: pl.DataFrame, options: GroupTravel) -> Events:
    """Read the dialogues of raw rows."""
    lexicon = load_lexicon(options.lexicon)
    read = read_turns(identify(raw, SOURCE))
    synthesis, synthesis_warnings = read_synthesis(read)
    named = name_conditions(read, synthesis)
    plan_of, plans, plan_warnings = _plans(read, options)
    cells_of, catalogue, catalogue_warnings = _catalogues(read, lexicon)
    dialogues, catalogue_cells = _distinct_catalogues(cells_of, named)
    dialogues, itineraries = _itineraries(dialogues, plan_of, plans)
    grounded = ground_places(itineraries, plans, catalogue, catalogue_cells)
    dialogues = dialogues.join(
        _warnings(named, synthesis_warnings, plan_warnings, catalogue_warnings),
        on="dialogue_row",
        how="left",
    ).sort("dialogue_row")

    pairs, choices = _pairs(read.turns, dialogues)
    plan_texts = plan_texts_of(read.turns, dialogues, plans)
    frames = {
        "dialogues": dialogues,
        "turns": mark_theory(read.turns, lexicon).select(
            *("dialogue_row", "member", "member_row", "is_system", "is_everyone"),
            *("intent", "kind", "slot", "utterance", "is_said", "is_counted"),
            *("has_speaker", "has_utterance", "quotes_theory"),
        ),
        "pairs": pairs,
        "synthesis": mark_syntheses(synthesis, lexicon),
        "plan_texts": plan_texts,
        "plan_lines": plan_lines_of(plan_texts),
        **synthesis_texts_of(synthesis, dialogues, pairs),
        **choices_of(itineraries, plans, grounded, choices, options),
        "places": grounded.places,
        "place_texts": grounded.place_texts,
        "itineraries": check_itineraries(itineraries, plans, catalogue, catalogue_cells),
        "vocabulary": _vocabulary(catalogue, catalogue_cells, dialogues["catalogue"], lexicon),
    }
    counts = {
        "dialogues": dialogues.height,
        "turns": read.turns.height,
        "pairs": pairs.height,
        PARTIAL_REJECTS: read.n_partial,
    }
    compared = number_compared(frames, options)
    frames |= compared
    return Events(frames, read.rejects, counts, read.nulls, n_units=read.turns.height)


def texts_to_embed(events: Events, options: GroupTravel) -> pl.Series:
    """Return the distinct texts that any metric compares by meaning."""
    return events.frames["compared"]["text"]


def long_texts(events: Events, options: GroupTravel) -> pl.Series:
    """Return the distinct texts that M12 reads in windows; empty if it cuts them."""
    return events.frames["windowed"]["text"]


def _present(read: Turns, column: str) -> pl.DataFrame:
    """Return the cells of a column that hold anything, with their dialogue and line."""
    cells = read.turns.select("dialogue_row", "line", cell=column).drop_nulls("cell")
    return cells.filter(is_present(cells["cell"]))


def _plans(read: Turns, options: GroupTravel) -> tuple[pl.DataFrame, Plans, pl.DataFrame]:
    """Return each dialogue's plan, the distinct plans, and what could not be read."""
    last = _present(read, "plan").unique("dialogue_row", keep="last", maintain_order=True)
    codes, texts = factorize(last["cell"])
    plans = read_plans(texts, strict_overnight=options.strict_overnight)
    plan_of = last.select("dialogue_row", plan=pl.Series(codes))
    faults = last.with_columns(plans.plans["fault"].gather(codes))
    return plan_of, plans, warnings_of(faults, pl.lit("plan"))


def _catalogues(read: Turns, lexicon: Lexicon) -> tuple[pl.DataFrame, Catalogue, pl.DataFrame]:
    """Return the catalogue cells of each dialogue, the distinct ones, and what is not readable."""
    cells = pl.concat(
        _present(read, column).with_columns(kind=pl.lit(kind, KIND_DTYPE))
        for kind, column in zip(CATALOGUES, CATALOGUE_COLUMNS, strict=True)
    )
    numbers, catalogue = read_catalogue(cells["cell"], cells["kind"], lexicon)
    cells_of = cells.select("dialogue_row", "line", cell=pl.Series(numbers, dtype=pl.Int64))
    faulty = catalogue.cells.with_columns(cell=pl.int_range(pl.len())).drop_nulls("fault")
    warnings = warnings_of(cells_of.join(faulty, on="cell"), pl.format("ref_info_{}", "kind"))
    return cells_of.drop("line"), catalogue, warnings


def _distinct_catalogues(
    cells_of: pl.DataFrame, dialogues: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give dialogues with equal cells one ``catalogue``, and return the cells of each."""
    cell = pl.col("cell").unique().sort().cast(pl.String)
    sets = cells_of.group_by("dialogue_row").agg(cells=cell.str.join(","))
    dialogues = dialogues.join(sets, on="dialogue_row", how="left", maintain_order="left")
    cells = dialogues["cells"].fill_null("")
    numbered = dialogues.drop("cells").with_columns(catalogue=pl.Series(factorize(cells)[0]))
    firsts = numbered.unique("catalogue", keep="first").select("catalogue", "dialogue_row")
    cells_of_each = firsts.join(cells_of.unique(), on="dialogue_row").sort("catalogue", "cell")
    return numbered, cells_of_each.select("catalogue", "cell")


def _itineraries(
    dialogues: pl.DataFrame, plan_of: pl.DataFrame, plans: Plans
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give dialogues with a plan that has days their itinerary: a plan and a catalogue."""
    dialogues = dialogues.join(plan_of, on="dialogue_row", how="left", maintain_order="left")
    with_days = plans.plans.select(plan=pl.int_range(pl.len()), n_days="n_days")
    itineraries = (
        dialogues.join(with_days.filter(pl.col("n_days") > 0), on="plan", maintain_order="left")
        .select("plan", "catalogue")
        .unique(maintain_order=True)
        .with_columns(itinerary=pl.int_range(pl.len()))
    )
    dialogues = dialogues.join(
        itineraries, on=["plan", "catalogue"], how="left", maintain_order="left"
    )
    return dialogues, itineraries


def _warnings(named: pl.DataFrame, *warnings: pl.DataFrame) -> pl.DataFrame:
    of_metadata = warnings_of(named.rename({"metadata_fault": "fault"}), pl.lit("metadata"))
    return (
        pl.concat([of_metadata, *warnings])
        .unique()
        .sort("dialogue_row", "warning")
        .group_by("dialogue_row", maintain_order=True)
        .agg(pl.col("warning").alias("warnings"))
    )


def _pairs(turns: pl.DataFrame, dialogues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what each member wants of each slot, and which slots of itineraries that asks for."""
    stated = turns.select(
        *("dialogue_row", "member", "member_row", "slot", "utterance"),
        is_stated=(pl.col("kind") == PROVIDE)
        & ~pl.col("is_system")
        & (pl.col("member") != "")
        & pl.col("is_said"),
    ).filter("is_stated")
    pairs = stated.group_by("dialogue_row", "member_row", "slot", maintain_order=True).agg(
        pl.col("member").first(), preference=pl.col("utterance").str.join(" ")
    )
    pairs = pairs.join(
        dialogues.select("dialogue_row", "itinerary", "catalogue"),
        on="dialogue_row",
        how="left",
        maintain_order="left",
    ).with_columns(
        actionable=pl.col("slot").is_in(ACTIONABLE),
        slot_row=pl.Series(row_numbers(pairs, ["dialogue_row", "slot"])),
    )
    choices = (
        pairs.filter(pl.col("actionable") & pl.col("itinerary").is_not_null())
        .select("itinerary", "slot")
        .unique(maintain_order=True)
        .with_columns(choice=pl.int_range(pl.len()))
    )
    pairs = pairs.join(choices, on=["itinerary", "slot"], how="left", maintain_order="left")
    return pairs, choices


def _vocabulary(
    catalogue: Catalogue, cells: pl.DataFrame, catalogue_row: pl.Series, lexicon: Lexicon
) -> pl.DataFrame:
    """Return the parts of categories that preferences can name, by catalogue and slot."""
    slots = {KIND_OF_SLOT[slot]: slot for slot in CATEGORY_SLOTS}
    of_cells = (
        catalogue.records.filter(pl.col("kind").cast(pl.String).is_in(list(slots)))
        .select("cell", "kind", pl.col("components").alias("component"))
        .explode("component")
        .drop_nulls()
        .unique(maintain_order=True)
    )
    found = cells.join(of_cells, on="cell").select("catalogue", "kind", "component")
    built_in: list[dict[str, Any]] = [
        {"kind": kind, "component": component}
        for kind, names in built_in_components(lexicon).items()
        for component in names
    ]
    everywhere = (
        catalogue_row.unique()
        .sort()
        .to_frame()
        .join(
            pl.DataFrame(built_in, schema={"kind": pl.String, "component": pl.String}), how="cross"
        )
    )
    return (
        pl.concat([found.with_columns(pl.col("kind").cast(pl.String)), everywhere])
        .select(
            "catalogue",
            pl.col("kind").replace_strict(slots, return_dtype=pl.String).alias("slot"),
            "component",
        )
        .unique(maintain_order=True)
    )


def synthesis_texts_of(
    synthesis: pl.DataFrame, dialogues: pl.DataFrame, pairs: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return the texts of the synthesis of each slot that somebody has a preference for.

    ``resolutions`` has the last explanation of a slot. There are none without synthesis.
    """
    enabled = dialogues.filter("enable_synthesis").select("dialogue_row")
    stated = pairs.select("dialogue_row", "slot", "slot_row").unique(maintain_order=True)
    rows = synthesis.join(enabled, on="dialogue_row", how="semi", maintain_order="left")
    rows = rows.join(stated, on=["dialogue_row", "slot"], maintain_order="left")
    texts = (
        pl.concat(
            rows.select("slot_row", pl.col(name).alias("text")).with_row_index("row")
            for name in ("utterance", "explanation")
        )
        .filter(pl.col("text").fill_null("").str.strip_chars() != "")
        .sort("slot_row", "row", maintain_order=True)
        .select("slot_row", "text")
    )
    resolutions = (
        rows.drop_nulls("explanation")
        .group_by("slot_row", maintain_order=True)
        .agg(pl.col("explanation").last().alias("text"))
    )
    return {"synthesis_texts": texts, "resolutions": resolutions}


def plan_texts_of(turns: pl.DataFrame, dialogues: pl.DataFrame, plans: Plans) -> pl.DataFrame:
    """Return what the plan is presented by: presentations, then the planner's raw output."""
    presented = turns.filter(pl.col("kind") == PRESENT_PLAN).select(
        "dialogue_row", pl.col("utterance").alias("text"), pl.lit(False).alias("is_raw")
    )
    raw = dialogues.drop_nulls("plan").select(
        "dialogue_row",
        pl.lit(plans.plans["raw_output"]).gather(pl.col("plan")).alias("text"),
        pl.lit(True).alias("is_raw"),
    )
    return (
        pl.concat([presented, raw])
        .filter(pl.col("text").str.strip_chars() != "")
        .sort("dialogue_row", "is_raw", maintain_order=True)
    )


def plan_lines_of(plan_texts: pl.DataFrame) -> pl.DataFrame:
    """Cut the texts of plans into lines that are not empty, at most `MOST_LINES` a dialogue."""
    codes, texts = factorize(plan_texts["text"])
    lines = (
        texts.str.replace_all(_LINE_ENDS, "\n")
        .str.split("\n")
        .list.eval(pl.element().str.strip_chars().filter(pl.element().str.strip_chars() != ""))
    )
    return (
        plan_texts.select("dialogue_row", text=lines.gather(codes))
        .explode("text", empty_as_null=False)
        .filter(pl.int_range(pl.len()).over("dialogue_row") < MOST_LINES)
        .unique(maintain_order=True)
    )


_FIELDS = frozenset(
    (
        "has_conflict",
        "conflict_description",
        "resolution_strategy",
        "resolution_explanation",
        "strategy_id",
        "operator",
        "updated_resolution_explanation",
        "final_revised_decision",
    )
)
_STATE_KEYS = ("slot_decision_state", "synthesis", "slot_decisions")
_TEXTS = ("conflict_description", "resolution_strategy", "strategy_id", "resolution_explanation")
_OF_SYNTHESIS = pl.Schema(
    {
        "is_object": pl.Boolean(),
        "has_conflict": pl.Boolean(),
        **dict.fromkeys(("description", "strategy", "explanation", "fault"), pl.String()),
    }
)
_READ = tuple(_OF_SYNTHESIS)[:-1]


def _read_object(value: Any) -> tuple[Any, ...]:
    """Return a value for each of `_OF_SYNTHESIS` from the object of a slot.

    ``is_object`` tells whether it has at least one known field. ``fault`` names a field that should
    be a text and is an array or object.
    """
    said = value if isinstance(value, dict) else {}
    description, strategy, strategy_id, explanation = (as_text(said.get(name)) for name in _TEXTS)
    no_texts = (name for name in _TEXTS if isinstance(said.get(name), dict | list))
    return (
        not _FIELDS.isdisjoint(said),
        as_flag(said.get("has_conflict")),
        description,
        _no_placeholder(strategy) or _no_placeholder(strategy_id),
        _no_placeholder(explanation),
        next((f"{name} is not a text; ignored" for name in no_texts), None),
    )


def _no_placeholder(text: str | None) -> str | None:
    return None if text is None or text.strip().lower() in NULLS else text


def _read_metadata(value: Any) -> tuple[Any, ...]:
    """Read the metadata of a synthesis turn: flat, or under the key synthesis."""
    said = value if isinstance(value, dict) else {}
    *read, fault = _read_object(said if _FIELDS & said.keys() else said.get("synthesis"))
    return (*read, no_object(value) or fault)


def read_states(cells: pl.Series, slots: pl.Series) -> pl.DataFrame:
    """Read what running states say of a slot each."""
    codes, distinct = factorize(cells)
    values = list(parse_cells(distinct))
    states = [_slots_of(value) for value in values]
    rows = [
        (*_read_object(states[code].get(slot)), no_object(values[code]))
        for code, slot in zip(codes.tolist(), slots, strict=True)
    ]
    read = frame_of(rows, pl.Schema({**_OF_SYNTHESIS, "cell_fault": pl.String()}))
    return read.with_columns(fault=pl.coalesce("cell_fault", "fault")).drop("cell_fault")


def _slots_of(value: Any) -> dict[str, Any]:
    """Return the object that a state has for each slot; of several the first counts."""
    found: dict[str, Any] = {}
    for key in _STATE_KEYS:
        slots = value.get(key) if isinstance(value, dict) else None
        for name, said in slots.items() if isinstance(slots, dict) else ():
            if isinstance(said, dict) and not _FIELDS.isdisjoint(said):
                found.setdefault(canonical_slot(name), said)
    return found


def read_synthesis(read: Turns) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the synthesis of each slot: of the turn's metadata, its state, or the last state."""
    rows = read.turns.filter(pl.col("kind") == SYNTHESIZE)
    said = read_each(rows["metadata"].fill_null(""), _read_metadata, _OF_SYNTHESIS)
    rows = rows.select(
        *("dialogue_row", "line", "slot", "utterance", "has_utterance"),
        state="constraint_state",
        state_line="line",
    ).hstack(said)
    warnings = [warnings_of(rows, pl.lit("metadata"))]
    rows, of_states = _fill(rows)
    silent = ~pl.col("is_object").any().over("dialogue_row", "slot")
    last = _present(read, "constraint_state").unique("dialogue_row", keep="last")
    last = last.select("dialogue_row", last="cell", last_line="line")
    rows = rows.join(last, on="dialogue_row", how="left", maintain_order="left").with_columns(
        state=pl.when(silent).then("last"), state_line="last_line"
    )
    rows, of_last = _fill(rows)
    rows = rows.select(
        *("dialogue_row", "line", "slot", "utterance", "has_utterance"),
        *("has_conflict", "description", "explanation"),
        has_strategy=pl.col("strategy").is_not_null().any().over("dialogue_row", "slot"),
    )
    return rows, pl.concat([*warnings, of_states, of_last])


def _fill(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read rows without an object from their ``state``, by slot; warn of what is unreadable."""
    lacking = ~pl.col("is_object") & pl.col("state").is_not_null()
    asking = rows.filter(lacking)
    found = read_states(asking["state"], asking["slot"])
    places = rows.select(lacking.arg_true()).to_series()
    filled = rows.with_columns(rows[name].scatter(places, found[name]) for name in _READ)
    told = asking.select("dialogue_row", line="state_line").hstack([found["fault"]])
    return filled, warnings_of(told, pl.lit("constraint_state"))
