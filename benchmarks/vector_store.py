"""The vector store at a million vectors, beside FAISS alone.

FAISS alone writes equal vectors as plain flat indexes of equal sizes, flushed to the disk, without
ids, checksums or names.

Usage: python -m benchmarks.vector_store [--vectors 1000000] [--folder DIR] [--quick]
"""

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.harness import SEED
from fastscore.vectors.store import VectorStore

DIM = 384
WINDOW = 8192
GATHERED = 100_000
FEW = 5_000
SHARES = (16, 4, 1)
"""A few ids are looked up in a segment of a sixteenth, a quarter and all of the vectors."""
FEW_AIM = 1.5
"""Maximum processor time of looking up a few ids in all vectors / in a sixteenth of them."""

READ_AIMS = {
    "reopen": 0.05,
    "look up first": 0.1,
    "look up": 0.1,
    "gather first": 0.1,
    "gather": 0.1,
}
"""Maximum time of reading, in seconds."""

WRITE_AIM = 1.3
"""Maximum time of writing / FAISS's time."""


def make_vectors(count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
    """Draw ids and vectors of length 1."""
    rng = np.random.default_rng(SEED)
    ids = rng.integers(0, 2**64, (count, 2), dtype=np.uint64)
    vectors = rng.standard_normal((count, DIM), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return ids, vectors


def write_ours(folder: Path, ids: Any, vectors: Any, rows: int) -> VectorStore:
    """Append to a new store, in batches of vectors."""
    store = VectorStore.open("f00d", DIM, root=folder)
    for start in range(0, len(ids), rows):
        store.append(ids[start : start + rows], vectors[start : start + rows])
    return store


def write_faiss(folder: Path, vectors: Any, rows: int) -> None:
    """Write flat indexes of a number of vectors each, flushed to the disk."""
    folder.mkdir()
    for start in range(0, len(vectors), rows):
        index = faiss.IndexFlatIP(DIM)
        index.add(vectors[start : start + rows])
        path = folder / f"{start}.faiss"
        faiss.write_index(index, str(path))
        with path.open("rb") as file:
            os.fsync(file.fileno())


def timed(action: Callable[[], Any]) -> tuple[float, float]:
    """Return an action's wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def compare_writing(
    folder: Path, ids: Any, vectors: Any, rows: int, repetitions: int
) -> dict[str, float]:
    """Write with both, in turn; return median wall and CPU seconds and their ratios."""
    ours, alone = [], []
    for number in range(repetitions):
        first, second = folder / f"ours{number}", folder / f"faiss{number}"
        ours.append(timed(lambda to=first: write_ours(to, ids, vectors, rows)))  # type: ignore[misc]
        alone.append(timed(lambda to=second: write_faiss(to, vectors, rows)))  # type: ignore[misc]
        for written in (first, second):
            shutil.rmtree(written)
    medians = [statistics.median(column) for column in (*zip(*ours, strict=True),)]
    theirs = [statistics.median(column) for column in (*zip(*alone, strict=True),)]
    return {
        "ours_wall": medians[0],
        "faiss_wall": theirs[0],
        "wall_ratio": medians[0] / theirs[0],
        "ours_cpu": medians[1],
        "faiss_cpu": theirs[1],
        "cpu_ratio": medians[1] / theirs[1],
    }


def read_times(folder: Path, ids: Any, repetitions: int) -> dict[str, float]:
    """Return median wall seconds of reopening, of looking up all ids, of gathering some.

    ``first`` are the calls just after reopening, which page the ids and vectors in.
    """
    rng = np.random.default_rng(SEED)
    some = ids[rng.choice(len(ids), min(GATHERED, len(ids)), replace=False)]
    times: dict[str, list[float]] = {name: [] for name in READ_AIMS}
    for _ in range(repetitions):
        began = time.perf_counter()
        store = VectorStore.open("f00d", DIM, root=folder)
        times["reopen"].append(time.perf_counter() - began)
        for when in (" first", ""):
            times[f"look up{when}"].append(timed(lambda to=store: to.missing(ids))[0])  # type: ignore[misc]
            times[f"gather{when}"].append(timed(lambda to=store: to.gather(some))[0])  # type: ignore[misc]
    return {name: statistics.median(values) for name, values in times.items()}


def few_times(folder: Path, ids: Any, vectors: Any, repetitions: int) -> dict[int, float]:
    """Return median CPU seconds of looking up a few ids, half of them stored, by vectors stored."""
    rng = np.random.default_rng(SEED)
    found = {}
    for share in SHARES:
        stored = len(ids) // share
        write_ours(folder / f"few{share}", ids[:stored], vectors[:stored], stored)
        store = VectorStore.open("f00d", DIM, root=folder / f"few{share}")
        half = ids[rng.integers(0, stored, FEW // 2)]
        others = rng.integers(0, 2**64, (FEW // 2, 2), dtype=np.uint64)
        few = np.concatenate([half, others])
        store.missing(few)  # pages the ids in
        cpu = [timed(lambda to=store, ids=few: to.missing(ids))[1] for _ in range(5 * repetitions)]  # type: ignore[misc]
        found[stored] = statistics.median(cpu)
        shutil.rmtree(folder / f"few{share}")
    return found


@click.command()
@click.option("--vectors", "count", default=1_000_000, show_default=True)
@click.option("--folder", type=click.Path(exists=True, path_type=Path), help="Where to write.")
@click.option("--repetitions", default=5, show_default=True)
@click.option("--quick", is_flag=True, help="A tenth of the vectors.")
@click.option("--json", "output", type=click.Path(path_type=Path))
def main(
    count: int, folder: Path | None, repetitions: int, quick: bool, output: Path | None
) -> None:
    """Measure the vector store."""
    if quick:
        count, repetitions = 100_000, 3
    ids, vectors = make_vectors(count)
    figures: list[Figure] = []
    found: dict[str, Any] = {"host": describe_host(), "vectors": count}
    click.echo(json.dumps(found["host"]))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        for rows in (count, WINDOW):
            written = compare_writing(work, ids, vectors, rows, repetitions)
            found[f"write_{rows}"] = written
            click.echo(
                f"write {count:,} by {rows:,}: {written['ours_wall']:.2f} s, FAISS alone "
                f"{written['faiss_wall']:.2f} s: {written['wall_ratio']:.2f} times (CPU "
                f"{written['cpu_ratio']:.2f}); aim {WRITE_AIM}"
            )
            figures.append(
                Figure(
                    what=f"write by {rows:,}",
                    rows=count,
                    unit="s",
                    ours=written["ours_wall"],
                    peer="FAISS alone",
                    theirs=written["faiss_wall"],
                    ratio=1 / written["wall_ratio"],
                    aim=1 / WRITE_AIM,
                )
            )
        write_ours(work / "kept", ids, vectors, count)
        found["read"] = read_times(work / "kept", ids, repetitions)
        for name, aim in READ_AIMS.items():
            click.echo(f"{name}: {found['read'][name] * 1e3:.1f} ms; aim {aim * 1e3:.0f}")
            figures.append(
                Figure(
                    what=name,
                    rows=count,
                    unit="s",
                    ours=found["read"][name],
                    peer="the time allowed",
                    theirs=aim,
                    ratio=aim / found["read"][name],
                    aim=1.0,
                )
            )
        few = few_times(work, ids, vectors, repetitions)
        found["few"] = few
        least, most = few[len(ids) // SHARES[0]], few[len(ids)]
        click.echo(
            f"look up {FEW:,}: "
            + ", ".join(f"{cpu * 1e3:.2f} CPU ms of {n:,}" for n, cpu in few.items())
            + f": {most / least:.2f} times; aim {FEW_AIM}"
        )
        figures.append(
            Figure(
                what=f"look up {FEW:,}, CPU",
                rows=count,
                unit="s",
                ours=most,
                peer=f"in {len(ids) // SHARES[0]:,} vectors",
                theirs=least,
                ratio=least / most,
                aim=1 / FEW_AIM,
            )
        )
    publish(figures)
    if output is not None:
        output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
