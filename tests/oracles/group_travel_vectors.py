"""Vectors of the plain group_travel scorer: every text once, kept by its text."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.oracles.group_travel_logs import is_null

Vector = npt.NDArray[np.float32]
Encode = Callable[[list[str]], npt.NDArray[np.float32]]


class Vectors:
    """The vectors of texts, each embedded once however many dialogues have it.

    Attributes
    ----------
    requested : int
        How many texts were given to the model.
    """

    def __init__(self, encode: Encode | None, known: Mapping[str, Vector] | None = None) -> None:
        self._encode = encode
        self._known = dict(known or {})
        self.requested = 0

    @property
    def known(self) -> Mapping[str, Vector]:
        return self._known

    def __bool__(self) -> bool:
        return self._encode is not None or bool(self._known)

    def of(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of some texts, one a row."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            if self._encode is None:
                raise KeyError(f"no vector of {missing[0][:80]!r}")
            self._known.update(zip(missing, self._encode(missing), strict=True))
            self.requested += len(missing)
        return np.stack([self._known[text] for text in texts])

    def nearest(self, texts: Sequence[str], others: Sequence[str]) -> list[float | None]:
        """Return each text's largest similarity with others; None where either says nothing."""
        targets = [other for other in others if not is_null(other)]
        asked = [text for text in texts if not is_null(text)]
        if not self or not targets or not asked:
            return [None] * len(texts)
        cosines = (self.of(asked) @ self.of(targets).T).max(axis=1)
        found = dict(zip(asked, np.maximum(cosines, 0).tolist(), strict=True))
        return [found.get(text) for text in texts]

    def along_mean(self, text: str, parts: Sequence[str]) -> float | None:
        """Return a text's similarity with the mean of the vectors of parts, each word counting.

        Each part is a window of its own, of as many tokens as words. None where the text or all
        parts say nothing.
        """
        texts = [part for part in parts if not is_null(part)]
        if not self or not texts or is_null(text):
            return None
        words = [len(part.split()) for part in texts]
        mean = np.average(self.of(texts).astype(np.float64), axis=0, weights=words)
        length = float(np.linalg.norm(mean))
        cosine = float(self.of([text])[0] @ mean) / length if length else 0.0
        return max(cosine, 0.0)

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed in one go what a dialogue will ask for."""
        if self and (wanted := [text for text in dict.fromkeys(texts) if not is_null(text)]):
            self.of(wanted)


def read_vectors(path: Path) -> dict[str, Vector]:
    with np.load(path) as stored:
        return dict(zip(json.loads(stored["texts"].item()), stored["vectors"], strict=True))


def write_vectors(path: Path, vectors: Mapping[str, Vector]) -> None:
    texts = np.array(json.dumps(list(vectors)))
    np.savez(path, texts=texts, vectors=np.stack(list(vectors.values())))


def sentence_transformer(weights: Path) -> Encode:
    """Return the encoder of a sentence-transformers folder."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(weights), device="cpu")

    def encode(texts: list[str]) -> npt.NDArray[np.float32]:
        return np.asarray(
            model.encode(texts, normalize_embeddings=True, show_progress_bar=False), np.float32
        )

    return encode
