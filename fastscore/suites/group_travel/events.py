"""From raw rows to what is compared: preferences, syntheses, texts of plans, places and records."""

from typing import Any

import polars as pl

from fastscore.suites.base import Events
from fastscore.suites.declarations import PARTIAL_REJECTS
from fastscore.suites.group_travel.catalogue import (
    KIND_DTYPE,
    Catalogue,
    as_flag,
    as_text,
    built_in_components,
    frame_of,
    is_present,
    no_object,
    parse_cells,
    read_catalogue,
    read_each,
    warnings_of,
)
from fastscore.suites.group_travel.lexicon import (
    ACTIONABLE,
    CATALOGUE_COLUMNS,
    CATALOGUES,
    CATEGORY_SLOTS,
    KIND_OF_SLOT,
    NULLS,
    PRESENT_PLAN,
    PROVIDE,
    SYNTHESIZE,
    Lexicon,
    load_lexicon,
)
from fastscore.suites.group_travel.metrics.places import check_itineraries, ground_places
from fastscore.suites.group_travel.metrics.satisfaction import choices_of
from fastscore.suites.group_travel.metrics.synthesis import mark_syntheses, mark_theory
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.plans import Plans, read_plans
from fastscore.suites.group_travel.schema import SOURCE
from fastscore.suites.group_travel.similarity import number_compared
from fastscore.suites.group_travel.turns import (
    Turns,
    canonical_slot,
    name_conditions,
    read_turns,
)
from fastscore.suites.grouping import (
    factorize,
    row_numbers,
)
from fastscore.suites.identity import identify

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
