"""What lines of JSON name, against what Python's json reads of every line."""

import json
from typing import Any

import numpy as np
import pytest
from fastscore_readers.json import tokens
from fastscore_readers.json.names import NamedLines, joined_names, named_lines
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracles.jsonl import naive_scan

KEYS = ("uid", "miner")
ENDINGS = (
    '"uid":"a","miner":"m"}',
    '"uid": "a" , "miner" : "m"} ',
    '"uid":"b","miner":"m"}',
    '"uid":7,"miner":"m","rest":[1,{"uid":"z"}]}',
    '"miner":"m","x":{"miner":"n","uid":"c"},"uid":"a"}',
    '"uid":"a"}',
    '"u\\u0069d":"a","miner":"m"}',
    '"uid":"a","miner":"m"}}',
    '"uid":"\\"}","miner":null}',
)
BEGINNINGS = (
    "{",
    '{"text":"hello",',
    '{"text":"hello, you",\t',
    '{"uid":"z",',
    '{"miner":"z","uid":"z",',
    '{"nested":{"text":"x",',
    '{"list":[{"text":"x",',
    '{"list":["x",',
    '{"text":"open ,',
    '{"text":"open \\',
    '{"text":"open \\",',
    '{"text":"two","k',
    '{"number":-1.5e3,',
    '{"text":"\u00e9\u4e2d",',
    '{"text":"ends with uid","',
    "",
    "[1,",
    "x,",
)


def runs_of(data: bytes, keys: tuple[str, ...] = KEYS, line: int = 1) -> NamedLines:
    buffer = np.frombuffer(data, np.uint8)
    return named_lines(buffer, tuple(key.encode() for key in keys), line=line)


def values_of(runs: NamedLines, run: int, keys: tuple[str, ...]) -> dict[str, Any]:
    """Read the wanted values of a run's first line from their places."""
    values = {}
    for key, name in enumerate(keys):
        tag = runs.tags[key, run]
        if tag != tokens.ABSENT:
            start, end = runs.value_start[key, run], runs.value_end[key, run]
            text = runs.data[start:end].tobytes().decode()
            quoted = tag in (tokens.STRING, tokens.ESCAPED)
            values[name] = json.loads(f'"{text}"' if quoted else text)
    return values


def check_runs(data: bytes, keys: tuple[str, ...] = KEYS) -> int:
    runs = runs_of(data, keys)
    rows = [line for line in naive_scan(data) if line.status == "row"]
    inside = 0
    for run in range(runs.line.size):
        first, last = int(runs.start[run]), int(runs.last[run])
        assert first <= last
        assert run == 0 or runs.last[run - 1] < first
        members = [line for line in rows if first <= line.start <= last]
        assert members[0].start == first
        assert members[0].number == runs.line[run]
        inside += len(members)
        wanted = values_of(runs, run, keys)
        for line in members:
            assert {key: line.values[key] for key in keys if key in line.values} == wanted
    assert inside == len(rows)
    return int(runs.line.size)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    endings = draw(st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=3))
    line = st.tuples(st.sampled_from(BEGINNINGS), st.sampled_from(endings)).map("".join)
    parts = []
    for text in draw(st.lists(line, max_size=8)):
        parts += [text, draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", " \n"]))]
    data = bytearray("".join(parts).encode())
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from(b'"\\,:{}[]a\n\xff'))
    return bytes(data)


@given(logs())
@example(b"")
@example(b"\n\r")
@example(b'{"a":1,"uid":1,"miner":2}\n{"a":2,"uid":1,"miner":2}')
def test_every_line_lies_in_a_run_with_its_values(data: bytes) -> None:
    check_runs(data)


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_all_pairs_of_lines_with_one_ending(beginning: str, ending: str) -> None:
    for other in BEGINNINGS:
        check_runs(f"{other}{ending}\n{beginning}{ending}\n{other}{ending}".encode())


def test_lines_with_one_ending_are_one_run() -> None:
    lines = [f'{{"text":"{text}","uid":"a","miner":"m"}}' for text in ("x", "yy", "", "zzz" * 50)]
    lines += [line.replace('"a"', '"b"') for line in lines]
    assert check_runs("\n".join(lines).encode()) == 2


def test_keys_that_stand_first_or_not_at_all_are_read_too() -> None:
    assert check_runs(b'{"uid":"a","miner":"m"}\n' * 4) == 1
    assert check_runs(b'{"t":1,"uid":"a"}\n' * 4) == 1
    assert check_runs(b'{"t":1,"":"a"}\n' * 4, ("",)) == 1


def test_runs_of_many_blocks() -> None:
    lines = [f'{{"uid":"{row // 3000}","text":"{"x" * (row % 90)}"}}' for row in range(20_000)]
    assert check_runs("\n".join(lines).encode()) >= 7


def test_what_several_buffers_name_is_joined() -> None:
    parts = [runs_of(b'{"uid":"a","miner":1}\n{"uid":7}'), runs_of(b""), runs_of(b'{"miner":"b"}')]
    runs = joined_names(parts)
    found = [values_of(runs, run, KEYS) for run in range(runs.line.size)]
    assert found == [{"uid": "a", "miner": 1}, {"uid": 7}, {"miner": "b"}]


def test_lines_are_numbered_from_the_first_one_on() -> None:
    line = b'{"t":1,"uid":"a","miner":"m"}\n'
    runs = runs_of(line * 2 + b"\n" + line.replace(b"a", b"b"), line=5)
    assert runs.line.tolist() == [5, 8]
    assert runs.start.tolist() == [0, 2 * len(line) + 1]
    assert runs.last.tolist() == [len(line), 2 * len(line) + 1]


def check_lines(data: bytes, keys: tuple[str, ...] = KEYS) -> NamedLines:
    """Compare every line that is a valid object; no other is noted."""
    buffer = np.frombuffer(data, np.uint8)
    encoded = tuple(key.encode() for key in keys)
    found = named_lines(buffer, encoded, one_by_one=True)
    assert found.start.tolist() == found.last.tolist()
    places = {int(start): place for place, start in enumerate(found.start)}
    assert len(places) == found.line.size
    for line in naive_scan(data):
        if line.status == "row":
            place = places[line.start]
            assert found.line[place] == line.number
            expected = {key: line.values[key] for key in keys if key in line.values}
            assert values_of(found, place, keys) == expected
            del places[line.start]
    assert not places
    return found


@given(logs())
@example(b"")
@example(b"\n\r")
@example(b'{"uid" :\t"a"}\x0b\n')
@example(b'{"a":"\\u0075","uid":1}\n{"u\\u0069d":2}')
@example(b'{"a":"\\"uid","miner":"x\\"uid\\":"}')
@example(b'{"a":["uid","miner",{"uid":3}],"b":"uid"}')
def test_every_line_with_its_values(data: bytes) -> None:
    check_lines(data)


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "filling", ["", "x" * 80, '\\"uid' * 40, "\\u0075" * 20, '","uid":4,"y":"']
)
def test_long_lines_with_their_values(beginning: str, ending: str, filling: str) -> None:
    line = f"{beginning}{ending}"
    filled = f'{{"f":"{filling}",{line[1:]}'
    check_lines(f"{filled}\n{line}\n{filled}\n{filled}".encode())


def test_what_is_surely_no_object_is_not_noted() -> None:
    data = b'[{"uid":1}]\n7\n\n{"uid":1\n{"uid":2}x\n {"uid":3} \n'
    found = check_lines(data)
    assert found.line.tolist() == [6]
    assert found.data.tobytes() == b"3"


@given(st.lists(st.text(alphabet='uid"\\:,{}[] \u00e9\u4e2d', max_size=12), max_size=12), st.data())
def test_texts_full_of_what_looks_like_keys(texts: list[str], data: st.DataObject) -> None:
    values = st.recursive(
        st.sampled_from(["uid", "miner", 1, None, *texts]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["uid", "miner", "x", *texts]), inner, max_size=3)
        ),
        max_leaves=6,
    )
    objects = st.dictionaries(st.sampled_from(["uid", "miner", "y", *texts]), values, max_size=5)
    rows = data.draw(st.lists(objects, max_size=4))
    is_ascii = data.draw(st.booleans())
    lines = (json.dumps(row, ensure_ascii=is_ascii) for row in rows)
    check_lines("\n".join(lines).encode())


@pytest.mark.parametrize("key", ["", "a/b", 'a"b', "a\\b", "\u00e9", "a\tb"])
def test_keys_of_any_characters(key: str) -> None:
    rows = [json.dumps({key: 1, "a": 2}), json.dumps({key: 1}, ensure_ascii=False)]
    check_lines("\n".join(rows).encode(), ("a", key))


def test_keys_are_distinct() -> None:
    with pytest.raises(ValueError, match="distinct"):
        named_lines(np.frombuffer(b"{}", np.uint8), (b"a", b"a"))
