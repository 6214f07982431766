"""Output of benchmarks: one table, a record, its page, and two records side by side."""

import importlib

import pytest

from benchmarks.__main__ import BENCHMARKS, PAGE, RECORD, page, read_record
from benchmarks.embedding import Shape


def test_the_page_of_figures_is_that_of_its_record():
    assert PAGE.read_text(encoding="utf-8") == page(read_record(RECORD), BENCHMARKS), (
        "docs/benchmarks_figures.md: write it anew with `python -m benchmarks page`"
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_finds_what_it_imports_of_ours(name):
    module, *subcommand = BENCHMARKS[name].command.split()
    try:
        command = importlib.import_module(f"benchmarks.{module}").main
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("benchmarks", "fastscore", "tests")):
            raise
        pytest.skip(f"needs {error.name}, of the extra bench")
    assert not subcommand or subcommand[0] in command.commands


def test_operations_of_a_model_by_hand():
    shape = Shape(layers=2, hidden=3, inner=5)
    # a layer's weights: 4 x 3 x 3 + 2 x 3 x 5 = 66 multiplications and additions a token;
    # attention: each token with each, 3 components, scores and mixing
    one_text_of_4 = 2 * (2 * 66 * 4 + 2 * 2 * 3 * 4 * 4)
    assert shape.operations([4]) == one_text_of_4
    assert shape.operations([4, 4]) == 2 * one_text_of_4
