"""Why the numbers of guest_simulation are what they are."""

from collections.abc import Mapping
from typing import Any

from fastscore.suites.guest_simulation.show import COMPONENTS
from fastscore.suites.showing import Dialogue, Evidence, Working

Row = Mapping[str, Any]


def explain(dialogue: Dialogue, metric: str, row: Row) -> Working:
    """Explain a metric's value in a row of its table."""
    return _EXPLAINED[metric](dialogue, row)


def _adherence(dialogue: Dialogue, row: Row) -> Working:
    evidence, scores = [], []
    for message in dialogue.tables["messages"].iter_rows(named=True):
        if message["message_score"] is None:
            continue
        scores.append(message["message_score"])
        parts = [
            f"{state} {message[state]}: {'as expected' if message[match] else 'not as expected'}"
            for state, match in COMPONENTS.items()
            if message[match] is not None
        ]
        evidence.append(
            Evidence(
                what=f"message {message['message_id']}, line {message['line']}",
                found=message["message_score"],
                text="; ".join(parts),
            )
        )
    total = sum(scores)
    return Working(
        text=f"{total:.4f} / {len(scores)} messages of the guest with a state",
        result=total / len(scores) if scores else None,
        evidence=tuple(evidence),
    )


def _variance(dialogue: Dialogue, row: Row) -> Working:
    most = 3 * (row["n_states"] - 1)
    if most <= 0:
        return Working(text=f"{row['n_states']} states: fewer than two")
    rate = row["n_transitions"] / most
    result = rate / 0.2 if rate <= 0.2 else 1 - (rate - 0.2) / 0.8
    how = f"{rate:.4f} / 0.2" if rate <= 0.2 else f"1 - ({rate:.4f} - 0.2) / 0.8"
    states = [
        Evidence(
            what=f"message {message['message_id']}",
            found=", ".join(str(message[state]) for state in list(COMPONENTS)[1:]),
        )
        for message in dialogue.tables["messages"].iter_rows(named=True)
        if message["menu_exploration_style"] is not None or message["mood_tone"] is not None
    ]
    return Working(
        text=f"a = {row['n_transitions']} transitions / (3 ({row['n_states']} - 1)) = {rate:.4f}; "
        f"{how}",
        result=result,
        evidence=tuple(states),
    )


def _order(dialogue: Dialogue, row: Row) -> Working:
    final, target, common = (
        row[name] for name in ("n_final_names", "n_target_names", "n_common_names")
    )
    wanted = dialogue.raw["target_order"].drop_nulls() if dialogue.raw is not None else None
    items = (
        dialogue.raw["current_items_in_order"].drop_nulls() if dialogue.raw is not None else None
    )
    evidence = [
        Evidence(what="distinct names of the final order", found=final),
        Evidence(what="distinct names of the target", found=target),
        Evidence(what="names of both", found=common),
    ]
    if items is not None and len(items):
        evidence.append(Evidence(what="last order in the log", text=str(items[-1])))
    if wanted is not None and len(wanted):
        evidence.append(Evidence(what="target in the log", text=str(wanted[0])))
    whole = (final or 0) + (target or 0)
    return Working(
        text=f"2 * {common} / ({final} + {target})",
        result=2 * common / whole if whole and common is not None else None,
        evidence=tuple(evidence),
    )


def _explainability(dialogue: Dialogue, row: Row) -> Working:
    level, n = row["experiment_level"], row["n_guest_messages"]
    order, attributes, basic = (
        row[name] for name in ("n_order_tracking", "n_message_attributes", "n_basic_tools")
    )
    evidence = tuple(
        Evidence(what=f"messages with {name}", found=count)
        for name, count in (
            ("order tracking", order),
            ("message attributes", attributes),
            ("basic tools", basic),
        )
    )
    if not n or level is None:
        return Working(text="no message of the guest, or no level", evidence=evidence)
    formulas = {
        5: (
            f"min(1, ({order} + {attributes}) / (2 * {n}))",
            min(1.0, (order + attributes) / 2 / n),
        ),
        4: (f"min(.5, {attributes} / {n} * .5)", min(0.5, attributes / n * 0.5)),
        3: (f"min(.5, {order} / {n} * .5)", min(0.5, order / n * 0.5)),
        2: (f"min(.2, {basic} / {n} * .2)", min(0.2, basic / n * 0.2)),
        1: ("0", 0.0),
    }
    text, result = formulas.get(level, ("no such level", None))
    return Working(text=f"level {level}: {text}", result=result, evidence=evidence)


def _composite(dialogue: Dialogue, row: Row) -> Working:
    weights = {"PAS": 0.25, "BVS": 0.20, "ORA": 0.35, "DEI": 0.20}
    parts = {name: row[name] for name in weights}
    known = all(part is not None for part in parts.values())
    return Working(
        text=" + ".join(
            f"{weight:.2f} * {'none' if parts[name] is None else format(parts[name], '.4f')}"
            for name, weight in weights.items()
        ),
        result=sum(weights[name] * part for name, part in parts.items()) if known else None,
        evidence=tuple(Evidence(what=name, found=part) for name, part in parts.items()),
    )


_EXPLAINED = {
    "PAS": _adherence,
    "BVS": _variance,
    "ORA": _order,
    "DEI": _explainability,
    "CRRS": _composite,
}
