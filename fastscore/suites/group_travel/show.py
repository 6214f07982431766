"""A group's dialogue with its plan against every member's wishes."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from fastscore.settings.options import build_options
from fastscore.suites.base import CommittedRun, Dialogue
from fastscore.suites.group_travel.events import read_events
from fastscore.suites.group_travel.metrics.plan import CHANNELS
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.showing import Chart, DialogueView, Listing, Section, Series, Turn, spoken

TEXTS_IN_LOGS = True


def show_dialogue(dialogue: Dialogue) -> DialogueView:
    """Lay out the turns, then every preference with what satisfies it, then the plan's places."""
    turns = () if dialogue.events is None else tuple(_turns(dialogue.events.frames["turns"]))
    places = dialogue.tables["places"].select(
        "place",
        pl.col("grounded").alias("in the catalogue"),
        pl.col("explicit").alias("named by somebody"),
        "serendipitous",
    )
    return DialogueView(
        turns=turns,
        listings=(
            Listing(title="wishes", frame=wishes(dialogue.tables["pairs"])),
            Listing(title="places of the plan", frame=places),
        ),
    )


def wishes(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return each preference, whether the plan satisfies it, and by which channels."""
    fired = pl.concat_list(
        pl.when(pl.col(f"{channel}_channel")).then(pl.lit(channel)) for channel in CHANNELS
    ).list.drop_nulls()
    return pairs.select(
        "member",
        "slot",
        "preference",
        pl.col("satisfied").alias("plan satisfies"),
        fired.list.join(", ").alias("by"),
        pl.col("addressed").alias("addressed in words"),
    )


def _turns(turns: pl.DataFrame) -> list[Turn]:
    return [
        Turn(
            speaker="system" if turn["is_system"] else turn["member"] or "everyone",
            text=turn["utterance"] or "",
            place=" ".join(word for word in (turn["kind"], turn["slot"]) if word),
        )
        for turn in turns.iter_rows(named=True)
    ]


def report_sections(run: CommittedRun, options: object) -> list[Section]:
    """Show how far plans meet what members asked for: by slot, and by what meets it."""
    actionable = run.tables["pairs"].filter(pl.col("satisfied").is_not_null())
    by_slot = (
        actionable.group_by("slot")
        .agg(
            pl.len().alias("preferences"),
            pl.col("satisfied").mean(),
            *(pl.col(f"{channel}_channel").mean().alias(channel) for channel in CHANNELS),
        )
        .sort("satisfied", descending=True)
        .collect(engine="streaming")
    )
    if by_slot.is_empty():
        return []
    return [
        Section(
            title="Plans against wishes",
            text="The share of members' actionable preferences that the plan satisfies, by slot, "
            "and the share that each channel finds satisfied; several may find the same one.",
            charts=(
                Chart(
                    title="Satisfied preferences by slot",
                    x_label="",
                    y_label="share satisfied",
                    series=(
                        Series(name="satisfied", frame=by_slot.select(x="slot", y="satisfied")),
                    ),
                    bars=True,
                ),
            ),
            listings=(Listing(title="by slot", frame=by_slot),),
        )
    ]


def spoken_turns(raw: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Return the turns, each by the system, a member or everyone; see `SPOKEN_TURNS`."""
    frames = read_events(raw, build_options(GroupTravel, options)).frames
    speaker = (
        pl.when("is_system")
        .then(pl.lit("SYSTEM"))
        .when(pl.col("is_everyone") | (pl.col("member") == ""))
        .then(pl.lit("everyone"))
        .otherwise("member")
    )
    turns = frames["turns"].select("dialogue_row", speaker=speaker, text="utterance")
    return spoken(turns, frames["dialogues"], unit=("scenario",))
