"""Judging and annotating chats of any kind, from the command line and from Python."""

import json
import re
import shlex
from functools import partial

import polars as pl
import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import cli
from fastscore.errors import InputError, UsageError
from fastscore.llm.client import Expectation
from fastscore.llm.judgements import load_rubric, rubric_names
from fastscore.llm.requests import estimated_tokens
from fastscore.suites.guest_simulation.options import ORDER_COLUMN, STATE_WORDS
from tests.conftest import write_lines
from tests.llm.stub_server import Stub, serving
from tests.llm.stub_server import read_lines as lines

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


def shown(body):
    """Return the lines of the conversation that a request shows."""
    text = body["messages"][1]["content"]
    return text.split("<conversation ")[1].split("</conversation")[0].splitlines()[1:]


def typed(command, stub, output):
    """Run a command of `judge` as it is printed, with what its placeholders stand for."""
    placed = {"MODEL": "m", "URL": stub.url, "judgements": str(output)}
    words = [placed.get(word, word) for word in shlex.split(command)[1:]]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return done


def test_chats_are_judged_without_a_suite(stub, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", OPENAI)
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
    log = write_lines(tmp_path / "own.jsonl", OWN)
    with pytest.raises(UsageError, match="these are chats under other names") as refused:
        fastscore.judge(log, "m", output=tmp_path / "judged")
    flags = "--column turns=log.turns --column speaker=by --column text=said"
    words = "--value speaker:bot=assistant --value speaker:human=user"
    folder = tmp_path / "judged"
    command = f"fastscore judge {log} -o {folder} {flags} {words} --model MODEL --base-url URL"
    assert refused.value.hint == f"Type {command}"
    fastscore.judge(log, "m", output=tmp_path / "judged", columns=OWN_MAP, values=OWN_WORDS)
    assert [shown(body) for body in stub.asked] == [["ASSISTANT: Hello", "USER: Bonds?"]]
    (row,) = lines(tmp_path / "judged" / "judgements.jsonl")
    assert (row["dialogue"], row["model"]) == ("7", "one")
    flags = [f"--column={name}={path}" for name, path in OWN_MAP.items()]
    flags += [f"--value=role:{word}={meant}" for word, meant in OWN_WORDS["role"].items()]
    typed = ["judge", str(log), "--model", "m", "-o", str(tmp_path / "typed"), *flags]
    assert CliRunner().invoke(cli, typed).exit_code == 0
    assert len(stub.asked) == 1  # the same request, which is kept
    with pytest.raises(InputError, match=r"is read from 'log[.]other', which no"):
        fastscore.judge(log, "m", output=tmp_path / "none", columns={"messages": "log.other"})


def test_columns_of_rows_that_are_messages_lack_the_layout(stub, tmp_path):
    rows = [{"chat": "c", "from": who, "body": text} for who, text in TURNS]
    log = write_lines(tmp_path / "log.jsonl", rows)
    columns = {"role": "from", "content": "body", "id": "chat"}
    ask = partial(fastscore.judge, log, "m", output=tmp_path / "judged", columns=columns)
    with pytest.raises(InputError, match="Each row is a message: add --layout turns"):
        ask()
    assert ask(layout="turns").spent.requests == 1


def test_chats_by_other_words_are_judged_by_what_is_proposed(stub, tmp_path):
    turns = [{"role": "customer", "content": "Hi there"}, {"role": "bot", "content": "Hello"}]
    log = write_lines(tmp_path / "log.jsonl", [{"messages": turns * 2}])
    with pytest.raises(UsageError, match="these are chats under other names") as refused:
        fastscore.judge(log, "m", output=tmp_path / "judged")
    typed(refused.value.hint.removeprefix("Type "), stub, tmp_path / "judged")
    said = ["USER: Hi there", "ASSISTANT: Hello"]
    assert [shown(body) for body in stub.asked] == [said * 2]


@pytest.mark.parametrize(("key", "user"), [("is_user", True), ("is_bot", False)])
@pytest.mark.parametrize("are_rows", [False, True])
def test_speakers_told_apart_by_a_flag_are_judged_by_what_is_proposed(
    stub, tmp_path, key, user, are_rows
):
    turns = [
        {key: who, "text": text} for who, text in ((user, "Hi there"), (not user, "Hello"))
    ] * 2
    rows = [{"id": 1} | turn for turn in turns] if are_rows else [{"id": 1, "messages": turns}]
    log = write_lines(tmp_path / "log.jsonl", rows)
    with pytest.raises(UsageError, match="these are chats under other names") as refused:
        fastscore.judge(log, "m", output=tmp_path / "judged")
    typed(refused.value.hint.removeprefix("Type "), stub, tmp_path / "judged")
    assert [shown(body) for body in stub.asked] == [["USER: Hi there", "ASSISTANT: Hello"] * 2]


def test_speakers_of_which_too_little_is_seen_are_asked_for(stub, tmp_path):
    turns = [{"is_user": True, "text": "Hi"}, {"is_user": False, "text": "Hello"}]
    log = write_lines(tmp_path / "log.jsonl", [{"id": 1, "messages": turns}])
    with pytest.raises(UsageError, match="do not say all that a judge needs") as refused:
        fastscore.judge(log, "m", output=tmp_path / "judged")
    command = f"fastscore {refused.value.hint.partition('type fastscore ')[2].removesuffix('.')}"
    typed(command, stub, tmp_path / "judged")
    assert [shown(body) for body in stub.asked] == [["USER: Hi", "ASSISTANT: Hello"]]


def test_a_speaker_called_false_is_no_missing_one(stub, tmp_path):
    turns = [{"role": who, "content": text} for who, text in [(True, "Hi"), (False, "Hello")]]
    log = write_lines(tmp_path / "log.jsonl", [{"messages": turns}])
    fastscore.judge(log, "m", output=tmp_path / "judged")
    assert [shown(body) for body in stub.asked] == [["true: Hi", "false: Hello"]]


SAID = [("Hi there", "Hello"), ("A film please", "Try Heat")]
TURNS = [(who, text) for pair in SAID for who, text in zip(("user", "bot"), pair, strict=True)]
TRACES = [
    {
        "sessionId": "s",
        "input": [
            {"role": who.replace("bot", "assistant"), "content": text}
            for who, text in TURNS[: 2 * n + 1]
        ],
        "output": {"role": "assistant", "content": SAID[n][1]},
    }
    for n in (0, 1)
]
KINDS = {
    "named columns": (
        [
            {"Conversation ID": name, "Speaker": who.replace("bot", "Agent"), "Text": text}
            for name in "cd"
            for who, text in TURNS
        ],
        "--layout turns --column speaker=Speaker --column text=Text "
        "--value speaker:Agent=assistant --column 'id=Conversation ID'",
    ),
    "other columns": (
        [{"conv": c, "from": who, "body": text} for who, text in TURNS for c in "cd"],
        "--layout turns --column text=body --column id=conv",
    ),
    "newest first": (
        [
            {"conversation_id": "c", "created_at": f"2026-02-01T10:0{n}:00", "role": w, "text": t}
            for n, (w, t) in reversed([*enumerate(TURNS)])
        ],
        "--layout turns --sort-by created_at",
    ),
    "pairs": (
        [{"chat_id": "c", "user": asked, "bot": reply} for asked, reply in SAID],
        "--layout pairs --dialogue chat_id",
    ),
    "replies": (
        [{"session_id": "c", "prompt": asked, "response": reply} for asked, reply in SAID],
        "--layout context-response --dialogue session_id",
    ),
    "traces": (TRACES, "--layout langfuse --dialogue sessionId"),
    "a helpdesk's tickets": (
        [
            {
                "ticket": {
                    "id": name,
                    "events": [
                        {
                            "actor": {"kind": who, "name": f"{who.title()} Name"},
                            "payload": {"text": {"plain": text}},
                        }
                        for who, text in TURNS
                    ],
                }
            }
            for name in "cd"
        ],
        "--column turns=ticket.events --column speaker=actor.kind "
        "--column text=payload.text.plain --value speaker:bot=assistant",
    ),
}


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [*((kind, ".jsonl") for kind in KINDS), ("named columns", ".csv"), ("traces", ".csv")],
)
def test_what_inspect_prints_for_a_judge_judges_all_turns(kind, suffix, stub, tmp_path):
    rows, flags = KINDS[kind]
    log = tmp_path / f"log{suffix}"
    if suffix == ".jsonl":
        write_lines(log, rows)
    else:  # names of CSV have no case
        cells = [
            {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows
        ]
        pl.DataFrame(cells).write_csv(log)
        flags = flags.replace("--column speaker=Speaker --column text=Text ", "")
        flags = flags.replace("sessionId", "sessionid").replace(
            "Conversation ID", "conversation id"
        )
    done = CliRunner().invoke(cli, ["inspect", str(log)])
    (command,) = (line.strip() for line in done.output.splitlines() if "fastscore judge " in line)
    shown_flags = command.partition(" judgements ")[2].partition(" --model ")[0]
    assert sorted(shlex.split(shown_flags)) == sorted(shlex.split(flags))
    typed(command, stub, tmp_path / "judged")
    assert len(stub.asked) == 1  # equal dialogues make one request
    body = stub.asked[0]
    said = [f"{who.replace('bot', 'assistant').upper()}: {text}" for who, text in TURNS]
    assert shown(body) == said


def test_two_versions_of_a_bot_are_compared_whatever_their_prompts(stub, tmp_path):
    """By hand: t is -2 / .57735, and p is 3 (1 - t / sqrt(t t + 2)) by Holm, with 2 degrees."""
    asked = {n: {"role": "user", "content": f"Where is parcel {n}?"} for n in (1, 2, 3)}
    rows = [
        {
            "id": f"d{n}",
            "version": version,
            "messages": [
                {"role": "system", "content": f"You are bot {version}."},
                asked[n],
                {"role": "assistant", "content": f"{version} says {score}"},
            ],
        }
        for version, given in (("v1", (4, 4, 4)), ("v2", (2, 3, 1)))
        for n, score in zip(asked, given, strict=True)
    ]
    log = write_lines(tmp_path / "log.jsonl", rows)
    stub.answer = lambda body: json.dumps(
        dict.fromkeys(SCORES, int(shown(body)[-1].removeprefix("ASSISTANT: ")[-1]))
    )
    words = [str(log), "--model", "m", "--layout", "openai", "-o"]
    done = CliRunner().invoke(
        cli, ["judge", *words, str(tmp_path / "named"), "--column", "model=version"]
    )
    told = " ".join(done.output.split())
    assert "v2 against v1 (pairs by id" in told
    assert "helpfulness ↑ -2.0000 [-4.0000, 0.4841] 0.7500" in told
    assert "3 units cannot give a corrected p below 0.05" in told
    done = CliRunner().invoke(cli, ["judge", *words, str(tmp_path / "unnamed")])
    assert "6 of 6 dialogues have the id and model of another one" in done.output
    for row in rows:
        row["id"] += row["version"]
    log = write_lines(tmp_path / "log.jsonl", rows)
    done = CliRunner().invoke(
        cli, ["judge", *words, str(tmp_path / "apart"), "--column", "model=version"]
    )
    assert "v2 against v1 (independent" in " ".join(done.output.split())
    found = fastscore.compare(tmp_path / "apart", by="model", unpaired=True)
    assert found.differences["difference"].to_list() == [-2.0] * 3
    # one side is constant, so variances are pooled: scipy's ttest_ind of the scores
    assert found.differences["p"].to_list() == pytest.approx([0.025721420742506513] * 3)


def test_options_of_chats_are_those_of_score(stub, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", [{"id": "c1", "say": [text for _, text in TURNS]}])
    how = {"columns": {"turns": "say"}, "alternate": "user"}
    fastscore.judge(log, "m", output=tmp_path / "judged", **how)
    assert [len(shown(body)) for body in stub.asked] == [4]
    guests = fastscore.annotate(log, "states", "m", output=tmp_path / "s", dry_run=True, **how)
    assert guests.expected.requests == 2
    how["alternate"] = "me"
    with pytest.raises(UsageError, match="alternate is 'me'"):
        fastscore.judge(log, "m", output=tmp_path / "x", **how)
    with pytest.raises(UsageError, match="alternate is 'me'"):
        fastscore.annotate(log, "states", "m", output=tmp_path / "x", **how)


def test_traces_that_repeat_the_turns_before_are_refused(stub, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", TRACES)
    how = {"layout": "langfuse", "output": tmp_path / "out", "dry_run": True}
    calls = [
        (partial(fastscore.judge, log, "m", **how), 1),
        (partial(fastscore.judge, log, "m", suite="guest_simulation", **how), 1),
        (partial(fastscore.annotate, log, "states", "m", **how), 2),
    ]
    for call, n_requests in calls:
        with pytest.raises(InputError, match="Type --dialogue sessionId"):
            call()
        assert call(dialogue="sessionId").expected.requests == n_requests
    with pytest.raises(InputError, match="Type --layout langfuse --dialogue sessionId"):
        fastscore.annotate(log, "states", "m", output=tmp_path / "out", dry_run=True)


def test_a_dialogue_in_which_nobody_is_named_is_not_judged(stub, tmp_path):
    named = [{"conv_id": "a", "role": who, "text": text} for who, text in TURNS]
    log = write_lines(
        tmp_path / "log.jsonl", named + [{"conv_id": "b", "text": t} for _, t in TURNS]
    )
    with pytest.raises(InputError, match="no turn of dialogue 'b' has a speaker") as refused:
        fastscore.judge(
            log,
            "m",
            output=tmp_path / "judged",
            layout="turns",
            columns={"id": "conv_id"},
            values={"speaker": {"bot": "assistant"}},
        )
    assert refused.value.hint == "Name their key: --column speaker=KEY."
    assert not stub.asked


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_rows_without_a_speaker_do_not_alternate(name, stub, tmp_path):
    rows = pl.DataFrame({"conversation_id": ["a"] * 4, "text": [text for _, text in TURNS]})
    log = tmp_path / name
    rows.write_csv(log) if log.suffix == ".csv" else rows.write_ndjson(log)
    how = {"layout": "turns", "output": tmp_path / "out"}
    (tmp_path / "items.jsonl").write_text('{"name": "Heat"}\n')
    items = str(tmp_path / "items.jsonl")
    options = fastscore.PreferenceShift(catalogue=items, segments="metadata")
    calls = [
        partial(fastscore.judge, log, "m", **how),
        partial(fastscore.score, log, options, embedder=None, **how),
        partial(fastscore.score, log, "guest_simulation", embedder=None, **how),
    ]
    for call in calls:
        with pytest.raises(InputError, match="Name its key: --column") as refused:
            call()
        assert "alternate" not in str(refused.value)
        with pytest.raises(UsageError, match="only turns in an array alternate"):
            call(alternate="user")


@pytest.mark.parametrize("logs", [1, 2])
def test_the_reason_why_nothing_is_judged_is_told_once(logs, stub, tmp_path):
    for number in range(logs):
        (tmp_path / f"{number}.csv").write_text("prompt,response_a,response_b\nHi,Yo,Hey\n")
    paths = [tmp_path / f"{number}.csv" for number in range(logs)]
    with pytest.raises(InputError) as refused:
        fastscore.judge(paths, "m", output=tmp_path / "out", dry_run=True)
    assert str(refused.value) == (
        f"{', '.join(map(str, paths))}: each of response_a, response_b may be the last reply. "
        "Name the one to read, for example --layout context-response --column reply=response_a."
    )
    with pytest.raises(UsageError, match=r"no column 'response' to map\. .*'reply'"):
        fastscore.judge(paths, "m", output=tmp_path / "o", columns={"response": "response_a"})


def test_a_log_in_another_encoding_is_refused_with_its_conversion(tmp_path):
    rows = [f"{n};{who};Grüße aus Köln, {n}" for n in range(9) for who in ("user", "assistant")]
    text = "\n".join(["id;role;content", *rows])
    (tmp_path / "chats.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"the text is not UTF-8\..*iconv"):
        fastscore.judge(tmp_path / "chats.csv", "m", output=tmp_path / "out", dry_run=True)


def test_speakers_of_no_known_role_are_counted(stub, tmp_path):
    words = {"user": "Ann", "bot": "Zoe"}
    log = write_lines(
        tmp_path / "log.jsonl", [{"id": 1, "from": words[w], "text": t} for w, t in TURNS]
    )
    command = f"fastscore judge {log} -o judgements --layout turns --model MODEL --base-url URL"
    done = typed(command, stub, tmp_path / "judged")
    told = "4 turns have speakers of no known role: 'Ann' (2), 'Zoe' (2)"
    assert told in " ".join(done.stderr.split())


def test_what_is_not_judged_or_may_be_several_dialogues_is_told(stub, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    write_lines(logs / "asked.jsonl", [{"messages": TRACES[1]["input"] * 7}])
    write_lines(logs / "replies.jsonl", [{"response": {"body": {}}}] * 2)
    words = ["judge", str(logs), "--column", "messages=messages", "--model", "m", "--dry-run"]
    told = " ".join(CliRunner().invoke(cli, [*words, "-o", str(tmp_path)]).output.split())
    assert f"Not judged: 2 chats without a turn, the first {logs}/replies.jsonl:1." in told
    assert "All 21 turns are one dialogue. If they are several, name the key" in told
    write_lines(tmp_path / "empty.jsonl", [])
    with pytest.raises(InputError, match="no row was found"):
        fastscore.judge(tmp_path / "empty.jsonl", "m", output=tmp_path, layout="openai")


def test_nothing_is_asked_about_logs_with_many_rejects(stub, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", OPENAI)
    log.write_bytes(log.read_bytes() + b'{"id": "d3", "messages": [\n')
    with pytest.raises(
        InputError, match=r"1 of 3 lines is a reject.*Nothing was asked.*log\.jsonl:3"
    ):
        fastscore.judge(log, "m", output=tmp_path / "judged")
    with pytest.raises(InputError, match="1 of 3 lines is a reject"):
        fastscore.judge(log, "m", output=tmp_path / "judged", dry_run=True)
    assert not stub.asked
    judged = fastscore.judge(log, "m", output=tmp_path / "judged", max_rejects=1)
    assert judged.summary["dialogues_judged"] == 2
    assert judged.summary["log_rows_rejected"] == 1


@pytest.mark.parametrize("layout", ["turns", None])
def test_a_log_in_another_encoding_is_refused_with_the_command(layout, stub, tmp_path):
    rows = ["id,role,content", "1,user,Wo ist mein Päckchen?", "1,assistant,Schöne Grüße aus Köln"]
    log = tmp_path / "log.csv"
    log.write_bytes("\n".join(rows).encode("cp1252"))
    told = f"The encoding of {log} is probably WINDOWS-1252. Type iconv -f WINDOWS-1252 -t UTF-8 "
    judge = partial(fastscore.judge, log, "m", output=tmp_path / "judged", layout=layout)
    with pytest.raises(InputError, match=re.escape(f"{told}{log} > {tmp_path}/log.utf8.csv.")):
        judge()
    assert not stub.asked
    log.write_bytes(log.read_bytes() + b"\n1,user,Thanks")
    typed = f"judge {log} --model m --layout turns --max-rejects 1 -o {tmp_path}/judged"
    done = CliRunner().invoke(cli, typed.split())
    assert done.exit_code == 0, done.output
    assert told in " ".join(done.output.split())


@pytest.mark.parametrize("command", ["judge", "annotate states"])
def test_standard_input_is_refused(command, tmp_path):
    words = [*command.split(), "-", "--model", "m", "--dry-run", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(cli, words, input="{}\n")
    assert done.exit_code != 0
    assert "Standard input is read once" in str(done.exception)


def test_dialogues_in_which_only_the_assistant_speaks_are_counted(stub, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", [{"id": 1, "prompt": "Why?", "response_a": "So."}])
    command = f"fastscore judge {log} -o judgements --model MODEL --base-url URL"
    told = "Only the assistant speaks in 1 of 1 dialogue"
    done = typed(f"{command} --column reply=response_a", stub, tmp_path / "reply")
    assert told in " ".join(done.stderr.split())
    reads_both = "--layout context-response --column reply=response_a"
    assert told not in typed(f"{command} {reads_both}", stub, tmp_path / "both").stderr


def test_a_suite_reads_chats_of_a_layout(stub, tmp_path):
    rows = [{"id": "c", "model": "m1", "conversations": [{"from": "human", "value": "a pizza"}]}]
    log = write_lines(tmp_path / "log.jsonl", rows)
    names = ("proactiveness", "coherence", "personalization")
    stub.answer = lambda body: json.dumps(dict.fromkeys(names, 3))
    how = {"suite": "preference_shift", "layout": "sharegpt"}
    judged = fastscore.judge(log, "m", output=tmp_path / "judged", **how)
    assert judged.summary["rubric"] == "pepper"  # the suite's
    (row,) = lines(tmp_path / "judged" / "judgements.jsonl")
    assert (row["dialogue"], row["model"]) == ("c", "m1")


def test_a_dry_run_says_what_would_be_asked(stub, tmp_path, monkeypatch):
    log = write_lines(tmp_path / "log.jsonl", OPENAI)
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
    other = write_lines(tmp_path / "other.jsonl", OPENAI)
    pairs = ["judge", str(log), "--against", str(other), "--model", "m", "-o", "x", "--dry-run"]
    told = CliRunner().invoke(cli, pairs)
    assert (told.exit_code, told.output.splitlines()[0]) == (
        0,
        "requests   4, more where an answer must be asked for again",
    )


@pytest.mark.parametrize(
    ("cost", "written"), [(0.0, "0"), (0.00031, "0.0003"), (0.01, "0.01"), (12.345, "12.35")]
)
def test_a_small_cost_is_not_called_nothing(cost, written):
    *_, told = Expectation(1, 0, 100, 10, cost).lines()
    assert told == f"cost       about {written} USD"


def test_annotations_of_a_layout_and_from_python(stub, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", OPENAI[:1])
    catalogue = write_lines(tmp_path / "movies.jsonl", [{"name": "Heat", "genre": ["Drama"]}])
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
    with pytest.raises(UsageError, match="fields does not apply to states"):
        fastscore.annotate(log, "states", "m", output=tmp_path / "s", fields="genre")
    with pytest.raises(UsageError, match="level does not apply to concepts"):
        fastscore.annotate(log, "concepts", "m", level=3, **how)
    with pytest.raises(UsageError, match="Did you mean 'states'"):
        fastscore.annotate(log, "state", "m", output=tmp_path / "c.jsonl")
    for public, what in ((fastscore.annotate, ("states",)), (fastscore.judge, ())):
        for wrong, meant in {"max_token": "max_tokens", "dryrun": "dry_run"}.items():
            misfit = rf"{public.__name__}\(\) has no argument '{wrong}'\. Did you mean '{meant}'"
            with pytest.raises(TypeError, match=misfit):
                public(log, *what, "m", output=tmp_path / "c.jsonl", **{wrong: 1})


def test_states_of_chats_without_a_level_are_scored(stub, tmp_path):
    turns = [{"role": "user", "content": word} for word in ("a pizza", "a cola", "that is all")]
    log = write_lines(tmp_path / "log.jsonl", [{"id": "c", "messages": turns}])
    state = {name: words[0] for name, words in STATE_WORDS.items()}
    stub.answer = lambda body: json.dumps(state | {ORDER_COLUMN: []})
    done = fastscore.annotate(log, "states", "m", output=tmp_path / "states", layout="openai")
    assert done.read == 3
    options = fastscore.GuestSimulation(states="llm", states_from=str(tmp_path / "states"))
    run = fastscore.score(log, options, layout="openai", embedder=None)
    assert run.rejects.is_empty()
    assert run.tables["dialogues"]["state_source"].to_list() == ["columns"]  # in their place


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
