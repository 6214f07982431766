"""The suite's summary: every metric over all conversations, and by model.

Two trivial agents are scored beside it, by the definitions alone. A refusal has no concept and no
word of the user's, so CC is 1 if the user's text has no concept, else 0, and CR and copying are 0.
An echo has the user's concepts. Recovery is then tested as for any agent. Only turns that the run
could score count.
"""

from collections.abc import Mapping

import polars as pl
from fastscore_kernels import ngram_copy_ratio

from fastscore.suites.base import Aggregate
from fastscore.suites.preference_shift import schema
from fastscore.suites.preference_shift.metrics import ECHOING, METRICS, REFUSING
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.recovery import recover_shifts
from fastscore.suites.preference_shift.schema import DIALOGUES
from fastscore.suites.preference_shift.score import adaptation_score
from fastscore.suites.summary import summarise_metrics


def summarise_logs(
    tables: Mapping[str, pl.LazyFrame],
    options: PreferenceShift,
    *,
    cluster: str | None = None,
    aggregate: Aggregate = summarise_metrics,
) -> pl.DataFrame:
    """Summarise committed tables.

    Parameters
    ----------
    tables, options
        Each table has the model itself, so nothing is joined by conversation.
    cluster
        A column of every table: the unit of intervals in place of the conversation.
    aggregate
        What adds up metrics.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by model.
    """
    return aggregate(
        tables,
        METRICS,
        schema.GROUPS,
        suite="preference_shift",
        key=schema.TURNS.dialogue_key,
        cluster=cluster,
    )


_ROW = "dialogue_row"
_MEANS = {
    "cross_coherence": "cc",
    "context_retention": "cr",
    "topic_interference": "i",
    "context_adaptation_score": "tas",
}


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: PreferenceShift
) -> pl.DataFrame:
    """Score both agents on the log of these tables.

    Returns
    -------
    pl.DataFrame
        ``agent``, the key of a dialogue and the metrics that declare a baseline. No row in the
        profile legacy, whose recovery is by topics of the replies.
    """
    key = list(DIALOGUES.dialogue_key)
    dialogues = tables["dialogues"].select(key).with_row_index(_ROW).collect()
    turns, shifts = (
        tables[name]
        .select(*key, *columns)
        .join(dialogues.lazy(), on=key, nulls_equal=True)
        .sort(_ROW, "turn")
        .collect()
        for name, columns in (
            ("turns", ("turn", "cc", "user_concepts", "user_text")),
            ("shifts", ("turn",)),
        )
    )
    agents = {} if options.is_legacy else {REFUSING: _refuse(turns), ECHOING: _echo(turns, options)}
    frames = [
        _score(dialogues, turns, shifts, scores, options).select(
            pl.lit(agent).alias("agent"), pl.exclude(_ROW)
        )
        for agent, scores in agents.items()
    ]
    metrics = dict.fromkeys((*_MEANS, "topic_recovery_rate", "avg_recovery_delay"), pl.Float64())
    schema = {"agent": pl.String(), **dialogues.select(key).schema, **metrics}
    return pl.concat([pl.DataFrame(schema=schema), *frames])


def _refuse(turns: pl.DataFrame) -> pl.DataFrame:
    has_concepts = turns["user_concepts"].list.len() > 0
    return pl.select(
        pl.lit(~has_concepts).cast(pl.Float64).alias("cc"),
        pl.zeros(turns.height, eager=True).alias("cr"),
        pl.zeros(turns.height, eager=True).alias("i"),
    )


def _echo(turns: pl.DataFrame, options: PreferenceShift) -> pl.DataFrame:
    echoed = turns["user_text"].fill_null("")
    has_concepts = turns["user_concepts"].list.len() > 0
    return pl.select(
        pl.ones(turns.height, eager=True).alias("cc"),
        pl.lit(has_concepts).cast(pl.Float64).alias("cr"),
        pl.Series("i", ngram_copy_ratio(echoed, echoed, options.orders)),
    )


def _score(
    dialogues: pl.DataFrame,
    turns: pl.DataFrame,
    shifts: pl.DataFrame,
    scores: pl.DataFrame,
    options: PreferenceShift,
) -> pl.DataFrame:
    """Return the metrics of each dialogue, from CC, CR and copying of its turns."""
    cc, cr, copied = (scores[name].to_numpy() for name in ("cc", "cr", "i"))
    tas = pl.Series("tas", adaptation_score(cc, cr, copied, options))
    is_scored = turns["cc"].is_not_null()
    scores = pl.concat([turns.select(_ROW), scores, tas.to_frame()], how="horizontal").with_columns(
        pl.when(pl.lit(is_scored)).then(pl.col("cc", "cr", "i", "tas"))
    )
    found = recover_shifts(turns, dialogues.height, shifts, scores, options)
    means = scores.group_by(_ROW).agg(
        pl.col(column).mean().alias(id) for id, column in _MEANS.items()
    )
    recovered = found.group_by(_ROW).agg(
        pl.col("recovered").mean().alias("topic_recovery_rate"),
        pl.col("delay").mean().alias("avg_recovery_delay"),
    )
    return (
        dialogues.with_columns(pl.col(_ROW).cast(pl.Int64))
        .join(means.cast({_ROW: pl.Int64}), on=_ROW, how="left", maintain_order="left")
        .join(recovered.cast({_ROW: pl.Int64}), on=_ROW, how="left", maintain_order="left")
    )
