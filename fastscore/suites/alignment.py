"""Where two texts agree: for showing single dialogues, not for scoring."""

from collections.abc import Sequence
from functools import lru_cache

from fastscore.suites.showing import Mark

LONGEST = 2_000
_KEPT = 1 << 12
"""Every metric of a row is shown with the same texts."""


@lru_cache(_KEPT)
def matched_characters(text: str, other: str) -> tuple[Mark, ...]:
    """Return the runs of a text's characters that a shortest edit leaves as they are.

    Parameters
    ----------
    text, other
        The text that is marked, and the one it is compared with. The number of characters outside
        the runs in the longer text, and of those exchanged, makes up their Levenshtein distance.

    Returns
    -------
    tuple of Mark
        Empty where a text is longer than `LONGEST` characters.
    """
    if not text or not other or max(len(text), len(other)) > LONGEST:
        return ()
    kept = set()
    rows = _distances(text, other)
    i, j = len(text), len(other)
    while i and j:
        here = rows[i][j]
        if text[i - 1] == other[j - 1] and rows[i - 1][j - 1] == here:
            kept.add(i - 1)
            i, j = i - 1, j - 1
        elif rows[i - 1][j - 1] + 1 == here:
            i, j = i - 1, j - 1
        elif rows[i - 1][j] + 1 == here:
            i -= 1
        else:
            j -= 1
    return _join_places(sorted(kept), label="matched")


def occurrences(text: str, words: str, *, good: bool = True, label: str = "") -> tuple[Mark, ...]:
    """Return the places of words in a text, whatever their case."""
    if not words:
        return ()
    found = []
    low, wanted = text.lower(), words.lower()
    if len(low) != len(text):  # lowering changed the places
        low, wanted = text, words
    start = low.find(wanted)
    while start >= 0:
        found.append(Mark(start, start + len(wanted), good, label or words))
        start = low.find(wanted, start + len(wanted))
    return tuple(found)


def disjoint(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Keep the longest of marks that overlap, in the order of the text."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.start - mark.stop, mark.start)):
        if all(mark.stop <= other.start or mark.start >= other.stop for other in kept):
            kept.append(mark)
    return tuple(sorted(kept, key=lambda mark: mark.start))


def _join_places(places: list[int], *, label: str) -> tuple[Mark, ...]:
    """Join ascending places of characters into marks."""
    marks: list[Mark] = []
    for place in places:
        if marks and marks[-1].stop == place:
            marks[-1] = Mark(marks[-1].start, place + 1, label=label)
        else:
            marks.append(Mark(place, place + 1, label=label))
    return tuple(marks)


def _distances(text: str, other: str) -> list[list[int]]:
    rows = [list(range(len(other) + 1))]
    for i, character in enumerate(text, start=1):
        above, row = rows[-1], [i]
        for j, against in enumerate(other, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (character != against)))
        rows.append(row)
    return rows
