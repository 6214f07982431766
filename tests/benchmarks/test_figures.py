"""Output of benchmarks: one table, a record, its page, and two records side by side."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import (
    BENCHMARKS,
    PAGE,
    RECORD,
    Measured,
    compare,
    measured,
    page,
    read_record,
    save_record,
)
from benchmarks.figures import FILE_VARIABLE, Figure, publish, read_figures, table

FASTER = Figure(
    what="distance", rows=1_000, unit="s", ours=2.0, peer="peer", theirs=6.0, ratio=3.0, aim=2.5
)
SLOWER = Figure(
    what="cosine", rows=10, unit="s", ours=4.0, peer="peer", theirs=2.0, ratio=0.5, aim=1.0
)
ALONE = Figure(what="memory", rows=10, unit="MB", ours=12_345.6)


def test_what_is_published_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures"
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    publish([FASTER])
    assert read_figures(path) == []
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    publish([FASTER])
    publish([SLOWER, ALONE])
    assert read_figures(path) == [FASTER, SLOWER, ALONE]


def test_the_table_says_what_was_held() -> None:
    assert list(table("kernels", [FASTER, SLOWER, ALONE], judged=True)) == [
        "| kernels | distance | 1,000 | 2 s | peer | 6 | 3.00x | 2.5x | held |",
        "| kernels | cosine | 10 | 4 s | peer | 2 | 0.50x | 1x | SHORT |",
        "| kernels | memory | 10 | 12,346 MB |  |  |  |  |  |",
    ]
    (small,) = table("kernels", [SLOWER], judged=False)
    assert small.endswith("| 0.50x | 1x |  |")


def entry(*figures: Figure, arguments: tuple[str, ...] = ()) -> Measured:
    host = {"processor": "P, 2 visible cores", "system": "S", "load": "0.10", "polars": "2.1.0"}
    return Measured(
        arguments=arguments, date="2026-01-02", commit="abcdef0", host=host, figures=figures
    )


def test_two_records_are_compared_by_ratio(tmp_path: Path) -> None:
    for name, ratio in (("before", 2.0), ("after", 3.0)):
        save_record(tmp_path / name, {"kernels": entry(replace(FASTER, ratio=ratio), ALONE)})
    assert list(compare(tmp_path / "before", tmp_path / "after"))[2:] == [
        "| kernels | distance | peer | 2.00x | 3.00x | 1.50 |",
        "| kernels | memory |  | - | - | - |",
    ]


def test_a_record_is_read_as_it_was_saved(tmp_path: Path) -> None:
    record = {"b": entry(FASTER, ALONE), "a": entry(SLOWER, arguments=("--quick",))}
    assert read_record(tmp_path / "record") == {}
    save_record(tmp_path / "record", record)
    assert read_record(tmp_path / "record") == record
    assert list(read_record(tmp_path / "record")) == ["a", "b"]


def test_a_measurement_says_of_which_commit_and_when() -> None:
    found = measured(["--quick"], [ALONE])
    assert found.arguments == ("--quick",)
    assert found.figures == (ALONE,)
    assert found.date.count("-") == 2
    assert found.commit


def test_a_page_judges_aims_at_full_size_alone() -> None:
    lines = page(
        {"a": entry(SLOWER), "b": entry(SLOWER, arguments=("--quick",))}, ["a"]
    ).splitlines()
    assert (
        "`python -m benchmarks.b --quick` on 2026-01-02, commit abcdef0: P, 2 visible cores, S, "
        "load 0.10; polars 2.1.0."
    ) in lines
    assert "| a | cosine | 10 | 4 s | peer | 2 | 0.50x | 1x | SHORT |" in lines
    assert "| b | cosine | 10 | 4 s | peer | 2 | 0.50x | 1x |  |" in lines


def test_a_page_names_what_is_not_measured_and_tells_arguments_apart() -> None:
    few = entry(SLOWER, arguments=("--only", "few"))
    lines = page({"a": entry(FASTER), "b --only few": few}, ["a", "b", "c"]).splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == ["## a", "## b", "## c", "## scale"]
    assert sum(line.startswith("`python -m benchmarks.b --only few` on ") for line in lines) == 1
    assert "Not in the record yet: `python -m benchmarks --only c` measures it." in lines


def test_the_page_of_figures_is_that_of_its_record() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_record(RECORD), BENCHMARKS), (
        "docs/benchmarks_figures.md: write it anew with `python -m benchmarks page`"
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_finds_what_it_imports_of_ours(name: str) -> None:
    module, *subcommand = BENCHMARKS[name].command.split()
    try:
        command = importlib.import_module(f"benchmarks.{module}").main
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("benchmarks", "fastscore", "tests")):
            raise
        pytest.skip(f"needs {error.name}, of the extra bench")
    assert not subcommand or subcommand[0] in command.commands
