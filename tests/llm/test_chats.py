"""Judging and annotating chats of any kind, from the command line and from Python."""

import json
import shlex

import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import cli
from fastscore.errors import InputError, UsageError
from fastscore.llm.judgements import load_rubric, rubric_names
from fastscore.llm.requests import estimated_tokens
from tests.llm.stub_server import Stub, serving

SCORES = {"helpfulness": 4, "coherence": 3, "honesty": 5}
OPENAI = [
    {
        "id": "d1",
        "model": "one",
        "messages": [
            {"role": "user", "content": "Should I buy bonds?"},
            {"role": "assistant", "content": [{"type": "text", "text": "It depends."}]},
        ],
    },
    {"id": "d2", "model": "two", "messages": [{"role": "user", "content": "Hi"}]},
]
OWN = [
    {
        "key": 7,
        "who": "one",
        "log": {"turns": [{"by": "bot", "said": "Hello"}, {"by": "human", "said": "Bonds?"}]},
    }
]
OWN_MAP = {"id": "key", "model": "who", "messages": "log.turns", "role": "by", "content": "said"}
OWN_WORDS = {"role": {"bot": "ASSISTANT", "human": "USER"}}


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("fastscore.llm.requests.cache_root", lambda: tmp_path / "cache")
    with serving(Stub(answer=lambda body: json.dumps(SCORES))) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        yield served


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def shown(body):
    """Return the lines of the conversation that a request shows."""
    text = body["messages"][1]["content"]
    return text.split("<conversation ")[1].split("</conversation")[0].splitlines()[1:]


def test_chats_are_judged_without_a_suite(stub, tmp_path):
    log = written(tmp_path / "log.jsonl", OPENAI)
    judged = fastscore.judge(log, "m", output=tmp_path / "judged")
    assert sorted(map(shown, stub.asked)) == [
        ["USER: Hi"],
        ["USER: Should I buy bonds?", "ASSISTANT: It depends."],
    ]
    assert (judged.summary["suite"], judged.summary["rubric"]) == ("chats", "assistant")
    assert judged.summary["dimensions"]["honesty"]["mean"] == 5
    assert judged.spent.requests == 2
    found = lines(tmp_path / "judged" / "judgements.jsonl")
    assert [(row["dialogue"], row["model"]) for row in found] == [("d1", "one"), ("d2", "two")]
    assert "recommender" not in json.dumps(stub.asked)


def test_columns_and_values_name_where_chats_are(stub, tmp_path):
    log = written(tmp_path / "own.jsonl", OWN)
    with pytest.raises(InputError, match="no row has what judge needs") as refused:
        fastscore.judge(log, "m", output=tmp_path / "judged")
    assert (
        refused.value.hint
        == "Type --column messages=log.turns --column role=by --column content=said."
    )
    fastscore.judge(log, "m", output=tmp_path / "judged", columns=OWN_MAP, values=OWN_WORDS)
    assert [shown(body) for body in stub.asked] == [["ASSISTANT: Hello", "USER: Bonds?"]]
    (row,) = lines(tmp_path / "judged" / "judgements.jsonl")
    assert (row["dialogue"], row["model"]) == ("7", "one")
    flags = [f"--column={name}={path}" for name, path in OWN_MAP.items()]
    flags += [f"--value=role:{word}={meant}" for word, meant in OWN_WORDS["role"].items()]
    typed = ["judge", str(log), "--model", "m", "-o", str(tmp_path / "typed"), *flags]
    assert CliRunner().invoke(cli, typed).exit_code == 0
    assert len(stub.asked) == 1  # the same request, which is kept
    with pytest.raises(InputError, match="no row has what judge needs"):
        fastscore.judge(log, "m", output=tmp_path / "none", columns={"messages": "log.other"})


def test_chats_by_other_words_are_judged_by_what_is_proposed(stub, tmp_path):
    turns = [{"role": "customer", "content": "Hi there"}, {"role": "bot", "content": "Hello"}]
    log = written(tmp_path / "log.jsonl", [{"messages": turns * 2}])
    with pytest.raises(UsageError, match="these are chats under other names") as refused:
        fastscore.judge(log, "m", output=tmp_path / "judged")
    command = refused.value.hint.removeprefix("Type fastscore ").replace("MODEL", "m")
    words = [
        word if word != "judgements" else str(tmp_path / word) for word in shlex.split(command)
    ]
    assert CliRunner().invoke(cli, words).exit_code == 0
    said = ["USER: Hi there", "ASSISTANT: Hello"]
    assert [shown(body) for body in stub.asked] == [said * 2]


def test_a_suite_reads_chats_of_a_layout(stub, tmp_path):
    rows = [{"id": "c", "model": "m1", "conversations": [{"from": "human", "value": "a pizza"}]}]
    log = written(tmp_path / "log.jsonl", rows)
    names = ("proactiveness", "coherence", "personalization")
    stub.answer = lambda body: json.dumps(dict.fromkeys(names, 3))
    how = {"suite": "preference_shift", "layout": "sharegpt"}
    judged = fastscore.judge(log, "m", output=tmp_path / "judged", **how)
    assert judged.summary["rubric"] == "pepper"  # the suite's
    (row,) = lines(tmp_path / "judged" / "judgements.jsonl")
    assert (row["dialogue"], row["model"]) == ("c", "m1")


def test_a_dry_run_says_what_would_be_asked(stub, tmp_path, monkeypatch):
    log = written(tmp_path / "log.jsonl", OPENAI)
    how = {"repeats": 3, "prices": (1e6, 1e6)}
    expected = fastscore.judge(log, "m", output=tmp_path / "j", dry_run=True, **how).expected
    assert (stub.asked, (tmp_path / "j").exists()) == ([], False)
    fastscore.judge(log, "m", output=tmp_path / "j", **how)
    sent = [sum(len(one["content"]) for one in body["messages"]) for body in stub.asked]
    assert (expected.requests, expected.kept, len(stub.asked)) == (6, 0, 6)
    assert expected.prompt_tokens == sum(map(estimated_tokens, sent))
    assert expected.cost == expected.prompt_tokens + expected.completion_tokens
    again = fastscore.judge(log, "m", output=tmp_path / "j", dry_run=True, **how).expected
    assert (again.requests, again.kept, again.cost) == (6, 6, 0)
    free = fastscore.judge(log, "m", output=tmp_path / "other", dry_run=True, repeats=3).expected
    assert free.cost is None  # of unknown prices, not for nothing
    monkeypatch.delenv("OPENAI_BASE_URL")  # an estimate needs no server
    pairs = ["judge", str(log), "--against", str(log), "--model", "m", "-o", "x", "--dry-run"]
    told = CliRunner().invoke(cli, pairs)
    assert (told.exit_code, told.output.splitlines()[0]) == (
        0,
        "requests   4, more where an answer must be asked for again",
    )


def test_annotations_of_a_layout_and_from_python(stub, tmp_path):
    log = written(tmp_path / "log.jsonl", OPENAI[:1])
    catalogue = written(tmp_path / "movies.jsonl", [{"name": "Heat", "genre": ["Drama"]}])
    how = {"output": tmp_path / "concepts.jsonl", "catalogue": catalogue, "layout": "openai"}
    expected = fastscore.annotate(log, "concepts", "m", dry_run=True, **how).expected
    assert (expected.requests, stub.asked) == (2, [])
    stub.answer = lambda body: "{}"
    done = fastscore.annotate(log, "concepts", "m", **how)
    assert (done.read, done.failed, done.output) == (2, 0, tmp_path / "concepts.jsonl")
    texts = [line["text"] for line in lines(tmp_path / "concepts.jsonl")]
    assert sorted(texts) == ["It depends.", "Should I buy bonds?"]
    with pytest.raises(UsageError, match="catalogue is missing"):
        fastscore.annotate(log, "concepts", "m", output=tmp_path / "c.jsonl")
    with pytest.raises(UsageError, match="Did you mean 'states'"):
        fastscore.annotate(log, "state", "m", output=tmp_path / "c.jsonl")
    with pytest.raises(UsageError, match=r"Unknown argument 'max_costs'\. Did you mean 'max_cost'"):
        fastscore.annotate(log, "states", "m", output=tmp_path / "c.jsonl", max_costs=1)


@pytest.mark.parametrize("name", rubric_names())
def test_bundled_rubrics_can_be_used(name):
    rubric = load_rubric(name)
    assert (rubric.low, rubric.high) == (1, 5)
    assert 3 <= len(rubric.questions) <= 4
    assert ("recommend" in json.dumps([rubric.title, *rubric.prompts.values()])) == (
        name == "pepper"
    )


def test_a_rubric_of_a_title_and_dimensions_is_enough(tmp_path):
    file = tmp_path / "wit.toml"
    file.write_text('title = "Wit"\n[[dimension]]\nname = "wit"\nquestion = "Is it funny?"\n')
    rubric, usual = load_rubric(str(file)), load_rubric("assistant")
    assert (rubric.low, rubric.high, rubric.prompts) == (usual.low, usual.high, usual.prompts)
    assert dict(rubric.questions) == {"wit": "Is it funny?"}
    assert len({rubric.digest, usual.digest, load_rubric("finance").digest}) == 3
