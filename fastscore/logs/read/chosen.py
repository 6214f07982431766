"""Selection of dialogues: `--limit` by their places, `--sample` by the hashes of their names."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import polars as pl
from fastscore_kernels.ids import distinct_ids, text_hash128

from fastscore.errors import UsageError
from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.file_state import Shard
from fastscore.logs.read.mapped_rows import key_source
from fastscore.logs.read.rows import Part, map_ordered, read_names
from fastscore.suites.declarations import Source
from fastscore.suites.identity import NOTHING, Hashes, NameSet

_VARIANTS = r"/[^/=]+=.*$"


@dataclass(frozen=True, slots=True)
class Choice:
    """A selection of dialogues: a limit, or a sample with its seed."""

    limit: int | None = None  # number of dialogues to score, from the start
    sample: int | None = None  # number of dialogues to score, of the smallest hashes of names
    seed: int | None = None  # seed of the sample, a part of the hashed text; 0 by default

    def __post_init__(self) -> None:
        if self.limit is not None and self.sample is not None:
            raise UsageError(
                "Both limit and sample are given.",
                "limit takes dialogues from the start, sample from everywhere; name one.",
            )
        if self.seed is not None and self.sample is None:
            raise UsageError(
                "seed is given without sample.",
                "It says which sample is scored: set sample to a number of dialogues.",
            )

    def __bool__(self) -> bool:
        """Whether any dialogue is left out."""
        return self.limit is not None or self.sample is not None

    @property
    def signed(self) -> tuple[str, ...]:
        """The selection in the signature; empty if all dialogues are scored."""
        if self.limit is not None:
            return (f"limit={self.limit}",)
        return (f"sample={self.sample}", f"seed={self.seed or 0}") if self else ()


CHOICE_NAMES = tuple(each.name for each in fields(Choice))
"""The parts of a signature that choose dialogues."""


@dataclass(frozen=True, slots=True)
class ChosenDialogues:
    """The dialogues that are scored."""

    hashes: NameSet  # of their keys or places, or of the names of a sample
    seed: int | None  # the seed of the sample, None for the first dialogues of a log

    def kept(self, part: Part, source: Source) -> Part:
        """Remove rows of other dialogues than the first. Lines that are not rows remain."""
        if self.seed is not None:
            return part
        chosen = self.hashes.among(dialogue_ids(part.frame, source, part.format))
        kept = part.frame.filter(pl.Series(chosen))
        return replace(part, frame=kept, left_out=part.frame.height - kept.height)

    def sampled(self, names: pl.Series) -> pl.Series:
        """Tell which names are those of a sample."""
        if self.seed is None:
            return pl.Series(np.ones(len(names), np.bool_))
        return pl.Series(self.hashes.among(_sample_hashes(names, self.seed)))


def naming_source(source: Source, *, of_places: bool = False) -> Source:
    """Return a source that reads only the columns that name dialogues, or that place them."""
    naming, row_id = key_source(source), source.row_id
    names = {column.name for column in naming.columns}
    if of_places:
        names |= {row_id.holder if row_id else "", *_ids_of_chats(source)}
    else:
        names |= {*(row_id.columns if row_id else ()), *(column for _, column in source.variants)}
    return replace(naming, columns=tuple(each for each in source.columns if each.name in names))


def dialogue_ids(rows: pl.DataFrame, source: Source, format: Format) -> Hashes:
    """Hash the key or the place of each row's dialogue, uint64 (n, 2); rows are of one format."""
    # many elements of a JSON document may be on one line
    place = "byte_offset" if format == "json" else "line"
    # and many dialogues in one document, which have different ids
    ids = (pl.col(name).fill_null("") for name in _ids_of_chats(source))
    name = (
        pl.when(_is_dialogue(source, format))
        .then(pl.concat_str(pl.lit("line"), pl.col(place), *ids, pl.col("file"), separator=":"))
        .otherwise(pl.concat_str(pl.lit("file"), pl.col("file"), separator=":"))
    )
    if source.dialogue_key:
        within = (pl.col("file"),) if source.key_within_file else ()
        key = pl.concat_str(pl.lit("key:"), _key_text(source.dialogue_key), *within)
        name = pl.when(pl.col(source.dialogue_key[0]).is_null()).then(name).otherwise(key)
    return text_hash128(rows.select(name).to_series())


def _ids_of_chats(source: Source) -> tuple[str, ...]:
    chat = source.document_chat
    return (chat.rows.id,) if chat is not None and not source.dialogue_key else ()


def _is_dialogue(source: Source, format: Format) -> pl.Expr:
    if format in source.row_dialogues or source.rows:
        return pl.lit(True)
    if source.row_id is not None and source.row_id.holder:
        return pl.col(source.row_id.holder).is_not_null()
    return pl.lit(False)


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chosen dialogues are."""

    chosen: ChosenDialogues  # the dialogues that begin there
    last_file: str | None  # The file with the last of them. None if there are none.
    # The byte of that file after which no row belongs to them. None if rows continue to its end or
    # have no position.
    after: int | None


def choose_sample(
    shards: Sequence[Shard], source: Source, shared: NameSet, choice: Choice, threads: int
) -> ChosenDialogues:
    """Choose the dialogues of planned shards whose names have the smallest hashes."""
    naming, seed = naming_source(source), choice.seed or 0
    least = np.empty((0, 2), np.uint64)

    def hashes(shard: Shard) -> Hashes:
        return _sample_hashes(read_names(shard.file_ranges, naming, shared), seed)

    for found in map_ordered(hashes, shards, threads):
        first, second, _, _ = distinct_ids(np.concatenate((least, found)))
        least = np.stack((first, second), axis=1)[: choice.sample]
    return ChosenDialogues(NameSet.of(least), seed)


def choose_among(names: pl.Series, choice: Choice) -> ChosenDialogues:
    """Choose a sample of dialogues in memory by their names."""
    seed = choice.seed or 0
    first, second, _, _ = distinct_ids(_sample_hashes(names.unique(), seed))
    least = np.stack((first, second), axis=1)[: choice.sample]
    return ChosenDialogues(NameSet.of(least), seed)


def _sample_hashes(names: pl.Series, seed: int) -> Hashes:
    """Hash names; dialogues of one id, as under several models, are adjacent in a sample."""
    salted = pl.select(pl.concat_str(pl.lit(f"{seed}\n"), pl.lit(names))).to_series()
    hashes = text_hash128(salted)
    hashes[:, 0] = text_hash128(salted.str.replace(_VARIANTS, ""))[:, 0]
    return hashes


def take_first(parts: Iterable[Part], source: Source, limit: int) -> Head:
    """Choose the first dialogues of a log, read by `naming_source`.

    The file with the last one is read to its end. If only their position names dialogues, reading
    ends with the last one.
    """
    chosen = ChosenDialogues(NOTHING, None)
    ids = np.empty((0, 2), np.uint64)
    last_file: str | None = None
    after: int | None = None
    for file, format, rows in _by_file(parts):
        if file != last_file:
            if len(ids) == limit:
                break
            last_file, after = file, None
        found = dialogue_ids(rows, source, format)
        if len(ids) < limit:
            both = np.concatenate((ids, found))
            ids = both[np.sort(distinct_ids(both)[2])[:limit]]
            chosen = ChosenDialogues(NameSet.of(ids), None)
        theirs = np.flatnonzero(chosen.hashes.among(found))
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


def _key_text(names: Sequence[str]) -> pl.Expr:
    """Join the values of key columns to one text, which is unique for each key."""
    texts = (pl.col(name).cast(pl.String) for name in names)
    # a text by its length, or null
    written = (
        pl.coalesce(pl.format("{}:{}", text.str.len_bytes(), text), pl.lit("-")) for text in texts
    )
    return pl.concat_str(*written)
