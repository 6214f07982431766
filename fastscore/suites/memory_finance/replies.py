"""M3, M4, M5 and contradictions: what the reply says, against what its labels require.

Every distinct reply is searched once, for all keywords of the lexicon and for the phrases that
the labels bring with them; the rest is arithmetic on the bits.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from fastscore.suites.columns import list_column
from fastscore.suites.distinct import distinct
from fastscore.suites.json_values import Indices, Mask
from fastscore.suites.memory_finance.lexicon import Lexicon
from fastscore.suites.memory_finance.matching import (
    LARGEST_AUTOMATON,
    GroupMatches,
    contains,
    match_groups,
)
from fastscore.suites.memory_finance.schema import COMPLIANCE_DTYPE, COMPLIANCE_LABELS

Frames = Mapping[str, pl.DataFrame]

COMPLIANT, MINOR, SEVERE = range(len(COMPLIANCE_LABELS))
LARGEST_PERCENTAGE = 1 << 62
_NO_PERCENTAGE = -1
_PYTHON_SPACE = r"[\s\x1c-\x1f]"
_PERCENTAGE = rf"(\d+){_PYTHON_SPACE}*%"


@dataclass(frozen=True, slots=True)
class Replies:
    """The distinct replies and what was found in them.

    Parameters
    ----------
    texts
        The distinct replies.
    of_turn
        The reply of each turn, int64 (turns,).
    words
        Which replies have which keywords.
    groups
        The number of each group of keywords by (section, name).
    """

    texts: pl.Series
    of_turn: Indices
    words: GroupMatches
    groups: Mapping[tuple[str, str], int]

    def has(self, section: str, name: str) -> Mask:
        """Return for each distinct reply whether it has a keyword of a group."""
        return self.words.of_group(self.groups[section, name])

    def have_phrases(self, replies: Indices, codes: Indices, phrases: pl.Series) -> Mask:
        """Return for each pair of a reply and a phrase whether the reply has the phrase."""
        groups = np.array(
            [self.groups.get(("phrase", phrase), -1) for phrase in phrases], np.int64
        )[codes]
        known = groups >= 0
        found = np.zeros(len(replies), np.bool_)
        found[known] = self.words.of_pairs(replies[known], groups[known])
        others = np.flatnonzero(~known)
        found[others] = contains(self.texts.gather(replies[others]), phrases.gather(codes[others]))
        return found


def search_replies(frames: Frames, lexicon: Lexicon) -> Replies:
    """Search the distinct replies for the lexicon's keywords and the labels' own phrases."""
    of_turn, texts = distinct(frames["turns"]["reply"])
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
    return Replies(texts, of_turn, words, {name: group for group, (name, _) in enumerate(named)})


def _own_phrases(frames: Frames, lexicon: Lexicon) -> list[str]:
    """Return the phrases that labels and profiles bring, as far as one automaton takes them."""
    columns = [
        frames["forbidden"]["phrase"],
        frames["rubric"]["item"],
        frames["constraints"]["text"],
        frames["preferences"]["text"],
    ]
    phrases = pl.concat([column.alias("phrase") for column in columns]).unique().sort()
    phrases = phrases.filter(phrases != "")
    fitting = phrases.filter(phrases.str.len_bytes().cum_sum() <= LARGEST_AUTOMATON)
    return [phrase for phrase in fitting if phrase not in lexicon.explanation_elements]


def score_risk(frames: Frames, replies: Replies, lexicon: Lexicon) -> pl.DataFrame:
    """Count required risk tags that replies disclose (M3).

    Returns
    -------
    pl.DataFrame
        A row a turn: ``risk_required_tags``, ``risk_pred_tags``, ``risk_tag_hits``, ``n_risks``.
    """
    labels, n_turns = frames["risk_labels"], frames["turns"].height
    names = sorted({tag.name for tag in lexicon.risk_tags})
    disclosed = np.zeros((len(replies.texts), len(names)), np.bool_)
    for column, name in enumerate(names):
        disclosed[:, column] = replies.has("risk", name)
    any_disclosed = disclosed.sum(axis=1) > 0
    satisfied_by_any = {tag.name for tag in lexicon.risk_tags if tag.any_tag}

    codes, texts = distinct(labels["label"])
    tags = [lexicon.risk_tag(label) for label in texts]
    column_of_tag = np.array(
        [names.index(tag) if tag in names else len(names) for tag in tags], np.int64
    )[codes]
    by_any = np.array([tag in satisfied_by_any for tag in tags], np.bool_)[codes]
    kept = np.flatnonzero(np.array([tag != "" for tag in tags], np.bool_)[codes])
    turn_row = labels["turn_row"].to_numpy()[kept]
    reply = replies.of_turn[turn_row]
    padded = np.concatenate([disclosed, np.zeros((len(disclosed), 1), np.bool_)], axis=1)
    hit = padded[reply, column_of_tag[kept]] | (by_any[kept] & any_disclosed[reply])

    text_row, name_column = np.nonzero(disclosed)
    predicted = list_column(
        pl.Series(names, dtype=pl.String).gather(name_column), _offsets(text_row, len(disclosed))
    )
    required = pl.Series(tags, dtype=pl.String).gather(codes[kept])
    return pl.DataFrame(
        {
            "risk_required_tags": list_column(required, _offsets(turn_row, n_turns)),
            "risk_pred_tags": predicted.gather(replies.of_turn),
            "risk_tag_hits": _count(turn_row[hit], n_turns),
            "n_risks": _count(turn_row, n_turns),
        }
    )


def score_rubric(frames: Frames, replies: Replies, lexicon: Lexicon) -> pl.DataFrame:
    """Count required elements of explanation that replies have (M5).

    Returns
    -------
    pl.DataFrame
        A row a turn: ``rubric_required``, ``rubric_hit_items``, ``judge_score_1_5`` and the
        counts ``n_elements`` and ``n_element_hits``.
    """
    rubric, n_turns = frames["rubric"], frames["turns"].height
    turn_row = rubric["turn_row"].to_numpy()
    reply = replies.of_turn[turn_row]
    codes, items = distinct(rubric["item"])
    listed = np.array([replies.groups.get(("element", item), -1) for item in items], np.int64)[
        codes
    ]
    hit = np.zeros(len(codes), np.bool_)
    in_table = listed >= 0
    hit[in_table] = replies.words.of_pairs(reply[in_table], listed[in_table])
    own = np.flatnonzero(~in_table)
    hit[own] = replies.have_phrases(reply[own], codes[own], items)

    required, hits = _count(turn_row, n_turns), _count(turn_row[hit], n_turns)
    return pl.DataFrame(
        {
            "rubric_required": list_column(rubric["item"], _offsets(turn_row, n_turns)),
            "rubric_hit_items": list_column(
                rubric["item"].filter(hit), _offsets(turn_row[hit], n_turns)
            ),
            "judge_score_1_5": _judge_scores(hits, required),
            "n_elements": required,
            "n_element_hits": hits,
        }
    )


def _judge_scores(hits: Indices, required: Indices) -> pl.Series:
    """Round as Python does, once for each distinct pair of counts; null where none is required."""
    width = int(required.max(initial=0)) + 1
    pairs, inverse = np.unique(hits * width + required, return_inverse=True)
    scores = [
        round(1 + 4 * hit / count, 2) if count else None
        for hit, count in (divmod(pair, width) for pair in pairs.tolist())
    ]
    return pl.Series(scores, dtype=pl.Float64).gather(inverse)


def score_compliance(frames: Frames, replies: Replies, lexicon: Lexicon) -> pl.DataFrame:
    """Find forbidden phrases and the compliance label (M4).

    Returns
    -------
    pl.DataFrame
        A row a turn: ``forbidden_hits``, ``pred_compliance_label``, ``gt_compliance_label`` and
        ``n_forbidden``.
    """
    turns, forbidden = frames["turns"], frames["forbidden"]
    turn_row, entry = expand(turns["dialogue_row"], forbidden["dialogue_row"])
    codes, phrases = distinct(forbidden["phrase"])
    hit = replies.have_phrases(replies.of_turn[turn_row], codes[entry], phrases)
    n_hits = _count(turn_row[hit], turns.height)

    violations = frames["violations"]
    severe = violations.select(
        pl.col("type").is_in(list(lexicon.severe_types))
        | pl.col("severity").str.to_lowercase().is_in(list(lexicon.severe_severities))
    ).to_series()
    violated = violations["turn_row"].to_numpy()
    label = np.zeros(turns.height, np.int64)
    label[violated] = MINOR
    label[violated[severe.fill_null(False).to_numpy()]] = SEVERE
    label[n_hits > 0] = SEVERE
    return pl.DataFrame(
        {
            "forbidden_hits": list_column(
                forbidden["phrase"].gather(entry[hit]), _offsets(turn_row[hit], turns.height)
            ),
            "pred_compliance_label": _compliance_labels(label),
            "gt_compliance_label": _labelled_compliance(turns["compliance_label"]),
            "n_forbidden": n_hits,
        }
    )


def _compliance_labels(codes: Indices) -> pl.Series:
    return pl.Series(COMPLIANCE_LABELS, dtype=COMPLIANCE_DTYPE).gather(codes)


def _labelled_compliance(labels: pl.Series) -> pl.Series:
    codes, texts = distinct(labels)
    known = {name: code for code, name in enumerate(COMPLIANCE_LABELS)}
    numbers = [known.get(text.lower().strip(), COMPLIANT) for text in texts]
    return _compliance_labels(np.array(numbers, np.int64)[codes])


def find_contradictions(frames: Frames, replies: Replies, lexicon: Lexicon) -> Indices:
    """Return for each turn 1 if its reply contradicts a constraint of the user, else 0."""
    constraints = frames["constraints"]
    codes, texts = distinct(constraints["text"])
    limits = np.array([_drawdown_limit(text, lexicon) for text in texts], np.int64)[codes]
    triggers = np.array([replies.groups.get(("trigger", text), -1) for text in texts], np.int64)[
        codes
    ]
    ruled = np.flatnonzero((limits >= 0) | (triggers >= 0))
    turn_row, entry = expand(
        frames["turns"]["dialogue_row"], constraints["dialogue_row"].gather(ruled)
    )
    limit, trigger = limits[ruled][entry], triggers[ruled][entry]
    reply = replies.of_turn[turn_row]
    unguarded = ~replies.has("guard", "")
    fires = np.zeros(len(reply), np.bool_)
    limited = limit >= 0
    if limited.any():
        fires[limited] = _largest_percentages(replies)[reply[limited]] > limit[limited]
    worded = ~limited
    fires[worded] = (
        replies.words.of_pairs(reply[worded], trigger[worded]) & unguarded[reply[worded]]
    )
    contradicted = np.zeros(frames["turns"].height, np.int64)
    contradicted[turn_row[fires]] = 1
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
    found = (
        pl.DataFrame({"row": rows, "text": replies.texts.gather(rows)})
        .filter(pl.col("text").str.contains("%", literal=True))
        .select("row", pl.col("text").str.extract_all(_PERCENTAGE).alias("match"))
        .explode("match")
        .drop_nulls("match")
    )
    codes, matches = distinct(found["match"])
    numbers = [_percentage(match[:-1].rstrip()) for match in matches]
    largest = np.full(len(replies.texts), _NO_PERCENTAGE, np.int64)
    np.maximum.at(largest, found["row"].to_numpy(), np.array(numbers, np.int64)[codes])
    return largest


def expand(row_of_turn: pl.Series, row_of_entry: pl.Series) -> tuple[Indices, Indices]:
    """Pair every turn with each entry of its dialogue's list.

    Parameters
    ----------
    row_of_turn, row_of_entry
        The dialogue of each turn and of each entry, both ascending.

    Returns
    -------
    tuple of arrays
        Turn and entry of each pair, in order of turns and then of entries.
    """
    entries = row_of_entry.to_numpy()
    first = np.searchsorted(entries, row_of_turn.to_numpy())
    counts = np.searchsorted(entries, row_of_turn.to_numpy(), side="right") - first
    turn_row = np.repeat(np.arange(len(row_of_turn)), counts)
    before = np.cumsum(counts) - counts
    return turn_row, np.arange(len(turn_row)) - np.repeat(before - first, counts)


def _offsets(rows: Indices, size: int) -> Indices:
    return np.searchsorted(rows, np.arange(size + 1))


def _count(rows: Indices, size: int) -> Indices:
    return np.bincount(rows, minlength=size).astype(np.int64)
