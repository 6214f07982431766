"""The context in which a run's tasks work, made of its request."""

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastscore.errors import FastscoreError, UsageError
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, map_source
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.read.chosen import ChosenDialogues
from fastscore.run.request import DEFAULT_EMBEDDER, EmbedderSettings, Request
from fastscore.run.signature import EmbedderIdentity, signature
from fastscore.settings.options import allowed_values, types_of
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source
from fastscore.suites.identity import NOTHING, NameSet
from fastscore.suites.own_metrics import OwnMetric, with_metrics
from fastscore.suites.registry import load_suite

if TYPE_CHECKING:
    from fastscore.run.writer import Writer
    from fastscore.vectors.embedder import FunctionEmbedder


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
    options: Any
    signature: str
    embedder: EmbedderSettings | None
    perplexity: PerplexitySettings | None = None
    columns: ColumnMap = NO_MAP
    chosen: ChosenDialogues | None = None
    shared_names: NameSet = NOTHING
    writer: "Writer | None" = None
    limits: Limits = DEFAULT_LIMITS
    metrics: tuple[OwnMetric, ...] = ()

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
        """Load the suite: once a task."""
        return Loaded(self, with_metrics(load_suite(self.suite).under(self.options), self.metrics))

    def source(self, suite: Suite) -> Source:
        """Return the suite's source as the run's logs are read by it."""
        return map_source(suite.source, self.columns)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a task scores by: the run's context and its suite."""

    context: RunContext
    suite: Suite

    @property
    def options(self) -> Any:
        """The suite's options."""
        return self.context.options

    @property
    def source(self) -> Source:
        """The suite's source as the run's logs are read by it."""
        return self.context.source(self.suite)


def run_context(
    request: Request,
    suite: Suite,
    identity: EmbedderIdentity | None,
    columns: ColumnMap | None = None,
) -> RunContext:
    """Return what a run's tasks need to know; ``columns`` are those of its logs, if looked at."""
    columns = request.column_map if columns is None else columns
    reading = (*columns.signed, *request.choice.signed)
    model = None if identity is None else request.model
    if model is not None and model.store is None and not isinstance(model.recipe, str):
        # not before: each process has a folder of its own
        model = dataclasses.replace(model, store=Path(model.recipe.store.name))
    return RunContext(
        run=request.folder,
        suite=suite.name,
        options=request.options,
        signature=signature(suite, request.options, identity, reading),
        embedder=model,
        perplexity=_perplexity_settings(request),
        columns=columns,
        limits=request.limits,
        metrics=request.own_metrics,
    )


def _perplexity_settings(request: Request) -> PerplexitySettings | None:
    for field in dataclasses.fields(request.options):
        model = getattr(request.options, field.name)
        if field.metadata["names_masked_model"] and model:
            return PerplexitySettings(model, None if request.store is None else Path(request.store))
    return None


def _no_embedder(suite: Suite, options: Any) -> UsageError:
    """Say which option asks for an embedder, and the value that does not."""
    changes = list(_without_vectors(suite, options))
    asking = " and ".join(f"{name} {given}" for name, given, _ in changes)
    instead = [f"{name} to {value}" for name, _, value in changes]
    return UsageError(
        f"{suite.name} needs an embedder"
        + (f" with {asking}" if asking else " with these options")
        + ", and embedder is none.",
        f"Set {' or '.join([*instead, 'embedder to a model'])}. `fastscore models list` has them.",
    )


def _without_vectors(suite: Suite, options: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each option one change of which needs no vectors: name, value, other value."""
    types = types_of(options.__class__)
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


def embedder_identity(
    model: EmbedderSettings | None, suite: Suite, options: Any
) -> EmbedderIdentity | None:
    """Return what decides the run's vectors; None where the suite compares none."""
    if not suite.needs_vectors(options):
        if model is not None and model.recipe != DEFAULT_EMBEDDER:
            from fastscore.vectors.embedder import check_model_name  # late, as below

            check_model_name(model.recipe)
        return None
    if model is None and suite.runs_without_embedder:
        return None
    if model is None:
        raise _no_embedder(suite, options)
    # late, as wherever a run names vectors: most lexical runs need none of it
    from fastscore.vectors.accuracy import stated_accuracy
    from fastscore.vectors.embedder import Embedder
    from fastscore.vectors.view import check_dim

    embedder: FunctionEmbedder | Embedder
    accuracy = None
    if not isinstance(model.recipe, str):
        embedder = model.recipe
    else:
        try:
            embedder = Embedder(model.recipe, precision=model.precision, device=model.device)
        except FastscoreError as error:
            changes = [f"{name} to {new}" for name, _, new in _without_vectors(suite, options)]
            without = ["embedder to none"] if suite.runs_without_embedder else changes
            if without:
                instead = f"Without a model: set {' or '.join(without)}."
                error.hint = f"{error.hint or ''} {instead}".strip()
            raise
        accuracy = stated_accuracy(embedder)
    return EmbedderIdentity(
        recipe=embedder.name,
        fingerprint=embedder.fingerprint,
        precision=model.precision,
        dim=check_dim(model.dim, embedder.dim),
        accuracy="" if accuracy is None else str(accuracy),
        device=model.device,
    )
