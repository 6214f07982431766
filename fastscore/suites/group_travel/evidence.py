"""Lexical evidence: which informative tokens of a preference are in a target, and adjacent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import fastscore_kernels as kernels
import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.group_travel.normalise import Tokens, as_ids, removed_by_slot, tokenise
from fastscore.suites.group_travel.terms import SLOTS
from fastscore.suites.grouping import Ragged, factorize, group_rows, offsets_of, take

if TYPE_CHECKING:
    from fastscore_kernels.targets import Targets

    from fastscore.suites.group_travel.lexicon import Lexicon

MOST_TOKENS = 6
_SHORTEST_PHRASE = 2


@dataclass(frozen=True, slots=True)
class TextCodes:
    """Texts of several columns, tokenised once.

    Attributes
    ----------
    tokens
        The tokens of the distinct texts.
    codes
        By column which distinct text each row is, int64 (n,).
    """

    tokens: Tokens
    codes: Mapping[str, Indices]

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
    """The informative tokens of preferences.

    Attributes
    ----------
    row : int64 (pairs,)
        Which distinct preference (of a slot) each pair has.
    top
        The folded ids of the first `MOST_TOKENS` of each, by rank.
    every
        All of them, ascending.
    phrases
        Runs of at least two that follow each other in the text.
    phrase_owner : int64 (phrases,)
        Whose they are.
    """

    row: Indices
    top: Ragged
    every: Ragged
    phrases: Ragged
    phrase_owner: Indices

    def words(self, tokens: Tokens) -> pl.Series:
        """Return the top tokens of each distinct preference as text: List(String)."""
        lists = (
            pl.DataFrame(
                {
                    "row": np.repeat(np.arange(len(self.top[1]) - 1), np.diff(self.top[1])),
                    "word": tokens.vocabulary.gather(self.top[0]),
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
    """Find the informative tokens of preferences.

    Parameters
    ----------
    texts, name
        The rows of the preferences.
    slots
        The slot of each.
    lexicon
        The words that carry no information.
    """
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
    """What of each preference is in its target.

    Attributes
    ----------
    hits : int64 (pairs,)
        How many of its top tokens.
    phrase : bool (pairs,)
        Whether one of its phrases.
    addressed : bool (pairs,)
        A phrase, two tokens, or the only one.
    """

    hits: Indices
    phrase: Mask
    addressed: Mask


def find_evidence(informative: Informative, owners: Indices, targets: "Targets") -> LexicalEvidence:
    """Look preferences up in their targets.

    Parameters
    ----------
    informative
        Their tokens.
    owners : int64 (pairs,)
        The target of each pair.
    targets
        The targets.
    """
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
