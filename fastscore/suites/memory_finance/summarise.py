"""The summary of a run, what its metrics left aside, and the files of the published evaluation.

Sums of floats add from left to right in the order of the public code, so that the last bit agrees.
Ratios without a denominator are 0.0 there.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np
import polars as pl

from fastscore.suites.base import Summarised
from fastscore.suites.columns import hold_if_small
from fastscore.suites.declarations import Metric
from fastscore.suites.memory_finance import schema
from fastscore.suites.memory_finance.metrics import (
    COMPLIANCE_METRICS,
    EXPLANATION_METRICS,
    JUDGE_SCORE_1_5,
    MEMORY_SOURCES,
    PROFILE_METRICS,
    RATIOS,
    RECALL_METRICS,
    RISK_METRICS,
    SUMS,
    ratios_of,
)
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.schema import DEFAULT_TRACE_VERSION

_SUMMED = tuple(dict.fromkeys(column for metric in RATIOS for column in metric.micro or ()))
_TURN_CASES = ("eligible_m1", "eligible_m3", "eligible_m4", "eligible_m5")
_ID = "dialog_id"
_LABELS = ("dialogue", *schema.GROUPS)
_ID_HASH = pl.col(_ID).hash().alias("id_hash")
_RATIOS = tuple(
    pl.when(pl.col(below) > 0).then(pl.col(above) / pl.col(below)).alias(metric.id)
    for metric in RATIOS
    for above, below in ([metric.micro] if metric.micro else [])
)


def summarised(options: MemoryFinance, columns: Sequence[str]) -> list[Summarised]:
    """Summarise dialogues of one id as one in M1 and M3 to M5, as the published evaluation does.

    A line without an id is of the id "". M2 counts every line. Ids need the lines of all parts.
    Other columns than the groups, such as the run, tell dialogues of one id apart.
    """
    within = [name for name in dict.fromkeys(columns) if name not in (*_LABELS, _ID)]
    return [
        Summarised(metrics=[*PROFILE_METRICS, JUDGE_SCORE_1_5], groups=schema.GROUPS),
        Summarised(
            metrics=RATIOS,
            dialogues=partial(_merge_by_id, within=within),
            groups=schema.GROUPS,
            sole_reasons=dict.fromkeys((ratio.id for ratio in RATIOS), "not_applicable"),
            by_parts=False,
        ),
    ]


def count_cases(tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Count what each metric is defined for, as the published summary does."""
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


def _merge_by_id(dialogues: pl.LazyFrame, within: Sequence[str]) -> pl.LazyFrame:
    """Add up the counts of valid dialogues of one id and form their ratios again.

    An id has the first of its names and labels by the alphabet. Only the sums of ids that come more
    than once are held in memory.
    """
    # integer hundredths: their sum is the same in any order
    hundredths = (pl.col("judge_score_sum") * 100).round().cast(pl.Int64)
    held = hold_if_small(dialogues.select(_ID, *within, *_LABELS, *_SUMMED)).lazy()
    rows = held.with_columns(pl.col(_ID).fill_null(""), judge_score_sum=hundredths)
    repeated = _repeated_hashes(rows)
    if repeated.len():
        hashed, found = rows.with_columns(_ID_HASH), pl.LazyFrame(repeated)
        merged = (
            hashed.join(found, on=repeated.name, how="semi")
            .group_by(_ID, *within)
            .agg(pl.col(*_LABELS).min(), pl.col(*_SUMMED).sum())
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


TRACE_STEM = "dialog_trace"
_EXTENSIONS = (".gz", ".zst", ".jsonl", ".ndjson", ".json")

_SHARED_COUNTS = ("eligible_count", "skipped_count", "failed_count")


_TURN_METRICS: tuple[tuple[str, str, tuple[Metric, ...], tuple[str, ...]], ...] = (
    (
        "m1_context_continuity",
        "eligible_m1",
        RECALL_METRICS,
        (
            "required_key_total",
            "required_key_hit_total",
            *(f"{source}_hit_total" for source in MEMORY_SOURCES),
        ),
    ),
    ("m3_risk_coverage", "eligible_m3", RISK_METRICS, ("risk_required_total", "risk_hit_total")),
    ("m4_compliance", "eligible_m4", COMPLIANCE_METRICS, ("severe_count",)),
    (
        "m5_explainability",
        "eligible_m5",
        EXPLANATION_METRICS,
        ("rubric_required_total", "rubric_hit_total", "judge_scored_turns"),
    ),
)
"""The metrics of turns in the summary: their name there, which turns count, and what is counted.

Secondary ones are ratios of all turns, others of each dialogue too.
"""


def suffix_of(inputs: Sequence[str]) -> str:
    """Return what the first trace's name adds: ``_llm`` for ``dialog_trace_llm.jsonl.gz``."""
    name = PurePath(inputs[0]).name if inputs else ""
    for extension in _EXTENSIONS:
        name = name.removesuffix(extension)
    return name.removeprefix(TRACE_STEM) if name.startswith(TRACE_STEM) else ""


def legacy_files(
    tables: Mapping[str, pl.LazyFrame], inputs: tuple[str, ...], options: MemoryFinance
) -> dict[str, bytes]:
    """Return the published evaluation's files by name; none without the option."""
    if not options.legacy_files:
        return {}
    return published_files(
        {name: table.collect() for name, table in tables.items()},
        dataset_path=options.legacy_dataset_path or " ".join(inputs),
        suffix=suffix_of(inputs),
    )


def published_files(
    tables: Mapping[str, pl.DataFrame], *, dataset_path: str, suffix: str = ""
) -> dict[str, bytes]:
    """Make the published evaluation's files."""
    summary = legacy_summary(tables["turns"], tables["dialogues"], dataset_path)
    text = json.dumps(summary, ensure_ascii=False, indent=2)
    return {
        f"metrics_summary{suffix}.json": text.encode(),
        f"turn_eval{suffix}.jsonl": _turn_rows(tables["turns"]),
        f"report{suffix}.md": _report(summary).encode(),
    }


def legacy_summary(
    turns: pl.DataFrame, dialogues: pl.DataFrame, dataset_path: str
) -> dict[str, Any]:
    """Return the content of ``metrics_summary.json``."""
    first, *others = (_turn_metric(turns, *metric) for metric in _TURN_METRICS)
    metrics = [first, _profile_metric(dialogues), *others]
    status = dialogues["dialog_status"]
    return {
        "run_id": dialogues["run_id"][0] if dialogues.height else "",
        "trace_version": DEFAULT_TRACE_VERSION,
        "dataset_path": dataset_path,
        "metrics": {metric["metric_name"]: metric for metric in metrics},
        "counters": {
            "total_dialogs": dialogues.height,
            "valid_dialogs": int(dialogues["valid"].sum()),
            "skipped_dialogs": int((status == "skipped").sum()),
            "failed_dialogs": int((status == "failed").sum()),
            "total_turn_pairs": int(dialogues["n_turns"].sum()),
        },
    }


def _turn_metric(
    turns: pl.DataFrame, name: str, which: str, metrics: Sequence[Metric], counts: Sequence[str]
) -> dict[str, Any]:
    """Count turns by dialogue, and all of them in one sum, dialogues by first appearance."""
    of_all = [metric.id for metric in metrics if metric in RATIOS]
    of_dialogues = [metric.id for metric in metrics if metric in RATIOS and metric.role != "part"]
    named = turns.filter(which).with_columns(pl.col("dialog_id").fill_null(""))
    first_turn = pl.col("row").min().over("dialog_id")
    eligible = named.with_row_index("row").sort(first_turn, maintain_order=True)
    by_dialogue = eligible.group_by("dialog_id", maintain_order=True).agg(SUMS)
    ratios = pl.DataFrame(ratios_of(by_dialogue)).select(of_dialogues)
    # judge scores add turn by turn: sums of dialogues' sums would differ in the last digit
    total = eligible.select(SUMS)
    micro = pl.DataFrame(ratios_of(total)).fill_null(0.0).select(of_all)
    summed = total.with_columns(judge_scored_turns="m5_turns")
    macro = {column: _mean(ratios[column]) for column in of_dialogues}
    totals = (eligible.height, turns.height - eligible.height, 0)
    return {
        "metric_name": name,
        "micro": micro.row(0, named=True),
        "macro": macro,
        "counts": dict(zip(_SHARED_COUNTS, totals, strict=True))
        | summed.select(counts).row(0, named=True),
        "by_dialog": dict(zip(by_dialogue["dialog_id"], ratios.to_dicts(), strict=True)),
    }


def _mean(values: pl.Series) -> float:
    """Return the mean by the sum from left to right; 0.0 of nothing."""
    return float(np.cumsum(values.to_numpy())[-1]) / len(values) if len(values) else 0.0


def _profile_metric(dialogues: pl.DataFrame) -> dict[str, Any]:
    fields = [metric.id for metric in PROFILE_METRICS]
    eligible = dialogues.filter("eligible_m2")
    means = {field: _mean(eligible[field]) for field in fields[:-1]}
    total = 0.0
    for mean in means.values():
        total += mean
    micro = {**means, fields[-1]: total / 5}
    names = eligible["dialog_id"].fill_null("None").to_list()
    n_invalid = int((~dialogues["valid"]).sum())
    totals = (eligible.height, dialogues.height - eligible.height, n_invalid)
    return {
        "metric_name": "m2_profile_accuracy",
        "micro": micro,
        "macro": dict(micro),
        "counts": dict(zip(_SHARED_COUNTS, totals, strict=True)),
        "by_dialog": dict(zip(names, eligible.select(*fields).to_dicts(), strict=True)),
    }


def _report(summary: Mapping[str, Any]) -> str:
    counters = summary["counters"]
    lines = [
        "# MemFinRobot Eval Report",
        "",
        f"- run_id: `{summary['run_id']}`",
        f"- dataset: `{summary['dataset_path']}`",
        f"- counters: total={counters['total_dialogs']}, valid={counters['valid_dialogs']}, "
        f"skipped={counters['skipped_dialogs']}, failed={counters['failed_dialogs']}",
        "",
    ]
    for name, metric in summary["metrics"].items():
        lines += [f"## {name}", ""]
        for part in ("micro", "macro", "counts"):
            lines += [f"### {part.capitalize()}"]
            lines += [f"- {key}: `{_shown(value)}`" for key, value in metric[part].items()]
            lines += [""]
    return "\n".join(lines)


def _shown(value: float | int) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


_TURN_COLUMNS: tuple[str | pl.Expr, ...] = (
    "trace_version",
    "run_id",
    pl.col("dialog_id").fill_null(""),
    "turn_pair_id",
    *(f"eligible_m{number}" for number in range(1, 6)),
    "required_keys_raw",
    "resolved_keys",
    "key_hit_flags",
    "key_hit_sources",
    "m1_source_hits",
    "constraint_contradiction",
    "risk_required_tags",
    "risk_pred_tags",
    "risk_tag_hits",
    "forbidden_hits",
    "pred_compliance_label",
    "gt_compliance_label",
    "rubric_required",
    "rubric_hit_items",
    "judge_score_1_5",
)
"""The members of the published rows, in their order."""


def _turn_rows(turns: pl.DataFrame) -> bytes:
    write = json.JSONEncoder(ensure_ascii=False).encode
    rows = turns.select(_TURN_COLUMNS).iter_rows(named=True)
    return "".join(f"{write(row)}\n" for row in rows).encode()
