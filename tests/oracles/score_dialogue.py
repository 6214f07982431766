"""The whole scorer in plain Python, written from its definitions: the oracle of the suite.

Rows are (file, line, JSON object) triples. Nothing here is shared with the suite.
"""

from typing import Any

from tests.oracles.kernels import index_pairs, levenshtein_similarity

LABELS = ("dialogue_uid", "challenge_uid", "challenge_type", "miner_uid", "miner_hotkey")
KEY = ("dialogue_uid", "challenge_uid", "miner_uid", "miner_hotkey")


class Reject(Exception):
    """The row has a field that the definitions cannot use."""


def added_in_order(values: list[float]) -> float:
    """Add as the published script's Python did; from 3.12 on, `sum` compensates for rounding."""
    total = 0.0
    for value in values:
        total += value
    return total


def utterance_index_of(row: dict[str, Any]) -> int | None:
    value = row.get("utterance_index")
    if value is None:
        return None
    if not isinstance(value, (int, float, str)):
        raise Reject
    try:
        return int(value)
    except (ValueError, OverflowError):
        raise Reject from None


def text_of(row: dict[str, Any], field: str, event: str) -> str:
    """Text of a field that only rows of one event use."""
    value = row.get(field)
    if not value or row.get("event") != event:
        return ""
    if not isinstance(value, str):
        raise Reject
    return value


def label_of(row: dict[str, Any], field: str) -> str | None:
    value = row.get(field)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if field == "challenge_type":
        return None
    raise Reject


def step_of(row: dict[str, Any]) -> int | None:
    value = row.get("step")
    if isinstance(value, float) and value.is_integer():  # as pandas writes integers with gaps
        value = int(value)
    return int(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def strip_eof(text: str) -> str:
    text = text.strip()
    if text.endswith("EOF"):
        text = text[:-3].strip()
    return text


def jaccard(a: str, b: str) -> float:
    first, second = set(a.split()), set(b.split())
    return len(first & second) / len(first | second) if first | second else 0.0


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def baseline(vectors: list[list[float]], pairs: int, seed: int) -> float:
    n = len(vectors)
    if n < 2:
        return 0.0
    total = 0.0
    for i, j in index_pairs(n, max(1, pairs), seed):
        total += dot(vectors[i], vectors[j])
    return total / max(1, pairs)


def score_log(
    rows: list[tuple[str, int, dict[str, Any]]],
    *,
    weight: float,
    semantic: str = "calibrated",
    vectors: dict[str, list[float]] | None = None,
    pairs: int = 20_000,
    seed: int = 0,
) -> tuple[list[dict[str, Any]], int, int]:
    """Return the scored dialogues by first appearance, and how many rows were rejected, ignored."""
    dialogues: dict[tuple[Any, ...], dict[str, Any]] = {}
    rejected = ignored = 0
    for file, line, given in rows:
        # NaN is no value, whatever the column
        row = {name: None if value != value else value for name, value in given.items()}
        try:
            index = utterance_index_of(row)
            event = {
                "event": row.get("event"),
                "step": step_of(row),
                "prediction": text_of(row, "prediction", "predicted"),
                "ground_truth": text_of(row, "ground_truth", "utterance_complete"),
                "line": line,
            }
            labels = {label: label_of(row, label) for label in LABELS}
        except Reject:
            rejected += 1
            continue
        if index is None:
            ignored += 1
            continue
        key = (file,) if labels["dialogue_uid"] is None else (None, *(labels[k] for k in KEY))
        dialogue = dialogues.setdefault(
            key, {"file": file, "labels": dict.fromkeys(LABELS), "groups": {}}
        )
        for label, value in labels.items():
            if dialogue["labels"][label] is None:
                dialogue["labels"][label] = value
        dialogue["groups"].setdefault(index, []).append(event)
    scored = [
        score_dialogue(dialogue, weight, semantic, vectors or {}, pairs, seed)
        for dialogue in dialogues.values()
    ]
    return scored, rejected, ignored


def rows_without_id(rows: list[tuple[str, int, dict[str, Any]]]) -> list[tuple[str, int]]:
    """Return the places of used rows without a dialogue_uid, in files where others begin with one.

    Runs refuse a dialogue in two files before they read it.
    """
    dialogues, _, _ = score_log(rows, weight=1.0)
    with_id = {each["file"] for each in dialogues if each["labels"]["dialogue_uid"] is not None}
    without = []
    for file, line, row in rows:
        used, _, _ = score_log([(file, line, row)], weight=1.0)
        if file in with_id and used and used[0]["labels"]["dialogue_uid"] is None:
            without.append((file, line))
    return without


def score_utterance(
    truth: str,
    events: list[dict[str, Any]],
    weight: float,
    semantic: str,
    vectors: dict[str, list[float]],
    b: float,
) -> dict[str, Any]:
    """Return the steps of an utterance, and the best of them."""
    predicted = [event for event in events if event["event"] == "predicted"]
    revealed = [
        event["step"]
        for event in events
        if event["event"] == "revealed" and event["step"] is not None
    ]
    total = max(0, max(revealed) + 1) if revealed else len(predicted)
    steps = []
    for step in range(total):
        at_step = [event for event in predicted if event["step"] == step]
        prediction = strip_eof(at_step[-1]["prediction"]) if at_step else ""
        lexical = levenshtein_similarity(prediction, truth) if weight > 0 else 0.0
        cosine = 0.0
        meaning = 0.0
        if weight < 1 and semantic == "jaccard":
            meaning = jaccard(prediction, truth)
        elif weight < 1 and semantic == "cosine":
            if prediction or truth:
                cosine = dot(vectors[prediction], vectors[truth])
            meaning = cosine
        elif weight < 1:
            cosine = dot(vectors[prediction], vectors[truth])
            meaning = max(0.0, min(1.0, (cosine - b) / max(1 - b, 1e-6)))
        earliness = 1 / (step + 1)
        steps.append(
            {
                "step": step,
                "prediction": prediction,
                "line": at_step[-1]["line"] if at_step else None,
                "lexical_similarity": lexical,
                "semantic_cosine_raw": cosine,
                "semantic_similarity": meaning,
                "earliness": earliness,
                "U_step": (lexical * weight + meaning * (1 - weight)) * earliness,
            }
        )
    best, best_step = -1.0, 0
    for step in steps:
        if step["U_step"] > best:
            best, best_step = step["U_step"], step["step"]
    return {
        "steps": steps,
        "U_best": best if steps else None,
        "best_step": best_step if steps else None,
    }


def score_dialogue(
    dialogue: dict[str, Any],
    weight: float,
    semantic: str,
    vectors: dict[str, list[float]],
    pairs: int,
    seed: int,
) -> dict[str, Any]:
    completed = {}
    for index, events in sorted(dialogue["groups"].items()):
        ends = [event for event in events if event["event"] == "utterance_complete"]
        if ends:
            completed[index] = (strip_eof(ends[-1]["ground_truth"]), ends[-1]["line"], events)
    pool = [truth for truth, _, _ in completed.values() if truth]
    calibrated = semantic == "calibrated" and weight < 1
    b = baseline([vectors[text] for text in pool], pairs, seed) if calibrated else 0.0
    utterances = []
    n_used = n_no_such_step = 0
    for index, (truth, line, events) in completed.items():
        utterance = score_utterance(truth, events, weight, semantic, vectors, b)
        n_no_such_step += sum(
            event["step"] is None or not 0 <= event["step"] < len(utterance["steps"])
            for event in events
            if event["event"] == "predicted"
        )
        n_used += sum(step["line"] is not None for step in utterance["steps"])
        utterances.append(
            {"utterance_index": index, "ground_truth": truth, "line": line} | utterance
        )
    scores = [utterance["U_best"] for utterance in utterances if utterance["steps"]]
    n_predictions = sum(
        event["event"] == "predicted" for events in dialogue["groups"].values() for event in events
    )
    return {
        "file": dialogue["file"],
        "labels": dialogue["labels"],
        "utterances": utterances,
        "n_incomplete": len(dialogue["groups"]) - len(completed),
        "n_predictions": n_predictions,
        "n_no_such_step": n_no_such_step,
        "n_predictions_unscored": n_predictions - n_used,
        "average": added_in_order(scores) / len(scores) if scores else None,
        "baseline": b,
    }
