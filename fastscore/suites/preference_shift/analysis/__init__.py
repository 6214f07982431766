"""The analysis of a run of preference_shift: findings, ablations, sensitivity, validity, figures.

Everything is computed from the committed tables; nothing is scored again. The same run and judge's
file give the same files, byte for byte.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars import col as C

from fastscore.suites.base import AnalysisContents, AnalysisSettings, CommittedRun
from fastscore.suites.judged import collect_judged, describe_rejects
from fastscore.suites.preference_shift.analysis.figures import MODELS_SHOWN, draw_figures
from fastscore.suites.preference_shift.analysis.tables import (
    ALL,
    GROUP_SCHEMA,
    HEADLINES,
    MODEL,
    SCORE_NAMES,
    UNIT,
    Scored,
    ablations,
    components,
    construct_validity,
    convergent_validity,
    make_scored,
    segment_similarities,
    untestable,
    weight_grid,
    window_sweep,
)
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import concepts_of
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.showing import Drawing, Listing, Row, Section

Shown = tuple[str, str | Callable[[Row], str]]
"""A column's heading, and the name of the table's column or what to write of a row."""

_DASH = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"


def _cell(value: Any) -> str:
    if value is None:
        return _DASH
    if isinstance(value, float):
        return f"{value:.3f}".replace("-", _MINUS)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _interval(value: str, ends: str) -> Callable[[Row], str]:
    def write(row: Row) -> str:
        low, high = row[f"{ends}low"], row[f"{ends}high"]
        if low is None or high is None:
            return _cell(row[value])
        return f"{_cell(row[value])} [{_cell(low)}, {_cell(high)}]"

    return write


def _p(column: str) -> Callable[[Row], str]:
    """Write a p-value, or the reason why the row has none."""

    def write(row: Row) -> str:
        if row[column] is None and row.get("reason") and "holm" not in column:
            return str(row["reason"]).replace("_", " ")
        is_small = row[column] is not None and row[column] < 0.001
        return "< 0.001" if is_small else _cell(row[column])

    return write


def _group(row: Row) -> str:
    return "all" if row["group"] == ALL else str(row["value"])


def _score(row: Row) -> str:
    return SCORE_NAMES[row["score"]]


def _variant(row: Row) -> str:
    words = str(row["variant"]).split("_")
    return " ".join(word.upper() if word in SCORE_NAMES else word for word in words)


def _contrast(row: Row) -> str:
    return f"{row['first']} {_MINUS} {row['second']}"


_SHOWN: dict[str, Shown] = {
    "group": ("group", _group),
    "score": ("score", _score),
    "variant": ("variant", _variant),
    "contrast": ("contrast", _contrast),
    "n_units": ("units", "n_units"),
    "n_pair_units": ("units", "n_pair_units"),
    "n_null": ("null", "n_null"),
    "n_null_score": ("score null", "n_null_score"),
    "n_null_judge": ("judge null", "n_null_judge"),
    "n_pairs": ("pairs", "n_pairs"),
    "mean": ("mean [95 % CI]", _interval("mean", "")),
    "mean_first": ("first", "mean_first"),
    "mean_second": ("second", "mean_second"),
    "difference": ("difference [95 % CI]", _interval("difference", "difference_")),
    "effect_g": ("Hedges\u2019 g [95 % CI]", _interval("effect_g", "effect_")),
    "p": ("p", _p("p")),
    "holm_p": ("p (Holm)", _p("holm_p")),
    "rho": ("\u03c1 [95 % CI]", _interval("rho", "rho_")),
    "rho_p": ("p", _p("rho_p")),
    "rho_holm_p": ("p (Holm)", _p("rho_holm_p")),
    "detectable_rho": ("detectable", "detectable_rho"),
    "tau": ("\u03c4 [95 % CI]", _interval("tau", "tau_")),
    "tau_p": ("p of \u03c4", _p("tau_p")),
    "n_turns": ("turns", "n_turns"),
    "share_of_turns": ("share of turns", "share_of_turns"),
    "n_conversations": ("conversations", "n_conversations"),
}
"""How columns of tables are headed and written; others as they are called, by `_cell`."""

_DIFFERENCE = ("difference", "effect_g", "p", "holm_p", "detectable")
_COMPONENTS = ("group", "score", "n", "n_units", "n_null", "mean", "sd", "median")
_ABLATIONS = ("group", "variant", "n", "n_null", "mean", "rank", "n_pairs", *_DIFFERENCE)
_CONSTRUCT = (
    *("score", "contrast", "n", "n_pair_units", "n_null", "mean_first", "mean_second"),
    *_DIFFERENCE,
)
_TOP_CONCEPTS = ("kind", "concept", "n_turns", "share_of_turns", "n_conversations")
_CONVERGENT = (
    *("score", "judge", "n", "n_units", "n_null_score", "n_null_judge"),
    *("rho", "rho_p", "rho_holm_p", "detectable_rho", "tau", "tau_p"),
)
_TOP_SHOWN = 10

Tables = Mapping[str, pl.DataFrame]


def models_table(tables: Tables) -> Listing:
    """List the models, or all conversations, with the mean of each score in a column."""
    components = tables["components"]
    is_model = C("group") == "model"
    rows = components.filter(is_model if components.select(is_model.any()).item() else True)
    records = rows.rows(named=True)
    means = rows.with_columns(
        pl.Series("text", map(_interval("mean", ""), records), pl.String).str.replace_all(
            " ", "\n"
        ),
        pl.Series("model", map(_group, records), pl.String),
        C("score").replace_strict(SCORE_NAMES),
        n=C("n").max().over("value"),
    )
    wide = means.pivot("score", index=["model", "n"], values="text")
    title = "Means of the scores, with 95 % confidence intervals"
    return Listing(title=title, frame=wide, written=tuple(wide.columns[2:]))


def sweep_table(tables: Tables) -> Listing:
    """List the recovery rate, a column a window."""
    rates = tables["window_sweep"]
    windows = rates["window"].unique().sort()
    most = C("n_shifts").max().over("group", "value")
    wide = rates.with_columns(most).pivot(
        "window", index=["group", "value", "n_shifts"], values="rate"
    )
    names = {"n_shifts": "shifts at most"} | {f"{window}": f"W = {window}" for window in windows}
    shown = ("group", *names.values())
    return _listing("Recovery rate by window", shown, wide.rename(names), words=1)


def top_concepts_table(tables: Tables) -> Listing:
    """List the most frequent concepts of each kind over all conversations and fields."""
    rows = (
        tables["top_concepts"]
        .filter(group=ALL)
        .sort(C("kind") == "hallucinated", -C("n_turns"), "concept")
        .filter(pl.int_range(pl.len()).over("kind") < _TOP_SHOWN)
    )
    return _listing("Concepts that differ most often", _TOP_CONCEPTS, rows, words=2)


def weights_table(tables: Tables) -> list[Listing]:
    """List the ranks of the models over all choices of weights; nothing for one model."""
    ranked = tables["weight_grid"].drop_nulls("rank")
    if ranked.is_empty():
        return []
    rank = C("rank")
    rows = ranked.group_by("group", "value", maintain_order=True).agg(
        (rank == 1).sum().alias("first at"),
        rank.min().alias("best rank"),
        rank.max().alias("worst rank"),
    )
    title = f"Ranks by TAS at {ranked.select(C('^w_.*$')).n_unique()} choices of weights"
    return [_listing(title, ("group", *rows.columns[2:]), rows, words=1)]


def convergent_table(tables: Tables) -> list[Listing]:
    """List the correlations over all conversations; nothing without a judge."""
    rows = tables["convergent_validity"].filter(group=ALL)
    if rows.is_empty():
        return []
    title = "Rank correlations of conversations within models" + _family(rows)
    ordered = rows.sort("is_headline", descending=True, maintain_order=True)
    return [_listing(title, _CONVERGENT, ordered, words=2)]


def _family(rows: pl.DataFrame) -> str:
    """Return how many tests Holm's procedure corrected."""
    size = rows["family"].drop_nulls()
    return f"; Holm over a family of {size[0]}" if size.len() else ""


def _listing(title: str, shown: Sequence[str], table: pl.DataFrame, *, words: int) -> Listing:
    """Write columns of a table, the first of which are words, the others numbers."""
    rows, columns = table.rows(named=True), {}
    for name in shown:
        heading, what = _SHOWN.get(name, (name, name))
        texts = [_cell(row[what]) if isinstance(what, str) else what(row) for row in rows]
        columns[heading] = pl.Series(texts, dtype=pl.String)
    frame = pl.DataFrame(columns)
    return Listing(title=title, frame=frame, written=tuple(frame.columns[words:]))


_EXPECTED = {("at", "before"): -1, ("after", "at"): 1, ("within", "across"): 1}
"""The sign of a headline contrast that controlled shifts should have."""


def _leading(tables: Tables) -> list[str]:
    means = tables["components"].filter(group="model").drop_nulls("mean")
    found = []
    for score in HEADLINES:
        rows = means.filter(score=score).sort("mean", descending=True).rows(named=True)
        if len(rows) > 1:
            first, last = (
                f"{row['value']} ({_interval('mean', '')(row)})" for row in (rows[0], rows[-1])
            )
            found.append(f"Mean {SCORE_NAMES[score]} is highest for {first}, lowest for {last}.")
    return found


def _contrasts(tables: Tables) -> list[str]:
    rows = tables["construct_validity"].filter(group=ALL)
    found = []
    for row in rows.drop_nulls("difference").iter_rows(named=True):
        sign = _EXPECTED[row["first"], row["second"]]
        is_expected = sign * row["difference"] > 0
        outcome = "as expected" if is_expected else "against what controlled shifts should show"
        if not row["is_significant"]:
            outcome = f"expected {'above' if sign > 0 else 'below'} 0, but not significant"
        difference = _interval("difference", "difference_")(row)
        found.append(
            f"{_score(row)}, {_contrast(row)}: {difference}, {outcome} "
            f"(p {_p('holm_p')(row)}, Holm over {row['family']})."
        )
    return found


def _judged(tables: Tables) -> list[str]:
    rows = tables["convergent_validity"].filter("is_headline", group=ALL)
    return [
        f"{_score(row)} and the judge's {row['judge']}: \u03c1 = {_interval('rho', 'rho_')(row)} "
        f"within models over {row['n']:,} conversations (p {_p('rho_holm_p')(row)}, Holm)."
        for row in rows.drop_nulls("rho").iter_rows(named=True)
    ]


MOST_OVER_ALL, MOST_OF_A_MODEL = 200, 100
"""How many concepts of a field are listed, as the successor of the public evaluation lists them."""

TOP_CONCEPTS_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "kind": pl.String(),
    "field": pl.String(),
    "rank": pl.Int64(),
    "concept": pl.String(),
    "n_turns": pl.Int64(),
    "n_conversations": pl.Int64(),
    "share_of_turns": pl.Float64(),
}
"""A concept that only the user (``missing``) or only the system (``hallucinated``) often has."""


def top_concepts(turns: pl.LazyFrame) -> pl.DataFrame:
    """List the concepts that are missing or hallucinated most often, by field."""
    counted = pl.concat(
        turns.select("dialogue", "model", concept=f"{kind}_concepts")
        .explode("concept")
        .drop_nulls("concept")
        .group_by("model", "concept")
        .agg(
            kind=pl.lit(kind),
            n_turns=pl.len().cast(pl.Int64),
            n_conversations=C("dialogue").n_unique().cast(pl.Int64),
        )
        for kind in ("missing", "hallucinated")
    ).collect()
    n_turns = turns.group_by(value="model").agg(turns=pl.len()).collect()
    over_all = (
        counted.group_by("kind", "concept")
        .agg(C("n_turns", "n_conversations").sum())
        .with_columns(turns=n_turns["turns"].sum(), value=pl.lit(None, dtype=pl.String))
    )
    parts = [_ranked(over_all, ALL, MOST_OVER_ALL)]
    if n_turns["value"].drop_nulls().len() > 1:
        of_models = counted.rename({"model": "value"}).join(n_turns, on="value")
        parts.append(_ranked(of_models, MODEL, MOST_OF_A_MODEL))
    return pl.concat(parts)


def _ranked(counted: pl.DataFrame, group: str, most: int) -> pl.DataFrame:
    """Keep the most frequent concepts of each kind and field, ranked."""
    rank = pl.int_range(1, 1 + pl.len(), dtype=pl.Int64).over("value", "kind", "field")
    return (
        counted.with_columns(
            group=pl.lit(group),
            field=C("concept").str.split_exact("=", 1).struct[0],
            share_of_turns=C("n_turns") / C("turns"),
        )
        .sort("value", C("kind") == "hallucinated", "field", -C("n_turns"), "concept")
        .with_columns(rank=rank)
        .filter(C("rank") <= most)
        .select(*TOP_CONCEPTS_SCHEMA)
    )


def read_weights(scored: Scored) -> tuple[pl.DataFrame | None, str]:
    """Read the catalogue that the run names, if it is still there as it was."""
    path = Path(scored.options.catalogue)
    try:
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        return None, f"{path}: the run's catalogue cannot be read ({error.strerror})."
    if f"catalogue=blake2b:{digest}" not in scored.signature.split("|"):
        return None, f"{path}: not the catalogue that the run was scored with."
    return concepts_of(load_catalogue(scored.options.catalogue), scored.options).weights, ""


TITLE = "Adaptation to preference shifts"


def analyse_run(
    run: CommittedRun,
    judgements: tuple[pl.DataFrame, pl.DataFrame] | None,
    options: PreferenceShift,
    settings: AnalysisSettings,
) -> AnalysisContents:
    """Analyse a run of preference_shift."""
    scored = make_scored(run.tables, options, run.signature, settings.unit or UNIT)
    judged = collect_judged(
        scored.conversations, judgements, settings.judge_scale, settings.judge_columns
    )
    weights, missing = read_weights(scored)
    cosines = None
    if weights is None:
        missing += " CR is not compared within and across segments."
    else:
        cosines = segment_similarities(run.tables["turns"], weights, scored.conversations)
    tables = {
        "components": components(scored),
        "ablations": ablations(scored),
        "weight_grid": weight_grid(scored),
        "window_sweep": window_sweep(scored),
        "convergent_validity": convergent_validity(scored, judged),
        "construct_validity": construct_validity(scored, cosines),
        "top_concepts": top_concepts(run.tables["turns"]),
        "judge_rejects": judged.rejects,
    }
    drawn = {each.name: each for each in draw_figures(scored, judged, tables)}
    too_few = untestable(tables["convergent_validity"])
    notes = tuple(filter(None, (missing, describe_rejects(judged), _left_out(scored), too_few)))
    return AnalysisContents(
        title=TITLE,
        facts=_facts(scored),
        findings=(*_leading(tables), *_contrasts(tables), *_judged(tables)),
        sections=_sections(drawn, tables),
        tables=tables,
        notes=notes,
    )


NOTHING_DRAWN = (
    " Nothing to draw here: no conversation has what this figure needs (a shift, or a judge's "
    "score)."
)


def _sections(drawn: Mapping[str, Drawing], tables: Tables) -> tuple[Section, ...]:
    """Fill the parts of the page: each has a heading, what it answers, figures and tables."""
    ablated = tables["ablations"]
    contrasts = tables["construct_validity"].filter(group=ALL)

    def section(
        title: str, text: str, *listings: Listing, figures: tuple[str, ...] = ()
    ) -> Section:
        found = tuple(drawn[name] for name in figures if name in drawn)
        note = NOTHING_DRAWN if len(found) < len(figures) else ""
        return Section(title=title, text=text + note, drawings=found, listings=listings)

    return (
        section("Models by scores", "A column's heading sorts the models.", models_table(tables)),
        section(
            "Scores and their parts",
            "TAS and CAS with what they are made of, over conversations.",
            _listing("Scores by group", _COMPONENTS, tables["components"], words=2),
            figures=("distributions", "radar"),
        ),
        section(
            "Turn by turn", "How CC, CR and copying move in one dialogue.", figures=("timelines",)
        ),
        section(
            "Concepts that are missing or hallucinated",
            "Which concepts of the user the answers lack, and which they bring in unasked, by the "
            "number of turns. Each field's and each model's are in tables/top_concepts.csv.",
            top_concepts_table(tables),
        ),
        section(
            "Recovery",
            "How soon the answers fit again after a shift. The window is varied over the scores of "
            "the turns; nothing is scored again.",
            sweep_table(tables),
            figures=("recovery",),
        ),
        section(
            "Ablations",
            "Each score without some of its parts. Differences are paired by conversation. Tests "
            "are t tests with cluster-robust errors, those of the intervals.",
            _listing("Variants of TAS and CAS" + _family(ablated), _ABLATIONS, ablated, words=2),
            figures=("ablations",),
        ),
        section(
            "Weights",
            "Whether the order of models hangs on the choice of weights. The whole grid is in "
            "tables/weight_grid.csv.",
            *weights_table(tables),
        ),
        section(
            "Construct validity",
            "Controlled shifts should show: CC drops at a shift and recovers, CR is higher within "
            "segments than across them. These three contrasts are tested together. Differences are "
            "paired by conversation. Tests are t tests with cluster-robust errors. Each model's "
            "contrasts are in tables/construct_validity.csv.",
            _listing(
                "Paired contrasts over all conversations" + _family(contrasts),
                _CONSTRUCT,
                contrasts,
                words=2,
            ),
        ),
        section(
            "Convergent validity",
            "Whether the scores order conversations as the judge does. Conversations are ranked "
            "within their model, so differences between models add nothing. TAS and CAS with the "
            "judge's overall score are tested together; the other correlations are exploratory. p "
            "counts every order of up to eight units if each has one conversation with every "
            "model. Otherwise it is the t test of the jackknife interval. Each model's "
            "correlations are in tables/convergent_validity.csv.",
            *convergent_table(tables),
            figures=("judge",),
        ),
    )


def _left_out(scored: Scored) -> str:
    left_out = scored.models[MODELS_SHOWN:]
    if not left_out:
        return ""
    return (
        f"Figures show the first {MODELS_SHOWN} of {len(scored.models)} models by name; the tables "
        f"have all. Left out: {', '.join(left_out)}."
    )


def _facts(scored: Scored) -> tuple[str, ...]:
    units = scored.conversations["cluster"].n_unique()
    unit = "the dialogue, with the answers of all models to it"
    if scored.unit != UNIT:
        unit = f"the value of column {scored.unit}"
    return (
        f"{scored.conversations.height:,} conversations, {scored.turns.height:,} turns, "
        f"{scored.shifts.height:,} shifts and {len(scored.models):,} models. Scores come from "
        "grounded concept overlap in a closed set of items. A judge is a check on them, not the "
        "truth.",
        f"The unit of intervals and tests is {unit}: {units:,} units. Intervals have 95 %. Tests "
        "are two-sided, and Holm's procedure corrects the headline tests of each table and group. "
        "A result is significant if its corrected p is below 0.05 and its interval excludes 0.",
    )
