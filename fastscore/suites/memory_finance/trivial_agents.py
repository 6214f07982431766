"""What assistants score that pay no attention: one that always refuses, one that recites keywords.

A refusal has no keyword: it breaks no constraint and no rule, discloses no risk and explains
nothing, and its label is compliant. A recital has one keyword of every risk and every element of
explanation in the lexicon, so it discloses all risks and explains all that the lexicon knows.
Memory (M1) and profiles (M2) are not a reply's: they have no such baseline.
"""

from collections.abc import Mapping

import polars as pl

from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.metrics import RECITING, REFUSING
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.replies import judge_scores
from fastscore.suites.memory_finance.schema import DIALOGUES

_KEY = list(DIALOGUES.dialogue_key)


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: MemoryFinance
) -> pl.DataFrame:
    """Score both assistants on the log of these tables.

    Returns
    -------
    pl.DataFrame
        ``agent``, the key of a dialogue, and the metrics that declare a baseline.
    """
    lexicon = load_lexicon(options.lexicon)
    disclosed = [tag.name for tag in lexicon.risk_tags if tag.keywords or tag.any_tag]
    elements = list(lexicon.explanation_elements)
    labelled = tables["turns"].select(
        *_KEY,
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
    refusing = turns.group_by(_KEY).agg(
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
    reciting = turns.group_by(_KEY).agg(
        pl.lit(RECITING).alias("agent"),
        risk_coverage=_ratio("n_disclosed", "n_risks", "eligible_m3"),
        strict_risk_coverage_rate=is_covered.filter("eligible_m3").mean(),
        rubric_hit_rate=_ratio("n_explained", "n_elements", "eligible_m5"),
        judge_score_mean=pl.col("judged").filter("eligible_m5").mean(),
    )
    first = ["agent", *_KEY]
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
