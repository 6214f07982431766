"""Normalised texts, their tokens, and plurals folded: what every lexical match compares."""

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import fastscore_kernels as kernels
import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.group_travel.terms import SLOTS
from fastscore.suites.grouping import Ragged, factorize, first_of_each

if TYPE_CHECKING:
    from fastscore.suites.group_travel.lexicon import Lexicon

_SHORTEST_COMPONENT = 3
_APOSTROPHES = "'’‘`"


@cache
def normal_character(character: str) -> str:
    """Return the replacement of a character: letters and digits without marks, or a space.

    Marks have a combining class and nothing else does, so that characters can be decomposed one
    by one.
    """
    if character == "&":
        return " and "
    decomposed = unicodedata.normalize("NFKD", character)
    bare = "".join(part for part in decomposed if not unicodedata.category(part).startswith("M"))
    kept = (part for part in bare.casefold() if part not in _APOSTROPHES)
    return "".join(" and " if part == "&" else part if part.isalnum() else " " for part in kept)


def normalise(texts: pl.Series) -> pl.Series:
    """Normalise texts: no case, no marks, no apostrophes, words between single spaces.

    Null stays null.
    """
    codes, found = factorize(texts.fill_null(""))
    normal = pl.Series(kernels.replace_characters(found, normal_character), dtype=pl.String)
    gathered = normal.gather(codes).rename(texts.name)
    return gathered.set(texts.is_null(), None) if texts.null_count() else gathered


def join_texts(texts: pl.Series, owners: Indices) -> pl.Series:
    """Join the texts of each owner by spaces; owners are numbered by first appearance."""
    several = np.bincount(owners) > 1
    joined = texts.gather(first_of_each(owners))
    if several.any():
        rows = pl.Series(several[owners])
        parts = pl.DataFrame({"owner": owners, "text": texts}).filter(rows).group_by("owner")
        found = parts.agg(pl.col("text").str.join(" "))
        joined = joined.scatter(found["owner"], found["text"])
    return joined


def fold(tokens: pl.Expr) -> pl.Expr:
    """Fold plurals: museums to museum, cities to city."""
    length = tokens.str.len_chars()
    plural = tokens.str.ends_with("s") & ~tokens.str.contains("(?:ss|us|is)$")
    return (
        pl.when((length > 4) & tokens.str.ends_with("ies"))
        .then(tokens.str.head(-3) + "y")
        .when((length > 3) & plural)
        .then(tokens.str.head(-1))
        .otherwise(tokens)
    )


@dataclass(frozen=True, slots=True)
class Tokens:
    """Texts as sequences of numbered tokens.

    Attributes
    ----------
    folded : (int32 ids, int64 offsets)
        The tokens of each text, plurals folded.
    plain : (int32 ids, int64 offsets)
        The same texts, unchanged.
    vocabulary
        The token of each number, String.
    fold_of : int32 (tokens,)
        The number of each token's folded form.
    """

    folded: tuple[npt.NDArray[np.int32], Indices]
    plain: tuple[npt.NDArray[np.int32], Indices]
    vocabulary: pl.Series
    fold_of: npt.NDArray[np.int32]

    @property
    def counts(self) -> Indices:
        """How many tokens each text has."""
        return np.diff(self.plain[1])

    def numbers(self, words: Any) -> npt.NDArray[np.int32]:
        """Return the numbers of words, -1 where no text has them."""
        found = pl.DataFrame({"word": words}, schema={"word": pl.String}).join(
            pl.DataFrame({"word": self.vocabulary}).with_row_index("number"),
            on="word",
            how="left",
            maintain_order="left",
        )
        return found["number"].cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int32)


def tokenise(texts: pl.Series) -> Tokens:
    """Cut texts into tokens."""
    found = kernels.number_tokens(kernels.replace_characters(texts, normal_character))
    vocabulary = pl.Series("token", found.vocabulary, dtype=pl.String)
    folds = pl.select(fold(pl.lit(vocabulary)).alias("token")).to_series()
    numbers, whole = factorize(pl.concat([vocabulary, folds]))
    fold_of = numbers[len(vocabulary) :].astype(np.int32)
    offsets = found.offsets
    return Tokens((fold_of[found.ids], offsets), (found.ids, offsets), whole, fold_of)


def removed_by_slot(tokens: Tokens, lexicon: "Lexicon") -> npt.NDArray[np.int64]:
    """Return by bits for which slots a token carries no information: bit ``i`` for `SLOTS[i]`.

    A token or its fold is listed, or the fold is short and neither digits nor of another script.
    Bit ``len(SLOTS)`` is for every other slot.
    """
    words = tokens.vocabulary
    n_plain = len(tokens.fold_of)
    folds = words.gather(tokens.fold_of)
    plain = words.head(n_plain)

    def listed(names: Any) -> npt.NDArray[np.bool_]:
        return (plain.is_in(list(names)) | folds.is_in(list(names))).to_numpy()

    is_ascii = folds.str.len_bytes() == folds.str.len_chars()
    short = is_ascii & (folds.str.len_chars() < 3) & ~folds.str.contains("^[0-9]+$")
    everywhere = listed(lexicon.uninformative) | short.to_numpy()
    bits = np.where(everywhere, (1 << (len(SLOTS) + 1)) - 1, 0)
    for bit, slot in enumerate(SLOTS):
        bits |= listed(lexicon.slot_generic.get(slot, ())).astype(np.int64) << bit
    return bits


def as_ids(rows_of: Ragged) -> tuple[npt.NDArray[np.int32], Indices]:
    """Return ragged numbers as the kernels take token ids."""
    return rows_of[0].astype(np.int32), rows_of[1]


def component(tokens: pl.Series, lexicon: "Lexicon") -> pl.Series:
    """Return what tokens mean as parts of categories, null for nothing."""
    codes, found = factorize(tokens)
    folded = fold(pl.col("token"))
    means = (folded.str.len_chars() >= _SHORTEST_COMPONENT) & ~folded.is_in(
        list(lexicon.category_drop)
    )
    meant = pl.when(means).then(folded.replace(dict(lexicon.category_alias)))
    return found.to_frame("token").select(meant).to_series().gather(codes)
