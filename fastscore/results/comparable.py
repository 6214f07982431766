"""What may be compared: refused, or allowed with a note that says what a reader must know."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastscore.errors import UsageError, counted, nearest
from fastscore.results.dialogue_sums import KEY, LABEL_TABLE, repeated_dialogues
from fastscore.results.differences import Side
from fastscore.results.judged_runs import JudgedRun
from fastscore.results.runs import Run
from fastscore.signature import deciding_differences
from fastscore.suites.declarations import Metric
from fastscore.suites.registry import load_suite


@dataclass(frozen=True, slots=True)
class Selection:
    """Which column names dialogues, which their levels, and which of these count."""

    key: str
    by: str | None
    levels: tuple[str, ...]


def choose_metrics(
    runs: Sequence[Run], tables: Sequence[str], ids: Sequence[str], judged: Sequence[Metric]
) -> list[Metric]:
    """Choose the metrics that are named, else a judge's and those that a run summarises."""
    suite = runs[0].manifest.suite
    declared = (*load_suite(suite).metrics, *judged)
    for kind, names, known in (
        ("table", tables, [metric.table for metric in declared]),
        ("metric", ids, [metric.id for metric in declared]),
    ):
        for name in names:
            if name not in known:
                message = f"Suite {suite!r} has no {kind} {name!r} with numbers."
                raise UsageError(message, nearest(name, set(known)))
    summarised = {name for run in runs for name in run.summary["metric"]}
    summarised.update(metric.id for metric in judged)
    chosen = [
        metric
        for metric in declared
        if (not tables or metric.table in tables)
        and (metric.id in ids if ids else metric.id in summarised)
    ]
    if not chosen:
        raise UsageError(f"Tables {', '.join(tables)} have none of these metrics.")
    return chosen


def require_one_suite(runs: Sequence[Run]) -> None:
    """Refuse runs of different suites."""
    a, b = runs[0], runs[-1]
    if a.manifest.suite != b.manifest.suite:
        raise UsageError(
            f"{a.path} is a run of {a.manifest.suite}, {b.path} one of {b.manifest.suite}; "
            "numbers of different suites do not compare."
        )


def check_signatures(a: Run, b: Run, *, allow: bool) -> list[str]:
    """Say what differs between two signatures; refuse that unless it is allowed."""
    differing = [
        f"{each.name} is {each.first or 'not there'} in {a.path} and "
        f"{each.second or 'not there'} in {b.path}"
        for each in deciding_differences(a.signature, b.signature)
    ]
    if differing and not allow:
        raise UsageError(
            "The runs have different signatures: " + "; ".join(differing) + ".",
            "Score both alike, or compare them all the same with --allow-different-signatures.",
        )
    return [f"signatures differ: {difference}" for difference in differing]


def check_judges(runs: Sequence[JudgedRun], *, allow: bool) -> list[str]:
    """Say what judges' files refuse, and who judged where that is not one and the same."""
    notes = [note for run in runs for note in run.notes]
    judges = dict.fromkeys(judge for run in runs for judge in run.judges)
    if len(judges) > 1:
        if not allow:
            raise UsageError(
                f"Several judges' scores: {', '.join(judges)}.",
                "Have all judged alike, or compare them all the same with "
                "--allow-different-signatures.",
            )
        notes.append(f"judges differ: {', '.join(judges)}")
    return notes


def check_repeated_dialogues(run: Run, selection: Selection, *, may_mix: bool) -> list[str]:
    """Say how many dialogues have several rows; refuse to mix conversations unless it is asked."""
    found = repeated_dialogues(run, key=selection.key, by=selection.by, levels=selection.levels)
    if not found.dialogues:
        return []
    if found.mixed and not may_mix:
        label, (dialogue, least, largest) = next(iter(found.mixed.items()))
        apart = (
            f"Compare each {label} by itself (`fastscore compare` with --by {label})"
            if selection.by is None
            else "Name a column that tells them apart with --pair-by, such as file"
        )
        raise UsageError(
            f"{run.path}: dialogue {dialogue!r} stands for several conversations: {label} is "
            f"{least!r} in one and {largest!r} in another.",
            f"{apart}, or ask for the mean of all that share an id with --pair-by {KEY}.",
        )
    return [
        f"{run.path}: {counted(len(found.dialogues), 'values')} of {selection.key} (such as "
        f"{found.dialogues[0]!r}) with several rows of {LABEL_TABLE} each, counted once by the "
        "mean of these rows"
    ]


def check_pairs(
    pairs: Sequence[tuple[Side, Side]], *, by: str | None, must_pair: bool
) -> list[str]:
    """Say how many dialogues are not paired; refuse sides that share none if they must."""
    partners = [a.sums.values[KEY].is_in(b.sums.values[KEY].implode()).sum() for a, b in pairs]
    if not must_pair and not any(partners):
        one, other = pairs[0]
        return [
            f"no dialogue stands at two values of {by} ({one.name} has {_example(one)}, "
            f"{other.name} {_example(other)}), so that all are independent samples; --pair-by "
            "names a column that they share"
        ]
    notes = []
    for (a, b), paired in zip(pairs, partners, strict=True):
        if must_pair and not paired:
            raise UsageError(
                f"No dialogue of {a.name} (such as {_example(a)}) is in {b.name} "
                f"(such as {_example(b)}).",
                "Name the column that both share with --pair-by, or compare independent samples "
                "with --unpaired.",
            )
        for side, other in ((a, b), (b, a)):
            alone = int(side.sums.values.height - paired)
            if alone and must_pair:
                group = "" if side.group is None else f" with {by} {side.group}"
                notes.append(
                    f"{counted(alone, 'dialogues')} of {side.name}{group} without a partner"
                )
            elif alone:
                alone_here = f"{counted(alone, 'dialogues')} of {by} {side.name}"
                notes.append(f"{alone_here} without a partner at {other.name}")
    return notes


def _example(side: Side) -> str:
    return repr(side.sums.values[KEY].first())
