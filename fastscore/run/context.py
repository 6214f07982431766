"""What a run is asked for, and the context in which its tasks work."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from fastscore.errors import FastscoreError, UsageError
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, map_source
from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.read.chosen import EVERYTHING, Choice, ChosenDialogues
from fastscore.options import allowed_values, build_options, option_values
from fastscore.paths import check_path
from fastscore.run.engines.engine import LOCAL
from fastscore.run.places import place_of
from fastscore.signature import EmbedderIdentity, signature
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source
from fastscore.suites.identity import NOTHING, NameSet
from fastscore.suites.registry import load_suite

if TYPE_CHECKING:
    from fastscore.logs.score_input import ScoreInput
    from fastscore.run.writer import Writer
    from fastscore.suites.own_metrics import OwnMetric
    from fastscore.vectors.embedder import FunctionEmbedder


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
        The run directory, or the address of a run in an object store.
    options
        The suite's options by name; what is not named keeps its default.
    embedder
        The model's name or folder, a function, or None for no semantic part.
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
        Where the suite's columns are in these logs, if that is elsewhere.
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
        The name of a folder is not UTF-8, or an address cannot be used.
    """

    suite: str
    inputs: tuple[str, ...]
    output: Path
    options: Mapping[str, Any]
    embedder: "str | FunctionEmbedder | None" = DEFAULT_EMBEDDER
    precision: Literal["fp32", "bf16"] = "fp32"
    device: Literal["cpu", "cuda"] = "cpu"
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
        place_of(self.output)
        if not 0 <= self.max_rejects <= 1:  # NaN too
            raise UsageError(f"max_rejects is {self.max_rejects}, expected a number from 0 to 1.")
        if self.store is not None:
            check_path(self.store)

    def load(self) -> tuple[Suite, Any]:
        """Return the suite and its validated options."""
        suite = load_suite(self.suite, self.metrics)
        options = build_options(suite.options, self.options)
        if suite.check is not None:
            suite.check(options)
        return suite, options

    @property
    def reading(self) -> tuple[str, ...]:
        """What decides which rows are scored, as the signature has it."""
        return (*self.columns.signed, *self.choice.signed)

    def source(self, suite: Suite) -> Source:
        """Return the suite's source as these logs are read by it."""
        return map_source(suite.source, self.columns)


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


@dataclass(frozen=True, slots=True)
class PerplexitySettings:
    """Which masked language model judges texts, and where its verdicts are kept."""

    model: str
    store: Path | None
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every task of a run knows.

    ``run`` is the folder of the run's files. ``writer`` commits them; None if nothing is committed.
    """

    run: Path
    suite: str
    options: Mapping[str, Any]
    signature: str
    embedder: EmbedderSettings | None
    perplexity: PerplexitySettings | None = None
    columns: ColumnMap = NO_MAP
    chosen: ChosenDialogues | None = None
    shared_names: NameSet = NOTHING
    writer: "Writer | None" = None
    limits: Limits = DEFAULT_LIMITS
    metrics: tuple["OwnMetric", ...] = ()

    def check_writer(self) -> None:
        """Raise `RunConflictError` unless the run is still held by this run's writer."""
        if self.writer is not None:
            self.writer.check(self.run)

    def fingerprint(self, of_input: str) -> str:
        """Return what a task's receipt is bound to: its input, and what is done with it."""
        # of another log the same choice takes other dialogues
        chosen = "" if self.chosen is None else f"\n{self.chosen.hashes.digest}"
        shared = f"\n{self.shared_names.digest}" if self.shared_names.first.size else ""
        bound = f"{self.signature}\n{of_input}{chosen}{shared}".encode()
        return hashlib.blake2b(bound, digest_size=16).hexdigest()

    def load(self) -> "Loaded":
        """Load the suite and validate its options: once a task."""
        suite = load_suite(self.suite, self.metrics)
        return Loaded(self, suite, build_options(suite.options, self.options))

    def source(self, suite: Suite) -> Source:
        """Return the suite's source as the run's logs are read by it."""
        return map_source(suite.source, self.columns)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a task scores by: the run's context, its suite and the validated options."""

    context: RunContext
    suite: Suite
    options: Any

    @property
    def source(self) -> Source:
        """The suite's source as the run's logs are read by it."""
        return self.context.source(self.suite)


def run_context(
    config: RunConfig, suite: Suite, options: Any, identity: EmbedderIdentity | None
) -> RunContext:
    """Return what a run's tasks need to know."""
    settings = None
    if identity is not None and config.embedder is not None:
        store, given = config.store, config.embedder
        if store is None and not isinstance(given, str):
            store = Path(given.store.name)
        settings = EmbedderSettings(
            given, config.precision, config.dim, store, device=config.device
        )
    return RunContext(
        run=config.output,
        suite=suite.name,
        options=option_values(options),
        signature=signature(suite, options, identity, config.reading),
        embedder=settings,
        perplexity=_perplexity_settings(config, suite, options),
        columns=config.columns,
        limits=config.limits,
        metrics=config.metrics,
    )


def _perplexity_settings(
    config: RunConfig, suite: Suite, options: Any
) -> PerplexitySettings | None:
    for field in dataclasses.fields(options):
        if field.metadata["names_masked_model"] and getattr(options, field.name):
            return PerplexitySettings(getattr(options, field.name), config.store)
    return None


def _no_embedder(suite: Suite, options: Any) -> UsageError:
    """Say which option asks for an embedder, and the value that does not."""
    changes = list(_without_vectors(suite, options))
    asking = " and ".join(_with_value(name, given) for name, given, _ in changes)
    instead = [_with_value(name, value) for name, _, value in changes]
    return UsageError(
        f"{suite.name} needs an embedder"
        + (f" with {asking}" if asking else " with these options")
        + ", and embedder is none.",
        f"Give {' or '.join([*instead, 'embedder=MODEL'])}; `fastscore models list` names them.",
    )


def _with_value(name: str, value: object) -> str:
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}"


def _without_vectors(suite: Suite, options: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each option one change of which needs no vectors: name, value, other value."""
    types = get_type_hints(type(options))
    for field in dataclasses.fields(options):
        given, rules = getattr(options, field.name), field.metadata
        others = allowed_values(types[field.name]) or (rules["minimum"], rules["maximum"])
        for other in (not given,) if isinstance(given, bool) else others:
            if other is None or other == given:
                continue
            try:
                needs = suite.needs_vectors(dataclasses.replace(options, **{field.name: other}))
            except UsageError:
                continue
            if not needs:
                yield field.name, given, other
                break


def embedder_identity(config: RunConfig, suite: Suite, options: Any) -> EmbedderIdentity | None:
    """Return what decides the run's vectors; None where the suite compares none."""
    if not suite.needs_vectors(options):
        return None
    if config.embedder is None and suite.runs_without_embedder:
        return None
    if config.embedder is None:
        raise _no_embedder(suite, options)
    # late, as wherever a run names vectors: most lexical runs need none of it
    from fastscore.vectors.accuracy import stated_accuracy
    from fastscore.vectors.embedder import Embedder
    from fastscore.vectors.view import check_dim

    if not isinstance(config.embedder, str):
        given = config.embedder
        return EmbedderIdentity(
            recipe=given.name,
            fingerprint=given.fingerprint,
            precision=given.precision,
            dim=check_dim(config.dim, given.dim),
            accuracy="",
            device=given.device,
        )
    try:
        embedder = Embedder(config.embedder, precision=config.precision, device=config.device)
    except FastscoreError as error:
        changes = [_with_value(name, value) for name, _, value in _without_vectors(suite, options)]
        without = ['embedder="none"'] if suite.runs_without_embedder else changes
        if without:
            error.hint = f"{error.hint or ''} Without a model: {' or '.join(without)}.".strip()
        raise
    accuracy = stated_accuracy(embedder)
    return EmbedderIdentity(
        recipe=embedder.name,
        fingerprint=embedder.fingerprint,
        precision=config.precision,
        dim=check_dim(config.dim, embedder.dim),
        accuracy="" if accuracy is None else str(accuracy),
        device=config.device,
    )
