"""Repeated lines: runs of equal lines, by text or by shape, in the bodies of functions."""

import ast
import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

RUN = 10
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
_PUNCTUATION = set("()[]{},:")
_HANDED_ON = {"name = name ,", "name = text ,", "name = number ,", "text"}
"""Arguments that are declarations themselves, and the further lines of a text."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Lines of a file."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.path}:{self.first}-{self.last}"


def repeated(files: Iterable[Path], root: Path, least: int = RUN) -> list[tuple[Place, Place]]:
    """Return pairs of places that share a number of lines or more, ignoring names and literals."""
    shapes = {path.relative_to(root).as_posix(): _lines(path.read_text()) for path in files}
    windows: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path, lines in shapes.items():
        for start in range(len(lines) - least + 1):
            windows[tuple(shape for _, shape in lines[start : start + least])].append((path, start))
    pairs: dict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
    for found in windows.values():
        for (a, start), (b, other) in combinations(found, 2):
            if a != b or other - start >= least:
                pairs[a, b, other - start].append((start, other))
    places = [
        (_place(a, shapes[a], start, run, least), _place(b, shapes[b], other, run, least))
        for (a, b, _), starts in pairs.items()
        for start, other, run in _runs(sorted(starts))
    ]
    return sorted(places)


def _runs(starts: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the first starts of windows that follow one another, and how many do."""
    first, length = starts[0], 1
    for start in starts[1:]:
        if start[0] == first[0] + length:
            length += 1
            continue
        yield *first, length
        first, length = start, 1
    yield *first, length


def _place(path: str, lines: list[tuple[int, str]], start: int, run: int, least: int) -> Place:
    return Place(path, lines[start][0], lines[start + run + least - 2][0])


def _lines(source: str) -> list[tuple[int, str]]:
    """Return number and shape of each line that counts."""
    counted = _counted(ast.parse(source))
    shapes: dict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT and token.start[0] in counted:
            shapes[token.start[0]].append(_shape(token))
    written = {line: " ".join(shape) for line, shape in sorted(shapes.items())}
    return [
        (line, shape)
        for line, shape in written.items()
        if shape not in _HANDED_ON and not _PUNCTUATION.issuperset(shape.split())
    ]


def _shape(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "name"
    return {tokenize.STRING: "text", tokenize.NUMBER: "number"}.get(token.type, token.string)


def _counted(tree: ast.Module) -> set[int]:
    """Return the lines of functions' bodies without declarations and explanations."""
    counted: set[int] = set()
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            counted.update(range(body[0].lineno, _last(body[-1]) + 1))
            left_out.update(range(node.lineno, body[0].lineno))
            left_out.update(line for each in node.decorator_list for line in _span(each))
            if ast.get_docstring(node, clean=False) is not None:
                left_out.update(_span(body[0]))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(_span(node))
    return counted - left_out


def _span(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, _last(node) + 1)


def _last(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno
