"""Random draws of one session: a counter-based stream of its own for each purpose.

A stream is Philox keyed by seed, session and purpose, so that what one session draws depends on
no other session, worker or earlier run, and what a user draws on nothing that a system says.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")

USER, AGENT, PHRASING = 0, 1, 2
"""The purposes that draw."""

_PURPOSES = 4
_BLOCK = 256


class Draws:
    """A stream of uniform numbers in [0, 1) and what is chosen by them.

    Parameters
    ----------
    seed
        The simulation's seed, 0 to 2**63 - 1.
    session
        The session's number from 0.
    purpose
        `USER`, `AGENT` or `PHRASING`.
    """

    __slots__ = ("_generator", "_left")

    def __init__(self, seed: int, session: int, purpose: int) -> None:
        key = np.array([seed, session * _PURPOSES + purpose], np.uint64)
        self._generator = np.random.Generator(np.random.Philox(key=key))
        self._left: list[float] = []

    def uniform(self) -> float:
        """Return the next number."""
        if not self._left:
            self._left = self._generator.random(_BLOCK).tolist()
            self._left.reverse()
        return self._left.pop()

    def happens(self, rate: float) -> bool:
        """Return whether an event of this probability happens."""
        return self.uniform() < rate

    def choose(self, options: Sequence[Item]) -> Item:
        """Return one of the options, each as likely."""
        return options[int(self.uniform() * len(options))]

    def sample(self, options: Sequence[Item], most: int) -> list[Item]:
        """Return the first of the options after a shuffle, at most so many."""
        count = len(options)
        moved: dict[int, Item] = {}
        chosen = []
        for place in range(min(most, count)):
            other = place + int(self.uniform() * (count - place))
            chosen.append(moved.get(other, options[other]))
            moved[other] = moved.get(place, options[place])
        return chosen
