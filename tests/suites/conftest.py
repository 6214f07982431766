"""The shipped example of every suite, scored once a session, in any process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import alone
from tests.suites.golden.numbers import score_example


@pytest.fixture(scope="session")
def example_run(store: Path) -> Callable[[str], Path]:
    """Return what gives the run of a suite's example: no test may change it."""

    def of_suite(suite: str) -> Path:
        folder = store.with_name("examples") / suite
        with alone(folder) as is_made:
            return folder / "run" if is_made else score_example(suite, folder)

    return of_suite
