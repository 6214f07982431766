"""Why the numbers of group_travel are what they are."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from fastscore.suites.declarations import Metric
from fastscore.suites.group_travel.lexicon import Lexicon, load_lexicon
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.show import CHANNELS
from fastscore.suites.group_travel.wording import quotes_theory
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, ratio

_OF_PAIRS: dict[str, tuple[str, ...]] = {
    "M8": ("addressed",),
    "M8a": ("addressed_synthesis", "synthesis_phrase", "synthesis_hits", "synthesis_similarity"),
    "M8b": ("addressed_plan", "plan_phrase", "plan_hits", "plan_similarity"),
    "M10": ("satisfied", *(f"{channel}_channel" for channel in CHANNELS), "place_similarity"),
    "M10b": ("category_channel", "category_tokens"),
    "M11": ("satisfied",),
    "M12": ("slot_similarity",),
    "M14": ("resolution_similarity",),
}
_OF_PLACES = {"M9": ("grounded",), "M15": ("grounded", "explicit", "similarity", "serendipitous")}
_SWITCHES = {"M4": "social theory is used", "M5": "feedback is enabled"}
"""What makes these metrics 0, whatever is said, where it is switched off."""
_KINDS = {
    "M1": ("provide",),
    "M4b": ("synthes", "feedback", "present"),
    "M6": ("accept",),
    "M7_feedback_turn_overhead": ("feedback",),
}


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: GroupTravel) -> Derivation:
    """Explain a metric's value in a row of its table."""
    if metric.id in ("W1", "W2", "W3", "M13"):
        return _of_members(metric.id, row)
    if metric.id in _OF_PAIRS:
        evidence = _pairs(dialogue, metric.id)
    elif metric.id in _OF_PLACES:
        evidence = _places(dialogue, _OF_PLACES[metric.id])
    elif metric.id in ("M2", "M3", "M4", "M5"):
        evidence = _syntheses(dialogue)
    elif metric.id == "M16":
        evidence = _lines(dialogue)
    else:
        theory = load_lexicon(options.lexicon) if metric.id == "M4b" else None
        evidence = _turns(dialogue, _KINDS.get(metric.id, ()), theory)
    if metric.numerator is None or metric.denominator is None:
        counted = len(evidence)
        none = (Evidence(what=metric.name.lower(), found=0),)
        return Derivation(text=f"{counted} turns", result=counted, evidence=evidence or none)
    off = _SWITCHES.get(metric.id, "")
    numerator, denominator = row[metric.numerator], row[metric.denominator]
    if metric.id in _OF_PAIRS and metric.id != "M11":
        marked = _chosen(dialogue, metric.id)[_OF_PAIRS[metric.id][0]].drop_nulls().to_list()
        numerator, denominator = sum(marked), len(marked)
    return ratio(
        numerator,
        denominator,
        evidence or (Evidence(what=off, found="no"),),
        because=f"{off}: no",
    )


def _of_members(metric: str, row: Row) -> Derivation:
    field = "semantic_mean" if metric == "M13" else "satisfaction"
    members = [member for member in row["members"] or () if member[field] is not None]
    values = [float(member[field]) for member in members]
    evidence = tuple(
        Evidence(
            what=member["member"],
            found=member[field],
            text=f"{member['satisfied']} of {member['pairs']} preferences",
        )
        for member in members
    )
    listed = ", ".join(f"{value:.4f}" for value in values)
    formulas: dict[str, tuple[str, Callable[[Sequence[float]], float]]] = {
        "W2": (f"least of {listed}", min),
        "W3": (f"geometric mean of {listed}", _geometric_mean),
    }
    if metric == "W1":
        return ratio(sum(values), len(values), evidence, text=f"mean of {listed}")
    if metric == "M13":
        apart = sum(abs(a - b) for a in values for b in values)
        return ratio(
            apart,
            2 * len(values) * sum(values),
            evidence,
            text=f"Gini coefficient of {listed}",
            because="all are 0",
        )
    text, compute = formulas[metric]
    return Derivation(text=text, result=compute(values), evidence=evidence)


def _geometric_mean(values: Sequence[float]) -> float:
    return math.prod(values) ** (1 / len(values))


def _chosen(dialogue: Dialogue, metric: str) -> pl.DataFrame:
    """Return the preferences that a metric counts."""
    pairs = dialogue.tables["pairs"]
    return pairs.filter("actionable") if metric in ("M10", "M11", "M12", "M14") else pairs


def _pairs(dialogue: Dialogue, metric: str) -> tuple[Evidence, ...]:
    columns = _OF_PAIRS[metric]
    return tuple(
        Evidence(
            what=f"{pair['member']}, {pair['slot']}",
            found=_columns(pair, columns),
            text=pair["preference"],
        )
        for pair in _chosen(dialogue, metric).drop_nulls(columns[0]).iter_rows(named=True)
    )


def _columns(row: Row, columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_number(row[name])}" for name in columns)


def _places(dialogue: Dialogue, columns: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            what=place["place"],
            found=_columns(place, columns),
        )
        for place in dialogue.tables["places"].iter_rows(named=True)
    )


def _syntheses(dialogue: Dialogue) -> tuple[Evidence, ...]:
    if dialogue.events is None:
        return ()
    return tuple(
        Evidence(
            what=f"synthesis of {one['slot']}",
            found=f"conflict {_number(one['has_conflict'])}: {one['description'] or 'none'}; "
            f"strategy {_number(one['has_strategy'])}; explanation {one['explanation'] or 'none'}",
            text=one["utterance"] or "",
        )
        for one in dialogue.events.frames["synthesis"].iter_rows(named=True)
    )


def _lines(dialogue: Dialogue) -> tuple[Evidence, ...]:
    if dialogue.events is None:
        return ()
    lines = dialogue.events.frames["plan_lines"]["text"].to_list()
    return tuple(Evidence(what="plan", text=line) for line in lines)


def _turns(
    dialogue: Dialogue, kinds: tuple[str, ...], theory: Lexicon | None = None
) -> tuple[Evidence, ...]:
    """List the turns of some kinds, with a lexicon whether they quote its theory."""
    if dialogue.events is None:
        return ()
    turns = dialogue.events.frames["turns"].filter("is_counted")
    if kinds:
        turns = turns.filter(pl.any_horizontal(pl.col("kind").str.contains(k) for k in kinds))
    said = turns["utterance"].fill_null("")
    quotes = quotes_theory(said, theory).to_list() if theory else [False] * len(turns)
    return tuple(
        Evidence(
            what="system" if turn["is_system"] else turn["member"] or "everyone",
            found=" ".join(word for word in (turn["kind"], turn["slot"]) if word)
            + ", quotes theory" * quoted,
            text=text,
        )
        for turn, text, quoted in zip(turns.iter_rows(named=True), said, quotes, strict=True)
    )


def _number(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
