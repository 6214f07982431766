"""The suite preference_shift beside plain scorers: whole runs, extraction by n-grams, simulation.

``compare``: ReDial repeated with variations. Ours is a whole process each time, from the log on
disk to the committed run: start-up, reading, extraction, scoring, summary. The plain scorer reads
and scores the first turns of the same log in this process, without imports, alternating with ours.
Both are given in turns per second, with their ratio. On these first turns both are compared in full
before any output. Extraction is also measured alone: from distinct utterances of the log to sets of
concepts, in seconds of processor time, so threads do not help.

``ngrams``: extraction by character n-grams against scikit-learn's vectoriser. Texts have the
lengths of the logs with which the extraction was published: half about 77 characters, half about
443, made of ReDial's messages. Ours finds the concepts of all texts in one thread. scikit-learn,
with a matrix product per block of texts, finds those of the first texts, alternating with ours on
the same texts. Both must find equal sets. Seconds are of processor time.

``simulation``: simulated conversations against equal ones over a catalogue with linear search. Both
sides have the same users, the same offline recommender and the same words. The peer looks every
value up by scanning the catalogue, as the public simulator does. Both must write equal logs.
Seconds are of processor time in one process. The whole simulation is then run as a command with a
process per processor, and its output is scored by another.

Usage: python -m benchmarks.preference_shift compare|ngrams|simulation [--quick] [--data FOLDER]
"""

import json
import math
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
import polars as pl

import fastscore
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.preference_shift_logs import (
    DATA,
    MOVIES,
    Dialogue,
    read_lines,
    read_source,
    repeat_logs,
    write_jsonl,
)
from benchmarks.processes import Cost, measure
from fastscore.settings.options import available_processors
from fastscore.simulation.simulate import OfflineAgent, Simulation, World
from fastscore.simulation.users import Constraints, Retrieval, load_policy, load_retrieval
from fastscore.suites.preference_shift import PreferenceShift
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import (
    Concepts,
    concepts_by_ngrams,
    concepts_of,
    prepared_matcher,
)
from tests.oracles import preference_shift as plain
from tests.oracles import preference_shift_concepts as plain_concepts
from tests.oracles.retrieval import PlainRetrieval

EXTRACTED = 200_000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """Cost of one profile: medians with the extremes."""

    profile: str
    ours: list[Cost]
    plain_wall: list[float]
    plain_cpu: list[float]
    turns: int
    plain_turns: int
    utterances: int
    extraction: list[float]

    @property
    def sides(self) -> dict[str, tuple[list[float], list[float]]]:
        """Our seconds and the plain scorer's, by clock."""
        wall, cpu = ([getattr(cost, part) for cost in self.ours] for part in ("wall", "cpu"))
        return {"wall": (wall, self.plain_wall), "CPU": (cpu, self.plain_cpu)}

    def published(self) -> Iterator[Figure]:
        """Yield turns a second by clock, ours beside the plain scorer's."""
        for clock, (ours, theirs) in self.sides.items():
            fast = self.turns / statistics.median(ours)
            slow = self.plain_turns / statistics.median(theirs)
            yield Figure(
                what=f"{self.profile}, {clock}",
                rows=self.turns,
                unit="turns/s",
                ours=fast,
                peer="plain scorer",
                theirs=slow,
                ratio=fast / slow,
            )

    def lines(self) -> list[str]:
        """Describe the figures."""
        (wall, _), (cpu, _) = self.sides.values()
        peak = max(cost.peak_mb for cost in self.ours)
        ratios = [figure.ratio or 0.0 for figure in self.published()]
        rate = self.utterances / statistics.median(self.extraction)
        return [
            f"{self.profile}",
            f"  ours    {_spread(wall)} s wall, {_spread(cpu)} s CPU, peak {peak:,.0f} MB: "
            f"{self.turns / statistics.median(wall):,.0f} turns/s",
            f"  plain   {_spread(self.plain_wall)} s wall for {self.plain_turns:,} turns: "
            f"{self.plain_turns / statistics.median(self.plain_wall):,.0f} turns/s",
            f"  ratio   {ratios[0]:.0f}x wall, {ratios[1]:.0f}x CPU",
            f"  extract {self.utterances:,} distinct utterances in {_spread(self.extraction)} s "
            f"CPU: {rate:,.0f} a second and core",
        ]


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def first_logs(path: Path, n_turns: int) -> list[str]:
    """Return the first lines of a log with a total number of turns."""
    lines = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            lines.append(line)
            n_turns -= len(json.loads(line)["conversation"]) // 2
            if n_turns <= 0:
                break
    return lines


def distinct_utterances(path: Path) -> pl.Series:
    """Return the first distinct utterances of a log."""
    seen: dict[str, None] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            seen.update(dict.fromkeys(turn["text"] for turn in json.loads(line)["conversation"]))
            if len(seen) >= EXTRACTED:
                break
    return pl.Series(list(seen)[:EXTRACTED])


def check_agreement(folder: Path, lines: list[str], profile: str) -> None:
    """Compare every turn of both scorers.

    Raises
    ------
    click.ClickException
        They differ.
    """
    path, catalogue = folder / "first.jsonl", folder / "catalogue.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    scores = fastscore.score(
        path,
        fastscore.PreferenceShift(catalogue=str(catalogue), profile=profile, segments="metadata"),
        embedder=None,
    )
    ours = scores.tables["turns"]
    logs = [json.loads(line) for line in lines]
    scored = plain.score_logs(
        logs,
        plain_concepts.make_catalogue(plain.read_lines(catalogue)),
        plain_concepts.PROFILES[profile],
    )
    theirs = [turn for row in scored for turn in row["turns"]]
    same = ours.height == len(theirs) and all(
        math.isclose(a[name], b[name], rel_tol=0, abs_tol=1e-12)
        for a, b in zip(ours.select("cc", "cr", "i", "tas").to_dicts(), theirs, strict=True)
        for name in a
    )
    if not same:
        raise click.ClickException(f"the two scorers disagree on {profile}")


def run_plain(lines: list[str], catalogue: Path, profile: str) -> tuple[float, float]:
    """Read and score some logs plainly; return seconds of wall and processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    items = plain_concepts.make_catalogue(plain.read_lines(catalogue))
    plain.score_logs((json.loads(line) for line in lines), items, plain_concepts.PROFILES[profile])
    return time.perf_counter() - wall, time.process_time() - cpu


def run_extraction(texts: pl.Series, catalogue: Path, profile: str) -> float:
    """Extract the concepts of texts; return seconds of processor time."""
    options = PreferenceShift(catalogue=str(catalogue), profile=profile)
    _, matcher = prepared_matcher(options)
    cpu = time.process_time()
    matcher.extract(texts)
    return time.process_time() - cpu


def measure_profile(
    folder: Path, profile: str, turns: int, plain_turns: int, repeats: int
) -> Measured:
    """Run both sides alternately, several times, after one run that does not count."""
    logs, catalogue = folder / "logs.jsonl", folder / "catalogue.jsonl"
    lines = first_logs(logs, plain_turns)
    counted = sum(len(json.loads(line)["conversation"]) // 2 for line in lines)
    check_agreement(folder, lines, profile)
    texts = distinct_utterances(logs)
    run_extraction(texts.head(1_000), catalogue, profile)
    command = [
        *(sys.executable, "-m", "fastscore", "score", "preference_shift", str(logs)),
        *("-o", str(folder / "run"), "--overwrite", "-q", "--embedder", "none"),
        *("--catalogue", str(catalogue), "--profile", profile, "--segments", "metadata"),
    ]
    ours: list[Cost] = []
    theirs: list[tuple[float, float]] = []
    extraction: list[float] = []
    for _ in range(repeats):
        ours.append(measure(command, cwd=Path.cwd()))
        theirs.append(run_plain(lines, catalogue, profile))
        extraction.append(run_extraction(texts, catalogue, profile))
    scored = fastscore.open_run(folder / "run").scan("turns").select(pl.len()).collect().item()
    return Measured(
        profile,
        ours,
        [wall for wall, _ in theirs],
        [cpu for _, cpu in theirs],
        scored,
        counted,
        texts.len(),
        extraction,
    )


@click.command("compare")
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--turns", type=click.IntRange(min=1), default=1_000_000, show_default=True)
@click.option("--plain-turns", type=click.IntRange(min=1), default=2_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--profile", "profiles", type=click.Choice(list(plain_concepts.PROFILES)), multiple=True
)
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help="50,000 turns, once, the default profile.")
@click.option("--output", type=click.Path(path_type=Path), help="A JSON file for the figures.")
def compare(
    data: Path,
    turns: int,
    plain_turns: int,
    repeats: int,
    profiles: tuple[str, ...],
    seed: int,
    quick: bool,
    output: Path | None,
) -> None:
    """Compare the suite with a plain scorer."""
    if quick:
        turns, plain_turns, repeats, profiles = 50_000, 500, 1, ("default",)
    host = describe_host()
    click.echo(json.dumps(host))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dialogues, movies = read_source(data)
        write_jsonl(folder / "catalogue.jsonl", movies)
        n_bytes = write_jsonl(
            folder / "logs.jsonl", repeat_logs("plain", dialogues, movies, turns, seed)
        )
        click.echo(
            f"{turns:,} turns from {len(dialogues):,} dialogues, {n_bytes / 1e6:,.0f} MB, "
            f"{len(movies):,} movies, seed {seed}; medians of {repeats} (extremes)"
        )
        figures = []
        for profile in profiles or tuple(plain_concepts.PROFILES):
            figures.append(measure_profile(folder, profile, turns, plain_turns, repeats))
            click.echo("\n".join(figures[-1].lines()))
            publish(figures[-1].published())
    if output is not None:
        found = {"host": host, "seed": seed, "figures": [asdict(each) for each in figures]}
        output.write_text(json.dumps(found, indent=1))


LENGTHS = (77, 443)
TEXTS_PER_BLOCK = 500
Names = list[list[str]]
Made = TypeVar("Made")


def make_texts(dialogues: list[Dialogue], count: int, seed: int) -> list[str]:
    """Join messages at random to distinct texts of the published lengths."""
    rng = random.Random(seed)
    messages = [message.text for dialogue in dialogues for message in dialogue if message.text]
    texts: dict[str, None] = {}
    while len(texts) < count:
        parts = [rng.choice(messages)]
        while sum(map(len, parts)) + len(parts) < LENGTHS[len(texts) % 2]:
            parts.append(rng.choice(messages))
        texts[" ".join(parts)] = None
    return list(texts)


def extract_names(texts: list[str], concepts: Concepts, options: PreferenceShift) -> Names:
    """Find the concepts of texts by ours."""
    sets = concepts_by_ngrams(pl.Series(texts), concepts, options)
    names: Names = concepts.names(sets).to_list()
    return names


class Vectorised:
    """The extraction by scikit-learn, fitted beforehand."""

    def __init__(self, concepts: Concepts) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.fields = []
        for _, terms in concepts.terms.group_by("field", maintain_order=True):
            vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
            matrix = vectoriser.fit_transform(terms["value"].to_list())
            self.fields.append((vectoriser, matrix, terms["concept"].to_list()))

    def extract_names(self, texts: list[str], options: PreferenceShift) -> Names:
        """Find the concepts of texts, a block at a time."""
        from sklearn.metrics.pairwise import cosine_similarity

        found: Names = [[] for _ in texts]
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            block = texts[start : start + TEXTS_PER_BLOCK]
            for vectoriser, matrix, names in self.fields:
                similar = cosine_similarity(vectoriser.transform(block), matrix)
                ranked = np.argsort(-similar, axis=1, kind="stable")[:, : options.embed_top]
                for row, best in enumerate(ranked):
                    kept = best[similar[row, best] >= options.embed_threshold]
                    found[start + row] += [names[place] for place in kept]
        return [sorted(names) for names in found]


def timed(work: Callable[[], Made]) -> tuple[float, Made]:
    """Return seconds of processor time, and the result."""
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


@click.command("ngrams")
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--texts", "n_texts", type=click.IntRange(min=1), default=60_000, show_default=True)
@click.option("--peer-texts", type=click.IntRange(min=1), default=2_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help="6,000 texts, 500 for the peer, once.")
def ngrams(data: Path, n_texts: int, peer_texts: int, repeats: int, seed: int, quick: bool) -> None:
    """Compare extraction by n-grams with scikit-learn."""
    if quick:
        n_texts, peer_texts, repeats = 6_000, 500, 1
    click.echo(json.dumps(describe_host()))
    dialogues, movies = read_source(data)
    texts = make_texts(dialogues, n_texts, seed)
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Path(folder) / "catalogue.jsonl"
        write_jsonl(catalogue, movies)
        options = PreferenceShift(catalogue=str(catalogue), profile="structured", extract="ngrams")
        concepts = concepts_of(load_catalogue(options.catalogue), options)
    first = texts[:peer_texts]
    built, _ = timed(lambda: extract_names(first[:1], concepts, options))
    peer = Vectorised(concepts)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repeats):
        seconds, found = timed(lambda: extract_names(first, concepts, options))
        ours.append(seconds)
        seconds, expected = timed(lambda: peer.extract(first, options))
        theirs.append(seconds)
        if found != expected:
            raise click.ClickException("the two find other concepts")
    whole, _ = timed(lambda: extract_names(texts, concepts, options))
    ratio = statistics.median(theirs) / statistics.median(ours)
    publish(
        [
            Figure(
                what="concepts by n-grams",
                rows=len(first),
                unit="CPU s",
                ours=statistics.median(ours),
                peer="scikit-learn",
                theirs=statistics.median(theirs),
                ratio=ratio,
            )
        ]
    )
    click.echo(
        f"{len(concepts):,} values; texts of {statistics.mean(map(len, texts)):.0f} characters\n"
        f"ours          {whole:.1f} s for {len(texts):,} texts, after {built:.1f} s for the index\n"
        f"ours          {statistics.median(ours):.2f} s for the first {len(first):,}\n"
        f"scikit-learn  {statistics.median(theirs):.2f} s for the same: {ratio:.0f} times as long"
    )


TURNS = 50
Logs = list[dict[str, Any]]


class LinearSearch(Retrieval):
    """The catalogue with linear search."""

    __slots__ = ("plain",)
    plain: PlainRetrieval

    def find_values(self, text: str) -> tuple[str | None, dict[str, str]]:
        """Return the first genre, in sorted order, and the first value of each field, of a text."""
        lowered = text.lower()
        found = {}
        for name, values in self.plain.surface.items():
            for value, surface in values.items():
                if value in lowered and any(_word_matches(lowered, value)):
                    found[name] = surface
                    break
        known = self.plain.index["genre"]
        genres = (genre for genre in known if any(_word_matches(lowered, genre)))
        return min(genres, default=None), found

    def fitting(self, constraints: Constraints) -> tuple[int, ...]:
        """Return the rows that fit constraints, ascending."""
        return tuple(sorted(self.plain.fitting(dict(constraints))))


def _word_matches(text: str, value: str) -> Iterator[bool]:
    """Yield, for each occurrence of a value in a text, whether it is a whole word there."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        inside_left = start > 0 and _in_word(text[start - 1]) and _in_word(text[start])
        inside_right = end < len(text) and _in_word(text[end - 1]) and _in_word(text[end])
        if not inside_left and not inside_right:
            yield True
        start = text.find(value, start + 1)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def simulated(retrieval: Retrieval, sessions: int) -> Logs:
    """Simulate sessions in this process."""
    asked = Simulation(catalogue="", sessions=sessions, turns=TURNS, output=Path())
    world = World(asked, retrieval, load_policy(), OfflineAgent(retrieval))
    return [world.log(session) for session in range(sessions)]


def run_command(*words: object) -> tuple[float, float]:
    """Run a command of fastscore; return its wall and processor seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "fastscore", *map(str, words), "-q"], check=True)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


@click.command("simulation")
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--sessions", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.option("--peer-sessions", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--quick", is_flag=True, help="1,000 sessions, 20 for the peer.")
def simulation(data: Path, sessions: int, peer_sessions: int, quick: bool) -> None:
    """Compare simulation with a linear search of the catalogue."""
    if quick:
        sessions, peer_sessions = 1_000, 20
    click.echo(json.dumps(describe_host()))
    movies = read_lines(data, MOVIES)
    with tempfile.TemporaryDirectory() as scratch:
        catalogue = Path(scratch) / "catalogue.jsonl"
        write_jsonl(catalogue, movies)
        ours = load_retrieval(str(catalogue))
        theirs = LinearSearch(*(getattr(ours, each.name) for each in fields(Retrieval)))
        object.__setattr__(theirs, "plain", PlainRetrieval(movies))
        simulated(ours, 2)  # objects created once
        fast, made = timed(lambda: simulated(ours, peer_sessions))
        slow, expected = timed(lambda: simulated(theirs, peer_sessions))
        if made != expected:
            raise click.ClickException("the two write other logs")
        logs, over = Path(scratch) / "logs", ("--catalogue", catalogue)
        length = ("--sessions", sessions, "--turns", TURNS)
        simulating = run_command("simulate", "preference_shift", *over, *length, "-o", logs)
        lexical = ("--segments", "metadata", "--embedder", "none", "-o", Path(scratch) / "run")
        scoring = run_command("score", "preference_shift", logs, *over, *lexical)
    turns = peer_sessions * TURNS
    publish(
        [
            Figure(
                what="simulated turns",
                rows=turns,
                unit="CPU s",
                ours=fast,
                peer="every value tried",
                theirs=slow,
                ratio=slow / fast,
            )
        ]
    )
    click.echo(
        f"{len(movies):,} items, sessions of {TURNS} turns\n"
        f"ours               {fast:.2f} CPU s for {turns:,} turns\n"
        f"every value tried  {slow:.2f} CPU s for the same: {slow / fast:.1f} times as long\n"
        f"simulate           {simulating[0]:.1f} s, {simulating[1]:.1f} CPU s for "
        f"{sessions * TURNS:,} turns by {available_processors()} processes\n"
        f"score              {scoring[0]:.1f} s, {scoring[1]:.1f} CPU s for the same turns"
    )


main = click.Group("preference_shift", commands=[compare, ngrams, simulation])


if __name__ == "__main__":
    main()
