"""Judging logs by a chat model and a rubric: a folder of scores, and how far to trust them.

An answer is one JSON object of whole numbers inside the scale. Any other answer is asked for again,
the model told why, and in the end listed as a failure with its text. Nothing is clamped or filled.
Repeats show the dimensions in rotated order, each order equally often, so that the position of a
dimension neither biases its mean nor is taken for noise.

``judgements.jsonl`` has a line a dialogue with the means over its repeats, as ``--judge`` reads it;
``repeats.parquet`` every score; ``failures.jsonl`` every repeat without one, with the answer;
``summary.json`` agreement, consistency, and the checks of position and length.
"""

import os
import re
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
import polars as pl

from fastscore.errors import RunError, UsageError, counted, did_you_mean
from fastscore.files import JUDGEMENTS as OUTPUT
from fastscore.files import check_output, hash_bytes
from fastscore.llm.client import (
    ChatClient,
    Expectation,
    Question,
    Structured,
    ask_each,
    ask_until_read,
    describe_asking,
    expect_requests,
)
from fastscore.llm.requests import Judging, StrPath, check_members, object_schema
from fastscore.llm.spending import (
    FAILURES,
    MANIFEST,
    Meter,
    Spent,
    TooManyFailuresError,
    UnusableError,
)
from fastscore.llm.transcripts import DATA, Transcript, quoted, read_dialogues
from fastscore.results.compare import MOST_LEVELS, compare
from fastscore.results.comparison import show_comparison
from fastscore.results.judged_runs import JUDGEMENTS, TAKEN
from fastscore.results.metric_text import p_text
from fastscore.results.runs import open_run
from fastscore.run.commit import commit_json, commit_lines, commit_table
from fastscore.run.progress import Reporter
from fastscore.run.writer import LOCK_NAME, run_lock
from fastscore.settings.options import TomlTable, parse_toml, read_named_file
from fastscore.statistics.agreement import clustered_correlation, krippendorff_alpha
from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.terminal import result_console, write_line
from fastscore.terminal.grids import Column, Grid, print_grid
from fastscore.version import __version__

Part = TypeVar("Part")
Read = TypeVar("Read")

_OPTIONAL = ("scale", "prompt", "shown")
"""Tables of a rubric whose keys may be left out: `ASSISTANT` then has them."""
_TABLES = ("title", *_OPTIONAL, "dimension")
_PROMPTS = ("system", "user", "again")
SLOTS = ("low", "middle", "high", "members", "dimensions", "highlights", "conversation", "fault")
"""What prompts may have in braces."""

_SHOWN = ("last_turns", "characters", "highlights", "highlighted_speakers")


@dataclass(frozen=True)
class Rubric:
    """What a judge scores, by questions in order, and what it is shown.

    At most `last_turns` from the end (0 for all) with `characters` of each; turns of some speakers
    with highlights are shown apart, too.
    """

    name: str
    title: str
    digest: str
    low: int
    high: int
    questions: Mapping[str, str]
    prompts: Mapping[str, str]
    last_turns: int
    characters: int
    highlights: re.Pattern[str]
    speakers: tuple[str, ...]

    def shown(self, turns: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Return the turns that a judge is shown, each cut to `characters` by whoever shows it."""
        return turns[-self.last_turns :] if self.last_turns else turns


_OF_SUITE = {"preference_shift": "pepper", "memory_finance": "finance"}
"""Rubrics of suites; that of all other logs is `ASSISTANT`."""
ASSISTANT = "assistant"


def rubric_of(named: StrPath | None, suite: str) -> "Rubric":
    """Read the rubric that is named; without a name, that of a suite."""
    return load_rubric(named or _OF_SUITE.get(suite, ASSISTANT))


def rubric_names() -> tuple[str, ...]:
    """Return the names of the bundled rubrics."""
    folder = files(__package__).joinpath("rubrics").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder if f.name.endswith(".toml")))


def load_rubric(named: StrPath) -> Rubric:
    """Read a rubric."""
    name = os.fspath(named)
    path = Path(name)
    if name in rubric_names():
        content = files(__package__).joinpath("rubrics", f"{name}.toml").read_bytes()
    elif path.suffix == ".toml":
        content = read_named_file(path, f"rubric {name}")
    else:
        raise UsageError(
            f"Unknown rubric {name!r}.", did_you_mean(name, rubric_names()) + " Or a file."
        )
    source = f"rubric {name}"
    found = parse_toml(content, source)
    usual = files(__package__).joinpath("rubrics", f"{ASSISTANT}.toml").read_bytes()
    of_usual, given = parse_toml(usual, source), {name: found.get(name, {}) for name in _OPTIONAL}
    partial = [
        name
        for name, table in given.items()
        if isinstance(table, dict) and of_usual[name].keys() - table.keys()
    ]
    if partial:
        found |= {name: of_usual[name] | given[name] for name in partial}
        content += usual
    top = TomlTable(source, "", found)
    top.check_names(_TABLES)
    scale, shown = top.table("scale", ("low", "high")), top.table("shown", _SHOWN)
    prompts = top.table("prompt", _PROMPTS)
    low = scale.whole("low")
    pattern = shown.text("highlights")
    try:
        highlights = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise shown.fault("highlights", pattern, "a regular expression") from error
    return Rubric(
        name=path.stem,
        prompts={each: _prompt(prompts, each) for each in _PROMPTS},
        title=top.text("title"),
        digest=hash_bytes(content),
        low=low,
        high=scale.whole("high", low + 1),
        questions=_questions(top),
        last_turns=shown.whole("last_turns", 0),
        characters=shown.whole("characters", 1),
        highlights=highlights,
        speakers=shown.words("highlighted_speakers"),
    )


def _questions(top: TomlTable) -> dict[str, str]:
    questions: dict[str, str] = {}
    for dimension in top.tables("dimension", ("name", "question")):
        name = dimension.text("name")
        if name in questions:
            raise dimension.fault("name", name, "another name than those before")
        if name in TAKEN:
            raise dimension.fault("name", name, "another name than columns of runs have")
        questions[name] = dimension.text("question")
    if not questions:
        raise top.fault("dimension", [], "a list of at least one table")
    return questions


def _prompt(prompts: TomlTable, name: str) -> str:
    prompt = prompts.text(name)
    expected = f"a text with no slots but {', '.join(SLOTS)}; a brace is written twice"
    try:
        parts = [*string.Formatter().parse(prompt)]
    except ValueError as error:
        raise prompts.fault(name, prompt, expected) from error
    for _, slot, specification, conversion in parts:
        if slot is not None and (slot not in SLOTS or specification or conversion):
            raise prompts.fault(name, prompt, expected)
    return prompt


SCORE_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("row", "repeat"), pl.Int64()),
    "dimension": pl.String(),
    **dict.fromkeys(("position", "score", "attempts"), pl.Int64()),
}
"""A judge's score: of which dialogue (its number from 0), repeat (from 1) and dimension, at which
position of the rubric it was asked (from 1), and after how many answers it came."""

FAILURE_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("row", "repeat"), pl.Int64()),
    **dict.fromkeys(("kind", "reason", "expected", "answer"), pl.String()),
    "attempts": pl.Int64(),
}
"""A repeat without scores: why, what was expected, and the last answer as it came."""


def check_repeats(rubric: Rubric, repeats: int) -> None:
    """Refuse repeats that show some orders of the dimensions more often than others."""
    orders = len(rubric.questions)
    if repeats == 1 or repeats % orders == 0:
        return
    below = repeats - repeats % orders
    balanced = " or ".join(str(each) for each in dict.fromkeys((below or 1, below + orders)))
    raise UsageError(
        f"repeats {repeats} is not balanced: the {orders} dimensions of rubric {rubric.name} are "
        f"shown in {orders} orders, each of which must come equally often.",
        f"Set repeats to {balanced}, or any other multiple of {orders}.",
    )


def question_of(
    transcript: Transcript, rubric: Rubric, repeat: int, asked: Judging
) -> Question[dict[str, int]]:
    """Return what a repeat (from 0) asks a judge about a dialogue."""
    dimensions = rotated(tuple(rubric.questions), repeat)
    turns = rubric.shown(transcript.turns)
    highlights = [
        text[: rubric.characters]
        for speaker, text in turns
        if speaker in rubric.speakers and rubric.highlights.search(text)
    ]
    middle, above = (rubric.low + rubric.high) // 2, (rubric.low + rubric.high + 1) // 2
    slots = {
        "low": rubric.low,
        "high": rubric.high,
        "middle": middle if middle == above else f"{middle} or {above}",
        "members": ", ".join(f'"{name}"' for name in dimensions),
    }
    user = rubric.prompts["user"].format(
        dimensions="\n".join(f"- {name}: {rubric.questions[name]}" for name in dimensions),
        highlights=quoted("wishes", highlights) if highlights else "(nothing of the kind)",
        conversation=shown_conversation(transcript, rubric),
        **slots,
    )
    score = {"type": "integer", "minimum": rubric.low, "maximum": rubric.high}
    request = asked.models.request(
        asked.model,
        ("system", rubric.prompts["system"].format(**slots).strip() + DATA),
        ("user", user.strip()),
        seed=(asked.seed * 1_000_003 + repeat * 1_009) % 2**31,
        schema=object_schema(dict.fromkeys(rubric.questions, score)),
    )
    return Question(
        request,
        lambda found: checked_scores(found, rubric),
        lambda fault: rubric.prompts["again"].format(fault=fault, **slots).strip(),
    )


def rotated(dimensions: tuple[str, ...], repeat: int) -> tuple[str, ...]:
    """Return the order in which a repeat (from 0) asks for the dimensions."""
    first = repeat % len(dimensions)
    return dimensions[first:] + dimensions[:first]


def shown_conversation(transcript: Transcript, rubric: Rubric) -> str:
    """Return a dialogue's turns as a judge is shown them."""
    turns = rubric.shown(transcript.turns)
    return quoted(
        "conversation", (f"{speaker}: {text[: rubric.characters]}" for speaker, text in turns)
    )


def checked_scores(found: dict[str, Any], rubric: Rubric) -> dict[str, int]:
    """Return an answer's scores."""
    check_members(found, rubric.questions)
    for name in rubric.questions:
        if type(found[name]) is not int:
            value = orjson.dumps(found[name]).decode()
            raise UnusableError(f"{name} is {value:.40}, no whole number")
        if not rubric.low <= found[name] <= rubric.high:
            raise UnusableError(f"{name} is {found[name]}, out of range")
    return found


REPEATS, PAIRS = "repeats.parquet", "pairs.jsonl"
SUMMARY = "summary.json"
_FILES = (JUDGEMENTS, REPEATS, PAIRS, FAILURES, SUMMARY, MANIFEST, "manifest.spending.json")

Columns = Mapping[str, Callable[[Mapping[str, Any]], str]]
"""Headings of a table of dimensions, and the text of each cell."""

ONE_REPEAT, ONE_ORDER = "one_repeat", "one_order"
"""Why agreement, or a bias of position, cannot be told: each dialogue was judged once, or the
dimensions were shown in one order alone."""


def _write(
    folder: Path,
    transcripts: Sequence[Transcript],
    answers: Mapping[tuple[int, int], Structured[dict[str, int]] | None],
    rubric: Rubric,
    described: dict[str, Any],
) -> dict[str, Any]:
    """Write a judge's folder of answers, by dialogue and repeat from 0; return its summary.

    A dialogue is scored if all repeats were read: fewer would weigh the orders unequally.
    """
    expected = f"an object of whole numbers from {rubric.low} to {rubric.high}"
    scored: list[tuple[Any, ...]] = []
    unread: list[tuple[Any, ...]] = []
    for (row, repeat), answer in answers.items():
        if answer is not None and (why := answer.failure) is not None:
            rest = (why.kind, why.reason, expected, why.answer, why.attempts)
            unread.append((row, repeat + 1, *rest))
        elif answer is not None and answer.value is not None:
            order = rotated(tuple(rubric.questions), repeat)
            scored += [
                (row, repeat + 1, name, order.index(name) + 1, answer.value[name], answer.attempts)
                for name in rubric.questions
            ]
    places = place_rows(transcripts)
    repeats, failures = (
        pl.DataFrame(rows, schema, orient="row").join(
            places, on="row", how="left", maintain_order="left"
        )
        for rows, schema in ((scored, SCORE_SCHEMA), (unread, FAILURE_SCHEMA))
    )
    failed = {*failures["row"]}
    not_asked = {row for (row, _), answer in answers.items() if answer is None}
    complete = repeats.filter(~pl.col("row").is_in([*failed, *not_asked]))
    summary = {
        "fastscore": __version__,
        "scale": [rubric.low, rubric.high],
        "questions": dict(rubric.questions),
        **described,
        "dialogues": len(transcripts),
        "dialogues_judged": complete["row"].n_unique(),
        "dialogues_failed": len(failed),
        "dialogues_not_asked": len(not_asked - failed),
        "failures": dict(failures["kind"].value_counts().sort("kind").iter_rows()),
        "dimensions": summarise(complete, rubric, described["repeats"]),
    }
    signature = orjson.dumps(summary).decode()
    commit_table(folder / REPEATS, repeats.drop("row"), {"fastscore.judge": signature})
    commit_lines(
        folder / FAILURES, failures.drop("row", "unit", "words", "turns").iter_rows(named=True)
    )
    digest = hash_bytes(f"{rubric.digest} {DATA}".encode())
    judged_by = f"{described['model']} by {rubric.name} {digest[:12]}"
    commit_lines(folder / JUDGEMENTS, _means(complete, rubric, judged_by))
    commit_json(folder / SUMMARY, summary)
    return summary


def place_rows(transcripts: Sequence[Transcript]) -> pl.DataFrame:
    """Return a row a dialogue: its number, place, ids and length."""
    schema = {"row": pl.Int64, "file": pl.String, "line": pl.Int64}
    schema |= dict.fromkeys(("dialogue", "unit", "model"), pl.String)
    schema |= dict.fromkeys(("words", "turns"), pl.Int64)
    rows = []
    for row, each in enumerate(transcripts):
        n_words = sum(len(text.split()) for _, text in each.turns)
        ids = each.dialogue, each.unit, each.model
        rows.append((row, each.file, each.line, *ids, n_words, len(each.turns)))
    return pl.DataFrame(rows, schema, orient="row")


def _means(repeats: pl.DataFrame, rubric: Rubric, judged_by: str) -> list[dict[str, Any]]:
    means = (
        pl.col("score").filter(pl.col("dimension") == name).mean().alias(name)
        for name in rubric.questions
    )
    by_dialogue = repeats.group_by("row", maintain_order=True).agg(
        pl.col("dialogue", "model").first(),
        judge=pl.struct(*means),
        repeats=pl.col("repeat").n_unique(),
        judged_by=pl.lit(judged_by),
        judged_file=pl.col("file").first(),
        judged_line=pl.col("line").first(),
        unit=pl.col("unit").first(),
    )
    return by_dialogue.drop("row").to_dicts()


def summarise(repeats: pl.DataFrame, rubric: Rubric, n_repeats: int) -> dict[str, Any]:
    """Describe how a judge scored each dimension and how far its scores can be trusted."""
    return {
        name: _dimension(repeats.filter(pl.col("dimension") == name), rubric, n_repeats)
        for name in rubric.questions
    }


def _dimension(scores: pl.DataFrame, rubric: Rubric, n_repeats: int) -> dict[str, Any]:
    # dialogues of a unit are not independent: a user met by several models, a case at each level
    means = (
        scores.group_by("row", maintain_order=True)
        .agg(
            pl.col("score").mean(),
            pl.col("unit", "words").first(),
            spread=pl.col("score").max() - pl.col("score").min(),
        )
        .sort("row")
    )
    wide = scores.sort("row").pivot("repeat", index="row", values="score", sort_columns=True)
    matrix = wide.drop("row").cast(pl.Float64).to_numpy() if wide.width > 1 else np.zeros((0, 1))
    units = means["unit"].rank("dense").to_numpy()
    length = clustered_correlation("spearman", means["words"], means["score"], units)
    by_position, no_position = _positions(scores, len(rubric.questions), n_repeats)
    mean = _mean(means.select("unit", "score"), rubric)
    alpha = asdict(krippendorff_alpha(matrix, "ordinal", units))
    if n_repeats == 1:
        alpha["reason"] = ONE_REPEAT
    found = {
        "n": means.height,
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
        "alpha_ordinal": alpha,
        "all_repeats_agree": (means["spread"] == 0).mean() if n_repeats > 1 else None,
        "by_position": by_position,
        "length_rho": length.value,
        "length_p": length.p_value,
        "units": means["unit"].n_unique(),
    }
    reasons = {
        **dict.fromkeys(("mean", "low", "high"), mean.reason),
        "all_repeats_agree": "too_few_values" if n_repeats > 1 else ONE_REPEAT,
        "by_position": no_position,
        **dict.fromkeys(("length_rho", "length_p"), length.reason),
    }
    return {**found, "nulls": {name: reasons[name] for name in reasons if found[name] is None}}


def _mean(scores: pl.DataFrame, rubric: Rubric) -> Estimate:
    """Return the mean of scores with an interval over units, inside the scale."""
    units = scores.group_by("unit").agg(pl.col("score").sum(), pl.len().cast(pl.Float64).alias("n"))
    return clustered_mean(units["score"], units["n"], (rubric.low, rubric.high))


def _positions(
    scores: pl.DataFrame, n_orders: int, n_repeats: int
) -> tuple[dict[str, float] | None, str | None]:
    """Return by how much scores that were asked at a position differ from their dialogue's mean.

    Without several orders, or without a score, there is a reason in place of the deviations.
    """
    if n_orders == 1:
        return None, ONE_ORDER
    if n_repeats == 1:
        return None, ONE_REPEAT
    if scores.is_empty():
        return None, "too_few_values"
    deviation = (pl.col("score") - pl.col("score").mean().over("row")).alias("deviation")
    by_position = scores.with_columns(deviation).group_by("position")
    rows = by_position.agg(pl.col("deviation").mean()).sort("position").iter_rows()
    return {str(position): mean for position, mean in rows}, None


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of a judge: its folder, ``summary.json``, and what the call spent.

    With ``dry_run`` there is only what would be asked, under `expected`.
    """

    folder: Path
    summary: dict[str, Any] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    expected: Expectation | None = None
    refusal: TooManyFailuresError | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        if self.expected is not None:
            return f"Judged {self.folder}, a dry run: {self.expected}"
        noun = "pairs" if "pairs" in self.summary else "dialogues"
        n, of = self.summary.get(f"{noun}_judged", 0), self.summary.get(noun, 0)
        return f"Judged {self.folder}: {n:,} of {of:,} {noun}"


def run_judge(asked: Judging, reporter: Reporter, meter: Meter | None = None) -> Judged:
    """Judge logs."""
    if asked.rubric:  # its faults before any log is read
        check_repeats(load_rubric(asked.rubric), asked.repeats)
    suite, dialogues, rows = read_dialogues(asked.inputs, asked, reporter)
    rubric = rubric_of(asked.rubric, suite)
    check_repeats(rubric, asked.repeats)
    tasks = [(row, repeat) for row in range(len(dialogues)) for repeat in range(asked.repeats)]
    return judge_samples(
        asked,
        (suite, rubric, dialogues),
        tasks,
        lambda task: question_of(dialogues[task[0]], rubric, task[1], asked),
        lambda answers, described: _write(
            asked.output, dialogues, dict(zip(tasks, answers, strict=True)), rubric, described
        ),
        reporter,
        meter,
        answer=orjson.dumps(dict.fromkeys(rubric.questions, rubric.high)).decode(),
        more={"repeats": asked.repeats, **rows},
    )


def judge_samples(
    asked: Judging,
    judged: tuple[str, Rubric, Sequence[Transcript]],
    tasks: Sequence[tuple[int, Part]],
    question: Callable[[tuple[int, Part]], Question[Read]],
    write: Callable[[Sequence[Structured[Read] | None], dict[str, Any]], dict[str, Any]],
    reporter: Reporter,
    meter: Meter | None,
    *,
    answer: str,
    more: Mapping[str, Any],
) -> Judged:
    """Ask about parts of samples, have the answers written and summarised, and record the costs.

    `judged` are the suite, the rubric and the dialogues that are shown; `answer` is as long as
    usual ones, `more` what else describes the judgements.
    """
    if asked.dry_run:
        requests = (question(task).request for task in tasks)
        expected = expect_requests(requests, asked.models, answer)
        return Judged(asked.output, expected=expected)
    suite, rubric, dialogues = judged
    client, start = ChatClient(asked.models, meter), asked.files_from
    described = {
        "suite": suite,
        **{
            side: [os.path.relpath(path, start) if start else path for path in paths]
            for side, paths in (("inputs", asked.inputs), ("against", asked.against))
        },
        "rubric": rubric.name,
        "rubric_hash": rubric.digest,
        **describe_asking(asked, client),
        **more,
        "turns_cut": count_cut_turns(dialogues, rubric, reporter),
    }
    before, samples = client.spent, [sample for sample, _ in tasks]
    check_output(asked.output, OUTPUT, (*_FILES, LOCK_NAME), alone=asked.overwrite)
    with run_lock(asked.output):
        for name in _FILES if asked.overwrite else ():
            (asked.output / name).unlink(missing_ok=True)
        summary, refusal = ask_each(
            client,
            tasks,
            lambda task: ask_until_read(client, question(task)),
            lambda answers, _: write(answers, described),
            reporter,
            stage="judge",
            noun="pairs" if asked.against else "dialogues",
            described=described,
            manifest=asked.output / MANIFEST,
            failures=asked.output / FAILURES,
            counts={"judgements": 1},
            samples=samples,
            n_samples=len({*samples}),
        )
    return Judged(asked.output, summary, client.spent - before, refusal=refusal)


def count_cut_turns(dialogues: Sequence[Transcript], rubric: Rubric, reporter: Reporter) -> int:
    """Count the turns of which a judge is shown the beginning only, and say so."""
    cut = [
        (one, sum(len(text) > rubric.characters for _, text in rubric.shown(one.turns)))
        for one in dialogues
    ]
    total = sum(n for _, n in cut)
    if total:
        first = next(one for one, n in cut if n)
        reporter.note(
            f"{counted(total, 'turns')} {'is' if total == 1 else 'are'} longer than "
            f"{rubric.characters:,} characters, and only the beginning is judged, first in "
            f"dialogue {first.dialogue!r}; `shown.characters` of a rubric changes that."
        )
    return total


def show_judgements(summary: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the summary of judged dialogues or pairs: JSON, or a table and the failures."""
    if as_json:
        write_line(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
        return
    noun, shown = ("pairs", _PAIR_COLUMNS) if "pairs" in summary else ("dialogues", _COLUMNS)
    n_judged, n, model = summary[f"{noun}_judged"], summary[noun], summary["model"]
    judged = f"{n_judged:,} of {n:,} {noun} judged by {model}"
    if noun == "pairs":
        only = f"{counted(summary['only_in_a'], 'dialogues')} only in A"
        judged += f", the win rate is A's; {only}, {summary['only_in_b']:,} in B"
    else:
        judged += " on {} to {}".format(*summary["scale"])
    console, dimensions = result_console(), summary["dimensions"]
    columns = (
        Column("dimension", tuple(dimensions), right=False, wraps=True),
        *(
            Column(header, tuple(write(found) for found in dimensions.values()))
            for header, write in shown.items()
        ),
    )
    print_grid(console, Grid("", columns))
    console.print(judged)
    failed, not_asked = summary[f"{noun}_failed"], summary[f"{noun}_not_asked"]
    if failed or not_asked:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in summary["failures"].items())
        console.print(
            f"{failed:,} failed ({kinds}), {not_asked:,} not asked: see failures.jsonl; the same "
            "command asks again"
        )
    if noun == "dialogues" and n_judged:
        _print_models(folder)
    console.print(f"files      {folder}")
    if noun == "dialogues" and n_judged:
        page = f"fastscore report {shlex.quote(str(folder))} -o report.html"
        console.print(f"next       {page}", soft_wrap=True)


def _print_models(folder: Path) -> None:
    """Compare the models of the logs as `fastscore compare` does: in pairs, if some share an id."""
    try:
        run = open_run(folder)
    except RunError:  # incomplete, as the error after this output says
        return
    models = run.scan("dialogues").select(pl.col("model").drop_nulls()).unique().collect()
    if models.height < 2:
        return
    console = result_console()
    console.print()
    if models.height > MOST_LEVELS:
        console.print(f"{models.height:,} models, of which compare tests some: by model, levels")
        return
    try:
        found = compare(run, by="model")
    except UsageError:  # no id is common
        found = compare(run, by="model", unpaired=True)
    show_comparison(found)


def _interval_text(found: Mapping[str, Any], digits: int = 4) -> str:
    low, high = found["low"], found["high"]
    return "-" if low is None else f"{low:.{digits}f} to {high:.{digits}f}"


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


_COLUMNS: Columns = {
    "n": lambda found: f"{found['n']:,}",
    "mean": lambda found: _number(found["mean"]),
    "95 % interval": _interval_text,
    "ordinal alpha": lambda found: _number(found["alpha_ordinal"]["value"]),
    "agree": lambda found: _number(found["all_repeats_agree"]),
    "length rho": lambda found: _number(found["length_rho"]),
}

_PAIR_COLUMNS: Columns = {
    "n": lambda found: f"{found['n']:,}",
    "A, ties, B": lambda found: f"{found['wins']:,}, {found['ties']:,}, {found['losses']:,}",
    "win rate": lambda found: _number(found["win_rate"], 3),
    "95 % interval": lambda found: _interval_text(found, 3),
    "p (Holm)": lambda found: p_text(found["p_holm"]),
    "consistent": lambda found: _number(found["consistency"], 3),
}
