"""Score group trip-planning dialogues in plain Python: one dialogue, member, slot at a time.

The peer that `benchmarks.group_travel` measures against, and an independent oracle of the suite
group_travel: written from the published definitions with the standard library and NumPy, without a
line in common with the suite. It is what a careful programmer would write per dialogue: regexes are
compiled once, words are cut once per text and dialogue, and vectors are cached by text over all
dialogues.

Usage: python -m tests.oracles.group_travel LOGS... --output scores.jsonl [--vectors texts.npz]
"""

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from tests.oracles.group_travel_logs import read_dialogues
from tests.oracles.group_travel_metrics import Pair, Scores, score_dialogue
from tests.oracles.group_travel_vectors import (
    Vectors,
    read_vectors,
    sentence_transformer,
    write_vectors,
)


@click.command()
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True)
@click.option("--vectors", "stored", type=click.Path(path_type=Path), help="A file of vectors.")
@click.option("--weights", type=click.Path(path_type=Path), help="A sentence-transformers folder.")
@click.option("--first", type=click.IntRange(min=1), help="Score only so many dialogues.")
def main(
    logs: tuple[Path, ...],
    output: Path,
    stored: Path | None,
    weights: Path | None,
    first: int | None,
) -> None:
    """Score dialogues into one JSON line each.

    The vectors file is read where it exists; with --weights it is written anew with every text's
    vector. With neither option nothing is compared by meaning.
    """
    if stored is not None and not stored.exists() and weights is None:
        raise click.ClickException(f"{stored} does not exist; name --weights to write it.")
    known = read_vectors(stored) if stored is not None and stored.exists() else {}
    vectors = Vectors(sentence_transformer(weights) if weights else None, known)
    with output.open("w", encoding="utf-8") as stream:
        for dialogue in islice(read_dialogues(logs), first):
            stream.write(json.dumps(as_row(score_dialogue(dialogue, vectors))) + "\n")
    if stored is not None and vectors.requested:
        write_vectors(stored, vectors.known)


def as_row(scores: Scores) -> dict[str, Any]:
    """Lay a dialogue's scores out as JSON."""
    pairs = [
        {name: getattr(pair, name) for name in Pair.__slots__ if name not in ("words", "text")}
        for pair in scores.pairs
    ]
    return {
        "dialogue": scores.dialogue,
        "path": scores.path,
        "condition": scores.condition,
        "group_type": scores.group_type,
        "metrics": {name: asdict(score) for name, score in scores.metrics.items()},
        "members": scores.members,
        "pairs": pairs,
        "places": [asdict(place) for place in scores.places],
    }


if __name__ == "__main__":
    main()
