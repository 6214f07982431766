"""A conversation with its guest's states beside the messages, and states over all messages."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from fastscore.settings.options import build_options
from fastscore.suites.base import CommittedRun, Dialogue
from fastscore.suites.guest_simulation.events import read_events
from fastscore.suites.guest_simulation.options import MATCH_COLUMNS, STATE_COLUMNS, GuestSimulation
from fastscore.suites.guest_simulation.schema import SOURCE
from fastscore.suites.identity import IDENTITY, identify
from fastscore.suites.showing import Chart, DialogueView, Section, Series, Turn, spoken

TEXTS_IN_LOGS = True

COMPONENTS = dict(zip(STATE_COLUMNS, MATCH_COLUMNS, strict=True))
_VERDICTS = {True: " (as expected)", False: " (not as expected)", None: ""}
_LATEST_MESSAGE = 20


def show_dialogue(dialogue: Dialogue) -> DialogueView:
    """Lay out the messages; the guest's with its state and what the persona expects of it."""
    scored = {row["line"]: row for row in dialogue.tables["messages"].iter_rows(named=True)}
    if dialogue.raw is None:
        return DialogueView(turns=())
    turns = []
    for row in dialogue.raw.iter_rows(named=True):
        message = scored.get(row["line"])
        notes = []
        if message is not None:
            for state, match in COMPONENTS.items():
                if message[state] is not None:
                    notes.append(f"{state}: {message[state]}{_VERDICTS[message[match]]}")
            if message["is_exit"]:
                notes.append("exit message, not scored")
        turns.append(
            Turn(
                speaker=row["name"] or row["role"] or "",
                text=row["content"] or "",
                place=row["message_id"] or f"line {row['line']}",
                scores={"state score": message["message_score"]} if message else {},
                notes=tuple(notes),
            )
        )
    return DialogueView(turns=tuple(turns))


def report_sections(run: CommittedRun, options: object) -> list[Section]:
    """Show how often each component of the state is as the persona expects, over messages."""
    place = pl.int_range(pl.len()).over("file", "dialogue", "experiment_level") + 1
    by_place = (
        run.tables["messages"]
        .select("file", "dialogue", "experiment_level", "line", *COMPONENTS.values())
        .sort("file", "dialogue", "experiment_level", "line")
        .with_columns(place.alias("x"))
        .filter(pl.col("x") <= _LATEST_MESSAGE)
        .group_by("x")
        .agg(pl.col(match).cast(pl.Float64).mean() for match in COMPONENTS.values())
        .sort("x")
        .collect(engine="streaming")
    )
    series = tuple(
        Series(
            name=state.replace("_", " "),
            frame=by_place.select("x", pl.col(match).alias("y")).drop_nulls("y"),
        )
        for state, match in COMPONENTS.items()
        if by_place[match].null_count() < by_place.height
    )
    if not series:
        return []
    return [
        Section(
            title="States over messages",
            text="The share of guests whose state is what their persona expects, at each message "
            "of the guest, component by component. PAS is the mean of all of them.",
            charts=(
                Chart(
                    title="As the persona expects, by message of the guest",
                    x_label="message of the guest",
                    y_label="share",
                    series=series,
                ),
            ),
        )
    ]


def spoken_turns(raw: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Return the messages, but no test cases; see `SPOKEN_TURNS`."""
    raw = identify(raw, SOURCE)
    conversations = read_events(raw, build_options(GuestSimulation, options)).frames[
        "conversations"
    ]
    rows = conversations.select(pl.col("dialogue").alias(IDENTITY)).with_row_index("dialogue_row")
    turns = (
        raw.filter(pl.col("name").ne_missing("test_case_info"))
        .join(rows, on=IDENTITY, maintain_order="left")
        .select(
            pl.col("dialogue_row").cast(pl.Int64),
            speaker=pl.when(pl.col("name") != "").then("name").otherwise("role"),
            text="content",
        )
    )
    # a judge names conversations as the log does
    named = conversations.with_columns(dialogue="conversation_id")
    return spoken(turns, named, unit=("test_case",))
