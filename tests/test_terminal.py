"""Text leaves for people and pipes in one place; nothing else of the product prints."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastscore import terminal

PRODUCT = Path(__file__).parents[1] / "fastscore"
HOME = "terminal"
LAYS_OUT = {
    "results/explaining.py": "marks set off by colour in folded texts",
    "run/progress.py": "live bars",
}
"""Modules that lay text out with rich for a console of `fastscore.terminal`."""
HOLDS_STREAMS = {
    "cli/__init__.py": "stdout goes to the null device when its reader has gone",
    "compat/score_dialogue.py": "as the published script does: encoding errors are forgiven, and "
    "its logging goes to stdout",
    "vectors/precisions.py": "what CUDA libraries print goes to stderr",
}
"""Modules that hand a stream on, or exchange it, but write nothing to it."""
CONSOLE = {("rich.console", "Console")}
"""The type of consoles from `fastscore.terminal`."""
WRITERS = {"print", "click.echo", "click.secho", "shutil.get_terminal_size", "os.get_terminal_size"}

OF_THE_COMMAND_LINE = ("cli/", "compat/", "llm/", "simulation/", "suites/preference_shift/verbs/")
"""Modules that Python does not call, whose errors name options as they are typed."""
SPELT_TWICE = {"both", "command_text", "parameter"}


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PRODUCT.rglob("*.py")):
        name = path.relative_to(PRODUCT).as_posix()
        if not name.startswith(f"{HOME}/"):
            yield name, ast.parse(path.read_text())


def test_nothing_else_prints_or_asks_for_the_width() -> None:
    found = [
        f"{name}:{node.lineno}: {ast.unparse(node.func)}"
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS
    ]
    assert found == []


def _text(node: ast.AST) -> str:
    """Return the text in an expression, without what has a spelling for Python as well."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in SPELT_TWICE:
        return ""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(map(_text, ast.iter_child_nodes(node)))


def test_errors_name_options_in_the_words_of_whoever_reads_them() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _modules()
        if not name.startswith(OF_THE_COMMAND_LINE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
        # other commands are typed whoever reads
        if re.search(
            r"(?<!\w)--[a-z]",
            re.sub("`[^`]*`", "", "".join(map(_text, (*node.args, *node.keywords)))),
        )
    ]
    assert found == []


def test_streams_and_rich_are_used_where_it_is_said_why() -> None:
    streams, layouts = set(), set()
    for name, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in {
                "sys.stdout",
                "sys.stderr",
            }:
                streams.add(name)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich"):
                layouts |= {name} if (node.module, node.names[0].name) not in CONSOLE else set()
    assert streams == set(HOLDS_STREAMS)
    assert layouts == set(LAYS_OUT)


def test_results_and_notes_have_streams_of_their_own(capfd: pytest.CaptureFixture[str]) -> None:
    terminal.write("a\x1b[1mb\n")
    terminal.write_line("line")
    terminal.write_note("note")
    terminal.result_console().print("[red]as it is[/red]")
    found = capfd.readouterr()
    assert found.out == "a\x1b[1mb\nline\n[red]as it is[/red]\n"
    assert found.err == "note\n"


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    assert terminal.plain("a\x1b[2J\tb\u202e ü") == "a\\x1b[2J\\tb\\u202e ü"
