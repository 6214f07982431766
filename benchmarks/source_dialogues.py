"""Read the real dialogues that benchmarks start from, in the shape of the bundled sample."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import orjson

SAMPLE = Path(__file__).parent / "data" / "sgd_sample.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Turn:
    """An utterance: who spoke, what was said, and its sorted dialogue acts."""

    speaker: str
    text: str
    acts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A source dialogue: its id, its first service and its utterances."""

    uid: str
    service: str
    turns: tuple[Turn, ...]


def source_files(paths: Sequence[Path]) -> list[Path]:
    """List the ``.jsonl`` and ``.jsonl.gz`` files that the paths name, folders in name order."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise click.ClickException(
                f"{path} does not exist; name a file or folder of dialogues."
            )
        found = sorted(path.glob("*.jsonl*")) if path.is_dir() else [path]
        if not found:
            raise click.ClickException(f"{path} holds no .jsonl or .jsonl.gz file of dialogues.")
        files += found
    return files


def read_dialogues(paths: Sequence[Path]) -> list[Dialogue]:
    """Read SGD-shaped dialogues, in order; ids are prefixed with the file's stem.

    Raises
    ------
    click.ClickException
        A line is no such dialogue (file and line are named), or two dialogues share an id.
    """
    dialogues: list[Dialogue] = []
    places: dict[str, str] = {}
    for file in source_files(paths):
        stem = file.name.split(".jsonl")[0]
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                dialogue = _parse_dialogue(line, stem, place := f"{file}:{number}")
                if dialogue.uid in places:
                    raise click.ClickException(
                        f"{place}: dialogue id {dialogue.uid!r} also stands at "
                        f"{places[dialogue.uid]}; ids must be unique, so name each file once."
                    )
                places[dialogue.uid] = place
                dialogues.append(dialogue)
    return dialogues


def _parse_dialogue(line: bytes, stem: str, place: str) -> Dialogue:
    try:
        row = orjson.loads(line)
        turns = tuple(Turn(turn[0], turn[1], tuple(sorted(turn[2]))) for turn in row["turns"])
        if not turns or not all(isinstance(turn.text, str) for turn in turns):
            raise ValueError("no turn, or one whose text is no string")
        return Dialogue(f"{stem}-{row['id']}", row["services"][0], turns)
    except (LookupError, TypeError, ValueError) as error:
        raise click.ClickException(
            f"{place}: {error!r}; expected one dialogue a line: "
            '{"id", "services": [...], "turns": [[speaker, text, [acts]], ...]}.'
        ) from None
