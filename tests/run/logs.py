"""Small miner logs for tests of the run: deterministic, several files, several dialogues each."""

import json
import random
from pathlib import Path

WORDS = [
    "please",
    "book",
    "a",
    "table",
    "for",
    "two",
    "near",
    "the",
    "station",
    "tomorrow",
    "thanks",
]


def utterance(truth: str, *predictions: str, **labels: object) -> list[dict[str, object]]:
    """Return the rows of an utterance: a prediction a step, then the ground truth."""
    place = {"utterance_index": 0, **labels}
    rows = [
        {"event": "predicted", **place, "step": step, "prediction": text}
        for step, text in enumerate(predictions)
    ]
    return [*rows, {"event": "utterance_complete", **place, "ground_truth": truth}]


def dialogue_lines(uid: str, utterances: int = 3, steps: int = 3) -> list[str]:
    """Return the lines of one dialogue, every text built from its place."""
    lines = []
    for index in range(utterances):
        start = (len(uid) + index) % len(WORDS)
        truth = (WORDS[start:] + WORDS[:start])[: 4 + index]
        said = [" ".join(truth[: n + 1]) for n in range(steps)]
        rows = utterance(" ".join(truth), *said, utterance_index=index, dialogue_uid=uid)
        lines += map(json.dumps, rows)
    return lines


def write_logs(folder: Path, files: int = 4, dialogues: int = 3) -> list[Path]:
    """Write log files, each of several dialogues; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file in range(files):
        path = folder / f"log-{file:02d}.jsonl"
        lines = [
            line
            for dialogue in range(dialogues)
            for line in dialogue_lines(f"d{file}-{dialogue}", utterances=2 + dialogue)
        ]
        path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    return paths


def write_varied_logs(folder: Path, files: int, dialogues: int) -> list[Path]:
    """Write log files in which hardly a text comes twice; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    paths = []
    for file in range(files):
        path = folder / f"varied-{file:02d}.jsonl"
        lines = []
        for dialogue in range(dialogues):
            for utterance in range(4):
                truth = rng.choices(WORDS, k=rng.randint(3, 12))
                place = {"dialogue_uid": f"v{file}-{dialogue}", "utterance_index": utterance}
                for step in range(3):
                    guess = " ".join(truth[: step + 1] + rng.choices(WORDS, k=3))
                    row = {"event": "predicted", **place, "step": step, "prediction": guess}
                    lines.append(json.dumps(row))
                row = {"event": "utterance_complete", **place, "ground_truth": " ".join(truth)}
                lines.append(json.dumps(row))
        path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    return paths
