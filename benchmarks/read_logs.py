"""Reading CSV and JSON documents into typed columns, beside the readers that Python programs use.

A row of the table is a KiB of input: 1,024 ns a row are 1 GB/s.
"""

import csv
import io
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.csv

from benchmarks.harness import SEED, Case, main
from fastscore.logs.plan.byte_ranges import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.base import Column, Source

NAMES = ("speaker", "intent", "utterance", "plan")
SOURCE = Source(
    columns=tuple(Column(name=name, kind="text") for name in NAMES), formats=("csv", "json")
)
TALK = "we would like a quiet café near the station, please - two rooms, no stairs"
WORDS = tuple(TALK.split(" "))


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def _plan(rng: random.Random, entries: int) -> str:
    days = [{"day": day, "lunch": _text(rng, 6), "cost": day * 1.5} for day in range(entries)]
    return json.dumps({"days": days}, ensure_ascii=False, indent=1)


def _row(rng: random.Random, kind: str) -> tuple[str, str, str, str]:
    plan, words = "", 12
    if kind == "cells of JSON":
        plan = _plan(rng, 2500)
    elif kind == "cells of text":
        words = 45_000
    return f"Member {rng.randint(1, 9)}", "user_provide_dining", _text(rng, words), plan


def _rows(rng: random.Random, kind: str, size: float) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    while size > 0:
        rows.append(_row(rng, kind))
        size -= sum(map(len, rows[-1]))
    return rows


def _ours(path: Path, format: Any) -> pl.DataFrame:
    rows = read_shard(whole_file(str(path), format), SOURCE)
    assert rows.rejects.is_empty()
    return rows.frame.select(NAMES)


def _python_csv(path: Path) -> list[list[str]]:
    csv.field_size_limit(1 << 40)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def _arrow(path: Path) -> Any:
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=64 << 20),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(NAMES, pyarrow.string()), strings_can_be_null=False
        ),
    )


def _polars(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, schema=dict.fromkeys(NAMES, pl.String)).fill_null("")


def _check(outputs: dict[str, Any]) -> None:
    ours = outputs["fastscore"]
    if "python csv" in outputs:
        header, *rows = outputs["python csv"]
        assert tuple(header) == NAMES
        assert ours.rows() == [tuple(row) for row in rows]
        assert ours.equals(pl.DataFrame(pl.from_arrow(outputs["pyarrow"])))
        assert ours.equals(outputs["polars"])
    else:
        for name in set(outputs) - {"fastscore"}:
            assert ours.rows(named=True) == outputs[name]


def cases(scale: float) -> Iterator[Case]:
    """Compare readers on large cells, long texts, small rows and documents."""
    rng = random.Random(SEED)
    size = 40e6 * scale
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("cells of JSON", "cells of text", "short rows"):
            rows = _rows(rng, kind, size)
            path = Path(folder) / "log.csv"
            out = io.StringIO(newline="")
            csv.writer(out).writerows([NAMES, *rows])
            path.write_text(out.getvalue(), encoding="utf-8", newline="")
            contenders: dict[str, Callable[[], Any]] = {
                "fastscore": partial(_ours, path, "csv"),
                "python csv": partial(_python_csv, path),
                "pyarrow": partial(_arrow, path),
                "polars": partial(_polars, path),
            }
            n_kib = path.stat().st_size >> 10
            yield Case(f"CSV, {kind}", n_kib, contenders, ("python csv", 4.0), _check)
        path = Path(folder) / "log.json"
        named = [dict(zip(NAMES, row, strict=True)) for row in _rows(rng, "short rows", size)]
        path.write_text(json.dumps(named, indent=1, ensure_ascii=False), encoding="utf-8")
        contenders = {
            "fastscore": partial(_ours, path, "json"),
            "python json": lambda: json.loads(path.read_bytes()),
        }
        yield Case("JSON document", path.stat().st_size >> 10, contenders, None, _check)


if __name__ == "__main__":
    main(cases)
