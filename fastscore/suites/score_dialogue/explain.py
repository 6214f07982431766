"""Why the numbers of score_dialogue are what they are."""

import math
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastscore.suites.alignment import edit_distance, matched_characters
from fastscore.suites.declarations import Metric
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, ratio


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: ScoreDialogue) -> Derivation:
    """Explain a metric's value in a row of its table."""
    id = metric.id
    if id == "average_U_best_early":
        return _average(dialogue, row)
    if id == "semantic_baseline_b":
        return _baseline(dialogue, row, options)
    if id == "U_best":
        return _best(dialogue, row)
    if id == "U_step":
        return _utility(row, options)
    if id == "earliness":
        step = row["step"]
        return ratio(1, step + 1, [Evidence(what="step", found=step)], text=f"1 / ({step} + 1)")
    said = _ground_truth(dialogue, row)
    prediction = row["prediction"]
    texts = (
        Evidence(what="prediction", text=prediction, marks=matched_characters(prediction, said)),
        Evidence(what="said", text=said, marks=matched_characters(said, prediction)),
    )
    if id == "lexical_similarity":
        return _lexical(prediction, said, texts)
    if id == "semantic_cosine_raw":
        return _cosine(dialogue, prediction, said, texts)
    if id == "semantic_similarity":
        return _semantic(dialogue, row, options, texts)
    if id == "pppl_penalty":
        return _penalty(row, options, texts)
    return _perplexity(dialogue, texts[0] if id == "pppl_prediction" else texts[1])


def _lexical(prediction: str, said: str, texts: tuple[Evidence, ...]) -> Derivation:
    longest, distance = max(len(prediction), len(said)), edit_distance(prediction, said)
    return ratio(
        longest - distance,
        longest,
        [Evidence(what="edits between the texts", found=distance), *texts],
        text=f"max(0, 1 - {distance} / max({len(prediction)}, {len(said)}))",
        because="both are empty",
    )


def _cosine(
    dialogue: Dialogue, prediction: str, said: str, texts: tuple[Evidence, ...]
) -> Derivation:
    """Multiply the vectors again; of two empty texts the cosine counts 0 without a baseline."""
    baseline = dialogue.tables["dialogues"]["semantic_baseline_b"][0]
    if not prediction and not said and baseline is None:
        return ratio(0, 0, texts, because="both are empty")
    first, second = _vectors(dialogue, (prediction, said))
    product, lengths = float(first @ second), math.sqrt(float((first @ first) * (second @ second)))
    return ratio(
        product,
        lengths,
        texts,
        text=f"e(p) . e(g) / (|e(p)| |e(g)|) = {product:.4f} / {lengths:.4f}",
    )


def _vectors(dialogue: Dialogue, texts: Sequence[str]) -> npt.NDArray[np.float64]:
    assert dialogue.vectors is not None
    return dialogue.vectors.matrix[dialogue.vectors.codes(list(texts))].astype(np.float64)


def _semantic(
    dialogue: Dialogue, row: Row, options: ScoreDialogue, texts: tuple[Evidence, ...]
) -> Derivation:
    cosine = row["semantic_cosine_raw"]
    baseline = dialogue.tables["dialogues"]["semantic_baseline_b"][0]
    if options.calibrates and cosine is not None and baseline is not None:
        left = max(1 - baseline, 1e-6)
        return ratio(
            min(max(cosine - baseline, 0.0), left),
            left,
            [
                Evidence(what="cosine", found=cosine),
                Evidence(what="baseline of the dialogue", found=baseline),
                *texts,
            ],
            text=f"min(1, max(0, ({_number(cosine)} - {_number(baseline)}) / "
            f"(1 - {_number(baseline)})))",
        )
    if cosine is not None:
        return _cosine(dialogue, texts[0].text, texts[1].text, texts)
    words = [set(text.text.split()) for text in texts]
    both, either = words[0] & words[1], words[0] | words[1]
    return ratio(
        len(both),
        len(either),
        [Evidence(what="words of both", found=", ".join(sorted(both)) or "none"), *texts],
        text=f"{len(both)} / {len(either)} words",
        because="neither has a word",
    )


def _penalty(row: Row, options: ScoreDialogue, texts: tuple[Evidence, ...]) -> Derivation:
    predicted, said = row["pppl_prediction"], row["pppl_ground_truth"]
    worse = max(0.0, math.log(predicted) - math.log(said))
    return Derivation(
        text=f"exp(-{options.pppl_weight:g} * max(0, ln {_number(predicted)} - ln "
        f"{_number(said)}))",
        result=math.exp(-options.pppl_weight * worse),
        evidence=(
            Evidence(what="pppl_prediction", found=predicted),
            Evidence(what="pppl_ground_truth", found=said),
            *texts,
        ),
    )


def _perplexity(dialogue: Dialogue, text: Evidence) -> Derivation:
    assert dialogue.vectors is not None
    assert dialogue.vectors.log_perplexities is not None
    judged = dialogue.vectors.log_perplexities
    surprise = float(judged.matrix[judged.codes([text.text])[0], 0])
    return Derivation(
        text=f"exp({surprise:.4f}), the mean of -ln p over its tokens",
        result=math.exp(surprise),
        evidence=(Evidence(what="mean of -ln p over its tokens", found=surprise), text),
    )


def _utility(row: Row, options: ScoreDialogue) -> Derivation:
    weight = options.lex_weight
    lexical, semantic = (row[name] or 0.0 for name in ("lexical_similarity", "semantic_similarity"))
    penalty = row["pppl_penalty"]
    factor = "" if penalty is None else f" * {_number(penalty)}"
    result = (lexical * weight + semantic * (1 - weight)) * row["earliness"]
    return Derivation(
        text=f"({_number(lexical)} * {weight:g} + {_number(semantic)} * {1 - weight:g}) * "
        f"{_number(row['earliness'])}{factor}",
        result=result * (1.0 if penalty is None else penalty),
        evidence=tuple(
            Evidence(what=name, found=row[name])
            for name in ("lexical_similarity", "semantic_similarity", "earliness", "pppl_penalty")
            if row[name] is not None
        ),
    )


def _best(dialogue: Dialogue, row: Row) -> Derivation:
    steps = dialogue.tables["steps"]
    steps = steps.filter(steps["utterance_index"] == row["utterance_index"])
    utilities = steps["U_step"].to_list()
    listed = ", ".join(map(_number, utilities))
    return Derivation(
        text=f"max({listed}), first at step {row['best_step']}",
        result=max(utilities, default=None),
        evidence=tuple(
            Evidence(what=f"step {step['step']}", found=step["U_step"], text=step["prediction"])
            for step in steps.iter_rows(named=True)
        ),
    )


def _average(dialogue: Dialogue, row: Row) -> Derivation:
    utterances = dialogue.tables["utterances"].filter(
        dialogue.tables["utterances"]["U_best"].is_not_null()
    )
    values = utterances["U_best"].to_list()
    return ratio(
        float(sum(values)),
        len(values),
        [
            Evidence(
                what=f"utterance {one['utterance_index']}, best at step {one['best_step']}",
                found=one["U_best"],
                text=one["ground_truth"],
            )
            for one in utterances.iter_rows(named=True)
        ],
    )


def _baseline(dialogue: Dialogue, row: Row, options: ScoreDialogue) -> Derivation:
    texts = [text for text in dialogue.tables["utterances"]["ground_truth"] if text]
    evidence = [Evidence(what="said", text=text) for text in texts]
    n, pairs = len(texts), max(1, options.baseline_pairs)
    if n < 2:
        return ratio(0, 0, evidence, because="fewer than two texts")
    draws = random.Random(options.baseline_seed)
    drawn = [(draws.randrange(n), draws.randrange(n)) for _ in range(pairs)]
    first, second = np.array([(i, (j + 1) % n if i == j else j) for i, j in drawn]).T
    vectors = _vectors(dialogue, texts)
    total = float((vectors @ vectors.T)[first, second].sum())
    return ratio(
        total,
        pairs,
        evidence,
        text=f"{total:.4f} / {pairs:,} random pairs of {n} texts",
    )


def _ground_truth(dialogue: Dialogue, row: Row) -> str:
    utterances = dialogue.tables["utterances"]
    found = utterances.filter(utterances["utterance_index"] == row["utterance_index"])
    return str(found["ground_truth"][0])


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
