"""What a dialogue is called: by one name in all tables, which no other dialogue of the run has.

The name is the log's own id, then what tells variants apart: ``s1/model=m``. A dialogue without an
id, and each of several that share a name, has its place in it too: ``s1/model=m/in=a.jsonl:3``. So
a name depends on the dialogue and on those that share its name, not on shards or their order.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels.ids import distinct_ids, index_ids, text_hash128

from fastscore.errors import InputError
from fastscore.suites.declarations import ROW_SCHEMA, Source

Hashes = npt.NDArray[np.uint64]
"""The two words of a hash in each row."""

IDENTITY = "dialogue identity"
"""The column of raw rows with their dialogue's name. No suite declares such a name."""
IN_MEMORY = "frame"
"""The file of rows in memory."""

_ID, _STATED = "dialogue id", "stated id"
_BY_ROW, _PLACE, _GIVEN = "is a dialogue", "dialogue place", "place given"
_COMPRESSION = r"(?i)\.(?:gz|zst)$"
_OF_LINES = r"(?i)\.(?:csv|tsv|jsonl|ndjson|parquet|arrow|feather|ipc)$"
_A_FORMAT = r"(?i)\.(csv|tsv|jsonl|ndjson|parquet|arrow|feather|ipc|json|eval)$"
_LIKE_A_PLACE = rf"{_A_FORMAT[:-1]}((?:\.(?:gz|zst))?(?::[0-9]+)*)$"
_OF_ROW = r"(?:^/row=|:)[0-9]"
_IN, _ROW = "/in=", "/row="
_NULL_HASH, _ODD = np.array([0x9AE16A3B2F90404F, 0x9E3779B97F4A7C15], np.uint64)


@dataclass(frozen=True, slots=True)
class NameSet:
    """Hashes of names: their two words, sorted by both, uint64 (n,)."""

    first: Hashes
    second: Hashes

    @classmethod
    def of(cls, hashes: Hashes) -> "NameSet":
        """Return the distinct ones of some hashes, uint64 (n, 2)."""
        first, second, _, _ = distinct_ids(hashes)
        return cls(first, second)

    @classmethod
    def repeated(cls, hashes: Hashes) -> "NameSet":
        """Return the hashes that are there more than once."""
        # most names are unique, and one word tells that
        words = np.sort(hashes[:, 0])
        if not (words[1:] == words[:-1]).any():
            return NOTHING
        first, second, _, inverse = distinct_ids(hashes)
        several = np.bincount(inverse, minlength=first.size) > 1
        return cls(first[several], second[several])

    @property
    def digest(self) -> str:
        """A hash of the hashes, hexadecimal."""
        words = hashlib.blake2b(self.first.tobytes(), digest_size=16)
        words.update(self.second.tobytes())
        return words.hexdigest()

    def among(self, hashes: Hashes) -> Mask:
        """Return which hashes, uint64 (n, 2), are in the set, bool (n,)."""
        if not self.first.size:
            return np.zeros(len(hashes), np.bool_)
        return np.asarray(index_ids([(self.first, self.second)]).find(hashes) >= 0)


NOTHING = NameSet(np.zeros(0, np.uint64), np.zeros(0, np.uint64))


def file_names(paths: Iterable[str]) -> dict[str, str]:
    """Name files by the shortest endings of their paths that differ, without ``.gz`` or ``.zst``.

    So a name depends on the files beside it, not on how a path was typed.
    """
    parts = {
        path: [part for part in re.split(r"[/\\]", re.sub(_COMPRESSION, "", path)) if part != "."]
        for path in dict.fromkeys(paths)
    }
    names: dict[str, str] = {}
    depth = 1
    while left := [path for path in parts if path not in names]:
        ends = {path: "/".join(parts[path][-depth:]) for path in left}
        counts = Counter(ends.values())
        for path, end in ends.items():
            if counts[end] == 1:
                names[path] = end
            elif depth >= len(parts[path]):
                names[path] = path  # packed and unpacked side by side
        depth += 1
    return names


@dataclass(frozen=True, slots=True)
class RunNames:
    """What is known of a run before it is scored: names that several dialogues have, and of files.

    If one is None, the rows at hand are the whole run.
    """

    shared: NameSet | None = None
    files: Mapping[str, str] | None = None


def identify(rows: pl.DataFrame, source: Source, run: RunNames = RunNames()) -> pl.DataFrame:
    """Add the column `IDENTITY` to raw rows of whole dialogues, unless they have it."""
    if IDENTITY in rows.columns:
        return rows
    heads, run_of_row = dialogue_heads(rows, source)
    heads = with_ids(heads, source)
    return rows.with_columns(names_of(heads, source, run)[run_of_row].alias(IDENTITY))


def is_named(rows: pl.DataFrame, source: Source, name: str, files: Mapping[str, str]) -> pl.Series:
    """Tell which rows are of the dialogue that has a name, with its place or without it."""
    heads, run_of_row = dialogue_heads(rows, source)
    heads = with_ids(heads, source)
    placed = names_of(heads, source, RunNames(NameSet.of(dialogue_hashes(heads, source)), files))
    found = (placed == name) | (names_of(heads, source, RunNames(NOTHING, files)) == name)
    return found[run_of_row]


def names_of(heads: pl.DataFrame, source: Source, run: RunNames) -> pl.Series:
    """Return the names of dialogues, given by `with_ids`."""
    shared = run.shared
    if shared is None:
        can_repeat = source.row_id is not None or source.key_within_file
        shared = NameSet.repeated(dialogue_hashes(heads, source)) if can_repeat else NOTHING
    needs_place = np.zeros(heads.height, np.bool_)
    if heads[_ID].null_count():
        needs_place = heads[_ID].is_null().to_numpy()
    if shared.first.size:
        needs_place = needs_place | shared.among(_name_hashes(heads, source))
    place = pl.Series([None], dtype=pl.String).new_from_index(0, heads.height)
    if needs_place.any():
        files = file_names(heads["file"].unique()) if run.files is None else run.files
        place = _places(heads, files).set(pl.Series(~needs_place), None)
    return heads.hstack([place.alias(_PLACE)]).select(_name(source)).to_series()


def dialogue_heads(rows: pl.DataFrame, source: Source) -> tuple[pl.DataFrame, Indices]:
    """Return the first of each run of rows of one dialogue, and the run of each row.

    The columns are those that name and place it. A dialogue may have several runs.
    """
    by_row = _is_dialogue(source)
    names = [*source.dialogue_key, *(column for _, column in source.variants)]
    names = [name for name in dict.fromkeys(names) if name in rows.columns]
    # a line whose array has the rows is a dialogue
    changing = (*names, "file", *(("line", "byte_offset") if source.rows else ()))
    begins = [pl.col(name).ne_missing(pl.col(name).shift()) for name in changing]
    if not source.rows:
        begins += [by_row, by_row.shift()]
    is_begin = pl.any_horizontal(*begins, pl.int_range(pl.len()) == 0)
    starts = rows.select(is_begin.fill_null(False)).to_series().to_numpy()
    heads = rows if starts.all() else rows.filter(pl.Series(starts))
    stated, row_id = pl.lit(None, pl.String), source.row_id
    if row_id is not None:
        found = heads[row_id.columns[0]] if row_id.read is None else row_id.read(heads)
        stated = pl.lit(found.cast(pl.String))
    return heads.select(
        *ROW_SCHEMA, *names, by_row.alias(_BY_ROW), stated.alias(_STATED)
    ), np.cumsum(starts) - 1


def _is_dialogue(source: Source) -> pl.Expr:
    """Return which rows are dialogues by themselves."""
    if source.row_id is not None and source.row_id.holder:
        return pl.col(source.row_id.holder).is_not_null()
    if not source.row_dialogues:
        return pl.lit(False)
    return pl.col(source.dialogue_key[0]).is_null() if source.dialogue_key else pl.lit(True)


def with_ids(heads: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Add the ids that the log has, as text, to the heads of whole files; an empty one is none."""
    stated: pl.Expr = pl.when(pl.col(_STATED) != "").then(_STATED)
    id = stated
    if source.dialogue_key and source.dialogue_key[0] in heads.columns:
        key = pl.col(source.dialogue_key[0]).cast(pl.String)
        id = key = pl.when(key != "").then(key)
        if source.row_id is not None:
            # rows without a key are of the dialogue that all others of the file have
            keys = key.filter(~pl.col(_BY_ROW))
            only = pl.when(keys.n_unique() == 2).then(keys.max())
            first = stated.filter(~pl.col(_BY_ROW), key.is_null()).first()
            of_file = pl.coalesce(only, first).over("file")
            id = pl.coalesce(key, pl.when(_BY_ROW).then(stated).otherwise(of_file))
    if source.chat is None:
        return heads.with_columns(id.alias(_ID), pl.lit(None, pl.String).alias(_GIVEN))
    # a layout names by its place what has no id
    is_placed = id.str.starts_with(pl.col("file") + ":").fill_null(False)
    given = pl.when(is_placed).then(id.str.slice(pl.col("file").str.len_chars()))
    return heads.with_columns(pl.when(~is_placed).then(id).alias(_ID), given.alias(_GIVEN))


def dialogue_hashes(heads: pl.DataFrame, source: Source) -> Hashes:
    """Hash the ids and variants of dialogues that have an id, each dialogue once."""
    row = pl.when(_BY_ROW).then(pl.int_range(pl.len())).alias(_PLACE)
    named = heads.select(*_named_by(heads, source), "file", row).drop_nulls(_ID)
    # rows of a key in one file are one dialogue
    return _name_hashes(named.unique() if named[_PLACE].null_count() else named, source)


def _named_by(heads: pl.DataFrame, source: Source) -> list[str]:
    return [_ID, *(column for _, column in source.variants if column in heads.columns)]


def _name_hashes(heads: pl.DataFrame, source: Source) -> Hashes:
    return hash_columns([heads[name] for name in _named_by(heads, source)], heads.height)


def hash_columns(columns: Sequence[pl.Series], n: int) -> Hashes:
    """Hash rows of several columns, uint64 (n, 2): each adds to the hash of those before."""
    hashes = np.zeros((n, 2), np.uint64)
    for column in columns:
        texts = column.cast(pl.String())
        words = text_hash128(texts.fill_null("") if texts.null_count() else texts, threads=1)
        words[texts.is_null().to_numpy()] = _NULL_HASH
        hashes = hashes * _ODD + words
    return hashes


def refuse_blank_ids(dialogues: pl.DataFrame, id: str) -> None:
    """Refuse a file of which some dialogues have an id, and one none: its rows may be of several.

    ``dialogues`` has ``file``, ``line``, the column `id` and `IDENTITY`, a row a dialogue or more.
    """
    ids = dialogues[id].cast(pl.String)
    if not ids.null_count() and not (ids == "").any():
        return
    is_blank = pl.col(id).cast(pl.String).fill_null("") == ""
    is_mixed = is_blank.any().over("file") & ~is_blank.all().over("file")
    # rows that are dialogues have their places
    is_part = is_blank.not_() | ~pl.col(IDENTITY).str.contains(_OF_ROW)
    found = dialogues.filter(is_part).filter(is_mixed).filter(is_blank).select("file", "line")
    if found.is_empty():
        return
    file, line = found.row(0)
    raise InputError(
        f"{file}:{line}: {id}: empty, but other rows of the file have an id, so the dialogue "
        "of this row is unknown.",
        "Write it into every row: a merged cell is exported in its first row alone, and `ffill` of "
        "pandas carries it down.",
    )


def _places(heads: pl.DataFrame, files: Mapping[str, str]) -> pl.Series:
    """Return where dialogues are: the file, and of a row its line and its place in a document."""
    names = {
        path: file if re.search(_A_FORMAT, file) else f"./{file}" for path, file in files.items()
    }
    file = pl.concat_str(pl.lit(_IN), pl.col("file").replace(names | {IN_MEMORY: IN_MEMORY}))
    in_document = ~pl.col("file").str.replace(_COMPRESSION, "").str.contains(_OF_LINES)
    in_document &= pl.col("byte_offset").is_not_null() & (pl.col("file") != IN_MEMORY)
    spot = ("file", "line", "byte_offset")
    nothing = pl.lit("")
    written = pl.concat_str(
        pl.format(":{}", "line"),
        pl.when(in_document).then(pl.format(":{}", "byte_offset")).otherwise(nothing),
        # an object of a layout may have several
        pl.when(pl.len().over(spot) > 1)
        .then(pl.format(":{}", pl.int_range(1, pl.len() + 1).over(spot)))
        .otherwise(nothing),
    )
    is_document = in_document & (pl.col("byte_offset") == 0) & (pl.len().over(spot) == 1)
    written = pl.when(pl.col(_BY_ROW) & ~is_document).then(written)
    within = pl.coalesce(_GIVEN, written, nothing)
    in_memory = (pl.col("file") == IN_MEMORY) & (within != "")
    place = pl.when(in_memory).then(pl.lit(_ROW) + within.str.slice(1)).otherwise(file + within)
    return heads.select(place).to_series()


def _name(source: Source) -> pl.Expr:
    """Write the name of a dialogue from its id, its variants and its place."""
    has_id, place = pl.col(_ID).is_not_null(), pl.col(_PLACE)
    # what looks like a place is one
    id = (
        _escaped(_ID).str.replace(_LIKE_A_PLACE, "%2E$1$2").str.replace(f"^{IN_MEMORY}$", "%66rame")
    )
    parts = [pl.coalesce(id, place.str.strip_prefix(_IN))]
    for label, column in source.variants:
        # a row without a key belongs to its file, whatever else it says
        of_key = column in source.dialogue_key and not source.key_within_file
        value = pl.when(has_id).then(_escaped(column)) if of_key else _escaped(column)
        parts.append(pl.coalesce(pl.format(f"/{label}={{}}", value), pl.lit("")))
    parts.append(pl.when(has_id).then(place).fill_null(""))
    return pl.concat_str(parts)


def _escaped(column: str) -> pl.Expr:
    text = pl.col(column).cast(pl.String).str.replace_all("%", "%25", literal=True)
    return text.str.replace_all("/", "%2F", literal=True)


def unescaped(names: pl.Series) -> pl.Series:
    """Return names with ids and variants as the log spells them: `b %2F c` is `b / c`."""
    for escaped, plain in (("%2F", "/"), ("%2E", "."), ("%66", "f"), ("%25", "%")):
        names = names.str.replace_all(escaped, plain, literal=True)
    return names
