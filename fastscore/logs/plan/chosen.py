"""Choosing dialogues by their names, and reading the rows of those alone.

A dialogue's name is its key, with its file where the key holds within one file only; without a key
the name is the file, or file and line where a row is a dialogue. So a sample is the same for any
order of lines and files that keeps the names.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels.hashing import text_hash128
from fastscore_kernels.ids import bucket_starts, distinct_ids, find_ids

from fastscore.logs.inputs.choice import Choice
from fastscore.logs.inputs.files import Format
from fastscore.logs.read.rows import Part
from fastscore.suites.declarations import Source

Ids = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ChosenDialogues:
    """The dialogues that are scored.

    Parameters
    ----------
    first, second
        The words of their ids, ascending, uint64 (n,).
    salt
        What was hashed before each name.
    """

    first: Ids
    second: Ids
    salt: str

    @property
    def digest(self) -> str:
        """A hash of the ids, hexadecimal."""
        words = hashlib.blake2b(self.first.tobytes(), digest_size=16)
        words.update(self.second.tobytes())
        return words.hexdigest()

    @classmethod
    def of(cls, ids: Ids, salt: str) -> "ChosenDialogues":
        """Keep ids, uint64 (n, 2)."""
        first, second, _, _ = distinct_ids(ids)
        return cls(first, second, salt)

    def kept(self, part: Part, source: Source) -> Part:
        """Leave out the rows of other dialogues; what is no row is nobody's, and stays."""
        chosen = self.among(dialogue_ids(part.frame, source, part.format, self.salt))
        kept = part.frame.filter(pl.Series(chosen))
        return replace(part, frame=kept, left_out=part.frame.height - kept.height)

    def among(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Tell which of some ids, uint64 (n, 2), are chosen, bool (n,)."""
        words = np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1])
        starts = bucket_starts(self.first)
        return find_ids(*words, self.first, self.second, starts) >= 0


def dialogue_ids(rows: pl.DataFrame, source: Source, format: Format, salt: str) -> Ids:
    """Hash the name of each row's dialogue, uint64 (n, 2).

    Parameters
    ----------
    rows
        Rows as they are read, of files of one format.
    source
        What names a dialogue.
    format
        The format of the files.
    salt
        Hashed before each name.
    """
    file = pl.concat_str(pl.lit("file"), pl.col("file"), separator=":")
    if format in source.row_dialogues or source.rows:
        file = pl.concat_str(pl.lit("line"), pl.col("line"), pl.col("file"), separator=":")
    name = file
    if source.dialogue_key:
        within = (pl.col("file"),) if source.key_within_file else ()
        key = pl.concat_str(pl.lit("key:"), _key_text(source.dialogue_key), *within)
        name = pl.when(pl.col(source.dialogue_key[0]).is_null()).then(file).otherwise(key)
    salted = pl.concat_str(pl.lit(f"{salt}\n"), name)
    return text_hash128(rows.select(salted.alias("name")).to_series())


@dataclass(frozen=True, slots=True)
class Head:
    """Where the dialogues that are chosen stand.

    Parameters
    ----------
    chosen
        The dialogues that begin there.
    last_file
        The file in which the last of them stands, None where there is none, or where they stand in
        any file.
    after
        The byte of that file after which no row is one of theirs, None where rows are to its end
        or have no place.
    """

    chosen: ChosenDialogues
    last_file: str | None
    after: int | None


def choose(parts: Iterable[Part], source: Source, choice: Choice) -> Head:
    """Choose dialogues of a log.

    Parameters
    ----------
    parts
        The log, read by `keys_alone`.
    source
        What names a dialogue.
    choice
        Which ones, and how many.
    """
    if choice.limit is not None:
        return _take_first(parts, source, choice.limit)
    return Head(_sampled(parts, source, choice.sample or 0, str(choice.seed or 0)), None, None)


def _sampled(parts: Iterable[Part], source: Source, size: int, salt: str) -> ChosenDialogues:
    """Choose the dialogues whose names have the smallest hashes."""
    least = np.empty((0, 2), np.uint64)
    for part in parts:
        ids = dialogue_ids(part.frame, source, part.format, salt)
        first, second, _, _ = distinct_ids(np.concatenate((least, ids)))
        least = np.stack((first[:size], second[:size]), axis=1)
    return ChosenDialogues.of(least, salt)


def _take_first(parts: Iterable[Part], source: Source, limit: int) -> Head:
    """Choose the first dialogues; the file that has the last one is read to its end.

    Where nothing but a row's place names its dialogue it is read no further than the last one.
    """
    chosen = ChosenDialogues.of(np.empty((0, 2), np.uint64), "")
    ids = np.empty((0, 2), np.uint64)
    last_file: str | None = None
    after: int | None = None
    for file, format, rows in _by_file(parts):
        if file != last_file:
            if len(ids) == limit:
                break
            last_file, after = file, None
        found = dialogue_ids(rows, source, format, "")
        if len(ids) < limit:
            ids = _first_distinct(np.concatenate((ids, found)), limit)
            chosen = ChosenDialogues.of(ids, "")
        theirs = np.flatnonzero(chosen.among(found))
        rest = rows["byte_offset"]
        if theirs.size:
            after, rest = None, rest[int(theirs[-1]) + 1 :]
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
    """Return the first so many distinct ids, in order."""
    _, _, positions, _ = distinct_ids(ids)
    return ids[np.sort(positions)[:limit]]


def _key_text(names: Sequence[str]) -> pl.Expr:
    """Write the values of key columns in one text; no two keys are written alike."""
    texts = (pl.col(name).cast(pl.String) for name in names)
    # a text by its length, or null
    written = (
        pl.coalesce(pl.format("{}:{}", text.str.len_bytes(), text), pl.lit("-")) for text in texts
    )
    return pl.concat_str(*written)
