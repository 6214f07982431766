"""What rows show of needed columns: asked, keyed, given, words."""

import gzip
from collections import Counter
from typing import Any

import pytest

from fastscore.logs.inputs.files import InputFile
from fastscore.logs.samples.file_samples import may_follow
from fastscore.logs.samples.profile import (
    ColumnSample,
    Profile,
    add_rows,
    all_columns,
    profile_of,
    sample_of,
)
from fastscore.suites.declarations import Column, Mapped, MappedColumn, Source, Vocabulary


def counted(
    source: Source, *rows: dict[str, Any], of_cells: bool = False
) -> dict[str, ColumnSample]:
    profile = Profile()
    add_rows(rows, source, profile)
    return {
        need.place: sample_of(need, source, profile, of_cells=of_cells)
        for need in all_columns(source)
    }


def numbers(counts: ColumnSample) -> tuple[int, int, int]:
    return counts.asked, counts.keyed, counts.given


def test_a_value_of_a_type_that_reading_makes_null_is_counted_by_type():
    columns = (Column(name="n", kind="integer", otherwise="null"), Column(name="m", kind="integer"))
    row = {"n": "7", "m": "7"}
    found = counted(Source(columns=columns), row, {"n": [1], "m": 1}, {"n": 1.0}, {"n": 3})
    assert numbers(found["n"]) == (4, 4, 2)
    assert found["n"].unusable == Counter(string=1, array=1)
    assert numbers(found["m"]) == (4, 2, 2)  # a reject is a value that is there
    assert not found["m"].unusable


def test_words_are_those_that_mean_something_or_foreign():
    column = MappedColumn(
        name="event",
        kind="text",
        vocabulary=Vocabulary(known=("guess", "end", "sys_*"), needed=("guess",)),
        mapped=Mapped(words=(("prediction", "guess"), ("noise", ""))),
    )
    source = Source(columns=(column,))
    rows = [{"event": word} for word in ("end", "sys_a", "note", "note", "prediction", "noise")]
    counts = counted(source, *rows)["event"]
    assert counts.known == {"end", "sys_a", "guess"}
    assert counts.words == {"note": 2}
    # an event that is mapped to the empty word is left out
    assert numbers(counts) == (5, 5, 5)
    (need,) = all_columns(source)
    assert counts.proves(need)
    assert not counted(source, {"event": "end"})["event"].proves(need)


def test_items_are_asked_of_objects_and_a_column_of_their_name_then_is_not():
    item = Column(name="text", kind="text", aliases=("said",))
    columns = (Column(name="turns", kind="json", items=(item,)), Column(name="text", kind="text"))
    source = Source(columns=columns)
    found = counted(source, {"turns": [{"said": "a"}, {"text": None}, {}, "no object"]})
    assert numbers(found["turns[].text"]) == (3, 2, 1)
    assert numbers(found["text"]) == (0, 0, 0)
    written = counted(source, {"turns": '[{"text": "a"}]'})
    assert numbers(written["turns[].text"]) == (1, 1, 1)
    flat = counted(source, {"text": "a"})
    assert numbers(flat["turns[].text"]) == (0, 0, 0)
    assert numbers(flat["text"]) == (1, 1, 1)


def test_paths_lead_into_objects_and_elements():
    row = {"m": {"a": {"b": 1}, "n": None}, "t": [{"x": 2}, {"x": 3}], "m.c": 4, "w": '{"a": 5}'}
    keys = profile_of([row]).keys
    assert set(keys) == {"m", "m.a", "m.a.b", "m.n", "t", "t[].x", "m.c", "w", "w.a"}
    assert [keys[path].example for path in ("m.a.b", "t[].x", "m.c", "w.a")] == [1, 2, 4, 5]
    assert (keys["m.n"].nulls, keys["t"].elements, keys["t[].x"].words) == (1, 2, {"2": 1, "3": 1})
    # a column is found however deep it is
    deep = MappedColumn(name="v", kind="text", mapped=Mapped(path="a.b.c.d.e"))
    found = counted(Source(columns=(deep,)), {"a": {"b": {"c": {"d": {"e": "x"}}}}})
    assert numbers(found["v"]) == (1, 1, 1)


@pytest.mark.parametrize("compression", ["none", "gz"])
def test_a_key_with_a_value_is_found_wherever_blocks_end(compression, tmp_path, monkeypatch):
    monkeypatch.setattr("fastscore.logs.read.lines.BLOCK_BYTES", 4096)
    (need,) = all_columns(Source(columns=(Column(name="key", kind="text"),)))
    path = tmp_path / "log.jsonl"
    for before in range(4080, 4098):
        for value, is_there in (("null", False), ('"a"', True)):
            text = b" " * before + b'{"key": %s}' % value.encode() + b" " * 5000
            path.write_bytes(gzip.compress(text) if compression == "gz" else text)
            file = InputFile(str(path), "jsonl", compression, path.stat().st_size)
            assert may_follow(file, need) is is_there, (before, value)
