"""Why the numbers of guest_simulation are what they are."""

from fastscore.suites.declarations import Metric
from fastscore.suites.guest_simulation.options import GuestSimulation
from fastscore.suites.guest_simulation.show import COMPONENTS
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, ratio


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: GuestSimulation) -> Derivation:
    """Explain a metric's value in a row of its table."""
    return _EXPLAINED[metric.id](dialogue, row)


def _adherence(dialogue: Dialogue, row: Row) -> Derivation:
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
    if not scores:
        evidence.append(Evidence(what="messages of the guest with a state", found=0))
    return ratio(
        sum(scores),
        len(scores),
        evidence,
        text=f"{sum(scores):.4f} / {len(scores)} messages of the guest with a state",
        because="no message of the guest has a state",
    )


def _variance(dialogue: Dialogue, row: Row) -> Derivation:
    states = [
        Evidence(
            what=f"message {message['message_id']}",
            found=", ".join(str(message[state]) for state in list(COMPONENTS)[1:]),
        )
        for message in dialogue.tables["messages"].iter_rows(named=True)
        if message["menu_exploration_style"] is not None or message["mood_tone"] is not None
    ]
    most = 3 * (row["n_states"] - 1)
    if most <= 0:
        states.append(Evidence(what="states", found=row["n_states"]))
        return ratio(0, 0, states, because="fewer than two states")
    rate = row["n_transitions"] / most
    rises = rate <= 0.2
    how = f"{rate:.4f} / 0.2" if rises else f"1 - ({rate:.4f} - 0.2) / 0.8"
    return ratio(
        rate if rises else 1 - rate,
        0.2 if rises else 0.8,
        states,
        text=f"a = {row['n_transitions']} transitions / (3 ({row['n_states']} - 1)) = {rate:.4f}; "
        f"{how}",
    )


def _order(dialogue: Dialogue, row: Row) -> Derivation:
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
    return ratio(
        2 * (common or 0),
        (final or 0) + (target or 0),
        evidence,
        text=f"2 * {common} / ({final} + {target})",
        because="no order and no target",
    )


def _explainability(dialogue: Dialogue, row: Row) -> Derivation:
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
        return ratio(0, 0, evidence, because="no message of the guest, or no level")
    formulas = {
        5: (f"min(1, ({order} + {attributes}) / (2 * {n}))", min(order + attributes, 2 * n), 2 * n),
        4: (f"min(.5, {attributes} / {n} * .5)", min(attributes, n), 2 * n),
        3: (f"min(.5, {order} / {n} * .5)", min(order, n), 2 * n),
        2: (f"min(.2, {basic} / {n} * .2)", min(basic, n), 5 * n),
    }
    text, counted, whole = formulas.get(level, ("0", 0, n))
    return ratio(counted, whole, evidence, text=f"level {level}: {text}")


def _composite(dialogue: Dialogue, row: Row) -> Derivation:
    weights = {"PAS": 0.25, "BVS": 0.20, "ORA": 0.35, "DEI": 0.20}
    parts = {name: row[name] for name in weights}
    return ratio(
        sum(weight * parts[name] for name, weight in weights.items()),
        sum(weights.values()),
        [Evidence(what=name, found=part) for name, part in parts.items()],
        text=" + ".join(f"{weight:.2f} * {parts[name]:.4f}" for name, weight in weights.items()),
    )


_EXPLAINED = {
    "PAS": _adherence,
    "BVS": _variance,
    "ORA": _order,
    "DEI": _explainability,
    "CRRS": _composite,
}
