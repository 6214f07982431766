"""The examples in the package: small, licensed, the same as their recipe writes them."""

import contextlib
import gzip
import shlex
from pathlib import Path

import pytest

import fastscore
from benchmarks.example_logs import write_examples
from fastscore.api.examples import example_names, example_options, write_example
from fastscore.errors import UsageError
from fastscore.suites.registry import suite_names
from tests.conftest import fastscore_command, fastscore_process

PACKAGED = Path(fastscore.__file__).parent / "example_logs"


def test_they_are_what_the_recipe_writes(tmp_path):
    write_examples(tmp_path)
    written = {path.relative_to(tmp_path): path for path in tmp_path.rglob("*") if path.is_file()}
    packaged = {
        path.relative_to(PACKAGED)
        for path in PACKAGED.rglob("*")
        if path.is_file() and path.suffix != ".toml"
    }
    assert set(written) == packaged
    for name, path in written.items():
        assert unpacked(path) == unpacked(PACKAGED / name), name


def unpacked(path):
    """Return what a file holds: Pythons write other headers around it, libraries other bytes."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def test_every_suite_has_one_and_together_they_are_small():
    assert set(example_names()) == set(suite_names())
    assert sum(path.stat().st_size for path in PACKAGED.rglob("*") if path.is_file()) < 1_000_000


@pytest.mark.parametrize("suite", example_names())
def test_an_example_has_its_licence_and_can_be_written_again(tmp_path, suite):
    example = write_example(suite, tmp_path / "example")
    assert example == write_example(suite, tmp_path / "example")
    text = (tmp_path / "example" / "LICENSE.md").read_text("utf-8")
    assert "Licence: **" in text
    written = {path for path in (tmp_path / "example").rglob("*") if path.is_file()}
    assert written == {tmp_path / "example" / name for name, _ in example.files}
    assert all(size > 0 for _, size in example.files)


def test_files_of_others_are_kept(tmp_path):
    (tmp_path / "LICENSE.md").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_example("score_dialogue", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["LICENSE.md"]
    with pytest.raises(UsageError, match="Did you mean 'score_dialogue'"):
        write_example("score_dialog", tmp_path)


@pytest.mark.parametrize("suite", ["guest_simulation", "preference_shift"])
def test_scoring_imports_no_pandas_where_that_is_installed(tmp_path, suite):
    """It takes a second, and pyarrow does so as it makes some arrays."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas is imported')")
    write_example(suite, tmp_path / "example")
    asked = ["score", suite, tmp_path / "example" / "logs", "-o", tmp_path / "run", "-q"]
    options = example_options(suite, tmp_path / "example")
    done = fastscore_process([*asked, *options], PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


FINDINGS = {
    "group_travel": ["C2 against C1: higher in 1 metric: M7_total_turns +24.88"],
    "guest_simulation": [
        "Order restriction adherence (ORA): 0.5000",
        "roaster s choice: in order yes",
    ],
    "memory_finance": ["Coverage of memory keys ↑ 0.3333", "352 old numbers: 352 equal, 0 differ"],
    "preference_shift": ["recorded 1 1 to 1", "echoing 4 4 to 4"],
    "score_dialogue": ["1 against 0: worse in 1 metric: average_U_best_early -0.0335"],
}


@pytest.mark.parametrize("suite", example_names())
def test_the_commands_that_are_printed_show_the_finding(suite, tmp_path):
    def shell(command):
        with contextlib.chdir(tmp_path):
            done = fastscore_command(shlex.split(command)[1:], COLUMNS="100")
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "run").mkdir()  # of another suite: the commands name another run
    (tmp_path / "run" / "mine").touch()
    printed = shell(f"fastscore example {suite} -o example").splitlines()
    commands = [line.strip() for line in printed if line.startswith("  fastscore ")]
    assert len(commands) == 2
    outputs = [shell(command) for command in commands]
    shown = " ".join(" ".join(outputs).split())
    assert [each for each in FINDINGS[suite] if each not in shown] == []
    words = shlex.split(commands[0])
    in_shell = fastscore.open_run(tmp_path / words[words.index("-o") + 1])
    code = repr(fastscore.example(suite, tmp_path / "example")).splitlines()[1]
    in_python = eval(code)
    assert in_python.signature == in_shell.signature
