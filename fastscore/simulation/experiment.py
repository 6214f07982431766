"""An experiment: agents × seeds × sessions, simulated, judged, scored and reported in one folder.

Every agent meets the same users. Each stage is finished on a rerun by its own means: shards with
receipts, answers that are kept, the run's committed parts. Several judges, or several seeds, have
a folder each inside those of a single one. Judges' verdicts on pairs of agents are ranked, and
compared with people's.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from fastscore.errors import FastscoreError, RunConflictError, UsageError
from fastscore.files import EXPERIMENT, check_output
from fastscore.llm.client import ChatClient, Expectation
from fastscore.llm.judgements import PAIRS, check_repeats, load_rubric, question_of
from fastscore.llm.pairwise import run_judging
from fastscore.llm.requests import (
    OPENAI,
    Answer,
    ChatRequest,
    Judging,
    ModelOptions,
    estimated_tokens,
    read_answer,
)
from fastscore.llm.spending import (
    MANIFEST,
    Meter,
    cost_of,
    differing,
    read_object,
    spending_recorded,
)
from fastscore.llm.transcripts import Transcript
from fastscore.results.agreement import agreement
from fastscore.results.analyse import analyse
from fastscore.results.compare import compare
from fastscore.results.judged_runs import JUDGEMENTS
from fastscore.results.pair_ranking import rank
from fastscore.results.report.write import write_report
from fastscore.results.runs import open_run
from fastscore.run.commit import commit_bytes, commit_json, commit_table
from fastscore.run.drive import execute
from fastscore.run.progress import Reporter
from fastscore.run.request import NO_EMBEDDER, Request
from fastscore.settings.options import TomlTable, check_settings, read_toml, setting
from fastscore.simulation.scenario import Scenario, Simulation
from fastscore.simulation.simulate import open_world, simulate
from fastscore.simulation.users import load_policy, load_retrieval
from fastscore.suites.registry import load_suite


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePart:
    """A table ``[judge]`` or ``[[judge]]``: who judges by what, how often, and in pairs too."""

    model: str = setting(MISSING)
    rubric: str = setting("pepper")
    repeats: int = setting(1, minimum=1)
    seed: int = setting(0, minimum=0)
    pairs: bool = setting(False)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePart:
    """The table ``[people]``: files of people's scores of dialogues, and of verdicts on pairs."""

    scores: Path | None = setting(None)
    pairs: Path | None = setting(None)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Scenario):
    """An experiment; its simulations are as `fastscore simulate preference_shift` has them."""

    agents: Sequence[str] = setting(MISSING)
    seeds: Sequence[int] = setting((), minimum=0)
    judge: tuple[JudgePart, ...] = ()
    people: PeoplePart = field(default_factory=PeoplePart)
    score: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asks_models(self) -> bool:
        """Whether a chat model takes part."""
        names = (*self.agents, self.user)
        return bool(self.judge) or any(name.startswith(OPENAI) for name in names)

    @property
    def all_sessions(self) -> int:
        """How many sessions each agent has, over all seeds."""
        return self.sessions * max(1, len(self.seeds))

    def place(self, of_all: str, judge: JudgePart) -> str:
        """Return a folder of a judge: that of all, or one in it if there are several."""
        name = _folder_name(f"{judge.model}-{Path(judge.rubric).stem}")
        return f"{of_all}/{name}" if len(self.judge) > 1 else of_all


def read_experiment(path: Path) -> Experiment:
    """Read an experiment's file."""
    values, folder = read_toml(path), path.parent
    judges = values.get("judge", [])
    several = judges if isinstance(judges, list) else [judges]
    parts = [_read_table(path, "judge", JudgePart, each) for each in several]
    values["judge"] = [
        replace(part, rubric=str(folder / part.rubric)) if part.rubric.endswith(".toml") else part
        for part in parts
    ]
    for name, kind in {"models": ModelOptions, "people": PeoplePart}.items():
        values[name] = _read_table(path, name, kind, values.get(name, {}))
    experiment: Experiment = _read_table(path, "", Experiment, values)
    _check(path, experiment)
    people, policy = experiment.people, experiment.policy
    return replace(
        experiment,
        people=PeoplePart(
            scores=people.scores and folder / people.scores,
            pairs=people.pairs and folder / people.pairs,
        ),
        catalogue=str(folder / experiment.catalogue),
        policy=policy and folder / policy,
    )


_NOT_IN_FILES = {ModelOptions: ("answers", "replay")}


def _read_table(path: Path, key: str, kind: type[Any], values: object) -> Any:
    """Make a request of a table; it checks the values itself."""
    if not isinstance(values, dict):
        raise UsageError(f"{path}: {key} is {values!r:.60}, expected a table.")
    known = [each for each in fields(kind) if each.name not in _NOT_IN_FILES.get(kind, ())]
    required = [
        each.name for each in known if each.default is MISSING and each.default_factory is MISSING
    ]
    others = {each.name for each in known} - {*required}
    TomlTable(str(path), key, values).check_names(required, others)
    try:
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return kind(**values | lists)
    except UsageError as error:
        place = f"{path}: {key}." if key else f"{path}: "
        raise UsageError(f"{place}{error.message}", error.hint) from error


def _check(path: Path, experiment: Experiment) -> None:
    """Refuse judges without balanced repeats, and what is named twice or not at all."""
    if not isinstance(experiment.score, dict):
        raise UsageError(f"{path}: score is {experiment.score!r:.60}, expected a table.")
    for judge in experiment.judge:
        check_repeats(load_rubric(judge.rubric), judge.repeats)
    if not experiment.agents:
        raise UsageError(f"{path}: agents names none.")
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
    endpoint = options.resolved().endpoint if experiment.asks_models else None
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
    cost = cost_of(meter.prices, meter.spent.prompt_tokens, meter.spent.completion_tokens)
    return {**summary, "spent": {**dataclasses.asdict(meter.spent), "cost": cost}}


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
        refusals.append(run_judging(judging, reporter, meter).refusal)
        for a, b in combinations(experiment.agents, 2) if judge.pairs else ():
            one, other = (str(folder / LOGS / _folder_name(agent)) for agent in (a, b))
            output = folder / _verdicts(experiment, judge, a, b)
            in_pairs = replace(judging, inputs=(one,), against=(other,), repeats=1, output=output)
            refusals.append(run_judging(in_pairs, reporter, meter).refusal)
        reporter.note(f"judged by {judge.model}{_costs(experiment, meter)}")
    first = next((refusal for refusal in refusals if refusal is not None), None)
    if first is not None:
        reporter.note("Too many judgements failed. Scores and pages are written all the same.")
    return first


def _verdicts(experiment: Experiment, judge: JudgePart, a: str, b: str) -> str:
    return f"{experiment.place(VERDICTS, judge)}/{_folder_name(a)}--{_folder_name(b)}"


def _costs(experiment: Experiment, meter: Meter) -> str:
    """Describe what was spent so far; nothing if no model takes part."""
    return f"; {meter.spent.line(meter.prices)}" if experiment.asks_models else ""


def _folder_name(agent: str) -> str:
    """Return an agent's name as a folder can have it: no two agents share one."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"%{ord(found[0]):02X}", agent)


def _check_folder(experiment: Experiment, folder: Path) -> None:
    described = dataclasses.asdict(experiment)
    described["models"] = {"temperature": experiment.models.temperature}
    # files by their content: their paths depend on the folder in which the command is typed
    described["catalogue"] = load_retrieval(experiment.catalogue).digest
    described["policy"] = load_policy(experiment.policy).digest
    for judge in described["judge"]:
        judge["rubric"] = load_rubric(judge["rubric"]).digest
    signed = orjson.loads(orjson.dumps(described, default=str))
    path = folder / DESCRIPTION
    # people rate dialogues that are there already
    if others := differing(read_object(path), signed, ("people",)):
        raise RunConflictError(
            f"{folder}: holds an experiment with another {others}.",
            "Choose another folder with -o.",
        )
    check_output(folder, EXPERIMENT, (f"{ANSWERS}*",))  # answers of another folder may be copied
    commit_json(path, signed)


def _simulation(
    experiment: Experiment, agent: str, output: Path, models: ModelOptions, workers: int
) -> Simulation:
    same = {each.name: getattr(experiment, each.name) for each in fields(Scenario)}
    return Simulation(**same | {"models": models}, agent=agent, output=output, workers=workers)


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
    judges = experiment.judge
    of_judges = [folder / experiment.place(JUDGED, judge) / JUDGEMENTS for judge in judges]
    in_pairs = [judge for judge in judges if judge.pairs]
    verdicts = [folder / experiment.place(VERDICTS, judge) / PAIRS for judge in in_pairs]
    for judge, path in zip(in_pairs, verdicts, strict=True):
        parts = (
            folder / _verdicts(experiment, judge, a, b) / PAIRS
            for a, b in combinations(experiment.agents, 2)
        )
        commit_bytes(path, b"".join(part.read_bytes() for part in parts))
    rubrics = [load_rubric(judge.rubric) for judge in judges]
    columns = tuple(dict.fromkeys(name for rubric in rubrics for name in rubric.questions))
    low, high = (one.low for one in rubrics), (one.high for one in rubrics)
    scale = min(low, default=1), max(high, default=5)
    people = experiment.people
    rated = {"scores": (of_judges, people.scores), "pairs": (verdicts, people.pairs)}
    files = {  # without those of judges that judged nothing
        kind: [*(path for path in judged if path.stat().st_size), *([own] if own else [])]
        for kind, (judged, own) in rated.items()
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


class _Counting(ChatClient):
    """A client without a server: it counts what is sent, and gives typical answers."""

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        self.tokens: list[int] = []

    def ask(self, request: ChatRequest) -> Answer:
        """Return a typical answer."""
        self.tokens.append(request.estimated_tokens)
        return read_answer(({"message": {"content": _TYPICAL_ANSWER}}, {}), request, 0.0)


def expect(experiment: Experiment) -> Expectation:
    """Say what an experiment will ask, from one session of each agent that asks nothing.

    What is kept already is not taken off, what is asked again not added.
    """
    answer, judgement = map(estimated_tokens, (len(_TYPICAL_ANSWER), len(_TYPICAL_JUDGEMENT)))
    models, others = experiment.models, len(experiment.agents) - 1
    asked: list[tuple[int, int]] = []  # tokens sent and received by each request of one session
    for agent in experiment.agents:
        counting = _Counting(models)
        simulation = _simulation(experiment, agent, Path(), models, 1)
        log = orjson.loads(open_world(simulation, client=counting).session(0))
        asked += [(sent, answer) for sent in counting.tokens]
        turns = tuple((turn["speaker"], turn["text"]) for turn in log["conversation"])
        for judge in experiment.judge:
            judging = Judging(inputs=(), model=judge.model, output=Path(), models=models)
            shown = Transcript("", None, "", 0, turns), load_rubric(judge.rubric)
            sent = question_of(*shown, 0, judging).request.estimated_tokens
            asked += [(sent, judgement)] * judge.repeats
            # a pair is two dialogues, and is shown twice
            asked += [(2 * sent, judgement)] * (others * judge.pairs)
    n, prices = experiment.all_sessions, models.prices
    sent, received = (n * sum(tokens[side] for tokens in asked) for side in (0, 1))
    cost = cost_of(prices, sent, received) if any(prices) else None
    return Expectation(n * len(asked), 0, sent, received, cost)


def expectation_lines(experiment: Experiment, expectation: Expectation) -> Iterator[str]:
    """Say an expectation in words."""
    dialogues = len(experiment.agents) * experiment.all_sessions
    yield f"agents     {', '.join(experiment.agents)}"
    yield f"dialogues  {dialogues:,} of {experiment.turns:,} turns"
    yield from expectation.lines()
