"""The published scorer's document and log: made of the suite's tables, written as its files."""

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastscore.durable import committed
from fastscore.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_logger = logging.getLogger("score_dialogue")


@contextmanager
def log_to(path: str) -> Iterator[None]:
    """Send the logger's lines to standard output and to a text file."""
    formatter = logging.Formatter("%(asctime)s | %(levelname)s | %(message)s")
    handlers: list[logging.Handler] = [
        logging.StreamHandler(sys.stdout),
        logging.FileHandler(path, mode="a", encoding="utf-8", errors="backslashreplace"),
    ]
    level, propagate = _logger.level, _logger.propagate
    _logger.setLevel(logging.INFO)
    _logger.propagate = False
    for handler in handlers:
        handler.setFormatter(formatter)
        _logger.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            _logger.removeHandler(handler)
            if isinstance(handler, logging.FileHandler):
                handler.close()
        _logger.setLevel(level)
        _logger.propagate = propagate


def write_document(document: dict[str, Any], path: str) -> None:
    """Write the JSON file whole or not at all; a failure is logged, as published."""
    try:
        with committed(Path(path)) as file:
            file.write(json.dumps(document, ensure_ascii=False, indent=2).encode())
    except (OSError, ValueError) as error:
        _logger.error("Failed to write JSON summary: %s", error)
    else:
        _logger.info("Wrote JSON summary: %s", path)


TABLE_HEADER = "step\tlex\tcos_raw\tsem_cal\tearli\tU_step\tprediction"

NO_STEPS_U_BEST = -1.0
"""What the published scorer gives an utterance without steps, and counts in the mean."""

_ROUNDED = {
    "lexical_similarity": 4,
    "semantic_cosine_raw": 6,
    "semantic_similarity": 4,
    "earliness": 4,
    "U_step": 4,
}

_PERPLEXITIES = ("pppl_prediction", "pppl_ground_truth", "pppl_penalty")
"""What a step has besides where a masked language model judged it; none of it is published."""

Document = dict[str, Any]


def refuse_missing_steps(path: str, utterances: "pl.DataFrame") -> None:
    """Refuse a file in which an utterance has no steps, as the published scorer does below 1.

    Raises
    ------
    InputError
        Names the first such utterance and its line.
    """
    without = utterances.filter(utterances["total_steps"] == 0)
    if without.is_empty():
        return
    first = without.row(0, named=True)
    raise InputError(
        f"Utterance {first['utterance_index']} of {path} (line {first['line']}) has a ground "
        "truth and no steps, which only a lexical weight of 1 can score.",
        "Remove it from the log, or score with --lex-weight 1.",
    )


def build_document(
    path: str, tables: "dict[str, pl.DataFrame]", penalty: Document | None = None
) -> Document:
    """Return the document of one file: keys, their order and rounding as published.

    A part that is switched off is 0.0. An utterance without steps has U_best -1.0, which enters
    the mean, as published. Where a masked language model judged the texts, ``penalty`` says so in
    the summary, and steps have its perplexities after ``U_step``.
    """
    utterances = tables["utterances"].rows(named=True)
    steps = iter(tables["steps"].rows(named=True))
    documents, best = [], []
    for utterance in utterances:
        total = utterance["total_steps"]
        U_best = utterance["U_best"] if total else NO_STEPS_U_BEST
        best.append(U_best)
        documents.append(
            {
                "utterance_number": utterance["utterance_index"],
                "ground_truth": utterance["ground_truth"],
                "steps": [_step_document(next(steps), penalty) for _ in range(total)],
                "best_step": utterance["best_step"] or 0,
                "U_best": round(U_best, 4),
                "total_steps": total,
            }
        )
    baseline = tables["dialogues"]["semantic_baseline_b"].drop_nulls()
    return {
        "log_file": path,
        "dialogue_uid": None,
        "utterances": documents,
        "dialogue_summary": {
            "average_U_best_early": round(sum(best) / len(best), 4) if best else 0.0,
            "semantic_baseline_b": round(baseline.item(), 6) if len(baseline) else 0.0,
            **(penalty or {}),
        },
    }


def _step_document(step: dict[str, Any], penalty: Document | None) -> Document:
    scores = {name: round(step[name] or 0.0, digits) for name, digits in _ROUNDED.items()}
    for name in _PERPLEXITIES if penalty else ():
        scores[name] = None if step[name] is None else round(step[name], 4)
    return {"step": step["step"], **scores, "prediction": step["prediction"]}


def table_lines(
    utterance: Document, steps: Iterable[dict[str, Any]], penalty: Document | None = None
) -> Iterator[str]:
    """Yield the per-step table of one utterance of a document, from its rows in ``steps``."""
    yield f"[utt {utterance['utterance_number']}] ground_truth: {utterance['ground_truth']}"
    judged = _PERPLEXITIES if penalty else ()
    *numbers, prediction = TABLE_HEADER.split("\t")
    yield "\t".join([*numbers, *judged, prediction])
    for step in steps:
        cells = [f"{step[name] or 0.0:.4f}" for name in _ROUNDED]
        cells += ["-" if step[name] is None else f"{step[name]:.4f}" for name in judged]
        yield "\t".join([str(step["step"]), *cells, step["prediction"]])


def best_line(utterance: Document) -> str:
    """Return the line that names an utterance's best step."""
    return (
        f"[utt {utterance['utterance_number']}] BEST step={utterance['best_step']}  "
        f"U_best={utterance['U_best']:.4f}  total_steps={utterance['total_steps']}"
    )


def average_line(document: Document) -> str:
    """Return the line by which other programs read the dialogue's score."""
    average = document["dialogue_summary"]["average_U_best_early"]
    return f"Dialogue average U (best-early): {average:.4f}"
