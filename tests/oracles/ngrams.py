"""TF-IDF over characters in plain Python, and by scikit-learn: oracles of `character_ngrams`."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity


def word_ngrams(text: str) -> Counter[str]:
    """Count the n-grams of 3 to 5 characters of each word with a space on either side."""
    found: Counter[str] = Counter()
    for word in text.lower().split():
        spaced = f" {word} "
        for n in (3, 4, 5):
            found.update(spaced[i : i + n] for i in range(len(spaced) - n + 1))
    return found


def cosines(text: str, values: Sequence[str]) -> list[float]:
    """Return the cosine of a text with each value, IDF fitted on the values."""
    counted = [word_ngrams(value) for value in values]
    having = Counter(gram for grams in counted for gram in grams)
    idf = {gram: math.log((1 + len(values)) / (1 + n)) + 1 for gram, n in having.items()}

    def scaled(grams: Counter[str]) -> dict[str, float]:
        weights = {gram: n * idf[gram] for gram, n in grams.items() if gram in idf}
        length = math.sqrt(math.fsum(weight**2 for weight in weights.values()))
        return {gram: weight / length for gram, weight in weights.items()}

    asked = scaled(word_ngrams(text))
    return [
        math.fsum(asked[gram] * weight for gram, weight in scaled(grams).items() if gram in asked)
        for grams in counted
    ]


class Published:
    """The values of one field, indexed as the successor of the public evaluation does it."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = list(values)
        self._vectorizer: Any = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
        self._matrix = self._vectorizer.fit_transform(self.values)

    def nearest(self, texts: Sequence[str], top: int = 3, least: float = 0.35) -> list[list[str]]:
        """Return for each text the values of highest cosine, of equal ones the first."""
        found = []
        for text in texts:
            similar = cosine_similarity(self._vectorizer.transform([text]), self._matrix).ravel()
            ranked = np.argsort(-similar, kind="stable")[:top]
            found.append([self.values[i] for i in ranked if similar[i] >= least])
        return found
