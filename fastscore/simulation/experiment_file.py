"""An experiment's TOML file: what is simulated, judged, scored and analysed."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from fastscore.errors import UsageError, nearest
from fastscore.llm.failures import parse_limit
from fastscore.llm.judge import check_repeats
from fastscore.llm.options import ModelOptions
from fastscore.llm.rubrics import load_rubric
from fastscore.llm.spending import Prices
from fastscore.simulation.models import MARK, OFF_CATALOGUE
from fastscore.simulation.world import TEMPLATE
from fastscore.toml_files import read_toml

_TABLES = ("models", "judge", "score", "prices", "analysis")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePart:
    """The table ``[judge]``: who judges by what, how often."""

    model: str
    rubric: str = "pepper"
    repeats: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisPart:
    """The table ``[analysis]``: the bootstrap."""

    samples: int = 2_000
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment.

    Parameters
    ----------
    catalogue, agents, sessions, turns, seed, user, policy, off_catalogue
        As for `fastscore simulate preference_shift`; every agent meets the same users. Paths are
        from the file's folder.
    models
        How chat models are asked.
    judge
        Who judges; None for nobody.
    score
        Options of the suite, and ``embedder``.
    prices, analysis
        What tokens cost; the bootstrap.
    """

    catalogue: str
    agents: tuple[str, ...]
    sessions: int
    turns: int
    seed: int = 0
    user: str = TEMPLATE
    policy: str | None = None
    off_catalogue: str = MARK
    models: ModelOptions = field(default_factory=ModelOptions)
    judge: JudgePart | None = None
    score: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    analysis: AnalysisPart = field(default_factory=AnalysisPart)

    @property
    def asks_models(self) -> bool:
        """Whether a chat model takes part."""
        return self.judge is not None or any(
            name.startswith("openai:") for name in (*self.agents, self.user)
        )


def read_experiment(path: Path) -> Experiment:
    """Read an experiment's file.

    Raises
    ------
    UsageError
        The file cannot be read, or a key or value in it is not what stands there.
    """
    values = read_toml(path)
    for name in _TABLES:
        if name in values and not isinstance(values[name], dict):
            raise UsageError(f"{path}: {name} is {values[name]!r:.60}, expected a table.")
    parts: dict[str, Any] = {name: values.pop(name) for name in _TABLES if name in values}
    score = parts.pop("score", {})
    kinds = {"models": ModelOptions, "judge": JudgePart, "prices": Prices, "analysis": AnalysisPart}
    made = {name: _make(path, f"{name}.", kinds[name], part) for name, part in parts.items()}
    experiment: Experiment = _make(path, "", Experiment, values, score=score, **made)
    _check(path, experiment)
    folder = path.parent
    return dataclasses.replace(
        experiment,
        models=dataclasses.replace(experiment.models, prices=experiment.prices),
        catalogue=str(folder / experiment.catalogue),
        policy=None if experiment.policy is None else str(folder / experiment.policy),
    )


def _make(path: Path, key: str, kind: type[Any], values: Mapping[str, Any], **more: Any) -> Any:
    """Make a dataclass of a table; every name and type is checked."""
    fields = {each.name: each for each in dataclasses.fields(kind) if each.name not in more}
    known = [name for name in fields if name not in (*_TABLES, "answers", "replay", "prices")]
    types = get_type_hints(kind)
    given = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{path}: unknown key {key}{name}.", nearest(name, known))
        given[name] = _typed(path, f"{key}{name}", value, str(types[name]))
    for name in known:
        is_required = (
            fields[name].default is dataclasses.MISSING
            and fields[name].default_factory is dataclasses.MISSING
        )
        if is_required and name not in given:
            raise UsageError(f"{path}: {key}{name} is missing.")
    return kind(**given, **more)


def _typed(path: Path, key: str, value: Any, kind: str) -> Any:
    wanted: tuple[type, ...]
    if "tuple[str" in kind:
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise UsageError(f"{path}: {key} is {value!r:.60}, expected a list of texts.")
    if "float" in kind and "str" in kind:
        wanted, expected = (int, float, str), "a number or a text"
    elif "float" in kind:
        wanted, expected = (int, float), "a number"
    elif "int" in kind:
        wanted, expected = (int,), "a whole number"
    else:
        wanted, expected = (str,), "a text"
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise UsageError(f"{path}: {key} is {value!r:.60}, expected {expected}.")
    return value


def _check(path: Path, experiment: Experiment) -> None:
    """Refuse values that are out of range."""
    least = {"sessions": 1, "turns": 1, "seed": 0}
    for name, value in least.items():
        if getattr(experiment, name) < value:
            found = getattr(experiment, name)
            raise UsageError(f"{path}: {name} is {found}, expected at least {value}.")
    if experiment.judge is not None:
        if experiment.judge.repeats < 1:
            raise UsageError(f"{path}: judge.repeats is below 1.")
        check_repeats(load_rubric(experiment.judge.rubric), experiment.judge.repeats)
    parse_limit(experiment.models.max_failures)
    if experiment.off_catalogue not in OFF_CATALOGUE:
        expected = ", ".join(OFF_CATALOGUE)
        raise UsageError(f"{path}: off_catalogue is none of {expected}.")
    if len(set(experiment.agents)) < len(experiment.agents):
        raise UsageError(f"{path}: agents names one twice.")
