"""M8 and M12 to M14: how near plans and resolutions are to preferences, in words and meaning."""

import polars as pl
from polars import col as C

from fastscore.suites.declarations import Fixed, Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.metrics.plan import OF_PAIRS
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import (
    Informative,
    Similarity,
    TextCodes,
    find_evidence,
    reaches,
)
from fastscore.suites.showing import EvidenceRows

_NOTHING_COMPARED = NullRule(
    C("n_compared") == 0,
    "not_applicable",
    "every actionable preference is a placeholder, such as N/A",
)
_LEAST_MEAN = 1e-12
"""A mean that is no more is 0."""
_STATED = ("P", "preferences of all members for all slots")
_SIMILARITY = (r"\operatorname{sim}(a, b)", "cosine of the vectors of texts a and b, at least 0")


M8 = use.ratio(
    "M8",
    "Preference addressing score",
    Formula(
        r"\mathrm{M8} = \frac{|A|}{|P|}",
        _STATED,
        ("A", "preferences of P that the synthesis of their slot or the plan's text addresses"),
    ),
    scale=Scale("higher", by="enable_synthesis"),
    null_when=(
        use.UNKNOWN_PREFERENCE,
        use.UNKNOWN_PRESENTATION,
        use.UNKNOWN_SYNTHESIS,
        use.NO_PREFERENCE,
        NullRule(
            ~C("enable_synthesis") & (C("M8b_den") == 0),
            "missing_input",
            "synthesis is not enabled and the plan has no text",
        ),
    ),
    evidence=(use.of_pairs("addressed", "addressed_synthesis", "addressed_plan"),),
    reading="The share of preferences that the system mentions. M8 >= max(M8a, M8b).",
    example="28 preferences, 16 of them addressed by either text: 16 / 28 = 0.571.",
    note=(
        "A preference is addressed by lexical evidence, or by a similarity of at least "
        "`--address-sim` (0.45) to one of the texts. Similarity reads the first 400 lines of a "
        "plan. M8 also counts lexical evidence over both texts together. Without synthesis, M8 is "
        "M8b."
    ),
    baselines=(use.QUOTING,),
    uses=(use.PREFERENCES, use.SYNTHESIS, use.PLAN_TEXT, use.EMBEDDER),
)
M8A = use.ratio(
    "M8a",
    "Preference addressing score of the synthesis",
    Formula(
        r"\mathrm{M8a} = \frac{|A|}{|P|}",
        _STATED,
        ("A", "preferences of P that the synthesis of their slot addresses"),
    ),
    null_when=(use.NO_SYNTHESIS, use.UNKNOWN_PREFERENCE, use.UNKNOWN_SYNTHESIS, use.NO_PREFERENCE),
    evidence=(
        use.of_pairs(
            "addressed_synthesis", "synthesis_phrase", "synthesis_hits", "synthesis_similarity"
        ),
    ),
    reading="The share of preferences that the system acknowledges before it plans.",
    example="28 preferences, 15 of them addressed by a synthesis: 15 / 28 = 0.536.",
    role="part",
    fixed_where=(use.NOT_SYNTHESISED,),
    uses=(use.PREFERENCES, use.SYNTHESIS, use.EMBEDDER),
    source="Metric Reference, M8",
)
M8B = use.ratio(
    "M8b",
    "Preference addressing score of the plan",
    Formula(
        r"\mathrm{M8b} = \frac{|A|}{|P|}",
        _STATED,
        ("A", "preferences of P that a presentation or the raw output addresses"),
    ),
    null_when=(
        use.UNKNOWN_PREFERENCE,
        use.UNKNOWN_PRESENTATION,
        NullRule(
            C("M8b_den") == 0, "missing_input", "no preference is stated or the plan has no text"
        ),
    ),
    evidence=(use.of_pairs("addressed_plan", "plan_phrase", "plan_hits", "plan_similarity"),),
    reading="The share of preferences that the words of the plan reflect.",
    example="28 preferences, 6 of them addressed by the plan's text: 6 / 28 = 0.214.",
    role="part",
    uses=(use.PREFERENCES, use.PLAN_TEXT, use.EMBEDDER),
    source="Metric Reference, M8",
)
M12 = use.ratio(
    "M12",
    "Semantic preference satisfaction",
    Formula(
        r"\mathrm{M12} = \frac{1}{|A|} \sum_{k \in A} \operatorname{sim}(k, t_k)",
        ("A", "actionable preferences, except placeholders such as N/A"),
        ("t_k", "the plan's entries for the slot of preference k, and the raw output"),
        _SIMILARITY,
    ),
    null_when=(*OF_PAIRS, _NOTHING_COMPARED, use.NO_EMBEDDER),
    evidence=(use.of_pairs("slot_similarity"),),
    reading="The mean nearness of plan and preferences. The raw output of all slots dilutes it.",
    example="16 cosines from 0.24 to 0.54 in equal steps: 6.24 / 16 = 0.39.",
    note="A text that is longer than the model takes is read in windows.",
    uses=(use.PREFERENCES, use.PLAN, use.PLAN_TEXT, use.EMBEDDER),
)
M13 = Metric(
    id="M13",
    name="Fairness (Gini coefficient)",
    formula=Formula(
        r"\mathrm{M13} = \frac{\sum_{i=1}^{n} \sum_{j=1}^{n} |x_i - x_j|}{2 n^2 \bar{x}}",
        ("x_i", "mean similarity of member i's preferences in M12"),
        ("n", "number of members with such a mean"),
        (r"\bar{x}", "mean of $x_i$"),
    ),
    scale=Scale("lower"),
    null_when=(*OF_PAIRS, _NOTHING_COMPARED, use.NO_EMBEDDER),
    evidence=(
        EvidenceRows(within="members", names=("member",), columns=("semantic_mean", "pairs")),
    ),
    derivation="Gini coefficient of {semantic_mean}",
    reading="0: members are treated alike. The maximum is (n - 1) / n. One member, or a mean of 0, "
    "gives 0.",
    example="x = 0.38, 0.41, 0.39, 0.40: 0.2 / (2 * 16 * 0.395) = 0.0158.",
    role="headline",
    fixed_where=(Fixed("multi_user", False),),
    uses=(use.PREFERENCES, use.PLAN, use.PLAN_TEXT, use.EMBEDDER),
    source="Metric Reference, M13",
)
M14 = use.ratio(
    "M14",
    "Concession rate",
    Formula(
        r"\mathrm{M14} = \frac{1}{|A|} \sum_{k \in A} \operatorname{sim}(k, r_k)",
        (
            "A",
            "actionable preferences for slots with a `resolution_explanation`, except placeholders",
        ),
        ("r_k", "last explanation of the resolution of the slot of preference k"),
        _SIMILARITY,
    ),
    null_when=(
        use.NO_SYNTHESIS,
        NullRule(
            C("no_resolved"),
            "missing_input",
            "the text or the member of a preference for such a slot was not given",
        ),
        NullRule(
            C("n_resolved") == 0,
            "not_applicable",
            "no actionable preference, except placeholders, is for a slot with a "
            "`resolution_explanation`",
        ),
        use.NO_EMBEDDER,
    ),
    evidence=(use.of_pairs("resolution_similarity"),),
    reading="The mean nearness of negotiated resolutions and preferences.",
    example="Similarities 0.35 and 0.67: 1.02 / 2 = 0.51.",
    note="The plan does not replace a missing explanation.",
    fixed_where=(use.NOT_SYNTHESISED,),
    uses=(use.PREFERENCES, use.SYNTHESIS, use.EMBEDDER),
)
METRICS = (M8, M8A, M8B, M12, M13, M14)


def address_pairs(
    frames: dict[str, pl.DataFrame],
    texts: TextCodes,
    informative: Informative,
    similarity: Similarity,
    options: GroupTravel,
) -> pl.DataFrame:
    """Find what addresses each pair: a synthesis of its slot, the plan's text, or both together."""
    pairs = frames["pairs"]
    dialogue, slot = pairs["dialogue_row"], pairs["slot_row"]
    of_synthesis, of_plan = (
        frames["synthesis_texts"]["slot_row"],
        frames["plan_texts"]["dialogue_row"],
    )
    synthesis, plan = texts.said("synthesis_texts", of_synthesis), texts.said("plan_texts", of_plan)
    slots = pairs.select("slot_row", owner="dialogue_row").unique("slot_row", maintain_order=True)
    to_slots = slots.join(plan, on="owner", maintain_order="left_right")
    both = pl.concat([synthesis, to_slots.select(owner="slot_row", text="text")])
    in_synthesis = find_evidence(texts, informative, slot, synthesis)
    in_plan = find_evidence(texts, informative, dialogue, plan)
    in_both = find_evidence(texts, informative, slot, both)

    wish, lines = similarity.vectors["pairs"], frames["plan_lines"]["dialogue_row"]
    to_synthesis = similarity.nearest(wish, slot, "synthesis_texts", of_synthesis)
    to_plan = similarity.nearest(wish, dialogue, "plan_lines", lines)
    found = pl.DataFrame(
        {
            "synthesis_hits": in_synthesis.hits,
            "synthesis_phrase": in_synthesis.phrase,
            "synthesis_similarity": to_synthesis,
            "near_synthesis": reaches(to_synthesis, options.address_sim),
            "plan_hits": in_plan.hits,
            "plan_phrase": in_plan.phrase,
            "plan_similarity": to_plan,
            "near_plan": reaches(to_plan, options.address_sim),
            "synthesis_says": in_synthesis.addressed,
            "plan_says": in_plan.addressed,
            "both_say": in_both.addressed,
            "is_synthesised": frames["dialogues"]["enable_synthesis"].gather(dialogue),
            "has_plan_text": dialogue.is_in(of_plan.implode()),
        }
    )
    by_synthesis = pl.any_horizontal("synthesis_says", "near_synthesis")
    by_plan = pl.any_horizontal("plan_says", "near_plan")
    return found.select(
        C("^(synthesis|plan)_(hits|phrase|similarity)$"),
        addressed_synthesis=pl.when("is_synthesised").then(by_synthesis),
        addressed_plan=pl.when("has_plan_text").then(by_plan),
        addressed=pl.when(pl.any_horizontal("is_synthesised", "has_plan_text")).then(
            by_synthesis | by_plan | C("both_say")
        ),
    )


def compare_slots(frames: dict[str, pl.DataFrame], similarity: Similarity) -> pl.DataFrame:
    """Compare pairs with the plan's entries and with the resolution of their slot."""
    resolutions = frames["resolutions"].select(
        "slot_row", resolution=similarity.vectors["resolutions"], is_explained=True
    )
    pairs = (
        frames["pairs"]
        .with_columns(wish=similarity.vectors["pairs"], has_text=C("compared").is_not_null())
        .join(
            similarity.targets.unique("choice", keep="last"),
            on="choice",
            how="left",
            maintain_order="left",
        )
        .join(resolutions, on="slot_row", how="left", maintain_order="left")
        .with_columns(
            is_compared=C("has_text") & C("choice").is_not_null(),
            is_resolved=C("has_text") & C("actionable") & C("is_explained").fill_null(False),
        )
    )
    resolution = pairs["resolution"].set(~pairs["actionable"], None)
    to_slot = similarity.cosines(pairs["wish"], pairs["target"], similarity.target_matrix)
    # a plan that says nothing is like nothing
    is_silent = pairs["is_compared"] & to_slot.is_null() & similarity.is_on
    return pairs.select(
        "is_compared",
        "is_resolved",
        slot_similarity=to_slot.set(is_silent, 0.0),
        resolution_similarity=similarity.cosines(pairs["wish"], resolution, similarity.matrix),
    )


def count_meaning(pairs: pl.DataFrame) -> pl.DataFrame:
    """Count the numerators and denominators of M8, M12 and M14 in each dialogue.

    ``n_pairs`` are its preferences, ``n_compared`` and ``n_resolved`` those that M12 and M14
    compare if there are vectors.
    """
    return pairs.group_by("dialogue_row").agg(
        n_pairs=pl.len(),
        M8_num=C("addressed").sum(),
        M8_den=pl.len(),
        M8a_num=C("addressed_synthesis").sum(),
        M8a_den=pl.len(),
        M8b_num=C("addressed_plan").sum(),
        M8b_den=C("addressed_plan").count(),
        n_compared=C("is_compared").sum(),
        M12_num=use.ascending_sum("slot_similarity"),
        M12_den=C("slot_similarity").count(),
        n_resolved=C("is_resolved").sum(),
        M14_num=use.ascending_sum("resolution_similarity"),
        M14_den=C("resolution_similarity").count(),
    )


def measure_fairness(members: pl.DataFrame) -> pl.DataFrame:
    """Measure M13 of each dialogue: the Gini coefficient of its members' ``semantic_mean``."""
    x, n = C("semantic_mean"), pl.len()
    # of ascending x_k: sum_i sum_j |x_i - x_j| = 2 sum_k (2 k + 1 - n) x_k, k from 0
    half_differences = ((2 * pl.int_range(n) + 1 - n) * x).cum_sum().last()
    ascending = members.drop_nulls("semantic_mean").sort("dialogue_row", "semantic_mean")
    sums = ascending.group_by("dialogue_row").agg(
        half_differences.alias("half_differences"), n=n, total=x.cum_sum().last()
    )
    gini = C("half_differences") / (C("n") * C("total"))
    is_positive = C("total") / C("n") > _LEAST_MEAN
    return sums.select("dialogue_row", M13=pl.when(is_positive).then(gini).otherwise(0.0))
