"""What a text can be evidence of by words, and by meaning.

Every distinct text has one vector, whichever metrics compare it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import (
    cosine_pairs,
    count_token_hits,
    find_phrases,
    group_rows,
    max_cosine_ragged,
)
from fastscore_kernels.targets import Targets

from fastscore.suites.base import Events
from fastscore.suites.columns import list_column
from fastscore.suites.group_travel.lexicon import (
    NULLS,
    Tokens,
    as_ids,
    tokenise,
    uninformative_tokens,
)
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.grouping import Ragged, factorize, offsets_of, row_numbers, take

if TYPE_CHECKING:
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

    def said(self, name: str, owners: pl.Series) -> pl.DataFrame:
        """Return the texts of a column by whose they are: ``owner`` and ``text``, its code."""
        return pl.DataFrame({"owner": owners, "text": self.codes[name]})


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
        values, offsets = self.top
        return list_column(tokens.vocabulary[values], offsets)


def find_informative(texts: TextCodes, slots: pl.Series, lexicon: "Lexicon") -> Informative:
    """Find the informative tokens of preferences."""
    stated = pl.DataFrame({"text": texts.codes["pairs"], "slot": slots})
    distinct = stated.unique(maintain_order=True)
    codes, tokens = distinct["text"].to_numpy(), texts.tokens
    folded, offsets = take((tokens.folded[0].astype(np.int64), tokens.folded[1]), codes)
    plain, _ = take((tokens.plain[0].astype(np.int64), tokens.plain[1]), codes)
    owner = np.repeat(np.arange(len(codes)), np.diff(offsets))
    everywhere, in_slots = uninformative_tokens(tokens, lexicon)
    occurrences = (
        pl.DataFrame({"owner": owner, "plain": plain, "token": folded})
        .with_columns(
            slot=distinct["slot"].gather(owner),
            position=pl.int_range(pl.len()),
            length=tokens.vocabulary.str.len_chars().gather(folded),
        )
        .filter(~everywhere.gather(plain))
        .join(in_slots, on=["slot", "plain"], how="anti", maintain_order="left")
    )
    ranked = (
        occurrences.group_by("owner", "token")
        .agg(pl.len().alias("count"), pl.col("position").min(), pl.col("length").first())
        .sort("owner", "count", "length", "position", descending=[False, True, True, False])
    )
    top = ranked.filter(pl.int_range(pl.len()).over("owner") < MOST_TOKENS)
    phrases, phrase_owner = _phrases(occurrences)
    return Informative(
        row_numbers(stated, stated.columns),
        _by_owner(top, len(codes)),
        _by_owner(ranked.sort("owner", "token"), len(codes)),
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


def find_evidence(
    texts: TextCodes, informative: Informative, owners: pl.Series, said: pl.DataFrame
) -> LexicalEvidence:
    """Look preferences up in what is said to their owners: `TextCodes.said`."""
    row, hits = informative.row, count_hits(texts, informative, owners, said)
    # a phrase is a distinct preference's: it is looked up for each pair that has it
    rows, offsets = group_rows(informative.phrase_owner, len(informative.top[1]) - 1)
    of_pair, pair_offsets = take((rows, offsets), row)
    pair = np.repeat(np.arange(len(row)), np.diff(pair_offsets))
    wanted = as_ids(take(informative.phrases, of_pair))
    found = find_phrases(wanted, *_targets(texts, owners.gather(pair), said), threads=1)
    phrase = np.zeros(len(row), np.bool_)
    phrase[pair[found]] = True
    only_one = np.diff(informative.top[1])[row] == 1
    return LexicalEvidence(hits, phrase, phrase | (hits >= 2) | (only_one & (hits == 1)))


def count_hits(
    texts: TextCodes, informative: Informative, owners: pl.Series, said: pl.DataFrame
) -> Indices:
    """Count the top tokens of each pair's preference that are said to its owner; 0 for null."""
    wanted = as_ids(take(informative.top, informative.row))
    hits: Indices = count_token_hits(wanted, *_targets(texts, owners, said), threads=1)
    return hits


def _targets(texts: TextCodes, owners: pl.Series, said: pl.DataFrame) -> tuple[Indices, Targets]:
    """Return the target of each owner, and what is said to each, plurals folded."""
    numbers = pl.concat([owners.rename("owner"), said["owner"]]).cast(pl.Int64)
    most: Any = numbers.max()
    nobody = 1 + (-1 if most is None else most)
    order, offsets = group_rows(said["owner"].to_numpy(), nobody + 1)
    target = Targets(texts.tokens.folded, (said["text"].to_numpy()[order], offsets))
    return owners.fill_null(nobody).to_numpy(), target


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
    start = texts.str.strip_chars().str.head(_LONGEST_NULL + 1).str.to_lowercase()
    has_text = ~start.is_in(NULLS)
    number = has_text.cast(pl.Int64).cum_sum().set(~has_text, None) - 1
    numbered, first = {into: texts.filter(has_text).to_frame("text")}, 0
    for name in names:
        rows = codes[first : first + frames[name].height]
        numbered[name] = frames[name].with_columns(compared=number[rows])
        first += len(rows)
    return numbered


@dataclass(frozen=True, slots=True)
class Similarity:
    """Vectors of the texts of events, and how similar these are; null without vectors."""

    matrix: npt.NDArray[np.float32]  # the vectors, float32 (texts, dim)
    # by frame the row of each text in `matrix`; null for a placeholder, or without vectors
    vectors: Mapping[str, pl.Series]
    is_on: bool  # whether there are vectors
    targets: pl.DataFrame  # what M12 compares: `choice`, `target`, a row of `target_matrix`
    target_matrix: npt.NDArray[np.float32]  # its vectors, float32 (targets, dim)

    @classmethod
    def of(cls, events: Events, vectors: "VectorView") -> "Similarity":
        """Find the vectors of the events' texts."""
        frames, is_on, windowed = events.frames, len(vectors) > 0, vectors.windowed

        def rows_in(view: "VectorView", texts: pl.Series, name: str) -> pl.Series:
            number = frames[name]["compared"]
            if not is_on:
                return pl.repeat(None, len(number), dtype=pl.Int64, eager=True)
            return pl.Series(view.codes(texts), dtype=pl.Int64).gather(number)

        in_windows = is_on and not frames["windowed"].is_empty()
        rows = {
            name: rows_in(vectors, frames["compared"]["text"], name)
            for name in _COMPARED
            if name != _TARGETS or not in_windows
        }
        choice = frames[_TARGETS].select("choice")
        if not in_windows:
            targets = choice.with_columns(target=rows[_TARGETS])
            return cls(vectors.matrix, rows, is_on, targets, vectors.matrix)
        if windowed is None:
            raise TypeError("the view has no vectors of texts that are read in windows")
        parts = rows_in(windowed, frames["windowed"]["text"], _TARGETS)
        joined = _join_windows(windowed.matrix, choice.with_columns(part=parts))
        return cls(vectors.matrix, rows, True, *joined)

    def nearest(
        self, asking: pl.Series, owners: pl.Series, texts: str, text_owners: pl.Series
    ) -> pl.Series:
        """Return the greatest similarity of vectors to those of their owner's texts in a frame."""
        if not self.is_on:
            return pl.repeat(None, len(owners), dtype=pl.Float64, eager=True)
        said = pl.DataFrame({"owner": text_owners, "vector": self.vectors[texts]}).drop_nulls()
        most: Any = said["owner"].max()
        n_owners = 0 if most is None else most + 1
        asks = pl.when(asking.is_not_null() & owners.is_between(0, n_owners - 1)).then(owners)
        order, offsets = group_rows(said["owner"].to_numpy(), n_owners)
        greatest, _ = max_cosine_ragged(
            self.matrix,
            asking.fill_null(0).to_numpy(),
            pl.select(asks.fill_null(-1)).to_series().to_numpy(),
            said["vector"].to_numpy()[order],
            offsets,
            threads=1,
        )
        return pl.Series(greatest, nan_to_null=True).clip(lower_bound=0.0)

    def cosines(
        self, rows: pl.Series, others: pl.Series, matrix: npt.NDArray[np.float32]
    ) -> pl.Series:
        """Return the similarity of vectors to others, of another matrix; null where either is."""
        pairs = pl.DataFrame({"row": rows, "other": others}).with_row_index("pair").drop_nulls()
        found = pl.repeat(None, len(rows), dtype=pl.Float64, eager=True)
        if pairs.is_empty():
            return found
        asked, row = np.unique(pairs["row"].to_numpy(), return_inverse=True)
        chosen, other = np.unique(pairs["other"].to_numpy(), return_inverse=True)
        both = np.concatenate((self.matrix[asked], matrix[chosen]))
        cosines = cosine_pairs(both, row, len(asked) + other, threads=1)
        return found.scatter(pairs["pair"], np.maximum(cosines, 0.0))


def _join_windows(
    sums: npt.NDArray[np.float32], parts: pl.DataFrame
) -> tuple[pl.DataFrame, npt.NDArray[np.float32]]:
    """Add up the parts of each choice's text, and scale the sum to length 1."""
    present = parts.drop_nulls()
    choice, place = np.unique(present["choice"].to_numpy(), return_inverse=True)
    total = np.zeros((len(choice), sums.shape[1]))
    np.add.at(total, place, sums[present["part"].to_numpy()])
    lengths = np.sqrt(np.einsum("ij,ij->i", total, total))
    total /= np.where(lengths > 0, lengths, 1.0)[:, None]
    targets = pl.DataFrame({"choice": choice, "target": np.arange(len(choice))})
    return targets, total.astype(np.float32)


def reaches(similarity: pl.Series, threshold: float) -> pl.Series:
    """Tell which similarities reach a threshold, as float32; null reaches none."""
    return (similarity.cast(pl.Float32) >= np.float32(threshold)).fill_null(False)
