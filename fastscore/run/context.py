"""What every task of a run knows: plain values that an engine can send to a worker."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from fastscore.errors import FastscoreError, UsageError
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, map_source
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.plan.chosen import ChosenDialogues
from fastscore.options import allowed_values, build_options, flag_name, option_values
from fastscore.run.config import RunConfig
from fastscore.signature import EmbedderIdentity, signature
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source
from fastscore.suites.registry import load_suite

if TYPE_CHECKING:
    from fastscore.run.writer import Writer
    from fastscore.suites.own_metrics import OwnMetric


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Which model embeds, where its vectors are kept and to what width they are cut.

    ``cache`` is where the model stands, None for this process's cache.
    """

    recipe: str
    precision: str
    dim: int | None
    store: Path | None
    cache: Path | None = None
    device: str = "cpu"


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
        chosen = "" if self.chosen is None else f"\n{self.chosen.digest}"
        bound = f"{self.signature}\n{of_input}{chosen}".encode()
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
        settings = EmbedderSettings(
            config.embedder, config.precision, config.dim, config.store, device=config.device
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
    asking = " and ".join(f"{flag_name(name)} {given}" for name, given, _ in changes)
    instead = [f"{flag_name(name)} {value}" for name, _, value in changes]
    return UsageError(
        f"{suite.name} needs an embedder"
        + (f" with {asking}" if asking else " with these options")
        + ", and --embedder is none.",
        f"Type {' or '.join([*instead, '--embedder MODEL'])}; `fastscore models list` names them.",
    )


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
    """Return what decides the run's vectors; None where the suite compares none.

    Raises
    ------
    UsageError
        The suite compares vectors with these options, and the embedder is turned off.
    ModelError
        The model is not exported, or its accuracy has not been measured in this precision and on
        this device.
    """
    if not suite.needs_vectors(options):
        return None
    if config.embedder is None and suite.runs_without_embedder:
        return None
    if config.embedder is None:
        raise _no_embedder(suite, options)
    # late, as wherever a run names vectors: most lexical runs need none of it
    from fastscore.vectors.accuracy import stated_accuracy
    from fastscore.vectors.embedder import Embedder, check_dim

    try:
        embedder = Embedder(config.embedder, precision=config.precision, device=config.device)
    except FastscoreError as error:
        changes = [
            f"{flag_name(name)} {value}" for name, _, value in _without_vectors(suite, options)
        ]
        without = ["--embedder none"] if suite.runs_without_embedder else changes
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
