"""Selection of dialogues by name: `--limit` and `--sample`.

A dialogue's name is its key, with its file if keys are unique only within a file. For a sample, a
row that is a dialogue without a key is named by its id (`Source.row_id`). Only a dialogue without
an id is named by its place: its file, or file and line. So a sample does not depend on the order of
lines and files.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels.ids import bucket_starts, distinct_ids, find_ids, text_hash128

from fastscore.errors import UsageError
from fastscore.logs.inputs.files import Format
from fastscore.logs.read.mapped_rows import key_source, name_elements
from fastscore.logs.read.rows import Part
from fastscore.suites.declarations import Source
from fastscore.wording import parameter

Ids = npt.NDArray[np.uint64]

_ROW_ID = "row id"
"""Name of a column that no suite declares."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A selection of dialogues.

    Parameters
    ----------
    limit
        Number of dialogues to score, from the start.
    sample
        Number of dialogues to score, those whose names have the smallest hashes.
    seed
        Seed of the sample, which is part of the hashed text; 0 by default.

    Raises
    ------
    UsageError
        Both a limit and a sample, a seed without a sample, or a number below 1.
    """

    limit: int | None = None
    sample: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.sample is not None:
            raise UsageError(
                f"Both {parameter('limit')} and {parameter('sample')} are given.",
                f"{parameter('limit')} takes dialogues from the start, {parameter('sample')} "
                "from everywhere; name one.",
            )
        if self.seed is not None and self.sample is None:
            raise UsageError(
                f"{parameter('seed')} is given without {parameter('sample')}.",
                f"It says which sample is scored: add {parameter('sample', 'N')}.",
            )
        for flag, value in ((parameter("limit"), self.limit), (parameter("sample"), self.sample)):
            if value is not None and value < 1:
                raise UsageError(f"{flag} is {value}, expected a number of at least 1.")

    def __bool__(self) -> bool:
        """Whether any dialogue is left out."""
        return self.limit is not None or self.sample is not None

    @property
    def signed(self) -> tuple[str, ...]:
        """The selection in the signature; empty if all dialogues are scored."""
        if self.limit is not None:
            return (f"limit={self.limit}",)
        return (f"sample={self.sample}", f"seed={self.seed or 0}") if self else ()


EVERYTHING = Choice()
"""All dialogues are scored."""


@dataclass(frozen=True, slots=True)
class ChosenDialogues:
    """The dialogues that are scored.

    Parameters
    ----------
    first, second
        The two words of their ids, ascending, uint64 (n,).
    seed
        The seed of the sample, None for the first dialogues of a log.
    """

    first: Ids
    second: Ids
    seed: int | None

    @property
    def digest(self) -> str:
        """A hash of the ids, hexadecimal."""
        words = hashlib.blake2b(self.first.tobytes(), digest_size=16)
        words.update(self.second.tobytes())
        return words.hexdigest()

    @classmethod
    def of(cls, ids: Ids, seed: int | None) -> "ChosenDialogues":
        """Create it from ids, uint64 (n, 2)."""
        first, second, _, _ = distinct_ids(ids)
        return cls(first, second, seed)

    def kept(self, part: Part, source: Source) -> Part:
        """Remove rows of other dialogues. Lines that are not rows remain."""
        chosen = self.among(dialogue_ids(part.frame, source, part.format, self.seed))
        kept = part.frame.filter(pl.Series(chosen))
        return replace(part, frame=kept, left_out=part.frame.height - kept.height)

    def among(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which ids, uint64 (n, 2), are chosen, bool (n,)."""
        words = np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1])
        starts = bucket_starts(self.first)
        return find_ids(*words, self.first, self.second, starts) >= 0


def naming_source(source: Source, choice: Choice) -> Source:
    """Return a source that reads only the columns that name dialogues."""
    naming, row_id = key_source(source), source.row_id
    if row_id is None:
        return naming
    names = (*row_id.columns, *row_id.variants)
    if choice.limit is not None:
        names = (row_id.holder, *_ids_of_chats(source))
    read = {column.name for column in naming.columns} | set(names)
    return replace(naming, columns=tuple(each for each in source.columns if each.name in read))


def dialogue_ids(rows: pl.DataFrame, source: Source, format: Format, seed: int | None) -> Ids:
    """Hash the name of each row's dialogue, uint64 (n, 2).

    Parameters
    ----------
    rows
        Rows of files of one format.
    source
        Declares the dialogue key. The format of the files.
    seed
        Hashed before each name. None for the first dialogues of a log: without a key these are
        named by their place.
    """
    named = name_elements(rows, source, format)
    named = named.with_columns(_row_ids(named, source, format, seed))
    name = _place_name(source, format)
    if source.row_id is not None and seed is not None:
        of_row = _key_text((_ROW_ID, *source.row_id.variants))
        of_row = pl.concat_str(pl.lit("id:"), of_row, pl.col("file"))
        name = pl.when(pl.col(_ROW_ID).is_null()).then(name).otherwise(of_row)
    id = pl.col(_ROW_ID)
    if source.dialogue_key:
        within = (pl.col("file"),) if source.key_within_file else ()
        key = pl.concat_str(pl.lit("key:"), _key_text(source.dialogue_key), *within)
        name = pl.when(pl.col(source.dialogue_key[0]).is_null()).then(name).otherwise(key)
        if source.key_within_file:
            id = pl.coalesce(pl.col(source.dialogue_key[0]).cast(pl.String), id)
    salt = "\n" if seed is None else f"{seed}\n"
    ids = text_hash128(named.select(pl.concat_str(pl.lit(salt), name)).to_series())
    by_id = named.select(id.is_not_null()).to_series().to_numpy()
    if seed is not None and by_id.any():
        # dialogues with equal ids, such as those of several files or models, are adjacent in a
        # sample
        texts = named.select(pl.concat_str(pl.lit(f"{salt}id:"), id.fill_null(""))).to_series()
        ids[by_id, 0] = text_hash128(texts)[by_id, 0]
    return ids


def _place_name(source: Source, format: Format) -> pl.Expr:
    """Name a dialogue by its file, or by its line if it is a row."""
    # many elements of a JSON document may be on one line
    place = "byte_offset" if format == "json" else "line"
    # and many dialogues in one document, which have different ids
    ids = (pl.col(name).fill_null("") for name in _ids_of_chats(source))
    return (
        pl.when(_is_dialogue(source, format))
        .then(pl.concat_str(pl.lit("line"), pl.col(place), *ids, pl.col("file"), separator=":"))
        .otherwise(pl.concat_str(pl.lit("file"), pl.col("file"), separator=":"))
    )


def _ids_of_chats(source: Source) -> tuple[str, ...]:
    """Return the id column of dialogues, if one document may contain several."""
    chat = source.chat
    return (
        (chat.rows.id,) if chat is not None and not (chat.is_plain or source.dialogue_key) else ()
    )


def _is_dialogue(source: Source, format: Format) -> pl.Expr:
    """Return which rows without a key are dialogues."""
    if format in source.row_dialogues or source.rows:
        return pl.lit(True)
    if source.row_id is not None and source.row_id.holder:
        return pl.col(source.row_id.holder).is_not_null()
    return pl.lit(False)


def _row_ids(rows: pl.DataFrame, source: Source, format: Format, seed: int | None) -> pl.Series:
    """Return the ids of rows that are dialogues without a key, null for all others."""
    row_id = source.row_id
    if seed is None or row_id is None:
        return pl.Series(_ROW_ID, [None], pl.String).new_from_index(0, rows.height)
    found = rows[row_id.columns[0]] if row_id.read is None else row_id.read(rows)
    unkeyed = (pl.col(name).is_null() for name in source.dialogue_key[:1])
    applies = pl.all_horizontal(_is_dialogue(source, format), *unkeyed)
    return rows.select(pl.when(applies).then(found).alias(_ROW_ID)).to_series()


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chosen dialogues are.

    Parameters
    ----------
    chosen
        The dialogues that begin there.
    last_file
        The file with the last of them. None if there are none, or if they may be in any file.
    after
        The byte of that file after which no row belongs to them. None if rows continue to its end
        or have no position.
    """

    chosen: ChosenDialogues
    last_file: str | None
    after: int | None


def choose(parts: Iterable[Part], source: Source, choice: Choice) -> Head:
    """Choose dialogues of a log.

    Parameters
    ----------
    parts
        Rows of the log, read by `naming_source`.
    source
        Declares the dialogue key.
    choice
        The selection.
    """
    if choice.limit is not None:
        return _take_first(parts, source, choice.limit)
    return Head(_sampled(parts, source, choice.sample or 0, choice.seed or 0), None, None)


def _sampled(parts: Iterable[Part], source: Source, size: int, seed: int) -> ChosenDialogues:
    """Select the dialogues whose names have the smallest hashes."""
    least = np.empty((0, 2), np.uint64)
    for part in parts:
        ids = dialogue_ids(part.frame, source, part.format, seed)
        first, second, _, _ = distinct_ids(np.concatenate((least, ids)))
        least = np.stack((first[:size], second[:size]), axis=1)
    return ChosenDialogues.of(least, seed)


def _take_first(parts: Iterable[Part], source: Source, limit: int) -> Head:
    """Select the first dialogues. The file with the last one is read to its end.

    If only their position names dialogues, reading ends with the last one.
    """
    chosen = ChosenDialogues.of(np.empty((0, 2), np.uint64), None)
    ids = np.empty((0, 2), np.uint64)
    last_file: str | None = None
    after: int | None = None
    for file, format, rows in _by_file(parts):
        if file != last_file:
            if len(ids) == limit:
                break
            last_file, after = file, None
        found = dialogue_ids(rows, source, format, None)
        if len(ids) < limit:
            ids = _first_distinct(np.concatenate((ids, found)), limit)
            chosen = ChosenDialogues.of(ids, None)
        theirs = np.flatnonzero(chosen.among(found))
        rest = rows["byte_offset"]
        if theirs.size:
            place, rest = rest[int(theirs[-1])], rest[int(theirs[-1]) + 1 :]
            after = None
            if place is not None:  # dialogues of one document begin at the same byte
                rest = rest.filter(rest > place)
        if after is None and len(rest):
            after = rest[0]
        if len(rest) and len(ids) == limit and not source.dialogue_key:
            break
    return Head(chosen, last_file, after)


def _by_file(parts: Iterable[Part]) -> Iterator[tuple[str, Format, pl.DataFrame]]:
    for part in parts:
        for (file,), rows in part.frame.group_by("file", maintain_order=True):
            yield str(file), part.format, rows


def _first_distinct(ids: Ids, limit: int) -> Ids:
    """Return the first ``count`` distinct ids, in order."""
    _, _, positions, _ = distinct_ids(ids)
    return ids[np.sort(positions)[:limit]]


def _key_text(names: Sequence[str]) -> pl.Expr:
    """Join the values of key columns to one text, which is unique for each key."""
    texts = (pl.col(name).cast(pl.String) for name in names)
    # a text by its length, or null
    written = (
        pl.coalesce(pl.format("{}:{}", text.str.len_bytes(), text), pl.lit("-")) for text in texts
    )
    return pl.concat_str(*written)
