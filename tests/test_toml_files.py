"""TOML files of users: invalid ones are named, for any fault."""

import pytest

from fastscore.errors import UsageError
from fastscore.settings.options import parse_toml


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", "x.toml: not TOML: "),
        (b"a = 1\na = 2", "x.toml: not TOML: "),
        (b"\xff", "x.toml: not TOML: "),
        (b"a = " + b"[" * 100_000 + b"]" * 100_000, "x.toml: nested too deeply"),
    ],
)
def test_what_is_none_is_refused_by_name(content, message):
    with pytest.raises(UsageError, match=message):
        parse_toml(content, "x.toml")
