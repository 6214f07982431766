"""Measure simulated conversations against the same ones over a catalogue that is searched plainly.

Both sides have the same users, the same offline recommender and the same words; the peer looks
every value up by trying all of the catalogue, one after the other, as the public simulator does.
Both must write the same logs. Seconds are of processor time in one process; the whole simulation is
then run as a command with a process for each processor, and what it wrote is scored by another.

Usage: python -m benchmarks.simulation [--quick] [--data FOLDER] [--sessions 20000]
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.preference_shift_logs import DATA, MOVIES, read_lines, write_jsonl
from fastscore.processors import available_processors
from fastscore.simulation.agents import OfflineAgent
from fastscore.simulation.policy import load_policy
from fastscore.simulation.retrieval import Constraints, Retrieval, load_retrieval
from fastscore.simulation.users import plan_user
from fastscore.simulation.world import converse
from tests.oracles.retrieval import PlainRetrieval

TURNS = 50
Logs = list[dict[str, Any]]


class PlainlySearched(Retrieval):
    """The same catalogue, every value of which is tried."""

    __slots__ = ("plain",)
    plain: PlainRetrieval

    def find_attributes(self, text: str, *, words: bool = False) -> dict[str, str]:
        """Return the first value of each field that stands in a text."""
        lowered = text.lower()
        found = {}
        for name, values in self.plain.surface.items():
            for value, surface in values.items():
                if value in lowered and any(_alone(lowered, value)):
                    found[name] = surface
                    break
        return found

    def find_genre(self, text: str, *, words: bool = False) -> str | None:
        """Return the genre that sorts first of those that stand in a text."""
        lowered = text.lower()
        known = self.plain.index["genre"]
        return min((genre for genre in known if any(_alone(lowered, genre))), default=None)

    def fitting(self, constraints: Constraints) -> tuple[int, ...]:
        """Return the rows that fit constraints, ascending."""
        return tuple(sorted(self.plain.fitting(dict(constraints))))


def _alone(text: str, value: str) -> Iterator[bool]:
    """Say of every place of a value in a text whether it cuts no word there."""
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
    policy, agent = load_policy(), OfflineAgent(retrieval)
    logs = []
    for session in range(sessions):
        plan = plan_user(retrieval, policy, seed=0, session=session, turns=TURNS)
        logs.append(converse(plan, agent, retrieval, seed=0, session=session, follows_system=True))
    return logs


def timed(work: Callable[[], Logs]) -> tuple[float, Logs]:
    """Return seconds of processor time, and what was made."""
    started = time.process_time()
    made = work()
    return time.process_time() - started, made


def run_command(*words: object) -> tuple[float, float]:
    """Run a command of fastscore; return its wall and processor seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "fastscore", *map(str, words), "-q"], check=True)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--sessions", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.option("--peer-sessions", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--quick", is_flag=True, help="1,000 sessions, 20 for the peer.")
def main(data: Path, sessions: int, peer_sessions: int, quick: bool) -> None:
    """Compare simulation with a plain search of the catalogue."""
    if quick:
        sessions, peer_sessions = 1_000, 20
    click.echo(json.dumps(describe_host()))
    movies = read_lines(data, MOVIES)
    with tempfile.TemporaryDirectory() as scratch:
        catalogue = Path(scratch) / "catalogue.jsonl"
        write_jsonl(catalogue, movies)
        ours = load_retrieval(str(catalogue))
        theirs = PlainlySearched(*(getattr(ours, each.name) for each in fields(Retrieval)))
        object.__setattr__(theirs, "plain", PlainRetrieval(movies))
        simulated(ours, 2)  # what is made once
        fast, made = timed(lambda: simulated(ours, peer_sessions))
        slow, expected = timed(lambda: simulated(theirs, peer_sessions))
        if made != expected:
            raise click.ClickException("the two write other logs")
        logs, over = Path(scratch) / "logs", ("--catalogue", catalogue)
        length = ("--sessions", sessions, "--turns", TURNS)
        simulation = run_command("simulate", "preference_shift", *over, *length, "-o", logs)
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
        f"simulate           {simulation[0]:.1f} s, {simulation[1]:.1f} CPU s for "
        f"{sessions * TURNS:,} turns by {available_processors()} processes\n"
        f"score              {scoring[0]:.1f} s, {scoring[1]:.1f} CPU s for the same turns"
    )


if __name__ == "__main__":
    main()
