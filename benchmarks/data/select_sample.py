"""Select the bundled sample from a file of SGD-shaped dialogues.

Usage: python benchmarks/data/select_sample.py SOURCE.jsonl.gz OUTPUT.jsonl.gz [COUNT]
"""

import gzip
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson


def select_sample(dialogues: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Select dialogues in turn from every combination of services, in the order of the source.

    Parameters
    ----------
    dialogues
        ``{id, services, turns: [[speaker, text, acts, state?]]}``, as in the source.
    count
        Maximum number of dialogues.

    Returns
    -------
    list of dict
        The chosen dialogues in source order, without dialogue states.
    """
    queues: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for position, dialogue in enumerate(dialogues):
        queues[tuple(sorted(dialogue["services"]))].append(position)
    ranked = sorted(
        (rank, services, position)
        for services, queue in queues.items()
        for rank, position in enumerate(queue)
    )
    chosen = sorted(position for _, _, position in ranked[:count])
    return [
        {**dialogues[position], "turns": [turn[:3] for turn in dialogues[position]["turns"]]}
        for position in chosen
    ]


def main(source: str, output: str, count: str = "300") -> None:
    with gzip.open(source, "rb") as stream:
        dialogues = [orjson.loads(line) for line in stream]
    sample = select_sample(dialogues, int(count))
    lines = b"".join(
        orjson.dumps(dialogue, option=orjson.OPT_APPEND_NEWLINE) for dialogue in sample
    )
    Path(output).write_bytes(gzip.compress(lines, compresslevel=9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
