"""Files that options name: bounded, regular, and never waited for without hearing a signal."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fastscore
from fastscore.errors import FastscoreError, UsageError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.run.request import Request
from fastscore.settings.options import parse_toml, read_option_file, read_toml

COMMAND = [sys.executable, "-m", "fastscore"]
BAD_NAME = os.fsdecode(b"caf\xe9")


def test_a_file_is_read_up_to_its_bound(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * (3 << 20))
    assert read_option_file(path) == path.read_bytes()
    assert read_option_file(path, 3 << 20) == path.read_bytes()
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_option_file(path, 1 << 20)


def test_a_sparse_file_is_refused_by_its_size(tmp_path):
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    with pytest.raises(OSError, match="larger than 1,024 MiB"):
        read_option_file(path)
    with pytest.raises(UsageError, match=r"large\.toml: cannot be read: it is larger than 16 MiB"):
        read_toml(path)


def test_what_is_no_regular_file_is_refused(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", pipe):
        with pytest.raises(OSError, match="no regular file"):
            read_option_file(path)
    with pytest.raises(IsADirectoryError):
        read_option_file(tmp_path)


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)

    def write():
        with pipe.open("wb", buffering=0) as file:
            for part in (b"a = ", b"1\n"):
                file.write(part)
                time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_toml(pipe) == {"a": 1}
    writer.join()


def test_waiting_for_a_pipe_hears_a_signal(tmp_path):
    os.mkfifo(tmp_path / "config.toml")
    (tmp_path / "log.jsonl").write_text("{}\n")
    arguments = ["score", "score_dialogue", "log.jsonl", "-o", "run", "--config", "config.toml"]
    process = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stderr=subprocess.PIPE)
    descriptor = os.open(tmp_path / "config.toml", os.O_WRONLY)  # it waits until that is read
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    os.close(descriptor)
    assert process.returncode == 130
    assert b"Interrupted" in error


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="there is no such file here")
def test_a_file_that_the_kernel_makes_is_no_log(tmp_path):
    os.symlink("/proc/version", tmp_path / "log.jsonl")
    for path in (tmp_path / "log.jsonl", tmp_path):
        with pytest.raises(FastscoreError, match="made as it is read"):
            resolve_inputs([path])


def test_names_that_are_not_utf8_are_refused_before_anything_is_written(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / f"{BAD_NAME}.txt").write_text("not a log: nobody reads it")
    (folder / "good.jsonl").write_text("{}\n")
    assert len(resolve_inputs([folder])) == 1
    (folder / f"{BAD_NAME}.jsonl").write_text("{}\n")
    (tmp_path / BAD_NAME).mkdir()
    (tmp_path / BAD_NAME / "log.jsonl").write_text("{}\n")
    bad = [folder, folder / f"{BAD_NAME}.jsonl", tmp_path / BAD_NAME, folder / "*.jsonl"]
    for path in bad:
        with pytest.raises(UsageError, match=r"caf\\xe9.*is not UTF-8"):
            resolve_inputs([path])
    command = [*COMMAND, "score", "score_dialogue", bad[1], "-o", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 2
    assert rb"caf\xe9" in done.stderr
    assert b"is not UTF-8" in done.stderr
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="is not UTF-8"):
        Request(suite="score_dialogue", inputs=(), output=tmp_path / BAD_NAME, options={})
    with pytest.raises(UsageError, match="is not UTF-8"):
        fastscore.open_run(tmp_path / BAD_NAME)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", "x.toml: not TOML: "),
        (b"a = 1\na = 2", "x.toml: not TOML: "),
        (b"\xff", "x.toml: not TOML: "),
        (b"a = " + b"[" * 100_000 + b"]" * 100_000, "x.toml: nested too deeply"),
    ],
)
def test_what_is_no_toml_is_refused_by_name(content, message):
    with pytest.raises(UsageError, match=message):
        parse_toml(content, "x.toml")
