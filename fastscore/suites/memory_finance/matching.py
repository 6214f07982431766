"""Which keywords stand in which texts, for groups of keywords and for pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask, UInt64Array
from fastscore_kernels import keyword_groups

LARGEST_AUTOMATON = 1 << 16
"""Groups whose keywords have more bytes than this together are searched for pair by pair."""

_WORD_BITS, _IN_WORD = 6, 63


@dataclass(frozen=True, slots=True)
class GroupMatches:
    """Which texts have a keyword of which groups.

    Parameters
    ----------
    bits
        Bit g of row t: text t has a keyword of group g; uint64 (texts, words).
    """

    bits: UInt64Array

    def of_group(self, group: int) -> Mask:
        """Return for each text whether it has a keyword of the group."""
        place = np.uint64(group & _IN_WORD)
        found: Mask = (self.bits[:, group >> _WORD_BITS] >> place) & np.uint64(1) > 0
        return found

    def of_pairs(self, texts: Indices, groups: Indices) -> Mask:
        """Return for each pair of a text and a group whether the text has a keyword of it."""
        words = self.bits.reshape(-1)[texts * self.bits.shape[1] + (groups >> _WORD_BITS)]
        found: Mask = (words >> (groups & _IN_WORD).view(np.uint64)) & np.uint64(1) > 0
        return found


def match_groups(texts: pl.Series, groups: Sequence[Sequence[str]]) -> GroupMatches:
    """Search texts for the keywords of all groups at once.

    Parameters
    ----------
    texts
        Strings without nulls.
    groups
        The keywords of each group; none of them empty.

    Returns
    -------
    GroupMatches
        For each text and group whether any keyword of the group is a substring of the text.
    """
    return GroupMatches(keyword_groups(texts, groups))


def contains(texts: pl.Series, needles: pl.Series) -> Mask:
    """Return for each pair whether the text has the needle as a substring."""
    pairs = pl.DataFrame({"text": texts, "needle": needles})
    found = pairs.select(pl.col("text").str.contains(pl.col("needle"), literal=True))
    return found.to_series().to_numpy()
