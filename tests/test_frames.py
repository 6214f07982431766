"""Data in memory are scored like an equal log on disk."""

from datetime import date
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.logs.inputs.frames import as_frame
from tests.by_keywords import score_by_keywords
from tests.conftest import write_lines
from tests.run.logs import utterance
from tests.suites.memory_finance.tracing import dialog, turn
from tests.suites.preference_shift.conversing import exchange, write_catalogue

CONVERSATIONS = [
    {
        "session_id": "s1",
        "model_name": "m",
        "conversation": exchange("I like Drama", "Her is a Drama", "now Horror Film", "Alien"),
        "shift_events": [{"turn": 2}],
    },
    {
        "session_id": "s2",
        "model_name": "m",
        "conversation": exchange("Heat", "Al Pacino and Heat", "something else", "no"),
        "shift_events": [],
    },
]


def test_rejects_beyond_the_maximum_return_nothing_in_memory(tmp_path):
    """In memory nothing is kept of a refused run; a folder has the others."""
    logs = [dialog(turn(), dialog_id="a"), dialog("no turn", dialog_id="b")]
    with pytest.raises(InputError, match="nothing is returned unless max_rejects is 1") as refused:
        fastscore.score(logs, "memory_finance")
    assert "the others are scored" not in str(refused.value)
    with pytest.warns(fastscore.RejectsWarning):
        run = fastscore.score(logs, "memory_finance", max_rejects=1)
    assert run.tables["turns"].height == 1
    assert run.rejects.height == 1
    with pytest.raises(InputError, match="the others are scored"):
        fastscore.score(logs, "memory_finance", output=tmp_path / "run")
    assert fastscore.open_run(tmp_path / "run").tables["turns"].height == 1


class Dataset:
    """A dataset that writes itself as polars, as the Hugging Face library's do."""

    def __init__(self, rows):
        self.rows = rows

    def to_polars(self):
        return pl.DataFrame(self.rows)


def nested(rows):
    return pl.DataFrame(rows)


def reader(rows):
    return pa.RecordBatchReader.from_batches(
        pa.Table.from_pylist(rows).schema, pa.Table.from_pylist(rows).to_batches()
    )


def pandas(rows):
    return pytest.importorskip("pandas").DataFrame(rows)


FORMS = {
    "polars": nested,
    "lazy": lambda rows: pl.LazyFrame(rows),
    "table": pa.Table.from_pylist,
    "batch": lambda rows: pa.RecordBatch.from_pylist(rows),
    "reader": reader,
    "pandas": pandas,
    "dataset": Dataset,
    "dicts": list,
}


def without_places(frame):
    return frame.drop("file", "line", strict=False)


@pytest.mark.parametrize("form", FORMS)
def test_nested_frames_score_as_their_log_does(tmp_path, form):
    options = {"catalogue": write_catalogue(tmp_path), "embedder": "none", "segments": "metadata"}
    log = write_lines(tmp_path / "log.jsonl", CONVERSATIONS)
    expected = score_by_keywords(log, "preference_shift", **options)
    found = score_by_keywords(FORMS[form](CONVERSATIONS), "preference_shift", **options)
    assert found.signature == expected.signature
    assert found.summary.equals(expected.summary)
    for name, table in expected.tables.items():
        assert without_places(found.tables[name]).equals(without_places(table)), name
    assert set(found.tables["dialogues"]["file"]) == {"frame"}


@pytest.mark.parametrize("form", ["reader", "dicts"])
def test_a_frame_is_scored_into_a_run(tmp_path, form):
    options = {"catalogue": write_catalogue(tmp_path), "embedder": "none", "segments": "metadata"}
    scores = score_by_keywords(FORMS[form](CONVERSATIONS), "preference_shift", **options)
    for _ in range(2):  # the second time all is done
        run = score_by_keywords(
            FORMS[form](CONVERSATIONS), "preference_shift", output=tmp_path / "run", **options
        )
        assert [entry["name"] for entry in run.manifest.inputs] == ["frame"]
        for name, table in scores.tables.items():
            assert run.scan(name).collect().equals(table), name
    assert "work" not in {path.name for path in (tmp_path / "run").iterdir()}


def test_empty_structs_are_objects():
    traces = [dialog(turn("ok"), profile_gt={}), dialog(turn("ok"), profile_gt={}, dialog_id="e")]
    frame = pl.DataFrame(traces)
    assert frame.schema["profile_gt"] == pl.Struct([])
    scores = fastscore.score(frame, "memory_finance")
    assert scores.rejects.is_empty()
    assert scores.tables["dialogues"].height == 2


EVENTS = utterance("hello", "hello")


def test_missing_integers_of_pandas_are_null():
    frame = pandas(EVENTS)
    assert str(frame["step"].dtype) == "float64"
    scores = fastscore.score(frame, fastscore.ScoreDialogue(lex_weight=1.0))
    assert scores.tables["steps"]["step"].to_list() == [0]
    assert scores.rejects.is_empty()


def test_doubles_are_integers_where_they_are_whole():
    frame = pl.DataFrame({"session_id": [1.0, None, 2.5], "conversation": ["[]"] * 3})
    rows = fastscore.scan(frame, "preference_shift")
    with pytest.warns(fastscore.RejectsWarning, match="field session_id: wrong_type"):
        assert rows.select("session_id").collect().rows() == [("1",), (None,)]


def test_dicts_keep_what_columns_cannot():
    """Values of several types in one field, and objects with keys of their own."""
    rows = [
        {"dialog_id": 7, "turns": [turn("a")], "valid_dialog": True},
        {"dialog_id": "x", "turns": None, "valid_dialog": 1, "profile_gt": {"a": {}}},
        {"dialog_id": 2**70, "turns": "\ud800"},
        {"dialog_id": [1]},
    ]
    read = fastscore.scan(rows, "memory_finance")
    with pytest.warns(fastscore.RejectsWarning):
        found = read.select("line", "dialog_id", "profile_gt", "byte_offset").collect()
    assert found.rows() == [
        (1, "7", None, None),
        (2, "x", '{"a":{}}', None),
        (3, str(2**70), None, None),
    ]
    rejects = fastscore.scan(rows, "memory_finance", rejects=True).collect()
    assert rejects.select("file", "line", "byte_offset", "field").rows() == [
        ("frame", 4, None, "dialog_id")
    ]


def test_messages_name_the_frames_column(tmp_path):
    bad = [
        (
            pl.DataFrame([{**event, "utterance_index": date(2026, 1, 1)} for event in EVENTS]),
            "score_dialogue",
            "frame: the column 'utterance_index' is of type Date",
        ),
        (
            pl.DataFrame({"turns": [[b"x"]], "valid_dialog": [True]}),
            "memory_finance",
            "frame: the column 'turns' is of type List.Binary",
        ),
        (
            [{**EVENTS[0], "note": {1, 2}}],
            "score_dialogue",
            "frame:1: the row cannot be written as JSON",
        ),
        (
            [EVENTS[0], {**EVENTS[0], "note": reduce(lambda inner, _: [inner], range(5000), [])}],
            "score_dialogue",
            "frame:2: the row cannot be written as JSON: maximum recursion depth",
        ),
        ({"train": pl.DataFrame(EVENTS)}, "score_dialogue", "a dict with the keys 'train'"),
        (7, "score_dialogue", "of type int; expected a path, paths, a frame or rows"),
    ]
    for given, suite, message in bad:
        options = {"lex_weight": 1.0} if suite == "score_dialogue" else {}
        with pytest.raises((InputError, UsageError), match=message) as raised:
            score_by_keywords(given, suite, embedder="none", **options)
        assert "parquet" not in str(raised.value).lower()
        assert "/tmp" not in str(raised.value)


def test_a_column_that_pandas_has_twice_is_named():
    frame = pandas([{"event": "predicted", "step": 0}])
    with pytest.raises(InputError, match=r"has several columns 'step'\. Rename or drop"):
        fastscore.score(frame[["event", "step", "step"]], "score_dialogue")


def test_mixed_types_of_pandas_are_told(tmp_path):
    frame = pandas([{"turns": [1]}, {"turns": "x"}, {"turns": {"a": 1}}])
    with pytest.raises(InputError, match=r"cannot be read as Arrow.*list of dicts"):
        fastscore.score(frame, "memory_finance")


def views(*places):
    """Views (length, first four bytes, buffer, offset) of one buffer of 16 bytes."""
    written = pa.py_buffer(np.array(places, np.int32).tobytes())
    data = pa.py_buffer(b"aaaabbbbccccdddd")
    return pa.Array.from_buffers(pa.string_view(), len(places), [None, written, data])


A = int.from_bytes(b"aaaa", "little")
OF_LATIN_1 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"d\xe9j")]
)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (OF_LATIN_1, "UTF8"),
        (pa.ListArray.from_arrays([0, 1], OF_LATIN_1), "UTF8"),
        (pa.StructArray.from_arrays([OF_LATIN_1], ["content"]), "UTF8"),
        (views((16, A, 5, 0)), "buffer 5"),
        (views((16, A, 0, 9)), "range|data buffer|out of bounds"),
    ],
)
def test_a_frame_that_breaks_its_types_is_refused(column, found):
    for given in (pa.table({"turns": column}), pa.table({"turns": column}).to_reader()):
        with pytest.raises(InputError, match=rf"frame: the column 'turns'(.|\n)*({found})"):
            fastscore.score(given, "memory_finance")


def test_a_frame_that_keeps_its_types_is_taken_as_it_is():
    given = pa.table({"turns": pa.chunked_array([views((16, A, 0, 0)), views((4, A, 0, 0))])})
    taken = as_frame(given)
    assert taken["turns"].to_list() == ["aaaabbbbccccdddd", "aaaa"]


def test_a_named_index_of_pandas_is_read_as_columns():
    frame = pandas(
        [
            {"dialogue_uid": f"d{n}", "event": "predicted", "step": 0, "prediction": "tea"}
            for n in range(3)
        ]
    )
    by_index = (
        frame.set_index("dialogue_uid"),
        frame.set_index(["event", "dialogue_uid"]),
        frame.set_index("dialogue_uid", drop=False),
        frame.set_index(["dialogue_uid", frame.index]),
        frame.groupby("dialogue_uid").first(),
    )
    for given in by_index:
        taken = as_frame(given)
        assert taken.select(frame.columns).equals(pl.DataFrame(frame))
    assert as_frame(frame[1:]).columns == list(frame.columns)
