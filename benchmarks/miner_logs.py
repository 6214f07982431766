"""Turn real dialogues into sharded miner logs with constructed predictions.

The dialogues (the bundled sample by default) are real; the predictions are synthetic. Every
utterance becomes one ``utterance_index``, and its text is the ground truth of five steps:

- step 0 is another utterance, with the same speaker and the same acts, of the next dialogue of the
  same service;
- steps 1 to 4 are the first 25, 50, 75 and 100 % of the ground truth's words (rounded up),
  completed with the words of that other utterance from that position on.

If no utterance of the other dialogue has the same acts, an utterance of the same speaker is used,
otherwise the utterance at the same position (or the last). Among several, the nearest in position
is used, the earlier at a tie. A dialogue's service is the first in its list. The single dialogue of
a service borrows from the next dialogue of the list, a single dialogue from itself.

The first simulated miner follows the recipe. The others borrow from the first, second or third next
dialogue, and each blanks, repeats, swaps and truncates predictions at its own rates. So texts recur
within and between miners as in real runs.

Usage: python -m benchmarks.miner_logs --output logs [--data FILE_OR_FOLDER ...] [--miners 8]
"""

import gzip
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Literal, cast

import click
import orjson
import zstandard

SAMPLE = Path(__file__).parent / "data" / "sgd_sample.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Turn:
    """An utterance: its speaker, its text, and its sorted dialogue acts."""

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
    """List the ``.jsonl`` and ``.jsonl.gz`` files of the paths, folders sorted by name."""
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
        A line is not such a dialogue (names file and line), or two dialogues share an id.
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
                        f"{place}: dialogue id {dialogue.uid!r} also occurs at "
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


N_STEPS = 5


class Neighbours:
    """The dialogues from which each dialogue borrows: the following ones of the same service."""

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        self._everyone = range(len(dialogues))
        self._members: dict[str, list[int]] = defaultdict(list)
        self._services = [dialogue.service for dialogue in dialogues]
        self._ranks: list[int] = []
        for index, dialogue in enumerate(dialogues):
            members = self._members[dialogue.service]
            self._ranks.append(len(members))
            members.append(index)

    def following(self, index: int, distance: int = 1) -> int:
        """Return the dialogue ``distance`` (>= 1) positions later, cyclically, never itself."""
        members: Sequence[int] = self._members[self._services[index]]
        rank = self._ranks[index]
        if len(members) == 1:
            members, rank = self._everyone, index
        if len(members) == 1:
            return index
        return members[(rank + 1 + (distance - 1) % (len(members) - 1)) % len(members)]


def counterparts(dialogue: Dialogue, other: Dialogue) -> list[str]:
    """Return, for each utterance, the utterance of another dialogue that replaces it at step 0."""
    same_acts: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    same_speaker: dict[str, list[int]] = defaultdict(list)
    for position, turn in enumerate(other.turns):
        same_acts[turn.speaker, turn.acts].append(position)
        same_speaker[turn.speaker].append(position)
    texts = []
    for position, turn in enumerate(dialogue.turns):
        places = (
            same_acts.get((turn.speaker, turn.acts))
            or same_speaker.get(turn.speaker)
            or [min(position, len(other.turns) - 1)]
        )
        nearest = min(places, key=lambda place: abs(place - position))
        texts.append(other.turns[nearest].text)
    return texts


def predict(ground_truth: str, counterpart: str) -> list[str]:
    """Return an utterance's predictions at steps 0 to 4, by the module's recipe."""
    truth, borrowed = ground_truth.split(), counterpart.split()
    known = [-(-len(truth) * step // (N_STEPS - 1)) for step in range(1, N_STEPS)]
    return [counterpart, *(" ".join(truth[:n] + borrowed[n:]) for n in known)]


@dataclass(frozen=True, slots=True)
class Miner:
    """A simulated miner: its labels, which next dialogue it borrows from, and its rates in [0, 1].

    A prediction is blanked with probability ``blank``, else replaced by the same utterance's
    previous step with ``repeat``, else by the previous utterance's prediction at the same step with
    ``swap``, else cut to the first half of its words with ``truncate``.
    """

    uid: str
    hotkey: str
    borrows_from: int = 1
    blank: float = 0.0
    repeat: float = 0.0
    swap: float = 0.0
    truncate: float = 0.0


def simulate_miners(count: int, seed: int) -> list[Miner]:
    """Return miners, of which the first follows the recipe and the others err at seeded rates."""
    miners = []
    for index in range(count):
        draw = random.Random(f"{seed}/miner/{index}")
        hotkey = "5" + blake2b(f"{seed}/{index}".encode(), digest_size=24).hexdigest()[:47]
        rates = {name: draw.uniform(0.0, 0.15) for name in ("blank", "repeat", "swap", "truncate")}
        miners.append(Miner(str(index), hotkey, 1 + index % 3, **(rates if index else {})))
    return miners


def perturb(predictions: list[list[str]], miner: Miner, draw: random.Random) -> list[list[str]]:
    """Return a dialogue's predictions (utterances x steps) with a miner's errors."""
    if not (miner.blank or miner.repeat or miner.swap or miner.truncate):
        return predictions
    given: list[list[str]] = []
    for number, steps in enumerate(predictions):
        texts: list[str] = []
        for step, text in enumerate(steps):
            if draw.random() < miner.blank:
                texts.append("")
            elif step and draw.random() < miner.repeat:
                texts.append(texts[step - 1])
            elif number and draw.random() < miner.swap:
                texts.append(given[number - 1][step])
            elif draw.random() < miner.truncate:
                words = text.split()
                texts.append(" ".join(words[: (len(words) + 1) // 2]))
            else:
                texts.append(text)
        given.append(texts)
    return given


DIALOGUES_PER_CHALLENGE = 20
MEGABYTE = 1_000_000

Layout = Literal["shards", "dialogue"]
Compression = Literal["none", "gz", "zst"]
SUFFIXES: dict[str, str] = {"none": "", "gz": ".gz", "zst": ".zst"}


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of the output: dialogues count once per miner, bytes are uncompressed."""

    files: int = 0
    dialogues: int = 0
    utterances: int = 0
    predictions: int = 0
    bytes: int = 0


def log_rows(
    dialogue: Dialogue, predictions: list[list[str]], labels: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield a dialogue's log rows: each utterance's steps, then its completion."""
    for number, (turn, steps) in enumerate(zip(dialogue.turns, predictions, strict=True)):
        for step, text in enumerate(steps):
            yield {
                "event": "predicted",
                "utterance_index": number,
                "step": step,
                "prediction": text,
                **labels,
            }
        yield {
            "event": "utterance_complete",
            "utterance_index": number,
            "ground_truth": turn.text,
            **labels,
        }


@dataclass(frozen=True, slots=True)
class Log:
    """One miner's log of one dialogue, ready to write."""

    labels: dict[str, str]
    utterances: int
    lines: bytes


def miner_logs(
    dialogues: Sequence[Dialogue], *, total: int, miners: Sequence[Miner], seed: int
) -> Iterator[Log]:
    """Yield one log per dialogue and miner, dialogue by dialogue.

    Parameters
    ----------
    dialogues
        The source dialogues, at least one.
    total
        The number of dialogues: the first ``total``, or all of them repeatedly, the n-th time with
        ``-rN`` after the id and borrowing from n - 1 dialogues further on.
    miners
        The predicting miners; see `simulate_miners`.
    seed
        Seed of every random choice. A log depends only on it, the miner and the dialogue.
    """
    neighbours = Neighbours(dialogues)
    for number in range(total):
        repetition, index = divmod(number, len(dialogues))
        dialogue = dialogues[index]
        uid = f"{dialogue.uid}-r{repetition + 1}" if repetition else dialogue.uid
        truths = [turn.text for turn in dialogue.turns]
        recipes: dict[int, list[list[str]]] = {}
        for miner in miners:
            distance = miner.borrows_from + repetition
            if distance not in recipes:
                borrowed = counterparts(dialogue, dialogues[neighbours.following(index, distance)])
                recipes[distance] = [
                    predict(truth, text) for truth, text in zip(truths, borrowed, strict=True)
                ]
            draw = random.Random(f"{seed}/{miner.uid}/{uid}")
            labels = {
                "dialogue_uid": uid,
                "challenge_uid": f"challenge-{number // DIALOGUES_PER_CHALLENGE:05d}",
                "miner_uid": miner.uid,
                "miner_hotkey": miner.hotkey,
            }
            rows = log_rows(dialogue, perturb(recipes[distance], miner, draw), labels)
            lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
            yield Log(labels, len(dialogue.turns), lines)


def assign_files(
    logs: Iterable[Log], *, layout: Layout, total: int, shards: int | None, shard_bytes: int
) -> Iterator[tuple[str, Log]]:
    """Return each log's file: a separate one, one of ``shards``, or the next of ``shard_bytes``."""
    shard, filled = 0, 0
    for number, log in enumerate(logs):
        if layout == "dialogue":
            name = "dialogue_run_{challenge_uid}_miner_{miner_uid}__hk_{miner_hotkey}"
            yield (name + "__dlg_{dialogue_uid}").format(**log.labels), log
            continue
        if shards is not None:
            shard = number * shards // total
        elif filled and filled + len(log.lines) > shard_bytes:
            shard, filled = shard + 1, 0
        filled += len(log.lines)
        yield f"part-{shard:05d}", log


@contextmanager
def open_output(path: Path, compression: Compression) -> Iterator[IO[bytes]]:
    """Open a file to write, with reproducible compression."""
    with path.open("wb") as file:
        if compression == "gz":
            with gzip.GzipFile(
                filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0
            ) as gz:
                yield cast(IO[bytes], gz)
        elif compression == "zst":
            with zstandard.ZstdCompressor(level=3).stream_writer(file) as zst:
                yield cast(IO[bytes], zst)
        else:
            yield file


def write_logs(
    named_logs: Iterable[tuple[str, Log]], output: Path, compression: Compression = "none"
) -> Counts:
    """Write named logs to ``output``; the logs of one file must be consecutive.

    Raises
    ------
    click.ClickException
        The folder contains files already.
    """
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        raise click.ClickException(f"{output} is not empty; name a new folder or empty it first.")
    files = dialogues = utterances = size = 0
    for name, logs in groupby(named_logs, key=itemgetter(0)):
        files += 1
        with open_output(output / f"{name}.jsonl{SUFFIXES[compression]}", compression) as stream:
            for _, log in logs:
                stream.write(log.lines)
                dialogues += 1
                utterances += log.utterances
                size += len(log.lines)
    return Counts(files, dialogues, utterances, utterances * N_STEPS, size)


def generate(
    output: Path,
    *,
    data: Sequence[Path] = (SAMPLE,),
    dialogues: int | None = None,
    miners: int = 1,
    seed: int = 0,
    layout: Layout = "shards",
    shards: int | None = None,
    shard_megabytes: float = 64,
    compression: Compression = "none",
) -> Counts:
    """Write miner logs of the dialogues in ``data``; the command line's options, as a function.

    The output bytes depend only on the arguments.
    """
    source = read_dialogues(data)
    if not source:
        named = ", ".join(map(str, data))
        raise click.ClickException(
            f"{named} holds no dialogue; one JSON object a line is expected."
        )
    total = len(source) if dialogues is None else dialogues
    logs = miner_logs(source, total=total, miners=simulate_miners(miners, seed), seed=seed)
    named_logs = assign_files(
        logs,
        layout=layout,
        total=total * miners,
        shards=shards,
        shard_bytes=round(shard_megabytes * MEGABYTE),
    )
    return write_logs(named_logs, output, compression)


@click.command(context_settings={"show_default": True})
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="New folder.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    multiple=True,
    default=[SAMPLE],
    show_default="the bundled sample",
    help="SGD-shaped dialogues: a .jsonl or .jsonl.gz file or a folder of them; repeatable.",
)
@click.option(
    "--dialogues",
    type=click.IntRange(min=1),
    show_default="all, once",
    help="How many dialogues; the list is repeated under new ids when it is shorter.",
)
@click.option("--miners", type=click.IntRange(min=1), default=1, help="Simulated miners.")
@click.option("--seed", type=int, default=0, help="Seed of the miners' mistakes.")
@click.option(
    "--layout",
    type=click.Choice(["shards", "dialogue"]),
    default="shards",
    help="Large files, or one for each dialogue and miner.",
)
@click.option(
    "--shards", type=click.IntRange(min=1), show_default="by size", help="Number of files."
)
@click.option(
    "--shard-megabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=64,
    help="Size of a file before compression, in 10^6 bytes, unless --shards is given.",
)
@click.option(
    "--compression", type=click.Choice(["none", "gz", "zst"]), default="none", help="Of each file."
)
def main(output: Path, **options: Any) -> None:
    """Write sharded miner logs with constructed predictions for real dialogues."""
    counts = generate(output, **options)
    click.echo(
        f"{output}: {counts.files:,} files, {counts.dialogues:,} dialogue logs, "
        f"{counts.utterances:,} utterances, {counts.predictions:,} predictions, "
        f"{counts.bytes / MEGABYTE:,.1f} MB before compression"
    )


if __name__ == "__main__":
    main()
