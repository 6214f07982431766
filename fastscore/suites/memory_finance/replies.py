"""What replies say, by the words of the suite's lexicon.

Every distinct reply is searched once, for all keywords of the lexicon and for the phrases that
the labels bring with them. The rest is arithmetic on the bits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask, UInt64Array
from fastscore_kernels import keyword_groups

from fastscore.settings.options import TomlTable, lexicon_content, parse_lexicon
from fastscore.suites.columns import list_column
from fastscore.suites.grouping import counts_of, factorize, factorize_rows, group_offsets
from fastscore.suites.memory_finance.events import Frames, of_labels
from fastscore.suites.memory_finance.metrics import COMPLIANCE_LABELS, COMPLIANT, MINOR, SEVERE
from fastscore.suites.memory_finance.schema import COMPLIANCE_DTYPE

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
    """All words that the suite looks for."""

    version: str  # the file's own version
    risk_tags: tuple[RiskTag, ...]  # in table order
    explanation_elements: Mapping[str, tuple[str, ...]]  # keywords by element
    triggers: Mapping[str, tuple[str, ...]]  # keywords by constraint
    guards: tuple[str, ...]  # words that make a trigger harmless
    # how a constraint on drawdown begins, and the word for drawdown in replies
    drawdown_limit: str
    drawdown_mention: str
    # what makes a violation severe
    severe_types: frozenset[str]
    severe_severities: frozenset[str]
    profile: Mapping[str, ProfileField]  # the fields of a profile by name

    def risk_tag(self, label: str) -> str:
        """Return the name of the tag that a required label means; empty for a blank label."""
        stripped = label.strip()
        for tag in self.risk_tags:
            if stripped == tag.name or stripped in tag.aliases:
                return tag.name
        return stripped.lower()


def load_lexicon(path: str = "") -> Lexicon:
    """Read a lexicon."""
    return _parse(path, lexicon_content(path, __package__))


_TOP = ("version", "risk_tags", "explanation_elements", "contradictions", "compliance", "profile")
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


def _risk_tags(top: TomlTable) -> tuple[RiskTag, ...]:
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


def _profile_field(profile: TomlTable, name: str) -> ProfileField:
    field = profile.table(name, ("values", "mentions"))
    mentions = field.tables("mentions", ("level", "keywords"))
    return ProfileField(
        values=field.word_by_name("values"),
        mentions=tuple(
            Mention(level=mention.word("level"), keywords=mention.words("keywords"))
            for mention in mentions
        ),
    )


LARGEST_AUTOMATON = 1 << 16
"""Groups whose keywords have more bytes than this together are searched for pair by pair."""

_WORD_BITS, _IN_WORD = 6, 63


@dataclass(frozen=True, slots=True)
class GroupMatches:
    """Which texts have a keyword of which groups."""

    bits: UInt64Array  # bit g of row t: text t has a keyword of group g; uint64 (texts, words)

    def of_group(self, group: int) -> Mask:
        """Return for each text whether it has a keyword of the group."""
        place = np.uint64(group & _IN_WORD)
        found: Mask = (self.bits[:, group >> _WORD_BITS] >> place) & np.uint64(1) > 0
        return found

    def of_pairs(self, texts: Indices, groups: Indices) -> Mask:
        """Return for each pair of a text and a group whether the text has a keyword of it."""
        words = self.bits.reshape(-1)[texts * self.bits.shape[1] + (groups >> _WORD_BITS)]
        found: Mask = (words >> (groups & _IN_WORD).view(np.uint64)) & np.uint64(1) > 0
        return found


def match_groups(texts: pl.Series, groups: Sequence[Sequence[str]]) -> GroupMatches:
    """Search texts for the keywords of all groups at once."""
    return GroupMatches(keyword_groups(texts, groups))


def contains(texts: pl.Series, needles: pl.Series) -> Mask:
    """Return for each pair whether the text has the needle as a substring."""
    pairs = pl.DataFrame({"text": texts, "needle": needles})
    found = pairs.select(pl.col("text").str.contains(pl.col("needle"), literal=True))
    return found.to_series().to_numpy()


Columns = dict[str, pl.Series | Indices | Float64Array]

_COMPLIANCE = pl.Series(COMPLIANCE_LABELS, dtype=COMPLIANCE_DTYPE)
LARGEST_PERCENTAGE = 1 << 62
_NO_PERCENTAGE = -1
_PYTHON_SPACE = r"[\s\x1c-\x1f]"
_PERCENTAGE = rf"(\d+){_PYTHON_SPACE}*%"


@dataclass(frozen=True, slots=True)
class Replies:
    """The distinct replies and what was found in them."""

    texts: pl.Series  # the distinct replies
    turns: pl.DataFrame  # a row a turn: `dialogue_row`, `turn_row`, `reply` (its text's number)
    words: GroupMatches  # which replies have which keywords
    groups: Mapping[tuple[str, str], int]  # the number of each group of keywords by (section, name)

    def has(self, section: str, name: str) -> Mask:
        """Return for each distinct reply whether it has a keyword of a group."""
        return self.words.of_group(self.groups[section, name])

    def have(self, replies: pl.Series, phrases: pl.Series, *sections: str) -> Mask:
        """Return for each pair whether the reply has the phrase, or a keyword of its group.

        A phrase has a group in one of the sections at most. Without one it is searched for.
        """

        def group(phrase: str) -> int:
            found = (self.groups.get((section, phrase), -1) for section in sections)
            return max(found, default=-1)

        groups, reply = of_labels(phrases, group, -1), replies.to_numpy()
        known = groups >= 0
        if known.all():
            return self.words.of_pairs(reply, groups)
        found = np.zeros(len(reply), np.bool_)
        found[known] = self.words.of_pairs(reply[known], groups[known])
        others = np.flatnonzero(~known)
        found[others] = contains(self.texts[reply[others]], phrases[others])
        return found

    def quoting(self, lists: pl.DataFrame, phrase: str) -> pl.DataFrame:
        """Return each turn beside those phrases of its dialogue's list that its reply has."""
        beside = self.turns.join(lists, on="dialogue_row", maintain_order="left_right")
        return beside.filter(pl.Series(self.have(beside["reply"], beside[phrase], "phrase")))


def search_replies(frames: Frames, lexicon: Lexicon) -> Replies:
    """Search the distinct replies for the lexicon's keywords and the labels' own phrases."""
    codes, texts = factorize(frames["turns"]["reply"])
    sections: list[tuple[str, Mapping[str, tuple[str, ...]]]] = [
        ("risk", {tag.name: tag.keywords for tag in lexicon.risk_tags}),
        ("element", lexicon.explanation_elements),
        ("trigger", lexicon.triggers),
        ("guard", {"": lexicon.guards}),
        ("drawdown", {"": (lexicon.drawdown_mention,)}),
        *(
            (name, {str(rank): mention.keywords for rank, mention in enumerate(field.mentions)})
            for name, field in lexicon.profile.items()
        ),
        ("phrase", {phrase: (phrase,) for phrase in _own_phrases(frames, lexicon)}),
    ]
    named = [
        ((section, name), keywords)
        for section, groups in sections
        for name, keywords in groups.items()
    ]
    words = match_groups(texts, [keywords for _, keywords in named])
    turns = frames["turns"].select(
        "dialogue_row", turn_row=pl.int_range(pl.len()), reply=pl.Series(codes)
    )
    return Replies(texts, turns, words, {name: group for group, (name, _) in enumerate(named)})


def _own_phrases(frames: Frames, lexicon: Lexicon) -> list[str]:
    """Return the phrases that labels and profiles bring, as far as one automaton takes them."""
    columns = {
        "forbidden": "phrase",
        "rubric": "item",
        "constraints": "text",
        "preferences": "text",
    }
    brought = pl.concat(frames[name][column].rename("") for name, column in columns.items())
    phrases = sorted(phrase for phrase in brought.unique() if phrase)
    sizes = np.cumsum([len(phrase.encode()) for phrase in phrases])
    fitting = phrases[: int(np.searchsorted(sizes, LARGEST_AUTOMATON, side="right"))]
    return [phrase for phrase in fitting if phrase not in lexicon.explanation_elements]


def score_risk(frames: Frames, replies: Replies, lexicon: Lexicon) -> Columns:
    """Count required risk tags that replies disclose (M3)."""
    n_turns = frames["turns"].height
    names = sorted({tag.name for tag in lexicon.risk_tags})
    has = np.zeros((len(replies.texts), len(names)), np.bool_)
    for number, name in enumerate(names):
        has[:, number] = replies.has("risk", name)
    reply, tag = np.nonzero(has)
    disclosed = pl.DataFrame({"reply": reply, "tag": pl.Series(names, dtype=pl.String)[tag]})
    disclosed = disclosed.with_columns(is_disclosed=True)
    given = frames["risk_labels"]["label"].unique()
    named = [(label, lexicon.risk_tag(label)) for label in given]
    required = (
        frames["risk_labels"]
        .join(replies.turns.select("turn_row", "reply"), on="turn_row", maintain_order="left")
        .join(
            pl.DataFrame(named, {"label": pl.String, "tag": pl.String}, orient="row"),
            on="label",
            maintain_order="left",
        )
        .filter(pl.col("tag") != "")
        .join(disclosed, on=("reply", "tag"), how="left", maintain_order="left")
    )
    met_by_any = pl.col("tag").is_in([tag.name for tag in lexicon.risk_tags if tag.any_tag])
    is_any_disclosed = pl.col("reply").is_in(disclosed["reply"].unique().implode())
    is_hit = pl.col("is_disclosed").fill_null(False) | (met_by_any & is_any_disclosed)

    predicted = list_column(
        disclosed["tag"], group_offsets(disclosed["reply"].to_numpy(), len(replies.texts))
    )
    offsets = group_offsets(required["turn_row"].to_numpy(), n_turns)
    return {
        "risk_required_tags": list_column(required["tag"], offsets),
        "risk_pred_tags": predicted.gather(replies.turns["reply"]),
        "risk_tag_hits": counts_of(required.filter(is_hit)["turn_row"].to_numpy(), n_turns),
    }


def score_rubric(frames: Frames, replies: Replies) -> Columns:
    """Count required elements of explanation that replies have (M5)."""
    rubric, n_turns = frames["rubric"], frames["turns"].height
    items, turn_row = rubric["item"], rubric["turn_row"].to_numpy()
    hit = replies.have(replies.turns["reply"].gather(turn_row), items, "element", "phrase")
    required, found = group_offsets(turn_row, n_turns), group_offsets(turn_row[hit], n_turns)
    scores = judge_scores(np.diff(found), np.diff(required))
    return {
        "rubric_required": list_column(items, required),
        "rubric_hit_items": list_column(items.filter(hit), found),
        "judge_score_1_5": pl.Series(scores, nan_to_null=True),
    }


def judge_scores(hits: Indices, required: Indices) -> Float64Array:
    """Round as Python does, once for each distinct pair of counts; NaN where none is required."""
    pair, firsts = factorize_rows([hits, required])
    counts = zip(hits[firsts].tolist(), required[firsts].tolist(), strict=True)
    scores = [round(1 + 4 * hit / count, 2) if count else np.nan for hit, count in counts]
    judged: Float64Array = np.array(scores, np.float64)[pair]
    return judged


def score_compliance(frames: Frames, replies: Replies, lexicon: Lexicon) -> Columns:
    """Find forbidden phrases and the compliance label (M4)."""
    turns, forbidden = frames["turns"], replies.quoting(frames["forbidden"], "phrase")
    violations = frames["violations"]
    severe = violations.filter(
        pl.col("type").is_in(lexicon.severe_types)
        | pl.col("severity").str.to_lowercase().is_in(lexicon.severe_severities)
    )
    label = np.zeros(turns.height, np.int64)
    label[violations["turn_row"]] = MINOR
    label[severe["turn_row"]] = SEVERE
    label[forbidden["turn_row"]] = SEVERE
    known = {name: code for code, name in enumerate(COMPLIANCE_LABELS)}
    labelled = of_labels(
        turns["compliance_label"],
        lambda text: known.get(text.lower().strip(), COMPLIANT),
        COMPLIANT,
    )
    return {
        "forbidden_hits": list_column(
            forbidden["phrase"], group_offsets(forbidden["turn_row"].to_numpy(), turns.height)
        ),
        "pred_compliance_label": _COMPLIANCE[label],
        "gt_compliance_label": _COMPLIANCE[labelled],
    }


def find_contradictions(frames: Frames, replies: Replies, lexicon: Lexicon) -> Indices:
    """Return for each turn 1 if its reply contradicts a constraint of the user, else 0."""
    given = frames["constraints"]["text"].drop_nulls().unique().to_list()
    rules = pl.DataFrame(
        {
            "text": pl.Series(given, dtype=pl.String),
            "limit": [_drawdown_limit(text, lexicon) for text in given],
            "trigger": [replies.groups.get(("trigger", text), -1) for text in given],
        },
        schema_overrides={"limit": pl.Int64, "trigger": pl.Int64},
    )
    limited, worded = pl.col("limit") >= 0, pl.col("trigger") >= 0
    said = replies.turns.join(frames["constraints"], on="dialogue_row").join(
        rules.filter(limited | worded), on="text"
    )
    figures = pl.DataFrame({"largest": _largest_percentages(replies)}).with_row_index("reply")
    exceeding = (
        said.filter(limited)
        .join(figures.cast({"reply": pl.Int64}), on="reply")
        .filter(pl.col("largest") > pl.col("limit"))
    )
    unguarded = pl.Series(~replies.has("guard", "")).arg_true()
    triggering = said.filter(~limited, pl.col("reply").is_in(unguarded.implode()))
    triggered = replies.words.of_pairs(*triggering.select("reply", "trigger").to_numpy().T)
    contradicted = np.zeros(frames["turns"].height, np.int64)
    contradicted[exceeding["turn_row"]] = 1
    contradicted[triggering.filter(pl.Series(triggered))["turn_row"]] = 1
    return contradicted


def _drawdown_limit(constraint: str, lexicon: Lexicon) -> int:
    """Return the percentage that a constraint on drawdown sets, or -1."""
    if not constraint.startswith(lexicon.drawdown_limit):
        return _NO_PERCENTAGE
    found = re.match(rf"{re.escape(lexicon.drawdown_limit)}\s*(\d+)%", constraint)
    return _percentage(found[1]) if found else _NO_PERCENTAGE


def _percentage(digits: str) -> int:
    # Python reads no more than 4300 digits at once
    return min(int(digits[:4000]), LARGEST_PERCENTAGE)


def _largest_percentages(replies: Replies) -> Indices:
    """Return the largest percentage in each reply that mentions drawdown, or -1."""
    rows = np.flatnonzero(replies.has("drawdown", ""))
    found = replies.texts[rows].str.extract_all(_PERCENTAGE)
    sizes = found.list.len().to_numpy()
    codes, matches = factorize(found.explode(empty_as_null=False))
    numbers = [_percentage(match[:-1].rstrip()) for match in matches]
    largest = np.full(len(replies.texts), _NO_PERCENTAGE, np.int64)
    np.maximum.at(largest, np.repeat(rows, sizes), np.array(numbers, np.int64)[codes])
    return largest
