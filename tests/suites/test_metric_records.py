"""The records of metrics: formulas as text, rules of nulls, evidence."""

import random
import re
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from fastscore.results.explaining import explain_value
from fastscore.results.metric_text import metrics_text
from fastscore.suites.columns import find_nulls
from fastscore.suites.declarations import Formula, Metric, NullRule, Ratio, Scale
from fastscore.suites.formulas import plain_formula, plain_words
from fastscore.suites.registry import load_suite, suite_names
from fastscore.suites.showing import EvidenceRows, occurrences

ROOT = Path(__file__).parents[2]


def test_bands_lie_within_the_range_of_their_metric():
    for suite in map(load_suite, suite_names()):
        for metric in suite.metrics:
            low, high = metric.scale.minimum, metric.scale.maximum
            for band in metric.scale.bands:
                bounds = [band.at_least, band.at_most, band.above, band.below]
                for bound in (each for each in bounds if each is not None):
                    assert low is None or low <= bound, (metric.id, band)
                    assert high is None or bound <= high, (metric.id, band)


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\mathrm{M9} = \frac{|G|}{|P|}", "M9 = |G| / |P|"),
        (r"\frac{1}{N} \sum_{i=1}^{N} s_i", "(1 / N) Σᵢ₌₁^N sᵢ"),
        (r"\left(\prod_i s_i\right)^{1/N}", "(Πᵢ sᵢ)^(1/N)"),
        (r"\frac{\sum_i |x_i - x_j|}{2 n^2 \bar{x}}", "(Σᵢ |xᵢ - xⱼ|) / (2 n² x̄)"),
        (r"\min\left(1, \frac{|V|}{n}\right)", "min(1, |V| / n)"),
        (r"\frac{1}{3 (M - 1)} + \frac{a}{b}", "1 / (3 (M - 1)) + a / b"),
        (r"x_d^2 \cdot y_{ij}", "x_d² · yᵢⱼ"),
        (
            r"\begin{cases} a & \text{if } a \le 0.2 \\ 1 & \text{otherwise} \end{cases}, a = b",
            "a if a ≤ 0.2; 1 otherwise, a = b",
        ),
        (r"\{i \mid s_i = 1\}", "{i | sᵢ = 1}"),
        (r"\sqrt{\mathrm{a\_b}}", "√(a_b)"),
    ],
)
def test_a_formula_is_written_as_text(latex, text):
    assert plain_formula(latex) == text


@pytest.mark.parametrize("latex", [r"\nosuch{a}", "{a", "a}", r"\begin{matrix} a \end{matrix}"])
def test_a_formula_that_cannot_be_written_is_an_error(latex):
    with pytest.raises(ValueError, match="formula"):
        plain_formula(latex)


def test_formulas_in_words_stand_between_dollar_signs():
    assert plain_words("the mean of $x_i$ and $\\frac{a}{b}$") == "the mean of xᵢ and a / b"
    assert plain_words("no formula") == "no formula"


def metric(id, *rules):
    return Metric(
        id=id,
        name=id,
        table="rows",
        formula=Formula("x"),
        scale=Scale("higher", minimum=None, maximum=None),
        null_when=rules,
        source="",
    )


def rule(column, reason):
    return NullRule(when=pl.col(column), reason=reason, text=f"{column} holds")


def test_rules_are_one_sentence_a_reason():
    rules = (rule("a", "missing_input"), rule("b", "missing_input"), rule("c", "no_vector"))
    declared = metric("m", *rules, rule("d", None))
    assert declared.null_rule == (
        "missing_input if a holds, or if b holds; no_vector if c holds; "
        "null without a reason if d holds"
    )
    assert (metric("n").null_rule, metric("n").can_be_null) == ("never", False)
    assert declared.can_be_null


@pytest.mark.parametrize("n_rules", [0, 1, 5, 62, 63, 130])
def test_the_first_rule_that_holds_is_the_reason(n_rules):
    draws = random.Random(n_rules)
    reasons = ["not_applicable", "missing_input", "bad_input", None]
    rules = [rule(f"c{number}", draws.choice(reasons)) for number in range(n_rules)]
    metrics = [
        metric(f"m{number}", *draws.sample(rules, draws.randint(0, min(4, n_rules))))
        for number in range(6)
    ]
    values = [
        {f"c{number}": draws.choice([True, False, False, None]) for number in range(n_rules)}
        | {"row": row}
        for row in range(200)
    ]
    schema = {f"c{number}": pl.Boolean for number in range(n_rules)} | {"row": pl.Int64}
    found = find_nulls(pl.DataFrame(values, schema=schema), metrics)
    for row, held in enumerate(values):
        listed = []
        for one in metrics:
            first = next((r for r in one.null_when if held[r.text.split()[0]]), None)
            assert found.is_null(one.id)[row] == (first is not None)
            if first is not None and first.reason is not None:
                listed.append({"metric": one.id, "reason": first.reason})
        assert found.column[row].to_list() == listed


def test_reasons_may_be_listed_by_reason_before_metric():
    rows = pl.DataFrame({"a": [True], "b": [True]})
    metrics = [
        metric("m", rule("a", "missing_input")),
        metric("n", rule("b", "bad_input")),
        metric("o", rule("a", "missing_input")),
    ]
    found = find_nulls(rows, metrics, by_reason=("bad_input", "missing_input")).column[0]
    assert [(each["metric"], each["reason"]) for each in found.to_list()] == [
        ("n", "bad_input"),
        ("m", "missing_input"),
        ("o", "missing_input"),
    ]


@pytest.mark.parametrize("suite", suite_names())
def test_symbols_are_those_of_the_formula(suite):
    """Each symbol is in the formula, or in the meaning of a symbol that is."""
    for declared in load_suite(suite).metrics:
        used = declared.formula.latex + " ".join(meaning for _, meaning in declared.formula.symbols)
        for symbol, meaning in declared.formula.symbols:
            name = symbol.split("(")[0].strip()
            assert name in used or plain_formula(name) in used, (declared.id, symbol)
            assert meaning
        if declared.formula.latex:
            assert declared.formula.text == plain_formula(declared.formula.latex)
            assert declared.reading.endswith("."), declared.id
            assert declared.example.endswith("."), declared.id


@pytest.mark.parametrize("name", suite_names())
def test_sources_are_named_with_author_year_title_and_address(name):
    suite = load_suite(name)
    for paper in suite.papers:
        assert re.search(r"\(20\d\d\): .*https://|https://", paper), paper
    assert re.search(r"^[A-Z].* \(20\d\d\): \w", suite.papers[0])
    assert suite.agreement.startswith("No study of agreement with people is known.")
    shown = metrics_text(suite)
    assert all(paper in shown for paper in (*suite.papers, suite.agreement))
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"he suite {name}" in cited


@pytest.mark.parametrize("name", suite_names())
def test_a_terminal_sees_no_latex(name):
    shown = metrics_text(load_suite(name))
    assert not re.findall(r"\$|\\[a-z]+", shown)


# --- evidence


TURNS = pl.DataFrame(
    {
        "file": ["log"] * 3,
        "turn": [1, 2, 3],
        "share": [0.5, None, 1.0],
        "reply": ["a cat", "a dog", None],
        "word": ["cat", "cat", "cat"],
    }
)
ROW = {"words": 0.75, "n_hits": 3, "n_words": 4, "turn": 2}


def derived(*evidence, row=ROW, **declared):
    metric = Metric(
        id="words",
        name="Words",
        formula=Formula(),
        scale=Scale("higher"),
        source="this test",
        evidence=evidence,
        **declared,
    )
    options = SimpleNamespace(mode="plain", window=2)
    frames = {"turns": TURNS, "log": pl.DataFrame({"line": [1]})}
    return explain_value(metric, row, row[metric.id], frames, options)


def test_a_ratio_of_columns_that_evidence_adds_is_written_with_its_values():
    found = derived(derivation=Ratio("n_hits", "n_words"))
    assert (found.working, found.result) == ("3 / 4", 0.75)
    assert (found.numerator, found.denominator) == (3, 4)
    of_nothing = derived(row={**ROW, "n_words": 0}, derivation=Ratio("n_hits", "n_words"))
    assert (of_nothing.working, of_nothing.denominator) == ("0.75", None)


def test_a_derivation_is_a_template_or_a_function_of_row_and_options():
    rows = EvidenceRows(table="turns", names=("turn",), columns=("share",))
    assert derived(rows, derivation="mean of {share}").working == "mean of 0.5000, 1.0000"
    by_options = derived(derivation=lambda row, options: f"{row['n_hits']} in {options.mode}")
    assert by_options.working == "3 in plain"


@pytest.mark.parametrize(("mode", "shown"), [("plain", 2), ("other", 0)])
def test_evidence_counts_with_one_value_of_an_option(mode, shown):
    rows = EvidenceRows(table="turns", columns=("share",), only_with=("mode", mode))
    assert [piece.what for piece in derived(rows).evidence] == (["turns"] * shown or ["words"])


def test_rows_are_chosen_by_the_row_of_the_metric():
    window = EvidenceRows(
        table="turns",
        columns=("turn",),
        where=lambda row, options: pl.col("turn").is_between(
            row["turn"], row["turn"] + options.window - 1
        ),
    )
    same = EvidenceRows(table="turns", columns=("turn",), same=("turn",))
    assert [piece.values["turn"] for piece in derived(window, same).evidence] == [2, 3, 2]


def test_rows_without_declared_columns_are_shown_whole():
    first, *_ = derived(EvidenceRows(table="turns")).evidence
    assert first.found == "turn 1, share 0.5000, reply a cat, word cat"


def test_marks_are_looked_for_in_the_text_of_their_row():
    rows = EvidenceRows(
        table="turns",
        columns=("turn",),
        text="reply",
        marks=lambda row: occurrences(row["reply"], row["word"]),
    )
    assert [len(piece.marks) for piece in derived(rows).evidence] == [1, 0, 0]
    (own,) = derived(EvidenceRows(text="said"), row={**ROW, "said": "a cat"}).evidence
    assert (own.what, own.found, own.text) == ("said", None, "a cat")
