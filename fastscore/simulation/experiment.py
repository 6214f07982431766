"""An experiment: agents × sessions, simulated, judged, scored and reported on in one folder.

Every agent meets the same users. Each stage is finished on a rerun by its own means: shards with
receipts, answers that are kept, the run's committed parts. The folder holds ``logs/AGENT``,
``judgements``, ``scores`` (a run directory), ``comparison``, ``analysis``, ``report.html`` and the
answers' file.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

import orjson

from fastscore.errors import FastscoreError, RunConflictError, UsageError, did_you_mean
from fastscore.llm.client import Expectation
from fastscore.llm.judge import check_repeats, judge_request
from fastscore.llm.judgements import JUDGEMENTS, Judging, run_judge
from fastscore.llm.requests import OPENAI, Answer, ChatRequest, ModelOptions, estimated_tokens
from fastscore.llm.rubrics import load_rubric
from fastscore.llm.spending import MANIFEST, Meter, Prices, parse_limit, spending_recorded
from fastscore.llm.transcripts import Transcript
from fastscore.options import read_toml
from fastscore.paths import EXPERIMENT, check_output
from fastscore.results.analyse import analyse
from fastscore.results.compare import compare
from fastscore.results.report.write import write_report
from fastscore.run.commit import commit_json, commit_table
from fastscore.run.context import RunConfig
from fastscore.run.drive import execute
from fastscore.run.progress import Reporter
from fastscore.simulation.agents import MARK, OFF_CATALOGUE, REFUSALS, ModelAgent, ModelPhrasing
from fastscore.simulation.simulate import TEMPLATE, Simulation, World, open_world, simulate

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
    """The table ``[analysis]``: the seed of drawn permutations."""

    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment.

    Parameters
    ----------
    catalogue, agents, sessions, turns, seed, user, policy, off_catalogue, refusals
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
    refusals: str = MARK
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
        The file cannot be read, or a key or value in it is not as expected.
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
            raise UsageError(f"{path}: unknown key {key}{name}.", did_you_mean(name, known))
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
    for name, known in (("off_catalogue", OFF_CATALOGUE), ("refusals", REFUSALS)):
        if getattr(experiment, name) not in known:
            raise UsageError(f"{path}: {name} is none of {', '.join(known)}.")
    if len(set(experiment.agents)) < len(experiment.agents):
        raise UsageError(f"{path}: agents names one twice.")


LOGS, JUDGED, SCORES, COMPARISON, ANALYSIS = (
    "logs",
    "judgements",
    "scores",
    "comparison",
    "analysis",
)
ANSWERS, DESCRIPTION, SUMMARY = "answers.sqlite", "experiment.json", "summary.json"
REPORT = "report.html"
SUITE = "preference_shift"

_UNSIGNED = ("prices",)
"""What may change when an experiment goes on."""

_TYPICAL_ANSWER = "x" * 320
"""As long as a recommender's answer of two sentences, for expectations."""

_TYPICAL_JUDGEMENT = '{"proactiveness": 3, "coherence": 3, "personalization": 3}'


def run_experiment(
    experiment: Experiment,
    folder: Path,
    reporter: Reporter,
    *,
    workers: int = 1,
    replay: bool = False,
) -> dict[str, Any]:
    """Run an experiment, or what is left of it.

    Parameters
    ----------
    experiment
        What to do.
    folder
        Where to.
    reporter
        Shows the progress.
    workers
        Processes for what needs no model.
    replay
        Whether only answers that are kept are used.

    Returns
    -------
    dict
        What was done and spent, as ``summary.json`` has it.

    Raises
    ------
    RunConflictError
        The folder holds another experiment.
    FastscoreError
        A stage cannot go on; the same command does later.
    """
    _check_folder(experiment, folder)
    options = replace(experiment.models, answers=folder / ANSWERS, replay=replay)
    meter = Meter(options.limits)  # one budget for all stages
    endpoint = experiment.models.resolved().endpoint if experiment.asks_models else None
    described = {"agents": list(experiment.agents), "endpoint": endpoint}
    with spending_recorded(folder / MANIFEST, described, meter) as outcome:
        _simulate_agents(experiment, folder, options, meter, reporter, workers)
        refusal = _judge_dialogues(experiment, folder, options, meter, reporter)
        _score(experiment, folder, reporter, workers)
        _compare(experiment, folder)
        pages = {
            "report": write_report([folder / SCORES], folder / REPORT),
            "analysis": _analyse(experiment, folder),
        }
        if refusal is not None:
            raise refusal
        outcome["status"] = "incomplete" if meter.spent.failures else "complete"
    summary = {
        "agents": list(experiment.agents),
        "sessions": experiment.sessions,
        "turns": experiment.turns,
    }
    inside = {name: str(page.relative_to(folder)) for name, page in pages.items()}
    commit_json(folder / SUMMARY, {**summary, **inside})
    summary |= {name: str(page) for name, page in pages.items()}
    cost = experiment.prices.cost(meter.spent.prompt_tokens, meter.spent.completion_tokens)
    spent = {**dataclasses.asdict(meter.spent), "cost": cost}
    return {**summary, "spent": {**spent, "currency": experiment.prices.currency}}


def _simulate_agents(
    experiment: Experiment,
    folder: Path,
    options: ModelOptions,
    meter: Meter,
    reporter: Reporter,
    workers: int,
) -> None:
    for agent in experiment.agents:
        output = folder / LOGS / _folder_name(agent)
        asked = _simulation(experiment, agent, output, options, workers)
        done = simulate(asked, reporter, meter)
        if done.refusal is not None:
            raise done.refusal
        missing = f", {done.failed:,} sessions failed" if done.failed else ""
        reporter.note(f"simulated {agent}{missing}{_costs(experiment, meter)}")


def _judge_dialogues(
    experiment: Experiment, folder: Path, options: ModelOptions, meter: Meter, reporter: Reporter
) -> FastscoreError | None:
    """Judge the logs; return the error if too many dialogues failed, to be raised at the end."""
    if experiment.judge is None:
        return None
    judging = Judging(
        inputs=(str(folder / LOGS),),
        output=folder / JUDGED,
        suite=SUITE,
        models=options,
        files_from=folder,
        **dataclasses.asdict(experiment.judge),
    )
    judged = run_judge(judging, reporter, meter)
    reporter.note(f"judged{_costs(experiment, meter)}")
    if judged.refusal is not None:
        reporter.note("Too many judgements failed. Scores and pages are written all the same.")
    return judged.refusal


def _costs(experiment: Experiment, meter: Meter) -> str:
    """Describe what was spent so far; nothing if no model takes part."""
    return f"; {meter.spent.line(experiment.prices)}" if experiment.asks_models else ""


def _folder_name(agent: str) -> str:
    """Return an agent's name as a folder can have it: no two agents share one."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"%{ord(found[0]):02X}", agent)


def _check_folder(experiment: Experiment, folder: Path) -> None:
    described = dataclasses.asdict(experiment)
    described["models"] = {"temperature": experiment.models.temperature}
    signed = orjson.loads(orjson.dumps(described))
    path = folder / DESCRIPTION
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        found = None
    if found is not None:
        differing = [
            name
            for name, value in signed.items()
            if name not in _UNSIGNED and found.get(name) != value
        ]
        if differing:
            raise RunConflictError(
                f"{folder}: holds an experiment with another {' and another '.join(differing)}.",
                "Choose another folder with -o.",
            )
    check_output(folder, EXPERIMENT)
    commit_json(path, signed)


def _simulation(
    experiment: Experiment, agent: str, output: Path, models: ModelOptions, workers: int
) -> Simulation:
    return Simulation(
        catalogue=experiment.catalogue,
        agent=agent,
        user=experiment.user,
        models=models,
        off_catalogue=experiment.off_catalogue,
        refusals=experiment.refusals,
        sessions=experiment.sessions,
        turns=experiment.turns,
        seed=experiment.seed,
        output=output,
        policy=None if experiment.policy is None else Path(experiment.policy),
        workers=workers,
    )


def _score(experiment: Experiment, folder: Path, reporter: Reporter, workers: int) -> None:
    options = {"segments": "metadata", **experiment.score}
    embedder = options.pop("embedder", "none")
    config = RunConfig(
        suite=SUITE,
        inputs=(str(folder / LOGS),),
        output=folder / SCORES,
        options={"catalogue": experiment.catalogue, **options},
        embedder=None if embedder == "none" else embedder,
        workers=workers,
    )
    outcome = execute(config, reporter)
    if outcome.refusal is not None:
        raise outcome.refusal


def _compare(experiment: Experiment, folder: Path) -> None:
    """Compare the agents, paired by session, by what was scored and by the judge."""
    if len(experiment.agents) < 2:
        return
    part, judged = experiment.analysis, _judged(experiment, folder)
    found = compare(folder / SCORES, by="model", seed=part.seed, **judged)
    for name in ("sides", "differences"):
        frame = getattr(found, name)
        commit_table(folder / COMPARISON / f"{name}.parquet", frame, {"fastscore.by": "model"})


def _judged(experiment: Experiment, folder: Path) -> dict[str, Any]:
    """Return the judge's file and its scale, as comparison and analysis take them, if any."""
    if experiment.judge is None or not (folder / JUDGED / JUDGEMENTS).stat().st_size:
        return {}
    rubric = load_rubric(experiment.judge.rubric)
    return {"judge": folder / JUDGED / JUDGEMENTS, "judge_scale": (rubric.low, rubric.high)}


def _analyse(experiment: Experiment, folder: Path) -> Path:
    return analyse(folder / SCORES, folder / ANALYSIS, **_judged(experiment, folder)).page


class _Counting:
    """Answers at once with as much text as a model would, and counts."""

    def __init__(self, options: ModelOptions) -> None:
        self.options = options.resolved()
        self.requests: list[int] = []

    def ask(self, request: ChatRequest) -> Answer:
        """Return a typical answer."""
        sent = sum(len(text) for _, text in request.messages)
        self.requests.append(estimated_tokens(sent))
        return Answer(
            text=_TYPICAL_ANSWER,
            refused=False,
            finish_reason="stop",
            prompt_tokens=self.requests[-1],
            completion_tokens=estimated_tokens(len(_TYPICAL_ANSWER)),
            seconds=0.0,
        )


def expect(experiment: Experiment) -> Expectation:
    """Say what an experiment will ask, from one session of each agent that asks nothing.

    What is kept already is not taken off, what is asked again not added.
    """
    requests = prompt_tokens = completion_tokens = 0
    for agent in experiment.agents:
        counting, log = _rehearse(experiment, agent)
        requests += len(counting.requests) * experiment.sessions
        prompt_tokens += sum(counting.requests) * experiment.sessions
        answers = len(counting.requests) * estimated_tokens(len(_TYPICAL_ANSWER))
        completion_tokens += answers * experiment.sessions
        if experiment.judge is not None:
            judged = experiment.sessions * experiment.judge.repeats
            requests += judged
            prompt_tokens += judged * _judge_tokens(experiment.judge, experiment.models, log)
            completion_tokens += judged * estimated_tokens(len(_TYPICAL_JUDGEMENT))
    cost = experiment.prices.cost(prompt_tokens, completion_tokens)
    currency = experiment.prices.currency
    return Expectation(requests, 0, prompt_tokens, completion_tokens, cost, currency)


def _rehearse(experiment: Experiment, agent: str) -> tuple[_Counting, dict[str, Any]]:
    """Simulate an agent's first session without a model."""
    counting = _Counting(experiment.models)
    is_model = agent.startswith(OPENAI)
    local_agent = "offline" if is_model else agent
    local = _simulation(experiment, local_agent, Path(), experiment.models, 1)
    world: World = open_world(replace(local, user=TEMPLATE))
    if is_model:
        model = agent.removeprefix(OPENAI)
        known = ModelAgent(model, world.retrieval, counting, experiment.off_catalogue)
        world = replace(world, agent=known)
    if experiment.user.startswith(OPENAI):
        phrase = ModelPhrasing(experiment.user.removeprefix(OPENAI), counting)
        world = replace(world, phrase=phrase)
    return counting, orjson.loads(world.session(0))


def _judge_tokens(part: JudgePart, models: ModelOptions, log: dict[str, Any]) -> int:
    turns = tuple((turn["speaker"], turn["text"]) for turn in log["conversation"])
    transcript = Transcript("", None, "", 0, turns)
    rubric = load_rubric(part.rubric)
    request = judge_request(transcript, rubric, part.model, models, 0, part.seed)
    return estimated_tokens(sum(len(text) for _, text in request.messages))


def expectation_lines(experiment: Experiment, expectation: Expectation) -> Iterator[str]:
    """Say an expectation in words."""
    dialogues = len(experiment.agents) * experiment.sessions
    yield f"agents     {', '.join(experiment.agents)}"
    yield f"dialogues  {dialogues:,} of {experiment.turns:,} turns"
    yield from expectation.lines()
