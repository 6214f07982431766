"""Concepts that a chat model, or anybody else, has read from texts: a file of annotations.

A line of the file has a ``text`` and its ``concepts``, lists of values by field as they were
written. Values are normalised as the catalogue's are; one that the catalogue does not have stands
for the first of its field, in the catalogue's order, that contains it or that it contains, or for
nothing. A text without any concept has those that are found in it by words, as published.
"""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.errors import UsageError
from fastscore.option_files import read_option_file
from fastscore.suites.preference_shift.catalogue import load_catalogue, normalise
from fastscore.suites.preference_shift.concepts import Concepts, Sets, as_sets
from fastscore.suites.preference_shift.options import PreferenceShift

_SCHEMA = {
    "text": pl.String(),
    "concepts": pl.List(pl.Struct({"field": pl.String(), "value": pl.String()})),
}
_lock = threading.Lock()
_latest: dict[tuple[str, int, int], pl.DataFrame] = {}


def read_annotations(path: str) -> pl.DataFrame:
    """Read a file of annotations; once for all shards.

    Returns
    -------
    pl.DataFrame
        ``text``, each once, and ``concepts``: a list of pairs of a field and a value.

    Raises
    ------
    UsageError
        The file cannot be read, or a line in it is no annotation; names the line.
    """
    try:
        state = Path(path).stat()
        key = (path, state.st_mtime_ns, state.st_size)
        with _lock:
            if key not in _latest:
                rows = list(_parse(path, read_option_file(path)))
                _latest.clear()
                frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
                _latest[key] = frame.unique("text", keep="first", maintain_order=True)
            return _latest[key]
    except OSError as error:
        raise UsageError(f"--annotations {path}: cannot be read: {error.strerror}.") from error


def _parse(path: str, content: bytes) -> Iterator[tuple[str, list[dict[str, str]]]]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = orjson.loads(line)
            text, concepts = found["text"], found["concepts"]
            pairs = [
                {"field": name, "value": value}
                for name, values in concepts.items()
                for value in values
            ]
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise _odd_line(path, number) from error
        if not isinstance(text, str) or not all(isinstance(pair["value"], str) for pair in pairs):
            raise _odd_line(path, number)
        yield text, pairs


def _odd_line(path: str, number: int) -> UsageError:
    return UsageError(
        f"--annotations {path}:{number}: no annotation, expected an object with a text and, under "
        "'concepts', lists of texts by field."
    )


def annotated_concepts(
    texts: pl.Series, matched: Sets, concepts: Concepts, options: PreferenceShift
) -> Sets:
    """Return the concepts of texts by the annotations of the options.

    Parameters
    ----------
    texts
        Distinct strings without nulls.
    matched
        What words find in them, for texts without any annotated concept.
    concepts, options
        The concepts that there are; the file of annotations.

    Raises
    ------
    UsageError
        A text stands in no annotation.
    """
    given = read_annotations(options.annotations)
    rows = (
        texts.to_frame("text")
        .with_row_index("row")
        .join(given.with_columns(known=True), on="text", how="left", maintain_order="left")
    )
    unknown = rows.filter(pl.col("known").is_null() & (pl.col("text").str.strip_chars() != ""))
    if unknown.height:
        raise UsageError(
            f"--annotations {options.annotations}: has no line for {unknown.height:,} texts of the "
            f"logs, the first {unknown['text'][0]!r:.60}.",
            "Annotate these logs: `fastscore annotate concepts`, with the same --merge-speakers.",
        )
    pairs = (
        rows.select("row", "concepts")
        .explode("concepts")
        .drop_nulls("concepts")
        .unnest("concepts")
        .join(_meanings(given, concepts, options), on=["field", "value"], how="inner")
    )
    row, concept = (pairs[name].cast(pl.Int64).to_numpy() for name in ("row", "concept"))
    return _or_matched(row, concept, matched, len(texts))


def _or_matched(row: Indices, concept: Indices, matched: Sets, n_texts: int) -> Sets:
    """Put what words find where there is nothing else."""
    members, offsets = matched
    owner = np.repeat(np.arange(n_texts), np.diff(offsets))
    has_any = np.zeros(n_texts, np.bool_)
    has_any[row] = True
    instead = ~has_any[owner]
    return as_sets(
        np.concatenate((row, owner[instead])),
        np.concatenate((concept, members[instead].astype(np.int64))),
        n_texts,
    )


def _meanings(given: pl.DataFrame, concepts: Concepts, options: PreferenceShift) -> pl.DataFrame:
    """Say which concept each distinct pair of a field and a written value stands for."""
    pairs = given.select(pl.col("concepts").explode()).drop_nulls().unnest("concepts").unique()
    catalogue = load_catalogue(options.catalogue)
    numbers: dict[str, dict[str, int]] = {}
    rows = concepts.terms.with_row_index("concept_row").filter(~pl.col("is_plot"))
    for name, value, number in rows.select("field", "value", "concept_row").iter_rows():
        numbers.setdefault(name, {})[value] = number
    order = {name: catalogue.field_terms(name)["value"].to_list() for name in numbers}
    found: list[tuple[str, str, int]] = []
    for name, value in pairs.select("field", "value").iter_rows():
        number = _meaning(normalise(name, value), numbers.get(name, {}), order.get(name, []))
        if number is not None:
            found.append((name, value, number))
    schema: Mapping[str, Any] = {"field": pl.String, "value": pl.String, "concept": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _meaning(normal: str, numbers: Mapping[str, int], order: list[str]) -> int | None:
    if not normal:
        return None
    if normal in numbers:
        return numbers[normal]
    near = next((value for value in order if normal in value or value in normal), None)
    return None if near is None else numbers.get(near)
