"""Select the bundled sample from ReDial-shaped dialogues and their catalogue.

Usage: python -m benchmarks.data.select_redial_sample DIALOGUES.jsonl.gz MOVIES.jsonl.gz
"""

import gzip
import sys
from pathlib import Path
from typing import Any

import orjson

PAIRED, UNPAIRED, MORE_MOVIES = 15, 30, 400


def select_dialogues(
    dialogues: list[dict[str, Any]], movies: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Select pairs of dialogues without a common genre, then other dialogues, in order.

    A pair lets `preference_shift_logs` join its two dialogues into one with a shift.
    """
    genres = {movie["name"]: frozenset(movie["genre"]) for movie in movies}
    found: list[frozenset[str]] = [
        frozenset().union(*(genres[name] for turn in row["turns"] for name in turn[2]))
        for row in dialogues
    ]
    paired: list[int] = []
    for position, first in enumerate(found):
        if len(paired) >= 2 * PAIRED:
            break
        if position in paired or not first or len(dialogues[position]["turns"]) < 10:
            continue
        other = next(
            (
                at
                for at in range(position + 1, len(found))
                if at not in paired and found[at] and not first & found[at]
            ),
            None,
        )
        if other is not None:
            paired += [position, other]
    others = [position for position in range(len(dialogues)) if position not in paired]
    return [dialogues[position] for position in sorted(paired + others[:UNPAIRED])]


def select_movies(
    dialogues: list[dict[str, Any]], movies: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Select the movies mentioned in the dialogues, and a regular sample of the others."""
    named = {name for row in dialogues for turn in row["turns"] for name in turn[2]}
    others = [movie["id"] for movie in movies if movie["name"] not in named]
    more = set(others[:: len(others) // MORE_MOVIES][:MORE_MOVIES])
    return [movie for movie in movies if movie["name"] in named or movie["id"] in more]


def read(path: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in gzip.decompress(Path(path).read_bytes()).splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    path.write_bytes(gzip.compress(lines, compresslevel=9, mtime=0))


def main(dialogues_path: str, movies_path: str) -> None:
    movies = read(movies_path)
    dialogues = select_dialogues(read(dialogues_path), movies)
    folder = Path(__file__).parent
    write(folder / "redial_sample.jsonl.gz", dialogues)
    write(folder / "redial_movies_sample.jsonl.gz", select_movies(dialogues, movies))


if __name__ == "__main__":
    main(*sys.argv[1:])
