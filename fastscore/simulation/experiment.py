"""An experiment: agents × seeds × sessions, simulated, judged, scored and reported in one folder.

Every agent meets the same users. Each stage is finished on a rerun by its own means: shards with
receipts, answers that are kept, the run's committed parts. Several judges, or several seeds, have
a folder each inside those of a single one. Judges' verdicts on pairs of agents are ranked, and
compared with people's.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_type_hints

import orjson
import polars as pl

from fastscore.errors import FastscoreError, RunConflictError, UsageError, did_you_mean
from fastscore.files import EXPERIMENT, check_output
from fastscore.llm.client import Expectation
from fastscore.llm.judgements import (
    JUDGEMENTS,
    PAIRS,
    check_repeats,
    judge_request,
    load_rubric,
    run_judge,
)
from fastscore.llm.pairwise import run_pairwise
from fastscore.llm.requests import OPENAI, Answer, ChatRequest, ModelOptions, estimated_tokens
from fastscore.llm.spending import (
    MANIFEST,
    Meter,
    Prices,
    differing,
    parse_limit,
    read_object,
    spending_recorded,
)
from fastscore.llm.transcripts import Judging, Transcript
from fastscore.results.agreement import agreement
from fastscore.results.analyse import analyse
from fastscore.results.compare import compare
from fastscore.results.pair_ranking import rank
from fastscore.results.report.write import write_report
from fastscore.results.runs import open_run
from fastscore.run.commit import commit_bytes, commit_json, commit_table
from fastscore.run.drive import execute
from fastscore.run.progress import Reporter
from fastscore.run.request import NO_EMBEDDER, Request
from fastscore.settings.options import read_toml
from fastscore.simulation.agents import MARK, OFF_CATALOGUE, REFUSALS, ModelAgent, ModelPhrasing
from fastscore.simulation.simulate import TEMPLATE, Simulation, World, open_world, simulate
from fastscore.suites.registry import load_suite

_TABLES = ("models", "people", "score", "prices")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePart:
    """A table ``[judge]`` or ``[[judge]]``: who judges by what, how often, and in pairs too."""

    model: str
    rubric: str = "pepper"
    repeats: int = 1
    seed: int = 0
    pairs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePart:
    """The table ``[people]``: files of people's scores of dialogues, and of verdicts on pairs."""

    scores: str | None = None
    pairs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment; its simulations are as `fastscore simulate preference_shift` has them."""

    catalogue: str
    agents: tuple[str, ...]
    sessions: int
    turns: int
    seed: int = 0
    seeds: tuple[int, ...] = ()
    user: str = TEMPLATE
    policy: str | None = None
    off_catalogue: str = MARK
    refusals: str = MARK
    models: ModelOptions = field(default_factory=ModelOptions)
    judge: tuple[JudgePart, ...] = ()
    people: PeoplePart = field(default_factory=PeoplePart)
    score: Mapping[str, Any] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)

    @property
    def asks_models(self) -> bool:
        """Whether a chat model takes part."""
        return bool(self.judge) or any(
            name.startswith("openai:") for name in (*self.agents, self.user)
        )

    @property
    def all_sessions(self) -> int:
        """How many sessions each agent has, over all seeds."""
        return self.sessions * max(1, len(self.seeds))

    def place(self, of_all: str, judge: JudgePart) -> str:
        """Return a folder of a judge: that of all, or one in it if there are several."""
        several = len(self.judge) > 1
        name = _folder_name(f"{judge.model}-{Path(judge.rubric).stem}")
        return f"{of_all}/{name}" if several else of_all


_KINDS: dict[str, type[Any]] = {
    "models": ModelOptions,
    "people": PeoplePart,
    "prices": Prices,
}


def read_experiment(path: Path) -> Experiment:
    """Read an experiment's file."""
    values = read_toml(path)
    judges = values.pop("judge", [])
    parts: dict[str, Any] = {name: values.pop(name) for name in _TABLES if name in values}
    several = judges if isinstance(judges, list) else [judges]
    for name, value in (*parts.items(), *(("judge", each) for each in several)):
        if not isinstance(value, dict):
            raise UsageError(f"{path}: {name} is {value!r:.60}, expected a table.")
    score = parts.pop("score", {})
    made = {name: _make(path, f"{name}.", _KINDS[name], part) for name, part in parts.items()}
    made["judge"] = tuple(_make(path, "judge.", JudgePart, each) for each in several)
    experiment: Experiment = _make(path, "", Experiment, values, score=score, **made)
    _check(path, experiment)
    folder = path.parent
    people = dataclasses.asdict(experiment.people)
    return replace(
        experiment,
        models=replace(experiment.models, prices=experiment.prices),
        people=PeoplePart(**{key: name and str(folder / name) for key, name in people.items()}),
        catalogue=str(folder / experiment.catalogue),
        policy=None if experiment.policy is None else str(folder / experiment.policy),
    )


def _make(path: Path, key: str, kind: type[Any], values: Mapping[str, Any], **more: Any) -> Any:
    """Make a dataclass of a table; every name and type is checked."""
    fields = {each.name: each for each in dataclasses.fields(kind) if each.name not in more}
    known = [name for name in fields if name not in (*_TABLES, "judge", "answers", "replay")]
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


_TYPES: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (("tuple[str",), (str,), "a list of texts"),
    (("tuple[int",), (int,), "a list of whole numbers"),
    (("bool",), (bool,), "true or false"),
    (("float", "str"), (int, float, str), "a number or a text"),
    (("float",), (int, float), "a number"),
    (("int",), (int,), "a whole number"),
    ((), (str,), "a text"),
)
"""Words in a field's annotation, and what its value is then: the first that fits."""


def _typed(path: Path, key: str, value: Any, kind: str) -> Any:
    types, expected = next(rest for words, *rest in _TYPES if all(word in kind for word in words))
    is_list = "tuple[" in kind
    found = value if is_list else [value]
    if not isinstance(found, list) or not found or not all(type(one) in types for one in found):
        raise UsageError(f"{path}: {key} is {value!r:.60}, expected {expected}.")
    return tuple(found) if is_list else value


def _check(path: Path, experiment: Experiment) -> None:
    """Refuse values that are out of range."""
    for name, value in {"sessions": 1, "turns": 1, "seed": 0}.items():
        if (found := getattr(experiment, name)) < value:
            raise UsageError(f"{path}: {name} is {found}, expected at least {value}.")
    for judge in experiment.judge:
        if judge.repeats < 1:
            raise UsageError(f"{path}: judge.repeats is below 1.")
        check_repeats(load_rubric(judge.rubric), judge.repeats)
    if any(seed < 0 for seed in experiment.seeds):
        raise UsageError(f"{path}: seeds has {min(experiment.seeds)}, expected at least 0.")
    parse_limit(experiment.models.max_failures)
    for name, known in (("off_catalogue", OFF_CATALOGUE), ("refusals", REFUSALS)):
        if getattr(experiment, name) not in known:
            raise UsageError(f"{path}: {name} is none of {', '.join(known)}.")
    judges = tuple(experiment.place("", judge) for judge in experiment.judge)
    given = {"agents": experiment.agents, "seeds": experiment.seeds, "judge": judges}
    for name, all_of in given.items():
        if len(set(all_of)) < len(all_of):
            raise UsageError(f"{path}: {name} names one twice.")


LOGS, JUDGED, VERDICTS, SCORES = "logs", "judgements", "pairs", "scores"
COMPARISON, ANALYSIS, AGREEMENT, RANKING = "comparison", "analysis", "agreement", "ranking"
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
    """Run an experiment, or what is left of it; return what was done and spent."""
    _check_folder(experiment, folder)
    options = replace(experiment.models, answers=folder / ANSWERS, replay=replay)
    meter = options.meter()  # one budget for all stages
    endpoint = experiment.models.resolved().endpoint if experiment.asks_models else None
    described = {"agents": list(experiment.agents), "endpoint": endpoint}
    with spending_recorded(folder / MANIFEST, described, meter) as outcome:
        _simulate_agents(experiment, folder, options, meter, reporter, workers)
        refusal = _judge_dialogues(experiment, folder, options, meter, reporter)
        _score(experiment, folder, reporter, workers)
        _compare(experiment, folder)
        _compare_raters(experiment, folder, reporter)
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
    of_seeds = [(experiment.seed, ""), *((seed, f"{seed}-") for seed in experiment.seeds)]
    for agent, (seed, ids) in product(experiment.agents, of_seeds[bool(experiment.seeds) :]):
        output = folder / LOGS / _folder_name(agent) / (f"seed-{seed}" if ids else "")
        asked = _simulation(experiment, agent, output, options, workers)
        done = simulate(replace(asked, seed=seed, ids=ids), reporter, meter)
        if done.refusal is not None:
            raise done.refusal
        missing = f", {done.failed:,} sessions failed" if done.failed else ""
        reporter.note(f"simulated {agent}{missing}{_costs(experiment, meter)}")


def _judge_dialogues(
    experiment: Experiment, folder: Path, options: ModelOptions, meter: Meter, reporter: Reporter
) -> FastscoreError | None:
    """Judge the logs; return the error if too many dialogues failed, to be raised at the end."""
    refusals = []
    for judge in experiment.judge:
        judging = Judging(
            inputs=(str(folder / LOGS),),
            model=judge.model,
            output=folder / experiment.place(JUDGED, judge),
            suite=SUITE,
            rubric=judge.rubric,
            repeats=judge.repeats,
            seed=judge.seed,
            models=options,
            files_from=folder,
        )
        refusals.append(run_judge(judging, reporter, meter).refusal)
        for a, b in combinations(experiment.agents, 2) if judge.pairs else ():
            one, other = (str(folder / LOGS / _folder_name(agent)) for agent in (a, b))
            output = folder / _verdicts(experiment, judge, a, b)
            in_pairs = replace(judging, inputs=(one,), repeats=1, output=output)
            refusals.append(run_pairwise(in_pairs, (other,), reporter, meter).refusal)
        reporter.note(f"judged by {judge.model}{_costs(experiment, meter)}")
    first = next((refusal for refusal in refusals if refusal is not None), None)
    if first is not None:
        reporter.note("Too many judgements failed. Scores and pages are written all the same.")
    return first


def _verdicts(experiment: Experiment, judge: JudgePart, a: str, b: str) -> str:
    return f"{experiment.place(VERDICTS, judge)}/{_folder_name(a)}--{_folder_name(b)}"


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
    if others := differing(read_object(path), signed, _UNSIGNED):
        raise RunConflictError(
            f"{folder}: holds an experiment with another {others}.",
            "Choose another folder with -o.",
        )
    check_output(folder, EXPERIMENT)
    commit_json(path, signed)


def _simulation(
    experiment: Experiment, agent: str, output: Path, models: ModelOptions, workers: int
) -> Simulation:
    same = ("catalogue", "user", "off_catalogue", "refusals", "sessions", "turns", "seed")
    return Simulation(
        **{name: getattr(experiment, name) for name in same},
        agent=agent,
        models=models,
        output=output,
        policy=None if experiment.policy is None else Path(experiment.policy),
        workers=workers,
    )


def _score(experiment: Experiment, folder: Path, reporter: Reporter, workers: int) -> None:
    options = {"segments": "metadata", **experiment.score}
    request = Request(
        suite=SUITE,
        inputs=(str(folder / LOGS),),
        output=folder / SCORES,
        embedder=options.pop("embedder", NO_EMBEDDER),
        options={"catalogue": experiment.catalogue, **options},
        workers=workers,
    )
    outcome = execute(request, reporter)
    if outcome.refusal is not None:
        raise outcome.refusal


def _compare(experiment: Experiment, folder: Path) -> None:
    """Compare the agents by what was scored and by each judge, in the design of the suite."""
    for place, judged in _judged(experiment, folder, COMPARISON) if experiment.agents[1:] else ():
        found = compare(folder / SCORES, by="model", **judged)
        for name in ("sides", "differences"):
            frame = getattr(found, name)
            commit_table(folder / place / f"{name}.parquet", frame, {"fastscore.by": "model"})
    if experiment.seeds:
        of_dialogues = open_run(folder / SCORES).scan("dialogues").collect()
        frame = means_by_seed(of_dialogues)
        commit_table(folder / COMPARISON / "seeds.parquet", frame, {"fastscore.by": "model, seed"})


def means_by_seed(dialogues: pl.DataFrame) -> pl.DataFrame:
    """Return the means of a suite's metrics of dialogues, a row a model and seed."""
    metrics = [metric.id for metric in load_suite(SUITE).metrics if metric.id in dialogues.columns]
    numbers = [name for name in dict.fromkeys(metrics) if dialogues[name].dtype.is_numeric()]
    seed = pl.col("dialogue").str.split("-").list.first().cast(pl.Int64).alias("seed")
    return (
        dialogues.group_by("model", seed)
        .agg(pl.len(), pl.col(numbers).mean())
        .sort("model", "seed")
    )


def _judged(
    experiment: Experiment, folder: Path, of_all: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a folder, file and scale of each judge with scores; one folder if there is none."""
    has_any = False
    for judge in experiment.judge:
        path = folder / experiment.place(JUDGED, judge) / JUDGEMENTS
        if path.stat().st_size:
            has_any, rubric = True, load_rubric(judge.rubric)
            scale = (rubric.low, rubric.high)
            yield experiment.place(of_all, judge), {"judge": path, "judge_scale": scale}
    if not has_any:
        yield of_all, {}


def _analyse(experiment: Experiment, folder: Path) -> Path:
    """Analyse the run with each judge; return the first page."""
    pages = [
        analyse(folder / SCORES, folder / place, **judged).page
        for place, judged in _judged(experiment, folder, ANALYSIS)
    ]
    return pages[0]


def _compare_raters(experiment: Experiment, folder: Path, reporter: Reporter) -> None:
    """Compare judges with each other and with people, and rank agents by verdicts on pairs."""
    of_judges = [
        folder / experiment.place(JUDGED, judge) / JUDGEMENTS for judge in experiment.judge
    ]
    in_pairs = [judge for judge in experiment.judge if judge.pairs]
    verdicts = [folder / experiment.place(VERDICTS, judge) / PAIRS for judge in in_pairs]
    for judge, path in zip(in_pairs, verdicts, strict=True):
        parts = (
            folder / _verdicts(experiment, judge, a, b) / PAIRS
            for a, b in combinations(experiment.agents, 2)
        )
        commit_bytes(path, b"".join(part.read_bytes() for part in parts))
    rubrics = [load_rubric(judge.rubric) for judge in experiment.judge]
    columns = tuple(dict.fromkeys(name for rubric in rubrics for name in rubric.questions))
    scale = (
        min((one.low for one in rubrics), default=1),
        max((one.high for one in rubrics), default=5),
    )
    people = experiment.people
    files: dict[str, list[Path]] = {
        "scores": [*of_judges, *([Path(people.scores)] if people.scores else [])],
        "pairs": [*verdicts, *([Path(people.pairs)] if people.pairs else [])],
    }
    for kind, several in files.items():
        if len(several) < 2:
            continue
        try:
            found = agreement(*several, columns=columns, scale=scale)
        except UsageError as error:  # of rubrics without a common dimension
            reporter.note(f"No agreement of {kind}: {error.message}")
            continue
        table = folder / AGREEMENT / f"{kind}.parquet"
        commit_table(table, found.coefficients, {"fastscore.raters": ", ".join(found.raters)})
    if files["pairs"]:
        ranked = rank(*files["pairs"], columns=columns)
        for name in ("strengths", "differences"):
            commit_table(folder / RANKING / f"{name}.parquet", getattr(ranked, name), {})


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
    sessions, others = experiment.all_sessions, len(experiment.agents) - 1
    for agent in experiment.agents:
        counting, log = _rehearse(experiment, agent)
        requests += len(counting.requests) * sessions
        prompt_tokens += sum(counting.requests) * sessions
        answers = len(counting.requests) * estimated_tokens(len(_TYPICAL_ANSWER))
        completion_tokens += answers * sessions
        for judge in experiment.judge:
            tokens = _judge_tokens(judge, experiment.models, log)
            # a pair is two dialogues, and is shown twice
            shown = sessions * (judge.repeats + others * judge.pairs)
            requests += shown
            prompt_tokens += tokens * sessions * (judge.repeats + 2 * others * judge.pairs)
            completion_tokens += shown * estimated_tokens(len(_TYPICAL_JUDGEMENT))
    prices = experiment.prices
    cost = prices.cost(prompt_tokens, completion_tokens) if prices.are_given else None
    return Expectation(requests, 0, prompt_tokens, completion_tokens, cost, prices.currency)


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
    dialogues = len(experiment.agents) * experiment.all_sessions
    yield f"agents     {', '.join(experiment.agents)}"
    yield f"dialogues  {dialogues:,} of {experiment.turns:,} turns"
    yield from expectation.lines()
