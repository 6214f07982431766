"""What a run's rows lack: counted while they are read, then said in notes and errors.

Counts are added up over shards by their receipts. Words that a suite does not know have a table.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, tee
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import InputError, counted, listed
from fastscore.logs.inputs.column_map import EACH, column_flag, typed
from fastscore.logs.inputs.document_values import first_at, scalars_of
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.integrity.rejects import cut, describe_reject
from fastscore.logs.samples.profile import (
    KINDS,
    LEAST_CHARACTERS,
    MOST_ROWS_SAMPLED,
    SHOWN,
    Profile,
    Record,
    RequiredColumn,
    all_columns,
    json_types,
    keys_of_others,
    list_keys,
    nearest_key,
    profile_of,
)
from fastscore.run.commit import REJECTS, UNKNOWN_SCHEMA, part_name
from fastscore.run.manifest import Manifest
from fastscore.run.request import Request
from fastscore.suites.base import Events, Nulls, Suite
from fastscore.suites.chats import ChatRows
from fastscore.suites.columns import unknown_words
from fastscore.suites.declarations import (
    ALL_METRICS,
    NOTED_COUNTS,
    ODD_LETTERS,
    PAIRED_TURNS,
    REPEATED_ROWS,
    REPLACED_ROWS,
    TAGS,
    THOUGHTS,
    UNPAIRED_TURNS,
    UNREAD_REST,
    Column,
    Source,
)
from fastscore.suites.summary import ALL

NULL, ASKED, EMPTY = "null:", "asked:", "empty:"
"""Before the path of a column, in counts: rows that lack it, rows that should have it, those of
them that count as having an empty one."""
JOINED_LINES, JOINED_DIALOGUES = "joined_lines", "joined_dialogues"
"""How many lines of rows share the name of a dialogue with another line, and how many names."""
_THOUGHT = r"(?i)<(think|thinking|thought|reasoning)>"
_ODD_LETTER = (
    "[\u0300-\u036f\u2018\u2019\u00a0\u202f]"
    r"|\\u(03[0-6][0-9a-fA-F]|201[89]|00[aA]0|202[fF])|&(#\w+|nbsp|amp|apos|quot|lt|gt);"
)
"""Combining marks, curly apostrophes, spaces that do not break, as JSON and HTML have them, too."""
_TAG = (
    r"(?i)<\\?/?(p|br|div|span|b|i|em|strong|a|ul|ol|li|h[1-6]|table|tr|td|img)"
    r"(\s[^<>]*)?/?>"
)
_ODD_TEXTS = {THOUGHTS: _THOUGHT, TAGS: _TAG, ODD_LETTERS: _ODD_LETTER}
_NO_WORDS = pl.DataFrame(schema=UNKNOWN_SCHEMA)
MOST_NAMED = 100
"""How many of a column's unknown words are looked at to say what to type."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What was counted of rows."""

    counts: dict[str, int]  # by name, as in receipts
    unknown: pl.DataFrame  # every word that the suite does not know, `UNKNOWN_SCHEMA`


def count_missing(frame: pl.DataFrame, source: Source, events: Events) -> RowCounts:
    """Count what rows lack: nulls, names of their own, words that the suite knows."""
    counts: dict[str, int] = {}
    places = {where for column in source.columns if (where := _where(column)) is not None}
    rows_where = {where: frame[where[0]] == where[1] for where in places}
    nulls = {
        column.name: _nulls(frame, column, source, rows_where)
        for column in source.columns
        if column.needed.by or column.vocabulary.known
    }
    text_places = {
        each.place
        for each in all_columns(source)
        if each.column.kind == "text" and not each.column.vocabulary.known
    }
    unknown = []
    for path, found in (nulls | dict(events.nulls)).items():
        counts[NULL + path], counts[ASKED + path] = found.null, found.asked
        as_empty = events.nulls_are_empty and path in text_places
        counts[EMPTY + path] = found.null if as_empty else 0
        unknown += [(path, word, count) for word, count in found.unknown.items()]
    words = _NO_WORDS
    if unknown:
        words = pl.DataFrame(unknown, schema=UNKNOWN_SCHEMA, orient="row").sort("column", "word")
    counts |= _joined(frame, source) | _repeated(frame, source) | _odd_texts(frame, source)
    return RowCounts(counts, words)


def _where(column: Column) -> tuple[str, str] | None:
    """Return the column and the word of the rows in which another is read, or missed."""
    return column.only_where or column.needed.where


def _nulls(
    frame: pl.DataFrame,
    column: Column,
    source: Source,
    rows_where: Mapping[tuple[str, str], pl.Series],
) -> Nulls:
    values, where = frame[column.name], _where(column)
    known = sum(
        rows.sum()
        for (name, word), rows in rows_where.items()
        if name == column.name and word in column.vocabulary.known
    )
    all_known = known + values.null_count() == frame.height
    unknown = {} if all_known else unknown_words(values, column.vocabulary)
    asked = None
    for holder in source.columns:
        if any(item.name == column.name for item in holder.items):
            asked = frame[holder.name].is_null()
    if where is not None:
        asked = rows_where[where]
    if asked is None:
        return Nulls(values.null_count(), frame.height, unknown)
    lacking = int((values.is_null() & asked).sum()) if values.null_count() else 0
    return Nulls(lacking, int(asked.sum()), unknown)


def _is_of_arrays(source: Source) -> bool:
    """Tell whether the rows of a line are elements of its arrays."""
    return bool(source.rows or (source.chat and not source.chat.layout.is_row_per_turn))


def _joined(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the lines whose arrays are put together because they have no name of their own."""
    if not (_is_of_arrays(source) and source.dialogue_key):
        return {}
    dialogue = ("file", *source.dialogue_key)
    named = frame.drop_nulls(source.dialogue_key[0]).select(*dialogue, "line").unique()
    lines = named.group_by(dialogue).len("lines")["lines"]
    several = lines.filter(lines > 1)
    return {JOINED_LINES: int(several.sum()), JOINED_DIALOGUES: len(several)}


def _repeated(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the messages that equal an earlier one of their dialogue, if each is a row."""
    rows = source.chat_rows
    # turns that are joined are no rows any more
    if rows is None or not source.dialogue_key or rows.text not in frame.columns:
        return {}
    # a document that names no dialogue is one by itself
    of_line = pl.lit(None)
    if _is_of_arrays(source):
        of_line = pl.when(pl.col(source.dialogue_key[0]).is_null()).then("line")
    read = frame.select("file", of_line.alias("line"), *(column.name for column in source.columns))
    candidates = read.filter(read.hash_rows().is_duplicated())
    # a log that was written twice has also its short ones twice
    if candidates.height < read.height:
        candidates = candidates.filter(pl.col(rows.text).str.len_chars() >= LEAST_CHARACTERS)
    repeated = candidates.height - candidates.unique().height
    return {REPEATED_ROWS: repeated} if repeated else {}


def _odd_texts(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the rows of chats with thoughts, or with letters that words are not compared by."""
    rows = source.chat_rows
    if rows is None:
        return {}
    texts = pl.col(rows.array or rows.text)
    found = frame.select(
        pl.when(texts.str.contains(pattern)).then(1).sum().alias(name)
        for name, pattern in _ODD_TEXTS.items()
    )
    return {name: count for name, count in found.row(0, named=True).items() if count}


@dataclass(frozen=True, slots=True)
class NullCounts:
    """What a column lacks."""

    path: str  # its name, with that of the array that holds it
    # in how many rows, or objects, it is null, and in how many it should stand
    null: int
    asked: int
    n_empty: int  # how many of the nulls count as empty texts
    # in how many rows or objects there is a word that the suite does not know, and how many
    # different ones there are
    n_unknown: int
    n_words: int
    # the most frequent ones, with their numbers: `MOST_NAMED` at most; of equally frequent ones
    # those that sort first
    words: Mapping[str, int]


def take_null_counts(counts: dict[str, int], unknown: pl.LazyFrame) -> list[NullCounts]:
    """Take what columns lack out of a run's counts."""
    ranked = (
        unknown.group_by("column", "word")
        .agg(pl.col("rows").sum())
        .sort("rows", "word", descending=[True, False])
        .group_by("column", maintain_order=True)
        .agg(
            pl.col("rows").sum().alias("total"),
            pl.len().alias("n_words"),
            pl.col("word", "rows").head(MOST_NAMED),
        )
        .collect()
    )
    words = {
        column: (total, n_words, dict(zip(named, rows, strict=True)))
        for column, total, n_words, named, rows in ranked.iter_rows()
    }
    paths = [name.removeprefix(NULL) for name in counts if name.startswith(NULL)]
    return [
        NullCounts(
            path,
            counts.pop(NULL + path),
            counts.pop(ASKED + path),
            counts.pop(EMPTY + path),
            *words.get(path, (0, 0, {})),
        )
        for path in paths
    ]


_LONGEST_WORD = 40
_ROWS_COUNTED = 100


def notes_on_missing(missing: Iterable[NullCounts], source: Source) -> list[str]:
    """Say of columns how often they are null, where all metrics need them, and of their words."""
    columns = {each.place: each.column for each in all_columns(source)}
    notes = []
    for each in missing:
        objects = "objects" if EACH[:-1] in each.path else "rows"
        of_all = f"of {counted(each.asked, objects)}"
        column = columns.get(each.path)
        if column and column.needed.by == ALL_METRICS and each.null:
            note = f"{each.path}: null in {each.null:,} {of_all}"
            taken = "; counted as empty, as published" if each.n_empty else ""
            notes.append(note + taken)
        if each.words:
            description = _describe_unknown_words(each, of_all, column, source.chat_rows)
            notes.append(f"{each.path}: {description}")
    return notes


def _describe_unknown_words(
    found: NullCounts, of_all: str, column: Column | None, chat_rows: ChatRows | None
) -> str:
    """Name the words that a suite does not know, and what to type."""
    first = islice(found.words.items(), SHOWN)
    note = ", ".join(f"{cut(word, _LONGEST_WORD)!r} in {count:,}" for word, count in first)
    if found.n_words > SHOWN:
        note += f" and {found.n_words - SHOWN:,} more words, in {found.n_unknown:,} together"
    note += f" {of_all}"
    if column is None:
        return note + ", which no rule knows"
    from fastscore.logs.inputs.near_names import word_flags

    words = column.vocabulary
    # where all words are unknown, none of the suite's own is beside them
    beside = words.needed if found.n_unknown < found.asked - found.null else ()
    flags = word_flags(column, found.words, beside, words.known, chat_rows)
    known = ", ".join(filter(None, words.known))
    return f"{note}; known: {known}" + (f"; type {typed(flags)}" if flags else "")


def _note_on_lines(counts: dict[str, int], source: Source) -> list[str]:
    """Say how many lines are put together, taking that out of the counts."""
    lines, dialogues = counts.pop(JOINED_LINES, 0), counts.pop(JOINED_DIALOGUES, 0)
    if not lines:
        return []
    name = source.dialogue_key[0]
    return [
        f"{name}: {lines:,} lines have the names of {counted(dialogues, 'dialogues')} and are "
        f"put together by them; type {typed([column_flag(name, 'KEY')])} if each line is a "
        "dialogue of its own"
    ]


def _note_on_rows(counts: dict[str, int]) -> list[str]:
    """Say what was counted of rows, taking that out of the counts."""
    notes = []
    for name, (noun, verbs, note) in NOTED_COUNTS.items():
        count = counts.pop(name, 0)
        if count:
            notes.append(f"{counted(count, noun)} {verbs[count > 1]} {note}")
    return notes


_ROWS_COMPARED, _MOST_SYSTEMS, _DEEPEST_LABEL = 20_000, 20, 2


def note_on_systems(rows: Iterable[Record], source: Source, suite: Suite) -> str:
    """Name a key that tells rows of one name apart, as the name of a system does; empty for none.

    A row's name is what the suite tells rows apart by: its dialogue, its numbers, its words.
    """
    own = [name for _, name in source.variants]
    # the suite's first group is its system
    labels = [*(name for name in suite.design.groups if name in own), *own]
    told = {*source.dialogue_key, *labels, *(source.row_id.columns if source.row_id else ())}
    columns = [
        column
        for column in source.columns
        if column.name in told or column.kind == "integer" or column.vocabulary.needed
    ]
    known = {key for column in source.columns for key in column.keys}
    # rows that do not name their dialogue are of their file's, whatever else they name
    heads = () if source.row_dialogues else source.dialogue_key[:1]
    beside = {key for name in source.dialogue_key[1:] for key in source.column(name).keys}
    by_name: dict[tuple[str, ...], list[Record]] = {}
    words: dict[str, set[str | int]] = {}
    n_rows = 0
    # rows that are dialogues are long
    for row in islice(rows, MOST_ROWS_SAMPLED if source.row_dialogues else _ROWS_COMPARED):
        named = {column.name: str(first_at(row, column.keys)) for column in columns}
        is_unnamed = any(named[head] == str(None) for head in heads)
        if is_unnamed:
            named |= dict.fromkeys(source.dialogue_key, str(None))
        read = known - beside if is_unnamed else known
        labels_of = {
            key: value
            for key, value in scalars_of(row, _DEEPEST_LABEL)
            if key not in read and isinstance(value, str | int) and not isinstance(value, bool)
        }
        by_name.setdefault(tuple(named.values()), []).append(labels_of)
        n_rows += 1
        for key, value in labels_of.items():
            found = words.setdefault(key, set())
            if len(found) <= _MOST_SYSTEMS:
                found.add(value)
    several = {name: group for name, group in by_name.items() if len(group) > 1}
    for key, systems in words.items() if several and labels else ():
        # the values of a time are as many as the rows
        is_label = 1 < len(systems) <= min(_MOST_SYSTEMS, n_rows // 2)
        is_apart = all(
            len({str(row.get(key)) for row in group}) == len(group)
            for group in several.values()
            if any(key in row for row in group)
        )
        if is_label and is_apart:
            names = [column.name for column in columns]
            stands = dict(zip(names, next(iter(several)), strict=True))
            free = (label for label in (*heads, *labels) if stands[label] == str(None))
            last = labels[-1]
            if len({name[names.index(last)] for name in by_name}) > 1 and source.row_dialogues:
                # systems keep their names: a label that no metric reads takes the key
                last = next((one.name for one in source.columns if one.otherwise == "null"), last)
            flag = column_flag(next(free, last), key)
            shown = listed(sorted(repr(str(system)) for system in systems), 3)
            return f"{key} tells rows of one name apart (it is {shown}): type {typed([flag])}"
    return ""


def _note_on_unnamed(
    replaced: int, counts: Mapping[str, int], dialogues: pl.LazyFrame, source: Source
) -> str:
    """Say that most rows are replaced as no row names its dialogue; empty if they are not."""
    name = source.dialogue_key[0]
    if 2 * replaced <= counts.get("rows", 0) or name not in dialogues.collect_schema():
        return ""
    if dialogues.select(pl.col(name).count()).collect().item():
        return ""
    return (
        f"no row has {name}, so all rows of a file are one dialogue: type "
        f"{typed([column_flag(name, 'KEY')])}"
    )


def _notes_on_copies(inputs: Collection[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Name the inputs that are copies of another one; return them, and notes: empty ones too."""
    first: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    sizes = {entry["name"]: entry["bytes"] for entry in inputs}
    empty = [name for name, size in sizes.items() if not size]
    notes = [f"{counted(len(empty), 'empty files')} of {len(sizes):,}: {listed(empty, 3)}"]
    notes *= 0 < len(empty) < len(sizes)
    for entry in inputs:
        if not entry["bytes"]:
            continue
        original = first.setdefault(entry["content_hash"], entry["name"])
        if original != entry["name"]:
            copies.append((entry["name"], original))
    if not copies:
        return [], notes
    copy, original = copies[0]
    noun = "copy" if len(copies) == 2 else "copies"
    more = f", and {len(copies) - 1:,} more {noun}" if len(copies) > 1 else ""
    note = f"{copy} has the same content as {original}{more}: such dialogues count twice"
    return [name for name, _ in copies], [*notes, note]


def _note_on_dialogues(
    dialogues: pl.LazyFrame, source: Source, copies: Collection[str]
) -> tuple[list[str], int]:
    """Note the dialogues that repeat another one, and count those that share a name.

    Copies of whole files are noted already.
    """
    schema = dialogues.collect_schema()
    if "line" not in schema:
        return [], 0  # rows of one key are one dialogue
    notes = []
    id = source.row_id.columns[0] if source.row_id else ""
    if id in schema:
        n_null, n = dialogues.select(pl.col(id).is_null().sum(), n=pl.len()).collect().row(0)
        if 0 < n_null < n:
            notes.append(f"{id}: null in {n_null:,} of {n:,} dialogues, named by their places")
    # dialogues that share a name have their places in it
    bare = pl.col("dialogue").str.replace("/(?:in|row)=.*$", "")
    shares = (bare != "") & (bare != pl.col("dialogue"))
    found = dialogues.filter(shares, ~pl.col("file").is_in(list(copies))).collect()
    found = found.with_columns(bare.alias("dialogue"))
    place = ("line",) if source.key_within_file else ("file", "line")
    values = [name for name, dtype in schema.items() if name not in place and not dtype.is_nested()]
    found = found.with_columns(of=pl.concat_str("file", pl.lit(":"), "line"))
    repeated = found.with_columns(
        original=pl.col("of").first().over(values), number=pl.int_range(pl.len()).over(values)
    ).filter(pl.col("number") > 0)
    if repeated.is_empty():
        in_files = found.filter(pl.col("file").n_unique().over("dialogue") > 1)
        if source.key_within_file and not in_files.is_empty():
            names = in_files.group_by("dialogue", maintain_order=True).agg(pl.col("file").unique())
            name, files = names.row(0)
            notes.append(
                f"{counted(names.height, 'dialogue ids')} in more than one file: the rows of each "
                f"file are a dialogue of their own (first: {name} in "
                f"{' and '.join(sorted(files)[:2])}). Put the rows of one into one file"
            )
        return notes, found.height
    copy, original = repeated.select("of", "original").row(0)
    verb = "repeats" if repeated.height == 1 else "repeat"
    return [
        *notes,
        f"{counted(repeated.height, 'dialogues')} {verb} another one, with the same name and the "
        f"same values (first: {copy} repeats {original}): such dialogues count twice",
    ], found.height


def missing_columns(
    missing: Iterable[NullCounts], source: Source, summary: pl.DataFrame, options: Any
) -> list[tuple[RequiredColumn, str]]:
    """Find the columns that are null everywhere and leave metrics that need them null."""
    asked = [each for each in missing if each.asked]
    everywhere = {each.path for each in asked if each.null == each.asked}
    whole = summary.filter(pl.col("group") == ALL)
    null = set(whole.filter(pl.col("n") + pl.col("n_fixed") == 0)["metric"])
    given = {each.path.rpartition(EACH)[2] for each in asked if each.path not in everywhere}
    found = []
    for need in all_columns(source):
        column = need.column
        if need.place not in everywhere or column.name in given:
            continue
        if column.needed.given_by and getattr(options, column.needed.given_by[0]):
            continue
        lost = tuple(name for name in column.needed.by if name in null)
        if column.needed.by == ALL_METRICS:
            lost = ("every metric",)
        affected = tuple(name for name in column.needed.affects if name not in null)
        effects = [
            f"{', '.join(metrics)} {'is' if len(metrics) == 1 else 'are'} {how}"
            for metrics, how in ((lost, "null in every row"), (affected, "scored without it"))
            if metrics
        ]
        if effects:
            found.append((not lost, need, ", ".join(effects)))
    return [(need, effects) for _, need, effects in sorted(found, key=lambda each: each[0])]


def _describe_missing(
    need: RequiredColumn, effects: str, found: Profile, source: Source, told: set[str]
) -> str:
    """Say what a missing column does to metrics, which keys were found, and what to type.

    Keys that another note has `told` are left out.
    """
    place, column, holder = need.place, need.column, need.holder
    keys = found.around(source, holder)
    for key in (keys[name] for name in column.keys if name in keys):
        if key.types and json_types(column).isdisjoint(key.types):
            types = ", ".join(f"{each}s" for each in key.types)
            return f"{effects}: {place}: found {types}, expected {KINDS[column.kind]}"
    siblings = holder.items if holder else source.columns
    nearest = nearest_key(column, keys, keys_of_others(siblings, column.name))
    advice = f"; type {typed([column_flag(column.name, nearest)])}" if nearest else ""
    if column.needed.given_by:
        advice += f"; or give {' or '.join(column.needed.given_by)}"
    listed_keys = f"; found: {list_keys(keys)}"
    shown = "" if listed_keys in told else listed_keys
    told.add(listed_keys)
    return f"{effects}: no row has {place} (looked for: {', '.join(column.keys)}{shown}{advice})"


def add_counts(of_shards: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up what was counted of shards, by name."""
    total: Counter[str] = Counter()
    for counts in of_shards:
        total.update(counts)
    return dict(total)


def note_run(
    manifest: Manifest,
    suite: Suite,
    options: Any,
    source: Source,
    unknown: pl.LazyFrame,
    summary: pl.DataFrame,
    rows: Iterable[dict[str, Any]],
    dialogues: pl.LazyFrame,
) -> None:
    """Write into a run's manifest what its rows lack, and take that out of its counts."""
    missing = take_null_counts(manifest.counts, unknown)
    lacking = missing_columns(missing, source, summary, options)
    rows, again = tee(rows)
    found = profile_of(rows, _ROWS_COUNTED) if lacking else Profile()
    whole = summary.filter(pl.col("group") == ALL)
    copies, notes_on_copies = _notes_on_copies(manifest.inputs)
    of_suite = suite.notes(dialogues, options) if suite.notes and dialogues.collect_schema() else ()
    on_dialogues, n_shared = _note_on_dialogues(dialogues, source, copies)
    replaced = manifest.counts.get(REPLACED_ROWS, 0)
    unnamed = _note_on_unnamed(replaced, manifest.counts, dialogues, source) if replaced else ""
    every = again if (replaced or n_shared) and not unnamed else ()
    systems = note_on_systems(every, source, suite)
    manifest.mixed = unnamed or (systems if replaced else "")
    told: set[str] = set()
    manifest.lacking = [_describe_missing(*each, found, source, told) for each in lacking]
    manifest.notes = [
        *of_suite,
        *notes_on_missing(missing, source),
        *_note_on_lines(manifest.counts, source),
        *_note_on_rows(manifest.counts),
        *on_dialogues,
        *([systems] if systems else []),
        *notes_on_copies,
    ]
    manifest.all_null = any(need.column.needed.by == ALL_METRICS for need, _ in lacking) or (
        # a value that the definition fixes is one, though no part of the mean
        whole.height > 0 and not (whole["n"] + whole["n_fixed"] > 0).any()
    )


MOST_UNPAIRED = 0.1
"""The share of messages that may pair with nothing, beside one for each dialogue."""


def unscored_error(
    manifest: Manifest, inputs: str, reject: str | None, pairing: str, *, strict: bool
) -> InputError | None:
    """Make the error of a run in which nothing was scored, or not all that must be, else None."""
    finest = next(iter(manifest.tables))
    if not manifest.tables[finest]["rows"]:
        lines = manifest.counts.get("lines", 0) - manifest.counts.get("blank", 0)
        found = [counted(value, name) for name, value in manifest.counts.items() if value]
        if not lines:
            return InputError(f"Nothing was scored: {inputs} has no rows.", reject)
        if manifest.counts.get(UNPAIRED_TURNS):
            reject = f"{reject} {pairing}"
        return InputError(
            f"Nothing was scored: there is no row for {finest} in {counted(lines, 'lines')} of "
            f"{inputs} ({', '.join(found) or 'nothing was read'})."
            + "".join(f"\n  {each}" for each in manifest.notes),
            reject,
        )
    if manifest.all_null:
        return InputError(
            f"Nothing was scored: every metric of {manifest.suite} is null in every row."
            + "".join(f"\n  {each}" for each in manifest.lacking),
            "The tables say why, row by row, in null_reasons.",
        )
    if strict and manifest.lacking:
        return InputError(
            "Metrics lack a column in every row, and strict is set; all else is scored.\n  "
            + "\n  ".join(manifest.lacking),
            "Map the columns, or leave strict out.",
        )
    return None


def refusal(request: Request, manifest: Manifest, found: Path | pl.DataFrame) -> InputError | None:
    """Make the error of a run that counts as refused, None of any other.

    ``found`` is the run's folder, or the rejects of a run in memory.
    """
    counts = manifest.counts
    rejects, lines = manifest.lost_lines
    if isinstance(found, pl.DataFrame):
        rest, has_rejects = "nothing is returned unless max_rejects is 1", not found.is_empty()
    else:
        rest, has_rejects = "the others are scored", counts.get("rejects", 0) > 0
    where = rest_error = None
    pairing = ""
    if has_rejects:
        if isinstance(found, pl.DataFrame):
            rejected = found.lazy()
        else:
            parts = [found / REJECTS / part_name(index) for index in range(manifest.shards)]
            rejected = pl.scan_parquet(parts, glob=False)
        where, rest_error = _first_reject(found, rejected), _rest_error(rejected, rest)
        pairing = _advice_on_pairs(manifest, rejected)
    first, *others = [entry["name"] for entry in manifest.inputs] or [FRAME_NAME]
    inputs = f"{first} and {counted(len(others), 'more files')}" if others else str(first)
    unscored = unscored_error(manifest, inputs, where, pairing, strict=request.strict)
    if unscored is None and rest_error is not None and request.max_rejects < 1.0:
        return rest_error
    if unscored is None and rejects > request.max_rejects * max(lines, 1):
        return InputError(
            f"{rejects:,} of {counted(lines, 'lines')} "
            f"{'is a reject' if rejects == 1 else 'are rejects'}, more than "
            f"max_rejects {request.max_rejects:g} allows; {rest}.",
            where,
        )
    if unscored is not None or request.max_rejects >= 1.0:
        return unscored
    if manifest.mixed:
        return InputError(
            f"Rows are replaced by later ones: {manifest.mixed}.",
            "To score the last row of each, set max_rejects to 1. For another column in the same "
            "output, also set overwrite.",
        )
    return _unpaired_error(counts, pairing, rest)


def _unpaired_error(counts: Mapping[str, int], pairing: str, rest: str) -> InputError | None:
    """Make the error of logs many of whose messages pair with nothing; None of others.

    The last request of each dialogue may have no reply.
    """
    unpaired, pairs = counts.get(UNPAIRED_TURNS, 0), counts.get(PAIRED_TURNS, 0)
    messages = 2 * pairs + unpaired
    if unpaired - counts.get("dialogues", 0) <= MOST_UNPAIRED * messages:
        return None
    return InputError(
        f"{unpaired:,} of {counted(messages, 'messages')} pair with nothing, more than "
        f"{MOST_UNPAIRED:.0%} and one for each dialogue; {rest}.",
        pairing,
    )


def _advice_on_pairs(manifest: Manifest, rejects: pl.LazyFrame) -> str:
    """Say what makes messages pair: those of one speaker or of unknown ones do not."""
    if not manifest.counts.get(UNPAIRED_TURNS):
        return ""
    unpaired = rejects.filter(pl.col("reason") == "unpaired_turn")
    rows = unpaired.select("found", "expected").unique().sort("found").collect().iter_rows()
    speakers = {found.removeprefix("a turn of "): expected.split() for found, expected in rows}
    # a turn without a speaker is one of nobody
    unknown = [name for name, known in speakers.items() if name not in {*known, "nobody"}]
    can_pair = manifest.counts.get(PAIRED_TURNS) or len(speakers) - len(unknown) > 1
    if manifest.options.get("merge_speakers") or not can_pair:
        such = "".join(f", such as {name!r}" for name in unknown[:1])
        return (
            f"Look at the speakers in the rejects{such}: words may have to be mapped with values."
        )
    return "Set merge_speakers to join messages of one speaker that follow each other."


def _rest_error(rejects: pl.LazyFrame, rest: str) -> InputError | None:
    """Make the error of files whose rest was not read, None if all were read to their ends."""
    broken = rejects.filter(pl.col("reason").is_in(UNREAD_REST)).collect()
    if broken.is_empty():
        return None
    first, n_files = broken.row(0, named=True), broken["file"].n_unique()
    others = f", as that of {counted(n_files - 1, 'more files')}" if n_files > 1 else ""
    again = "Get the whole file again."
    if first["found"].startswith("'['"):
        again = f"If arrays follow each other: jq -c '.[]' {first['file']} > rows.jsonl."
    return InputError(
        f"{first['file']}:{first['line']}: the file ends early or is damaged (found "
        f"{first['found']}, expected {first['expected']}). Its rest is missing{others}; {rest}.",
        f"{again} To accept what was read, set max_rejects to 1.",
    )


def _first_reject(found: Path | pl.DataFrame, rejects: pl.LazyFrame) -> str:
    """Describe the first reject of a run's folder, or of a run in memory, with what helps."""
    from fastscore.logs.samples.refusals import suggest_conversion_of, suggest_words

    first = rejects.head(1).collect().row(0, named=True)
    advice = suggest_conversion_of(rejects) + suggest_words(str(first["file"]), first)
    listed_in = f"; all are listed in {found / REJECTS}" if isinstance(found, Path) else ""
    return f"{describe_reject(first)}{listed_in}.{advice}"
