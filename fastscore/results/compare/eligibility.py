"""What may be compared: refused, or allowed with a note that says what a reader must know."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastscore.errors import UsageError, counted, nearest
from fastscore.results.compare.differences import Side
from fastscore.results.dialogue_sums import KEY, LABEL_TABLE, repeated_dialogues
from fastscore.results.judged_runs import JudgedRun
from fastscore.results.runs import Run
from fastscore.signature import deciding_differences
from fastscore.suites.declarations import Metric
from fastscore.suites.registry import load_suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which columns name what is paired, the levels, the units and the repeats.

    Parameters
    ----------
    key
        The column that names what is paired.
    by, levels
        The column of the levels, and the levels that count; all if empty.
    cluster, repeats
        The columns of the units and of the repeats; None for none.
    pattern
        A regular expression whose one group finds what is paired in the dialogue id.
    """

    key: str
    by: str | None
    levels: tuple[str, ...]
    cluster: str | None = None
    repeats: str | None = None
    pattern: str | None = None

    @classmethod
    def of(
        cls,
        by: str | None,
        levels: Sequence[str],
        pair_by: str | None,
        cluster: str | None,
        repeats: str | None,
        *,
        n_runs: int,
    ) -> "Selection":
        """Take the columns as they were asked for.

        Raises
        ------
        UsageError
            Levels of no column, one run without a column to compare by, or a pattern that is no
            regular expression with one group.
        """
        if levels and by is None:
            raise UsageError("Levels are values of a column.", "Name the column with --by.")
        if n_runs == 1 and by is None:
            raise UsageError(
                "Only one run given.",
                "Add a second run, or compare groups of this run with --by COLUMN.",
            )
        pattern = None
        if pair_by is not None and "(" in pair_by:
            pattern = pair_by
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise UsageError(
                    f"--pair-by {pattern!r} is no regular expression: {error}."
                ) from error
            if groups != 1:
                raise UsageError(
                    f"--pair-by {pattern!r} has {groups} groups, expected one.",
                    "Write other parentheses as (?:...).",
                )
        return cls(
            key=KEY if pattern or pair_by is None else pair_by,
            by=by,
            levels=tuple(levels),
            cluster=cluster,
            repeats=repeats,
            pattern=pattern,
        )


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
    a = runs[0]
    for b in runs[1:]:
        if a.manifest.suite != b.manifest.suite:
            raise UsageError(
                f"{a.path} is a run of {a.manifest.suite}, {b.path} one of {b.manifest.suite}. "
                "Numbers of different suites cannot be compared."
            )


def check_signatures(runs: Sequence[Run], *, allow: bool) -> list[str]:
    """Return what differs between signatures; refuse that unless it is allowed."""
    a = runs[0]
    differing = [
        f"{each.name} is {each.first or 'not there'} in {a.path} and "
        f"{each.second or 'not there'} in {b.path}"
        for b in runs[1:]
        for each in deciding_differences(a.signature, b.signature)
    ]
    if differing and not allow:
        raise UsageError(
            "The runs have different signatures: " + "; ".join(differing) + ".",
            "Score all alike, or compare them all the same with --allow-different-signatures.",
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


def choose_design(
    a: Side, b: Side, selection: Selection, *, unpaired: bool
) -> tuple[bool, list[str]]:
    """Return whether two sides are compared by pairs, and what a reader must know of it.

    Two runs are. Two levels of one run are if at least half of the dialogues of the smaller side
    have a partner.

    Raises
    ------
    UsageError
        Two runs that have no dialogue in common.
    """
    if unpaired:
        return False, []
    keys = [side.sums.values[KEY].unique() for side in (a, b)]
    n_paired = int(keys[0].is_in(keys[1].implode()).sum())
    are_levels = selection.by is not None and a.group is None
    if are_levels and 2 * n_paired < min(map(len, keys)):
        return False, [
            f"{a.name} and {b.name} are independent samples: {n_paired:,} of "
            f"{counted(min(map(len, keys)), 'dialogues')} have a partner ({a.name} has "
            f"{_example(a)}, {b.name} {_example(b)}). --pair-by names a column that they share"
        ]
    if not n_paired:
        raise UsageError(
            f"No dialogue of {a.name} (such as {_example(a)}) is in {b.name} "
            f"(such as {_example(b)}).",
            "Name the column that both share with --pair-by, or compare independent samples "
            "with --unpaired.",
        )
    notes = []
    for side, of_side, other in ((a, keys[0], b), (b, keys[1], a)):
        alone = len(of_side) - n_paired
        where = f"{selection.by} {side.name}" if are_levels else side.name
        group = "" if side.group is None else f" with {selection.by} {side.group}"
        at = f" at {other.name}" if are_levels else ""
        if alone:
            notes.append(f"{counted(alone, 'dialogues')} of {where}{group} without a partner{at}")
    return True, notes


def _example(side: Side) -> str:
    return repr(side.sums.values[KEY].first())
