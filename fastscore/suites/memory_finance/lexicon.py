"""The suite's words: one TOML file, replaceable as a whole."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError, nearest

PROFILE_FIELDS = ("risk_level", "horizon", "liquidity")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RiskTag:
    """A risk that replies disclose: its names in the labels, and its keywords in replies."""

    name: str
    aliases: tuple[str, ...]
    keywords: tuple[str, ...]
    any_tag: bool


@dataclass(frozen=True, slots=True)
class Mention:
    """A level of a profile field, and the keywords by which replies give it away."""

    level: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProfileField:
    """How one field of a profile is read."""

    values: Mapping[str, str]
    mentions: tuple[Mention, ...]

    def level(self, value: str | None) -> str:
        """Return the level that a stated value stands for, or ``unknown``."""
        return UNKNOWN if value is None else self.values.get(value.strip(), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All words that the suite looks for.

    Parameters
    ----------
    version
        The file's own version.
    risk_tags
        In table order.
    explanation_elements
        Keywords by element.
    triggers
        Keywords by constraint.
    guards
        Words that make a trigger harmless.
    drawdown_limit, drawdown_mention
        How a constraint on drawdown begins, and the word for drawdown in replies.
    severe_types, severe_severities
        What makes a violation severe.
    profile
        The fields of a profile by name.
    """

    version: str
    risk_tags: tuple[RiskTag, ...]
    explanation_elements: Mapping[str, tuple[str, ...]]
    triggers: Mapping[str, tuple[str, ...]]
    guards: tuple[str, ...]
    drawdown_limit: str
    drawdown_mention: str
    severe_types: frozenset[str]
    severe_severities: frozenset[str]
    profile: Mapping[str, ProfileField]

    def risk_tag(self, label: str) -> str:
        """Return the name of the tag that a required label means; empty for a blank label."""
        stripped = label.strip()
        for tag in self.risk_tags:
            if stripped == tag.name or stripped in tag.aliases:
                return tag.name
        return stripped.lower()


def load_lexicon(path: str = "") -> Lexicon:
    """Read a lexicon.

    Parameters
    ----------
    path
        A TOML file in the layout of the built-in one; empty for the built-in one.

    Raises
    ------
    UsageError
        The file cannot be read, is not TOML, or lacks a word list.
    """
    return _parse(path, _read(path))


def _read(path: str) -> bytes:
    if not path:
        return _built_in()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"--lexicon {path}: cannot be read: {error.strerror}.") from error


@cache
def _built_in() -> bytes:
    return files(__package__).joinpath("lexicon.toml").read_bytes()


@cache
def _parse(path: str, content: bytes) -> Lexicon:
    source = path or "the built-in lexicon"
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{source}: not TOML: {error}.") from error
    reader = _Reader(source)
    top = reader.table(table, "", (*_TOP, "version"))
    contradictions = reader.table(top["contradictions"], "contradictions", _CONTRADICTIONS)
    compliance = reader.table(top["compliance"], "compliance", _COMPLIANCE)
    profile = reader.table(top["profile"], "profile", PROFILE_FIELDS)
    return Lexicon(
        version=reader.text(top["version"], "version"),
        risk_tags=reader.risk_tags(top["risk_tags"]),
        explanation_elements=reader.lists(top["explanation_elements"], "explanation_elements"),
        triggers=reader.lists(contradictions["triggers"], "contradictions.triggers"),
        guards=reader.words(contradictions["guards"], "contradictions.guards"),
        drawdown_limit=reader.word(contradictions["drawdown_limit"], "drawdown_limit"),
        drawdown_mention=reader.word(contradictions["drawdown_mention"], "drawdown_mention"),
        severe_types=frozenset(reader.words(compliance["severe_types"], "severe_types")),
        severe_severities=frozenset(
            reader.words(compliance["severe_severities"], "severe_severities")
        ),
        profile={name: reader.profile_field(profile[name], name) for name in PROFILE_FIELDS},
    )


_TOP = ("risk_tags", "explanation_elements", "contradictions", "compliance", "profile")
_CONTRADICTIONS = ("guards", "drawdown_limit", "drawdown_mention", "triggers")
_COMPLIANCE = ("severe_types", "severe_severities")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads checked values; every message names the file and the key."""

    source: str

    def fail(self, key: str, found: object, expected: str) -> UsageError:
        return UsageError(
            f"{self.source}: {key or 'the file'} is {found!r:.80}, expected {expected}.",
            "The built-in lexicon.toml shows the layout.",
        )

    def table(self, value: object, key: str, names: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(key, value, "a table")
        prefix = f"{key}." if key else ""
        for name in value:
            if name not in names:
                raise UsageError(
                    f"{self.source}: unknown key {prefix}{name}.", nearest(name, names)
                )
        for name in names:
            if name not in value:
                raise UsageError(f"{self.source}: {prefix}{name} is missing.")
        return value

    def text(self, value: object, key: str) -> str:
        if not isinstance(value, str):
            raise self.fail(key, value, "a string")
        return value

    def word(self, value: object, key: str) -> str:
        # a line end could match across two replies, which are searched one by one
        if not self.text(value, key) or "\n" in str(value):
            raise self.fail(key, value, "a word of at least one character on one line")
        return str(value)

    def words(self, value: object, key: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.fail(key, value, "a list of words")
        return tuple(self.word(word, key) for word in value)

    def lists(self, value: object, key: str) -> dict[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            raise self.fail(key, value, "a table of word lists")
        return {name: self.words(words, f"{key}.{name}") for name, words in value.items()}

    def risk_tags(self, value: object) -> tuple[RiskTag, ...]:
        if not isinstance(value, list):
            raise self.fail("risk_tags", value, "a list of tables")
        tags: list[RiskTag] = []
        for position, entry in enumerate(value):
            key = f"risk_tags[{position}]"
            names = ("name", "aliases", "keywords")
            optional = {"any_tag": False}
            fields = self.table(
                optional | entry if isinstance(entry, dict) else entry, key, (*names, "any_tag")
            )
            if not isinstance(fields["any_tag"], bool):
                raise self.fail(f"{key}.any_tag", fields["any_tag"], "true or false")
            if fields["name"] in [tag.name for tag in tags]:
                raise self.fail(f"{key}.name", fields["name"], "a name of its own")
            tags.append(
                RiskTag(
                    self.word(fields["name"], f"{key}.name"),
                    self.words(fields["aliases"], f"{key}.aliases"),
                    self.words(fields["keywords"], f"{key}.keywords"),
                    fields["any_tag"],
                )
            )
        return tuple(tags)

    def profile_field(self, value: object, name: str) -> ProfileField:
        key = f"profile.{name}"
        fields = self.table(value, key, ("values", "mentions"))
        if not isinstance(fields["values"], dict) or not isinstance(fields["mentions"], list):
            raise self.fail(key, value, "a table of values and a list of mentions")
        values = {
            stated: self.word(level, f"{key}.values.{stated}")
            for stated, level in fields["values"].items()
        }
        mentions = [
            self.table(entry, f"{key}.mentions", ("level", "keywords"))
            for entry in fields["mentions"]
        ]
        return ProfileField(
            values,
            tuple(
                Mention(
                    self.word(entry["level"], f"{key}.mentions.level"),
                    self.words(entry["keywords"], f"{key}.mentions.keywords"),
                )
                for entry in mentions
            ),
        )
