"""The suite's summary: means over dialogues (macro) beside ratios of sums (micro).

Two trivial assistants are scored beside it. A refusal has no keyword: it breaks no constraint and
no rule, discloses no risk and explains nothing, and its label is compliant. A recital has one
keyword of every risk and every element of explanation in the lexicon, so it discloses all risks and
explains all that the lexicon has. Memory (M1) and profiles (M2) do not depend on replies and have
no such baseline.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.stopping import StoppablePool

from fastscore.suites.base import Aggregate
from fastscore.suites.columns import hold_if_small
from fastscore.suites.memory_finance import schema
from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.metrics import (
    JUDGE_SCORE_1_5,
    METRICS,
    PROFILE_METRICS,
    RATIOS,
    RECITING,
    REFUSING,
)
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.replies import judge_scores
from fastscore.suites.memory_finance.schema import DIALOGUES
from fastscore.suites.summary import ALL, summarise_metrics

_SUMMED = tuple(
    dict.fromkeys(
        column
        for metric in RATIOS
        for column in (metric.numerator, metric.denominator)
        if column is not None
    )
)
_TURN_CASES = ("eligible_m1", "eligible_m3", "eligible_m4", "eligible_m5")
_ID_HASH = pl.col("dialogue").hash().alias("id_hash")
_RATIOS = tuple(
    pl.when(pl.col(metric.denominator or "") > 0)
    .then(pl.col(metric.numerator or "") / pl.col(metric.denominator or ""))
    .alias(metric.id)
    for metric in RATIOS
)


def summarise_traces(
    tables: Mapping[str, pl.LazyFrame],
    options: MemoryFinance,
    *,
    cluster: str | None = None,
    aggregate: Aggregate = summarise_metrics,
) -> pl.DataFrame:
    """Summarise committed tables.

    Dialogues of one id count as one in M1 and M3 to M5, as in the published evaluation; a line
    without an id is of the id "". M2 counts every line.

    Parameters
    ----------
    tables, options
        The tables by name, and the options of the run.
    cluster
        A column of every table: the unit of intervals in place of the dialogue.
    aggregate
        What adds up the metrics of lines. Those of ids need the lines of all parts.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by each label of `GROUPS`.
    """
    of_lines = [*PROFILE_METRICS, JUDGE_SCORE_1_5]
    # asked for several times
    columns = [metric.id for metric in PROFILE_METRICS]
    columns += ["dialogue", *schema.GROUPS, *_SUMMED, "null_reasons"]
    labels = (*schema.GROUPS, cluster) if cluster else schema.GROUPS
    columns = list(dict.fromkeys((*columns, *labels)))
    dialogues = hold_if_small(tables["dialogues"].select(columns)).lazy()
    settings: dict[str, Any] = {
        "groups": schema.GROUPS,
        "suite": "memory_finance",
        "cluster": cluster,
        "sole_reasons": dict.fromkeys((ratio.id for ratio in RATIOS), "not_applicable"),
    }
    with StoppablePool(max_workers=1) as pool:
        of_ids = pool.submit(
            lambda: summarise_metrics(
                {"dialogues": _merge_by_id(dialogues, labels)}, RATIOS, **settings
            )
        )
        placed = {**tables, "dialogues": dialogues}
        parts = aggregate(placed, of_lines, **settings), of_ids.result()
    return pl.concat(parts).sort(
        pl.col("group").cast(pl.Enum((ALL, *schema.GROUPS))),
        "value",
        pl.col("metric").cast(pl.Enum([metric.id for metric in METRICS])),
    )


def count_cases(tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Count what each metric is defined for, as the published summary does.

    Returns
    -------
    pl.DataFrame
        ``of`` (the metric and its unit), ``eligible``, ``skipped`` and ``failed``: turns of M1 and
        M3 to M5, of which none fails, and dialogues of M2, whose failed ones are skipped too.
    """
    turns = tables["turns"].select(pl.col(_TURN_CASES).sum(), pl.len().alias("rows"))
    dialogues = tables["dialogues"].select(
        eligible=pl.col("eligible_m2").sum(), rows=pl.len(), failed=(~pl.col("valid")).sum()
    )
    of_turns, of_dialogues = (
        frame.row(0, named=True) for frame in pl.collect_all([turns, dialogues], engine="streaming")
    )
    counted = [
        (f"{name.removeprefix('eligible_').upper()}, turns", of_turns[name], of_turns["rows"], 0)
        for name in _TURN_CASES
    ]
    m2 = ("M2, dialogues", *(of_dialogues[name] for name in ("eligible", "rows", "failed")))
    counted.insert(1, m2)
    return pl.DataFrame(
        [(of, eligible, rows - eligible, failed) for of, eligible, rows, failed in counted],
        schema={"of": pl.String, **dict.fromkeys(("eligible", "skipped", "failed"), pl.Int64)},
        orient="row",
    )


def _merge_by_id(dialogues: pl.LazyFrame, labels: Sequence[str]) -> pl.LazyFrame:
    """Add up the counts of valid dialogues of one id and form their ratios again.

    An id has the first of its labels by the alphabet. Only the sums of ids that come more than
    once are held in memory.
    """
    # whole hundredths: their sum is the same in any order
    hundredths = (pl.col("judge_score_sum") * 100).round().cast(pl.Int64)
    rows = dialogues.select("dialogue", *labels, *_SUMMED).with_columns(
        pl.col("dialogue").fill_null(""), judge_score_sum=hundredths
    )
    repeated = _repeated_hashes(rows)
    if repeated.len():
        hashed, found = rows.with_columns(_ID_HASH), pl.LazyFrame(repeated)
        merged = (
            hashed.join(found, on=repeated.name, how="semi")
            .group_by("dialogue")
            .agg(pl.col(*labels).min(), pl.col(*_SUMMED).sum())
            .collect(engine="streaming")
        )
        single = hashed.join(found, on=repeated.name, how="anti").select(merged.columns)
        rows = pl.concat([single, merged.lazy()])
    return rows.with_columns(pl.col("judge_score_sum") / 100).with_columns(_RATIOS)


def _repeated_hashes(rows: pl.LazyFrame) -> pl.Series:
    """Return the hashes that more than one row's id has; two ids of one hash do no harm."""
    hashes = rows.select(_ID_HASH).collect(engine="streaming").to_series()
    ascending = np.sort(hashes.to_numpy())
    repeats = ascending[1:] == ascending[:-1]
    return pl.Series(hashes.name, np.unique(ascending[1:][repeats]))


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
