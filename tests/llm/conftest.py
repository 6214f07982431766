"""Fixtures of all tests of chat models."""

from collections.abc import Iterator

import pytest

from fastscore.wording import command_line_words


@pytest.fixture(autouse=True)
def command_line() -> Iterator[None]:
    """Messages name flags: the verbs of chat models are those of the command line."""
    with command_line_words():
        yield
