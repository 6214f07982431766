"""Text leaves for people and pipes in one place; the linter finds what else prints."""

import ast
import json
import os
import pty
import re
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from fastscore import terminal
from tests.conftest import python_process
from tests.llm.stub_server import REFUSALS, Stub, serving
from tests.run.logs import utterance

PRODUCT = Path(__file__).parents[1] / "fastscore"
OF_A_SHELL = ("cli/", "compat/", "llm/transcripts.py", "suites/preference_shift/verbs.py")
"""Modules that Python does not call, or that propose what is to be typed."""


def _text(node):
    """Return the text in an expression."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(map(_text, ast.iter_child_nodes(node)))


def test_errors_name_options_by_their_python_names():
    found = [
        f"{path}:{node.lineno}"
        for path in sorted(PRODUCT.rglob("*.py"))
        if not path.relative_to(PRODUCT).as_posix().startswith(OF_A_SHELL)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
        # other commands are typed whoever reads
        if re.search(
            r"(?<!\w)--[a-z]",
            re.sub("`[^`]*`", "", "".join(map(_text, (*node.args, *node.keywords)))),
        )
    ]
    assert found == []


def test_results_and_notes_have_streams_of_their_own(capfd):
    terminal.write("a\x1b[1mb\n")
    terminal.write_line("line")
    terminal.write_note("note")
    terminal.result_console().print("[red]as it is[/red]")
    found = capfd.readouterr()
    assert found.out == "a\x1b[1mb\nline\n[red]as it is[/red]\n"
    assert found.err == "note\n"


def test_what_a_terminal_would_obey_is_shown_as_an_escape():
    assert terminal.plain("a\x1b[2J\tb\u202e ü") == "a\\x1b[2J\\tb\\u202e ü"


PAYLOAD = "\x1b]0;owned\x07\x1b[31m\x9b2J\x85\u202e\u2066\u200f\u061c\u2028"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COMMANDS = """
score score_dialogue LOGS -o RUN --lex-weight 1 --max-rejects 0.9
score score_dialogue LOGS -o RUN --lex-weight 1 --max-rejects 0.9
score score_dialogue LOGS -o RUN --lex-weight 0.5
score score_dialogue LOGS -o other --lex-weight 1 --max-rejects 0 --limit 3
score score_dialogue LOGS/none -o RUN
score score_dialogue LOGS -o RUN --P
score P LOGS -o RUN
inspect LOGS
inspect P
summary RUN
summary RUN --format csv
summary RUN --format json
summary RUN --format markdown
summary RUN --by miner_uid --format csv
summary RUN --by P
summary RUN --verify
runs .
compare RUN --by miner_uid
compare RUN --by miner_uid --format csv
compare RUN --by miner_uid --format json
compare RUN RUN
analyse RUN -o P
report RUN -o page.html
check RUN --min P=1
check RUN --min U_best_early=0
explain RUN --worst average_U_best_early
explain RUN P
migrate check RUN P
agreement P
agreement LOGS/aP.jsonl
judge LOGS --suite score_dialogue --rubric pepper --model P --base-url URL -o judged
judge RUN --model P --base-url URL -o judged
annotate concepts LOGS/aP.jsonl --model P --base-url URL -o annotated.jsonl
simulate preference_shift --catalogue P -o sessions
experiment P
layouts P
metrics P
example P
models verify P
models export P
vectors verify P
doctor P
catalogue show P
completion P
P
"""
AT_ONCE = """
import json, sys
from fastscore import cli
from fastscore.terminal import prepare_streams
prepare_streams()
for words in json.load(open("commands.json")):
    sys.argv = ["fastscore", *words]
    try:
        cli._run()
    except SystemExit:
        pass
"""


def logs_with_payloads(folder):
    folder.mkdir()

    def log(dialogue, miner):
        labels = {"dialogue_uid": dialogue + PAYLOAD, "miner_uid": miner}
        rows = utterance(f"a {PAYLOAD} c", f"a {PAYLOAD} b", **labels)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    bad = f"not JSON {PAYLOAD}\n"
    (folder / f"a{PAYLOAD}.jsonl").write_text(log("a", PAYLOAD) + log("b", "other") + bad)
    (folder / f"b{PAYLOAD}.jsonl.xz").write_bytes(b"\xfd7zXZ\0rest")
    (folder / f"c{PAYLOAD}.csv").write_text(f"{PAYLOAD},b\n1,2\n")
    with zipfile.ZipFile(folder / f"d{PAYLOAD}.zip", "w") as archive:
        archive.writestr(f"in{PAYLOAD}.jsonl", log("c", PAYLOAD))


def shown_on_a_terminal(folder, *, width, **more):
    """Run the commands of a folder on a pseudo-terminal and return what it gets."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": width}
    process = subprocess.Popen(
        [sys.executable, "-c", AT_ONCE],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "OPENAI_API_KEY": "none", **more},
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the end of a pseudo-terminal
        while block := os.read(ours, 1 << 16):
            shown += block
    os.close(ours)
    assert process.wait() == 0, shown[-2000:]
    return shown.decode()


def test_nothing_that_a_terminal_obeys_is_written_to_one(tmp_path, monkeypatch):
    logs_with_payloads(tmp_path / f"logs{PAYLOAD}")
    monkeypatch.setitem(REFUSALS, "rejected", (400, f"no {PAYLOAD}", ""))
    with serving(Stub(fault=lambda number: "rejected")) as stub:
        names = {"LOGS": f"logs{PAYLOAD}", "RUN": f"run{PAYLOAD}", "URL": stub.url, "P": PAYLOAD}
        commands = [
            [re.sub(r"LOGS|RUN|URL|P", lambda name: names[name[0]], word) for word in line.split()]
            for line in COMMANDS.strip().splitlines()
        ]
        (tmp_path / "commands.json").write_text(json.dumps(commands))
        shown = shown_on_a_terminal(tmp_path, width="200")
    assert "Traceback" not in shown
    assert "no longer there" not in shown  # a member of an archive is
    assert shown.count("\\x1b]0;owned\\x07") > 40
    lines = [line for line in shown.split("\n") if OBEYED.search(line.removesuffix("\r"))]
    assert lines == []


def test_names_in_the_cache_are_escaped_on_a_terminal(tmp_path):
    cache = tmp_path / f"cache{PAYLOAD}"
    for room in ("models", "vectors", "kernels"):
        (cache / room / f"in{PAYLOAD}").mkdir(parents=True)
        (cache / room / f"in{PAYLOAD}" / "config.json").write_text(f'{{"model": "{PAYLOAD}"')
    (cache / "models" / "minilm-l6-v2").write_text(PAYLOAD)
    words = "doctor,models list,vectors list,vectors verify"
    commands = [each.split() for each in words.split(",")]
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    shown = shown_on_a_terminal(tmp_path, width="200", FASTSCORE_CACHE=str(cache))
    assert "Traceback" not in shown
    assert shown.count("\\x1b]0;owned\\x07") > 3
    lines = [line for line in shown.split("\n") if OBEYED.search(line.removesuffix("\r"))]
    assert lines == []


def test_what_is_piped_is_as_it_is(tmp_path):
    logs_with_payloads(tmp_path / "logs")
    for words in (
        "score score_dialogue logs -o run --lex-weight 1 -q --max-rejects 0.9",
        "summary run --by miner_uid --format csv",
    ):
        command = [sys.executable, "-m", "fastscore", *words.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert PAYLOAD in done.stdout.decode()


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    assert fastscore_to("example score_dialogue -o example", folder)[0] == 0
    words = "score score_dialogue example/logs -o run --lex-weight 1 -q"
    assert fastscore_to(words, folder)[0] == 0
    return folder


def fastscore_to(words, folder, streams="", **more):
    """Run the command by a shell that redirects streams; return its code, stdout and stderr."""
    command = f"exec {sys.executable} -m fastscore {words} {streams}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        capture_output=True,
        env={**os.environ, **more},
        check=False,
    )
    return done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_letter_that_a_stream_lacks_is_escaped(one_run, encoding):
    code, shown, said = fastscore_to("summary run", one_run, PYTHONIOENCODING=encoding)
    assert (code, "Traceback" in said) == (0, False)
    assert "\\u2191" in shown  # the arrow upwards


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize(
    ("words", "streams", "reason"),
    [
        ("summary run", ">/dev/full", "No space left on device"),
        ("summary run --format json", ">&-", "Bad file descriptor"),
    ],
)
def test_results_that_cannot_be_written_are_an_error(one_run, words, streams, reason):
    code, _, said = fastscore_to(words, one_run, streams)
    assert (code, said) == (4, f"Error: standard output cannot be written: {reason}.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&- <&-", "2>&1 >/dev/null | true"])
def test_notes_that_cannot_be_written_end_no_work(one_run, streams):
    run = f"run{abs(hash(streams))}"
    words = f"score score_dialogue example/logs -o {run} --lex-weight 1"
    code, shown, _ = fastscore_to(words, one_run, streams)
    assert code == 0
    assert (one_run / run / "summary.json").exists()
    assert "Traceback" not in shown


def test_no_temporary_folder_is_an_error(one_run):
    program = (
        "import sys, tempfile; from fastscore.cli import main;"
        "tempfile._candidate_tempdir_list = list; sys.argv[1:] = ['inspect', 'example']; main()"
    )
    done = python_process(program, cwd=one_run)
    said = "Error: no temporary folder can be written. Set TMPDIR to one that can be.\n"
    assert (done.returncode, done.stderr) == (4, said)


def test_a_panic_of_polars_prints_no_backtrace(tmp_path):
    """Rust reads the variable when it panics first."""
    program = (
        "import atexit, os; from fastscore.cli import main;"
        "atexit.register(lambda: print(os.environ['RUST_BACKTRACE'])); main()"
    )
    environment = {**os.environ, "RUST_BACKTRACE": "1"}
    shown = python_process(program, "--version", env=environment, check=True)
    assert shown.stdout.splitlines()[-1] == "0"


@pytest.mark.parametrize(
    ("is_terminal", "shown"), [(True, "a  bb\n   cc\n"), (False, "a  bb cc\n")]
)
def test_lines_wrap_on_a_terminal_alone(is_terminal, shown, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "6")
    terminal.write_wrapped("a  bb cc", 3)
    assert capsys.readouterr().out == shown
