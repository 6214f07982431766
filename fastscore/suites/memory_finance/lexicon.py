"""The suite's words: one TOML file, replaceable as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from fastscore.suites.lexicon_tables import LexiconTable, lexicon_content, parse_lexicon

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
        """Return the level that a stated value means, or ``unknown``."""
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
    return _parse(path, lexicon_content(path, __package__))


_TOP = (
    "version",
    "risk_tags",
    "explanation_elements",
    "contradictions",
    "compliance",
    "profile",
)
_CONTRADICTIONS = ("guards", "drawdown_limit", "drawdown_mention", "triggers")


@cache
def _parse(path: str, content: bytes) -> Lexicon:
    top = parse_lexicon(path, content, _TOP)
    contradictions = top.table("contradictions", _CONTRADICTIONS)
    compliance = top.table("compliance", ("severe_types", "severe_severities"))
    profile = top.table("profile", PROFILE_FIELDS)
    return Lexicon(
        version=top.word("version"),
        risk_tags=_risk_tags(top),
        explanation_elements=top.words_by_name("explanation_elements"),
        triggers=contradictions.words_by_name("triggers"),
        guards=contradictions.words("guards"),
        drawdown_limit=contradictions.word("drawdown_limit"),
        drawdown_mention=contradictions.word("drawdown_mention"),
        severe_types=frozenset(compliance.words("severe_types")),
        severe_severities=frozenset(compliance.words("severe_severities")),
        profile={name: _profile_field(profile, name) for name in PROFILE_FIELDS},
    )


def _risk_tags(top: LexiconTable) -> tuple[RiskTag, ...]:
    tables = top.tables("risk_tags", ("name", "aliases", "keywords"), optional=("any_tag",))
    names: set[str] = set()
    for table in tables:
        if (name := table.word("name")) in names:
            raise table.fault("name", name, "a name of its own")
        names.add(name)
    return tuple(
        RiskTag(
            name=table.word("name"),
            aliases=table.words("aliases"),
            keywords=table.words("keywords"),
            any_tag=table.flag("any_tag"),
        )
        for table in tables
    )


def _profile_field(profile: LexiconTable, name: str) -> ProfileField:
    field = profile.table(name, ("values", "mentions"))
    mentions = field.tables("mentions", ("level", "keywords"))
    return ProfileField(
        values=field.word_by_name("values"),
        mentions=tuple(
            Mention(level=mention.word("level"), keywords=mention.words("keywords"))
            for mention in mentions
        ),
    )
