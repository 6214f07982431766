"""Texts and options beside the numbers of score_dialogue that an explanation shows."""

from dataclasses import replace

from fastscore.suites.alignment import matched_characters
from fastscore.suites.declarations import Metric
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, derive

_SEMANTIC = {
    "calibrated": "min(1, max(0, ({semantic_cosine_raw} - {baseline}) / "
    "max(1 - {baseline}, 1e-6)))",
    "cosine": "{semantic_cosine_raw}",
    "jaccard": "words of both texts / words of either",
}
_ABOUT_TEXTS = (
    "lexical_similarity",
    "semantic_cosine_raw",
    "semantic_similarity",
    "pppl_prediction",
    "pppl_ground_truth",
    "pppl_penalty",
)


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: ScoreDialogue) -> Derivation:
    """Explain a metric's value in a row of its table."""
    penalty = row.get("pppl_penalty")
    known = {
        "lex_weight": f"{options.lex_weight:g}",
        "semantic_weight": f"{1 - options.lex_weight:g}",
        "pppl_weight": f"{options.pppl_weight:g}",
        "penalty": 1 if penalty is None else penalty,
        "baseline_pairs": f"{max(1, options.baseline_pairs):,}",
        "baseline": dialogue.tables["dialogues"]["semantic_baseline_b"][0],
    }
    texts: tuple[Evidence, ...] = ()
    if metric.id in _ABOUT_TEXTS:
        texts = _texts(dialogue, row)
        longest = max(len(text.text) for text in texts)
        similarity = row["lexical_similarity"]
        edits = None if similarity is None else round((1 - similarity) * longest)
        known |= {"edits": edits, "longest": longest}
    if metric.id == "semantic_similarity":
        metric = replace(metric, derivation=_SEMANTIC[options.semantic])
    found = derive(dialogue, metric, {**row, **known})
    return replace(found, evidence=(*found.evidence, *texts))


def _texts(dialogue: Dialogue, row: Row) -> tuple[Evidence, Evidence]:
    """Return the prediction and the ground truth of a step, with the characters of both marked."""
    utterances = dialogue.tables["utterances"]
    of_step = utterances.filter(utterances["utterance_index"] == row["utterance_index"])
    prediction, ground_truth = row["prediction"], str(of_step["ground_truth"][0])
    return (
        Evidence(
            what="prediction",
            text=prediction,
            marks=matched_characters(prediction, ground_truth),
        ),
        Evidence(
            what="ground truth",
            text=ground_truth,
            marks=matched_characters(ground_truth, prediction),
        ),
    )
