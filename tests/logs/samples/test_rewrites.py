"""Logs that no option reads: what is asked of the user writes one that some options read."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import fastscore
from fastscore.errors import InputError

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes logs anew")
ASKED = ["A drama, please.", "Rather a comedy.", "With Al Pacino."]
REPLIES = ["Watch Heat.", "Watch Clueless.", "Heat has Al Pacino."]
PAIRS = list(zip(ASKED, REPLIES, strict=True))


def written(log: Path, rows: Sequence[Any]) -> Path:
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return log


def options_of(suite: str, folder: Path) -> Any:
    catalogue = folder / "catalogue.json"
    catalogue.write_text('[{"name": "Heat", "genre": ["drama"]}]')
    if suite == "preference_shift":
        return fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")
    return fastscore.ScoreDialogue(lex_weight=1) if suite == "score_dialogue" else suite


def keywords(options: str) -> dict[str, Any]:
    """Return the arguments that options are in Python."""
    found: dict[str, Any] = {}
    words = shlex.split(options)
    for option, word in zip(words[::2], words[1::2], strict=True):
        name, _, rest = word.partition("=")
        if option == "--column":
            found.setdefault("columns", {})[name] = rest
        elif option == "--value":
            column, _, spelled = name.partition(":")
            found.setdefault("values", {}).setdefault(column, {})[spelled] = rest
        else:
            found[option.removeprefix("--").replace("-", "_")] = word
    return found


def as_asked(log: Path, suite: str) -> Any:
    """Score a log as its refusal says: by a command that writes it anew, or by options."""
    options = options_of(suite, log.parent)
    with pytest.raises(InputError) as refused:
        fastscore.score(log, options, embedder=None)
    hint = str(refused.value.hint)
    command = re.search(r"(jq .* > (\w+\.jsonl))", hint)
    if command is not None:
        subprocess.run(command[1], shell=True, check=True, cwd=log.parent)
        log = log.parent / command[2]
    typed = re.search(r"(--\w.*?)\.?( To keep| If |$)", hint[command.end() if command else 0 :])
    return fastscore.score(
        log, options, embedder=None, **(keywords(typed[1]) if typed is not None else {})
    )


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
@pytest.mark.parametrize("words", [("user_", "bot_"), ("human", "ai"), ("User ", "Assistant ")])
@pytest.mark.parametrize("holder", ["", "turns"])
def test_turns_under_numbered_keys(
    holder: str, words: tuple[str, str], suite: str, tmp_path: Path
) -> None:
    # in any order of the keys: eleven turns come after two
    numbered = {
        f"{word}{place}": said
        for word, side in zip(words, zip(*PAIRS * 4, strict=True), strict=True)
        for place, said in enumerate(side, 1)
    }
    rows = [{"id": name, **({holder: numbered} if holder else numbered)} for name in "ab"]
    run = as_asked(written(tmp_path / "log.jsonl", rows), suite)
    if suite == "preference_shift":
        pairs = run.tables["turns"].select("user_text", "system_text").rows()
        assert pairs == PAIRS * 8
    else:
        assert run.tables["dialogues"]["n_guest_messages"].to_list() == [12, 12]


@pytest.mark.parametrize(
    "keys", [("generated_text", "actual"), ("model_guess", "gold_reply"), ("pred", "ref")]
)
def test_a_prediction_beside_its_truth(keys: tuple[str, str], tmp_path: Path) -> None:
    sides = [*zip(REPLIES, ASKED, strict=True), (REPLIES[0], REPLIES[0])]
    rows = [{"example": place, **dict(zip(keys, side, strict=True))} for place, side in
            enumerate(sides)]  # fmt: skip
    log = written(tmp_path / "log.jsonl", rows)
    run = as_asked(log, "score_dialogue")
    assert run.tables["steps"].height == 4
    assert run.tables["steps"]["lexical_similarity"].max() == 1
    with pytest.raises(InputError) as refused:
        fastscore.score(log, "guest_simulation", embedder=None)
    assert "--layout pairs" not in str(refused.value)


def events(step: Sequence[Any] = (0, 1, 2)) -> list[dict[str, Any]]:
    """Return the rows of two utterances, each predicted in three steps."""
    return [
        row
        for number, said in enumerate(REPLIES[:2])
        for row in (
            *(
                {"event": "predicted", "utterance_index": number, "step": each, "prediction": said}
                for each in step
            ),
            {"event": "utterance_complete", "utterance_index": number, "ground_truth": said},
        )
    ]


def test_steps_in_words(tmp_path: Path) -> None:
    log = written(tmp_path / "log.jsonl", events(("first", "second", "third")))
    run = as_asked(log, "score_dialogue")
    assert run.tables["steps"]["step"].to_list() == [0, 1, 2] * 2


@pytest.mark.parametrize("with_event", [True, False])
def test_a_log_without_truth_says_what_is_missing(with_event: bool, tmp_path: Path) -> None:
    rows = [row for row in events() if row["event"] == "predicted"]
    for row in rows if not with_event else ():
        del row["event"]
    log = written(tmp_path / "log.jsonl", rows)
    found = "2 utterances have no utterance_complete" if with_event else "no row has ev"
    with pytest.raises(InputError, match=found) as refused:
        fastscore.score(log, options_of("score_dialogue", tmp_path), embedder=None)
    assert "nothing " in str(refused.value).lower()
    (file,) = fastscore.inspect(log).files
    assert not file.fits
    assert "scored without" in file.unfit["score_dialogue"] + file.asked["score_dialogue"]


def test_words_are_told_by_the_columns_of_their_rows(tmp_path: Path) -> None:
    words = {"predicted": "vorhersage", "utterance_complete": "ende"}
    rows = [row | {"event": words[row["event"]]} for row in events()]
    run = as_asked(written(tmp_path / "log.jsonl", rows), "score_dialogue")
    assert run.tables["steps"].height == 6


def test_all_renamed_columns_and_words_are_proposed_at_once(tmp_path: Path) -> None:
    names = {"event": "kind", "utterance_index": "utt", "step": "position", "prediction": "hyp"}
    names["ground_truth"] = "gold"
    words = {"predicted": "guess", "utterance_complete": "final"}
    rows = [{names[key]: words.get(value, value) for key, value in row.items()} for row in events()]
    run = as_asked(written(tmp_path / "log.jsonl", rows), "score_dialogue")
    assert run.tables["steps"].height == 6


def messages(pairs: Sequence[tuple[str, str]] = PAIRS) -> list[dict[str, str]]:
    """Return a chat as chat models take it."""
    return [
        {"role": role, "content": said}
        for pair in pairs
        for role, said in zip(("user", "assistant"), pair, strict=True)
    ]


def test_documents_of_one_id_are_told_apart_or_joined(tmp_path: Path) -> None:
    other = [("Any western?", "Unforgiven is one.")]
    rows = [{"id": "a", "messages": messages()}, {"id": "a", "messages": messages(other)}]
    log = written(tmp_path / "log.jsonl", [*rows, {"id": "b", "messages": messages()}])
    guests: dict[str, Any] = {"layout": "openai", "values": {"role": {"user": "guest"}}}
    with pytest.raises(InputError, match="2 documents have the id 'a', and no key tells") as said:
        fastscore.score(log, "guest_simulation", embedder=None, **guests)
    joined = fastscore.score(log, "guest_simulation", embedder=None, dialogue="id", **guests)
    assert joined.tables["dialogues"]["n_guest_messages"].to_list() == [4, 3]
    command = re.search(r"jq .* > chats\.jsonl", str(said.value.hint))
    assert command is not None
    subprocess.run(command[0], shell=True, check=True, cwd=tmp_path)
    apart = fastscore.score(tmp_path / "chats.jsonl", "guest_simulation", embedder=None, **guests)
    assert apart.tables["dialogues"]["n_guest_messages"].to_list() == [3, 1, 3]


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_models_that_only_replies_name(suite: str, tmp_path: Path) -> None:
    rows = [
        {"conversation_id": "c", **turn, **({"model": model} if turn["role"] != "user" else {})}
        for model in ("m1", "m2")
        for turn in messages()
    ]
    log = written(tmp_path / "log.jsonl", rows)
    how: Any = {"layout": "turns"}
    if suite == "guest_simulation":
        how = {"values": {"role": {"user": "guest"}}}
    with pytest.raises(InputError, match="Type jq -cs") as refused:
        fastscore.score(log, options_of(suite, tmp_path), embedder=None, **how)
    command = re.search(r"jq .* > turns\.jsonl", str(refused.value.hint))
    assert command is not None
    subprocess.run(command[0], shell=True, check=True, cwd=tmp_path)
    turns = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    assert [turn["model"] for turn in turns] == ["m1"] * 6 + ["m2"] * 6
    assert [turn["content"] for turn in turns] == [turn["content"] for turn in messages() * 2]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_chats_that_are_arrays_are_named_for_rows(suffix: str, tmp_path: Path) -> None:
    chats = [messages(), messages()[2:]]
    log = written(tmp_path / "log.jsonl", chats)
    if suffix == "json":
        log = tmp_path / "log.json"
        log.write_text(json.dumps(chats))
    how: dict[str, Any] = {"layout": "openai", "embedder": None}
    with pytest.raises(InputError, match="a dialogue is an array by itself") as refused:
        fastscore.score(log, "guest_simulation", **how)
    command = re.search(r"jq .* > chats\.jsonl", str(refused.value.hint))
    assert command is not None
    subprocess.run(command[0], shell=True, check=True, cwd=tmp_path)
    run = fastscore.score(tmp_path / "chats.jsonl", "guest_simulation", **how)
    assert run.tables["dialogues"]["n_guest_messages"].to_list() == [3, 2]
    with pytest.raises(InputError, match=r"Give \[\{'messages': chat\} for chat in chats\]"):
        fastscore.score(chats, "guest_simulation", **how)
    held = fastscore.score([{"messages": chat} for chat in chats], "guest_simulation", **how)
    assert held.tables["dialogues"]["n_guest_messages"].to_list() == [3, 2]


def test_keys_after_the_first_documents_are_seen(tmp_path: Path) -> None:
    rows = [{"id": place, "messages": messages()} for place in range(30)]
    others = [{"from": turn["role"], "value": turn["content"]} for turn in messages()]
    log = written(tmp_path / "log.jsonl", [*rows, {"id": 30, "messages": others}])
    with pytest.raises(InputError, match="another of 'role', 'content'"):
        fastscore.score(log, options_of("preference_shift", tmp_path), layout="openai",
                        embedder=None)  # fmt: skip
    late = {"id": 30, "messages": [{"role": "user", "content": "And a thriller?"}]}
    written(log, [*rows, {**late, "response": "Watch Ronin."}])
    run = as_asked(log, "preference_shift")
    assert run.tables["turns"]["system_text"][-1] == "Watch Ronin."


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
@pytest.mark.parametrize("place", ["properties", "request_properties", ""])
def test_sessions_of_helicone_are_dialogues(place: str, suite: str, tmp_path: Path) -> None:
    session = {"Helicone-Session-Id": "s"}
    rows = [
        {
            "request_id": f"r{number}",
            "request_body": {"model": "m", "messages": messages(PAIRS[: number + 1])[:-1]},
            "response_body": {"choices": [{"index": 0, "message": {"role": "assistant",
                                                                   "content": reply}}]},
            **({place: session} if place else session),
        }
        for number, (_, reply) in enumerate(PAIRS)
    ]  # fmt: skip
    run = as_asked(written(tmp_path / "log.jsonl", rows), suite)
    assert run.tables["dialogues"].height == 1


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
def test_an_array_under_a_key_with_a_dot(suite: str, tmp_path: Path) -> None:
    rows = [{"id": name, "input.conversation": messages()} for name in "ab"]
    # beside rows in which it is inside an object
    rows += [{"id": "c", "input": {"conversation": messages()}}]
    run = as_asked(written(tmp_path / "log.jsonl", rows), suite)
    assert run.tables["dialogues"].height == 3


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
@pytest.mark.parametrize("name", ["chat.txt", "chat.log", "chat.jsonl", "it's.txt"])
@pytest.mark.parametrize(
    "time", ["", "[10:0{}] ", "10:0{} ", "2025-01-01T10:0{} ", "1/2/25, 10:0{} PM - "]
)
def test_a_chat_as_plain_text(time: str, name: str, suite: str, tmp_path: Path) -> None:
    sides = [side for asked, reply in PAIRS for side in (("User", asked), ("Bot", reply))]
    lines = [f"{time.format(n)}{who}: {said}" for n, (who, said) in enumerate(sides)]
    lines[1] += "\nIt is long."
    log = tmp_path / name
    log.write_text("\n".join(lines) + "\n\n" + "\n".join(lines[2:]) + "\n", "utf-8-sig")
    run = as_asked(log, suite)
    if suite == "guest_simulation":
        assert run.tables["dialogues"]["n_guest_messages"].to_list() == [3, 2]
    else:
        replies = run.tables["turns"]["system_text"].to_list()
        assert replies == [f"{REPLIES[0]}\nIt is long.", *REPLIES[1:], *REPLIES[1:]]


@pytest.mark.parametrize("text", ["a: 1\nb: 2\nc: 3\n", "Dear Ann,\nI write to you: hi\n" * 3])
def test_other_texts_are_no_chats(text: str, tmp_path: Path) -> None:
    log = tmp_path / "notes.txt"
    log.write_text(text)
    with pytest.raises(InputError, match="names no format that is read"):
        fastscore.score(log, "guest_simulation", embedder=None)


@pytest.mark.parametrize("suite", ["preference_shift", "guest_simulation"])
@pytest.mark.parametrize(("key", "of_user"), [("is_bot", False), ("fromUser", True)])
def test_what_is_true_of_one_speaker_names_both(
    key: str, of_user: bool, suite: str, tmp_path: Path
) -> None:
    rows = [
        {"dialogue_id": name, key: (turn["role"] == "user") == of_user, "text": turn["content"]}
        for name in "ab"
        for turn in messages()
    ]
    run = as_asked(written(tmp_path / "log.jsonl", rows), suite)
    if suite == "preference_shift":
        assert run.tables["turns"].select("user_text", "system_text").rows() == PAIRS * 2
    else:
        assert run.tables["dialogues"]["n_guest_messages"].to_list() == [3, 3]


def test_no_layout_is_proposed_by_which_every_metric_is_null(tmp_path: Path) -> None:
    rows = [{"id": place, "messages": messages([pair])} for place, pair in enumerate(PAIRS)]
    log = written(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError) as refused:
        fastscore.score(log, "guest_simulation", embedder=None)
    said = "With --layout openai every metric of the first rows would be null."
    assert refused.value.hint == said


@pytest.mark.parametrize("keys", [("assistant", "user"), ("response", "asked"), ("bot", "human")])
def test_a_reply_is_no_prediction_beside_its_truth(keys: tuple[str, str], tmp_path: Path) -> None:
    rows = [dict(zip(keys, reversed(pair), strict=True)) for pair in PAIRS]
    log = written(tmp_path / "log.jsonl", rows)
    with pytest.raises(InputError, match="no row has what score_dialogue needs"):
        fastscore.score(log, options_of("score_dialogue", tmp_path), embedder=None)


@pytest.mark.parametrize("n_runs", [1, 2])
def test_a_project_of_langsmith_is_no_dialogue(n_runs: int, tmp_path: Path) -> None:
    def run(thread: str, n_pairs: int) -> dict[str, Any]:
        said = [(f"{asked} ({thread})", reply) for asked, reply in PAIRS[:n_pairs]]
        *asked, reply = messages(said)
        return {
            "id": f"{thread}{n_pairs}",
            "session_id": "a project",
            "extra": {"metadata": {"thread_id": thread}},
            "inputs": {"messages": asked},
            "outputs": {"message": reply},
        }

    rows = [run(thread, n + 1) for thread in "abc" for n in range(3 - n_runs, 3)]
    log = written(tmp_path / "log.jsonl", rows)
    if n_runs == 1:  # whole chats that nothing joins
        options = options_of("preference_shift", tmp_path)
        found = fastscore.score(log, options, embedder=None, layout="langsmith")
    else:
        found = as_asked(log, "preference_shift")
    assert found.tables["dialogues"].height == 3


def test_preferences_are_a_chat_each(tmp_path: Path) -> None:
    rows = [
        {"prompt": ASKED[0], "chosen": messages(PAIRS[:1]), "rejected": messages(PAIRS[:1])}
        for _ in range(3)
    ]
    run = as_asked(written(tmp_path / "log.jsonl", rows), "preference_shift")
    assert run.tables["dialogues"].height == run.tables["turns"].height == 3
