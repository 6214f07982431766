"""Why the numbers of score_dialogue are what they are."""

from collections.abc import Mapping
from typing import Any

from fastscore.suites.alignment import edit_distance, matched_characters
from fastscore.suites.score_dialogue.options import ScoreDialogueOptions
from fastscore.suites.showing import Dialogue, Evidence, Working

Row = Mapping[str, Any]


def explain(dialogue: Dialogue, metric: str, row: Row, options: ScoreDialogueOptions) -> Working:
    """Explain a metric's value in a row of its table."""
    if metric == "average_U_best_early":
        return _average(dialogue, row)
    if metric == "semantic_baseline_b":
        return _baseline(dialogue, row, options)
    if metric == "U_best":
        return _best(dialogue, row)
    said = _said(dialogue, row)
    prediction = row["prediction"]
    texts = (
        Evidence(what="prediction", text=prediction, marks=matched_characters(prediction, said)),
        Evidence(what="said", text=said, marks=matched_characters(said, prediction)),
    )
    if metric == "lexical_similarity":
        return _lexical(prediction, said, texts)
    if metric == "semantic_cosine_raw":
        return Working(text=f"e(p) . e(g) = {_number(row[metric])}", evidence=texts)
    if metric == "semantic_similarity":
        return _semantic(dialogue, row, options, texts)
    if metric == "earliness":
        return Working(text=f"1 / ({row['step']} + 1)", result=1 / (row["step"] + 1))
    if metric == "pppl_penalty":
        return Working(
            text=f"exp(-{options.pppl_weight:g} * max(0, ln {_number(row['pppl_prediction'])} - ln "
            f"{_number(row['pppl_ground_truth'])}))",
            evidence=texts,
        )
    if metric == "U_step":
        return _utility(row, options)
    which = texts[0] if metric == "pppl_prediction" else texts[1]
    return Working(
        text=f"exp(-mean ln p of its tokens) = {_number(row[metric])}", evidence=(which,)
    )


def _lexical(prediction: str, said: str, texts: tuple[Evidence, ...]) -> Working:
    longest = max(len(prediction), len(said))
    if not longest:
        return Working(text="0, both are empty", result=0.0, evidence=texts)
    distance = edit_distance(prediction, said)
    return Working(
        text=f"max(0, 1 - {distance} / max({len(prediction)}, {len(said)}))",
        result=max(0.0, 1 - distance / longest),
        evidence=(Evidence(what="edits between the texts", found=distance), *texts),
    )


def _semantic(
    dialogue: Dialogue, row: Row, options: ScoreDialogueOptions, texts: tuple[Evidence, ...]
) -> Working:
    cosine = row["semantic_cosine_raw"]
    baseline = dialogue.tables["dialogues"]["semantic_baseline_b"][0]
    if options.calibrates and cosine is not None and baseline is not None:
        scaled = (cosine - baseline) / max(1 - baseline, 1e-6)
        return Working(
            text=f"min(1, max(0, ({_number(cosine)} - {_number(baseline)}) / "
            f"(1 - {_number(baseline)})))",
            result=min(1.0, max(0.0, scaled)),
            evidence=(
                Evidence(what="cosine", found=cosine),
                Evidence(what="baseline of the dialogue", found=baseline),
                *texts,
            ),
        )
    if cosine is not None:
        return Working(text=f"cosine = {_number(cosine)}", result=cosine, evidence=texts)
    words = [set(text.text.split()) for text in texts]
    both, either = words[0] & words[1], words[0] | words[1]
    return Working(
        text=f"{len(both)} / {len(either)} words",
        evidence=(Evidence(what="words of both", found=", ".join(sorted(both))), *texts),
    )


def _utility(row: Row, options: ScoreDialogueOptions) -> Working:
    weight = options.lex_weight
    lexical, semantic = (row[name] or 0.0 for name in ("lexical_similarity", "semantic_similarity"))
    penalty = row["pppl_penalty"]
    factor = "" if penalty is None else f" * {_number(penalty)}"
    result = (lexical * weight + semantic * (1 - weight)) * row["earliness"]
    return Working(
        text=f"({_number(lexical)} * {weight:g} + {_number(semantic)} * {1 - weight:g}) * "
        f"{_number(row['earliness'])}{factor}",
        result=result * (1.0 if penalty is None else penalty),
        evidence=tuple(
            Evidence(what=name, found=row[name])
            for name in ("lexical_similarity", "semantic_similarity", "earliness", "pppl_penalty")
            if row[name] is not None
        ),
    )


def _best(dialogue: Dialogue, row: Row) -> Working:
    steps = dialogue.tables["steps"]
    steps = steps.filter(steps["utterance_index"] == row["utterance_index"])
    utilities = steps["U_step"].to_list()
    listed = ", ".join(map(_number, utilities))
    return Working(
        text=f"max({listed}), first at step {row['best_step']}",
        result=max(utilities, default=None),
        evidence=tuple(
            Evidence(what=f"step {step['step']}", found=step["U_step"], text=step["prediction"])
            for step in steps.iter_rows(named=True)
        ),
    )


def _average(dialogue: Dialogue, row: Row) -> Working:
    utterances = dialogue.tables["utterances"].filter(
        dialogue.tables["utterances"]["U_best"].is_not_null()
    )
    values = utterances["U_best"].to_list()
    return Working(
        text=f"{_number(row['U_best_sum'])} / {row['n_scored']}",
        result=sum(values) / len(values) if values else None,
        evidence=tuple(
            Evidence(
                what=f"utterance {one['utterance_index']}, best at step {one['best_step']}",
                found=one["U_best"],
                text=one["ground_truth"],
            )
            for one in utterances.iter_rows(named=True)
        ),
    )


def _baseline(dialogue: Dialogue, row: Row, options: ScoreDialogueOptions) -> Working:
    texts = [text for text in dialogue.tables["utterances"]["ground_truth"] if text]
    return Working(
        text=f"mean cosine of {options.baseline_pairs:,} random pairs of {len(texts)} texts = "
        f"{_number(row['semantic_baseline_b'])}",
        evidence=tuple(Evidence(what="said", text=text) for text in texts),
    )


def _said(dialogue: Dialogue, row: Row) -> str:
    utterances = dialogue.tables["utterances"]
    found = utterances.filter(utterances["utterance_index"] == row["utterance_index"])
    return str(found["ground_truth"][0])


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
