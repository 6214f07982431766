"""Functions fit on a screen and files on a few, except those of a decision record."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "decisions" / "0009-longer-than-a-screen.md"
READERS = ROOT / "docs" / "decisions" / "0001-own-readers.md"
FOLDERS = ("fastscore", "kernels", "models", "tests", "benchmarks", "examples", "docs")
MOST_LINES_OF_CODE, MOST_LINES_OF_A_KERNEL = 50, 100
MOST_LINES_OF_A_FILE = 600
COMPILED = {"kernel", "inlined", "always_inlined", "instruction"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _modules() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


def lines_of_code(function: Function, source: list[str]) -> int:
    """Count the lines of a function's body without docstring, comments and blank lines."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    if not body:
        return 0
    lines = source[body[0].lineno - 1 : body[-1].end_lineno]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def is_compiled(function: Function) -> bool:
    """Tell whether a decorator compiles a function: it is a kernel, or a part of kernels."""
    return any(ast.unparse(each).partition("(")[0] in COMPILED for each in function.decorator_list)


def test_a_function_fits_on_a_screen_or_is_defended() -> None:
    defended = set(re.findall(r"^- `(\w+\.py)` `(\w+)`", RECORD.read_text(), re.MULTILINE))
    long = [
        f"{name}:{node.lineno} {node.name}: {length} lines"
        for name, text in _modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, Function)
        for length in [lines_of_code(node, text.splitlines())]
        if length > (MOST_LINES_OF_A_KERNEL if is_compiled(node) else MOST_LINES_OF_CODE)
        and (Path(name).name, node.name) not in defended
    ]
    assert long == []


def test_a_file_has_at_most_six_hundred_lines_or_is_defended() -> None:
    defended = re.findall(r"^- `([\w/]+/\w+\.py)`", RECORD.read_text(), re.MULTILINE)
    lengths = {name: text.count("\n") for name, text in _modules()}
    long = {name for name, length in lengths.items() if length > MOST_LINES_OF_A_FILE}
    assert sorted(long) == sorted(defended)


def test_readers_have_no_more_lines_than_their_decision_record_allows() -> None:
    (most,) = re.findall(r"at most ([\d,]+) lines", READERS.read_text())
    readers = [text for name, text in _modules() if name.startswith("kernels/fastscore_readers/")]
    assert len(readers) > 10
    assert sum(text.count("\n") for text in readers) <= int(most.replace(",", ""))


def test_docstrings_comments_and_signatures_are_no_code() -> None:
    text = 'def f(\n    a,\n    b,\n):\n    """Say.\n\n    More.\n    """\n    # why\n\n    c = 1\n'
    text += "    return c\n"
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of_code(function, text.splitlines()) == 2
