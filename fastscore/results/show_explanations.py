"""Showing why numbers of a dialogue are what they are, with their evidence."""

import io
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.dialogues import Dialogues
from fastscore.results.number_text import decimals_for, number_text
from fastscore.suites.showing import Evidence, Explanation, Mark, Number
from fastscore.terminal import plain

TEXT_WIDTH = 100
EVIDENCE_SHOWN = 12
LONGEST_TEXT, LEAD = 600, 200


def print_explanations(
    console: Console, dialogues: Dialogues, row: int, found: Sequence[Explanation]
) -> None:
    """Print explanations; matched characters are set off by brackets and, in a terminal, colour."""
    declared = {metric.id: metric for metric in dialogues.suite.metrics}
    (tables,) = dialogues.tables([row])
    file = tables[LABEL_TABLE]["file"][0]
    console.print(Text(plain(dialogues.names["name"][row]), style="bold"))
    console.print(Text(plain(file)), soft_wrap=True)
    for one in found:
        metric = declared[one.metric]
        value = _written(one.value)
        place = f", {one.place}" if one.place else ""
        console.print()
        said = f"{metric.name} ({metric.id}){place}: {value}"
        console.print(
            Text(plain(said if one.value is not None else f"{said} {one.reason}"), "bold")
        )
        facts = {"formula": metric.formula}
        if one.value is None:
            console.print(_facts(facts | {"null": metric.null_rule}))
            continue
        facts["here"] = f"{one.working} = {value}"
        if one.denominator is not None:
            facts["ratio"] = f"{_written(one.numerator or 0)} / {_written(one.denominator)}"
        if one.lines:
            ends = sorted({one.lines[0], one.lines[-1]})
            facts["lines" if ends[1:] else "line"] = f"{'-'.join(map(str, ends))} of the log"
        console.print(_facts(facts))
        for evidence in one.evidence[:EVIDENCE_SHOWN]:
            print_evidence(console, evidence)
        more = len(one.evidence) - EVIDENCE_SHOWN
        if more > 0:
            console.print(Text(f"  ... and {more:,} more: --json has all"))


def explanations_text(dialogues: Dialogues, row: int, found: Sequence[Explanation]) -> str:
    """Return what `print_explanations` prints, as text."""
    console = Console(
        file=io.StringIO(), width=TEXT_WIDTH, highlight=False, markup=False, emoji=False
    )
    with console.capture() as capture:
        print_explanations(console, dialogues, row, found)
    return "\n".join(line.rstrip() for line in capture.get().rstrip().split("\n"))


def _facts(facts: Mapping[str, str]) -> Table:
    """Lay facts out under each other, long ones beside their name."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=9)
    table.add_column()
    for name, fact in facts.items():
        table.add_row(f"  {name}", Text(plain(fact)))
    return table


def _written(value: Number) -> str:
    """Write a number; a count without decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    return number_text(value, decimals_for([value]))


def print_evidence(console: Console, evidence: Evidence) -> None:
    """Print what a number was computed from; of a long text, the part with the evidence."""
    found = evidence.found
    if isinstance(found, float):
        found = number_text(found, decimals_for([found]))
    layout = Table.grid(padding=(0, 1, 0, 0))
    layout.add_column(width=3, justify="right")
    layout.add_column(overflow="fold")
    layout.add_row(
        "-", Text(plain(evidence.what if found is None else f"{evidence.what}: {found}"))
    )
    if evidence.text:
        layout.add_row("", _with_marks(evidence.text, evidence.marks))
    console.print(layout)


def _lines_kept(text: str) -> str:
    """Return a text without control characters, its lines where they were."""
    return "\n".join(plain(line) for line in text.split("\n"))


def _with_marks(text: str, marks: Sequence[Mark]) -> Text:
    start = 0
    if marks and marks[0].stop > LONGEST_TEXT:  # begin where there is something to see
        start = max(0, marks[0].start - LEAD)
    shown, place = Text("... " if start else ""), start
    cut = text[: start + LONGEST_TEXT]
    for mark in marks:
        start, stop = max(place, mark.start), min(mark.stop, len(cut))
        if start >= stop:
            continue
        shown.append(_lines_kept(cut[place:start]))
        open_, close = ("[", "]") if mark.good else ("{", "}")
        shown.append(
            f"{open_}{_lines_kept(cut[start:stop])}{close}", "green" if mark.good else "red"
        )
        place = stop
    shown.append(_lines_kept(cut[place:]))
    if len(text) > len(cut):
        shown.append(f" ... {len(text) - len(cut):,} more characters")
    return shown
