"""Suites are found by name, and refused where their tables cannot be told by dialogue."""

from dataclasses import replace
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.suites import registry
from fastscore.suites.declarations import OutputColumn, Table

TURNS = Table(
    name="turns",
    grain="a turn",
    columns=tuple(
        OutputColumn(name=name, dtype=pl.String(), description="A name.")
        for name in ("file", "dialogue")
    ),
    dialogue_key=("file", "dialogue"),
)
DIALOGUES = replace(TURNS, name="dialogues", grain="a dialogue")


def loaded(monkeypatch: pytest.MonkeyPatch, *tables: Table) -> object:
    suite = SimpleNamespace(name="short", tables=tables)
    monkeypatch.setattr(EntryPoint, "load", lambda self: suite)
    point = EntryPoint("short", "short:SUITE", registry.GROUP)
    monkeypatch.setattr(registry, "_entries", lambda: {"short": point})
    return registry.load_suite("short")


def test_tables_with_the_columns_of_their_keys_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(monkeypatch, TURNS, DIALOGUES)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            (TURNS, replace(DIALOGUES, dialogue_key=("file", "line", "dialogue"))),
            r"Suite 'short': table 'dialogues' has no column 'line', which the `dialogue_key` of "
            r"table 'dialogues' names; expected 'file', 'line', 'dialogue' among its columns\.",
        ),
        (
            (TURNS, replace(DIALOGUES, columns=TURNS.columns[1:], dialogue_key=("dialogue",))),
            r"table 'dialogues' has no column 'file', which the `dialogue_key` of table 'turns'",
        ),
    ],
)
def test_a_table_without_a_column_of_a_key_is_refused(
    monkeypatch: pytest.MonkeyPatch, tables: tuple[Table, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        loaded(monkeypatch, *tables)
