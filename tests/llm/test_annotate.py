import csv
import json
from dataclasses import replace

import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.llm.annotate import annotate_concepts, annotate_states
from fastscore.llm.requests import AskingAboutLogs, ModelOptions
from fastscore.run.progress import SilentReporter
from tests.by_keywords import score_by_keywords
from tests.conftest import write_lines
from tests.llm.stub_server import PATIENCE, read_lines, stub_fixture
from tests.suites.preference_shift.conversing import exchange, log, system, user

MOVIES = [
    {"name": "Heat", "genre": ["Crime Fiction", "Drama"], "actor": ["Al Pacino"], "year": "1995"},
    {"name": "Alien", "genre": ["Horror Film"], "actor": ["Sigourney Weaver"], "year": "1979"},
]
FIELDS = ("genre", "actor", "director", "writer", "language", "year", "name")


stub = stub_fixture()


@pytest.fixture
def shifting(tmp_path):
    write_lines(tmp_path / "movies.jsonl", MOVIES)
    turns = [
        user("something scary", constraints={"genre": "Horror"}),
        system("the one with Ripley"),
        *exchange("a drama with the heat robber", "a drama then"),
    ]
    write_lines(tmp_path / "logs.jsonl", [log(*turns, session_id="1", shift_events=[])])
    return tmp_path


def asked(stub, folder, logs, output, **options):
    answers = folder / "answers.sqlite"
    models = ModelOptions(base_url=stub.url, answers=answers, timeout=PATIENCE, **options)
    return AskingAboutLogs(
        inputs=(str(logs),), model="reader", output=folder / output, models=models
    )


READ = {
    "something scary": {"genre": ["horror movie", "suspense"]},
    "the one with Ripley": {"genre": "Horror", "actor": ["Weaver"]},  # a part of a name
    "a drama with the heat robber": {"actor": ["Mr Al Pacino himself"]},  # contains a name
    "a drama then": {},  # nothing: what words find
    "Horror": {"genre": ["Horror"]},
}


def reading(body):
    return json.dumps(
        {name: READ[body["messages"][-1]["content"]].get(name, []) for name in FIELDS}
    )


def score(folder, **options):
    return score_by_keywords(
        [str(folder / "logs.jsonl")],
        "preference_shift",
        catalogue=str(folder / "movies.jsonl"),
        segments="metadata",
        embedder=None,
        **options,
    )


def test_concepts_that_a_model_reads_are_scored(stub, shifting):
    stub.answer = reading
    task = asked(stub, shifting, shifting / "logs.jsonl", "concepts.jsonl")
    done = annotate_concepts(task, str(shifting / "movies.jsonl"), SilentReporter())
    assert (done.read, done.failed, done.not_asked) == (5, 0, 0)
    turns = score(shifting, extract="llm", annotations=str(shifting / "concepts.jsonl")).tables[
        "turns"
    ]
    assert turns["user_concepts"].to_list() == [["genre=horror"], ["actor=al pacino"]]
    assert turns["system_concepts"].to_list() == [
        ["actor=sigourney weaver", "genre=horror"],
        ["genre=drama"],
    ]
    assert turns["gold_concepts"].to_list() == [["genre=horror"], None]
    assert turns["cc"].to_list() == [0.5, 0.0]
    again = annotate_concepts(task, str(shifting / "movies.jsonl"), SilentReporter())
    assert again.spent.requests == 0


def test_the_file_stands_in_the_signature(stub, shifting):
    write_lines(shifting / "concepts.jsonl", ({"text": text, "concepts": {}} for text in READ))
    scores = score(shifting, extract="llm", annotations=str(shifting / "concepts.jsonl"))
    assert "|annotations=blake2b:" in scores.signature or "annotations=" in scores.signature
    assert str(shifting) not in scores.signature
    # without a concept anywhere the words decide, as published
    lexical = score(shifting)
    assert scores.tables["turns"].equals(lexical.tables["turns"])


def test_what_cannot_be_read_is_said_and_falls_back(stub, shifting):
    stub.answer = lambda body: "no idea" if "something scary" in str(body) else reading(body)
    task = asked(stub, shifting, shifting / "logs.jsonl", "concepts.jsonl", max_failures=1)
    done = annotate_concepts(task, str(shifting / "movies.jsonl"), SilentReporter())
    assert (done.read, done.failed, done.refusal) == (4, 1, None)
    written = read_lines(shifting / "concepts.jsonl")
    failed = next(line for line in written if line["text"] == "something scary")
    assert (failed["failure"], failed["reason"]) == ("unusable", "not a JSON object")
    assert failed["concepts"] == {name: [] for name in FIELDS}
    manifest = json.loads((shifting / "concepts.jsonl.manifest.json").read_text())
    assert (manifest["status"], manifest["failures"]) == ("incomplete", {"unusable": 1})
    assert manifest["spent"]["requests"] == len(stub.asked) == 4 + 3


def test_a_model_is_asked_for_the_fields_that_are_named(stub, shifting):
    stub.answer = lambda body: '{"mood": ["scary"]}'
    movies = [{**movie, "mood": "scary"} for movie in MOVIES]
    write_lines(shifting / "movies.jsonl", movies)
    task = asked(stub, shifting, shifting / "logs.jsonl", "concepts.jsonl")
    catalogue = str(shifting / "movies.jsonl")
    annotate_concepts(task, catalogue, SilentReporter(), fields="mood")
    assert read_lines(shifting / "concepts.jsonl")[0]["concepts"] == {"mood": ["scary"]}
    with pytest.raises(UsageError, match="no field 'mod'"):
        annotate_concepts(task, catalogue, SilentReporter(), fields="mod")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "something scary", "concepts": {}}\n', "has no line for 4 texts"),
        ('{"text": "a"}\n', "concepts.jsonl:1: no annotation"),
        ('\n{"text": 1, "concepts": {}}\n', "concepts.jsonl:2: no annotation"),
        ("nonsense\n", "concepts.jsonl:1: no annotation"),
        ('{"text": "a", "concepts": {"colour": ["red"]}}\n', "has the fields colour, and not "),
    ],
)
def test_annotations_that_do_not_fit_are_refused(shifting, content, message):
    (shifting / "concepts.jsonl").write_text(content)
    with pytest.raises(UsageError) as refused:
        score(shifting, extract="llm", annotations=str(shifting / "concepts.jsonl"))
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_both_options_or_none(shifting):
    with pytest.raises(UsageError, match="set extract to llm and annotations to the file"):
        score(shifting, extract="llm")
    with pytest.raises(UsageError, match="extract is lexical"):
        score(shifting, annotations="x.jsonl")


GUEST = [
    ("1", "system", "test_case_info", "{}"),
    ("2", "guest", "guest", "What do you have?"),
    ("3", "restaurant", "waiter", "Pizza and salad."),
    ("4", "guest", "guest", "One pizza then."),
    ("5", "guest", "guest", "exit"),
]


def test_states_that_a_model_reads_are_scored(stub, tmp_path):
    rows = [
        {
            "conversation_id": "c1", "experiment_level": 2, "message_id": number, "role": role,
            "name": name, "content": content, "guest_persona": "Curious Guest",
        }
        for number, role, name, content in GUEST
    ]  # fmt: skip
    write_lines(tmp_path / "logs.jsonl", rows)

    def answer(body):
        asks = "What do you have?\n</message" in body["messages"][1]["content"]
        if asks and len(body["messages"]) == 2:
            return '{"mood_tone": "hungry"}'
        return json.dumps(
            {
                "is_ordering_complete": "no" if asks else "yes",
                "menu_exploration_style": "explores_menu" if asks else "does_not_explore_menu",
                "mood_tone": "casual",
                "ordering_style": "one_by_one",
                "current_items_in_order": [] if asks else [{"name": "pizza", "quantity": 1}],
            }
        )

    stub.answer = answer
    task = asked(stub, tmp_path, tmp_path / "logs.jsonl", "states")
    done = annotate_states(task, SilentReporter())
    assert (done.read, done.failed, done.spent.requests) == (2, 0, 3)
    path = tmp_path / "states" / "exp2" / "c1_states.csv"
    found = list(csv.DictReader(path.open(newline="")))
    assert [(row["message_index"], row["message_id"]) for row in found] == [("0", "2"), ("2", "4")]
    assert json.loads(found[1]["current_items_in_order"]) == [{"name": "pizza", "quantity": 1}]
    assert "restaurant: Pizza and salad." in stub.asked[-1]["messages"][-1]["content"] + str(
        stub.asked
    )
    scores = fastscore.score(
        [str(tmp_path / "logs.jsonl")],
        fastscore.GuestSimulation(states="llm", states_from=str(tmp_path / "states")),
        embedder=None,
    )
    messages = scores.tables["messages"]
    styles = [value for value in messages["menu_exploration_style"].to_list() if value]
    assert styles == ["explores_menu", "does_not_explore_menu"]


def test_failed_messages_are_listed_beside_the_states(stub, tmp_path):
    rows = [
        {"conversation_id": "c1", "message_id": number, "role": role, "name": name, "content": text}
        for number, role, name, text in GUEST
    ]
    write_lines(tmp_path / "logs.jsonl", rows)
    stub.answer = lambda body: "no idea"
    done = annotate_states(
        asked(stub, tmp_path, tmp_path / "logs.jsonl", "states", max_failures=0, concurrency=1),
        SilentReporter(),
    )
    listed = read_lines(tmp_path / "states" / "failures.jsonl")
    assert len(listed) == done.failed >= 1
    assert listed[0] == {
        "file": "exp0/c1_states.csv",
        "message_index": 0,
        "message_id": "2",
        "kind": "unusable",
        "reason": "not a JSON object",
        "answer": "no idea",
        "attempts": 3,
    }
    assert str(tmp_path / "states" / "failures.jsonl") in done.refusal.hint


def test_conversations_that_share_a_file_of_states_are_refused(stub, tmp_path):
    said = [{"role": "user", "content": "A cola, please."}]
    chats = [{"id": "c1", "model": model, "messages": said} for model in "ab"]
    write_lines(tmp_path / "logs.jsonl", chats)
    task = replace(asked(stub, tmp_path, tmp_path / "logs.jsonl", "states"), layout="openai")
    with pytest.raises(InputError, match=r"have the id 'c1'.*each model by themselves"):
        annotate_states(task, SilentReporter())
    write_lines(tmp_path / "logs.jsonl", [{"id": "../c1", "messages": said}])
    with pytest.raises(InputError, match=r"the id '\.\./c1' cannot name the file"):
        annotate_states(task, SilentReporter())
    assert not stub.asked


def test_states_of_a_model_need_their_files():
    rows = [{"role": "agent", "content": "A cola, please."}]
    with pytest.raises(UsageError, match="annotate states"):
        fastscore.score(rows, fastscore.GuestSimulation(states="llm"), embedder=None)
