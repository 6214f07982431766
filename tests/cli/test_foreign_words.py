"""A new user's logs with other words for speakers, roles and events."""

import pytest

import fastscore
from fastscore.api.examples import write_example
from fastscore.errors import InputError
from tests.by_keywords import score_by_keywords
from tests.cli.scoring import score
from tests.logs.samples.wrong_logs import RIGHT, changed, write


def talks(*speakers):
    return [
        {
            "session_id": f"s{number}",
            "conversation": [
                {"speaker": user, "text": "a comedy"},
                {"speaker": system, "text": "Her, a comedy"},
            ],
        }
        for number, (user, system) in enumerate(speakers)
    ]


def test_words_that_are_foreign_in_some_rows_are_named(tmp_path):
    rows = talks(("USER", "SYSTEM"), ("customer", "SYSTEM"), ("user", "assistant"))
    log = write(tmp_path / "log.jsonl", rows)
    code, out, error = score("preference_shift", tmp_path, log)
    told = (
        "conversation[].speaker: 'assistant' in 1, 'customer' in 1, 'user' in 1 of 6 objects; "
        "known: USER, SYSTEM; type --value speaker:assistant=SYSTEM --value speaker:customer=USER "
        "--value speaker:user=USER\n"
    )
    assert told in out
    # a dialogue of which nothing pairs is a reject
    assert code == 3
    assert "2 of 3 lines are rejects, more than max_rejects 0.001 allows" in error
    flags = told.partition("type ")[2].split()
    code, out, error = score("preference_shift", tmp_path, log, *flags, "--overwrite")
    assert code == 0, error
    assert "known: USER" not in out
    # of one that pairs in part, turns are left aside
    (row,) = talks(("USER", "SYSTEM"))
    row["conversation"].append({"speaker": "customer", "text": "thanks"})
    log = write(tmp_path / "part.jsonl", [row])
    code, out, error = score("preference_shift", tmp_path, log, "--overwrite")
    assert code == 0, error
    assert "'customer' in 1 of 3 objects" in out


def test_words_of_rows_in_memory_mean_what_they_mean_in_files(tmp_path):
    write_example("preference_shift", tmp_path / "example")
    options = fastscore.PreferenceShift(
        catalogue=str(tmp_path / "example" / "catalogue.jsonl"), segments="metadata"
    )
    rows = talks(("user", "system"), ("user", "system"))
    with pytest.raises(InputError, match="speaker:system=SYSTEM --value speaker:user=USER"):
        fastscore.score(rows, options, embedder="none")


FOREIGN_WORDS = {
    "guest_simulation": (
        [
            {"conversation_id": "c", "role": "Guest", "content": "a burger"},
            *({"conversation_id": "c", "role": "guest", "content": text} for text in "abc"),
            {"conversation_id": "c", "role": "Assistant", "content": "bye"},
        ],
        ("role: 'Assistant' in 1, 'Guest' in 1 of 5 rows; known: agent, guest, ",),
        "type --value role:Assistant=assistant --value role:Guest=guest",
    ),
    "score_dialogue": (
        [*RIGHT["score_dialogue"], {**RIGHT["score_dialogue"][0], "event": "prediction"}],
        ("event: 'prediction' in 1 of 4 rows; known: predicted, revealed, utterance_complete; ",),
        "type --value event:prediction=predicted",
    ),
    "group_travel": (
        [*RIGHT["group_travel"], {**RIGHT["group_travel"][1], "intent": "present_plan"}],
        ("intent: 'present_plan' in 1 of 3 rows; known: user_provide_*, ",),
        "type --value intent:present_plan=sys_present_plan",
    ),
    "memory_finance": (
        changed(
            "memory_finance",
            lambda turn: {
                **turn,
                "turn_status": ("OK", "ok")[turn["turn_pair_id"] % 2],
                "gt_turn_tags": {"compliance_label_gt": "Severe"},
            },
        ),
        (
            "turns[].turn_status: 'OK' in 1 of 2 objects; known: ok, timeout, error; ",
            "turns[].gt_turn_tags.compliance_label_gt: 'Severe' in 2 of 2 objects, which no rule "
            "knows",
        ),
        "type --value turn_status:OK=ok",
    ),
}


@pytest.mark.parametrize("suite", FOREIGN_WORDS)
def test_every_closed_vocabulary_is_looked_after(suite, tmp_path):
    rows, told, advice = FOREIGN_WORDS[suite]
    log = write(tmp_path / "log.jsonl", rows)
    code, out, error = score(suite, tmp_path, log)
    assert code == 0, error
    for each in (*told, advice):
        assert each in out
    # it does not depend on what is in a shard, and a run says what memory does
    options = {"score_dialogue": {"lex_weight": 1.0}}.get(suite, {})
    scores = score_by_keywords(log, suite, embedder="none", **options)
    assert scores.notes == fastscore.open_run(tmp_path / "run").notes


def chats(*roles, times=1):
    return [{"conversation_id": "c", "role": role, "content": "so"} for role in roles * times]


NULL = "With --value speaker:{}=user every metric of the first rows would be null."


@pytest.mark.parametrize(
    ("suffix", "rows", "found", "advice"),
    [
        (
            "jsonl",
            chats("human", "gpt", "human"),
            "'human' (2), 'gpt' (1)",
            "Type --value role:human=guest --value role:gpt=assistant.",
        ),
        ("csv", chats("user", "assistant"), "'user' (1), 'assistant'", NULL.format("user")),
        # all that is looked at of a longer file, in which no text says otherwise
        (
            "jsonl",
            chats("u", "b", times=150),
            "'b' (100), 'u' (100)",
            "Say who is who, in this way or the other way round, for example "
            "--value speaker:u=user --value speaker:b=assistant.",
        ),
        ("parquet", chats("bot"), "'bot' (1)", NULL.format("bot")),
    ],
)
def test_a_log_without_a_guest_is_refused(suffix, rows, found, advice, tmp_path):
    log = write(tmp_path / f"log.{suffix}", rows)
    code, out, error = score("guest_simulation", tmp_path, log)
    assert (code, out) == (3, "")
    assert error.startswith(
        f"Error: {log}: no row has what guest_simulation needs: role is never 'agent', 'guest', "
        "'guest_simulation_agent' or 'guest_simulation_llm', and name never begins with 'guest'.\n"
        f"  found: {found}\n"
    )
    assert error.endswith(f"{advice}\n")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="role is never 'agent'"):
        fastscore.score(rows[:20], "guest_simulation")
    # the first of them is the guest
    words = ["--value", f"role:{rows[0]['role']}=agent"]
    code, _, error = score("guest_simulation", tmp_path, log, *words, "--level", "1")
    assert code == 0, error


def test_a_guest_may_come_late_or_by_name(tmp_path):
    late = chats("u", "b", times=150) + chats("guest")
    named = [{**row, "name": "guest_7"} for row in chats("u", "b")]
    first, second = chats("b"), chats("guest", "b")
    for place, files in enumerate(((late,), (named,), (first, second))):
        logs = tmp_path / str(place)
        for number, rows in enumerate(files):
            write(logs / f"{number}.jsonl", rows)
        code, out, error = score("guest_simulation", tmp_path, logs, "--level", "1", "--overwrite")
        assert code == 0, error
        assert "role: 'b' in " in out


def test_without_a_guest_in_a_long_table_the_words_are_told_in_the_end(tmp_path):
    log = write(tmp_path / "log.csv", chats("human", "gpt", times=150))
    code, out, error = score("guest_simulation", tmp_path, log)
    assert (code, out) == (3, "")
    assert "Nothing was scored: there is no row for messages in 300 lines of" in error
    assert "\n  role: 'gpt' in 150, 'human' in 150 of 300 rows; known: agent, " in error
    assert "type --value role:gpt=assistant --value role:human=guest\n" in error
    with pytest.raises(InputError, match="role: 'gpt' in 150, 'human' in 150 of 300 rows"):
        fastscore.score(log, "guest_simulation")


def test_lines_of_one_name_are_not_put_together_in_silence(tmp_path):
    chat = [{"from": "human", "value": "a burger"}, {"from": "gpt", "value": "this"}]
    same = [{"id": "same", "conversations": chat}] * 3
    log = write(tmp_path / "log.jsonl", same)
    code, _, error = score("guest_simulation", tmp_path, log, "--layout", "sharegpt")
    assert code == 3
    assert "3 documents have the id 'same', and no key tells them apart" in error
    # beyond the rows that are looked at
    names = [{"id": f"d{n}", "conversations": chat} for n in range(20)]
    log = write(tmp_path / "log.jsonl", [*names, *same])
    code, out, error = score("guest_simulation", tmp_path, log, "--layout", "sharegpt")
    assert code == 0, error
    assert (
        "conversation_id: 3 lines have the names of 1 dialogue and are put together by them; type "
        "--column conversation_id=KEY if each line is a dialogue of its own\n" in out
    )
    # with a layout, too, the keys that stand beside are named
    assert "found: conversations[].from (46), conversations[].value (46), id (23)" in out


def test_what_a_file_gives_is_not_asked_of_the_log(tmp_path):
    log = write(tmp_path / "log.jsonl", FOREIGN_WORDS["guest_simulation"][0])
    code, out, _ = score("guest_simulation", tmp_path, log)
    assert code == 0
    assert "no row has guest_persona (" in out
    assert "or give personas)" in out
    write_example("guest_simulation", tmp_path / "example")
    personas = tmp_path / "example" / "personas.json"
    code, out, error = score(
        "guest_simulation", tmp_path, log, "--personas", personas, "--overwrite"
    )
    assert code == 0, error
    assert "guest_persona" not in out.partition("\n\n")[0]
