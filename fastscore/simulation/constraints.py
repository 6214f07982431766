"""Reading constraints from what a user says, as the public system does.

A later value replaces an earlier one of the same field, whole words count, and a phrase that leaves
everything open takes all back but the genre.
"""

import re
from dataclasses import dataclass, field

from fastscore.simulation.retrieval import ATTRIBUTES, GENRE, Retrieval, find_year
from fastscore.suites.preference_shift.catalogue import PLOT

USUAL_GENRE = "drama"
PLOT_LIMIT = 2
_RESETS = re.compile(r"\b(?:anything works|whatever|surprise me|anything really)\b")
_BY_VALUE = tuple(name for name in ATTRIBUTES if name not in (GENRE, "year"))


@dataclass(slots=True)
class ConstraintReader:
    """What is known of a user's wishes so far."""

    retrieval: Retrieval
    constraints: dict[str, list[str]] = field(default_factory=dict)

    def read(self, message: str) -> dict[str, list[str]]:
        """Take a message into account; return the constraints that hold then."""
        genre = self._genre(message)
        if _RESETS.search(message.lower()):
            self.constraints = {GENRE: [genre]}
            return dict(self.constraints)
        found = {GENRE: [genre]}
        if year := find_year(message):
            found["year"] = [year]
        values = self.retrieval.find_attributes(message, words=True)
        found |= {name: [values[name]] for name in _BY_VALUE if name in values}
        if keywords := self.retrieval.find_plot_keywords(message, PLOT_LIMIT):
            found[PLOT] = keywords
        self.constraints |= found
        return dict(self.constraints)

    def _genre(self, message: str) -> str:
        found = self.retrieval.find_genre(message, words=True)
        return found or self.constraints.get(GENRE, [USUAL_GENRE])[0]
