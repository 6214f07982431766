"""Which kernels a suite's run needs, and the stage that compiles them."""

import os

import pytest
from click.testing import CliRunner
from fastscore_jit.objects import find_library

import fastscore
from fastscore.cli import cli
from fastscore.run.kernels import WITHOUT_VECTORS, compiled, kernels_of, ship_kernels, unread
from tests.conftest import python_process, write_lines
from tests.run.logs import utterance

OF = {"dialogue_uid": "d", "challenge_uid": "c", "miner_uid": "0"}
ROWS = utterance("at nine", "at 0", "at 1", "at 2", **OF)
USED = """
import sys
from fastscore.cli import cli
from fastscore_jit.declaring import declared_kernels
cli.main([*sys.argv[1:], "-q"], standalone_mode=False)
print(*(kernel.identity for kernel in declared_kernels() if kernel._loaded))
"""


@pytest.fixture
def log(tmp_path):
    return write_lines(tmp_path / "log.jsonl", ROWS)


class Told:
    """A reporter that keeps what it is told."""

    def __init__(self):
        self.notes, self.stages, self.done = [], [], 0

    def note(self, text):
        self.notes.append(text)

    def stage(self, name, total):
        self.stages.append((name, total))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def advance(self, counts, share=None):
        assert not counts
        self.done += 1


def identities(kernels):
    return {kernel.identity for kernel in kernels}


@pytest.mark.parametrize(
    ("suite", "format"), [("score_dialogue", "jsonl"), ("guest_simulation", "csv")]
)
def test_a_run_uses_no_kernel_that_was_not_foreseen(log, tmp_path, suite, format):
    words = [str(log), "--lex-weight=1"]
    if format == "csv":
        example = fastscore.example(suite, str(tmp_path / "example"))
        words = [str(example.logs), *example.options]
    command = ["score", suite, *words, "-o", str(tmp_path / "run")]
    run = python_process(USED, *command)
    used = set(run.stdout.split())
    assert len(used) > 5, run.stderr
    without = unread([format]) + WITHOUT_VECTORS
    assert used <= identities(kernels_of(suite, without))


def test_a_run_of_csv_compiles_no_kernel_of_another_suite_or_of_vectors():
    everything = identities(kernels_of("score_dialogue"))
    left = identities(kernels_of("guest_simulation", unread(["csv"]) + WITHOUT_VECTORS))
    assert "fastscore_readers.csv_records:walk_records" in left
    others = ("fastscore_kernels.cosine:_dots", "fastscore_kernels.levenshtein:long_distances")
    assert set(others) <= everything
    assert not left & {*others, "fastscore_kernels.file_rows:_read_rows"}


def test_a_suite_may_have_kernels_of_its_own():
    own = "fastscore.suites.guest_simulation.tool_cells:_walk"
    assert own in identities(kernels_of("guest_simulation"))


def test_missing_kernels_are_a_stage_of_their_own(tmp_path):
    program = (
        "import sys; from fastscore_kernels import segments;"
        "from fastscore.run.kernels import compiled;"
        "from fastscore.run.progress import LineReporter\n"
        "sys.stderr = sys.stdout\n"
        "with compiled([segments._first_argmax], LineReporter()): print('body')"
    )
    environment = {**os.environ, "FASTSCORE_CACHE": str(tmp_path)}
    run = python_process(program, env=environment, check=True)
    first, body, last = run.stdout.splitlines()
    assert first == "compiling 1 kernel for this processor, once"
    assert body == "body"
    assert last.startswith("compile: 1/1 tasks")


def test_nothing_is_said_where_nothing_is_missing():
    from fastscore_kernels import segment_first_argmax, segments

    segment_first_argmax([1.0], [0, 1])
    told = Told()
    with compiled([segments._first_argmax], told):
        pass
    assert not told.notes
    assert not told.stages


def test_the_command_compiles_the_kernels_of_a_suite():
    done = CliRunner().invoke(cli, ["kernels", "compile", "score_dialogue"])
    assert done.exit_code == 0, done.output
    assert "kernels are compiled" in done.output


def test_shipped_libraries_are_copied_by_their_names(tmp_path):
    from fastscore_kernels import segment_first_argmax, segments

    segment_first_argmax([1.0], [0, 1])
    ship_kernels([segments._first_argmax], tmp_path)
    (copied,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert copied.name == find_library(segments._first_argmax).name
