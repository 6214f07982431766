"""What is said at the end of a run of what its rows lack, and which metrics that costs."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from fastscore.errors import counted
from fastscore.logs.inputs.column_map import EACH, column_flag, typed
from fastscore.logs.inputs.found_keys import SHOWN, FoundKeys, count_keys, listed
from fastscore.logs.inputs.needs import Need, all_columns
from fastscore.logs.inputs.roles import role_flags
from fastscore.logs.inputs.similar_names import (
    KINDS,
    json_types,
    keys_of_others,
    nearest_key,
    nearest_words,
)
from fastscore.options import list_alternatives
from fastscore.run.missing import (
    JOINED_DIALOGUES,
    JOINED_LINES,
    REPEATED_ROWS,
    Missing,
    UnknownWords,
    missing_columns,
)
from fastscore.suites.chats import ChatRows
from fastscore.suites.declarations import ALL_METRICS, REPLACED_ROWS, Column, Source
from fastscore.suites.summary import ALL

_LONGEST_WORD = 40
_ROWS_COUNTED = 100


def notes_on_missing(missing: Iterable[Missing], source: Source) -> list[str]:
    """Say of columns how often they are null, where all metrics need them, and of their words."""
    columns = {each.place: each.column for each in all_columns(source)}
    notes = []
    for each in missing:
        objects = "objects" if EACH[:-1] in each.path else "rows"
        of_all = f"of {counted(each.asked, objects)}"
        column = columns.get(each.path)
        if column and column.needed_by == ALL_METRICS and each.null:
            note = f"{each.path}: null in {each.null:,} {of_all}"
            taken = "; counted as empty, as published" if each.n_empty else ""
            notes.append(note + taken)
        if each.unknown:
            said = _describe_unknown_words(each.unknown, of_all, column, source.chat_rows)
            notes.append(f"{each.path}: {said}")
    return notes


def _describe_unknown_words(
    unknown: UnknownWords, of_all: str, column: Column | None, chat_rows: ChatRows | None
) -> str:
    """Name the words that a suite does not know, and what to type."""
    shown = [
        f"{_abbreviate(word)} in {count:,}" for word, count in islice(unknown.named.items(), SHOWN)
    ]
    note = ", ".join(shown)
    if unknown.distinct > SHOWN:
        note += f" and {unknown.distinct - SHOWN:,} more words, in {unknown.rows:,} together"
    note += f" {of_all}"
    if column is None:
        return note + ", which no rule knows"
    if chat_rows is not None and column.name == chat_rows.speaker:
        flags = role_flags(unknown.named, column.expects, chat_rows, column.knows)
    else:
        flags = nearest_words(column.name, unknown.named, column.knows)
    known = ", ".join(word for word in column.knows if word)
    return f"{note}; known: {known}" + (f"; type {typed(flags)}" if flags else "")


def _abbreviate(word: str) -> str:
    return repr(word if len(word) <= _LONGEST_WORD else word[: _LONGEST_WORD - 1] + "…")


def _note_on_lines(counts: dict[str, int], source: Source) -> list[str]:
    """Say how many lines are put together, taking that out of the counts."""
    lines, dialogues = counts.pop(JOINED_LINES, 0), counts.pop(JOINED_DIALOGUES, 0)
    if not lines:
        return []
    name = source.dialogue_key[0]
    return [
        f"{name}: {lines:,} lines have the names of {counted(dialogues, 'dialogues')} and are put "
        f"together by them; type --column {name}=KEY if each line is a dialogue of its own"
    ]


def _note_on_rows(counts: dict[str, int]) -> list[str]:
    """Say how many rows repeat another one, taking that out of the counts."""
    repeated, replaced = counts.pop(REPEATED_ROWS, 0), counts.pop(REPLACED_ROWS, 0)
    notes = []
    if repeated:
        notes.append(
            f"{counted(repeated, 'rows')} {'repeats' if repeated == 1 else 'repeat'} an earlier "
            "row of the same dialogue in every column: such rows count twice"
        )
    if replaced:
        notes.append(
            f"{counted(replaced, 'rows')} {'is' if replaced == 1 else 'are'} replaced by a later "
            "row for the same step or utterance: the last row counts"
        )
    return notes


def _notes_on_copies(inputs: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Name the inputs that are copies of another one; return them, and a note."""
    first: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    for entry in inputs:
        original = first.setdefault(entry["content_hash"], entry["name"])
        if original != entry["name"]:
            copies.append((entry["name"], original))
    if not copies:
        return [], []
    copy, original = copies[0]
    noun = "copy" if len(copies) == 2 else "copies"
    more = f", and {len(copies) - 1:,} more {noun}" if len(copies) > 1 else ""
    note = f"{copy} has the same content as {original}{more}: such dialogues count twice"
    return [name for name, _ in copies], [note]


def _note_on_dialogues(
    dialogues: pl.LazyFrame, source: Source, copies: Collection[str]
) -> list[str]:
    """Note the dialogues that repeat another one; copies of whole files are noted already."""
    schema = dialogues.collect_schema()
    if "line" not in schema:
        return []  # rows of one key are one dialogue
    # a dialogue without an id has the name of its file
    of_file = pl.col("file").str.contains(pl.format("{}.", "dialogue"), literal=True)
    dialogues = dialogues.filter(
        pl.col("dialogue").is_not_null(), ~of_file, ~pl.col("file").is_in(list(copies))
    )
    hashes = dialogues.select(pl.col("dialogue").hash()).collect(engine="streaming").to_series()
    several = hashes.filter(hashes.is_duplicated())
    if several.is_empty():
        return []
    place = ("line",) if source.key_within_file else ("file", "line")
    values = [name for name, dtype in schema.items() if name not in place and not dtype.is_nested()]
    found = dialogues.filter(pl.col("dialogue").hash().is_in(several.unique().implode())).collect()
    found = found.with_columns(of=pl.concat_str("file", pl.lit(":"), "line"))
    repeated = found.with_columns(
        original=pl.col("of").first().over(values), number=pl.int_range(pl.len()).over(values)
    ).filter(pl.col("number") > 0)
    if repeated.is_empty():
        return []
    copy, original = repeated.select("of", "original").row(0)
    verb = "repeats" if repeated.height == 1 else "repeat"
    return [
        f"{counted(repeated.height, 'dialogues')} {verb} another one, with the same name and the "
        f"same values (first: {copy} repeats {original}): such dialogues count twice"
    ]


@dataclass(frozen=True, slots=True)
class Lacking:
    """A column that is null everywhere, and the metrics that lack it in every row.

    Parameters
    ----------
    need
        The column.
    null
        The metrics that are null without it.
    affected
        The metrics that have another value without it.
    """

    need: Need
    null: tuple[str, ...]
    affected: tuple[str, ...]

    def describe(self, found: FoundKeys, source: Source) -> str:
        """Say so, with the keys that were found and what to type."""
        lost = [
            f"{', '.join(metrics)} {'is' if len(metrics) == 1 else 'are'} {how}"
            for metrics, how in (
                (self.null, "null in every row"),
                (self.affected, "scored without it"),
            )
            if metrics
        ]
        place, column, holder = self.need.place, self.need.column, self.need.holder
        keys = found.around(source, holder)
        for key in (keys[name] for name in column.keys if name in keys):
            if key.types and json_types(column).isdisjoint(key.types):
                types = ", ".join(f"{each}s" for each in key.types)
                return f"{', '.join(lost)}: {place}: found {types}, expected {KINDS[column.kind]}"
        siblings = holder.items if holder else source.columns
        nearest = nearest_key(column, keys, keys_of_others(siblings, column.name))
        advice = f"; type {typed([column_flag(column.name, nearest)])}" if nearest else ""
        if column.given_by:
            advice += f"; also given by {' or '.join(list_alternatives(column))}"
        return (
            f"{', '.join(lost)}: no row has {place} (looked for: {', '.join(column.keys)}; "
            f"found: {listed(keys)}{advice})"
        )


def lacking_columns(
    missing: Iterable[Missing], source: Source, summary: pl.DataFrame, options: Any
) -> list[Lacking]:
    """Find the columns that are null everywhere and leave metrics that need them null.

    Parameters
    ----------
    missing
        What is null.
    source
        The source that rows were read by.
    summary
        The run's summary.
    options
        The suite's options, some of which give what a column does.
    """
    asked = [each for each in missing if each.asked]
    everywhere = {each.path for each in asked if each.null == each.asked}
    whole = summary.filter(pl.col("group") == ALL)
    null = set(whole.filter(pl.col("n") == 0)["metric"])
    given = {each.path.rpartition(EACH)[2] for each in asked if each.path not in everywhere}
    found = []
    for need in all_columns(source):
        column = need.column
        if need.place not in everywhere or column.name in given:
            continue
        if column.given_by and getattr(options, column.given_by[0]):
            continue
        lost = tuple(name for name in column.needed_by if name in null)
        if column.needed_by == ALL_METRICS:
            lost = ("every metric",)
        affected = tuple(name for name in column.affects if name not in null)
        if lost or affected:
            found.append(Lacking(need, lost, affected))
    # what is null comes before what has another value
    return sorted(found, key=lambda each: not each.null)


@dataclass(frozen=True, slots=True)
class NotesOnRun:
    """What a run lacks.

    Parameters
    ----------
    lacking
        Metrics that are null in every row, and the columns that they lack.
    notes
        What else there is to say of its rows.
    nothing_scored
        Whether every metric is null in every row, or a column that all of them need.
    """

    lacking: list[str]
    notes: list[str]
    nothing_scored: bool


def notes_on_run(
    counts: dict[str, int],
    unknown: pl.LazyFrame,
    source: Source,
    summary: pl.DataFrame,
    options: Any,
    rows: Iterable[dict[str, Any]],
    dialogues: pl.LazyFrame,
    inputs: Iterable[Mapping[str, Any]] = (),
) -> NotesOnRun:
    """Say what a run lacks, taking that out of its counts.

    Parameters
    ----------
    counts
        The run's counts.
    unknown
        The words of its rows that the suite does not know, `UNKNOWN_SCHEMA`.
    source
        The source that its rows were read by.
    summary
        Its summary.
    options
        The suite's options.
    rows
        Some of its rows, to name the keys that were found; read only where a metric is null.
    dialogues
        Its table of dialogues.
    inputs
        Its inputs, as the manifest has them.

    Returns
    -------
    NotesOnRun
    """
    missing = missing_columns(counts, unknown)
    lacking = lacking_columns(missing, source, summary, options)
    found = count_keys(rows, _ROWS_COUNTED) if lacking else FoundKeys()
    whole = summary.filter(pl.col("group") == ALL)
    copies, notes_on_copies = _notes_on_copies(inputs)
    return NotesOnRun(
        [each.describe(found, source) for each in lacking],
        [
            *notes_on_missing(missing, source),
            *_note_on_lines(counts, source),
            *_note_on_rows(counts),
            *_note_on_dialogues(dialogues, source, copies),
            *notes_on_copies,
        ],
        any(each.need.column.needed_by == ALL_METRICS for each in lacking)
        or (whole.height > 0 and not (whole["n"] > 0).any()),
    )
