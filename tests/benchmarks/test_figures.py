"""What benchmarks end with: one table, one file, and two files side by side."""

import json
from pathlib import Path

import pytest

from benchmarks.figures import FILE_VARIABLE, Figure, compare, publish, read_figures, table

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
        "| kernels | memory | 10 | 1.235e+04 MB |  |  |  |  |  |",
    ]
    (small,) = table("kernels", [SLOWER], judged=False)
    assert small.endswith("| 0.50x | 1x |  |")


def test_two_files_are_compared_by_ratio(tmp_path: Path) -> None:
    for name, ratio in (("before", 2.0), ("after", 3.0)):
        figures = {"kernels": [{"what": "distance", "peer": "peer", "ratio": ratio}]}
        (tmp_path / name).write_text(json.dumps({"figures": figures}))
    assert list(compare(tmp_path / "before", tmp_path / "after"))[2:] == [
        "| kernels | distance | peer | 2.00x | 3.00x | 1.50 |"
    ]
