"""Tables for people: cells of text fitted to a width, or as markup of a document.

If a grid is too wide, optional columns are dropped first, in the order of their `drop`. Then what
groups have in parentheses moves to a line of its own, and columns of groups to further blocks, each
with the fixed columns before it. Then words of the `wraps` column wrap. Numbers are never cut.

The library that draws tables is imported when one is drawn: scoring from Python draws none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from fastscore.terminal import plain, result_console, wrapped, write

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

Format = Literal["table", "markdown", "csv", "latex", "json"]
Markup = Literal["latex", "markdown"]
FORMATS: tuple[Format, ...] = ("table", "markdown", "csv", "latex", "json")

LEAST_NAME_WIDTH = 15
LONGEST_WORD = 12
LONGEST_HEADER = 12
LONGEST_LABEL = 16
_GAP = 2
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "−": r"$-$",
        "Δ": r"$\Delta$",
        "α": r"$\alpha$",
    }
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a grid."""

    header: str  # its title
    cells: tuple[str, ...]  # one text per row
    right: bool = True  # whether it is right-aligned, as numbers are
    # its rank in the order in which columns are dropped to save width, those below 0 before any
    # word wraps; None for a column that is always shown
    drop: int | None = None
    group: bool = False  # whether it may move to a further block instead, beside the fixed columns
    wraps: bool = False  # whether its words may wrap to save width
    bold: frozenset[int] = frozenset()  # the rows whose cells are in bold in a document


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text."""

    title: str  # its title, empty for none
    columns: tuple[Column, ...]  # the columns, all of one length
    headings: frozenset[int] = frozenset()  # the rows that are headings of the rows after them

    @property
    def rows(self) -> Iterator[tuple[str, ...]]:
        """The cells, row by row."""
        return zip(*(column.cells for column in self.columns), strict=True)


def column_of(
    records: Iterable[Mapping[str, Any]],
    header: str,
    write: Callable[[Mapping[str, Any]], str],
    **how: Any,
) -> Column:
    """Make a column of what is written of each record, and of nothing for an empty one."""
    return Column(header, tuple(write(record) if record else "" for record in records), **how)


def print_grid(console: "Console", grid: Grid) -> None:
    """Print a grid as wide as the console, in as many blocks as that takes."""
    for number, block in enumerate(fit_grid(grid, console.width)):
        if number:
            block = replace(block, title=f"{grid.title}, continued" if grid.title else "")
        console.print(_rich_table(block, console.width))


def markup(grids: Iterable[Grid], format: Markup) -> str:
    """Return grids as tables of a document."""
    return "\n".join(map(markdown if format == "markdown" else latex, grids))


def show_grids(grids: Iterable[Grid], format: Format, headline: str = "") -> None:
    """Write grids to stdout in a document's markup, or as tables with a line before them."""
    if format == "markdown" or format == "latex":
        write(markup(grids, format))
        return
    console = result_console()
    if headline:
        console.print(headline)
    for place, grid in enumerate(grids):
        if place or headline:
            console.print()
        print_grid(console, grid)


def html_table(header: Iterable[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table as HTML, every text escaped."""
    from html import escape

    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_tables(grids: Iterable[Grid]) -> str:
    """Write grids as HTML tables, every text escaped."""
    return "".join(
        html_table((column.header for column in grid.columns), grid.rows, grid.title)
        for grid in grids
    )


def print_notes(console: "Console", notes: Iterable[str]) -> None:
    """Print notes as wide as the console, each beside its label."""
    from rich.table import Table as RichTable
    from rich.text import Text

    layout = RichTable.grid(padding=(0, 1, 0, 0))
    layout.add_column(no_wrap=True)
    layout.add_column(overflow="fold")
    for note in notes:
        layout.add_row("note:", Text(plain(note)))
    console.print(layout)


def fit_grid(grid: Grid, width: int) -> Iterator[Grid]:
    """Yield the blocks of a grid that fit into a width in character cells."""
    fixed = [column for column in grid.columns if not column.group]
    groups = [column for column in grid.columns if column.group]
    least = groups[:2]
    for column in sorted((c for c in fixed if c.drop is not None), key=lambda c: c.drop or 0):
        wrapped = column.drop is not None and column.drop >= 0
        if _least_width([*fixed, *least], wrapped=wrapped) <= width:
            continue
        fixed.remove(column)
    if len(least) > 1 and _least_width([*fixed, *least]) > width:
        in_lines = tuple(map(_in_lines, grid.columns))
        if in_lines != grid.columns:
            yield from fit_grid(replace(grid, columns=in_lines), width)
            return
    if not groups:
        yield replace(grid, columns=tuple(fixed))
    while groups:
        taken = groups[:1]
        while len(taken) < len(groups) and (
            _least_width([*fixed, *groups[: len(taken) + 1]]) <= width
        ):
            taken = groups[: len(taken) + 1]
        groups = groups[len(taken) :]
        chosen = {id(column) for column in (*fixed, *taken)}
        yield replace(grid, columns=tuple(c for c in grid.columns if id(c) in chosen))


def _in_lines(column: Column) -> Column:
    """Move what cells of a group have in parentheses to a line of its own."""
    if not column.group:
        return column
    return replace(column, cells=tuple(cell.replace(" (", "\n(") for cell in column.cells))


def _lines(column: Column, cell: str) -> list[str]:
    return list(map(plain, cell.split("\n") if column.group else [cell]))


def markdown(grid: Grid) -> str:
    """Return a grid as a GitHub Markdown table, of any width."""
    rows = [[_markdown_cell(cell) for cell in row] for row in grid.rows]
    lines = [_markdown_line(_markdown_cell(column.header) for column in grid.columns)]
    lines.append(_markdown_line("---:" if column.right else "---" for column in grid.columns))
    for number, row in enumerate(rows):
        cells = [
            f"**{cell}**" if is_bold and cell.strip() else cell
            for cell, is_bold in zip(row, _bold(grid, number), strict=True)
        ]
        lines.append(_markdown_line(cells))
    title = [f"**{_markdown_cell(grid.title)}**", ""] if grid.title else []
    return "\n".join([*title, *lines, ""])


def latex(grid: Grid) -> str:
    """Return a grid as a LaTeX table, which needs the package booktabs."""
    places = "".join("r" if column.right else "l" for column in grid.columns)
    lines = [r"\begin{table}", r"\centering"]
    if grid.title:
        lines.append(rf"\caption{{{_latex_cell(grid.title)}}}")
    lines += [rf"\begin{{tabular}}{{{places}}}", r"\toprule"]
    lines += [_latex_line(column.header for column in grid.columns), r"\midrule"]
    for number, row in enumerate(grid.rows):
        if number in grid.headings and number:
            lines.append(r"\addlinespace")
        lines.append(_latex_line(row, _bold(grid, number)))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _least_width(columns: Sequence[Column], *, wrapped: bool = True) -> int:
    """Return the minimum width of columns side by side, with words wrapped where allowed."""
    widths = [_width(column) for column in columns]
    if wrapped:
        widths = [
            min(width, LEAST_NAME_WIDTH) if column.wraps else width
            for column, width in zip(columns, widths, strict=True)
        ]
    return sum(widths) + (len(widths) - 1) * _GAP


def _width(column: Column) -> int:
    """Return the width of a column, by its cells. A long header wraps above numbers."""
    from rich.cells import cell_len

    header = cell_len(plain(column.header))
    lines = (line for cell in column.cells for line in _lines(column, cell))
    cells = max(map(cell_len, lines), default=0)
    longest = LONGEST_LABEL if column.group else LONGEST_HEADER
    return max(cells, header if column.wraps else min(header, longest))


def _rich_table(grid: Grid, width: int) -> "RichTable":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    widths = list(map(_width, grid.columns))
    wrapping = [place for place, column in enumerate(grid.columns) if column.wraps]
    for _ in range(sum(widths) + (len(widths) - 1) * _GAP - width):
        widest = max(wrapping, key=widths.__getitem__, default=None)
        if widest is not None and widths[widest] > LONGEST_WORD:
            widths[widest] -= 1
    table = RichTable(
        box=SIMPLE_HEAD,
        title=Text(plain(grid.title), style="bold") if grid.title else None,
        title_justify="left",
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    texts = []
    for column, taken in zip(grid.columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.right else "left"
        header = Text(_broken(plain(column.header), taken))
        table.add_column(header, justify=justify, overflow="fold", width=taken)
        texts.append([_broken("\n".join(_lines(column, cell)), taken) for cell in column.cells])
    for number, row in enumerate(zip(*texts, strict=True)):
        style = "bold" if number in grid.headings else None
        if style and number:
            table.add_row()
        table.add_row(*map(Text, row), style=style)
    return table


def _broken(text: str, width: int) -> str:
    """Break the words that are longer than a line."""
    return re.sub(rf"\S{{{width + 1},}}", lambda word: wrapped(word[0], width), text)


def _markdown_line(cells: Iterator[str] | Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(text: str) -> str:
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return plain(text)


def _latex_line(cells: Iterable[str], bold: Sequence[bool] = ()) -> str:
    texts = [_latex_cell(cell) for cell in cells]
    texts = [
        rf"\textbf{{{text}}}" if is_bold and text.strip() else text
        for text, is_bold in zip_longest(texts, bold, fillvalue=False)
        if isinstance(text, str)
    ]
    return " & ".join(texts) + r" \\"


def _bold(grid: Grid, row: int) -> list[bool]:
    return [row in grid.headings or row in column.bold for column in grid.columns]


def _latex_cell(text: str) -> str:
    return plain(text).translate(_LATEX)
