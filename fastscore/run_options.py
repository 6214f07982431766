"""The options of `fastscore.score` that every suite has, as types."""

import os
from collections.abc import Mapping
from typing import Literal, TypedDict


class RunOptions(TypedDict, total=False):
    """How logs are read and a run is made; see `fastscore.score`."""

    embedder: str | None
    precision: str
    dim: int | None
    store: str | os.PathLike[str] | None
    workers: int | None
    engine: Literal["local", "dask", "ray"]
    address: str | None
    max_rejects: float
    max_memory: int | None
    max_unpacked: int
    max_ratio: float
    columns: Mapping[str, str] | None
    values: Mapping[str, Mapping[str, str]] | None
    layout: str | None
    strict: bool
    overwrite: bool
    format: Literal["csv", "json", "jsonl", "parquet"] | None
    limit: int | None
    sample: int | None
    seed: int | None
