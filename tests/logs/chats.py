"""Chats in many forms, and logs scored as their refusals say."""

import csv
import io
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError

ASKED = ["A drama, please.", "Rather a comedy.", "With Al Pacino."]
REPLIES = ["Watch Heat.", "Watch Clueless.", "Heat has Al Pacino."]
PAIRS = list(zip(ASKED, REPLIES, strict=True))
SUITES = ["preference_shift", "guest_simulation"]


def chat(
    pairs: Any = 3,
    speaker: str = "role",
    text: str = "content",
    user: str = "user",
    assistant: str = "assistant",
) -> list[dict[str, Any]]:
    """Return the turns of pairs, or of so many first ones, with any keys and words."""
    return [
        {speaker: who, text: said}
        for pair in (PAIRS[:pairs] if isinstance(pairs, int) else pairs)
        for who, said in zip((user, assistant), pair, strict=True)
    ]


def sides(user: str, assistant: str, pairs: Any = PAIRS) -> list[dict[str, str]]:
    return [{user: asked, assistant: reply} for asked, reply in pairs]


def of_two(made: Callable[[str, Any], Any]) -> Any:
    """Return what is made of the names and pairs of two dialogues, as one list or object."""
    first, second = made("a", PAIRS), made("b", PAIRS[1:])
    return first | second if isinstance(first, dict) else [*first, *second]


def write(path: Path, rows: Any) -> Path:
    """Write rows in the format of a file's suffix."""
    if path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        text = io.StringIO()
        table = csv.DictWriter(text, rows[0])
        table.writeheader()
        table.writerows(rows)
        path.write_text(text.getvalue())
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def options_of(suite: str, folder: Path) -> Any:
    """Return what is given to score by a suite without a model."""
    if suite == "preference_shift":
        catalogue = folder / "catalogue.json"
        catalogue.write_text('[{"name": "Heat", "genre": ["drama"]}]')
        return fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")
    return fastscore.ScoreDialogue(lex_weight=1) if suite == "score_dialogue" else suite


def scored(log: Any, suite: Any, **reading: Any) -> fastscore.Run:
    return fastscore.score(log, suite, embedder=None, **reading)


def pairs(log: Any, options: Any, **reading: Any) -> list[tuple[str, str]]:
    """Return the pairs of turns that preference_shift reads."""
    return pairs_of(scored(log, options, max_rejects=1.0, **reading))


def pairs_of(run: fastscore.Run) -> list[tuple[str, str]]:
    return run.tables["turns"].select("user_text", "system_text").rows()


def n_dialogues(run: fastscore.Run) -> int:
    return run.tables["dialogues"].height


def proposed(path: Path, suite: str = "preference_shift") -> list[str]:
    """Return the flags that inspect proposes."""
    (file,) = fastscore.inspect(path).files
    return [word for fit in file.fits if fit.suite == suite for word in fit.flags]


def reading(flags: list[str]) -> dict[str, Any]:
    """Return the arguments that flags are in Python."""
    found: dict[str, Any] = {}
    for flag, word in zip(flags[::2], flags[1::2], strict=True):
        name, _, rest = word.partition("=")
        if flag == "--column":
            found.setdefault("columns", {})[name] = rest
        elif flag == "--value":
            column, _, spelled = name.partition(":")
            found.setdefault("values", {}).setdefault(column, {})[spelled] = rest
        else:
            found[flag.removeprefix("--").replace("-", "_")] = word
    return found


def refusal(log: Any, suite: Any, **reading: Any) -> str:
    with pytest.raises(InputError) as refused:
        scored(log, suite, **reading)
    return str(refused.value)


COMMAND = re.compile(r"Type (.*? > (\w+\.jsonl))")
FLAGS = re.compile(
    r"(?:[Tt]ype|example|round:|begins:|mean:|with) (--.*?)(?: To keep| If |\. [A-Z]|\.?$)"
)


def written_anew(said: str, folder: Path) -> Path | None:
    """Run the command that a refusal says to type, if there is one; return the file it writes."""
    command = COMMAND.search(said)
    if command is None:
        return None
    subprocess.run(command[1], shell=True, check=True, cwd=folder)
    return folder / command[2]


def typed_in(said: str) -> list[str]:
    """Return the flags that a refusal says to type."""
    command = COMMAND.search(said)
    flags = FLAGS.search(said, command.end() if command else 0)
    return shlex.split(flags[1]) if flags else []


def follow(log: Path, suite: Any) -> fastscore.Run:
    """Score a log as its refusals say: by commands that write it anew, and by options."""
    flags: list[str] = []
    for _ in range(3):
        try:
            return scored(log, suite, **reading(flags))
        except InputError as refused:
            said = str(refused)
        # a second question is after the first one's options
        kept = flags if "Keep the options" in said else []
        log, flags = written_anew(said, log.parent) or log, [*kept, *typed_in(said)]
    return scored(log, suite, **reading(flags))
