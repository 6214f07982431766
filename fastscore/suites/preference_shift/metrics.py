"""The suite's metrics: data only."""

from typing import Literal

from fastscore.suites.declarations import Metric

_HEADLINE = (
    "cross_coherence",
    "context_retention",
    "topic_interference",
    "context_adaptation_score",
    "topic_recovery_rate",
    "avg_recovery_delay",
)
"""The columns of the published table of models, ``model_metrics.csv``."""
REFUSING, ECHOING = "always refusing", "echoing the user"
"""Agents that pay no attention: their scores stand beside the headline metrics."""
_MEAN_OF_DIALOGUES = {
    "cc": "cross_coherence",
    "cr": "context_retention",
    "i": "topic_interference",
    "tas": "context_adaptation_score",
    "delay": "avg_recovery_delay",
    "delay_cosine": "avg_recovery_delay_cosine",
    "i_around_shift": "topic_interference_around_shifts",
    **{f"dst_{name}": f"dst_{name}_mean" for name in ("precision", "recall", "f1")},
    "dst_joint_accuracy": "dst_joint_accuracy_mean",
}
"""Metrics of turns and shifts whose means over a dialogue are metrics of dialogues."""
_NO_TURN, _NO_SHIFT = ("n_turns", 0), ("n_shifts", 0)


def _metric(
    table: str,
    id: str,
    name: str,
    source: str,
    *,
    symbols: tuple[tuple[str, str], ...],
    latex: str,
    reading: str,
    example: str,
    minimum: float | None = 0.0,
    maximum: float | None = 1.0,
    better: Literal["higher", "lower", "neither"] = "higher",
    null_rule: str = "never",
    unit: str = "1",
    numerator: str | None = None,
    denominator: str | None = None,
    fixed_where: tuple[tuple[str, int], ...] = (),
) -> Metric:
    return Metric(
        id=id,
        name=name,
        table=table,
        symbols=symbols,
        latex=latex,
        reading=reading,
        example=example,
        minimum=minimum,
        maximum=maximum,
        better=better,
        null_rule=null_rule,
        source=source,
        unit=unit,
        numerator=numerator,
        denominator=denominator,
        is_secondary=table != "dialogues" or id.endswith("_cosine") or unit == "concepts",
        headline=id in _HEADLINE,
        same_test_as=_MEAN_OF_DIALOGUES.get(id, ""),
        fixed_where=fixed_where,
        baselines=(REFUSING, ECHOING) if id in _HEADLINE else (),
    )


_TURNS = ("T", "turns of the conversation with both texts")
_CONCEPTS_U = ("E_U", "set of catalogue concepts in the user's text")
_CONCEPTS_S = ("E_S", "set of catalogue concepts in the system's text")
_UNION_U = ("E_U", "union of the concepts of the user turns of the segment")
_UNION_S = ("E_S", "union of the concepts of the system turns of the segment")
_WEIGHTS = ("a_U", "vector with the inverse document frequency of each concept of $E_U$, else 0")
_WEIGHTS_S = ("a_S", "the vector of $E_S$")
_GRAMS = ("G_n(t)", "set of n-grams of words of text t; n = 3 and 4 (`--copy-orders`)")
_GOLD = ("G", "gold concepts: those of the constraints in the user turn's metadata")
_COPIED = ("I_t", "copying of turn t (`i`)")
_PARTS = ((r"\mathrm{CC}", "`cc`"), (r"\mathrm{CR}", "`cr`"), ("I", "`i`"))
_ALPHA = (
    (r"\alpha", "weight `--alpha`, 1"),
    (r"\beta", "weight `--beta`, 1"),
    (r"\gamma", "weight `--gamma`, 1"),
)
_SHIFT = ("t_k", "user turn of shift k")
_WINDOW = ("W", "turns of the window, `--window`, 3")
_THETA = (r"\theta", "threshold `--recovery-cc`")
_RATE = ("r", "recovery rate")
_MEANS = (
    (r"\bar{I}", "mean copying"),
    (r"\bar{C}", "mean cross-coherence"),
    (r"\bar{R}", "mean context retention"),
)

_GOLD_RULE = (
    "missing_input if the user turn's metadata has no constraints or, in the profile default, "
    "the system's text is absent or null; never in the profile structured, which takes the user's "
    "own concepts instead"
)
_TEXTS_RULE = (
    "missing_input if one of the two texts is absent or null; in every profile but default "
    "that is an empty text, and this is never null"
)
_SEGMENT_RULE = "missing_input without a turn in it that has both texts"
_TURNS_RULE = (
    "not_applicable without a turn, missing_input if no turn has both texts; 0 in every "
    "profile but default"
)
_NO_SHIFTS = (
    "not_applicable without a shift or a turn, missing_input if it is unknown of every shift: "
    "no turn of the window is known to meet the test and one of them lacks a text; in every "
    "profile but default an absent text is empty, and this is 0 without a shift"
)
_NO_RECOVERY = (
    "not_applicable if nothing was recovered, missing_input if that is unknown: a turn of "
    "the window lacks a text"
)

_MADE = "preference_shift methodology, "
_CC, _CR, _I, _TAS = (_MADE + part for part in ("5.2", "5.3", "5.4", "5.5"))
_SEGMENTS, _DELTAS = _MADE + "5.6", _MADE + "5.7"
_PUBLIC = "llm-eval-workspace, evaluate.py"
_CONSISTENT = _PUBLIC + " (updated)"

_TAS_FORMULA = (
    r"\mathrm{TAS} = "
    r"\min(1, \max(-1, \alpha \mathrm{CC} + \beta \mathrm{CR} - \gamma I))"
)

TURN_METRICS = (
    _metric(
        "turns",
        "cc",
        "Cross-coherence",
        _CC,
        symbols=(_CONCEPTS_U, _CONCEPTS_S),
        latex=r"\mathrm{CC} = \frac{|E_U \cap E_S|}{|E_U \cup E_S|}",
        reading="1 if user and system name the same concepts, also if neither names one.",
        example="User: comedy, Tom Hanks. System: comedy. 1 / 2 = 0.5.",
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "cr",
        "Context retention",
        _CR,
        symbols=(
            _CONCEPTS_U,
            _CONCEPTS_S,
            _WEIGHTS,
            _WEIGHTS_S,
        ),
        latex=r"\mathrm{CR} = \frac{a_U \cdot a_S}{\lVert a_U \rVert \lVert a_S \rVert}",
        reading="As CC, but rare concepts weigh more. 0 if one of the sets is empty.",
        example="Weights 3 and 4, the system names the second only: 16 / (5 * 4) = 0.8.",
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "i",
        "Topic interference (copying)",
        _I,
        symbols=(_GRAMS,),
        latex=r"I = \max_n \frac{|G_n(S) \cap G_n(U)|}{|G_n(S)|}",
        reading="The share of the system's phrases that repeat the user's. 0 for short texts.",
        example="S = 'the quick brown fox jumps', U = 'a quick brown fox': max(1/3, 0/2) = 0.333.",
        better="lower",
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "tas",
        "Turn adaptation score",
        _TAS,
        symbols=(*_PARTS, *_ALPHA),
        latex=_TAS_FORMULA,
        reading="High if the answer takes up the user's concepts in words of its own.",
        example="CC = 0.5, CR = 0.8, I = 0.4: 0.5 + 0.8 - 0.4 = 0.9.",
        minimum=-1.0,
        null_rule=_TEXTS_RULE,
    ),
    _metric(
        "turns",
        "dst_precision",
        "Precision of the system's concepts",
        _CONSISTENT,
        symbols=(_CONCEPTS_S, _GOLD),
        latex=r"P = \frac{|E_S \cap G|}{|E_S|}",
        reading="The share of its concepts that are gold. Of none: 1 without gold, else 0.",
        example="System names 3 concepts, 2 of them gold: 2 / 3 = 0.667.",
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_recall",
        "Recall of the gold constraints",
        _CONSISTENT,
        symbols=(_CONCEPTS_S, _GOLD),
        latex=r"R = \frac{|E_S \cap G|}{|G|}",
        reading="The share of the constraints that the system takes up. 1 without a constraint.",
        example="4 gold concepts, the system names 2 of them: 2 / 4 = 0.5.",
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_f1",
        "F1 of precision and recall",
        _CONSISTENT,
        symbols=(
            ("P", "precision of the turn (`dst_precision`)"),
            ("R", "recall of the turn (`dst_recall`)"),
        ),
        latex=r"\mathrm{F1} = \frac{2 P R}{P + R}",
        reading="1 if system and constraints name the same concepts. 0 if both P and R are 0.",
        example="P = 2 / 3, R = 1 / 2: 0.571.",
        null_rule=_GOLD_RULE,
    ),
    _metric(
        "turns",
        "dst_joint_accuracy",
        "Joint accuracy",
        _CONSISTENT,
        symbols=(_CONCEPTS_S, _GOLD),
        latex=r"J = \begin{cases} 1 & \text{if } E_S = G \\ 0 & \text{otherwise} \end{cases}",
        reading="1 if the system names all constraints and nothing else.",
        example="Gold: comedy. System: comedy, Tom Hanks. J = 0.",
        null_rule=_GOLD_RULE,
    ),
)

SEGMENT_METRICS = (
    _metric(
        "segments",
        "segment_cc",
        "Cross-coherence of a segment",
        _DELTAS,
        symbols=(_UNION_U, _UNION_S),
        latex=r"\mathrm{CC} = \frac{|E_U \cap E_S|}{|E_U \cup E_S|}",
        reading="CC of all that is said in a segment.",
        example="4 concepts of the user, 3 of them in the answers: 3 / 4 = 0.75.",
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_cr",
        "Context retention of a segment",
        _CR,
        symbols=(
            ("a_U", "sum of the weight vectors of the user turns of the segment"),
            ("a_S", "sum of the weight vectors of the system turns"),
        ),
        latex=r"\mathrm{CR} = \frac{a_U \cdot a_S}{\lVert a_U \rVert \lVert a_S \rVert}",
        reading="CR of all that is said in a segment. Repeated concepts weigh more.",
        example="Sums (3, 4) and (0, 4): 16 / (5 * 4) = 0.8.",
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_i",
        "Copying in a segment",
        _I,
        symbols=(
            _COPIED,
            ("T", "turns of the segment with both texts"),
        ),
        latex=r"\frac{1}{|T|} \sum_{t \in T} I_t",
        reading="Mean copying in a segment.",
        example="I of 0.2 and 0.4: 0.3.",
        better="lower",
        null_rule=_SEGMENT_RULE,
    ),
    _metric(
        "segments",
        "segment_tas",
        "Adaptation score of a segment",
        _TAS,
        symbols=(
            (r"\mathrm{CC}", "`segment_cc`"),
            (r"\mathrm{CR}", "`segment_cr`"),
            ("I", "`segment_i`"),
            *_ALPHA,
        ),
        latex=_TAS_FORMULA,
        reading="TAS of all that is said in a segment.",
        example="CC = 0.75, CR = 0.8, I = 0.6: 0.75 + 0.8 - 0.6 = 0.95.",
        minimum=-1.0,
        null_rule=_SEGMENT_RULE,
    ),
)

SHIFT_METRICS = (
    _metric(
        "shifts",
        "delay",
        "Turns until the recovery test is met",
        _SEGMENTS,
        symbols=(
            _SHIFT,
            _WINDOW,
            (r"\mathrm{CC}", "CC of a turn, in some profiles also CR"),
            _THETA,
        ),
        latex=r"d = \min \{j < W \mid \mathrm{CC}_{t_k + j} \ge \theta\}",
        reading="Turns until the answers follow the shift: 0 if the first answer does.",
        example="CC of 0.1 and 0.7 after the shift, $\\theta$ = 0.65: d = 1.",
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
    ),
    _metric(
        "shifts",
        "delay_cosine",
        "Turns until CR alone meets its threshold",
        _CONSISTENT,
        symbols=(
            _SHIFT,
            _WINDOW,
            (r"\mathrm{CR}", "CR of a turn"),
            (r"\theta", "threshold `--recovery-cr`, 0.65"),
        ),
        latex=r"d = \min \{j < W \mid \mathrm{CR}_{t_k + j} \ge \theta\}",
        reading="As delay, by CR alone.",
        example="CR of 0.2 and 0.7 after the shift: d = 1.",
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
    ),
    _metric(
        "shifts",
        "i_around_shift",
        "Copying around a shift",
        _SEGMENTS,
        symbols=(
            _SHIFT,
            _WINDOW,
            _COPIED,
            ("T", "turns $t_k$ to $t_k + W - 1$ with both texts"),
        ),
        latex=r"\frac{1}{|T|} \sum_{t \in T} I_t",
        reading="Mean copying after one shift.",
        example="I of 0.0, 0.3 and 0.6: 0.3.",
        better="lower",
        null_rule="not_applicable if the conversation has no such turn, missing_input if "
        "none has both texts",
    ),
)

_GOLD_MEAN_RULE = "missing_input if no turn has a value; 0 without a turn in structured"

DIALOGUE_METRICS = (
    _metric(
        "dialogues",
        "cross_coherence",
        "Mean cross-coherence",
        _CC,
        symbols=(
            _TURNS,
            (r"\mathrm{CC}_t", "CC of turn t (`cc`)"),
        ),
        latex=r"\frac{1}{|T|} \sum_{t \in T} \mathrm{CC}_t",
        reading="How far the answers name the concepts that the user names.",
        example="CC of 0.5 and 1.0: 0.75.",
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "context_retention",
        "Mean context retention",
        _CR,
        symbols=(
            _TURNS,
            (r"\mathrm{CR}_t", "CR of turn t (`cr`)"),
        ),
        latex=r"\frac{1}{|T|} \sum_{t \in T} \mathrm{CR}_t",
        reading="As cross-coherence, with rare concepts weighing more.",
        example="CR of 0.8 and 0.4: 0.6.",
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "topic_interference",
        "Mean copying",
        _I,
        symbols=(_TURNS, _COPIED),
        latex=r"\frac{1}{|T|} \sum_{t \in T} I_t",
        reading="How far the answers repeat the user's phrases. Lower is better.",
        example="I of 0.0 and 0.3: 0.15.",
        better="lower",
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "topic_interference_around_shifts",
        "Mean copying around shifts",
        _SEGMENTS,
        symbols=(
            _COPIED,
            ("W", "windows of all shifts; a turn in two windows counts twice"),
            ("n", "number of turns in these windows that have both texts"),
        ),
        latex=r"\frac{1}{n} \sum_{w \in W} \sum_{t \in w} I_t",
        reading="Mean copying after shifts.",
        example="One window with I of 0.0, 0.3 and 0.6: 0.3.",
        better="lower",
        null_rule="not_applicable without a shift that the conversation has a turn for, "
        "missing_input if none of those turns has both texts",
        numerator="i_around_shifts_sum",
        denominator="n_turns_around_shifts",
    ),
    _metric(
        "dialogues",
        "context_adaptation_score",
        "Adaptation score (mean TAS)",
        _TAS,
        symbols=(
            _TURNS,
            (r"\mathrm{TAS}_t", "TAS of turn t (`tas`), already between -1 and 1"),
        ),
        latex=r"\frac{1}{|T|} \sum_{t \in T} \mathrm{TAS}_t",
        reading="How well the answers follow the user. 1 is the maximum of each turn.",
        example="TAS of 0.9 and 1.0: 0.95.",
        minimum=-1.0,
        null_rule=_TURNS_RULE,
        fixed_where=(_NO_TURN,),
    ),
    _metric(
        "dialogues",
        "topic_recovery_rate",
        "Recovery rate",
        _SEGMENTS,
        symbols=(
            ("K", "shifts whose turns tell whether they are recovered"),
            ("R", "shifts of K with a turn of the window that meets the test"),
        ),
        latex=r"r = \frac{|R|}{|K|}",
        reading="The share of shifts that the answers follow in time.",
        example="3 shifts, 2 of them recovered: 2 / 3 = 0.667.",
        null_rule=_NO_SHIFTS,
        numerator="n_recovered",
        denominator="n_known_shifts",
        fixed_where=(_NO_TURN, _NO_SHIFT),
    ),
    _metric(
        "dialogues",
        "avg_recovery_delay",
        "Mean recovery delay",
        _SEGMENTS,
        symbols=(
            ("R", "recovered shifts"),
            ("d_k", "delay of shift k (`delay`)"),
        ),
        latex=r"\bar{d} = \frac{1}{|R|} \sum_{k \in R} d_k",
        reading="Turns until a recovered shift is followed. Shifts never recovered do not count.",
        example="Delays 0 and 1: 0.5.",
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
        numerator="delay_sum",
        denominator="n_recovered",
    ),
    _metric(
        "dialogues",
        "recovery_rate_cosine",
        "Recovery rate by CR alone",
        _CONSISTENT,
        symbols=(
            ("K", "shifts whose turns tell whether CR reaches its threshold"),
            ("R", "shifts of K with such a turn in the window"),
        ),
        latex=r"r = \frac{|R|}{|K|}",
        reading="As the recovery rate, by CR alone.",
        example="3 shifts, 1 of them recovered: 1 / 3 = 0.333.",
        null_rule=_NO_SHIFTS,
        numerator="n_recovered_cosine",
        denominator="n_known_shifts_cosine",
        fixed_where=(_NO_TURN, _NO_SHIFT),
    ),
    _metric(
        "dialogues",
        "avg_recovery_delay_cosine",
        "Mean recovery delay by CR alone",
        _CONSISTENT,
        symbols=(
            ("R", "shifts recovered by CR alone"),
            ("d_k", "delay of shift k (`delay_cosine`)"),
        ),
        latex=r"\bar{d} = \frac{1}{|R|} \sum_{k \in R} d_k",
        reading="As the mean recovery delay, by CR alone.",
        example="Delays 1 and 2: 1.5.",
        maximum=None,
        better="lower",
        null_rule=_NO_RECOVERY,
        unit="turns",
        numerator="delay_cosine_sum",
        denominator="n_recovered_cosine",
    ),
    _metric(
        "dialogues",
        "cas",
        "Conversation adaptation score",
        _PUBLIC + " (legacy), on the grounded parts",
        symbols=(
            _RATE,
            (r"\bar{d}", "mean recovery delay"),
            *_MEANS,
        ),
        latex=r"\mathrm{CAS} = .02 r + .04 \left(1 - \frac{\min(\bar{d}, 5)}{5}\right) "
        r"+ .04 (1 - \bar{I}) + .60 \bar{C} + .30 \bar{R}",
        reading="Recovery, copying and coherence in one number. Weights: `--cas-weights`.",
        example="0.02 * 1 + 0.04 * 0.8 + 0.04 * 0.9 + 0.60 * 0.5 + 0.30 * 0.6 = 0.568.",
        null_rule="not_applicable without a shift or if nothing was recovered, missing_input "
        "where it is unknown of every shift whether it was",
    ),
    _metric(
        "dialogues",
        "cas_all",
        "Conversation adaptation score over all shifts",
        _PUBLIC + " (legacy), every shift counted",
        symbols=(
            _RATE,
            (
                "v",
                r"mean over shifts of $1 - \frac{\min(d_k, 5)}{5}$, 0 for those not recovered",
            ),
            *_MEANS,
        ),
        latex=r"\mathrm{CAS} = .02 r + .04 v + .04 (1 - \bar{I}) + .60 \bar{C} + .30 \bar{R}",
        reading="As CAS, but shifts that were never recovered count against the system.",
        example="0.02 * 0.5 + 0.04 * 0.4 + 0.04 * 0.9 + 0.60 * 0.5 + 0.30 * 0.6 = 0.542.",
        null_rule="not_applicable without a shift or a turn, and always in the profile legacy; "
        "missing_input if recovery is unknown of every shift, or no turn has both texts",
    ),
    *(
        _metric(
            "dialogues",
            f"{metric.id}_mean",
            f"Mean of {metric.name[0].lower()}{metric.name[1:]}",
            _CONSISTENT,
            symbols=(
                ("T", f"turns with a value of `{metric.id}`"),
                ("v_t", f"value of turn t (`{metric.id}`)"),
            ),
            latex=r"\frac{1}{|T|} \sum_{t \in T} v_t",
            reading=metric.reading,
            example="Values 0.5 and 1.0: 0.75.",
            null_rule=_GOLD_MEAN_RULE,
        )
        for metric in TURN_METRICS
        if metric.id.startswith("dst_")
    ),
    _metric(
        "dialogues",
        "missing_concepts_total",
        "Missing concepts",
        _DELTAS,
        symbols=(_TURNS, _CONCEPTS_U, _CONCEPTS_S),
        latex=r"\sum_{t \in T} |E_U \setminus E_S|",
        reading="Concepts of the user that the answers leave out.",
        example="Two turns with 1 and 2 missing concepts: 3.",
        maximum=None,
        better="lower",
        unit="concepts",
    ),
    _metric(
        "dialogues",
        "hallucinated_concepts_total",
        "Hallucinated concepts",
        _DELTAS,
        symbols=(_TURNS, _CONCEPTS_U, _CONCEPTS_S),
        latex=r"\sum_{t \in T} |E_S \setminus E_U|",
        reading="Concepts that answers bring in although the user did not name them.",
        example="Two turns with 0 and 4 such concepts: 4.",
        maximum=None,
        better="lower",
        unit="concepts",
    ),
)

METRICS = (*DIALOGUE_METRICS, *TURN_METRICS, *SEGMENT_METRICS, *SHIFT_METRICS)
"""Every metric of the suite, those of dialogues first."""
