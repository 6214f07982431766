"""Rubrics: what a judge is asked, as TOML files."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.content_hash import hash_bytes
from fastscore.errors import UsageError, nearest

_TABLES = ("title", "scale", "prompt", "shown", "dimension")
_PROMPTS = ("system", "user", "again")
SLOTS = (
    "low",
    "middle",
    "high",
    "members",
    "dimensions",
    "highlights",
    "conversation",
    "fault",
)
"""What prompts may have in braces."""

_SHOWN = ("last_turns", "characters", "highlights", "highlighted_speakers")


@dataclass(frozen=True)
class Rubric:
    """What a judge scores, and what it is shown.

    Parameters
    ----------
    name, title, digest
        What it is called, what it is about, and the hash of its file.
    low, high
        The smallest and largest score, whole numbers.
    questions
        The question of each dimension, by name, in order.
    prompts
        The texts ``system``, ``user`` and ``again``.
    last_turns, characters
        The most turns from the end (0 for all) and the most characters of one that are shown.
    highlights, speakers
        Which turns of which speakers are shown apart.
    """

    name: str
    title: str
    digest: str
    low: int
    high: int
    questions: Mapping[str, str]
    prompts: Mapping[str, str]
    last_turns: int
    characters: int
    highlights: re.Pattern[str]
    speakers: tuple[str, ...]

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of an answer."""
        score = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return {
            "type": "object",
            "properties": dict.fromkeys(self.questions, score),
            "required": list(self.questions),
            "additionalProperties": False,
        }


def rubric_names() -> tuple[str, ...]:
    """Return the names of the bundled rubrics."""
    folder = files(__package__).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder if f.name.endswith(".toml")))


def load_rubric(name: str) -> Rubric:
    """Read a rubric.

    Parameters
    ----------
    name
        The name of a bundled one, or a TOML file.

    Raises
    ------
    UsageError
        There is no such rubric, or a value in it is not what stands there.
    """
    path = Path(name)
    if name in rubric_names():
        content = files(__package__).joinpath(f"{name}.toml").read_bytes()
    elif path.suffix == ".toml":
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"--rubric {name}: cannot be read: {error.strerror}.") from error
    else:
        raise UsageError(f"Unknown rubric {name!r}.", nearest(name, rubric_names()) + " Or a file.")
    try:
        values = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--rubric {name}: not TOML: {error}.") from error
    return _parse(name, path.stem, content, values)


def _parse(source: str, name: str, content: bytes, values: dict[str, Any]) -> Rubric:
    def refuse(key: str, found: object, expected: str) -> UsageError:
        return UsageError(f"--rubric {source}: {key} is {found!r:.60}, expected {expected}.")

    def check(key: str, table: object, names: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(table, dict) or set(table) != set(names):
            found = sorted(table) if isinstance(table, dict) else table
            raise refuse(key, found, f"a table of {', '.join(names)}")
        return table

    def text(key: str, found: object) -> str:
        if not isinstance(found, str) or not found.strip():
            raise refuse(key, found, "a text that is not blank")
        return found

    def whole(key: str, found: object, least: int | None = None) -> int:
        if type(found) is not int or (least is not None and found < least):
            raise refuse(key, found, "a whole number" + (f" from {least}" if least else ""))
        return found

    check("the file", values, _TABLES)
    scale = check("scale", values["scale"], ("low", "high"))
    shown = check("shown", values["shown"], _SHOWN)
    prompt = check("prompt", values["prompt"], _PROMPTS)
    dimensions = values["dimension"]
    if not isinstance(dimensions, list) or not dimensions:
        raise refuse("dimension", dimensions, "a list of tables")
    questions = {}
    for number, dimension in enumerate(dimensions):
        key = f"dimension[{number}]"
        check(key, dimension, ("name", "question"))
        named = text(f"{key}.name", dimension["name"])
        if named in questions:
            raise refuse(f"{key}.name", named, "another name than those before")
        questions[named] = text(f"{key}.question", dimension["question"])
    low = whole("scale.low", scale["low"])
    speakers = shown["highlighted_speakers"]
    if not isinstance(speakers, list) or not all(isinstance(each, str) for each in speakers):
        raise refuse("shown.highlighted_speakers", speakers, "a list of names")
    try:
        highlights = re.compile(text("shown.highlights", shown["highlights"]))
    except re.error as error:
        raise refuse("shown.highlights", shown["highlights"], "a regular expression") from error
    slots = dict.fromkeys(SLOTS, "")
    for each in _PROMPTS:
        try:
            text(f"prompt.{each}", prompt[each]).format(**slots)
        except (KeyError, IndexError, ValueError) as error:
            expected = f"a text with no slots but {', '.join(SLOTS)}; a brace is written twice"
            raise refuse(f"prompt.{each}", prompt[each], expected) from error
    return Rubric(
        name,
        text("title", values["title"]),
        hash_bytes(content),
        low,
        whole("scale.high", scale["high"], low + 1),
        questions,
        {each: text(f"prompt.{each}", prompt[each]) for each in _PROMPTS},
        whole("shown.last_turns", shown["last_turns"], 0),
        whole("shown.characters", shown["characters"], 1),
        highlights,
        tuple(speakers),
    )
