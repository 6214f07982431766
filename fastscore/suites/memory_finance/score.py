"""From traces to the tables: turns as the published rows, dialogues as their sums and ratios.

Every distinct reply is searched once, for all keywords of the lexicon and for the phrases that
the labels bring with them. The rest is arithmetic on the bits.

M1 is what each required memory key points at, and which recalled contexts contain it. M2 is the
user's profile as the assistant saw it, against the labelled one. M3 to M5 are what replies say.

Two trivial assistants are scored too. A refusal has no keyword: it breaks no constraint and
no rule, discloses no risk and explains nothing, and its label is compliant. A recital has one
keyword of every risk and every element of explanation in the lexicon, so it discloses all risks and
explains all that the lexicon has. Memory (M1) and profiles (M2) do not depend on replies and have
no baseline.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask, UInt64Array
from fastscore_kernels import keyword_groups

from fastscore.settings.options import TomlTable, lexicon_content, parse_lexicon
from fastscore.suites.base import Events
from fastscore.suites.columns import filled, find_nulls, list_column
from fastscore.suites.grouping import (
    counts_of,
    factorize,
    factorize_rows,
    group_offsets,
    place_in_group,
)
from fastscore.suites.memory_finance.events import Frames, is_ok, of_labels
from fastscore.suites.memory_finance.metrics import (
    COMPLIANCE_LABELS,
    COMPLIANT,
    JUDGE_SCORE_1_5,
    MEMORY_SOURCES,
    MINOR,
    PROFILE_METRICS,
    PROFILE_SCORE,
    RATIOS,
    RECITING,
    REFUSING,
    SEVERE,
    SUMS,
    ratios_of,
)
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.schema import (
    COMPLIANCE_DTYPE,
    DEFAULT_TRACE_VERSION,
    DIALOGUES,
    RESOLVED_KEY_DTYPE,
    RESOLVERS,
    SOURCE_HITS_DTYPE,
    TURNS,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


PROFILE_FIELDS = ("risk_level", "horizon", "liquidity")
_OF_WORDS = (*(f"{field}_acc" for field in PROFILE_FIELDS), "risk_coverage")
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


def have_keyword(bits: UInt64Array, texts: Indices, groups: Indices) -> Mask:
    """Return for each pair of a text and a group whether the text has a keyword of the group.

    ``bits`` are those of `keyword_groups`: bit g of row t is set if text t has one of group g.
    """
    words = bits.reshape(-1)[texts * bits.shape[1] + (groups >> _WORD_BITS)]
    found: Mask = (words >> (groups & _IN_WORD).view(np.uint64)) & np.uint64(1) > 0
    return found


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
    bits: UInt64Array  # which replies have a keyword of which groups
    groups: Mapping[tuple[str, str], int]  # the number of each group of keywords by (section, name)

    def has(self, section: str, name: str) -> Mask:
        """Return for each distinct reply whether it has a keyword of a group."""
        group = np.full(len(self.texts), self.groups[section, name])
        return have_keyword(self.bits, np.arange(len(self.texts)), group)

    def have(self, replies: pl.Series, phrases: pl.Series, *sections: str) -> Mask:
        """Return for each pair whether the reply has the phrase, or a keyword of its group.

        A phrase has a group in one of the sections at most. Without one it is searched for.
        """

        def group(phrase: str) -> int:
            return max(self.groups.get((section, phrase), -1) for section in sections)

        groups, reply = of_labels(phrases, group, -1), replies.to_numpy()
        known, found = groups >= 0, np.zeros(len(reply), np.bool_)
        found[known] = have_keyword(self.bits, reply[known], groups[known])
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
    bits = keyword_groups(texts, [keywords for _, keywords in named])
    turns = frames["turns"].select(
        "dialogue_row", turn_row=pl.int_range(pl.len()), reply=pl.Series(codes)
    )
    return Replies(texts, turns, bits, {name: group for group, (name, _) in enumerate(named)})


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


STATED_LISTS = {"constraints": "assets", "preferences": "topics"}
"""The list of the last snapshot that states what a labelled list has."""

PLACES = (*PROFILE_FIELDS, "constraints", "preferences", "history")
"""What a memory key can name: a field or a list of the profile, or the turns before."""
_FIELD_KEYS = {
    "profile_gt.risk_level_gt": "risk_level",
    "profile_gt.horizon_gt": "horizon",
    "profile_gt.liquidity_need_gt": "liquidity",
}
# `$` also matches before one final line end, and \d any decimal digit, as in the public code
_ITEM_KEY = re.compile(r"profile_gt\.(constraints|preferences)_gt\[(\d+)\]$")
_HISTORY_KEY = re.compile(r"history_turn_index:(\d+)$")
_MOST_DIGITS = 18


def parse_key(key: str | None) -> tuple[str | None, int]:
    """Return the place that a key names, None for no known one, and the number in it."""
    if key in _FIELD_KEYS:
        return _FIELD_KEYS[key], 0
    if item := _ITEM_KEY.match(key or ""):
        return item[1], _number(item[2])
    if turn := _HISTORY_KEY.match(key or ""):
        return "history", _number(turn[1])
    return None, 0


def _number(digits: str) -> int:
    beyond = any(int(digit) for digit in digits[:-_MOST_DIGITS])
    return 10**_MOST_DIGITS if beyond else int(digits[-_MOST_DIGITS:])


def score_memory_keys(frames: Frames) -> dict[str, pl.Series | Indices]:
    """Resolve the required keys and look for their targets in what was recalled (M1)."""
    n_turns = frames["turns"].height
    keys = resolve_keys(frames)
    resolvable = keys.filter("resolvable")
    recalled = recall_targets(frames["contexts"], resolvable, n_turns)
    is_recalled = recalled.select(pl.any_horizontal(pl.all())).to_series()
    key, source = np.nonzero(recalled.to_numpy())
    sources = list_column(pl.Series(MEMORY_SOURCES)[source], group_offsets(key, recalled.height))

    of_turn, turn = keys["turn_row"].to_numpy(), resolvable["turn_row"].to_numpy()
    required, resolved = group_offsets(of_turn, n_turns), group_offsets(turn, n_turns)
    hits = {name: counts_of(turn[recalled[name].to_numpy()], n_turns) for name in MEMORY_SOURCES}
    targets = keys.select(*RESOLVED_KEY_DTYPE.to_schema()).to_struct()
    return {
        "required_keys_raw": list_column(keys["key"], required),
        "resolved_keys": list_column(targets, required).cast(pl.List(RESOLVED_KEY_DTYPE)),
        "key_hit_flags": list_column(is_recalled.cast(pl.Int64), resolved),
        "key_hit_sources": list_column(sources, resolved),
        "m1_source_hits": pl.DataFrame(hits, schema=dict(SOURCE_HITS_DTYPE)).to_struct(),
    }


def resolve_keys(frames: Frames) -> pl.DataFrame:
    """Find the target of each required key, null where it has none. A row is a key of a turn."""
    keys = frames["memory_keys"]
    parsed = [(key, *parse_key(key)) for key in keys["key"].unique()]
    schema = pl.Schema({"key": pl.String(), "place": _PLACE, "index": pl.Int64()})
    named = pl.DataFrame(parsed, schema, orient="row")
    return (
        keys.with_columns(frames["turns"]["dialogue_row"][keys["turn_row"]])
        .join(named, on="key", how="left", nulls_equal=True, maintain_order="left")
        .join(_targets(frames), on=_AT, how="left", maintain_order="left")
        .with_columns(
            pl.col("resolver").fill_null("unresolved"),
            resolvable=pl.col("target_text").is_not_null(),
        )
    )


_PLACE, _RESOLVER = pl.Enum(PLACES), pl.Enum(RESOLVERS)
_AT = ("dialogue_row", "place", "index")


def _targets(frames: Frames) -> pl.DataFrame:
    """List what keys can point at: the text at an index of a place of a dialogue."""
    dialogues, spoken = frames["dialogues"], frames["utterances"]["text"]
    rows = pl.int_range(dialogues.height, eager=True)
    (users, answered), (everyone, said) = (
        (frames[name]["dialogue_row"], spoken[frames[name]["utterances"]])
        for name in ("user_history", "history")
    )
    # of several targets at one place the first counts
    listed = [
        *((name, "profile_field", 0, rows, dialogues[f"gt_{name}"]) for name in PROFILE_FIELDS),
        *((name, f"{name}_gt", 0, *frames[name]["dialogue_row", "text"]) for name in STATED_LISTS),
        # turns count from 1: those of the user that were answered, else all that say something
        ("history", "history_user_turn", 1, users, answered),
        ("history", "history_abs_turn", 1, everyone, said.set(said == "", None)),
    ]
    targets = (
        pl.DataFrame({"dialogue_row": dialogue_row, "target_text": texts}).with_columns(
            place=pl.lit(place, _PLACE),
            index=first + place_in_group(dialogue_row.to_numpy()),
            resolver=pl.lit(resolver, _RESOLVER),
        )
        for place, resolver, first, dialogue_row, texts in listed
    )
    return pl.concat(targets).drop_nulls("target_text").unique(_AT, keep="first")


def recall_targets(contexts: pl.DataFrame, keys: pl.DataFrame, n_turns: int) -> pl.DataFrame:
    """Return for each key with a target, a column for each source, whether that source has it."""
    recalled = {}
    for source in MEMORY_SOURCES:
        of_source = contexts.filter(source=source)
        texts, turns = of_source["text"], of_source["turn_row"].to_numpy()
        if not np.array_equal(turns, np.arange(n_turns)):  # items: any number a turn
            texts = list_column(texts, group_offsets(turns, n_turns)).list.join("\n")
        recalled[source] = contains(texts[keys["turn_row"]], keys["target_text"])
    # the empty text is recalled from nowhere
    return pl.DataFrame(recalled).select(pl.all() & (keys["target_text"] != ""))


def score_profiles(frames: Frames, replies: Replies, lexicon: Lexicon) -> dict[str, Float64Array]:
    """Score the profiles of all dialogues (M2)."""
    scores = {
        f"{name}_acc": _accuracy(compare_levels(frames, replies, name, lexicon.profile[name]))
        for name in PROFILE_FIELDS
    }
    scores |= {
        f"{name}_f1": _f1(count_texts(compare_lists(frames, replies, name), frames["dialogues"]))
        for name in STATED_LISTS
    }
    total = sum(scores.values(), np.zeros(frames["dialogues"].height))
    return {**scores, PROFILE_SCORE.id: total / len(scores)}


def compare_levels(
    frames: Frames, replies: Replies, name: str, field: ProfileField
) -> pl.DataFrame:
    """Find each dialogue's level of a field: labelled, stated in a snapshot, mentioned."""
    dialogues = frames["dialogues"]
    levels = [UNKNOWN, *sorted({*field.values.values(), *(m.level for m in field.mentions)})]
    ranks = {level: rank for rank, level in enumerate(dict.fromkeys(levels))}
    labelled, stated = (
        of_labels(dialogues[column], lambda text: ranks[field.level(text)], 0)
        for column in (f"gt_{name}", f"snapshot_{name}")
    )
    mentioned = np.zeros(dialogues.height, np.int64)
    # of several mentions the first in the lexicon counts
    for position in reversed(range(len(field.mentions))):
        has_it = pl.Series(replies.has(name, str(position))).gather(replies.turns["reply"])
        rows = replies.turns["dialogue_row"].filter(has_it)
        mentioned[rows] = ranks[field.mentions[position].level]
    named = pl.Series(list(ranks))
    found = {"labelled": labelled, "stated": stated, "mentioned": mentioned}
    return pl.DataFrame({how: named[rank] for how, rank in found.items()})


def _accuracy(levels: pl.DataFrame) -> Float64Array:
    """Return 1 where the predicted level is the labelled one, and that is known, else 0."""
    stated, labelled = pl.col("stated"), pl.col("labelled")
    predicted = pl.when(stated != UNKNOWN).then(stated).otherwise("mentioned")
    is_right = (predicted == labelled) & (labelled != UNKNOWN)
    return levels.select(is_right.cast(pl.Float64)).to_series().to_numpy()


def compare_lists(frames: Frames, replies: Replies, name: str) -> pl.DataFrame:
    """List the distinct texts of each dialogue that are labelled, or stated in a snapshot.

    Columns are ``dialogue_row``, ``text``, ``is_labelled``, ``is_stated`` and
    ``is_mentioned``: a labelled text is in a reply.
    """
    labelled, stated = (frames[of].unique(maintain_order=True) for of in (name, STATED_LISTS[name]))
    labelled = labelled.with_columns(is_labelled=True, is_mentioned=_mentioned(replies, labelled))
    return labelled.join(
        stated.with_columns(is_stated=True),
        on=_TEXT,
        how="full",
        coalesce=True,
        maintain_order="left_right",
    ).with_columns(pl.exclude(_TEXT).fill_null(False))


_TEXT = ("dialogue_row", "text")


def count_texts(texts: pl.DataFrame, dialogues: pl.DataFrame) -> pl.DataFrame:
    """Count shared, predicted and labelled texts, a row a dialogue.

    Predicted is what the snapshot states, and every labelled text that the replies mention.
    """
    predicted = pl.col("is_stated") | pl.col("is_mentioned")
    counts = texts.group_by("dialogue_row").agg(
        shared=(predicted & pl.col("is_labelled")).sum(),
        predicted=predicted.sum(),
        labelled=pl.col("is_labelled").sum(),
    )
    rows = dialogues.select(dialogue_row=pl.int_range(pl.len()))
    return rows.join(counts, on="dialogue_row", how="left", maintain_order="left").fill_null(0)


def _f1(counts: pl.DataFrame) -> Float64Array:
    """Return F1 of predicted and labelled texts; 1 where both are empty."""
    shared, predicted, labelled = pl.col("shared"), pl.col("predicted"), pl.col("labelled")
    precision, recall = shared / predicted, shared / labelled
    f1 = (
        pl.when((predicted == 0) & (labelled == 0))
        .then(1.0)
        .when(shared == 0)
        .then(0.0)
        .otherwise(2 * precision * recall / (precision + recall))
    )
    return counts.select(f1).to_series().to_numpy()


def _mentioned(replies: Replies, labelled: pl.DataFrame) -> pl.Series:
    """Tell which texts their dialogue's replies, joined by line ends, have."""
    entries = labelled.with_row_index("entry")
    quoted = replies.quoting(entries, "text")["entry"]
    # a text of several lines can begin in one reply and end in the next
    across = entries.filter(pl.col("text").str.contains("\n", literal=True))
    if across.height:
        said = replies.turns.join(across, on="dialogue_row", how="semi", maintain_order="left")
        joined = said.group_by("dialogue_row", maintain_order=True).agg(
            reply=pl.lit(replies.texts).gather(pl.col("reply")).str.join("\n")
        )
        pairs = across.join(joined, on="dialogue_row", how="left", maintain_order="left")
        found = contains(pairs["reply"].fill_null(""), pairs["text"])
        quoted = pl.concat([quoted, across["entry"].filter(pl.Series(found))])
    # the empty text is in any replies, also in those of a dialogue without turns
    return entries.select(
        pl.col("entry").is_in(quoted.implode()) | (pl.col("text") == "")
    ).to_series()


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
    triggered = have_keyword(replies.bits, *triggering.select("reply", "trigger").to_numpy().T)
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
    sizes = found.list.len().cast(pl.Int64).to_numpy()
    codes, matches = factorize(found.explode(empty_as_null=False))
    numbers = [_percentage(match[:-1].rstrip()) for match in matches]
    largest = np.full(len(replies.texts), _NO_PERCENTAGE, np.int64)
    np.maximum.at(largest, np.repeat(rows, sizes), np.array(numbers, np.int64)[codes])
    return largest


def score_events(
    events: Events, vectors: "VectorView", options: MemoryFinance
) -> dict[str, pl.DataFrame]:
    """Score the dialogues of `read_events`."""
    frames = events.frames
    lexicon = load_lexicon(options.lexicon)
    replies = search_replies(frames, lexicon)
    dialogues, turns = frames["dialogues"], frames["turns"]
    places = {
        "file": dialogues["file"],
        "line": dialogues["line"],
        "dialogue": dialogues["dialogue"],
        "dialog_id": dialogues["dialog_id"],
        "run_id": filled(dialogues["run_id"], ""),
        "trace_version": filled(dialogues["trace_version"], DEFAULT_TRACE_VERSION),
    }
    dialogue_row = turns["dialogue_row"]
    ok = is_ok(frames)
    # a turn that failed has no reply to miss
    unanswered = ok & ~turns["has_reply"].to_numpy() & (not options.nulls_are_empty)
    ok &= ~unanswered
    columns: dict[str, Any] = {
        **{name: of[dialogue_row] for name, of in places.items()},
        "turn_pair_id": turns["turn_pair_id"],
        **score_memory_keys(frames),
        **score_risk(frames, replies, lexicon),
        **score_compliance(frames, replies, lexicon),
        **score_rubric(frames, replies),
        "constraint_contradiction": find_contradictions(frames, replies, lexicon),
        "is_unanswered": unanswered,
        "eligible_m4": ok,
    }
    required = {"m1": "key_hit_flags", "m3": "risk_required_tags", "m5": "rubric_required"}
    scored = pl.DataFrame(columns).with_columns(
        (pl.col("eligible_m4") & (pl.col(listed).list.len() > 0)).alias(f"eligible_{metric}")
        for metric, listed in required.items()
    )
    scored = find_nulls(scored, [JUDGE_SCORE_1_5]).put_into(scored.with_columns(eligible_m2=False))
    profiles = score_profiles(frames, replies, lexicon)
    counts = dialogues.select(dialogue_row=pl.int_range(pl.len())).join(
        scored.with_columns(dialogue_row).group_by("dialogue_row").agg(SUMS),
        on="dialogue_row",
        how="left",
        maintain_order="left",
    )
    return {
        "turns": scored.select(*TURNS.schema),
        "dialogues": _score_dialogues(dialogues, places, counts.fill_null(0), profiles),
    }


def _score_dialogues(
    dialogues: pl.DataFrame,
    places: Mapping[str, pl.Series],
    counts: pl.DataFrame,
    profiles: Mapping[str, Float64Array],
) -> pl.DataFrame:
    rows = dialogues.with_columns(
        *(column.alias(name) for name, column in places.items()),
        *counts.drop("dialogue_row"),
        *(pl.Series(name, scores) for name, scores in profiles.items()),
        eligible_m2=pl.col("valid") & pl.col("has_profile"),
        **ratios_of(counts),
    )
    rows = find_nulls(rows, [*RATIOS, *PROFILE_METRICS]).put_into(rows)
    return rows.select(*DIALOGUES.schema)


def notes_on_run(dialogues: pl.LazyFrame, options: MemoryFinance) -> list[str]:
    """Count valid dialogues without an id, and name metrics of words that are 0 everywhere."""
    has_no_id = pl.col("dialog_id").fill_null("") == ""
    facts = dialogues.select(
        (pl.col("valid") & has_no_id).sum().alias("n"), *(pl.max(name) for name in _OF_WORDS)
    )
    n, *largest = facts.collect().row(0)
    notes = []
    if n > 1:  # M1 and M3 to M5 take them for one
        notes.append(
            f"{n:,} dialogues have no dialog_id and count as one in M1 and M3 to M5: number them, "
            "or name their column as dialog_id"
        )
    zeros = [name for name, value in zip(_OF_WORDS, largest, strict=True) if value == 0]
    if len(zeros) > 1 and not any(largest):
        notes.append(
            f"{', '.join(zeros)}: 0 in all dialogues. They count words of the lexicon, so check "
            "that labels and replies use these (lexicon replaces them)"
        )
    return notes


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: MemoryFinance
) -> pl.DataFrame:
    """Score both assistants on the log of these tables."""
    lexicon = load_lexicon(options.lexicon)
    disclosed = [tag.name for tag in lexicon.risk_tags if tag.keywords or tag.any_tag]
    elements = list(lexicon.explanation_elements)
    labelled = tables["turns"].select(
        "dialogue",
        *(f"eligible_m{number}" for number in (1, 3, 4, 5)),
        is_compliant=pl.col("gt_compliance_label").cast(pl.String) == "compliant",
        n_risks=pl.col("risk_required_tags").list.len(),
        n_disclosed=_count(pl.col("risk_required_tags"), disclosed),
        n_elements=pl.col("rubric_required").list.len(),
        n_explained=_count(pl.col("rubric_required"), elements),
    )
    turns = labelled.collect()
    counts = (turns[name].fill_null(0).cast(pl.Int64) for name in ("n_explained", "n_elements"))
    judged = judge_scores(*(column.to_numpy() for column in counts))
    turns = turns.with_columns(pl.Series("judged", judged, nan_to_null=True))
    refusing = turns.group_by("dialogue").agg(
        pl.lit(REFUSING).alias("agent"),
        contradiction_rate=_never("eligible_m1"),
        risk_coverage=_never("eligible_m3"),
        strict_risk_coverage_rate=_never("eligible_m3"),
        compliance_label_acc=pl.col("is_compliant").filter("eligible_m4").mean(),
        severe_violation_rate=_never("eligible_m4"),
        rubric_hit_rate=_never("eligible_m5"),
        judge_score_mean=1.0 + _never("eligible_m5"),
    )
    is_covered = pl.col("n_disclosed") == pl.col("n_risks")
    reciting = turns.group_by("dialogue").agg(
        pl.lit(RECITING).alias("agent"),
        risk_coverage=_ratio("n_disclosed", "n_risks", "eligible_m3"),
        strict_risk_coverage_rate=is_covered.filter("eligible_m3").mean(),
        rubric_hit_rate=_ratio("n_explained", "n_elements", "eligible_m5"),
        judge_score_mean=pl.col("judged").filter("eligible_m5").mean(),
    )
    first = ["agent", "dialogue"]
    found = pl.concat([refusing, reciting], how="diagonal").select(*first, pl.exclude(first))
    return found.sort(first)


def _count(labels: pl.Expr, known: list[str]) -> pl.Expr:
    """Count the labels of each row that are known, repeats counted each."""
    return labels.list.eval(pl.element().is_in(known)).list.sum()


def _never(eligible: str) -> pl.Expr:
    """Return 0 if a turn counts, else null."""
    return pl.when(pl.col(eligible).any()).then(0.0)


def _ratio(numerator: str, denominator: str, eligible: str) -> pl.Expr:
    hits, required = (pl.col(name).filter(eligible).sum() for name in (numerator, denominator))
    return pl.when(required > 0).then(hits / required)
