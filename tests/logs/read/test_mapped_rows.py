"""Columns that are mapped, against the same rows written as the suite has them."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.errors import UsageError
from fastscore.logs.inputs import layout
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, column_map, map_source, parse_map
from fastscore.logs.inputs.layout import load_layout
from fastscore.logs.read.rows import join_parts
from fastscore.logs.score_input import ScoreInput
from fastscore.settings.extras import EntryPoint
from fastscore.suites.registry import load_suite
from tests.conftest import often
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of

Row = dict[str, Any]
FORMATS = ("jsonl", "parquet")
EVENTS = {"guess": "predicted", "done": "utterance_complete"}
PATHS = {
    "event": "meta.kind",
    "dialogue_uid": "meta.uid.name",
    "utterance_index": "at.u",
    "step": "at.s",
    "prediction": "said.guess",
    "ground_truth": "said.true",
}


def lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path: Path, suite: str, columns: ColumnMap = NO_MAP, **more: Any) -> pl.DataFrame:
    return read_all(path, suite, columns, **more)[0]


def read_all(
    path: Path, suite: str, columns: ColumnMap = NO_MAP, **more: Any
) -> tuple[pl.DataFrame, pl.DataFrame]:
    source = map_source(load_suite(suite).source, columns)
    return read_of(plan_of(path.parent, path, source=source, **more), source)[:2]


def written(path: Path, rows: list[Row]) -> Path:
    if path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path)
    else:
        path.write_text(lines(rows))
    return path


texts = st.text(max_size=6) | st.sampled_from(
    ['a "b"', "é\\u00e9", "\\", "user", "\u2028", "{}[],:"]
)


@settings(
    max_examples=often(25, 400),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["guess", "done"]), texts, st.integers(0, 3), st.integers(0, 2)),
        min_size=1,
        max_size=8,
    ),
    shard_bytes=st.sampled_from([1, 1 << 20]),
    format=st.sampled_from(FORMATS),
)
def test_nested_columns_are_read_as_if_they_stood_at_the_top(tmp_path, rows, shard_bytes, format):
    rows = sorted(rows, key=lambda row: row[3])
    ours = [
        dict(zip(PATHS, (EVENTS[event], f"d{dialogue}", 0, step, text, text), strict=True))
        for event, text, step, dialogue in rows
    ]
    theirs = [
        {
            "meta": {"kind": event, "uid": {"name": row["dialogue_uid"]}},
            "at": {"u": 0, "s": row["step"]},
            "said": {"guess": text, "true": text},
        }
        for row, (event, text, *_) in zip(ours, rows, strict=True)
    ]
    columns = column_map(PATHS, {"event": EVENTS})
    path = written(tmp_path / f"a.{format}", theirs)
    found = read(path, "score_dialogue", columns, shard_bytes=shard_bytes)
    expected = read(written(tmp_path / f"b.{format}", ours), "score_dialogue")
    assert found.drop("file", "byte_offset").equals(expected.drop("file", "byte_offset"))


@pytest.mark.parametrize("format", FORMATS)
def test_elements_of_arrays_become_rows(tmp_path, format):
    chats = [
        {"conversation_id": "c1", "messages": [{"role": "user", "content": "hi"}]},
        {
            "conversation_id": None,
            "messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}],
        },
    ]
    path = written(tmp_path / f"log.{format}", chats)
    frame = read(path, "guest_simulation", load_layout("openai").of("guest_simulation"))
    assert frame.select("line", "conversation_id", "role", "content").rows() == [
        (1, "c1", "guest", "hi"),
        (2, None, "assistant", "a"),
        (2, None, "guest", "b"),
    ]


def test_an_array_of_a_document_has_the_keys_of_its_column(tmp_path):
    messages = [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    (tmp_path / "log.json").write_text(json.dumps([{"messages": messages}]))
    columns = column_map({"turns": "messages", "speaker": "role", "utterance": "content"})
    frame = read(tmp_path / "log.json", "group_travel", columns)
    assert json.loads(frame["turns"][0])[1] == {"speaker": "user", "utterance": "b"}


def test_a_row_without_the_array_is_a_reject(tmp_path):
    rows: list[Row] = [
        {"messages": [{"role": "user", "content": "hi"}]},
        {"messages": "none"},
        {"other": 1},
    ]
    path = written(tmp_path / "log.jsonl", rows)
    frame, rejects = read_all(
        path, "guest_simulation", load_layout("openai").of("guest_simulation")
    )
    assert frame.height == 1
    told = rejects.select("line", "field", "reason", "found", "expected").rows()
    assert told == [
        (2, "messages", "wrong_type", 'string "none"', "an array of rows"),
        (3, "messages", "missing_field", "absent", "an array of rows"),
    ]


def test_a_key_with_a_dot_is_a_key_first(tmp_path):
    rows: list[Row] = [
        {"conversation_id": "c", "meta.role": "agent", "content": "x"},
        {"conversation_id": "c", "meta.role": "guest", "content": "y"},
    ]
    for name in ("log.csv", "log.jsonl", "log.parquet"):
        path = written(tmp_path / name, rows)
        frame = read(path, "guest_simulation", column_map({"role": "meta.role"}))
        assert frame["role"].to_list() == ["agent", "guest"]


def test_json_in_cells_is_followed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('conversation_id,meta,content\nc,"{""role"": ""agent""}",x\nc,,y\nc,{bad,z\n')
    frame = read(path, "guest_simulation", column_map({"role": "meta.role"}))
    assert frame["role"].to_list() == ["agent", None, None]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_cell_that_is_no_array_of_rows_is_a_reject(tmp_path, suffix):
    turns = json.dumps([{"role": "user", "content": "Hi"}])
    frame = pl.DataFrame({"id": ["a", "b", "c"], "log": [turns, turns[:-3], turns]})
    path = tmp_path / f"log{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    columns = {"turns": "log", "speaker": "role", "text": "content"}
    found, rejects = read_all(path, "guest_simulation", column_map(columns))
    assert found["conversation_id"].to_list() == ["a", "c"]
    place = 3 if suffix == ".csv" else 2  # a line, or a row
    assert rejects.select("line", "field", "reason").rows() == [(place, "log", "missing_field")]


def test_frames_and_rows_are_mapped_alike(tmp_path):
    rows: list[Row] = [
        {"messages": [{"role": "user", "content": "a"}, {"role": "x", "content": "b"}]}
    ]
    columns = load_layout("openai").of("guest_simulation")
    source = map_source(load_suite("guest_simulation").source, columns)
    expected = read(written(tmp_path / "log.jsonl", rows), "guest_simulation", columns)
    for held in (rows, pl.DataFrame(rows)):
        found = join_parts(ScoreInput.of(held).read(source), source).frame
        assert found.select("role", "content").equals(expected.select("role", "content"))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"txt": "content"}, "There is no column 'txt' to map. Did you mean 'text'?"),
        ({"text": ""}, "mapped to the path ''"),
        ({"text": "a[].b[].c"}, "mapped to the path 'a[].b[].c'"),
        ({"text": "a[0].b"}, "mapped to the path 'a[0].b'"),
        ({"session_id": "turns[].id"}, "The suite's own array is 'conversation'"),
    ],
)
def test_maps_that_lead_nowhere(columns, said):
    with pytest.raises(UsageError) as caught:
        map_source(load_suite("preference_shift").source, column_map(columns))
    assert said in str(caught.value)


def test_values_are_of_text_columns():
    with pytest.raises(UsageError, match="holds no words"):
        map_source(load_suite("score_dialogue").source, column_map(values={"step": {"a": "b"}}))
    with pytest.raises(UsageError, match="expected COLUMN:FROM=TO"):
        parse_map([], ["speaker"])
    with pytest.raises(UsageError, match="expected NAME=PATH"):
        parse_map(["speaker"], [])


def test_a_dialogues_name_stands_beside_its_rows():
    columns = column_map({"role": "m[].role", "conversation_id": "m[].id"})
    with pytest.raises(UsageError, match="names a whole dialogue"):
        map_source(load_suite("guest_simulation").source, columns)
    columns = column_map({"role": "m[].role", "content": "n[].text"})
    with pytest.raises(UsageError, match="the elements of one array"):
        map_source(load_suite("guest_simulation").source, columns)


def test_what_is_mapped_stands_in_the_signature():
    columns = parse_map(["text=a.b", "speaker=turns[].x|y"], ["speaker:me=USER"])
    assert columns.signed == ("columns=speaker=turns[].x%7Cy,text=a.b", "values=speaker:me:USER")
    assert NO_MAP.signed == ()
    assert (columns | parse_map(["text=c"], [])).columns == (
        ("text", "c"),
        ("speaker", "turns[].x|y"),
    )


def test_packages_add_layouts_by_entry_points(tmp_path, monkeypatch):
    path = tmp_path / "shop.toml"
    path.write_text('title = "Shop"\n[columns]\ntext = "said"\n')

    class Entry:
        name, value = "shop", "shop.layouts:SHOP"

        def load(self) -> str:
            return str(path)

    monkeypatch.setattr(layout, "entry_points", lambda group: [Entry()])
    layout._places.cache_clear()
    try:
        assert {"openai", "sharegpt", "shop"} <= set(layout.layout_names())
        assert load_layout("shop").of("preference_shift").columns == (("text", "said"),)
        monkeypatch.setattr(Entry, "name", "openai")
        layout._places.cache_clear()
        with pytest.raises(UsageError, match="Two layouts are called 'openai'"):
            layout.layout_names()
        wrong = EntryPoint("shop", "no_such_package/shop.toml")
        monkeypatch.setattr(layout, "entry_points", lambda group: [wrong])
        with pytest.raises(UsageError, match=r"layout shop: no_such_package/shop.toml cannot be"):
            layout.layout_names()
    finally:
        layout._places.cache_clear()


def test_a_layout_is_a_file_that_anybody_can_write(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "Mine"\n[columns]\ntext = "said"\n[preference_shift.columns]\nspeaker = "who"\n'
    )
    found = load_layout(str(path))
    assert found.of("preference_shift").columns == (("text", "said"), ("speaker", "who"))
    assert found.of("group_travel").columns == (("text", "said"),)
    with pytest.raises(UsageError, match="does not score chats"):
        map_source(load_suite("memory_finance").source, load_layout("openai").of("memory_finance"))
    with pytest.raises(UsageError, match="Did you mean 'openai'"):
        load_layout("openia")
    for wrong, said in (
        ("a = [", "not TOML"),
        ("title = 1", "a layout has a title"),
        ("[columns]\ntext = 3", "expected a path"),
        ("[preference_shift]\ncolumn = {}", "unknown table 'column'"),
        ("preference_shift = 3", "expected a table"),
    ):
        path.write_text(wrong)
        with pytest.raises(UsageError, match=said):
            load_layout(str(path))
    with pytest.raises(UsageError, match="cannot be read"):
        load_layout(str(tmp_path / "none.toml"))


def test_a_suite_whose_rows_are_dialogues_joins_none():
    columns = ColumnMap(chat_options=(("dialogue", "session"),))
    with pytest.raises(UsageError, match="each row of this suite is a dialogue"):
        map_source(load_suite("memory_finance").source, columns)
