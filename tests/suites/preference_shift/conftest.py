"""The catalogue that tests of the suite score against."""

from pathlib import Path

import pytest

from tests.suites.preference_shift.conversing import write_catalogue


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    return write_catalogue(tmp_path)
