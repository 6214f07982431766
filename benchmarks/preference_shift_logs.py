"""Write logs of movie recommendation for the suite preference_shift, and their catalogue.

The dialogues are ReDial's (real, CC BY 4.0). The movie seeker is USER, the recommender SYSTEM.
Consecutive messages of one speaker are joined. A greeting of the recommender before the seeker's
first message is removed, as it answers nothing, and so is a last message without an answer. There
are three kinds of logs, with bytes that depend only on the arguments:

plain
    The dialogues as they are.
shifted
    Two dialogues of disjoint genres joined, with one shift event at the joint (synthetic). In the
    three turns from there on the user asks for a dated movie of the second dialogue. The system
    gives meaningless answers until it repeats the user's text, in the turn of the planted delay or
    never. The log's field ``planted`` is the delay.
models
    The same joints without planted answers, once for each of four synthetic models that alter the
    recommender's texts, with synthetic judge scores, as input for comparisons.

For each kind, `--turns` repeats the dialogues up to a number of pairs of turns. In a repetition
every movie that is mentioned becomes another one of the catalogue, and half of the texts that
mention none end in a sentence about a person of the catalogue (synthetic).

Usage: python -m benchmarks.preference_shift_logs --output FOLDER [--kind plain] [--turns 1000000]
"""

import gzip
import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import orjson

DATA = Path(__file__).parent / "data"
DIALOGUES = ("redial_valid.jsonl.gz", "redial_sample.jsonl.gz")
MOVIES = ("redial_movies.jsonl.gz", "redial_movies_sample.jsonl.gz")
SPEAKERS = {"U": "USER", "S": "SYSTEM"}
WINDOW = 3
DELAYS = (0, 1, 2, None)
NOTHING = "..."
DATED = re.compile(r"\(\d{4}\)$")
PERSON_RATE = 0.5
ENDINGS = ("Maybe something with {}.", "My brother likes {}.", "I do not care for {}.")
ASKS = ("Could it be something like {}?", "I am thinking of {} now.", "Anything close to {}?")


@dataclass(frozen=True, slots=True)
class Message:
    """A speaker's joined message, and the movies it mentions as written."""

    speaker: str
    text: str
    movies: tuple[str, ...]


Dialogue = tuple[Message, ...]
Log = dict[str, Any]
Movie = dict[str, Any]


def read_lines(folder: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Read the first of these compressed files that exists in the folder."""
    path = next((folder / name for name in names if (folder / name).exists()), None)
    if path is None:
        raise click.ClickException(f"{folder}: has neither of {', '.join(names)}.")
    return [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def read_source(folder: Path = DATA) -> tuple[list[Dialogue], list[Movie]]:
    """Read the dialogues and the catalogue of a folder, by default the bundled sample."""
    dialogues = [join_messages(row["turns"]) for row in read_lines(folder, DIALOGUES)]
    return dialogues, read_lines(folder, MOVIES)


def join_messages(turns: Iterable[Sequence[Any]]) -> Dialogue:
    """Join consecutive messages of a speaker, from the user's first one on."""
    joined = []
    for speaker, run in itertools.groupby(turns, key=lambda turn: turn[0]):
        messages = list(run)
        text = " ".join(message[1] for message in messages)
        movies = tuple(movie for message in messages for movie in message[2])
        joined.append(Message(SPEAKERS[speaker], text, movies))
    return tuple(joined[1:] if joined and joined[0].speaker == "SYSTEM" else joined)


def whole_pairs(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue without a last message that has no answer."""
    return dialogue[: len(dialogue) // 2 * 2]


def make_log(dialogue: Dialogue, session: str, model: str, shifts: Sequence[int] = ()) -> Log:
    """Return a log of a dialogue in the simulator's format, with shifts at these user turns."""
    ordinals = itertools.count(1)
    conversation: list[dict[str, Any]] = []
    for message in dialogue:
        turn: dict[str, Any] = {"speaker": message.speaker, "text": message.text}
        if message.speaker == "USER":
            ordinal = next(ordinals)
            turn["user_meta"] = {"turn": ordinal, "shift_event": ordinal in shifts}
        else:
            turn["constraints"] = {}
        conversation.append(turn)
    events = [{"turn": turn, "from_focus": "genre", "to_focus": "genre"} for turn in shifts]
    return {
        "session_id": session,
        "model_name": model,
        "conversation": conversation,
        "shift_events": events,
    }


def dated_movies(dialogue: Dialogue) -> list[str]:
    """Return the movies that a dialogue mentions with their year, sorted."""
    names = {name for message in dialogue for name in message.movies}
    return sorted(name for name in names if DATED.search(name))


def disjoint_pairs(
    dialogues: Sequence[Dialogue], movies: Sequence[Movie], random_: random.Random
) -> list[tuple[Dialogue, Dialogue]]:
    """Pair dialogues without a common genre, each at most once.

    All mention a movie with its year and have at least as many pairs of turns as a window.
    """
    genres = {movie["name"]: frozenset(movie["genre"]) for movie in movies}
    left = []
    for dialogue in map(whole_pairs, dialogues):
        names = {name for message in dialogue for name in message.movies}
        found = frozenset().union(*(genres.get(name, frozenset()) for name in names))
        if found and dated_movies(dialogue) and len(dialogue) >= 2 * WINDOW:
            left.append((found, dialogue))
    random_.shuffle(left)
    pairs = []
    while left:
        first_genres, first = left.pop()
        at = next((k for k, other in enumerate(left) if not first_genres & other[0]), None)
        if at is not None:
            pairs.append((first, left.pop(at)[1]))
    return pairs


def plant_shift(
    first: Dialogue, second: Dialogue, delay: int | None, random_: random.Random
) -> Dialogue:
    """Join two dialogues so that the answers recover after a delay, or not within a window."""
    mentioned = dated_movies(second)
    planted = list(second)
    for turn in range(WINDOW):
        user, system = planted[2 * turn : 2 * turn + 2]
        movie = random_.choice(mentioned)
        ask = f"{user.text} {random_.choice(ASKS).format(movie)}"
        answer = NOTHING if delay is None or turn < delay else f'"{ask}"'
        planted[2 * turn] = replace(user, text=ask, movies=(*user.movies, movie))
        planted[2 * turn + 1] = replace(system, text=answer, movies=())
    return first + tuple(planted)


def shifted_logs(
    dialogues: Sequence[Dialogue], movies: Sequence[Movie], random_: random.Random
) -> Iterator[Log]:
    """Make logs with one planted shift each, cycling through all delays."""
    pairs = disjoint_pairs(dialogues, movies, random_)
    delays = itertools.cycle(DELAYS)
    for number, ((first, second), delay) in enumerate(zip(pairs, delays, strict=False)):
        shift = len(first) // 2 + 1
        joined = plant_shift(first, second, delay, random_)
        log = make_log(joined, f"{number:05}", "redial", (shift,))
        yield {**log, "planted": {"turn": shift, "delay": delay}}


Answer = Callable[[Message, Message, int | None, random.Random], str]
"""A model's answer, from the user's message, the recommender's, and turns since the shift."""


def _restate(user: Message, share: float, random_: random.Random) -> str:
    kept = [movie for movie in user.movies if random_.random() < share]
    return f"So you would like something as {' or '.join(kept)}." if kept else ""


def _recorded(user: Message, system: Message, since: int | None, random_: random.Random) -> str:
    return system.text


def _restating(user: Message, system: Message, since: int | None, random_: random.Random) -> str:
    return f"{_restate(user, 0.8, random_)} {NOTHING if user.movies else system.text}".strip()


def _slow(user: Message, system: Message, since: int | None, random_: random.Random) -> str:
    if since is not None and since < random_.choice((1, 2, 2, 3)):
        return system.text
    return _restating(user, system, since, random_)


def _echoing(user: Message, system: Message, since: int | None, random_: random.Random) -> str:
    return f"{user.text} {system.text}" if random_.random() < 0.6 else system.text


MODELS: dict[str, tuple[Answer, float]] = {
    "recorded": (_recorded, 2.4),
    "restating": (_restating, 3.9),
    "slow": (_slow, 3.3),
    "echoing": (_echoing, 2.8),
}
"""The answers of each synthetic model, and the centre of its synthetic judge scores."""

RUBRIC = ("proactiveness", "coherence", "personalization")


def replace_answers(
    answer: Answer, dialogue: Dialogue, shifts: Sequence[int], random_: random.Random
) -> Dialogue:
    """Return a dialogue with a model's answers instead of the recommender's."""
    answered: list[Message] = []
    for turn, (user, system) in enumerate(zip(dialogue[::2], dialogue[1::2], strict=True), 1):
        past = [turn - shift for shift in shifts if shift <= turn]
        text = answer(user, system, min(past, default=None), random_)
        answered += [user, replace(system, text=text)]
    return tuple(answered)


def _judge(middle: float, shift_share: float, random_: random.Random) -> dict[str, int | None]:
    scores = [round(random_.gauss(middle + 2 * shift_share, 0.8)) for _ in RUBRIC]
    judged: list[int | None] = [min(max(score, 1), 5) for score in scores]
    if random_.random() < 0.05:
        judged[random_.randrange(len(RUBRIC))] = None
    return dict(zip(RUBRIC, judged, strict=True))


def model_logs(
    dialogues: Sequence[Dialogue], movies: Sequence[Movie], random_: random.Random
) -> Iterator[Log]:
    """Make logs of the same joined dialogues for every synthetic model, with judge scores."""
    pairs = disjoint_pairs(dialogues, movies, random_)
    for number, (first, second) in enumerate(pairs):
        shifts = (len(first) // 2 + 1,)
        joined = first + second
        asking = sum(bool(message.movies) for message in joined[::2]) / (len(joined) // 2)
        for model, (answer, middle) in MODELS.items():
            answered = replace_answers(answer, joined, shifts, random_)
            log = make_log(answered, f"{number:05}", model, shifts)
            yield {**log, "judge": _judge(middle, asking - 0.5, random_)}


def plain_logs(
    dialogues: Sequence[Dialogue], movies: Sequence[Movie], random_: random.Random
) -> Iterator[Log]:
    """Make a log of every dialogue, without shifts."""
    for number, dialogue in enumerate(dialogues):
        yield make_log(whole_pairs(dialogue), f"{number:05}", "redial")


KINDS = {"plain": plain_logs, "shifted": shifted_logs, "models": model_logs}


def vary_message(message: Message, movies: Sequence[Movie], random_: random.Random) -> Message:
    """Return a message with other movies, or half of the time with a person at its end."""
    text = message.text
    if message.movies:
        names = tuple(random_.choice(movies)["name"] for _ in message.movies)
        for old, new in zip(message.movies, names, strict=True):
            text = text.replace(old, new, 1)
        return replace(message, text=text, movies=names)
    people = random_.choice(movies)["actor"]
    if people and random_.random() < PERSON_RATE:
        text = f"{text} {random_.choice(ENDINGS).format(random_.choice(people))}"
    return replace(message, text=text)


def repeat_logs(
    kind: str, dialogues: Sequence[Dialogue], movies: Sequence[Movie], n_turns: int, seed: int = 0
) -> Iterator[Log]:
    """Make logs of a kind from repeated dialogues, up to a number of pairs.

    The first repetition is unchanged. Session ids start with the repetition's number.
    """
    random_ = random.Random(seed)
    source, left = dialogues, n_turns
    for repetition in itertools.count():
        for log in KINDS[kind](source, movies, random_):
            log["conversation"] = log["conversation"][: 2 * left]
            log["session_id"] = f"{repetition:04}-{log['session_id']}"
            yield log
            left -= len(log["conversation"]) // 2
            if not left:
                return
        if left == n_turns:
            raise click.ClickException(f"these dialogues make no log of kind {kind!r}.")
        source = [
            tuple(vary_message(message, movies, random_) for message in dialogue)
            for dialogue in dialogues
        ]


def write_jsonl(path: Path, rows: Iterable[Any]) -> int:
    """Write JSON Lines; return their bytes."""
    with path.open("wb") as file:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        return file.tell()


@click.command()
@click.option("--output", type=click.Path(path_type=Path), required=True, help="A folder.")
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--kind", type=click.Choice(list(KINDS)), default="plain", show_default=True)
@click.option("--turns", type=click.IntRange(min=1), help="Pairs of turns; else each log once.")
@click.option("--seed", default=0, show_default=True)
def main(output: Path, data: Path, kind: str, turns: int | None, seed: int) -> None:
    """Write logs.jsonl and catalogue.jsonl into a folder."""
    dialogues, movies = read_source(data)
    output.mkdir(parents=True, exist_ok=True)
    write_jsonl(output / "catalogue.jsonl", movies)
    logs = (
        KINDS[kind](dialogues, movies, random.Random(seed))
        if turns is None
        else repeat_logs(kind, dialogues, movies, turns, seed)
    )
    n_bytes = write_jsonl(output / "logs.jsonl", logs)
    click.echo(f"{output}: {n_bytes / 1e6:.1f} MB of logs, {len(movies):,} movies, seed {seed}")


if __name__ == "__main__":
    main()
