"""A shard's vectors: one matrix, and a row number for every text of a column."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastscore.errors import StoreError
from fastscore.extras import load
from fastscore.vectors.text_ids import (
    IdIndex,
    SortedIds,
    TextIds,
    as_series,
    distinct_ids,
    text_ids,
)

if TYPE_CHECKING:
    import polars as pl

    from fastscore.vectors.text_ids import Texts


@dataclass(frozen=True, slots=True, eq=False)
class VectorView:
    """Vectors of a set of distinct texts.

    Attributes
    ----------
    matrix : float32 (n, dim)
        C-contiguous; rows of length 1, in the order of `ids`.
    ids : uint64 (n, 2)
        Text ids, sorted and distinct.
    log_perplexities : VectorView or None
        Of width 1: the natural logarithms of texts' pseudo-perplexities, where they were asked for.
    windowed : VectorView or None
        Of long texts, where they were asked for: the sums of their windows' vectors, each times its
        tokens, so not of length 1.
    """

    matrix: npt.NDArray[np.float32]
    ids: TextIds
    log_perplexities: "VectorView | None" = None
    windowed: "VectorView | None" = None

    @property
    def dim(self) -> int:
        """Width of the vectors; 0 without any."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_texts(cls, texts: "Texts", matrix: npt.ArrayLike) -> "VectorView":
        """Make a view of given vectors.

        Parameters
        ----------
        texts
            Strings without nulls; of repeats, the first counts.
        matrix : float (n, dim)
            One row a text, of length 1.
        """
        rows = np.asarray(matrix, np.float32)
        series = as_series(texts)
        if rows.ndim != 2 or len(rows) != len(series):
            raise ValueError(f"The matrix has shape {rows.shape}: expected ({len(series)}, dim).")
        distinct, positions, _ = distinct_ids(text_ids(series))
        return cls(matrix=np.ascontiguousarray(rows[positions]), ids=distinct.rows())

    @classmethod
    def empty(cls) -> "VectorView":
        """Make the view of no texts, for a run without an embedder."""
        return cls(matrix=np.empty((0, 0), np.float32), ids=np.empty((0, 2), np.uint64))

    def nearest(
        self, rows: npt.NDArray[np.int32], among: npt.NDArray[np.int32], k: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Find for each of some texts those of others whose vectors are nearest, by FAISS.

        Parameters
        ----------
        rows : int32 (n,)
            Rows of `matrix` that are looked for.
        among : int32 (m,)
            Rows of `matrix` that are searched.
        k
            How many, at most `m`.

        Returns
        -------
        tuple
            Places in `among`, int64 (n, k), the nearest first, and their cosines, float32 (n, k),
            which may be off by the rounding of float32: compare again what is nearly equal.
        """
        faiss: Any = load("faiss", "A search for near vectors")
        index = faiss.IndexFlatIP(self.dim)
        index.add(self.matrix[among])
        cosines, found = index.search(self.matrix[rows], k)
        return found, cosines

    def codes(self, texts: "Texts") -> npt.NDArray[np.int32]:
        """Return each text's row in `matrix`.

        Parameters
        ----------
        texts
            Strings in any order, with repeats and nulls.

        Returns
        -------
        int32 (n,)
            -1 where the text is null.

        Raises
        ------
        StoreError
            If a text that is not null has no vector here.
        """
        series = as_series(texts)
        present = series.is_not_null().to_numpy()
        known = series.drop_nulls()
        index = IdIndex(SortedIds(*np.ascontiguousarray(self.ids.T)))
        found = index.find(*np.ascontiguousarray(text_ids(known).T))
        absent = found < 0
        if absent.any():
            first = known[int(absent.argmax())]
            raise StoreError(
                f"{known.filter(absent).n_unique()} distinct texts have no vector, "
                f"the first is {first[:80]!r}.",
                "Embed them first: `VectorStore.get_or_embed` does.",
            )
        codes = np.full(len(series), -1, np.int32)
        codes[present] = found
        return codes

    def series(self, texts: "Texts") -> "pl.Series":
        """Return the vector of each text.

        Parameters
        ----------
        texts
            Strings in any order, with repeats and nulls.

        Returns
        -------
        pl.Series
            Of dtype ``Array(Float32, dim)``, with the name of the texts. Null if the text is.

        Raises
        ------
        StoreError
            If a text that is not null has no vector here.
        """
        import polars as pl

        column = as_series(texts)
        rows = pl.Series(self.codes(column))
        vectors = pl.Series(column.name, self.matrix, pl.Array(pl.Float32, self.dim))
        return vectors.gather(rows.set(rows < 0, None))
