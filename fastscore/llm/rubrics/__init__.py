"""Rubrics: what a judge is asked, as TOML files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.content_hash import hash_bytes
from fastscore.errors import UsageError, did_you_mean
from fastscore.llm.requests import object_schema
from fastscore.options import TEXT_BYTES, parse_toml, read_option_file

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
        return object_schema(dict.fromkeys(self.questions, score))


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
            content = read_option_file(path, TEXT_BYTES)
        except OSError as error:
            raise UsageError(f"--rubric {name}: cannot be read: {error.strerror}.") from error
    else:
        raise UsageError(
            f"Unknown rubric {name!r}.", did_you_mean(name, rubric_names()) + " Or a file."
        )
    values = parse_toml(content, f"--rubric {name}")
    return _parse(_File(name), path.stem, hash_bytes(content), values)


@dataclass(frozen=True, slots=True)
class _File:
    """A rubric's file as messages name it; its checks return the value that was found."""

    source: str

    def refusal(self, key: str, found: object, expected: str) -> UsageError:
        return UsageError(f"--rubric {self.source}: {key} is {found!r:.60}, expected {expected}.")

    def table(self, key: str, found: object, names: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(found, dict) or set(found) != set(names):
            shown = sorted(found) if isinstance(found, dict) else found
            raise self.refusal(key, shown, f"a table of {', '.join(names)}")
        return found

    def text(self, key: str, found: object) -> str:
        if not isinstance(found, str) or not found.strip():
            raise self.refusal(key, found, "a text that is not blank")
        return found

    def whole(self, key: str, found: object, least: int | None = None) -> int:
        if type(found) is not int or (least is not None and found < least):
            expected = "a whole number" + (f" from {least}" if least else "")
            raise self.refusal(key, found, expected)
        return found


def _parse(file: _File, name: str, digest: str, values: dict[str, Any]) -> Rubric:
    file.table("the file", values, _TABLES)
    scale = file.table("scale", values["scale"], ("low", "high"))
    shown = file.table("shown", values["shown"], _SHOWN)
    prompts = file.table("prompt", values["prompt"], _PROMPTS)
    questions = _questions(file, values["dimension"])
    low = file.whole("scale.low", scale["low"])
    speakers = _speakers(file, shown["highlighted_speakers"])
    highlights = _highlights(file, shown["highlights"])
    return Rubric(
        name=name,
        prompts={each: _prompt(file, f"prompt.{each}", prompts[each]) for each in _PROMPTS},
        title=file.text("title", values["title"]),
        digest=digest,
        low=low,
        high=file.whole("scale.high", scale["high"], low + 1),
        questions=questions,
        last_turns=file.whole("shown.last_turns", shown["last_turns"], 0),
        characters=file.whole("shown.characters", shown["characters"], 1),
        highlights=highlights,
        speakers=speakers,
    )


def _questions(file: _File, dimensions: object) -> dict[str, str]:
    if not isinstance(dimensions, list) or not dimensions:
        raise file.refusal("dimension", dimensions, "a list of tables")
    questions: dict[str, str] = {}
    for number, dimension in enumerate(dimensions):
        key = f"dimension[{number}]"
        file.table(key, dimension, ("name", "question"))
        name = file.text(f"{key}.name", dimension["name"])
        if name in questions:
            raise file.refusal(f"{key}.name", name, "another name than those before")
        questions[name] = file.text(f"{key}.question", dimension["question"])
    return questions


def _speakers(file: _File, found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise file.refusal("shown.highlighted_speakers", found, "a list of names")
    return tuple(found)


def _highlights(file: _File, found: object) -> re.Pattern[str]:
    try:
        return re.compile(file.text("shown.highlights", found))
    except re.error as error:
        raise file.refusal("shown.highlights", found, "a regular expression") from error


def _prompt(file: _File, key: str, found: object) -> str:
    prompt = file.text(key, found)
    try:
        prompt.format(**dict.fromkeys(SLOTS, ""))
    except (KeyError, IndexError, ValueError) as error:
        expected = f"a text with no slots but {', '.join(SLOTS)}; a brace is written twice"
        raise file.refusal(key, found, expected) from error
    return prompt
