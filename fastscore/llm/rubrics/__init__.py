"""Rubrics: what a judge is asked, as TOML files."""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError, did_you_mean
from fastscore.files import hash_bytes
from fastscore.llm.requests import object_schema
from fastscore.options import TEXT_BYTES, TomlTable, parse_toml, read_option_file

_TABLES = ("title", "scale", "prompt", "shown", "dimension")
_PROMPTS = ("system", "user", "again")
SLOTS = ("low", "middle", "high", "members", "dimensions", "highlights", "conversation", "fault")
"""What prompts may have in braces."""

_SHOWN = ("last_turns", "characters", "highlights", "highlighted_speakers")


@dataclass(frozen=True)
class Rubric:
    """What a judge scores, by questions in order, and what it is shown.

    At most `last_turns` from the end (0 for all) with `characters` of each; turns of some speakers
    with highlights are shown apart, too.
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


_OF_SUITE = {"preference_shift": "pepper", "memory_finance": "finance"}
"""Rubrics of suites; that of all other logs is `ASSISTANT`."""
ASSISTANT = "assistant"


def rubric_of(named: str, suite: str) -> "Rubric":
    """Read the rubric that is named; without a name, that of a suite."""
    return load_rubric(named or _OF_SUITE.get(suite, ASSISTANT))


def rubric_names() -> tuple[str, ...]:
    """Return the names of the bundled rubrics."""
    folder = files(__package__).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder if f.name.endswith(".toml")))


def load_rubric(name: str) -> Rubric:
    """Read a rubric."""
    path = Path(name)
    if name in rubric_names():
        content = files(__package__).joinpath(f"{name}.toml").read_bytes()
    elif path.suffix == ".toml":
        try:
            content = read_option_file(path, TEXT_BYTES)
        except OSError as error:
            raise UsageError(f"rubric {name}: cannot be read: {error.strerror}.") from error
    else:
        raise UsageError(
            f"Unknown rubric {name!r}.", did_you_mean(name, rubric_names()) + " Or a file."
        )
    source = f"rubric {name}"
    found = parse_toml(content, source)
    if missing := {"scale", "prompt", "shown"} - found.keys():
        usual = files(__package__).joinpath(f"{ASSISTANT}.toml").read_bytes()
        tables = parse_toml(usual, source)
        found |= {each: tables[each] for each in missing}
        content += usual
    return _parse(TomlTable(source, "", found), path.stem, hash_bytes(content))


def _parse(top: TomlTable, name: str, digest: str) -> Rubric:
    top.check_names(_TABLES)
    scale, shown = top.table("scale", ("low", "high")), top.table("shown", _SHOWN)
    prompts = top.table("prompt", _PROMPTS)
    low = scale.whole("low")
    return Rubric(
        name=name,
        prompts={each: _prompt(prompts, each) for each in _PROMPTS},
        title=top.text("title"),
        digest=digest,
        low=low,
        high=scale.whole("high", low + 1),
        questions=_questions(top),
        last_turns=shown.whole("last_turns", 0),
        characters=shown.whole("characters", 1),
        highlights=_highlights(shown),
        speakers=shown.words("highlighted_speakers"),
    )


def _questions(top: TomlTable) -> dict[str, str]:
    questions: dict[str, str] = {}
    for dimension in top.tables("dimension", ("name", "question")):
        name = dimension.text("name")
        if name in questions:
            raise dimension.fault("name", name, "another name than those before")
        questions[name] = dimension.text("question")
    if not questions:
        raise top.fault("dimension", [], "a list of at least one table")
    return questions


def _highlights(shown: TomlTable) -> re.Pattern[str]:
    pattern = shown.text("highlights")
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise shown.fault("highlights", pattern, "a regular expression") from error


def _prompt(prompts: TomlTable, name: str) -> str:
    prompt = prompts.text(name)
    expected = f"a text with no slots but {', '.join(SLOTS)}; a brace is written twice"
    try:
        parts = [*string.Formatter().parse(prompt)]
    except ValueError as error:
        raise prompts.fault(name, prompt, expected) from error
    for _, slot, specification, conversion in parts:
        if slot is not None and (slot not in SLOTS or specification or conversion):
            raise prompts.fault(name, prompt, expected)
    return prompt
