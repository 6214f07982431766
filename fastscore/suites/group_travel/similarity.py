"""What a text can be evidence of by words, and by meaning.

Every distinct text has one vector, whichever metrics compare it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import fastscore_kernels as kernels
import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.base import Events
from fastscore.suites.group_travel.lexicon import (
    NULLS,
    SLOTS,
    Tokens,
    as_ids,
    removed_by_slot,
    tokenise,
)
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.grouping import Ragged, factorize, group_rows, offsets_of, take

if TYPE_CHECKING:
    from fastscore_kernels.targets import Targets

    from fastscore.suites.group_travel.lexicon import Lexicon
    from fastscore.vectors.view import VectorView


MOST_TOKENS = 6
_SHORTEST_PHRASE = 2


@dataclass(frozen=True, slots=True)
class TextCodes:
    """Texts of several columns, tokenised once."""

    tokens: Tokens  # the tokens of the distinct texts
    codes: Mapping[str, Indices]  # by column which distinct text each row is, int64 (n,)

    @classmethod
    def of(cls, columns: Mapping[str, pl.Series]) -> "TextCodes":
        """Tokenise the texts of columns without nulls."""
        codes, texts = factorize(pl.concat([column.rename("text") for column in columns.values()]))
        cuts = np.cumsum([len(column) for column in columns.values()])[:-1]
        return cls(tokenise(texts), dict(zip(columns, np.split(codes, cuts), strict=True)))

    def grouped(self, name: str, owners: Indices, n_owners: int) -> Ragged:
        """Return for each owner the codes of its texts, in order."""
        order, offsets = group_rows(owners, n_owners)
        return self.codes[name][order], offsets

    def targets(self, texts: Ragged) -> "Targets":
        """Return groups of texts as targets, plurals folded."""
        from fastscore_kernels.targets import Targets

        return Targets(self.tokens.folded, texts)


@dataclass(frozen=True, slots=True)
class Informative:
    """The informative tokens of preferences."""

    row: Indices  # which distinct preference (of a slot) each pair has, int64 (pairs,)
    top: Ragged  # the folded ids of the first `MOST_TOKENS` of each, by rank
    every: Ragged  # all of them, ascending
    phrases: Ragged  # runs of at least two that follow each other in the text
    phrase_owner: Indices  # whose they are, int64 (phrases,)

    def words(self, tokens: Tokens) -> pl.Series:
        """Return the top tokens of each distinct preference as text: List(String)."""
        lists = (
            pl.DataFrame(
                {
                    "row": np.repeat(np.arange(len(self.top[1]) - 1), np.diff(self.top[1])),
                    "word": tokens.vocabulary[self.top[0]],
                }
            )
            .group_by("row")
            .agg("word")
        )
        rows = pl.DataFrame({"row": np.arange(len(self.top[1]) - 1)})
        found = rows.join(lists, on="row", how="left", maintain_order="left")
        return found["word"].fill_null([])


def find_informative(
    texts: TextCodes, name: str, slots: pl.Series, lexicon: "Lexicon"
) -> Informative:
    """Find the informative tokens of preferences."""
    bit_of = {slot: bit for bit, slot in enumerate(SLOTS)}
    bits = slots.replace_strict(bit_of, default=len(SLOTS), return_dtype=pl.Int64).to_numpy()
    keys = texts.codes[name] * (len(SLOTS) + 1) + bits
    found, first, row = np.unique(keys, return_index=True, return_inverse=True)
    tokens = texts.tokens
    codes = texts.codes[name][first]
    folded, offsets = take((tokens.folded[0].astype(np.int64), tokens.folded[1]), codes)
    plain, _ = take((tokens.plain[0].astype(np.int64), tokens.plain[1]), codes)
    owner = np.repeat(np.arange(len(found)), np.diff(offsets))
    removed = removed_by_slot(tokens, lexicon)[plain] >> bits[first][owner] & 1
    position = np.arange(len(folded))
    kept = removed == 0
    lengths = tokens.vocabulary.str.len_chars().to_numpy().astype(np.int64)
    occurrences = pl.DataFrame(
        {"owner": owner[kept], "token": folded[kept], "position": position[kept]}
    )
    ranked = (
        occurrences.group_by("owner", "token")
        .agg(pl.len().alias("count"), pl.col("position").min())
        .with_columns(pl.lit(pl.Series(lengths)).gather(pl.col("token")).alias("length"))
        .sort("owner", "count", "length", "position", descending=[False, True, True, False])
    )
    top = ranked.filter(pl.int_range(pl.len()).over("owner") < MOST_TOKENS)
    phrases, phrase_owner = _phrases(occurrences)
    return Informative(
        row.astype(np.int64),
        _by_owner(top, len(found)),
        _by_owner(ranked.sort("owner", "token"), len(found)),
        phrases,
        phrase_owner,
    )


def _by_owner(frame: pl.DataFrame, n_owners: int) -> Ragged:
    sizes = np.bincount(frame["owner"].to_numpy(), minlength=n_owners)
    return frame["token"].to_numpy(), offsets_of(sizes)


def _phrases(occurrences: pl.DataFrame) -> tuple[Ragged, Indices]:
    """Return the maximal runs of at least two tokens that follow each other."""
    runs = occurrences.with_columns(
        ((pl.col("position").diff() != 1) | (pl.col("owner").diff() != 0))
        .fill_null(True)
        .cum_sum()
        .alias("run")
    ).filter(pl.len().over("run") >= _SHORTEST_PHRASE)
    of_run = runs.group_by("run", maintain_order=True).agg(pl.col("owner").first(), pl.len())
    return (
        (runs["token"].to_numpy(), offsets_of(of_run["len"].to_numpy())),
        of_run["owner"].to_numpy(),
    )


@dataclass(frozen=True, slots=True)
class LexicalEvidence:
    """What of each preference is in its target."""

    hits: Indices  # how many of its top tokens, int64 (pairs,)
    phrase: Mask  # whether one of its phrases, bool (pairs,)
    addressed: Mask  # a phrase, two tokens, or the only one, bool (pairs,)


def find_evidence(informative: Informative, owners: Indices, targets: "Targets") -> LexicalEvidence:
    """Look preferences up in their targets."""
    row = informative.row
    hits = count_hits(informative, owners, targets)
    # a phrase is a distinct preference's: it is looked up for each pair that has it
    rows, offsets = group_rows(informative.phrase_owner, len(informative.top[1]) - 1)
    of_pair, pair_offsets = take((rows, offsets), row)
    pair = np.repeat(np.arange(len(row)), np.diff(pair_offsets))
    found = kernels.find_phrases(
        as_ids(take(informative.phrases, of_pair)), owners[pair], targets, threads=1
    )
    phrase = np.zeros(len(row), np.bool_)
    phrase[pair[found]] = True
    only_one = np.diff(informative.top[1])[row] == 1
    return LexicalEvidence(hits, phrase, phrase | (hits >= 2) | (only_one & (hits == 1)))


def count_hits(informative: Informative, owners: Indices, targets: "Targets") -> Indices:
    """Count the top tokens of each pair's preference that are in its target."""
    queries = as_ids(take(informative.top, informative.row))
    hits: Indices = kernels.count_token_hits(queries, owners, targets, threads=1)
    return hits


def joined(parts: Sequence[Ragged]) -> Ragged:
    """Put the rows of several ragged arrays of as many rows one after the other."""
    n_rows = len(parts[0][1]) - 1
    owners = [np.repeat(np.arange(n_rows), np.diff(offsets)) for _, offsets in parts]
    order, offsets = group_rows(np.concatenate(owners), n_rows)
    return np.concatenate([values for values, _ in parts])[order], offsets


Rows = dict[str, Indices]

_LONGEST_NULL = max(map(len, NULLS))
_TARGETS = "choice_targets"
_COMPARED = {
    "pairs": "preference",
    "synthesis_texts": "text",
    "resolutions": "text",
    "plan_lines": "text",
    "choice_places": "text",
    _TARGETS: "text",
    "place_texts": "text",
}
"""By frame of the events the column whose texts are compared."""


def number_compared(
    frames: Mapping[str, pl.DataFrame], options: GroupTravel
) -> dict[str, pl.DataFrame]:
    """Give the texts that are compared by meaning numbers."""
    in_windows = (_TARGETS,) if options.m12_long == "windows" else ()
    return {
        **_numbered(frames, [name for name in _COMPARED if name not in in_windows], "compared"),
        **_numbered(frames, in_windows, "windowed"),
    }


def _numbered(
    frames: Mapping[str, pl.DataFrame], names: Sequence[str], into: str
) -> dict[str, pl.DataFrame]:
    if not names:
        return {into: pl.DataFrame(schema={"text": pl.String})}
    columns = [frames[name][_COMPARED[name]].rename("text") for name in names]
    codes, texts = factorize(pl.concat(columns))
    has_text = _are_meaningful(texts)
    rows = np.where(has_text, np.cumsum(has_text) - 1, -1)[codes]
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return {
        **{
            name: frames[name].with_columns(pl.Series("compared", part))
            for name, part in zip(names, np.split(rows, cuts), strict=True)
        },
        into: texts.filter(pl.Series(has_text)).to_frame("text"),
    }


def _are_meaningful(texts: pl.Series) -> Mask:
    """Tell which texts are more than a placeholder such as N/A."""
    start = texts.str.strip_chars().str.head(_LONGEST_NULL + 1).str.to_lowercase()
    has_text: Mask = (~start.is_in(NULLS)).to_numpy()
    return has_text


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarities of the texts of events; all of them are NaN without vectors."""

    matrix: npt.NDArray[np.float32]  # the vectors, float32 (texts, dim)
    # by frame the row of each text in `matrix`, int64 (n,), -1 for a placeholder; empty without
    # vectors
    rows: Mapping[str, Indices]
    is_on: bool  # whether there are vectors
    # the row in `targets` of what M12 compares of each choice, -1 for nothing; the last entry is
    # that of no choice, int64 (choices + 1,)
    target_of: Indices
    targets: npt.NDArray[np.float32]  # its vectors, float32 (targets, dim)

    @classmethod
    def of(cls, events: Events, vectors: "VectorView") -> "Similarity":
        """Find the vectors of the events' texts."""
        if len(vectors) == 0:
            return cls(vectors.matrix, {}, False, np.full(1, -1), vectors.matrix)
        frames = events.frames
        windowed = vectors.windowed

        def rows_in(view: "VectorView", texts: pl.Series, names: Iterable[str]) -> Rows:
            row_of = np.append(view.codes(texts), -1).astype(np.int64)
            return {name: row_of[frames[name]["compared"].to_numpy()] for name in names}

        if frames["windowed"].is_empty():
            rows = rows_in(vectors, frames["compared"]["text"], _COMPARED)
            target_of = _last_of(frames[_TARGETS]["choice"].to_numpy(), rows[_TARGETS])
            return cls(vectors.matrix, rows, True, target_of, vectors.matrix)
        if windowed is None:
            raise TypeError("the view has no vectors of texts that are read in windows")
        names = [name for name in _COMPARED if name != _TARGETS]
        rows = rows_in(vectors, frames["compared"]["text"], names)
        parts = rows_in(windowed, frames["windowed"]["text"], [_TARGETS])[_TARGETS]
        target_of, targets = _join_windows(
            windowed.matrix, frames[_TARGETS]["choice"].to_numpy(), parts
        )
        return cls(vectors.matrix, rows, True, target_of, targets)

    def to_targets(self, rows: Indices, choices: Indices) -> Float64Array:
        """Return the similarity of texts to what M12 compares of choices, float64 (n,).

        NaN where either is negative or there is nothing.
        """
        found = np.full(len(choices), np.nan)
        if not self.is_on:
            return found
        targets = self.target_of[np.minimum(choices, len(self.target_of) - 1)]
        present = np.flatnonzero((rows >= 0) & (targets >= 0))
        asked, texts = np.unique(rows[present], return_inverse=True)
        chosen, others = np.unique(targets[present], return_inverse=True)
        both = np.concatenate((self.matrix[asked], self.targets[chosen]))
        cosines = kernels.cosine_pairs(both, texts, len(asked) + others, threads=1)
        found[present] = np.maximum(cosines, 0.0)
        return found

    def grouped(self, name: str, owners: pl.Series, n_owners: int) -> Ragged:
        """Return for each owner the rows of its texts in a frame that say something."""
        if not self.is_on:
            return np.zeros(0, np.int64), np.zeros(n_owners + 1, np.int64)
        rows = self.rows[name]
        has_text = rows >= 0
        order, offsets = group_rows(owners.to_numpy()[has_text], n_owners)
        return rows[has_text][order], offsets

    def nearest(self, rows: Indices, candidates: Ragged, owners: Indices) -> Float64Array:
        """Return the greatest similarity of each text to the candidates of its owner."""
        if not self.is_on:
            return np.full(len(owners), np.nan)
        asked = np.where(rows >= 0, owners, -1)
        greatest, _ = kernels.max_cosine_ragged(
            self.matrix, np.maximum(rows, 0), asked, *candidates, threads=1
        )
        return np.where(np.isnan(greatest), np.nan, np.maximum(greatest, 0.0))

    def pairwise(self, rows: Indices, others: Indices) -> Float64Array:
        """Return the similarity of pairs of texts; NaN where either is negative."""
        found = np.full(len(others), np.nan)
        if not self.is_on:
            return found
        present = (rows >= 0) & (others >= 0)
        if present.any():
            cosines = kernels.cosine_pairs(self.matrix, rows[present], others[present], threads=1)
            found[present] = np.maximum(cosines, 0.0)
        return found


def _last_of(owners: Indices, rows: Indices) -> Indices:
    """Return each owner's row, and -1 for those without one and, at the end, for nobody."""
    found = np.full(int(owners.max(initial=-1)) + 2, -1, np.int64)
    found[owners] = rows
    return found


def _join_windows(
    sums: npt.NDArray[np.float32], owners: Indices, rows: Indices
) -> tuple[Indices, npt.NDArray[np.float32]]:
    """Add up the parts of each owner's text, and scale the sum to length 1."""
    has_text = rows >= 0
    joined, place = np.unique(owners[has_text], return_inverse=True)
    total = np.zeros((len(joined), sums.shape[1]))
    np.add.at(total, place, sums[rows[has_text]])
    lengths = np.sqrt(np.einsum("ij,ij->i", total, total))
    total /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return _last_of(joined, np.arange(len(joined))), total.astype(np.float32)


def reaches(similarity: Float64Array, threshold: float) -> Mask:
    """Tell which similarities reach a threshold, as float32; NaN reaches none."""
    reached: Mask = similarity.astype(np.float32) >= np.float32(threshold)
    return reached
