"""What the readers may cost: lines of code, and parameters of a parser."""

import inspect
from pathlib import Path

import fastscore_readers
import pytest
from fastscore_machine.compiling import declared_kernels

MOST_LINES = 3_500
MOST_PARAMETERS = 8


def test_all_parsing_is_small() -> None:
    folder = Path(fastscore_readers.__file__).parent
    lines = {path: len(path.read_text().splitlines()) for path in folder.rglob("*.py")}
    assert sum(lines.values()) <= MOST_LINES
    assert max(lines.values()) <= 400


def test_no_parser_takes_more_than_eight_parameters() -> None:
    kernels = [each for each in declared_kernels() if each.identity.startswith("fastscore_readers")]
    if not kernels:
        pytest.skip("nothing is compiled")
    for kernel in kernels:
        assert len(inspect.signature(kernel.function).parameters) <= MOST_PARAMETERS, kernel
