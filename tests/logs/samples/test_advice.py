"""What `inspect` prints: every command and every proposed option scores something."""

import json
import re
import shlex
import shutil
import subprocess
import zipfile
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import cli
from fastscore.errors import InputError
from tests.logs.chats import PAIRS, REPLIES, chat, options_of, reading, write

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq writes logs anew")
needs_unzip = pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip reads members")
_OPTIONS = re.compile(r"--\w[\w-]* \S+(?: --[\w-]+(?: (?!--)[^\s]+)?)*")


def shown(log) -> str:
    """Return what `inspect` prints of a log, or why it cannot be read."""
    done = CliRunner().invoke(cli, ["inspect", str(log)], env={"COLUMNS": "200"})
    return done.output if done.exception is None else str(done.exception)


def reads(text: str) -> Any:
    """Yield the suites for which options are printed, and these options."""
    for line in text.splitlines():
        if "Type jq" in line or "KEY" in line:
            continue
        command = re.match(r"  fastscore score (\w+) \S+ -o \S+ ?(.*)", line)
        if command is not None:
            yield command[1], command[2].removesuffix(" --catalogue FILE")
        asked = re.match(r"not ([\w, ]+): (?!with )(.*)", line)
        options = _OPTIONS.search(asked[2]) if asked is not None else None
        if asked is not None and options is not None:
            for suite in asked[1].split(", "):
                yield suite, options[0].removesuffix(".")


def rewrite(text: str, folder):
    """Run the command that writes a log anew, and return what it writes."""
    command = re.search(r"((?:unzip|jq|iconv) .*? > (\S+\.\w+))(?:[,.]|$)", text, re.M)
    assert command is not None, text
    subprocess.run(command[1], shell=True, check=True, cwd=folder)
    return folder / command[2]


def scored_as_printed(log) -> set[str]:
    """Score a log in every way that `inspect` prints; return the suites."""
    suites = set()
    text = shown(log)
    for suite, command in re.findall(r"not (\w+)[^:\n]*: (.* Type jq .*)", text):
        anew = rewrite(command, log.parent)
        options = _OPTIONS.search(command.partition("and read it with ")[2])
        how = options_of(suite, log.parent)
        given = reading(shlex.split(options[0].removesuffix("."))) if options else {}
        assert fastscore.score(anew, how, embedder=None, **given).summary.height, command
        suites.add(suite)
    for suite, options in reads(text):
        given: dict[str, Any] = {}
        if options.endswith("--merge-speakers"):
            options, given["merge_speakers"] = options.removesuffix(" --merge-speakers"), True
        how = options_of(suite, log.parent)
        if given:
            how = fastscore.PreferenceShift(**{**vars_of(how), **given})
        run = fastscore.score(
            log, how, embedder=None, max_rejects=1, **reading(shlex.split(options))
        )
        assert run.summary.filter(run.summary["n"] > 0).height, (suite, options)
        suites.add(suite)
    return suites


def vars_of(options: Any) -> dict[str, Any]:
    return {"catalogue": options.catalogue, "segments": options.segments}


def table(log, header: str, rows: Any, encoding: str = "utf-8"):
    cells = [",".join(f'"{cell}"' for cell in row) for row in rows]
    log.write_bytes("\n".join([header, *cells, ""]).encode(encoding))
    return log


def sides(user: str, assistant: str, pairs: Any = PAIRS) -> list[list[str]]:
    """Return two dialogues, a row for each message."""
    return [
        [name, who, said]
        for name in "ab"
        for pair in pairs
        for who, said in zip((user, assistant), pair, strict=True)
    ]


@needs_jq
@needs_unzip
def test_a_chat_of_whatsapp_in_a_zip(tmp_path):
    said = [(who, text) for pair in PAIRS for who, text in zip(("Anna", "Bot"), pair, strict=True)]
    lines = [f"[01/02/2025, 10:0{n}:01] {who}: {text}\n" for n, (who, text) in enumerate(said)]
    with zipfile.ZipFile(tmp_path / "it's one.zip", "w") as archive:
        archive.writestr("_chat.txt", "".join(lines))
    text = shown(tmp_path / "it's one.zip")
    turns = rewrite(text, tmp_path)
    assert "read it with --layout turns --value speaker:Anna=user --value speaker:Bot=a" in text
    assert scored_as_printed(turns) == {"preference_shift", "guest_simulation"}


def test_a_zip_without_a_log_says_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("one.png", b"\x89PNG")
    text = shown(tmp_path / "images.zip")
    assert "it has .png. Unpack it, and write its logs as JSON Lines, CSV or Parquet." in text
    assert "fastscore inspect" not in text


@pytest.mark.skipif(shutil.which("iconv") is None, reason="iconv converts encodings")
def test_a_table_in_another_encoding(tmp_path):
    said = ("我想找一部好看的电影。", "推荐您观看《霸王别姬》。")
    rows = sides("user", "assistant", [said, said])
    log = table(tmp_path / "chats.csv", "dialogue_id,role,content", rows, "gb18030")
    text = shown(log)
    assert "the text is not UTF-8" in text
    assert "preference_shift" in scored_as_printed(rewrite(text, tmp_path))


@needs_jq
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_booleans_in_the_place_of_words(suffix: str, tmp_path):
    rows = [
        {"conversation_id": "c", "role": who, "content": said, "is_ordering_complete": False}
        for _, who, said in sides("guest", "assistant")
    ]
    log = write(tmp_path / "log.jsonl", rows)
    if suffix == "json":
        log = tmp_path / "log.json"
        log.write_text(json.dumps(rows))
    text = shown(log)
    assert "is_ordering_complete: wrong_type (found false, expected a string)" in text
    with pytest.raises(InputError, match=r"Type jq -c .* > rows\.json"):
        fastscore.score(log, "guest_simulation", embedder=None)
    anew = rewrite(text, tmp_path)
    assert "guest_simulation" in scored_as_printed(anew)
    run = fastscore.score(anew, "guest_simulation", embedder=None)
    assert run.tables["messages"]["is_ordering_complete"].unique().to_list() == ["no"]


@pytest.mark.parametrize(
    "words",
    [("in", "out"), ("eingehend", "ausgehend"), ("Kunde", "Bot"), ("Meyer", "assistant"),
     ("customer", "Meyer")],
)  # fmt: skip
def test_both_speakers_of_rows_are_named(words: tuple[str, str], tmp_path):
    log = table(tmp_path / "kunden.csv", "ticket,direction,text", sides(*words))
    text = shown(log)
    assert scored_as_printed(log) == {"preference_shift", "guest_simulation"}
    for _, options in reads(text):
        named = {word for word in words if f"speaker:{word}=" in options}
        assert named in ({*words}, {*words} - {"assistant", "customer"})


def test_only_messages_that_can_pair_are_joined(tmp_path):
    (first, reply), *_ = PAIRS
    said = [("user", "Hello."), ("user", first), ("assistant", reply), ("assistant", "Bye.")]
    rows = [{"conversation_id": "c", "role": who, "content": text} for who, text in said * 2]
    log = write(tmp_path / "log.jsonl", rows)
    assert "--layout turns --merge-speakers --catalogue FILE" in shown(log)
    assert "preference_shift" in scored_as_printed(log)
    with pytest.raises(InputError, match="Set merge_speakers to join"):
        fastscore.score(log, options_of("preference_shift", tmp_path), layout="turns")
    log = write(tmp_path / "users.jsonl", [{"messages": chat()[::2]}])
    assert "merge" not in shown(log)
    with pytest.raises(InputError, match="Look at the speakers in the rejects"):
        fastscore.score(log, options_of("preference_shift", tmp_path), layout="openai")
    word = {"user": "crs", "assistant": "proband"}
    other = [
        {**row, "conversation_id": f"c{number}", "role": word[row["role"]]}
        for number in range(150)  # more rows than a sample has
        for row in rows
    ]
    pl.DataFrame(other).write_csv(tmp_path / "others.csv")
    for logs, hint in (
        (other, "--value speaker:crs=USER --value speaker:proband=SYSTEM"),
        (tmp_path / "others.csv", "Look at the speakers in the rejects, such as 'crs': "),
    ):
        with pytest.raises(InputError, match=hint):
            fastscore.score(logs, options_of("preference_shift", tmp_path), layout="turns")


def test_what_a_judge_needs_is_named_by_the_shape_of_a_log(tmp_path):
    judge = "`fastscore judge` reads any chat whose keys are named: "
    log = write(tmp_path / "rows.jsonl", [{"kanal": 1, "inhalt": said} for said in REPLIES])
    assert f"{judge}--layout turns --column speaker=KEY --column text=KEY\n" in shown(log)
    log = write(tmp_path / "numbers.jsonl", [{"a": 1, "b": 2.5}])
    text = shown(log)
    assert "fastscore judge" not in text
    assert "do what" not in text


def test_a_judge_reads_pairs_of_any_names(tmp_path):
    log = table(tmp_path / "pairs.csv", "frage,antwort", PAIRS)
    text = shown(log)
    options = "--layout pairs --value speaker:frage=user --value speaker:antwort=assistant"
    assert "To judge: If rows are pairs, say who is who" in text
    assert re.search(rf"fastscore judge \S+pairs\.csv -o judgements {options} --model", text)
    # every metric of one message is null
    assert scored_as_printed(log) == {"preference_shift"}
    log = table(tmp_path / "known.csv", "question,answer", PAIRS)
    assert re.search(r"fastscore judge \S+known\.csv .*--layout context-response", shown(log))


def test_a_slip_in_a_key_is_told(tmp_path):
    beside = {f"k{n}": n for n in range(9)}
    rows = [
        {"event": "predicted", "utterance_index": 0, "step": 0, "prediction": REPLIES[0], **beside},
        {"event": "utterance_complete", "utterance_index": 0, "actual": REPLIES[0], **beside},
    ]
    log = write(tmp_path / "log.jsonl", rows)
    how: Any = lambda key: fastscore.score(  # noqa: E731
        log, options_of("score_dialogue", tmp_path), embedder=None, columns={"ground_truth": key}
    )
    with pytest.raises(InputError, match=r"nearest: actual\n.*--column ground_truth=actual\."):
        how("actul")
    assert how("actual").tables["steps"].height == 1
    log = write(tmp_path / "chats.jsonl", [{"model": "m", "messages": chat()}])
    columns = {"turns": "mesages", "speaker": "role", "text": "content"}
    with pytest.raises(InputError, match=r"no dialogue has; .* Type --column turns=messages\."):
        fastscore.score(log, "guest_simulation", embedder=None, columns=columns)
    columns = {"model": "modle"}
    with pytest.raises(InputError, match=r"no dialogue has; .* Type --column model=model\."):
        fastscore.score(log, "guest_simulation", embedder=None, layout="openai", columns=columns)


@pytest.mark.parametrize(
    ("name", "text"),
    [("log.jsonl", ""), ("log.csv", ""), ("log.json", "[]"), ("log.csv", "role,content\n")],
)
def test_an_empty_file_is_called_empty(name: str, text: str, tmp_path):
    log = tmp_path / name
    log.write_text(text)
    assert shown(log).startswith("No row was found in any of it.\n")
    assert "fastscore" not in shown(log).replace(str(log), "")


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "a", "messages": chat()}, {"id": "b", "messages": chat()[:4]}],
        [{"thread": name, "who": who, "said": text} for name, who, text in sides("Ann", "Ben")],
        [{"conversations": [{"from": who, "value": x} for _, who, x in sides("human", "gpt")]}],
        [{"frage": one, "antwort": two} for one, two in PAIRS],
        [{"prompt": one, "completion": two} for one, two in PAIRS],
        [{"dialog": [text for pair in PAIRS for text in pair]}],
        [{"a": list(dict(PAIRS)), "b": list(dict(PAIRS).values())}],
        [{"chat": [list(pair) for pair in PAIRS]}],
        [{"hyp": two, "gold": two, "n": place} for place, (_, two) in enumerate(PAIRS)],
        [{"is_bot": who == "b", "text": x, "ticket": name} for name, who, x in sides("u", "b")],
        [{"turns": [{"u": one, "b": two} for one, two in PAIRS]}],
        [{"role": who, "content": text} for _, who, text in sides("user", "assistant")[:6]],
    ],
)  # fmt: skip
def test_what_is_printed_is_scored(rows: list[Any], tmp_path):
    scored_as_printed(write(tmp_path / "log.jsonl", rows))
