"""A run's request: every option of `fastscore.score` and of the command line, declared once."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastscore.errors import UsageError
from fastscore.files import check_is_local, check_path
from fastscore.logs.inputs.column_map import ColumnMap, requested_map
from fastscore.logs.inputs.files import Format
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MEMORY_SHARE, Limits
from fastscore.logs.read.chosen import Choice
from fastscore.run.commit import place_of
from fastscore.settings.options import (
    CHANGES_SCORE,
    MOST_INTEGER,
    available_processors,
    build_options,
    check_settings,
    setting,
    settings_of,
)
from fastscore.suites.base import Suite
from fastscore.suites.own_metrics import OwnMetric, load_metrics, with_metrics
from fastscore.suites.registry import load_suite

if TYPE_CHECKING:
    from fastscore.logs.score_input import ScoreInput
    from fastscore.vectors.embedder import Embed, Embedder, FunctionEmbedder

DEFAULT_EMBEDDER = "minilm-l6-v2"
NO_EMBEDDER = "none"

WHERE_THINGS_ARE = "Where things are"
WHAT_IS_SCORED = "What is scored, and what is refused"
HOW_IT_RUNS = "How it runs"

StrPath = str | os.PathLike[str]


_changes = partial(setting, environment=True, heading=CHANGES_SCORE)
_where = partial(setting, environment=True, heading=WHERE_THINGS_ARE)
_scored = partial(setting, environment=True, heading=WHAT_IS_SCORED)
_runs = partial(setting, environment=True, heading=HOW_IT_RUNS)


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Which model embeds, where its vectors are kept and to what width they are cut.

    ``cache`` is the folder of the model, None for this process's cache.
    """

    recipe: "str | FunctionEmbedder"
    precision: Literal["fp32", "bf16"]
    dim: int | None
    store: Path | None
    cache: Path | None = None
    device: Literal["cpu", "cuda"] = "cpu"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run is asked for, validated when it is made.

    Fields with a help text are keywords of `fastscore.score`, with the same annotation and default,
    and options of the command line.
    """

    suite: str
    options: Any = field(default_factory=dict)
    """The suite's options, or their values by name; None if rows are only read."""
    inputs: tuple[str, ...] = ()
    """Files, folders and globs."""
    memory: "ScoreInput | None" = None
    """A frame or rows that are read in the place of inputs."""
    shard_bytes: int | None = None
    """Maximum input of a shard; None for the suite's own."""

    embedder: "StrPath | Embedder | Embed | None" = _changes(
        DEFAULT_EMBEDDER,
        "Embedding model: a name of `fastscore models list`, a recipe file or a folder. "
        f"'{NO_EMBEDDER}' uses none.",
    )
    precision: Literal["fp32", "bf16"] = _changes(
        "fp32", "Number format of the model. The signature contains the accuracy of bf16."
    )
    device: Literal["cpu", "cuda"] = _changes(
        "cpu", "Where the model runs. 'cuda' is an NVIDIA GPU and needs the extra cuda."
    )
    dim: int | None = _changes(
        None, "Truncate vectors to this width.  [default: the model's width]", minimum=1
    )

    output: StrPath | None = _where(
        None, "The run directory, or an address such as s3://bucket/run.", flags=("-o", "--output")
    )
    store: StrPath | None = _where(None, "The folder of vector stores.  [default: in the cache]")
    format: Format | None = _where(
        None,
        "Format of standard input (-) and of files without a known suffix. For standard "
        "input the default is jsonl.",
    )
    layout: str | None = _where(
        None, "Layout of the logs: a TOML file or one of {layouts}.", metavar="NAME|FILE"
    )
    columns: Mapping[str, str] | None = _where(
        None,
        "Read column NAME from PATH: text=content, text=turns[].content. Repeatable.",
        flags=("--column",),
        metavar="NAME=PATH",
        example={"text": "content"},
    )
    values: Mapping[str, Mapping[str, str]] | None = _where(
        None,
        "Replace a value of the log, such as speaker:user=USER. Repeatable.",
        flags=("--value",),
        metavar="COLUMN:FROM=TO",
        example={"speaker": {"user": "USER"}},
    )
    alternate: Literal["user", "assistant"] | None = _where(
        None, "Turns without a speaker take turns, and this one begins."
    )
    sort_by: str | None = _where(
        None, "Sort the turns of each dialogue by KEY: a time, or a number.", metavar="KEY"
    )
    dialogue: str | None = _where(
        None, "KEY names the dialogue. Documents with the same name are joined.", metavar="KEY"
    )
    without: str | None = _where(
        None,
        "Leave out of texts what tags enclose, such as think. Separated by commas.",
        metavar="TAGS",
    )

    metrics: Sequence[OwnMetric | str] = _scored(
        (),
        "Metrics of your own: a Python file, or the name of an installed one. Repeatable.",
        metavar="FILE|NAME",
    )
    limit: int | None = _scored(None, "Score only the first N dialogues.", minimum=1)
    sample: int | None = _scored(
        None,
        "Score a random sample of N dialogues. It does not depend on the order of the log.",
        minimum=1,
    )
    seed: int | None = _scored(None, "Seed of --sample. Default: 0.")
    max_rejects: float = _scored(
        0.001,
        "Maximum share of rejected lines. Above it the exit code is 3.",
        minimum=0.0,
        maximum=1.0,
        in_manifest=True,
    )
    strict: bool = _scored(
        False, "Exit with code 3 if a metric is null in every row because its column is missing."
    )

    workers: int | None = _runs(
        None,
        "Number of shards scored at once. Default: $FASTSCORE_THREADS, or all processors.",
        minimum=1,
        in_manifest=True,
    )
    engine: Literal["local", "dask", "ray"] = _runs(
        "local", "Where tasks run: in this process, or on workers of Dask or Ray.", in_manifest=True
    )
    address: str | None = _runs(
        None, "Address of the engine's scheduler.  [default: workers on this machine]"
    )
    max_memory: int | None = _runs(
        None,
        "Maximum memory of the process in MiB. Above it the run exits with code 4. The "
        "same command continues it. With an engine: of each worker process.  "
        f"[default: {MEMORY_SHARE:.0%} of the machine]",
        minimum=256,
        maximum=MOST_INTEGER >> 20,
        unit="MiB",
        example=4096,
        in_manifest=True,
    )
    max_unpacked: int = _runs(
        DEFAULT_LIMITS.unpacked, "Maximum unpacked size of one compressed file in MiB.", minimum=1
    )
    max_ratio: float = _runs(
        DEFAULT_LIMITS.ratio,
        "Maximum ratio of unpacked and compressed size, beyond 64 MiB.",
        minimum=1.0,
    )
    overwrite: bool = _runs(False, "Replace an existing run in -o.")

    # what follows is made of what is given
    folder: Path = field(init=False)
    threads: int = field(init=False)
    limits: Limits = field(init=False)
    choice: Choice = field(init=False)
    column_map: ColumnMap = field(init=False)
    model: EmbedderSettings | None = field(init=False)
    own_metrics: tuple[OwnMetric, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_settings(self)
        self._set("folder", Path(self.output or ""))
        place_of(self.folder)
        if (self.shard_bytes or 0) > MOST_INTEGER:
            raise UsageError("shard_size is more MiB than a file can have.")
        if self.store is not None:
            check_path(self.store)
            check_is_local(self.store, "a vector store")
        self._set("threads", self.workers or available_processors())
        self._set("limits", Limits(self.max_memory, self.max_unpacked, self.max_ratio))
        self._set("choice", Choice(self.limit, self.sample, self.seed))
        self._set("column_map", layout_map(self.layout, self.suite) | requested_map(self))
        store = None if self.store is None else Path(self.store)
        model = embedder_settings(self.embedder, self.precision, self.device, self.dim, store)
        self._set("model", model)
        self._set("own_metrics", load_metrics(self.metrics, self.suite))
        if isinstance(self.options, Mapping):
            declared = load_suite(self.suite).options
            self._set("options", build_options(declared, self.options))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def load_suite(self) -> Suite:
        """Return the suite with its own metrics; it has checked the options."""
        suite = with_metrics(load_suite(self.suite).under(self.options), self.own_metrics)
        if suite.check is not None:
            suite.check(self.options)
        return suite

    @property
    def settings(self) -> dict[str, Any]:
        """How the run is done, as the manifest has it: no number depends on it."""
        resolved = {"workers": self.threads, "max_memory": self.limits.memory_bytes}
        names = [each.name for each in SETTINGS if each.metadata["in_manifest"]]
        return {name: resolved.get(name, getattr(self, name)) for name in names}


SETTINGS = settings_of(Request)
"""The options of a run, as fields."""


def embedder_settings(
    embedder: Any,
    precision: Literal["fp32", "bf16"],
    device: Literal["cpu", "cuda"],
    dim: int | None,
    store: Path | None = None,
) -> EmbedderSettings | None:
    """Return which model embeds, None for none; an embedder brings its precision and device."""
    if embedder is None or (isinstance(embedder, str) and embedder == NO_EMBEDDER):
        return None
    if isinstance(embedder, str | os.PathLike):
        return EmbedderSettings(os.fspath(embedder), precision, dim, store, device=device)
    from fastscore.vectors.embedder import Embedder, FunctionEmbedder

    if isinstance(embedder, Embedder):
        folder = str(embedder.exported.folder.absolute())
        return EmbedderSettings(folder, embedder.precision, dim, store, device=embedder.device)
    if callable(embedder) and not isinstance(embedder, type) and not hasattr(embedder, "encode"):
        embedder = FunctionEmbedder(embedder)
    if isinstance(embedder, FunctionEmbedder):
        return EmbedderSettings(embedder, embedder.precision, dim, store, device=embedder.device)
    kind, hint = type(embedder).__name__, None
    if isinstance(embedder, type):
        hint = f"Make an object of the class {embedder.__name__}."
    elif hasattr(embedder, "encode"):
        hint = f"Pass the method: embedder=model.encode, of your {kind}."
    raise UsageError(
        f"The embedder is of type {kind}; expected the name or folder of a model, a "
        "fastscore.Embedder, or a function from a list of texts to a matrix.",
        hint,
    )
