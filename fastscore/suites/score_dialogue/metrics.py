"""The metrics of score_dialogue: similarity, earliness, utility, baseline and perplexity penalty.

The perplexity penalty is an extension of fastscore, off by default. The published README mentions
a penalty. Its code never had one.
"""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_kernels import (
    cosine_pairs,
    levenshtein_similarity_pairs,
    mean_pair_cosine_groups,
    segment_first_argmax,
)
from polars import col as C

from fastscore.suites.columns import list_column
from fastscore.suites.declarations import Formula, Metric, NullRule, Scale
from fastscore.suites.grouping import offsets_of
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.showing import EvidenceRows, Row, matched_characters

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

_SOURCE = "score_dialogue README (babelbit_subnet, commit 5b7869b)"
_RANGE = "The range is [0, 1], and [-1, 1] if `--semantic cosine` has weight."
_EXTENSION = "Extension of fastscore: Salazar et al. 2020, Masked Language Model Scoring, section 2"

NO_LEXICAL = NullRule(C("is_lexical_off"), "not_applicable", "`--lex-weight` is 0")
NO_SEMANTIC = NullRule(C("is_semantic_off"), "not_applicable", "`--lex-weight` is 1")
NO_COSINE = NullRule(
    C("is_cosine_off"), "not_applicable", "`--lex-weight` is 1 or `--semantic` is jaccard"
)
NO_BASELINE = NullRule(
    C("is_baseline_off"), "not_applicable", "`--lex-weight` is 1 or `--semantic` is not calibrated"
)
NO_MODEL = NullRule(C("is_perplexity_off"), None, "`--pppl-model` is not given")
NO_STEP = NullRule(C("total_steps") == 0, "missing_input", "the utterance has no step")
NOTHING_SCORED = NullRule(C("n_scored") == 0, "missing_input", "no utterance was scored")
PREDICTION_WITHOUT_TOKEN = NullRule(
    C("pppl_prediction").is_null(), "not_applicable", "the prediction has no token"
)
GROUND_TRUTH_WITHOUT_TOKEN = NullRule(
    C("pppl_ground_truth").is_null(), "not_applicable", "the ground truth has no token"
)

_TEXTS = (
    ("p", "prediction of step s, without white space at its ends and without one final EOF"),
    ("g", "ground truth of the utterance, cleaned in the same way"),
)
_BY_STEP = EvidenceRows(
    table="steps",
    names=("step",),
    columns=("U_step",),
    text="prediction",
    same=("utterance_index",),
)
_COMPARED = (
    EvidenceRows(
        text="prediction",
        marks=lambda row: matched_characters(row["prediction"], row["ground_truth"]),
    ),
    EvidenceRows(
        text="ground_truth",
        marks=lambda row: matched_characters(row["ground_truth"], row["prediction"]),
    ),
)
"""The prediction and the ground truth of a step, with the characters that both have marked."""


def _edits(row: Row, options: ScoreDialogue) -> str:
    """Write the lexical similarity with values."""
    longest = max(len(row["prediction"]), len(row["ground_truth"]))
    edits = round((1 - row["lexical_similarity"]) * longest)
    return f"max(0, 1 - {edits} edits / {longest} characters)"


LEXICAL_SIMILARITY = Metric(
    table="steps",
    id="lexical_similarity",
    name="Lexical similarity",
    formula=Formula(
        r"\text{lex} = \max\left(0, 1 - \frac{\operatorname{lev}(p, g)}{\max(|p|, |g|)}\right)",
        *_TEXTS,
        (r"\operatorname{lev}(p, g)", "Levenshtein distance in Unicode code points"),
        ("|p|", "number of code points of p"),
    ),
    scale=Scale("higher"),
    null_when=(NO_LEXICAL,),
    evidence=_COMPARED,
    derivation=_edits,
    reading="1 for equal texts, 0 if no character can stay. Two empty texts have 0.",
    example="p = 'hello word', g = 'hello world': 1 - 1 / 11 = 0.9091.",
    note="Edits have unit costs. Case and punctuation count.",
    source=f"{_SOURCE}, Scoring overview",
)
SEMANTIC_COSINE_RAW = Metric(
    id="semantic_cosine_raw",
    name="Raw cosine",
    table="steps",
    formula=Formula(r"c = e(p) \cdot e(g)", *_TEXTS, ("e(t)", "embedding of text t with length 1")),
    scale=Scale("higher", minimum=-1.0),
    null_when=(NO_COSINE,),
    evidence=_COMPARED,
    derivation="e(prediction) · e(ground truth)",
    reading="The cosine before calibration. With `--semantic cosine` two empty texts have 0.",
    example="e(p) = (0.6, 0.8), e(g) = (1, 0): 0.6.",
    note="`--dim` keeps the first dimensions of e(t) and scales them to length 1 again.",
    source=f"{_SOURCE}, Output fields",
    role="part",
)
_SEMANTIC = {
    "calibrated": "min(1, max(0, ({semantic_cosine_raw} - {semantic_baseline_b}) / "
    "max(1 - {semantic_baseline_b}, 1e-6)))",
    "cosine": "{semantic_cosine_raw}",
    "jaccard": "words of both texts / words of either",
}
SEMANTIC_SIMILARITY = Metric(
    id="semantic_similarity",
    name="Semantic similarity",
    table="steps",
    formula=Formula(
        r"\text{sem} = \begin{cases} \min\left(1, \max\left(0, \frac{c - b}"
        r"{\max(1 - b, 10^{-6})}\right)\right) & \text{if calibrated} \\ c & \text{if cosine} \\ "
        r"\frac{|P \cap G|}{|P \cup G|} & \text{if jaccard} \end{cases}",
        ("c", "raw cosine of prediction and ground truth (`semantic_cosine_raw`)"),
        ("b", "baseline of the dialogue (`semantic_baseline_b`)"),
        ("P", "set of words of the prediction (`--semantic jaccard`)"),
        ("G", "set of words of the ground truth"),
    ),
    scale=Scale("higher", minimum=-1.0),
    null_when=(NO_SEMANTIC,),
    evidence=(
        EvidenceRows(columns=("semantic_cosine_raw",)),
        EvidenceRows(table="dialogues", columns=("semantic_baseline_b",)),
        *_COMPARED,
    ),
    derivation=lambda row, options: _SEMANTIC[options.semantic],
    reading="0 for a prediction as near as random texts of the dialogue, 1 for the same meaning.",
    example="c = 0.70, b = 0.20: (0.70 - 0.20) / (1 - 0.20) = 0.625.",
    note=(
        f"{_RANGE} Words are separated by white space. Two texts without words have 0 with "
        "`--semantic jaccard`."
    ),
    source=f"{_SOURCE}, section 1",
)
EARLINESS = Metric(
    table="steps",
    id="earliness",
    name="Earliness",
    formula=Formula(r"\text{early} = \frac{1}{s + 1}", ("s", "step, from 0")),
    scale=Scale("higher"),
    derivation="1 / ({step} + 1)",
    evidence=(EvidenceRows(columns=("step",)),),
    reading="The weight of a step: 1 at the first step, 1/2 at the second.",
    example="s = 3: 1 / 4 = 0.25.",
    source=f"{_SOURCE}, Scoring overview",
    role="part",
)


def _perplexity(id: str, name: str, rule: NullRule, *, is_of_model: bool) -> Metric:
    return Metric(
        id=id,
        name=name,
        table="steps",
        formula=Formula(
            r"\exp\left(-\frac{1}{N} \sum_{i=1}^{N} \ln P(t_i \mid t_{\setminus i})\right)",
            ("N", "number of tokens of the text, special ones left out"),
            ("t_i", "token i of the text t"),
            (
                r"P(t_i \mid t_{\setminus i})",
                "probability of token i by the masked language model if only token i is masked",
            ),
        ),
        scale=Scale("lower" if is_of_model else "neither", minimum=1.0, maximum=None),
        null_when=(NO_MODEL, rule),
        evidence=_COMPARED,
        derivation="exp(mean of -ln P over the tokens)",
        reading="Low for fluent text: 1 if the model is certain of every token.",
        example="Two tokens with P = 0.5 and 0.125: exp(-(ln 0.5 + ln 0.125) / 2) = 4.",
        note=(
            "The published score has no perplexity. Texts that are longer than the model allows "
            "are truncated."
        ),
        source=_EXTENSION,
        role="part",
    )


PPPL_PREDICTION = _perplexity(
    "pppl_prediction",
    "Pseudo-perplexity of the prediction",
    PREDICTION_WITHOUT_TOKEN,
    is_of_model=True,
)
PPPL_GROUND_TRUTH = _perplexity(
    "pppl_ground_truth",
    "Pseudo-perplexity of the ground truth",
    GROUND_TRUTH_WITHOUT_TOKEN,
    is_of_model=False,
)
PPPL_PENALTY = Metric(
    table="steps",
    id="pppl_penalty",
    name="Perplexity penalty",
    formula=Formula(
        r"\pi = \exp(-\lambda \max(0, \ln \mathrm{PPPL}_p - \ln \mathrm{PPPL}_g))",
        (r"\lambda", "weight `--pppl-weight`"),
        (r"\mathrm{PPPL}_p", "pseudo-perplexity of the prediction"),
        (r"\mathrm{PPPL}_g", "pseudo-perplexity of the ground truth"),
    ),
    scale=Scale("higher"),
    null_when=(NO_MODEL, PREDICTION_WITHOUT_TOKEN, GROUND_TRUTH_WITHOUT_TOKEN),
    derivation=lambda row, options: (
        f"exp(-{options.pppl_weight:g} * max(0, ln {{pppl_prediction}} - ln {{pppl_ground_truth}}))"
    ),
    evidence=(EvidenceRows(columns=("pppl_prediction", "pppl_ground_truth")), *_COMPARED),
    reading="The factor of U_step: 1 without a penalty. U_step is not penalised if it is null.",
    example=r"$\lambda$ = 0.5, PPPL of 8 and 2: (2 / 8)^0.5 = 0.5.",
    note="Predictions that are more fluent than the ground truth are not rewarded.",
    source=_EXTENSION,
)
U_STEP = Metric(
    id="U_step",
    name="Utility of a step",
    table="steps",
    formula=Formula(
        r"U = \frac{w \cdot \text{lex} + (1 - w) \cdot \text{sem}}{s + 1} \cdot \pi",
        (r"\text{lex}", "lexical similarity; 0 if switched off"),
        (r"\text{sem}", "semantic similarity; 0 if switched off"),
        ("w", "weight `--lex-weight`, 0.5"),
        ("s", "step, from 0"),
        (r"\pi", "perplexity penalty, 1 without `--pppl-weight`"),
    ),
    scale=Scale("higher", minimum=-1.0),
    derivation=lambda row, options: (
        f"({{lexical_similarity}} * {options.lex_weight:g} + "
        f"{{semantic_similarity}} * {1 - options.lex_weight:g}) * {{earliness}} * "
        + ("1" if row["pppl_penalty"] is None else "{pppl_penalty}")
    ),
    evidence=(
        EvidenceRows(
            columns=("lexical_similarity", "semantic_similarity", "earliness", "pppl_penalty")
        ),
    ),
    reading="How good and how early the prediction is: 1 for the right text at the first step.",
    example="lex = 0.8, sem = 0.6, w = 0.5, s = 1: (0.4 + 0.3) / 2 = 0.35.",
    note=_RANGE,
    source=f"{_SOURCE}, Scoring overview",
)
U_BEST = Metric(
    id="U_best",
    name="Best utility of an utterance",
    table="utterances",
    formula=Formula(r"\mathrm{U\_best} = \max_s U_s", (r"U_s", "utility of step s (`U_step`)")),
    scale=Scale("higher", minimum=-1.0),
    null_when=(NO_STEP,),
    derivation="max({U_step}), first at step {best_step}",
    evidence=(_BY_STEP,),
    reading="The utterance's score. `best_step` is the earliest step that reaches it.",
    example="Utilities 0.20, 0.35, 0.30: 0.35 at step 1.",
    note=f"{_RANGE} The `status` of an utterance without a step is `no_steps`.",
    source=f"{_SOURCE}, Scoring overview",
    same_test_as="average_U_best_early",
)
AVERAGE_U_BEST_EARLY = Metric(
    id="average_U_best_early",
    name="Dialogue average U (best-early)",
    formula=Formula(
        r"\bar{U} = \frac{1}{n} \sum_{u=1}^{n} \mathrm{U\_best}_u",
        (r"\mathrm{U\_best}_u", "best utility of utterance u"),
        ("n", "number of utterances with at least one step"),
    ),
    scale=Scale("higher", minimum=-1.0),
    micro=("U_best_sum", "n_scored"),
    null_when=(NOTHING_SCORED,),
    evidence=(
        EvidenceRows(
            table="utterances",
            names=("utterance_index",),
            columns=("U_best", "best_step"),
            text="ground_truth",
        ),
    ),
    reading="The dialogue's score, the headline number of the published scorer. A correct text at "
    "step 0, 1 or 2 scores 1, 0.5 or 0.33, so 0.32 is as good as a correct text at the third step. "
    "No paper defines a good value: compare miners on the same dialogues.",
    example="Three utterances with 0.28, 0.55, 0.20: 1.03 / 3 = 0.3433.",
    note=f"{_RANGE} `micro` of a summary is the sum over all utterances / their number.",
    source=f"{_SOURCE}, Scoring overview",
    role="headline",
)
SEMANTIC_BASELINE_B = Metric(
    id="semantic_baseline_b",
    name="Semantic baseline",
    formula=Formula(
        r"b = \frac{1}{n} \sum_{k=1}^{n} e(g_{i_k}) \cdot e(g_{j_k}), \quad i_k \ne j_k",
        ("n", "number of pairs, `--baseline-pairs`, 20,000"),
        ("g_{i_k}", "first ground truth of pair k, drawn from the non-empty ones"),
        ("g_{j_k}", "second ground truth of pair k, another one"),
        ("e(t)", "embedding of text t with length 1"),
    ),
    scale=Scale("neither", minimum=-1.0),
    null_when=(NO_BASELINE,),
    derivation=lambda row, options: f"mean of {max(1, options.baseline_pairs):,} random pairs",
    evidence=(
        EvidenceRows(
            table="utterances",
            names=("utterance_index",),
            columns=("ground_truth",),
            where=C("ground_truth") != "",
        ),
    ),
    reading="The cosine of unrelated texts of the dialogue. 0 with fewer than two texts.",
    example="Two texts with a cosine of 0.25: every pair has 0.25, so b = 0.25.",
    note=(
        "Empty ground truths are left out, and equal ones are kept. Pairs are drawn in the order "
        "of Python's `random`, from `--baseline-seed`."
    ),
    source=f"{_SOURCE}, section 1",
    role="part",
)
METRICS = (
    LEXICAL_SIMILARITY,
    SEMANTIC_COSINE_RAW,
    SEMANTIC_SIMILARITY,
    EARLINESS,
    PPPL_PREDICTION,
    PPPL_GROUND_TRUTH,
    PPPL_PENALTY,
    U_STEP,
    U_BEST,
    AVERAGE_U_BEST_EARLY,
    SEMANTIC_BASELINE_B,
)
PERPLEXITIES = (PPPL_PREDICTION, PPPL_GROUND_TRUTH, PPPL_PENALTY)
"""The metrics of the extension."""


def run_facts(options: ScoreDialogue) -> dict[str, bool]:
    """Return the facts of null rules that options decide."""
    return {
        "is_lexical_off": not options.scores_lexical,
        "is_semantic_off": not options.scores_semantic,
        "is_cosine_off": not options.needs_vectors,
        "is_baseline_off": not options.calibrates,
        "is_perplexity_off": not options.pppl_model,
    }


SMALLEST_RANGE = 1e-6
"""The least that 1 - b counts as, so that a baseline of 1 divides by something."""

PYTHON_WHITESPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""White space by Python's ``str.strip`` and ``str.split``: more than Unicode's own."""

_COSINE, _BASELINE = C("semantic_cosine_raw"), C("semantic_baseline_b")
_WORDS_P, _WORDS_G = (
    C(name).str.extract_all(f"[^{PYTHON_WHITESPACE}]+").list.unique()
    for name in ("prediction", "ground_truth")
)
_SHARED = _WORDS_P.list.set_intersection(_WORDS_G).list.len()
_EITHER = _WORDS_P.list.len() + _WORDS_G.list.len() - _SHARED

SEMANTIC = {
    "calibrated": ((_COSINE - _BASELINE) / pl.max_horizontal(1.0 - _BASELINE, SMALLEST_RANGE)).clip(
        0.0, 1.0
    ),
    "cosine": _COSINE,
    "jaccard": pl.when(_EITHER > 0).then(_SHARED / _EITHER).otherwise(0.0),
}
"""Semantic similarity over columns of steps, by `--semantic`."""

EARLY = 1.0 / (C("step") + 1)
"""Earliness."""


def utility(lex_weight: float) -> pl.Expr:
    """Return U_step over columns of steps, in the published script's order of operations.

    A missing part counts as 0, as in the published script. A missing penalty counts as 1.
    """
    lexical, semantic = (C(f"{part}_similarity").fill_null(0.0) for part in ("lexical", "semantic"))
    mixed = lexical * lex_weight + semantic * (1 - lex_weight)
    return mixed * C("earliness") * C("pppl_penalty").fill_null(1.0)


def best_steps(utility: pl.Series, total_steps: pl.Series) -> list[pl.Series]:
    """Return U_best and ``best_step`` of each utterance, null without steps."""
    offsets = offsets_of(total_steps.to_numpy())
    U = list_column(utility, offsets)  # U_s, a list of each utterance's steps
    # the earliest of equal ones; `list.arg_max` takes four times as long
    best_step = pl.Series("best_step", segment_first_argmax(utility.to_numpy(), offsets))
    return [U.list.max().alias("U_best"), best_step.set(best_step < 0, None)]


AVERAGE = pl.when(C("n_scored") > 0).then(C("U_best_sum") / C("n_scored"))
"""Average U (best-early) over columns of dialogues."""


def compare_texts(
    prediction: pl.Series,
    ground_truth: pl.Series,
    ground_truth_code: Indices,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> dict[str, pl.Series]:
    """Compare each step's prediction with its ground truth, without what is switched off.

    A text without tokens has no perplexity and no penalty.
    """
    compared = {}
    if options.scores_lexical:
        lexical = levenshtein_similarity_pairs(prediction, ground_truth)
        compared["lexical_similarity"] = pl.Series(lexical)
    if options.needs_vectors:
        cosine = cosine_pairs(vectors.matrix, vectors.codes(prediction), ground_truth_code)
        if options.semantic == "cosine":
            both_empty = ((prediction == "") & (ground_truth == "")).to_numpy()
            cosine = np.where(both_empty, 0.0, cosine)
        compared["semantic_cosine_raw"] = pl.Series(cosine)
    judged = vectors.log_perplexities
    if judged is not None:
        ln_p, ln_g = (
            judged.matrix[judged.codes(texts), 0].astype(np.float64)
            for texts in (prediction, ground_truth)
        )
        perplexities = {
            "pppl_prediction": np.exp(ln_p),
            "pppl_ground_truth": np.exp(ln_g),
            "pppl_penalty": np.exp(-options.pppl_weight * np.maximum(0.0, ln_p - ln_g)),
        }
        compared |= {
            name: pl.Series(values, nan_to_null=True) for name, values in perplexities.items()
        }
    return compared


def find_baselines(
    utterances: pl.DataFrame,
    ground_truth_code: Indices,
    n_dialogues: int,
    vectors: "VectorView",
    options: ScoreDialogue,
) -> Float64Array:
    """Return each dialogue's mean cosine of random pairs of its non-empty ground truths."""
    pool = (utterances["ground_truth"] != "").to_numpy()
    sizes = np.bincount(utterances["dialogue_row"].to_numpy()[pool], minlength=n_dialogues)
    means: Float64Array = mean_pair_cosine_groups(
        vectors.matrix,
        ground_truth_code[pool],
        offsets_of(sizes),
        max(1, options.baseline_pairs),
        options.baseline_seed,
    )
    return means
