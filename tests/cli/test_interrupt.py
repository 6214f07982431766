"""Ctrl-C ends the command soon, whatever it is doing."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time

import polars as pl
import psutil
import pytest
from click.testing import CliRunner

from fastscore import cli
from tests.conftest import python_process, write_lines
from tests.run.logs import utterance

LETTERS = "abcdefgh "
LISTENING = """
import signal

# what is started in the background ignores it
signal.signal(signal.SIGINT, signal.default_int_handler)
from fastscore.cli import main

main()
"""


def long_log(folder, characters=1_000_000):
    rng = random.Random(1)
    said, truth = ("".join(rng.choices(LETTERS, k=characters)) for _ in range(2))
    return write_lines(folder / "log.jsonl", utterance(truth, said, dialogue_uid="d"))


def is_planned(run):
    try:
        return bool(json.loads((run / "manifest.json").read_text())["inputs"])
    except (OSError, ValueError):
        return False


def wait_for_plan(run, process):
    deadline = time.monotonic() + 120
    while not is_planned(run) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)


def ended(script, code, *words):
    """Run a script that ends with this code."""
    done = python_process(script, *words)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_distance_of_two_megabytes_is_interrupted(tmp_path, sent, code):
    run = tmp_path / "run"
    words = ["score", "score_dialogue", str(long_log(tmp_path)), "-o", str(run)]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, *words, "--lex-weight", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_plan(run, process)
    time.sleep(0.5)
    taken = psutil.Process(process.pid).cpu_times()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    process.send_signal(sent)
    _, said = process.communicate(timeout=120)
    # of the processor's time: what else the machine does delays it as well
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before - taken.user
    assert seconds < 3.0, said
    assert process.returncode == code, said
    assert "Interrupted" in said
    assert "Traceback" not in said


IN_A_SESSION = """
import signal, sys
import fastscore

signal.signal(signal.SIGINT, signal.default_int_handler)
options = fastscore.ScoreDialogue(lex_weight=1.0)
log, run = sys.argv[1:]
try:
    fastscore.score(log, options, output=run, progress=False)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
short = fastscore.score(SHORT, options, progress=False)
print(short.tables["steps"]["lexical_similarity"].to_list())
print(fastscore.score(log, options, output=run, progress=False).tables["steps"].height)
"""


def test_an_interrupt_in_python_leaves_session_and_run_as_good_as_before(tmp_path):
    """As a notebook sends it: the cell ends, and the next ones work."""
    run, log = tmp_path / "run", long_log(tmp_path, characters=500_000)
    rows = utterance("abcx", "abcd", dialogue_uid="d")
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_SESSION.replace("SHORT", repr(rows)), str(log), str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_plan(run, process)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=300)
    assert shown.splitlines() == ["interrupted", "[0.75]", "1"], said
    assert "Traceback" not in said


def test_compiling_is_interrupted(tmp_path):
    """Polars' handler leaves the main thread's wait for a kernel as it is."""
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, "kernels", "compile", "score_dialogue"],
        env={**os.environ, "FASTSCORE_CACHE": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    # nothing is compiled yet, and the first kernels are the ones that take longest
    while not list(tmp_path.rglob("*.lock")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Interrupted" in said
    assert not list(tmp_path.rglob("*.so")), "it waited for a kernel"


def test_an_interrupt_that_another_language_made_a_panic_of_is_one():
    """Polars calls Python, where Ctrl-C is raised, and has its own error of it: no Exception."""
    script = """
import os, signal
from fastscore import cli

signal.signal(signal.SIGINT, signal.default_int_handler)

class Panic(BaseException):
    pass

def panicking(*arguments, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**6):
            pass
    except KeyboardInterrupt as error:
        raise Panic from error

cli.cli.main = panicking
cli.main()
"""
    done = ended(script, 130)
    assert "Traceback" not in done.stderr


def test_an_interrupt_that_was_swallowed_is_seen_later():
    """An interrupt swallowed by a callback is raised at the next memory check."""
    script = """
import os, signal, sys
from fastscore.run.scoring import check_interrupt
from fastscore import cli

signal.signal(signal.SIGINT, signal.default_int_handler)

def swallowing(*arguments, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**6):
            pass
    except KeyboardInterrupt:
        pass
    check_interrupt(0, 1)
    print("went on")

cli.cli.main = swallowing
cli.main()
"""
    done = ended(script, 130)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_where_nothing_can_be_raised_is_not_told_of(sent, code):
    """As while the first one lets objects go; whatever else is raised there is told."""
    script = """
import os, signal, sys
from fastscore import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
sent = int(sys.argv[1])

def send():
    os.kill(os.getpid(), sent)
    for _ in range(10**6):
        pass

class Going:
    def __init__(self, end):
        self.end = end

    def __del__(self):
        self.end()

def interrupted(*arguments, **options):
    going = [Going(send), Going(send), Going(lambda: 1 / 0)]
    try:
        send()
    finally:
        going.clear()

cli.cli.main = interrupted
cli.main()
"""
    done = ended(script, code, str(int(sent)))
    assert "Interrupted" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.count("Exception ignored") == 1


ENDING = """
import atexit, os, signal, sys, threading, time
from fastscore import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
sent = int(sys.argv[2])

def send():
    os.kill(os.getpid(), sent)
    time.sleep(0.01)

class Last:
    def __del__(self, kill=os.kill, process=os.getpid()):
        kill(process, sent_last)

def send_when_the_main_thread_waits():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    send()

def ending(*arguments, **options):
    global last, sent_last
    if sys.argv[1] == "thread":
        threading.Thread(target=send_when_the_main_thread_waits).start()
    elif sys.argv[1] == "hook":
        atexit.register(send)
    elif sys.argv[1] == "twice":
        send()
    else:
        last, sent_last = Last(), sent
    return 1

def saying(note):
    if sys.argv[1] == "twice":
        send()

cli.cli.main = ending
cli.write_note = saying
cli.main()
"""


@pytest.mark.parametrize(
    ("when", "sent", "code"),
    [
        ("thread", signal.SIGINT, 130),
        ("hook", signal.SIGTERM, 143),
        ("twice", signal.SIGINT, 130),
        ("last", signal.SIGTERM, 1),
    ],
)
def test_an_interrupt_while_python_ends_is_told_by_the_exit_code(when, sent, code):
    """Never by the signal: where Python cannot hear it any more, the work's own code stands."""
    assert ended(ENDING, code, when, str(int(sent))).stderr == ""


def test_texts_beyond_a_length_are_rejects(tmp_path):
    log = long_log(tmp_path)
    with log.open("a") as out:
        for row in utterance("b", "a", dialogue_uid="e"):
            out.write(json.dumps(row) + "\n")
    run = tmp_path / "run"
    words = ["score", "score_dialogue", str(log), "-o", str(run), "--lex-weight", "1", "-q"]
    result = CliRunner().invoke(
        cli.cli, [*words, "--max-text", "999999", "--max-rejects", "1"], standalone_mode=False
    )
    assert result.exception is None

    rejects = pl.read_parquet(run / "rejects" / "*.parquet")
    assert rejects.select("line", "field", "reason", "found", "expected").rows() == [
        (1, "prediction", "text_too_long", "1000000 characters", "at most 999999 characters"),
        (2, "ground_truth", "text_too_long", "1000000 characters", "at most 999999 characters"),
    ]
