"""One vocabulary of reject reasons: the suites' and the readers', as documented."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import fastscore.suites
from fastscore.statistics.clustered import EstimateReason
from fastscore.suites.declarations import NULL_REASONS, REJECT_REASONS

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = DOCS / "formats.md"
SUITES = Path(fastscore.suites.__file__).parent


def named_reasons(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that code puts into a column, a key or an argument called ``reason``."""
    for node in ast.walk(tree):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.keyword) and node.arg == "reason":
            values = [node.value]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            values = [
                value for key, value in zip(keys, node.values, strict=True) if key == "reason"
            ]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_column = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            if node.func.attr == "alias" and of_column == ["reason"]:
                values = [node.func.value]
        for value in values:
            for inner in ast.walk(value) if value is not None else ():
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.value


def reasons_in(*, analyses: bool) -> set[tuple[str, str]]:
    """Return the reasons that suites' modules name, of their analyses or of all else."""
    return {
        (path.name, reason)
        for path in SUITES.rglob("*.py")
        if ("analysis" in path.parts) == analyses
        for reason in named_reasons(ast.parse(path.read_text()))
    }


def test_suites_name_only_reasons_of_the_vocabulary() -> None:
    found = reasons_in(analyses=False)
    # those of the suites that are known to write some by hand: the scan sees them
    assert {
        ("events.py", "unpaired_turn"),
        ("events.py", "out_of_range"),
        ("turns.py", "missing_field"),
    } <= found
    # those of estimates are why a summary's mean has no interval
    allowed = {*REJECT_REASONS, *NULL_REASONS, *get_args(EstimateReason)}
    assert [each for each in sorted(found) if each[1] not in allowed] == []


def test_analyses_name_reasons_of_statistics_that_their_page_explains() -> None:
    found = reasons_in(analyses=True)
    page = (DOCS / "analysis.md").read_text()
    assert ("tables.py", "mixes_models") in found
    assert [each for each in sorted(found) if f"`{each[1]}`" not in page] == []


def test_every_reason_stands_in_the_documentation() -> None:
    section = FORMATS.read_text().split("\n## Rejects\n")[1].split("| Column |")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    documented = [reason for cell in cells for reason in re.findall(r"`(\w+)`", cell)]
    assert sorted(documented) == sorted(REJECT_REASONS)
