"""The suite's metrics; here those of conversations: means, recovery over shifts, and CAS."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
from polars import col as C

from fastscore.suites.declarations import Formula, Metric, Scale
from fastscore.suites.preference_shift.metrics import turns as use
from fastscore.suites.preference_shift.metrics.turns import (
    SEGMENT_METRICS,
    SHIFT_METRICS,
    TURN_METRICS,
)
from fastscore.suites.preference_shift.options import CAS_PARTS, PreferenceShift
from fastscore.suites.showing import EvidenceRows, Row

SLOWEST_DELAY = 5.0
"""The delay at which the part of CAS that rewards speed is 0."""
FIRST_DELAY, DELAY_SPAN = 1.0, 5.0
"""The delay at which this part is 1 in the profile legacy, and the turns in which it falls to 0."""


def _weighted(row: Row, options: PreferenceShift, late: str = "") -> str:
    """Write CAS with its weights. The profile legacy leaves out parts without a value."""
    if not late:
        late = f"1 - clip({{avg_recovery_delay}} / {SLOWEST_DELAY:g})"
        if options.is_legacy:
            late = f"1 - clip(({{avg_recovery_delay}} - {FIRST_DELAY:g}) / {DELAY_SPAN:g})"
    terms = {part: f"{{{part}}}" for part in CAS_PARTS} | {
        "topic_interference": "(1 - clip({topic_interference}))",
        "avg_recovery_delay": f"({late})",
    }
    shares = {
        part: share
        for part, share in options.cas_shares.items()
        if row[part] is not None or not options.is_legacy
    }
    total = " + ".join(f"{share:g} * {terms[part]}" for part, share in shares.items())
    return total if len(shares) == len(terms) else f"({total}) / {sum(shares.values()):g}"


def _by_profile(grounded: str, by_topics: str) -> Callable[[Row, PreferenceShift], str]:
    return lambda row, options: by_topics if options.is_legacy else grounded


_BY_PARTS = EvidenceRows(columns=CAS_PARTS)

_of_mean = partial(
    Metric,
    scale=Scale("higher"),
    null_when=use.OF_MEANS,
    fixed_where=(use.NO_TURN,),
    role="headline",
    baselines=use.TRIVIAL,
)

_of_recovery = partial(
    Metric,
    uses=("shift_events",),
    scale=Scale("higher"),
    fixed_where=(use.NO_TURN, use.NO_SHIFT),
)
_of_delay = partial(Metric, uses=("shift_events",), scale=use.IN_TURNS)
_of_deltas = partial(
    Metric,
    source=use.DELTAS,
    scale=Scale("lower", maximum=None, unit="concepts"),
    role="part",
)

DIALOGUE_METRICS = (
    _of_mean(
        id="cross_coherence",
        name="Mean cross-coherence",
        source=use.CC,
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} \mathrm{CC}_t",
            use.TURNS,
            (r"\mathrm{CC}_t", "CC of turn t (`cc`)"),
        ),
        reading="How far the answers name the concepts that the user names.",
        example="CC of 0.5 and 1.0: 0.75.",
        evidence=(
            use.of_turns("cc", only_with=use.GROUNDED),
            use.of_turns("cosine_to_user", text="system_text", only_with=use.BY_TOPICS),
        ),
        derivation=_by_profile("mean of {cc}", "mean of {cosine_to_user}"),
    ),
    _of_mean(
        id="context_retention",
        name="Mean context retention",
        source=use.CR,
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} \mathrm{CR}_t",
            use.TURNS,
            (r"\mathrm{CR}_t", "CR of turn t (`cr`)"),
        ),
        reading="As cross-coherence, with rare concepts weighing more.",
        example="CR of 0.8 and 0.4: 0.6.",
        evidence=(
            use.of_turns("cr", only_with=use.GROUNDED),
            use.of_turns("cosine_to_last", text="system_text", only_with=use.BY_TOPICS),
        ),
        derivation=_by_profile("mean of {cr}", "mean of {cosine_to_last}"),
    ),
    _of_mean(
        id="topic_interference",
        name="Mean copying",
        source=use.COPYING,
        formula=Formula(r"\frac{1}{|T|} \sum_{t \in T} I_t", use.TURNS, use.COPIED),
        reading="How far the answers repeat the user's phrases. Lower is better.",
        example="I of 0.0 and 0.3: 0.15.",
        scale=Scale("lower"),
        evidence=(use.of_turns("i", only_with=use.GROUNDED), use.ANSWERS),
        derivation=_by_profile(
            "mean of {i}",
            f"mean over shifts of answers with like_old >= {use.ALIGNED:g} / answers up to the "
            f"recovery (at most {use.LONGEST_SEEN} without one)",
        ),
    ),
    Metric(
        id="topic_interference_around_shifts",
        name="Mean copying around shifts",
        source=use.SEGMENTS,
        formula=Formula(
            r"\frac{1}{n} \sum_{w \in W} \sum_{t \in w} I_t",
            use.COPIED,
            ("W", "windows of all shifts (a turn in two windows counts twice)"),
            ("n", "number of turns in these windows that have both texts"),
        ),
        reading="Mean copying after shifts.",
        example="One window with I of 0.0, 0.3 and 0.6: 0.3.",
        scale=Scale("lower"),
        null_when=(use.NO_SHIFT_INSIDE, use.NONE_AROUND),
        micro=("i_around_shifts_sum", "n_turns_around_shifts"),
        evidence=(use.of_shifts("i_around_shift"),),
    ),
    _of_mean(
        id="context_adaptation_score",
        name="Adaptation score (mean TAS)",
        source=use.TAS,
        scale=Scale("higher", minimum=-1.0),
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} \mathrm{TAS}_t",
            use.TURNS,
            (r"\mathrm{TAS}_t", "TAS of turn t (`tas`), already between -1 and 1"),
        ),
        reading="How well the answers follow the user. 1 is the maximum of each turn.",
        example="TAS of 0.9 and 1.0: 0.95.",
        evidence=(
            use.of_turns("tas", only_with=use.GROUNDED),
            replace(_BY_PARTS, only_with=use.BY_TOPICS),
        ),
        derivation=lambda row, options: (
            _weighted(row, options) if options.is_legacy else "mean of {tas}"
        ),
    ),
    _of_recovery(
        id="topic_recovery_rate",
        name="Recovery rate",
        source=use.SEGMENTS,
        formula=Formula(
            r"r = \frac{|R|}{|K|}",
            ("K", "shifts whose turns tell whether they are recovered"),
            ("R", "shifts of K with a turn of the window that meets the test"),
        ),
        reading="The share of shifts that the answers follow in time.",
        example="3 shifts, 2 of them recovered: 2 / 3 = 0.667.",
        null_when=(use.UNKNOWN, use.NO_SHIFTS, use.NO_TURNS),
        micro=("n_recovered", "n_known_shifts"),
        evidence=(use.of_shifts("recovered", "delay"),),
        role="headline",
        baselines=use.TRIVIAL,
    ),
    _of_delay(
        id="avg_recovery_delay",
        name="Mean recovery delay",
        source=use.SEGMENTS,
        formula=Formula(
            r"\bar{d} = \frac{1}{|R|} \sum_{k \in R} d_k",
            ("R", "recovered shifts"),
            ("d_k", "delay of shift k (`delay`)"),
        ),
        reading="Turns until a recovered shift is followed. Shifts never recovered do not count.",
        example="Delays 0 and 1: 0.5.",
        null_when=(use.UNKNOWN, use.NONE_RECOVERED),
        micro=("delay_sum", "n_recovered"),
        evidence=(use.of_shifts("delay"),),
        role="headline",
        baselines=use.TRIVIAL,
    ),
    _of_recovery(
        id="recovery_rate_cosine",
        name="Recovery rate by CR alone",
        source=use.CONSISTENT,
        formula=Formula(
            r"r = \frac{|R|}{|K|}",
            ("K", "shifts whose turns tell whether CR reaches its threshold"),
            ("R", "shifts of K with such a turn in the window"),
        ),
        reading="As the recovery rate, by CR alone.",
        example="3 shifts, 1 of them recovered: 1 / 3 = 0.333.",
        note="The test is CR >= `--recovery-cr` (0.65). Nothing else counts.",
        null_when=(use.UNKNOWN_COSINE, use.NO_SHIFTS, use.NO_TURNS),
        micro=("n_recovered_cosine", "n_known_shifts_cosine"),
        evidence=(use.of_shifts("recovered_cosine", "delay_cosine"),),
        role="part",
    ),
    _of_delay(
        id="avg_recovery_delay_cosine",
        name="Mean recovery delay by CR alone",
        source=use.CONSISTENT,
        formula=Formula(
            r"\bar{d} = \frac{1}{|R|} \sum_{k \in R} d_k",
            ("R", "shifts recovered by CR alone"),
            ("d_k", "delay of shift k (`delay_cosine`)"),
        ),
        reading="As the mean recovery delay, by CR alone.",
        example="Delays 1 and 2: 1.5.",
        null_when=(use.UNKNOWN_COSINE, use.NONE_RECOVERED_COSINE),
        micro=("delay_cosine_sum", "n_recovered_cosine"),
        evidence=(use.of_shifts("delay_cosine"),),
        role="part",
    ),
    Metric(
        id="cas",
        name="Conversation adaptation score",
        uses=("shift_events",),
        source=use.PUBLIC + " (legacy), on the grounded parts",
        scale=Scale("higher"),
        formula=Formula(
            r"\mathrm{CAS} = .02 r + .04 \left(1 - \frac{\min(\bar{d}, 5)}{5}\right) "
            r"+ .04 (1 - \bar{I}) + .60 \bar{C} + .30 \bar{R}",
            use.RATE,
            (r"\bar{d}", "mean recovery delay"),
            *use.MEANS,
        ),
        reading="Recovery, copying and coherence in one number. Weights: `--cas-weights`.",
        example="0.02 * 1 + 0.04 * 0.8 + 0.04 * 0.9 + 0.60 * 0.5 + 0.30 * 0.6 = 0.568.",
        note=(
            "CAS leaves out conversations that fail, because they have no delay. So a mean of "
            "CAS is over a model's better conversations. Compare models by `cas_all`."
        ),
        null_when=use.OF_CAS,
        evidence=(_BY_PARTS,),
        derivation=_weighted,
    ),
    Metric(
        id="cas_all",
        name="Conversation adaptation score over all shifts",
        source=use.PUBLIC + " (legacy), every shift counted",
        scale=Scale("higher"),
        formula=Formula(
            r"\mathrm{CAS} = .02 r + .04 v + .04 (1 - \bar{I}) + .60 \bar{C} + .30 \bar{R}",
            use.RATE,
            ("K", "known shifts (no missing text in the window, or a turn that passes the test)"),
            (
                "v",
                r"mean over shifts of K of $1 - \frac{\min(d_k, 5)}{5}$, "
                "0 for those not recovered",
            ),
            *use.MEANS,
        ),
        reading="As CAS, but shifts that were never recovered count against the system.",
        example="0.02 * 0.5 + 0.04 * 0.4 + 0.04 * 0.9 + 0.60 * 0.5 + 0.30 * 0.6 = 0.542.",
        note="It equals CAS if every shift was recovered within five turns.",
        null_when=use.OF_CAS_ALL,
        evidence=(_BY_PARTS, use.of_shifts("recovered", "delay")),
        derivation=lambda row, options: _weighted(
            row,
            options,
            f"mean of 1 - clip(delay / {SLOWEST_DELAY:g}), 0 if not recovered, delays {{delay}}",
        ),
    ),
    *(
        Metric(
            id=f"{metric.id}_mean",
            name=f"{metric.name}, mean over turns",
            uses=("user_meta",),
            source=use.CONSISTENT,
            scale=Scale("higher"),
            formula=Formula(
                r"\frac{1}{|T|} \sum_{t \in T} v_t",
                ("T", f"turns with a value of `{metric.id}`"),
                ("v_t", f"value of turn t (`{metric.id}`)"),
            ),
            reading=metric.reading,
            example="Values 0.5 and 1.0: 0.75.",
            null_when=(use.NONE_TRACKED,),
            evidence=(use.of_turns(metric.id),),
            derivation=f"mean of {{{metric.id}}}",
        )
        for metric in TURN_METRICS
        if metric.id.startswith("dst_")
    ),
    _of_deltas(
        id="missing_concepts_total",
        name="Missing concepts",
        formula=Formula(
            r"\sum_{t \in T} |E_U \setminus E_S|", use.TURNS, use.CONCEPTS_U, use.CONCEPTS_S
        ),
        reading="Concepts of the user that the answers leave out.",
        example="Two turns with 1 and 2 missing concepts: 3.",
        note="The column `missing_concepts` of the table `turns` lists them.",
        evidence=(use.of_turns("missing_concepts", where=C("cc").is_not_null()),),
        derivation="{missing_concepts_total} concepts",
    ),
    _of_deltas(
        id="hallucinated_concepts_total",
        name="Hallucinated concepts",
        formula=Formula(
            r"\sum_{t \in T} |E_S \setminus E_U|", use.TURNS, use.CONCEPTS_U, use.CONCEPTS_S
        ),
        reading="Concepts that answers bring in although the user did not name them.",
        example="Two turns with 0 and 4 such concepts: 4.",
        note="The column `hallucinated_concepts` of the table `turns` lists them.",
        evidence=(use.of_turns("hallucinated_concepts", where=C("cc").is_not_null()),),
        derivation="{hallucinated_concepts_total} concepts",
    ),
)


MEANS_OF_TURNS = {metric.same_test_as: metric.id for metric in TURN_METRICS}
"""Metrics of dialogues that are means over turns, each with the metric of turns."""

METRICS = (*DIALOGUE_METRICS, *TURN_METRICS, *SEGMENT_METRICS, *SHIFT_METRICS)
"""Every metric of the suite, those of dialogues first."""


def _ratio(total: str, count: str) -> pl.Expr:
    """Return the ratio of two columns; null where there is nothing to divide by."""
    return pl.when(C(count) > 0).then(C(total) / C(count))


MEANS = {
    id: _ratio(f"{column}_sum", "n_gold" if column in use.DST else "n_scored")
    for id, column in MEANS_OF_TURNS.items()
}
RECOVERY = {
    "topic_recovery_rate": _ratio("n_recovered", "n_known_shifts"),
    "avg_recovery_delay": _ratio("delay_sum", "n_recovered"),
    "recovery_rate_cosine": _ratio("n_recovered_cosine", "n_known_shifts_cosine"),
    "avg_recovery_delay_cosine": _ratio("delay_cosine_sum", "n_recovered_cosine"),
    "topic_interference_around_shifts": _ratio("i_around_shifts_sum", "n_turns_around_shifts"),
}
TOPIC_MEANS = {
    "cross_coherence": _ratio("cosine_to_user_sum", "n_turns"),
    "context_retention": _ratio("cosine_to_last_sum", "n_followed"),
    "topic_interference": _ratio("interference_sum", "n_shifts"),
}
"""What the profile legacy has in place of the means over turns."""


_BY_ID = {metric.id: metric for metric in DIALOGUE_METRICS}
_WITH_REASONS = [_BY_ID[id] for id in (*MEANS, *RECOVERY, "cas", "cas_all")]
"""Metrics that can be null, in the order in which a conversation's reasons are listed."""


def recovery_speed(delay: str, options: PreferenceShift) -> pl.Expr:
    """Return the part of CAS that rewards speed: 1 without a delay, 0 from the slowest one on."""
    first, span = (FIRST_DELAY, DELAY_SPAN) if options.is_legacy else (0.0, SLOWEST_DELAY)
    # by numpy: polars multiplies by the reciprocal of a constant, which is not exact
    slowness: pl.Expr = np.divide(C(delay) - first, span)  # type: ignore[call-overload]
    return 1.0 - slowness.clip(0.0, 1.0)


def _parts_of_cas(speed: pl.Expr, options: PreferenceShift) -> list[tuple[float, pl.Expr]]:
    """Return the weights of the parts of CAS, and the parts."""
    parts = {part: C(part) for part in CAS_PARTS} | {
        "avg_recovery_delay": speed,
        "topic_interference": 1.0 - C("topic_interference").clip(0.0, 1.0),
    }
    return [(weight, parts[part]) for part, weight in options.cas_shares.items()]


def _weigh(parts: Iterable[tuple[float, pl.Expr]]) -> pl.Expr:
    return sum((weight * part for weight, part in parts), start=pl.lit(0.0))


def _cas_of_topics(options: PreferenceShift) -> pl.Expr:
    """Return CAS of the profile legacy: parts without a value leave their weight to the others."""
    parts = _parts_of_cas(recovery_speed("avg_recovery_delay", options), options)
    total = _weigh((weight, part.fill_null(0.0)) for weight, part in parts)
    there = _weigh((weight, part.is_not_null().cast(pl.Float64)) for weight, part in parts)
    return pl.when(C("n_turns") > 0).then(total / there)


def score_conversations(dialogues: pl.DataFrame, options: PreferenceShift) -> pl.DataFrame:
    """Return conversations with their metrics, from what was counted and added up in each."""
    found = dialogues.with_columns(**MEANS, **RECOVERY)
    if options.is_legacy:
        found = found.with_columns(**TOPIC_MEANS)
    if options.zero_without_turns:
        found = found.with_columns(
            C(metric.id).fill_null(0.0) for metric in DIALOGUE_METRICS if metric.fixed_where
        )
    if options.gold_is_user:
        found = found.with_columns(C("^dst_.*_mean$").fill_null(0.0))
    if options.is_legacy:
        # NaN is 0 / 0: all the weight can be on a delay that there is not
        found = found.with_columns(
            cas=_cas_of_topics(options), cas_all=pl.lit(None, pl.Float64)
        ).with_columns(context_adaptation_score=C("cas").fill_null(0.0).fill_nan(0.0))
    else:
        found = found.with_columns(
            cas=_weigh(_parts_of_cas(recovery_speed("avg_recovery_delay", options), options)),
            cas_all=_weigh(_parts_of_cas(_ratio("speed_sum", "n_known_shifts"), options)),
        )
    return use.with_nulls(found, _WITH_REASONS, options)
