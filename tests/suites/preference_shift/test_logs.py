"""Reading conversations: pairs, merged speakers, names, and rejects."""

import json

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastscore
from fastscore.suites.declarations import PARTIAL_REJECTS
from fastscore.suites.preference_shift import SUITE, PreferenceShift
from tests.conftest import fastscore_command, often, write_lines
from tests.oracles.preference_shift import pair_turns
from tests.suites.preference_shift.conversing import (
    exchange,
    log,
    options,
    raw_frame,
    read,
    system,
    user,
)


def texts(events):
    return events.frames["turns"].select("user_text", "system_text").rows()


def test_a_label_may_be_the_number_of_a_user(catalogue):
    logs = [log(*exchange("a", "b")) | {"true_genre": genre} for genre in ("drama", 17, 3.2, None)]
    logs = [one | {"session_id": str(at)} for at, one in enumerate(logs)]
    run = fastscore.score(logs, options(catalogue), embedder=None)
    assert run.tables["dialogues"]["true_genre"].to_list() == ["drama", "17", None, None]
    assert run.rejects.is_empty()


def plain_pairs(turns, *, merge):
    """Pair the turns of one conversation, one by one."""
    if merge:
        runs = []
        for turn in turns:
            if runs and runs[-1]["speaker"] == turn["speaker"]:
                runs[-1]["text"] += "\n" + turn["text"]
            else:
                runs.append(dict(turn))
        turns = runs[1:] if runs and runs[0]["speaker"] == "SYSTEM" else runs
    return [(first["text"], second["text"]) for first, second in pair_turns(turns)]


SPEAKERS = st.sampled_from(["USER", "SYSTEM", "USER", "SYSTEM", "OTHER"])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(conversations=st.lists(st.lists(SPEAKERS, max_size=9), max_size=5), merge=st.booleans())
def test_pairs_equal_those_made_one_by_one(conversations, merge):
    turns = [
        [
            {"speaker": speaker, "text": f"{row}.{place}"}
            for place, speaker in enumerate(conversation)
        ]
        for row, conversation in enumerate(conversations)
    ]
    events = read([log(*each) for each in turns], options("none.json", merge_speakers=merge))
    expected = [plain_pairs(each, merge=merge) for each in turns]
    assert texts(events) == [pair for pairs in expected for pair in pairs]
    rows = events.frames["turns"].select("dialogue_row", "turn").rows()
    assert rows == [
        (row, n) for row, pairs in enumerate(expected) for n in range(1, 1 + len(pairs))
    ]
    # every turn is in a pair or a reject
    joined = "\n".join(text for pairs in expected for pair in pairs for text in pair)
    paired = len(joined.split("\n")) if joined else 0
    assert paired + events.rejects.height == sum(map(len, conversations))
    assert events.counts["unpaired_turns"] == events.rejects.height


def test_merged_speakers_pair_from_the_first_user_on(catalogue):
    turns = [
        system("hello"), system("there"), user("a", turn=1), user("b", is_shift=True), system("c"),
        system(None), user("d"), system("e"), user("f"),
    ]  # fmt: skip
    chosen = options(catalogue, merge_speakers=True)
    events = read([log(*turns), log(*exchange("x", "y"), session_id="2")], chosen)
    assert texts(events) == [("a\nb", "c\n"), ("d", "e"), ("x", "y")]
    assert events.rejects["field"].to_list() == [
        "conversation[0]",
        "conversation[1]",
        "conversation[8]",
    ]
    assert events.frames["shifts"].rows() == [(0, 1)]
    assert json.loads(events.frames["turns"]["user_meta"][0]) == {"is_shift": True}
    assert events.frames["turns"]["user_meta"][1] is None


@settings(max_examples=often(25, 200))
@given(conversations=st.lists(st.lists(SPEAKERS, max_size=9), max_size=4), data=st.data())
def test_events_and_flags_name_the_same_merged_turns(conversations, data):
    shifted = [
        data.draw(st.sets(st.integers(1, max(1, speakers.count("USER")))))
        for speakers in conversations
    ]
    by_event, by_flag = [], []
    for speakers, shifts in zip(conversations, shifted, strict=True):
        turns, ordinal = [], 0
        for speaker in speakers:
            ordinal += speaker == "USER"
            flag = {"is_shift": speaker == "USER" and ordinal in shifts}
            turns.append({"speaker": speaker, "text": "a", "user_meta": flag})
        said = shifts if "USER" in speakers else set()
        plain = [{"speaker": turn["speaker"], "text": "a"} for turn in turns]
        by_event.append(log(*plain, shift_events=[{"turn": n} for n in said]))
        by_flag.append(log(*turns))
    chosen = PreferenceShift(catalogue="none", merge_speakers=True)
    found = [read(logs, chosen).frames["shifts"].rows() for logs in (by_event, by_flag)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("given", "field", "reason", "found"),
    [
        ({"session_id": "x"}, "conversation", "missing_field", "nothing"),
        (log(conversation=None), "conversation", "missing_field", "null"),
        (log(conversation="x"), "conversation", "wrong_type", 'string "x"'),
        (log(conversation=[5]), "conversation[0]", "wrong_type", "integer 5"),
        (log(user("a"), {"speaker": "SYSTEM", "text": 5}), "conversation[1].text", "wrong_type",
         "integer 5"),
        (log({"speaker": [], "text": "a"}), "conversation[0].speaker", "wrong_type", "array"),
        (log({**user("a"), "user_meta": "x"}), "conversation[0].user_meta", "wrong_type",
         'string "x"'),
        (log(user("a", constraints="x"), system("b")), "conversation[0].user_meta.constraints",
         "wrong_type", 'string "x"'),
        (log(user("a", constraints={"genre": [["x"]]}), system("b")),
         "conversation[0].user_meta.constraints.genre[0]", "wrong_type", "array"),
        (log(shift_events=5), "shift_events", "wrong_type", "integer 5"),
        (log(shift_events=[3]), "shift_events[0]", "wrong_type", "integer 3"),
    ],
)  # fmt: skip
def test_a_conversation_that_cannot_be_used_is_a_reject(catalogue, given, field, reason, found):
    logs = [log(*exchange("a", "b")), given, log(*exchange("c", "d"))]
    events = read(logs, options(catalogue))
    assert texts(events) == [("a", "b"), ("c", "d")]
    (reject,) = events.rejects.to_dicts()
    assert (reject["line"], reject["field"], reject["reason"]) == (2, field, reason)
    assert reject["found"] == found
    assert reject["expected"]
    assert events.counts[PARTIAL_REJECTS] == 0


def test_a_flag_that_python_does_not_read_rejects_its_conversation(catalogue):
    logs = [log(user("a", shift_event=31415926), system("b")), log(*exchange("c", "d"))]
    written = pl.col("conversation").str.replace("31415926", "7" * 5000, literal=True)
    events = SUITE.read(raw_frame(logs).with_columns(written), options(catalogue))
    assert texts(events) == [("c", "d")]
    (reject,) = events.rejects.to_dicts()
    assert reject["field"] == "conversation[0].user_meta.shift_event"
    assert (reject["line"], reject["reason"]) == (1, "out_of_range")


def test_shift_events_without_a_turn_count_for_nothing_and_are_listed(catalogue):
    shift_events = [{"turn": 0}, {"turn": 1}, {"turn": "2"}, {}, {"turn": 1.0}, {"turn": None}]
    events = read([log(*exchange("a", "b"), shift_events=shift_events)], options(catalogue))
    assert events.frames["shifts"].rows() == [(0, 1)]
    assert events.rejects["field"].to_list() == [f"shift_events[{n}].turn" for n in (0, 2, 3, 4, 5)]
    assert events.rejects["found"].to_list() == [
        "integer 0",
        'string "2"',
        "nothing",
        "number 1.0",
        "null",
    ]
    assert events.counts[PARTIAL_REJECTS] == 5


def test_a_conversation_without_an_id_is_named_by_its_file(catalogue):
    frame = raw_frame([log(*exchange("a", "b"), session_id=None)] * 3).with_columns(
        pl.Series("file", ["logs/gemma:2b_session_00001.json", "x.jsonl.gz", "y.z.parquet"])
    )
    events = SUITE.read(frame, options(catalogue))
    assert events.frames["dialogues"]["session_id"].to_list() == [
        "gemma:2b_session_00001",
        "x:2",  # of a file with several lines the line is part of the place
        "y.z:3",
    ]


def test_files_are_scored_end_to_end(tmp_path, catalogue):
    logs = [
        log(*exchange("drama", "drama", "Heat", "Her"), session_id=1, shift_events=[{"turn": 2}]),
        log(*exchange("drama", "horror"), system("more"), session_id=1, model_name="n"),
    ]
    path = write_lines(tmp_path / "logs.jsonl", logs)
    scores = fastscore.score(path, options(catalogue), embedder=None)
    assert scores.tables["dialogues"]["dialogue"].to_list() == ["1/model=m", "1/model=n"]
    assert scores.tables["turns"]["model"].to_list() == ["m", "m", "n"]
    assert scores.rejects["reason"].to_list() == ["unpaired_turn"]
    for metric, means in (("cross_coherence", (0.25, 0.5, 0.0)), ("cc", (1 / 3, 0.5, 0.0))):
        by_model = scores.summary.filter(metric=metric).select("group", "value", "mean")
        labels = [("all", None), ("model", "m"), ("model", "n")]
        assert by_model.rows() == [
            (*label, mean) for label, mean in zip(labels, means, strict=True)
        ]
    frame = pl.DataFrame(logs, infer_schema_length=None)
    frame = frame.with_columns(session_id=pl.lit("1"))
    from_frame = fastscore.score(frame, options(catalogue), embedder=None)
    columns = ["cc", "cr", "i", "tas", "user_concepts"]
    assert from_frame.tables["turns"].select(columns).equals(scores.tables["turns"].select(columns))


def test_conversations_without_a_model_count_in_the_whole(tmp_path, catalogue):
    logs = [log(*exchange("drama", "drama")), log(*exchange("drama", "X"), model_name=None)]
    path = write_lines(tmp_path / "logs.jsonl", logs)
    for kept, n in ((logs, 2), (logs[1:], 1)):
        write_lines(path, kept)
        summary = fastscore.score(path, options(catalogue), embedder=None).summary
        for metric in ("cc", "cross_coherence"):
            of_metric = summary.filter(metric=metric)
            assert of_metric.select("group", "value", "n").rows()[0] == ("all", None, n)
            assert of_metric.height == n
        assert summary.filter(metric="cas", group="all")["n_not_applicable"].item() == n


def test_every_published_form_of_a_log_is_read(tmp_path, catalogue):
    folder = tmp_path / "logs"
    folder.mkdir()
    turns = exchange("drama", "drama", "Heat", "Her")
    one = log(*turns, session_id="00000", shift_events=[{"turn": 2}])
    (folder / "m_session_00000.json").write_text(json.dumps(one, indent=2))
    (folder / "n_bare.json").write_text(json.dumps(turns, indent=1))
    (folder / "o.jsonl").write_text(json.dumps(one) + "\n" + json.dumps(turns) + "\n")
    pl.DataFrame([one], infer_schema_length=None).write_parquet(folder / "p.parquet")
    tables = fastscore.score(folder, options(catalogue), embedder=None).tables
    dialogues = tables["dialogues"]
    names = ["00000", "n_bare", "00000", "o:2", "00000"]
    assert dialogues["session_id"].to_list() == names
    assert dialogues["dialogue"].n_unique() == len(names)
    assert dialogues["line"].to_list() == [1, 1, 1, 2, 1]
    assert dialogues["n_shifts"].to_list() == [1, 0, 1, 0, 1]
    assert tables["turns"]["cc"].to_list() == [1.0, 0.0] * 5


def test_a_run_without_a_good_catalogue_is_refused_at_once(tmp_path, catalogue):
    path = tmp_path / "logs.jsonl"
    path.write_text(json.dumps(log(*exchange("drama", "drama"))))
    bad = tmp_path / "bad.json"
    bad.write_text("[3]")
    for words, message in (
        ([], "No catalogue is named"),
        (["--catalogue", bad], "bad.json: record 1 is 3, expected an object of fields"),
        (["--catalogue", catalogue, "--fields", "gener"], "Did you mean 'genre'"),
    ):
        run = tmp_path / "run"
        done = fastscore_command(["score", "preference_shift", path, "-o", run, *words])
        assert done.returncode == 2
        assert message in done.stderr
        assert not run.exists()


def test_the_catalogue_verb(catalogue):
    shown = fastscore_command(["catalogue", "show", catalogue, "--json"])
    genre = next(row for row in json.loads(shown.stdout) if row["field"] == "genre")
    assert (genre["values"], genre["items"], genre["commonest"]) == (5, 4, "horror")
    values = fastscore_command(["catalogue", "show", catalogue, "--field", "genre", "--limit", 1])
    assert "horror" in values.stdout
    assert "romance" not in values.stdout
    wrong = fastscore_command(["catalogue", "show", catalogue, "--field", "gener"])
    assert wrong.returncode == 2
    assert "Did you mean 'genre'" in wrong.stderr
