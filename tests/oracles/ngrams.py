"""TF-IDF over characters by scikit-learn: the oracle of `character_ngrams`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity


class Published:
    """The values of one field, indexed as the successor of the public evaluation does it."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = list(values)
        self._vectorizer: Any = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
        self._matrix = self._vectorizer.fit_transform(self.values)

    def cosines(self, text: str) -> Any:
        """Return the cosine of a text with each value."""
        return cosine_similarity(self._vectorizer.transform([text]), self._matrix).ravel()

    def nearest(self, texts: Sequence[str], top: int = 3, least: float = 0.35) -> list[list[str]]:
        """Return for each text the values of highest cosine, of equal ones the first."""
        found = []
        for text in texts:
            similar = self.cosines(text)
            ranked = np.argsort(-similar, kind="stable")[:top]
            found.append([self.values[i] for i in ranked if similar[i] >= least])
        return found
