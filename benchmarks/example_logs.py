"""Write the logs of `fastscore example`: small logs made of the bundled real dialogues.

Usage: python -m benchmarks.example_logs [--output FOLDER]

The output bytes are always the same. Every suite's folder has the licences of its logs' sources,
and names their real parts.
"""

import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

DATA = Path(__file__).parent / "data"
TARGET = Path(__file__).parents[1] / "fastscore" / "example_logs"
GENERATORS = {
    "score_dialogue": ("miner_logs", "--dialogues", "12", "--miners", "2"),
    "group_travel": ("group_travel", "logs", "--dialogues", "40", "--defects", "0.05"),
    "guest_simulation": ("guest_simulation_logs", "--conversations", "20", "--layout", "csv"),
    "preference_shift": ("preference_shift_logs", "--kind", "models"),
}
"""The program that writes each suite's logs, and its arguments."""
KEPT = {
    "score_dialogue": {"logs/part-00000.jsonl": "logs/dialogues.jsonl"},
    "group_travel": {"logs/logs/part-00000.jsonl": "logs/dialogues.jsonl"},
    "guest_simulation": {"logs-personas.json": "personas.json"},
    "preference_shift": {
        "logs/logs.jsonl": "logs/conversations.jsonl",
        "logs/catalogue.jsonl": "catalogue.jsonl",
    },
}
"""The kept files, and their new names; for guest_simulation also all CSV files."""
LICENCES = {
    "score_dialogue": ("SGD",),
    "group_travel": ("TRAVELPLANNER", "SGD"),
    "guest_simulation": ("TM4",),
    "preference_shift": ("ReDial",),
    "memory_finance": ("MEMFINROBOT",),
}
MADE = {
    "score_dialogue": "Real: the utterances, from the Schema-Guided Dialogue dataset.\n"
    "Synthetic: the predictions of the two miners. They are the first words of the true\n"
    "utterance, completed with words of another utterance.",
    "group_travel": "Real: plans and places from TravelPlanner, and the members' wishes from the\n"
    "Schema-Guided Dialogue dataset. Synthetic: the dialogues, the planner's summaries and the\n"
    "itineraries made of them. One in twenty has a defect.",
    "guest_simulation": "Real: the guests' texts and orders of coffee, from Taskmaster-4.\n"
    "Synthetic: personas, states and the agents' tools.",
    "preference_shift": "Real: users, their texts and the movies, from ReDial.\n"
    "`recorded` are the real answers. Synthetic: the recommenders `echoing`, `restating` and\n"
    "`slow`, the judge's scores, and the joining of two dialogues at each preference shift.",
    "memory_finance": "Everything is real: published traces of an assistant with memory, and\n"
    "the scores that were published for them.",
}


def write_examples(target: Path) -> None:
    """Write the folder of every suite."""
    for suite in LICENCES:
        folder = target / suite
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            for name, data in _files(suite, Path(scratch)).items():
                path = folder / f"{name}.gz"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(gzip.compress(data, 9, mtime=0))
        texts = [(DATA / f"LICENSE-{name}.md").read_text("utf-8") for name in LICENCES[suite]]
        about = f"# The example of {suite}\n\n{MADE[suite]}\n\n"
        (folder / "LICENSE.md").write_text(about + "\n".join(texts), "utf-8")


def _files(suite: str, scratch: Path) -> dict[str, bytes]:
    """Return a suite's files by name."""
    if suite == "memory_finance":
        folder = DATA / "memfinrobot"
        return {
            "logs/dialog_trace.jsonl": gzip.decompress(
                (folder / "dialog_trace.jsonl.gz").read_bytes()
            ),
            "published/metrics_summary.json": (folder / "metrics_summary.json").read_bytes(),
            "published/turn_eval.jsonl": gzip.decompress(
                (folder / "turn_eval.jsonl.gz").read_bytes()
            ),
        }
    program, *arguments = GENERATORS[suite]
    command = [sys.executable, "-m", f"benchmarks.{program}", *arguments]
    output = ("--output", str(scratch / "logs"))
    subprocess.run([*command, *output], check=True, stdout=subprocess.DEVNULL)
    kept = {name: (scratch / path).read_bytes() for path, name in KEPT[suite].items()}
    for path in sorted((scratch / "logs").rglob("*.csv")):
        kept[path.relative_to(scratch).as_posix()] = path.read_bytes()
    return kept


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=TARGET)
def main(output: Path) -> None:
    """Write the example of every suite into a folder."""
    write_examples(output)


if __name__ == "__main__":
    main()
