"""The analysis of a run of preference_shift: ablations, sensitivity, validity, figures, one page.

Everything is computed from the committed tables; nothing is scored again. The same run and judge's
file give the same files, byte for byte.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from fastscore.suites.base import AnalysisContents, AnalysisSettings, CommittedRun
from fastscore.suites.judged import collect_judged, describe_rejects
from fastscore.suites.preference_shift.analysis.figures import draw_figures
from fastscore.suites.preference_shift.analysis.model_figures import MODELS_SHOWN, Drawn
from fastscore.suites.preference_shift.analysis.scored import (
    ALL,
    SCORE_NAMES,
    UNIT,
    Scored,
    make_scored,
)
from fastscore.suites.preference_shift.analysis.tables import (
    ablations,
    components,
    read_weights,
    top_concepts,
    weight_grid,
    window_sweep,
)
from fastscore.suites.preference_shift.analysis.validity import (
    CONVERSATION,
    HEADLINES,
    construct_validity,
    convergent_validity,
    segment_similarities,
    untestable,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.showing import Row
from fastscore.svg import with_new_letters

Shown = tuple[str, str | Callable[[Row], str]]
"""A column's heading, and the name of the table's column or what to write of a row."""

_DASH = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", _MINUS)


def _cell(value: Any) -> str:
    if value is None:
        return _DASH
    if isinstance(value, float):
        return _number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _interval(value: str, ends: str) -> Callable[[Row], str]:
    def write(row: Row) -> str:
        low, high = row[f"{ends}low"], row[f"{ends}high"]
        if low is None or high is None:
            return _cell(row[value])
        return f"{_number(row[value])} [{_number(low)}, {_number(high)}]"

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


_COMPONENTS: tuple[Shown, ...] = (
    ("group", _group),
    ("score", _score),
    ("n", "n"),
    ("units", "n_units"),
    ("null", "n_null"),
    ("mean [95 % CI]", _interval("mean", "")),
    ("sd", "sd"),
    ("median", "median"),
)
_DIFFERENCE: tuple[Shown, ...] = (
    ("difference [95 % CI]", _interval("difference", "difference_")),
    ("Hedges\u2019 g [95 % CI]", _interval("effect_g", "effect_")),
    ("p", _p("p")),
    ("p (Holm)", _p("holm_p")),
    ("detectable", "detectable"),
)
_ABLATIONS: tuple[Shown, ...] = (
    ("group", _group),
    ("variant", _variant),
    ("n", "n"),
    ("null", "n_null"),
    ("mean [95 % CI]", _interval("mean", "")),
    ("rank", "rank"),
    ("pairs", "n_pairs"),
    *_DIFFERENCE,
)
_CONSTRUCT: tuple[Shown, ...] = (
    ("score", _score),
    ("contrast", _contrast),
    ("n", "n"),
    ("units", "n_pair_units"),
    ("null", "n_null"),
    ("first", "mean_first"),
    ("second", "mean_second"),
    *_DIFFERENCE,
)
_TOP_CONCEPTS: tuple[Shown, ...] = (
    ("kind", "kind"),
    ("concept", "concept"),
    ("turns", "n_turns"),
    ("share of turns", "share_of_turns"),
    ("conversations", "n_conversations"),
)
_TOP_SHOWN = 10
_CONVERGENT: tuple[Shown, ...] = (
    ("score", _score),
    ("judge", "judge"),
    ("n", "n"),
    ("units", "n_units"),
    ("score null", "n_null_score"),
    ("judge null", "n_null_judge"),
    ("\u03c1 [95 % CI]", _interval("rho", "rho_")),
    ("p", _p("rho_p")),
    ("p (Holm)", _p("rho_holm_p")),
    ("detectable", "detectable_rho"),
    ("\u03c4 [95 % CI]", _interval("tau", "tau_")),
    ("p of \u03c4", _p("tau_p")),
)
_LEVELS: tuple[Shown, ...] = (
    ("level", "level"),
    ("score", _score),
    ("judge", "judge"),
    ("n", "n"),
    ("\u03c1", "rho"),
    ("p", _p("rho_p")),
    ("\u03c4", "tau"),
    ("p of \u03c4", _p("tau_p")),
)


Tables = Mapping[str, pl.DataFrame]
"""The tables of an analysis by the names of their files."""


def sweep_table(table: pl.DataFrame) -> str:
    """Write the recovery rate, a column a window."""
    rates = table.filter(pl.col("test") == "run")
    windows = rates["window"].unique().sort()
    most = pl.col("n_shifts").max().over("group", "value")
    wide = rates.with_columns(most).pivot(
        "window", index=["group", "value", "n_shifts"], values="rate"
    )
    shown: list[Shown] = [("group", _group), ("shifts at most", "n_shifts")]
    shown += [(f"W = {window}", f"{window}") for window in windows]
    return _html("Recovery rate by window", shown, wide, words=1)


def construct_table(table: pl.DataFrame) -> str:
    """Write the contrasts over all conversations."""
    rows = table.filter(pl.col("group") == ALL)
    caption = "Paired contrasts over all conversations" + _family(rows)
    return _html(caption, _CONSTRUCT, rows, words=2)


def top_concepts_table(table: pl.DataFrame) -> str:
    """Write the most frequent concepts of each kind over all conversations and fields."""
    rows = (
        table.filter(pl.col("group") == ALL)
        .sort(pl.col("kind") == "hallucinated", -pl.col("n_turns"), "concept")
        .filter(pl.int_range(pl.len()).over("kind") < _TOP_SHOWN)
    )
    return _html("Concepts that differ most often", _TOP_CONCEPTS, rows, words=2)


def convergent_table(table: pl.DataFrame) -> str:
    """Write the correlations over all conversations; nothing without a judge."""
    rows = table.filter(pl.col("group") == ALL)
    if rows.is_empty():
        return ""
    within = rows.filter(pl.col("level") == CONVERSATION).sort(
        "is_headline", descending=True, maintain_order=True
    )
    others = rows.filter(pl.col("level") != CONVERSATION, pl.col("score").is_in(HEADLINES))
    found = _html(
        "Rank correlations of conversations within models" + _family(within),
        _CONVERGENT,
        within,
        words=2,
    )
    if others.height:
        caption = "Rank correlations of the models\u2019 means, and of all conversations pooled"
        found += _html(caption, _LEVELS, others, words=3)
    return found


def _family(rows: pl.DataFrame) -> str:
    """Return how many tests Holm's procedure corrected."""
    size = rows["family"].drop_nulls()
    return f"; Holm over a family of {size[0]}" if size.len() else ""


def _html(caption: str, shown: Sequence[Shown], table: pl.DataFrame, *, words: int) -> str:
    """Write a table whose first columns are words, the others numbers."""
    kinds = [' class="text"' if place < words else "" for place in range(len(shown))]
    columns = [(kind, *each) for kind, each in zip(kinds, shown, strict=True)]
    head = "".join(f'<th scope="col"{kind}>{escape(heading)}</th>' for kind, heading, _ in columns)
    body = ""
    for row in table.iter_rows(named=True):
        cells = (
            (kind, _cell(row[what]) if isinstance(what, str) else what(row))
            for kind, _, what in columns
        )
        body += f"<tr>{''.join(f'<td{kind}>{escape(text)}</td>' for kind, text in cells)}</tr>"
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d8dee4;
--link:#0a58a8;
--mark:#b35900}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e4e8ec;--soft:#a3adb8;
--rule:#363d46;
--link:#79b8ff;--mark:#f0883e}
figure svg{filter:invert(.92) hue-rotate(180deg);mix-blend-mode:lighten}}
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;
color:var(--ink);background:var(--paper);max-width:68rem;margin:2rem auto;padding:0 1.25rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.35rem;line-height:1.3;margin:3rem 0 .6rem;border-top:2px solid var(--ink);
padding-top:.4rem}
p{margin:.5rem 0;overflow-wrap:anywhere;max-width:46rem}a{color:var(--link)}
code{font:.84em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:1rem 0}
figure{margin:1.2rem 0;break-inside:avoid}
figure svg{display:block;width:100%;min-width:34rem;max-width:46rem;height:auto}
figcaption,.note{font-size:.88rem;color:var(--soft);max-width:46rem}
.note{border-left:4px solid var(--mark);padding-left:.7rem}
.scroll{overflow-x:auto;
background:linear-gradient(90deg,var(--paper) 40%,transparent) 0 0/2.5rem 100% no-repeat local,
linear-gradient(270deg,var(--paper) 40%,transparent) 100% 0/2.5rem 100% no-repeat local,
linear-gradient(90deg,var(--rule),transparent) 0 0/1rem 100% no-repeat scroll,
linear-gradient(270deg,var(--rule),transparent) 100% 0/1rem 100% no-repeat scroll}
table{border-collapse:collapse;font-size:.84rem;margin:.7rem 0;
font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{padding:.18rem .5rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
th{border-bottom:2px solid var(--ink);vertical-align:bottom}
th.text,td.text{text-align:left}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
@media print{:root{color-scheme:light}body{max-width:none;margin:0;font-size:10.5pt}
nav{display:none}h2{break-after:avoid}tr{break-inside:avoid}.scroll{overflow:visible}
figure svg{min-width:0}table{font-size:7pt}th,td{padding:.1rem .2rem}@page{margin:12mm}}
"""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page: an id, a heading, what it answers, its figures and its table's HTML."""

    name: str
    heading: str
    text: str
    figures: Sequence[str]
    table: Callable[[Tables], str] = lambda tables: ""


_SECTIONS = (
    PageSection(
        "parts",
        "Scores and their parts",
        "TAS and CAS with what they are made of, over conversations.",
        ("distributions", "radar"),
        lambda tables: _html("Scores by group", _COMPONENTS, tables["components"], words=2),
    ),
    PageSection(
        "turns",
        "Turn by turn",
        "How CC, CR and copying move in one dialogue, and on average around shifts.",
        ("timelines", "around_shifts"),
    ),
    PageSection(
        "concepts",
        "Concepts that are missing or hallucinated",
        "Which concepts of the user the answers lack, and which they bring in unasked, by the "
        "number of turns. Each field's and each model's are in tables/top_concepts.csv.",
        (),
        lambda tables: top_concepts_table(tables["top_concepts"]),
    ),
    PageSection(
        "recovery",
        "Recovery",
        "How soon the answers fit again after a shift. The window is varied over the scores of the "
        "turns; nothing is scored again.",
        ("recovery",),
        lambda tables: sweep_table(tables["window_sweep"]),
    ),
    PageSection(
        "ablations",
        "Ablations",
        "Each score without some of its parts. Differences are paired by conversation. Tests are t "
        "tests with cluster-robust errors, those of the intervals.",
        ("ablations",),
        lambda tables: _html(
            "Variants of TAS and CAS" + _family(tables["ablations"]),
            _ABLATIONS,
            tables["ablations"],
            words=2,
        ),
    ),
    PageSection(
        "weights",
        "Weights",
        "Whether the order of models hangs on the choice of weights. The whole grid is in "
        "tables/weight_grid.csv.",
        ("weights",),
    ),
    PageSection(
        "construct",
        "Construct validity",
        "Controlled shifts should show: CC drops at a shift and recovers, CR is higher within "
        "segments than across them. These three contrasts are tested together. The others are "
        "exploratory, and their p is uncorrected. Differences are paired by conversation. Tests "
        "are t tests with cluster-robust errors. Each model's contrasts are in "
        "tables/construct_validity.csv.",
        ("construct",),
        lambda tables: construct_table(tables["construct_validity"]),
    ),
    PageSection(
        "convergent",
        "Convergent validity",
        "Whether the scores order conversations as the judge does. Conversations are ranked within "
        "their model, so differences between models add nothing. TAS and CAS with the judge's "
        "overall score are tested together; the other correlations are exploratory. p counts every "
        "order of up to eight units if each has one conversation with every model. Otherwise it is "
        "the t test of the jackknife interval. Each model's correlations are in "
        "tables/convergent_validity.csv.",
        ("judge",),
        lambda tables: convergent_table(tables["convergent_validity"]),
    ),
)


def make_page(
    title: str, facts: Sequence[str], notes: Sequence[str], tables: Tables, figures: Sequence[Drawn]
) -> str:
    """Write the page."""
    drawn = {figure.name: figure for figure in figures}
    letters: set[str] = set()
    links = "".join(f'<a href="#{s.name}">{escape(s.heading)}</a>' for s in _SECTIONS)
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>",
            *(f"<p>{fact}</p>" for fact in facts),
            *(f'<p class="note">{escape(note)}</p>' for note in notes),
            f'<nav aria-label="Sections">{links}</nav></header><main>',
            *(_section(section, drawn, tables, letters) for section in _SECTIONS),
            "</main></body></html>\n",
        ]
    )


def _section(
    section: PageSection, drawn: dict[str, Drawn], tables: Tables, letters: set[str]
) -> str:
    shown = [drawn[name] for name in section.figures if name in drawn]
    figures = (
        f'<figure><div class="scroll" tabindex="0">{with_new_letters(figure.svg, letters)}</div>'
        "<figcaption>"
        f"<strong>{escape(figure.title)}.</strong> {escape(figure.caption)}</figcaption></figure>"
        for figure in shown
    )
    missing = (
        ""
        if len(shown) == len(section.figures)
        else '<p class="note">Nothing to draw here: no conversation has what this figure needs '
        "(a shift, or a judge's score).</p>"
    )
    return (
        f'<section id="{section.name}"><h2>{escape(section.heading)}</h2>'
        f"<p>{escape(section.text)}</p>{''.join(figures)}{missing}"
        f"{section.table(tables)}</section>"
    )


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
    figures = draw_figures(scored, judged, tables)
    too_few = untestable(tables["convergent_validity"])
    notes = tuple(filter(None, (missing, describe_rejects(judged), _left_out(scored), too_few)))
    page = make_page(TITLE, _facts(run, scored), notes, tables, figures)
    return AnalysisContents(
        page=page,
        tables=tables,
        figures={figure.name: figure.svg for figure in figures},
        notes=notes,
        captions={figure.name: (figure.title, figure.caption) for figure in figures},
    )


def _left_out(scored: Scored) -> str:
    left_out = scored.models[MODELS_SHOWN:]
    if not left_out:
        return ""
    return (
        f"Figures show the first {MODELS_SHOWN} of {len(scored.models)} models by name; the tables "
        f"have all. Left out: {', '.join(left_out)}."
    )


def _facts(run: CommittedRun, scored: Scored) -> list[str]:
    models = ", ".join(scored.models) or "none named"
    units = scored.conversations["cluster"].n_unique()
    unit = "the dialogue, with the answers of all models to it"
    if scored.unit != UNIT:
        unit = f"the value of column <code>{escape(scored.unit)}</code>"
    return [
        f"{scored.conversations.height:,} conversations, {scored.turns.height:,} turns and "
        f"{scored.shifts.height:,} shifts; models: {escape(models)}. Scores come from grounded "
        "concept overlap in a closed set of items; a judge is a check on them, not the truth.",
        f"The unit of intervals and tests is {unit}: {units:,} units. Intervals have "
        "95 %. Tests are two-sided, and Holm's procedure corrects the headline tests of each table "
        "and group. A result is significant if its corrected p is below 0.05 and its interval "
        "excludes 0.",
        f"Run: <code>{escape(run.name)}</code>, <code>{escape(run.signature)}</code>",
    ]
