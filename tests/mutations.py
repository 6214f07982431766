"""Single mutations of the suites' formulas, each tried on the tests of its suite: `make mutations`.

A mutation changes one operator, comparison, constant or method of one formula. Its tests run in a
process forked from this one, which has loaded all that is not mutated, and end at the first that
fails: the mutation was noticed. One that passes them all survives: it is equal in effect and stands
in ``tests/mutations.toml`` with the reason, or tests lack and this command exits with 1.

Usage: python -m tests.mutations [--number 150] [--seed 1] [--skip 0] [--minutes 10] [--only TEXT]
                                 [--list]
"""

import ast
import contextlib
import hashlib
import importlib.machinery
import math
import os
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import click

ROOT = Path(__file__).parent.parent
SUITES = Path("fastscore") / "suites"
TABLE = Path(__file__).with_suffix(".toml")
SECONDS = 150
"""How long the tests of one mutation may run; one that makes them run longer was noticed."""

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
SWAPPED = (("min", "max"), ("minimum", "maximum"), ("any", "all"), ("first", "last"))
SWAPPED += (("is_null", "is_not_null"), ("floor", "ceil"), ("logical_and", "logical_or"))
SWAPPED += (("min_horizontal", "max_horizontal"),)
METHODS = {"sum": "max", "mean": "sum", "cumsum": "cumprod"}
METHODS |= {one: other for pair in SWAPPED for one, other in (pair, pair[::-1])}
SHOWN = (ast.BinOp, ast.BoolOp, ast.Compare, ast.Call, ast.Subscript, ast.IfExp, ast.Tuple)
"""Nodes shown for a mutation: the innermost of these around it."""
UNCHANGED = {"strict", "maintain_order", "slots", "frozen", "dtype", "copy", "rechunk", "how"}
"""Keywords that ask for checks, order and layout, not for a formula."""
COMPILED = {"kernel", "always_inlined", "instruction"}
"""Decorators of functions that are compiled into kernels."""


@dataclass(frozen=True)
class Mutation:
    """One change of one formula."""

    module: str
    line: int
    function: str
    before: str
    after: str
    column: int

    @property
    def name(self) -> tuple[str, str, str]:
        """What stands in the table of those that are equal in effect."""
        return f"{self.module}: {self.function}", self.before, self.after

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.before}  ->  {self.after}"


def changes(node: ast.AST) -> list[tuple[str, Any]]:
    """Return the field of a node that a mutation changes and its value then, for each mutation."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS:
            return [("op", OPERATORS[type(op)]())]
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            return [("ops", [OPERATORS[type(op)]()])]
        case ast.UnaryOp(op=ast.USub()):
            return [("op", ast.UAdd())]
        case ast.UnaryOp(op=ast.Invert() | ast.Not() as op, operand=operand):
            return [("operand", ast.UnaryOp(op, operand))]
        case ast.Constant(value=bool(value)):
            return [("value", not value)]
        case ast.Constant(value=int(value) | float(value)):
            return [("value", value + 1)]
        case ast.Attribute(attr=attr) if attr in METHODS:
            return [("attr", METHODS[attr])]
    return []


def is_compiled(function: ast.FunctionDef) -> bool:
    """Tell whether a function is compiled into a kernel, where a mutation has no effect."""
    named = (each.func if isinstance(each, ast.Call) else each for each in function.decorator_list)
    return any(isinstance(each, ast.Name) and each.id in COMPILED for each in named)


def formulas(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Walk what computes: each node with its function and what is shown of it."""

    def walk(
        node: ast.AST, function: str, shown: ast.AST
    ) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, (ast.Raise, ast.JoinedStr)):
                    continue
                if isinstance(child, ast.keyword) and child.arg in UNCHANGED:
                    continue
                if isinstance(child, ast.FunctionDef) and is_compiled(child):
                    continue
                inner = function
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    inner = f"{function}.{child.name}".lstrip(".")
                context = child if isinstance(child, SHOWN) else shown
                if not isinstance(context, ast.expr):
                    context = child if isinstance(child, ast.expr) else shown
                yield inner, child, context
                yield from walk(child, inner, context)

    yield from walk(tree, "", tree)


def mutants(module: str) -> Iterator[tuple[Mutation, ast.Module]]:
    """Make every mutation of a module in turn; the tree holds it until the next is asked for."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    sites = [
        (function, node, shown, *change)
        for function, node, shown in formulas(tree)
        for change in changes(node)
    ]
    for function, node, shown, field, value in sites:
        original, before = getattr(node, field), one_line(shown)
        setattr(node, field, value)
        place = node.lineno, node.col_offset
        yield Mutation(module, place[0], function, before, one_line(shown), place[1]), tree
        setattr(node, field, original)


def one_line(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def load_mutated(mutation: Mutation) -> None:
    """Have this process import the mutated module where it imports the module."""
    path = str(ROOT / mutation.module)
    made = next(tree for other, tree in mutants(mutation.module) if other == mutation)
    code = compile(ast.fix_missing_locations(made), path, "exec")
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        return code if self.get_filename(fullname) == path else original(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def run_tests(mutation: Mutation | None, tests: list[str], folder: Path) -> int:
    """Run tests in this process until one fails; return pytest's exit code."""
    import pytest
    from hypothesis import Phase, settings

    # a failure is enough: nothing is shrunk or remembered; the same examples each time
    settings.register_profile(
        "mutations",
        phases=(Phase.explicit, Phase.generate),
        database=None,
        derandomize=True,
        deadline=None,
    )
    settings.load_profile("mutations")
    if mutation:
        load_mutated(mutation)
    return pytest.main(
        [
            *("-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-m", "not slow"),
            *("--basetemp", str(folder / "tests"), *tests),
        ]
    )


def fails(mutation: Mutation | None, tests: list[str], folder: Path) -> str:
    """Run tests in a fork; return how they ended: passed, failed, or too slow."""
    # what has threads is loaded by each fork for itself; modules are shared
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            os._exit(int(run_tests(mutation, tests, folder)))
        except BaseException:
            os._exit(70)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "too slow"


def chosen(
    formulas_of: dict[str, dict[str, list[str]]], number: int, seed: int, only: str
) -> list[tuple[Mutation, list[str]]]:
    """Choose mutations by the hashes of what they change: of other formulas than those that were
    edited, the same ones again.
    """
    found = [
        (mutation, suite["tests"])
        for suite in formulas_of.values()
        for module in suite["modules"]
        for mutation, _ in mutants(str(SUITES / module))
        if only in str(mutation)
    ]

    def rank(each: tuple[Mutation, list[str]]) -> str:
        return hashlib.sha256(f"{seed} {each[0].name}".encode()).hexdigest()

    return sorted(found, key=rank)[:number]


@click.command()
@click.option("--number", default=150, show_default=True, help="How many mutations.")
@click.option("--seed", default=1, show_default=True)
@click.option("--skip", default=0, help="How many of them were tried before.")
@click.option(
    "--minutes", default=math.inf, help="Begin none later; the last line says how to go on."
)
@click.option("--only", default="", help="Only mutations whose line below contains this text.")
@click.option("--list", "listed", is_flag=True, help="List them and run nothing.")
def main(number: int, seed: int, skip: int, minutes: float, only: str, listed: bool) -> None:
    """Try mutations of the suites' formulas; exit 1 if one survives that is not in the table."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    equal = {(each["place"], each["before"], each["after"]) for each in table["equal"]}
    tried = chosen(table["suites"], number, seed, only)[skip:]
    if listed:
        for mutation, _ in tried:
            click.echo(mutation)
        return
    for name in ("faiss", "hypothesis", "numpy", "onnxruntime", "orjson", "polars", "pyarrow"):
        importlib.import_module(name)
    importlib.import_module("fastscore_kernels")
    ended: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for tests in {tuple(tests): tests for _, tests in tried}.values():
            if fails(None, tests, Path(folder)) != "passed":
                sys.exit(f"Tests fail as it is\n{Path(folder, 'output.txt').read_text()}")
        for mutation, tests in tried:
            if time.monotonic() - started > minutes * 60:
                break
            how = fails(mutation, tests, Path(folder))
            if how == "passed":
                how = "equal in effect" if mutation.name in equal else "survived"
            ended[how] += 1
            click.echo(f"{how}: {mutation}" if how != "failed" else ".", nl=how != "failed")
    counts = ", ".join(f"{count} {how}" for how, count in sorted(ended.items()))
    seconds = time.monotonic() - started
    click.echo(f"\nseed {seed}: {ended.total()} mutations in {seconds:.0f} s: {counts}")
    if ended.total() < len(tried):
        click.echo(f"{len(tried) - ended.total()} left: go on with --skip {skip + ended.total()}")
    sys.exit(ended["survived"] > 0)


if __name__ == "__main__":
    main()
