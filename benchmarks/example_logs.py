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
    "group_travel": ("group_travel", "logs", "--dialogues", "8", "--defects", "0.05"),
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
    "score_dialogue": "What was said is real: utterances of the Schema-Guided Dialogue dataset.\n"
    "The predictions of the two miners are made of them: the first words of what will be said,\n"
    "completed with words of another utterance.",
    "group_travel": "Plans, places and the members' wishes are real: TravelPlanner's plans of\n"
    "people and utterances of the Schema-Guided Dialogue dataset. Who says what to\n"
    "whom, the planner's summaries and the itineraries are made of them, and one in twenty has\n"
    "a defect.",
    "guest_simulation": "What guests say and order is real: Taskmaster-4's orders of coffee.\n"
    "Personas, states and the agents' tools are made for them.",
    "preference_shift": "Users, what they say and the movies are real: ReDial's dialogues.\n"
    "`recorded` is what the people answered; `echoing`, `restating` and `slow` are made\n"
    "recommenders, and two dialogues are joined where a preference shifts. The judge's scores are\n"
    "made.",
    "memory_finance": "All of it is real: traces of a financial assistant as they were published.",
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
        sample = DATA / "memfinrobot_sample.jsonl.gz"
        return {"logs/dialog_trace.jsonl": gzip.decompress(sample.read_bytes())}
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
