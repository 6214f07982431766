"""The suite by which most logs of chats are scored."""

import pytest

from tests.logs.chats import options_of


@pytest.fixture
def options(tmp_path):
    return options_of("preference_shift", tmp_path)
