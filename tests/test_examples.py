"""The examples in the package: small, licensed, the same as their recipe writes them."""

import gzip
from pathlib import Path

import pytest

import fastscore
from benchmarks.example_logs import write_examples
from fastscore.errors import UsageError
from fastscore.examples import example_names, example_options, write_example
from fastscore.suites.registry import suite_names
from tests.conftest import fastscore_process

PACKAGED = Path(fastscore.__file__).parent / "example_logs"


def test_they_are_what_the_recipe_writes(tmp_path: Path) -> None:
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


def unpacked(path: Path) -> bytes:
    """Return what a file holds: Pythons write other headers around it, libraries other bytes."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def test_every_suite_has_one_and_together_they_are_small() -> None:
    assert set(example_names()) == set(suite_names())
    assert sum(path.stat().st_size for path in PACKAGED.rglob("*") if path.is_file()) < 1_000_000


@pytest.mark.parametrize("suite", example_names())
def test_an_example_has_its_licence_and_can_be_written_again(tmp_path: Path, suite: str) -> None:
    example = write_example(suite, tmp_path / "example")
    assert example == write_example(suite, tmp_path / "example")
    text = (tmp_path / "example" / "LICENSE.md").read_text("utf-8")
    assert "Licence: **" in text
    written = {path for path in (tmp_path / "example").rglob("*") if path.is_file()}
    assert written == {tmp_path / "example" / name for name, _ in example.files}
    assert all(size > 0 for _, size in example.files)


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    (tmp_path / "LICENSE.md").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_example("score_dialogue", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["LICENSE.md"]
    with pytest.raises(UsageError, match="Did you mean 'score_dialogue'"):
        write_example("score_dialog", tmp_path)


@pytest.mark.parametrize("suite", example_names())
def test_scoring_imports_no_pandas_where_that_is_installed(tmp_path: Path, suite: str) -> None:
    """It takes a second, and pyarrow does so as it makes some arrays."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas is imported')")
    write_example(suite, tmp_path / "example")
    asked = ["score", suite, tmp_path / "example" / "logs", "-o", tmp_path / "run", "-q"]
    options = example_options(suite, tmp_path / "example")
    done = fastscore_process([*asked, *options], PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
