"""Messages that the page of troubleshooting explains are messages of the code."""

import ast
import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.documented import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^### `([^`]+)`$", PAGE, re.MULTILINE)
VALUE = "{}"


@cache
def templates():
    """Return the words of every text in the code; a value is ``{}``."""
    sources = chain((ROOT / "fastscore").rglob("*.py"), (ROOT / "models").rglob("*.py"))
    trees = (ast.parse(Path(path).read_text(encoding="utf-8")) for path in sources)
    return [
        template_of(node).split()
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]


def template_of(node):
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = (str(one.value) if isinstance(one, ast.Constant) else VALUE for one in node.values)
    return "".join(parts)


def is_in(message, template):
    """Tell whether a template has the words of a message, side by side."""
    starts = range(len(template) - len(message) + 1)
    windows = (template[start : start + len(message)] for start in starts)
    return any(
        any(VALUE not in have for have in window)
        and all(
            VALUE in have or have.strip(".,:;") == word.strip(",")
            for word, have in zip(message, window, strict=True)
        )
        for window in windows
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_is_one_of_the_code(message):
    assert any(is_in(message.split(), template) for template in templates()), message
