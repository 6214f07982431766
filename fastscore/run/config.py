"""What one run is asked to do: plain values that every worker can receive."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, map_source
from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, EVERYTHING, Choice, Limits
from fastscore.options import build_options
from fastscore.paths import check_path
from fastscore.run.engines.engine import LOCAL
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source
from fastscore.suites.registry import load_suite

if TYPE_CHECKING:
    from fastscore.logs.read.score_input import ScoreInput
    from fastscore.suites.own_metrics import OwnMetric

DEFAULT_EMBEDDER = "minilm-l6-v2"
NO_EMBEDDER = "none"
DEFAULT_MAX_REJECTS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A run's request.

    Parameters
    ----------
    suite
        The suite's name.
    inputs
        Files, folders and globs, as given.
    output
        The run directory.
    options
        The suite's options by name; what is not named keeps its default.
    embedder
        The recipe's name, or None for no semantic part.
    precision
        The precision in which the model runs.
    device
        Where it runs.
    dim
        The width to which vectors are truncated, or None for the model's own.
    store
        The folder of vector stores, or None for the one in the cache.
    workers
        How many shards are scored at once on this machine: threads, or an engine's processes.
    shard_bytes
        The most bytes of input in a shard, whole dialogues permitting; None for the suite's own.
    max_rejects
        The share of rejected rows above which the input counts as refused.
    overwrite
        Whether a run with another signature in `output` is replaced.
    engine
        Who does the tasks: ``local``, ``dask`` or ``ray``.
    address
        Of the engine's scheduler; None for workers of our own on this machine.
    columns
        Where the suite's columns stand in these logs, where that is elsewhere.
    strict
        Whether the input counts as refused where a metric is null in every row for want of its
        column.
    format
        The format of standard input, and of named files whose suffix names none.
    choice
        Which dialogues are scored, where not all are.
    metrics
        Metrics beside the suite's own.
    memory
        A frame or rows that are scored in the place of inputs.

    Raises
    ------
    UsageError
        The name of a folder is not UTF-8.
    """

    suite: str
    inputs: tuple[str, ...]
    output: Path
    options: Mapping[str, Any]
    embedder: str | None = DEFAULT_EMBEDDER
    precision: str = "fp32"
    device: str = "cpu"
    dim: int | None = None
    store: Path | None = None
    workers: int = 1
    shard_bytes: int | None = None
    max_rejects: float = DEFAULT_MAX_REJECTS
    overwrite: bool = False
    engine: str = LOCAL
    address: str | None = None
    columns: ColumnMap = NO_MAP
    strict: bool = False
    format: Format | None = None
    choice: Choice = EVERYTHING
    memory: "ScoreInput | None" = None
    metrics: tuple["OwnMetric", ...] = ()
    limits: Limits = DEFAULT_LIMITS

    def __post_init__(self) -> None:
        for path in (self.output, self.store):
            if path is not None:
                check_path(path)

    def load(self) -> tuple[Suite, Any]:
        """Return the suite and its validated options."""
        suite = load_suite(self.suite, self.metrics)
        options = build_options(suite.options, self.options)
        if suite.check is not None:
            suite.check(options)
        return suite, options

    @property
    def reading(self) -> tuple[str, ...]:
        """What decides which rows are scored, as it stands in the signature."""
        return (*self.columns.signed, *self.choice.signed)

    def source(self, suite: Suite) -> Source:
        """Return the suite's source as these logs are read by it."""
        return map_source(suite.source, self.columns)
