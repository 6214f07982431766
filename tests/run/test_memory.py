"""A run beyond its memory limit ends with advice, and a later run resumes it."""

import platform
import time

import numpy as np
import pytest
from fastscore_jit.system import own_memory
from fastscore_jit.threads import StoppedError, clear_stop, raise_if_stopped, stop_flag

from fastscore.errors import EXIT_INCOMPLETE, MemoryLimitError
from fastscore.logs.integrity import limits as memory_limits
from fastscore.logs.integrity.limits import Limits, limit_memory
from fastscore.run import drive
from tests.conftest import python_process
from tests.run.logs import write_logs
from tests.run.running import contents, run_lexical

MIB = 1 << 20


def held(mebibytes):
    return np.ones(mebibytes * MIB, np.uint8)


def allowed(more):
    """Allow so many MiB more than this process has."""
    return Limits(memory=own_memory() // MIB + more)


def test_work_that_takes_too_much_is_stopped():
    limits = allowed(100)
    kept = []

    def work():
        with limit_memory(limits, "The stage 'some'"):
            # what others have freed may go meanwhile
            for _ in range(60):
                kept.append(held(50))
                time.sleep(2 * memory_limits.MEMORY_POLL_SECONDS)
                raise_if_stopped()

    with pytest.raises(MemoryLimitError, match=r"stage 'some'.*MiB.*max_memory") as ended:
        work()
    assert ended.value.exit_code == EXIT_INCOMPLETE
    assert len(kept) < 60
    assert not stop_flag()[0]


def test_work_that_never_looks_is_an_error_when_it_ends():
    with pytest.raises(MemoryLimitError), limit_memory(Limits(memory=1), "some"):
        pass
    assert not stop_flag()[0]


def test_work_within_its_memory_is_left_alone():
    with limit_memory(allowed(400), "some"):
        assert held(50).size == 50 * MIB
        time.sleep(4 * memory_limits.MEMORY_POLL_SECONDS)
        raise_if_stopped()
    with pytest.raises(StoppedError), limit_memory(allowed(400), "some"):
        raise StoppedError  # another's wish


def test_what_is_given_back_soon_ends_nothing(monkeypatch):
    monkeypatch.setattr(memory_limits, "RELEASE_SECONDS", 60)  # soon, however busy the machine is
    with limit_memory(allowed(100), "some"):
        more = held(300)
        time.sleep(4 * memory_limits.MEMORY_POLL_SECONDS)
        del more
        time.sleep(4 * memory_limits.MEMORY_POLL_SECONDS)
        raise_if_stopped()


def test_the_wish_to_stop_outlives_a_pool_that_ends():
    def work():
        with limit_memory(Limits(memory=1), "some"):
            while not stop_flag()[0]:
                time.sleep(memory_limits.MEMORY_POLL_SECONDS)
            clear_stop()  # as a pool does when its tasks have ended
            while not stop_flag()[0]:
                time.sleep(memory_limits.MEMORY_POLL_SECONDS)
            raise_if_stopped()

    with pytest.raises(MemoryLimitError):
        work()
    assert not stop_flag()[0]


@pytest.mark.parametrize("stage", ["plan", "score", "summary"])
def test_a_run_beyond_its_memory_goes_on_with_more(tmp_path, monkeypatch, stage):
    """Every stage in its turn finds the process too large; what was committed before it stays."""
    logs = write_logs(tmp_path / "logs")
    run_lexical(logs, tmp_path / "whole", shard_bytes=1)

    def kept(limits, doing):
        return limit_memory(Limits(memory=1) if repr(stage) in doing else limits, doing)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(drive, "limit_memory", kept)
        with pytest.raises(MemoryLimitError, match=f"stage '{stage}'"):
            run_lexical(logs, run, shard_bytes=1)
    run_lexical(logs, run, shard_bytes=1)
    assert contents(run) == contents(tmp_path / "whole")


def test_options_that_take_too_much_are_an_error_before_a_run_begins(tmp_path, monkeypatch):
    """As a catalogue of many items does, whose file is small."""
    catalogue = tmp_path / "items.jsonl"
    catalogue.write_text("".join(f'{{"name": "item {item}"}}\n' for item in range(20_000)))
    logs, options = write_logs(tmp_path / "logs"), {"catalogue": str(catalogue)}
    monkeypatch.setattr(
        drive, "limit_memory", lambda limits, doing: limit_memory(Limits(memory=1), doing)
    )
    with pytest.raises(MemoryLimitError, match=r"Reading the options takes .* MiB of memory"):
        run_lexical(logs, tmp_path / "run", suite="preference_shift", options=options)
    assert not (tmp_path / "run").exists()


FREED = """
import numpy as np
from fastscore_jit.system import give_back_freed_memory

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

blocks = [np.ones(1 << 13) for _ in range(2_000)]
last, before = blocks.pop(), held()
del blocks
give_back_freed_memory()
print(before, held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library is left alone")
def test_freed_memory_is_given_back():
    done = python_process(FREED)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    pages = 2_000 * (1 << 16) // 4_096
    assert before - after > pages / 2
