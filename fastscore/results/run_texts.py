"""The texts that runs compare by meaning, and those of them that are nearest to a text."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from fastscore.errors import StoreError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.results.dialogues import Dialogues, log_is_gone
from fastscore.results.runs import Run
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.store import VectorStore
from fastscore.vectors.text_ids import text_ids


def run_texts(run: Run) -> Iterator[pl.Series]:
    """Read a run's logs again; yield the distinct texts of each shard that need a vector.

    Raises
    ------
    InputError
        A log is no longer there.
    """
    dialogues = Dialogues(run)
    suite, source = dialogues.suite, dialogues.source
    for about in run.manifest.inputs:
        name = about["name"]
        if not Path(name).exists():
            raise log_is_gone(name)
        with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
            files = resolve_inputs((name,), source.formats)
            for shard in plan_shards(files, source, scratch=Path(scratch)).shards:
                rows = read_shard(shard, source)
                if suite.texts is not None:
                    yield suite.texts(suite.read(rows.frame, dialogues.options), dialogues.options)


def nearest_texts(
    text: str,
    runs: Sequence[Run],
    k: int,
    *,
    embedder: str,
    precision: str,
    root: Path | None = None,
) -> pl.DataFrame:
    """Find the texts of runs whose vectors are nearest to a text's.

    Returns
    -------
    pl.DataFrame
        ``text`` and ``cosine``, at most `k` rows, the nearest first.

    Raises
    ------
    StoreError
        No text of the runs has a vector in the store.
    """
    model = Embedder(embedder, precision=precision)
    store = VectorStore.open(model.fingerprint, model.dim, root=root)
    vector = np.asarray(model.encode(pl.Series("text", [text])), np.float32)[0]
    best = pl.DataFrame(schema={"text": pl.String, "cosine": pl.Float32})
    for run in runs:
        for texts in run_texts(run):
            rows, cosines = store.nearest(vector, k, text_ids(texts))
            found = pl.DataFrame({"text": texts.gather(rows).alias("text"), "cosine": cosines})
            best = (
                pl.concat([best, found])
                .unique("text", keep="any")
                .sort("cosine", "text", descending=[True, False])
                .head(k)
            )
    if best.is_empty():
        raise StoreError(
            f"No text of these runs has a vector in {store.folder}.",
            "Score with an embedder, or name its --store.",
        )
    return best
