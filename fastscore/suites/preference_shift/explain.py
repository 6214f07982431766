"""Why the numbers of preference_shift are what they are."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from fastscore.suites.base import Metric
from fastscore.suites.preference_shift.options import PreferenceShiftOptions
from fastscore.suites.preference_shift.show import mark_concepts
from fastscore.suites.showing import Dialogue, Evidence, Working

Row = Mapping[str, Any]

_MEANS = {
    "cross_coherence": "cc",
    "context_retention": "cr",
    "topic_interference": "i",
    "context_adaptation_score": "tas",
    "dst_precision_mean": "dst_precision",
    "dst_recall_mean": "dst_recall",
    "dst_f1_mean": "dst_f1",
    "dst_joint_accuracy_mean": "dst_joint_accuracy",
}
_TOTALS = {
    "missing_concepts_total": "missing_concepts",
    "hallucinated_concepts_total": "hallucinated_concepts",
}


def explain(
    dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShiftOptions
) -> Working:
    """Explain a metric's value in a row of its table."""
    if metric.table == "turns":
        return _of_turn(metric.id, row, options)
    if metric.table == "segments":
        return _of_segment(dialogue, metric.id, row, options)
    if metric.table == "shifts":
        return _of_shift(dialogue, metric, row, options)
    if metric.id in _MEANS:
        return _mean(dialogue, _MEANS[metric.id])
    if metric.id in _TOTALS:
        return _total(dialogue, _TOTALS[metric.id])
    if metric.numerator and metric.denominator:
        numerator, denominator = row[metric.numerator], row[metric.denominator]
        return Working(
            text=f"{_number(numerator)} / {_number(denominator)}",
            result=numerator / denominator if denominator else None,
            evidence=_shifts(dialogue),
        )
    return _weighted(metric.id, row, options, _shifts(dialogue))


def _of_turn(metric: str, row: Row, options: PreferenceShiftOptions) -> Working:
    user, system = set(row["user_concepts"]), set(row["system_concepts"])
    texts = (
        Evidence(
            what="user",
            found=", ".join(sorted(user)) or "no concept",
            text=row["user_text"],
            marks=mark_concepts(row["user_text"], sorted(user), system),
        ),
        Evidence(
            what="system",
            found=", ".join(sorted(system)) or "no concept",
            text=row["system_text"],
            marks=mark_concepts(row["system_text"], sorted(system), user),
        ),
    )
    if metric == "cc":
        both, either = len(user & system), len(user | system)
        text = f"{both} / {either} concepts" if either else "1, neither text has a concept"
        return Working(text=text, result=both / either if either else 1.0, evidence=texts)
    if metric == "cr":
        shared = ", ".join(sorted(user & system)) or "none"
        return Working(
            text=f"cosine of IDF vectors = {row['cr']:.4f}",
            result=0.0 if not user & system else None,
            evidence=(Evidence(what="shared concepts", found=shared), *texts),
        )
    if metric == "i":
        return Working(
            text=f"largest share of the system's word n-grams that the user used, n in "
            f"{options.copy_orders} = {row['i']:.4f}",
            evidence=texts,
        )
    if metric == "tas":
        return _adaptation(row["cc"], row["cr"], row["i"], options)
    gold = set(row["gold_concepts"] or ())
    hits = len(system & gold)
    held = Evidence(what="held to", found=", ".join(sorted(gold)) or "nothing")
    parts = {
        "dst_precision": f"{hits} / {len(system)}",
        "dst_recall": f"{hits} / {len(gold)}",
        "dst_f1": f"2 * {hits} / ({len(system)} + {len(gold)})",
        "dst_joint_accuracy": f"sets are {'equal' if system == gold else 'not equal'}",
    }
    return Working(text=parts[metric], evidence=(held, *texts))


def _adaptation(cc: float, cr: float, copied: float, options: PreferenceShiftOptions) -> Working:
    value = options.alpha * cc + options.beta * cr - options.gamma * copied
    return Working(
        text=f"{options.alpha:g} * {cc:.4f} + {options.beta:g} * {cr:.4f} - {options.gamma:g} * "
        f"{copied:.4f}, clipped to [-1, 1]",
        result=min(1.0, max(-1.0, value)),
        evidence=(
            Evidence(what="cc", found=cc),
            Evidence(what="cr", found=cr),
            Evidence(what="i", found=copied),
        ),
    )


def _of_segment(
    dialogue: Dialogue, metric: str, row: Row, options: PreferenceShiftOptions
) -> Working:
    turns = dialogue.tables["turns"].filter(
        pl.col("turn").is_between(row["start_turn"], row["end_turn"])
    )
    if metric == "segment_tas":
        return _adaptation(row["segment_cc"], row["segment_cr"], row["segment_i"], options)
    if metric == "segment_i":
        return Working(
            text=f"mean of i over turns {row['start_turn']} to {row['end_turn']}",
            result=turns["i"].mean(),  # type: ignore[arg-type]
            evidence=_values(turns, "i"),
        )
    user, system = (
        {concept for concepts in turns[name] for concept in concepts}
        for name in ("user_concepts", "system_concepts")
    )
    evidence = (
        Evidence(what="user's concepts", found=", ".join(sorted(user)) or "none"),
        Evidence(what="system's concepts", found=", ".join(sorted(system)) or "none"),
    )
    if metric == "segment_cr":
        return Working(text=f"cosine of summed vectors = {row[metric]:.4f}", evidence=evidence)
    both, either = len(user & system), len(user | system)
    return Working(
        text=f"{both} / {either} concepts" if either else "1, no text has a concept",
        result=both / either if either else 1.0,
        evidence=evidence,
    )


def _of_shift(
    dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShiftOptions
) -> Working:
    last = row["turn"] + max(1, options.window) - 1
    turns = dialogue.tables["turns"].filter(pl.col("turn").is_between(row["turn"], last))
    if metric.id == "i_around_shift":
        return Working(
            text=f"mean of i over turns {row['turn']} to {last}",
            result=turns["i"].mean(),  # type: ignore[arg-type]
            evidence=_values(turns, "i"),
        )
    tests = [f"cr >= {options.recovery_cr:g}"]
    if metric.id == "delay":
        tests = [f"cc >= {options.recovery_cc:g}"]
        if options.recovery == "cc-or-cr":
            tests.append(f"cr >= {options.recovery_cr:g}")
    found = [
        f"turn {turn['turn']}: cc {turn['cc']:.4f}, cr {turn['cr']:.4f}"
        for turn in turns.iter_rows(named=True)
    ]
    delay = row[metric.id]
    said = "no turn meets it" if delay is None else f"turn {row['turn'] + delay} is the first"
    return Working(
        text=f"{' or '.join(tests)} from turn {row['turn']} to {last}: {said}",
        evidence=tuple(Evidence(what="turn", found=one) for one in found),
    )


def _mean(dialogue: Dialogue, name: str) -> Working:
    turns = dialogue.tables["turns"].drop_nulls(name)
    values = turns[name].to_list()
    return Working(
        text=f"{sum(values):.4f} / {len(values)} turns",
        result=sum(values) / len(values) if values else None,
        evidence=_values(turns, name),
    )


def _total(dialogue: Dialogue, name: str) -> Working:
    turns = dialogue.tables["turns"]
    counts = [len(concepts) for concepts in turns[name]]
    return Working(
        text=" + ".join(map(str, counts)) or "no turn",
        result=sum(counts),
        evidence=tuple(
            Evidence(what=f"turn {turn['turn']}", found=", ".join(turn[name]) or "none")
            for turn in turns.iter_rows(named=True)
        ),
    )


def _values(turns: pl.DataFrame, name: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(what=f"turn {turn['turn']}", found=turn[name])
        for turn in turns.iter_rows(named=True)
    )


def _shifts(dialogue: Dialogue) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            what=f"shift at turn {shift['turn']}",
            found=f"recovered after {shift['delay']} turns"
            if shift["recovered"]
            else "not recovered",
        )
        for shift in dialogue.tables["shifts"].iter_rows(named=True)
    )


def _weighted(
    metric: str, row: Row, options: PreferenceShiftOptions, shifts: tuple[Evidence, ...]
) -> Working:
    weights = [float(weight) for weight in options.cas_weights.split(",")]
    names = (
        "topic_recovery_rate",
        "1 - clip(delay / 5)",
        "1 - mean i",
        "cross_coherence",
        "context_retention",
    )
    delay = row["avg_recovery_delay"]
    timely = None if delay is None else 1 - min(1.0, max(0.0, delay / 5))
    if metric == "cas_all":
        timely = None  # of every shift: see the shifts
    interference = row["topic_interference"]
    parts = (
        row["topic_recovery_rate"],
        timely,
        None if interference is None else 1 - min(1.0, max(0.0, interference)),
        row["cross_coherence"],
        row["context_retention"],
    )
    known = [part for part in parts if part is not None]
    result = None
    if len(known) == len(parts):
        weighted = sum(weight * part for weight, part in zip(weights, known, strict=True))
        result = weighted / sum(weights)
    return Working(
        text="weighted mean of "
        + ", ".join(
            f"{name} {_number(part)} (weight {weight:g})"
            for name, part, weight in zip(names, parts, weights, strict=False)
        ),
        result=result,
        evidence=shifts,
    )


def _number(value: float | None) -> str:
    if value is None:
        return "none" if value is None else ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
