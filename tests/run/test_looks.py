"""How soon work looks whether it is to end: the processor's time between two looks.

Wall time says how busy a machine is; a look that is gone shows in the longest time without one.
"""

import itertools
import re
import sys
import time

import pytest
from click.testing import CliRunner
from fastscore_jit import threads

from fastscore.api.examples import example_names, example_options, write_example
from fastscore.cli import cli
from tests.conftest import often

MEBIBYTES = often(4, 64)
MOST_SECONDS = often(2.0, 6.0)
"""Of the processor, all threads together; some 0.3 and 1.1 were measured."""
LEAST_LOOKS = 8
"""Of a log of one shard: a look that is gone is missed."""
NAMES = re.compile(rb'("(?:dialogue_uid|dialogue_id|dialog_id|session_id)": ?")')


def repeat_logs(folder, mebibytes):
    """Repeat the logs of a folder under other names, to about a size."""
    files = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    copies = (mebibytes << 20) // sum(map(len, files.values()))
    for path, data in files.items():
        copied = (NAMES.sub(rb"\g<1>%d-" % copy, data) for copy in range(copies))
        if path.suffix == ".jsonl":
            path.write_bytes(b"".join(copied))
            continue
        for copy, text in enumerate(copied):
            path.with_stem(f"{path.stem}-{copy}").write_bytes(text)


def command(suite, folder, run):
    words = ["score", suite, str(folder / "logs"), "-o", str(run), "-q", "--workers", "1"]
    return [*words, *example_options(suite, folder)]


@pytest.fixture
def logs(tmp_path, request):
    """Write the example of a suite, score it once, so that all is loaded, and make it large."""
    folder = tmp_path / "example"
    write_example(request.param, folder)
    assert CliRunner().invoke(cli, command(request.param, folder, tmp_path / "warm")).exit_code == 0
    repeat_logs(folder / "logs", MEBIBYTES)
    return folder


@pytest.fixture
def looks(logs, monkeypatch):
    """Note the processor's time at each look that Python takes, of what scored the logs once."""
    found = []
    original = threads.raise_if_stopped

    def look():
        found.append(time.process_time())
        original()

    for module in list(sys.modules.values()):
        if getattr(module, "raise_if_stopped", None) is original:
            monkeypatch.setattr(module, "raise_if_stopped", look)
    return found


@pytest.mark.parametrize(
    ("logs", "suite"), [(suite, suite) for suite in example_names()], indirect=["logs"]
)
def test_a_run_looks_often_whether_it_is_to_end(tmp_path, logs, suite, looks):
    began = time.process_time()
    result = CliRunner().invoke(cli, command(suite, logs, tmp_path / "run"))
    assert result.exit_code == 0, result.output
    times = [began, *looks, time.process_time()]
    longest = max(after - before for before, after in itertools.pairwise(times))
    print(f"{suite}: {len(looks)} looks in {times[-1] - began:.2f} s, {longest:.2f} s at most")
    assert longest < MOST_SECONDS
    assert len(looks) >= LEAST_LOOKS
