"""Judging in pairs: which of two dialogues of one id is better, asked in both orders.

Side A and side B have a dialogue of the same id each. A judge is shown them as conversation 1 and
2, once with A first and once with B first. A side wins a dimension if the judge prefers it in both
orders. Everything else is a tie: the order decided, or nothing did.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastscore.errors import UsageError, names_arguments
from fastscore.files import hash_bytes
from fastscore.llm.client import Question, Structured
from fastscore.llm.judgements import (
    PAIRS,
    SUMMARY,
    Judged,
    Rubric,
    judge_samples,
    load_rubric,
    rubric_of,
    run_judge,
    shown_conversation,
)
from fastscore.llm.requests import (
    Judging,
    StrPath,
    check_members,
    object_schema,
    read_prompts,
    request_of,
)
from fastscore.llm.spending import FAILURES, Meter, UnusableError
from fastscore.llm.transcripts import DATA, Transcript, read_dialogues
from fastscore.run.commit import commit_json, commit_lines
from fastscore.run.progress import Reporter, SilentReporter
from fastscore.statistics.clustered import clustered_mean
from fastscore.statistics.curves import sign_test
from fastscore.statistics.significance import holm
from fastscore.version import __version__

PROMPTS, PROMPTS_DIGEST = read_prompts(__package__, "pairwise.toml")
A, B, TIE = "A", "B", "tie"
OVERALL, REASON = "overall", "reason"
_VERDICTS = {A: {"1": A, "2": B, TIE: TIE}, B: {"1": B, "2": A, TIE: TIE}}
"""What an answer means, by the side that was shown first."""

_TYPICAL_REASON = "x" * 200
_EXPECTED = 'an object with a reason and "1", "2" or "tie" for each dimension'

Pair = tuple[Transcript, Transcript]
"""Two dialogues of one id."""
Verdict = tuple[dict[str, str], str]
"""An answer: the preferred side of each dimension, and why."""


def run_judging(asked: Judging, reporter: Reporter, meter: Meter | None = None) -> Judged:
    """Judge dialogues one by one, or side A, the inputs, in pairs against side B."""
    if not asked.dry_run:
        asked.models.resolved()  # a server that is not named, before any log is read
    if not asked.against:
        return run_judge(asked, reporter, meter)
    if asked.rubric:  # its faults before any log is read
        load_rubric(asked.rubric)
    if asked.repeats != 1:
        raise UsageError(
            f"repeats {asked.repeats} does not apply to against: each pair is judged twice, "
            "once in each order.",
            "Leave out repeats.",
        )
    on_both = {*map(os.path.realpath, asked.inputs)} & {*map(os.path.realpath, asked.against)}
    if on_both:
        raise UsageError(
            f"{min(on_both)} is on both sides, so each dialogue would be judged against itself.",
            "Write the logs of each system into a file of its own.",
        )
    suite, side_a, _ = read_dialogues(asked.inputs, asked, reporter)
    suite_b, side_b, _ = read_dialogues(asked.against, asked, reporter)
    if suite != suite_b:
        raise UsageError(f"A has logs of {suite}, B of {suite_b}.", "Compare logs of one suite.")
    rubric = rubric_of(asked.rubric, suite)
    pairs = pair_up(side_a, side_b)
    return judge_samples(
        asked,
        (suite, rubric, [side for pair in pairs for side in pair]),
        [(row, first) for row in range(len(pairs)) for first in (A, B)],
        lambda task: _question(pairs[task[0]], task[1], rubric, asked),
        lambda answers, described: _write(asked, pairs, answers, rubric, described),
        reporter,
        meter,
        answer=_TYPICAL_REASON + '"personalization": "1", ' * len(questions_of(rubric)),
        more={"only_in_a": len(side_a) - len(pairs), "only_in_b": len(side_b) - len(pairs)},
    )


def pair_up(side_a: Sequence[Transcript], side_b: Sequence[Transcript]) -> list[Pair]:
    """Return the dialogues that both sides have, in the order of side A."""
    for name, side in ((A, side_a), (B, side_b)):
        counts = Counter(each.dialogue for each in side)
        if repeated := [id for id, n in counts.items() if n > 1]:
            raise UsageError(
                f"Side {name} has several dialogues with id {min(repeated)!r}, so pairs cannot be "
                "told.",
                "Give logs of one model a side.",
            )
    others = {each.dialogue: each for each in side_b}
    pairs = [(each, others[each.dialogue]) for each in side_a if each.dialogue in others]
    if not pairs:
        raise UsageError(
            f"The sides share no dialogue: A begins with {side_a[0].dialogue!r}, B with "
            f"{side_b[0].dialogue!r}.",
            "Dialogues of the same user or scenario need the same id on both sides.",
        )
    return pairs


def questions_of(rubric: Rubric) -> dict[str, str]:
    """Return the questions of a comparison: the rubric's and, if it has none, an overall one."""
    return {**rubric.questions, OVERALL: rubric.questions.get(OVERALL, PROMPTS[OVERALL])}


def _question(pair: Pair, first: str, rubric: Rubric, asked: Judging) -> Question[Verdict]:
    """Return what is asked about a pair, with one side shown first."""
    questions = questions_of(rubric)
    one, two = (shown_conversation(each, rubric) for each in (pair if first == A else pair[::-1]))
    words = {
        "members": ", ".join(f'"{name}"' for name in questions),
        "dimensions": "\n".join(f"- {name}: {text}" for name, text in questions.items()),
        "first": one,
        "second": two,
    }
    verdict = {"type": "string", "enum": ["1", "2", TIE]}
    request = asked.models.request(
        asked.model,
        ("system", PROMPTS["system"].format(**words).strip() + DATA),
        ("user", PROMPTS["user"].format(**words).strip()),
        seed=asked.seed,
        schema=object_schema({REASON: {"type": "string"}, **dict.fromkeys(questions, verdict)}),
    )
    return Question(
        request,
        lambda found: read_verdict(found, tuple(questions), first),
        lambda fault: PROMPTS["again"].format(fault=fault, members=words["members"]).strip(),
    )


def read_verdict(found: Mapping[str, Any], members: Sequence[str], first: str) -> Verdict:
    """Read an answer; ``first`` is the side that was shown first."""
    check_members(found, (REASON, *members))
    if not isinstance(found[REASON], str):
        raise UnusableError(f"{REASON} is {found[REASON]!r:.40}, no text")
    sides = {}
    for name in members:
        # a number says the same as its digit
        verdict = str(found[name]) if type(found[name]) is int else found[name]
        if verdict not in ("1", "2", TIE):
            raise UnusableError(f'{name} is {found[name]!r:.40}, not "1", "2" or "tie"')
        sides[name] = _VERDICTS[first][verdict]
    return sides, found[REASON]


def _write(
    asked: Judging,
    pairs: Sequence[Pair],
    answers: Sequence[Structured[Verdict] | None],
    rubric: Rubric,
    described: dict[str, Any],
) -> dict[str, Any]:
    """Write a folder of judged pairs, with answers for A first and B first; return its summary."""
    members = tuple(questions_of(rubric))
    digest = hash_bytes(f"{rubric.digest} {PROMPTS_DIGEST} {DATA}".encode())
    judged_by = f"{described['model']} by {rubric.name} in pairs {digest[:12]}"
    lines: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    not_asked = 0
    line: dict[str, Any]
    for (a, b), *of_pair in zip(pairs, answers[::2], answers[1::2], strict=True):
        orders: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        for first, found in zip((A, B), of_pair, strict=True):
            if found is not None and found.value is not None:
                sides, reason = found.value
                line = {"first": first, "answer": sides, "reason": reason}
                orders.append(line | {"attempts": found.attempts})
            elif found is not None and found.failure is not None:
                why = found.failure
                line = {"dialogue": a.dialogue, "first": first, "kind": why.kind}
                line |= {"reason": why.reason, "expected": _EXPECTED}
                failed.append(line | {"answer": why.answer, "attempts": why.attempts})
        failures += failed
        not_asked += None in of_pair and not failed
        if len(orders) < 2:
            continue
        one, two = (order["answer"] for order in orders)
        line = {"dialogue": a.dialogue, "model_a": a.model, "model_b": b.model}
        line["verdict"] = {name: one[name] if one[name] == two[name] else TIE for name in members}
        line |= {"orders": orders, "judged_by": judged_by}
        line |= {"file_a": a.file, "line_a": a.line, "file_b": b.file, "line_b": b.line}
        lines.append(line)
    kinds = Counter(line["kind"] for line in failures)
    summary = {
        "fastscore": __version__,
        "prompts_hash": PROMPTS_DIGEST,
        **described,
        "pairs": len(pairs),
        "pairs_judged": len(lines),
        "pairs_failed": len(pairs) - len(lines) - not_asked,
        "pairs_not_asked": not_asked,
        "failures": dict(sorted(kinds.items())),
        "dimensions": {name: summarise_pairs(name, lines) for name in members},
    }
    dimensions = summary["dimensions"].values()
    for found, p in zip(dimensions, holm([each["p"] for each in dimensions]), strict=True):
        found["p_holm"] = p
    commit_lines(asked.output / PAIRS, lines)
    commit_lines(asked.output / FAILURES, failures)
    commit_json(asked.output / SUMMARY, summary)
    return summary


def summarise_pairs(name: str, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Describe one dimension of judged pairs."""
    verdicts = [line["verdict"][name] for line in lines]
    wins, losses = verdicts.count(A), verdicts.count(B)
    points = [{A: 1.0, TIE: 0.5, B: 0.0}[verdict] for verdict in verdicts]
    rate = clustered_mean(points, [1.0] * len(points), (0.0, 1.0))
    answers = [tuple(order["answer"][name] for order in line["orders"]) for line in lines]
    decided = wins + losses

    def share(*wanted: tuple[str, str]) -> float | None:
        return sum(one in wanted for one in answers) / len(answers) if answers else None

    found = {
        "n": len(lines),
        "wins": wins,
        "losses": losses,
        "ties": len(lines) - decided,
        "win_rate": rate.value,
        "low": rate.low,
        "high": rate.high,
        "p": sign_test(wins, losses) if decided else None,
        "consistency": share((A, A), (B, B), (TIE, TIE)),
        "prefers_first": share((A, B)),
        "prefers_second": share((B, A)),
    }
    reasons = dict.fromkeys(("win_rate", "low", "high"), rate.reason)
    reasons |= dict.fromkeys(("p", "consistency", "prefers_first", "prefers_second"))
    reasons["p"] = "zero_variance" if lines else "too_few_units"
    missing = {key: reasons[key] or "too_few_units" for key in reasons if found[key] is None}
    return {**found, "nulls": missing}


@names_arguments
def judge(
    logs: StrPath | Sequence[StrPath],
    model: str,
    *,
    output: StrPath,
    against: StrPath | Sequence[StrPath] = (),
    suite: str | None = None,
    layout: str | None = None,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    alternate: Literal["user", "assistant"] | None = None,
    sort_by: str | None = None,
    dialogue: str | None = None,
    without: str | None = None,
    max_rejects: float = 0.001,
    rubric: StrPath = "",
    repeats: int = 1,
    seed: int = 0,
    overwrite: bool = False,
    dry_run: bool = False,
    **models: Any,
) -> Judged:
    """Judge dialogues by a chat model and a rubric, or two systems in pairs.

    Every answer is kept: the same call goes on after an interruption.

    Parameters
    ----------
    logs
        Files and folders of logs, or one run directory. Chats of any kind need no suite.
    model
        The judge's name at its server.
    output
        The folder to write.
    against
        Logs of another system. Each pair of dialogues of one id is judged in both orders.
    suite
        The suite of the logs. Default: the run's, or the only one that reads them.
    layout, columns, values, alternate, sort_by, dialogue, without
        As for `score`. The columns of chats are ``id``, ``model``, ``messages``, ``role``,
        ``content``.
    max_rejects
        The share of rejected lines above which nothing is asked.
    rubric
        A bundled rubric or a TOML file. Default: ``pepper`` for preference_shift, ``finance`` for
        memory_finance, otherwise ``assistant``.
    repeats
        Judgements of each dialogue: 1, or a multiple of the number of dimensions.
    seed
        Seed of the requests.
    overwrite
        Replace the files of another judge in `output`.
    dry_run
        Estimate requests and tokens. Nothing is asked or written.
    **models
        How the model is asked, by the names of the command's options, such as ``base_url``.

    Returns
    -------
    Judged
        The folder, the summary, and what was spent.

    Raises
    ------
    UsageError
        An argument cannot be used, or no server is named.
    InputError
        No dialogue can be read.
    RunConflictError
        `output` holds something else.
    TooManyFailuresError
        More dialogues failed than `max_failures`. The folder is written.

    Examples
    --------
    >>> judged = fastscore.judge(
    ...     "chats.jsonl", "llama3", output="judged", base_url="http://127.0.0.1:11434/v1"
    ... )
    >>> judged.summary["dimensions"]["helpfulness"]["mean"]
    """
    judged = run_judging(request_of(Judging, judge, locals()), SilentReporter())
    if judged.refusal is not None:
        raise judged.refusal
    return judged
