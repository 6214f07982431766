"""The published ``score_dialogue.py``, replaced: same names, files, numbers and exit codes.

``score-dialogue --jsonl LOG [--lex-weight W]`` scores one log and writes
``scores/<log>_run_<time>-score.txt`` and ``.json``; `score_jsonl` returns the same document to a
program. One file is one dialogue, whatever labels its rows carry. What cannot be read is reported
by line and the rest is scored. Without a rest, the script's 0 is kept and explained. Every other
difference is listed in docs/suites/score_dialogue.md.

Nothing heavy is imported before a log is scored.
"""

import argparse
import dataclasses
import gc
import json
import logging
import math
import os
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fastscore.errors import FastscoreError, InputError, counted, listed
from fastscore.files import committed
from fastscore.terminal import prepare_streams, write_note

if TYPE_CHECKING:
    import polars as pl

    from fastscore.compat.environment import ScorerEnvironment
    from fastscore.logs.read.rows import Rows
    from fastscore.suites.base import Events
    from fastscore.suites.score_dialogue import ScoreDialogue
    from fastscore.vectors.view import VectorView


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
                if not os.path.getsize(path):  # a refusal is told on stderr alone
                    os.remove(path)
        _logger.setLevel(level)
        _logger.propagate = propagate


def write_document(document: dict[str, Any], path: str) -> None:
    """Write the JSON file atomically. A failure is logged, as in the published script."""
    try:
        with committed(Path(path)) as file:
            file.write(json.dumps(document, ensure_ascii=False, indent=2).encode())
    except (OSError, ValueError) as error:
        _logger.error("Failed to write JSON summary: %s", error)
    else:
        _logger.info("Wrote JSON summary: %s", path)


TABLE_HEADER = "step\tlex\tcos_raw\tsem_cal\tearli\tU_step\tprediction"

NO_STEPS_U_BEST = -1.0
"""The published score of an utterance without steps, which counts in the mean."""

_ROUNDED = {
    "lexical_similarity": 4,
    "semantic_cosine_raw": 6,
    "semantic_similarity": 4,
    "earliness": 4,
    "U_step": 4,
}

_PERPLEXITIES = ("pppl_prediction", "pppl_ground_truth", "pppl_penalty")
"""Additional fields of a step judged by a masked language model, which the script lacks."""

Document = dict[str, Any]


def refuse_missing_steps(path: str, utterances: "pl.DataFrame") -> None:
    """Refuse a file in which an utterance has no steps, as the published scorer does below 1."""
    without = utterances.filter(utterances["total_steps"] == 0)
    if without.is_empty():
        return
    first = without.row(0, named=True)
    raise InputError(
        f"Utterance {first['utterance_index']} of {path} (line {first['line']}) has a ground "
        "truth and no steps, which only a lexical weight of 1 can score.",
        "Remove it from the log, or set lex_weight to 1.",
    )


def build_document(
    path: str, tables: "dict[str, pl.DataFrame]", penalty: Document | None = None
) -> Document:
    """Return the document of one file, with the published keys, order and rounding.

    A part that is switched off is 0.0. An utterance without steps has U_best -1.0, which enters
    the mean, as published. With a masked language model, ``penalty`` is added to the summary, and
    steps have its perplexities after ``U_step``.
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


__all__ = ["main", "prewarm_score_dialogue_embedder", "prime_score_jsonl_events", "score_jsonl"]

COMMAND_LEX_WEIGHT = 0.5
OUTPUT_FOLDER = "scores"
LISTED_REJECTS = 20
NAMED_LINES = 5
SKIPPED_BY_SCRIPT = "not_json"
"""The one reason for which the script skips a line: at any other it breaks off."""
MOST_PPPL_WEIGHT = 1000.0

_FIELDS = ("event", "utterance_index", "step", "prediction", "ground_truth")

_primed: OrderedDict[str, bytes] = OrderedDict()
_primed_lock = threading.Lock()


def score_jsonl(
    path: str | os.PathLike[str],
    lex_weight: float = 0.0,
    show_steps: bool = True,
    *,
    pppl_model: str | None = None,
    pppl_weight: float | None = None,
) -> dict[str, Any]:
    """Score one dialogue log.

    Parameters
    ----------
    path
        The log: JSON Lines, plain or compressed (``.gz``, ``.zst``).
    lex_weight
        Weight of the lexical part, 0 to 1; the semantic part has the rest.
    show_steps
        Whether each utterance's table of steps is logged (logger ``score_dialogue``, DEBUG).
    pppl_model, pppl_weight
        A masked language model that judges predictions, and how much one that reads worse than the
        ground truth is penalised, 0 to 1000: our own, never published. Without, PPPL_MODEL and
        PPPL_WEIGHT; without these, none.

    Returns
    -------
    dict
        ``log_file``, ``dialogue_uid`` (None), ``utterances`` and ``dialogue_summary``: the
        document that the command writes, with its rounding. With a masked language model, steps
        also have ``pppl_prediction``, ``pppl_ground_truth`` and ``pppl_penalty``, and the summary
        ``pppl_model`` and ``pppl_weight``.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    FastscoreError
        If a weight is out of its range, an environment variable cannot be used, a model is
        missing, an utterance without steps meets a weight below 1, or no line can be scored and
        the script would break off.
    """
    penalty = pppl_model, pppl_weight
    return _score(os.fspath(path), lex_weight, show_steps, logging.DEBUG, penalty)[0]


def _char_similarity(a: str, b: str) -> float:
    """Return the lexical similarity of two texts: callers test the script's private name."""
    from fastscore_kernels import levenshtein_similarity_pairs

    return float(levenshtein_similarity_pairs([a], [b])[0])


def prewarm_score_dialogue_embedder() -> None:
    """Load the models and the kernels now, so that the first log does not wait for them.

    Raises
    ------
    ModelError
        If the embedder, or the masked language model of PPPL_MODEL, is missing or damaged.
    """
    import polars as pl
    from fastscore_kernels import levenshtein_similarity_pairs

    from fastscore.compat.environment import judge_texts, read_environment, view_texts

    environment, texts = read_environment(), pl.Series(["ready"])
    view_texts(texts, environment)
    if environment.pppl_model:
        judge_texts(texts, environment.pppl_model, environment)
    levenshtein_similarity_pairs(["ready"], ["steady"])


def prime_score_jsonl_events(
    path: str | os.PathLike[str], events: Iterable[Mapping[str, Any]]
) -> None:
    """Hand over a log's events, so that the next `score_jsonl` of that path reads no file.

    Parameters
    ----------
    path
        The very string that `score_jsonl` will be given; the file need not exist.
    events
        The log's objects in order; they are copied. They serve one call.
    """
    from fastscore.compat.environment import most_primed_files

    kept = ({name: event[name] for name in _FIELDS if name in event} for event in events)
    lines = "".join(f"{json.dumps(event, default=str)}\n" for event in kept).encode()
    with _primed_lock:
        _primed[os.fspath(path)] = lines
        while len(_primed) > most_primed_files():
            _primed.popitem(last=False)


def command() -> NoReturn:
    """Run the command ``score-dialogue`` and exit with its code."""
    code = main()
    gc.freeze()
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``score-dialogue``.

    Returns
    -------
    int
        0 when the log was scored, even if the JSON file could not be written; 1 when it was not.
        Wrong usage leaves by ``SystemExit`` with 2.
    """
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.pppl_weight and not (parsed.pppl_model or os.environ.get("PPPL_MODEL", "").strip()):
        parser.error("--pppl-weight needs a masked language model: name one with --pppl-model")
    prepare_streams()
    if not os.path.exists(parsed.jsonl):
        write_note(f"score-dialogue: there is no file {parsed.jsonl}.")
        return 1
    stem = Path(parsed.jsonl).stem
    base = f"{stem}_run_{time.strftime('%Y%m%d_%H%M%S')}-score"
    output = os.path.join(OUTPUT_FOLDER, base)
    try:
        os.makedirs(OUTPUT_FOLDER, exist_ok=True)
        with log_to(f"{output}.txt"):
            penalty = parsed.pppl_model, parsed.pppl_weight
            document, notes = _score(parsed.jsonl, parsed.lex_weight, True, logging.INFO, penalty)
            write_document(document, f"{output}.json")
        for note in notes:
            write_note(f"score-dialogue: {note}")
    except (FastscoreError, OSError) as error:
        write_note(f"score-dialogue: {error}")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="score-dialogue",
        description="Score how early and how well each utterance of a dialogue log was predicted.",
        epilog="Writes LOG_run_TIME-score.json and .txt into scores/, prints the BEST lines and "
        "the average. LOG is JSON Lines, and all of its rows are one dialogue: `fastscore score "
        "score_dialogue` tells dialogues apart. Below weight 1 a model is needed: `fastscore "
        "models export mxbai-embed-large-v1`. Exit codes: 0 scored, 1 not scored, 2 usage. "
        "Environment: EMBEDDER_NAME, EMBED_DIM, BASELINE_PAIRS, BASELINE_SEED, PPPL_MODEL, "
        "PPPL_WEIGHT.",
    )
    parser.add_argument("--jsonl", required=True, metavar="LOG", help="the log of one dialogue")
    parser.add_argument(
        "--lex-weight",
        type=_weight,
        default=COMMAND_LEX_WEIGHT,
        metavar="W",
        help="weight of the lexical part, 0 to 1 (default: %(default)s); at 1 no embedder is "
        "needed",
    )
    parser.add_argument(
        "--pppl-model",
        metavar="NAME",
        help="a masked language model that judges predictions; not part of the published score",
    )
    parser.add_argument(
        "--pppl-weight",
        type=partial(_weight, most=MOST_PPPL_WEIGHT),
        metavar="W",
        help="how much a prediction that reads worse than the ground truth is penalised (default: "
        "0); above 0 it needs a model",
    )
    return parser


def _weight(text: str, most: float = 1.0) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0.0 <= weight <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {most:g}")
    return weight


def _score(
    path: str,
    lex_weight: float,
    show_steps: bool,
    table_level: int,
    penalty: tuple[str | None, float | None],
) -> tuple[Document, list[str]]:
    """Return the document of a log, and sentences on what was not read or is read otherwise."""
    import polars as pl

    from fastscore.compat.environment import load_embedder, read_environment
    from fastscore.settings.options import build_options
    from fastscore.suites.registry import check_fork
    from fastscore.suites.score_dialogue.events import read_events
    from fastscore.suites.score_dialogue.options import ScoreDialogue
    from fastscore.suites.score_dialogue.schema import LABELS
    from fastscore.suites.score_dialogue.score import score_events

    check_fork()
    environment = read_environment()
    model, weight = penalty
    options: ScoreDialogue = build_options(
        ScoreDialogue,
        {
            "lex_weight": lex_weight,
            "baseline_pairs": environment.baseline_pairs,
            "baseline_seed": environment.baseline_seed,
            "pppl_model": environment.pppl_model if model is None else model,
            "pppl_weight": environment.pppl_weight if weight is None else weight,
        },
    )
    if options.scores_semantic:
        load_embedder(environment.embedder)  # a missing model is refused before anything compiles
    rows = _read(path)
    unlabelled = {label: pl.lit(None, dtype=pl.String) for label in LABELS}
    frame = rows.frame.with_columns(_integer_step(), **unlabelled)
    events = read_events(frame, options)
    left_out = pl.concat([rows.rejects, events.rejects], how="diagonal")
    left_out = left_out.with_columns(pl.col("count").fill_null(1)).sort("line", maintain_order=True)
    unread = _describe_unread(path, left_out, events)
    _report_rejects(left_out)
    others = _other_readings(rows.frame["step"], frame["step"], events)
    notes = [*unread, *(f"{path}: {note}" for note in others)]
    for note in notes:
        _logger.warning("%s", note)
    if options.scores_semantic:
        refuse_missing_steps(path, events.frames["utterances"])
    _logger.log(table_level, "=== %s (JSONL per-step) ===", path)
    tables = score_events(events, _vectors(events, options, environment), options)
    judged = _penalty(options)
    document = build_document(path, tables, judged)
    _report_baseline(tables, options)

    steps = tables["steps"].rows(named=True)
    _report_utterances(document, steps if show_steps else None, judged, table_level)
    return document, notes


_BEST = ("utterance_number", "best_step", "U_best", "total_steps")


def _report_utterances(
    document: dict[str, Any],
    steps: Sequence[dict[str, Any]] | None,
    penalty: dict[str, Any] | None,
    table_level: int,
) -> None:
    """Log the best step of each utterance, after a table of its steps where they are given."""
    start = 0
    for utterance in document["utterances"]:
        stop = start + utterance["total_steps"]
        if steps is not None:
            for line in table_lines(utterance, steps[start:stop], penalty):
                _logger.log(table_level, "%s", line)
        best = [utterance[name] for name in _BEST]
        _logger.info("[utt %s] BEST step=%s  U_best=%.4f  total_steps=%s", *best)
        _logger.info("")
        start = stop
    # other programs read the dialogue's score by this line
    average = document["dialogue_summary"]["average_U_best_early"]
    _logger.info("Dialogue average U (best-early): %.4f", average)
    _logger.info("")


def _integer_step() -> "pl.Expr":
    """Read the JSON text of a step as the script does: an integer or a boolean, else no step."""
    import polars as pl

    digits = pl.col("step").replace({"true": "1", "false": "0"})
    return digits.cast(pl.Int64, strict=False).alias("step")


def _read(path: str) -> "Rows":
    """Read the fields that score: labels, which the published scorer ignores, are left unread."""
    from fastscore.logs.inputs.files import content_of, read_head
    from fastscore.logs.integrity.file_state import whole_file
    from fastscore.logs.read.rows import read_shard
    from fastscore.suites.score_dialogue.schema import LABELS, SOURCE

    columns = [column for column in SOURCE.columns if column.name not in LABELS]
    for place, column in enumerate(columns):
        if column.name == "step":  # as it is spelt: 1.0 is no step to the script
            columns[place] = dataclasses.replace(column, kind="json", accepts=())
    source = dataclasses.replace(SOURCE, columns=tuple(columns), dialogue_key=())
    with _primed_lock:
        primed = _primed.pop(path, None)
    if primed is None:
        compression = content_of(read_head(path)).compression
        return read_shard(whole_file(path, "jsonl", compression), source)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(primed)
        file.flush()
        shard = whole_file(file.name)
        named = tuple(dataclasses.replace(each, file=path) for each in shard.file_ranges)
        return read_shard(dataclasses.replace(shard, file_ranges=named), source)


def _vectors(
    events: "Events", options: "ScoreDialogue", environment: "ScorerEnvironment"
) -> "VectorView":
    """View the texts' vectors and, where a model judges them, their perplexities."""
    from fastscore.suites.score_dialogue.events import perplexity_texts, texts_to_embed
    from fastscore.vectors.view import VectorView

    vectors, texts = VectorView.empty(), texts_to_embed(events, options)
    if len(texts):
        from fastscore.compat.environment import view_texts

        _logger.debug("Embedder %s, %d dimensions", environment.embedder, environment.dim)
        vectors = view_texts(texts, environment)
    if options.pppl_model and not events.frames["steps"].is_empty():
        from fastscore.compat.environment import judge_texts

        judged = perplexity_texts(events, options)
        view = judge_texts(judged, options.pppl_model, environment)
        vectors = dataclasses.replace(vectors, log_perplexities=view)
    return vectors


def _penalty(options: "ScoreDialogue") -> dict[str, Any] | None:
    """Report the model and weight of the penalty, in the document and the log."""
    if not options.pppl_model:
        return None
    _logger.info(
        "Perplexity penalty: model %s, weight %g; not part of the published score",
        options.pppl_model,
        options.pppl_weight,
    )
    return {"pppl_model": options.pppl_model, "pppl_weight": options.pppl_weight}


def _describe_unread(path: str, left_out: "pl.DataFrame", events: "Events") -> list[str]:
    """Describe lines that are left out and a log without a score. Raise where the script fails."""
    first = [f"{line}" for line in left_out["line"].head(NAMED_LINES)]
    total = int(left_out["count"].sum())
    lines = f"line{'s' * (total > 1)} {listed(first)}"
    lines += f" and {total - len(first):,} more" if total > len(first) else ""
    if not events.frames["utterances"].is_empty():
        return [f"{path}: {lines} cannot be read; the rest is scored."] if total else []
    hint = f"`fastscore inspect {path}` shows what the file contains."
    failing = left_out.filter(left_out["reason"] != SKIPPED_BY_SCRIPT)
    if not failing.is_empty():
        fault = failing.row(0, named=True)
        raise InputError(
            f"No utterance of {path} can be scored: {lines} cannot be read. Line {fault['line']} "
            f"is {fault['reason']}: found {fault['found']}, expected {fault['expected']}.",
            hint,
        )
    n_rows = sum(events.counts.values())
    why = (
        f"{lines} cannot be read as JSON"
        if total and not n_rows
        else "no line has the event 'utterance_complete' and an utterance_index"
        if n_rows
        else "the file is empty"
    )
    return [f"{path}: no utterance is scored, so the average is 0, because {why}. {hint}"]


def _report_rejects(left_out: "pl.DataFrame") -> None:
    for row in left_out.head(LISTED_REJECTS).iter_rows(named=True):
        field = f", field {row['field']}" if row["field"] else ""
        _logger.warning(
            "%s:%d%s: %s: found %s, expected %s; the line is left out",
            row["file"],
            row["line"],
            field,
            row["reason"],
            row["found"],
            row["expected"],
        )


def _other_readings(written: "pl.Series", read: "pl.Series", events: "Events") -> Iterator[str]:
    """Describe what the script, and so this module, reads otherwise than the suite."""
    import polars as pl

    from fastscore.suites.declarations import REPLACED_ROWS

    number = written.cast(pl.Float64, strict=False)
    # beyond 64 bits it is no step to the suite either
    is_whole = (number == number.floor()) & (number.abs() < 2**63)
    fractional = written.filter(read.is_null() & is_whole)
    if len(fractional):
        yield (
            f"{counted(len(fractional), 'rows')} with a step such as {fractional[0]}, which is no "
            "step to the script; `fastscore score` reads it as an integer."
        )
    if replaced := events.counts.get(REPLACED_ROWS):
        yield (
            f"{counted(replaced, 'rows')} replaced by a later row for the same step or utterance: "
            "a file is one dialogue to the script; `fastscore score` tells the dialogues of a "
            "file apart."
        )


def _report_baseline(tables: Mapping[str, "pl.DataFrame"], options: "ScoreDialogue") -> None:
    if not options.calibrates or tables["dialogues"].is_empty():
        return
    _logger.debug(
        "Semantic baseline b from %d GT utts over %d random pairs (seed=%d): b=%.6f",
        int((tables["utterances"]["ground_truth"] != "").sum()),
        options.baseline_pairs,
        options.baseline_seed,
        tables["dialogues"]["semantic_baseline_b"].item(),
    )


if __name__ == "__main__":
    command()
