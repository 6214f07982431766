"""Catalogues for the tests of simulation: ReDial's bundled sample, and one made up with plots."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from fastscore.simulation.users import Retrieval, load_retrieval

SAMPLE = Path("benchmarks/data/redial_movies_sample.jsonl.gz").resolve()

PLOTTED: list[dict[str, Any]] = [
    {
        "name": f"Film {number}",
        "year": str(1990 + number % 7),
        "genre": [("Drama", "Crime Fiction", "Romance Film", "Ex", "War")[number % 5]],
        "actor": [f"Ann Actor{number % 6}", f"Ann Actor{number % 6}", "Al Pacino"][
            : 1 + number % 3
        ],
        "director": [] if number % 4 == 0 else [f"Dan Director{number % 5}"],
        "writer": f"Will Writer{number % 3}",
        "language": ["English", "English Language"][: 1 + number % 2],
        "plot": f"A detective hunts thieves in Paris, chapter {('river', 'mountain')[number % 2]}.",
    }
    for number in range(40)
] + [{"name": "Inception", "genre": ["Heist"]}, {"name": "You", "genre": None, "plot": ""}]


@cache
def sample() -> Retrieval:
    return load_retrieval(str(SAMPLE))


def sample_movies() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(SAMPLE.read_bytes()).splitlines()]


def plotted(folder: Path) -> str:
    path = folder / "catalogue.json"
    path.write_text(json.dumps(PLOTTED))
    return str(path)


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def logs(folder: Path) -> list[Any]:
    return [json.loads(line) for line in b"".join(shards(folder).values()).splitlines()]
