"""From texts to sets of concepts: each distinct text once, by the extractor of the options.

Aliases are other spellings of the catalogue's values: an alias adds to what is found and removes
nothing. Annotations are concepts that a chat model, or a person, has read from texts. A line of
their file has a ``text`` and its ``concepts``, lists of values by field as they were written. A
text of which no value is in the catalogue has the concepts of its words, as published.
"""

import difflib
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import orjson
import polars as pl
from polars import col as C

from fastscore.errors import UsageError, did_you_mean
from fastscore.settings.options import read_option_file
from fastscore.suites.grouping import factorize
from fastscore.suites.preference_shift.catalogue import (
    PLOT,
    YEAR,
    Catalogue,
    Record,
    load_catalogue,
    normalise,
    read_csv,
)
from fastscore.suites.preference_shift.concepts import (
    Concepts,
    Matcher,
    Sets,
    concepts_by_ngrams,
    concepts_of,
    gather_sets,
    matcher_of,
    nearest_concepts,
    pairs_of,
    sets_of,
)
from fastscore.suites.preference_shift.options import PreferenceShift

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


def extract_concepts(
    turns: pl.DataFrame, gold: pl.DataFrame, vectors: "VectorView", options: PreferenceShift
) -> tuple[Concepts, Sets, Sets, Sets]:
    """Extract the concepts of both texts of each turn and of its gold constraints.

    Returns the concepts, then E(U), E(S) and the gold ones of each turn, empty if it has none.
    """
    concepts, matcher = prepared_matcher(options)
    written = pl.concat([turns["user_text"], turns["system_text"], gold["text"]])
    codes, texts = factorize(written)
    if options.extract == "embed":
        found = nearest_concepts(texts, concepts, vectors, options)
    elif options.extract == "ngrams":
        found = concepts_by_ngrams(texts, concepts, options)
    else:
        found = matcher.extract(texts)
    if options.extract == "llm":
        found = annotated_concepts(texts, found, concepts, options)
    if options.plot_keywords and options.extract in ("ngrams", "llm"):
        words = pairs_of(matcher.extract(texts))
        plots = words.filter(concepts.terms["is_plot"].gather(words["concept"]))
        found = sets_of(pl.concat([pairs_of(found), plots]), len(texts))
    n_turns = turns.height
    user, system = codes[:n_turns], codes[n_turns : 2 * n_turns]
    # the constraints of a turn are what their values yield in their own field
    pairs = pairs_of(gather_sets(found, codes[2 * n_turns :]))
    of_value = gold.select(C("turn_row", "field").gather(pairs["row"]))
    of_field = concepts.terms["field"].gather(pairs["concept"]) == of_value["field"]
    wanted = sets_of(pairs.with_columns(row=of_value["turn_row"]).filter(of_field), n_turns)
    return concepts, gather_sets(found, user), gather_sets(found, system), wanted


_lock = threading.Lock()
_latest: list[tuple[tuple[object, ...], Concepts, Matcher]] = []


def prepared_matcher(options: PreferenceShift) -> tuple[Concepts, Matcher]:
    """Return the concepts of the options and their automaton, built once for all shards."""
    catalogue = load_catalogue(options.catalogue)
    aliases = read_aliases(options.aliases, catalogue)
    key = (
        catalogue.digest,
        options.field_names,
        options.plot_keywords,
        options.plot_prefix,
        options.match,
        aliases.rows(),
    )
    with _lock:
        if not _latest or _latest[0][0] != key:
            concepts = concepts_of(catalogue, options)
            matcher = matcher_of(concepts, aliases, words=options.match == "word")
            _latest[:] = [(key, concepts, matcher)]
        return _latest[0][1:]


SPELLING, VALUE, FIELD = "spelling", "value", "field"
ALIAS_SCHEMA = {SPELLING: pl.String(), FIELD: pl.String(), VALUE: pl.String()}


def read_aliases(path: str, catalogue: Catalogue) -> pl.DataFrame:
    """Read a table of aliases."""
    if not path:
        return pl.DataFrame(schema=ALIAS_SCHEMA)
    if PurePath(path).suffix.lower() != ".csv":
        raise UsageError(f"aliases {path}: expected a CSV file with spelling, value and field.")
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"aliases {path}: cannot be read: {error.strerror}.") from error
    values = {
        name: set(terms["value"])
        for (name,), terms in catalogue.terms.group_by("field", maintain_order=True)
        if name != PLOT
    }
    records = list(read_csv(path, content))
    if not records:
        raise UsageError(f"{path}: holds no alias, expected a header and at least one line.")
    rows = [row for record in records for row in _aliases(path, record, values)]
    return pl.DataFrame(rows, schema=ALIAS_SCHEMA, orient="row").unique(maintain_order=True)


def _aliases(
    path: str, record: Record, values: dict[str, set[str]]
) -> Iterator[tuple[str, str, str]]:
    place = f"{path}: {record.place}"
    unknown = record.fields.keys() - ALIAS_SCHEMA.keys()
    if unknown or not {SPELLING, VALUE} <= record.fields.keys():
        found = ", ".join(record.fields)
        raise UsageError(
            f"{path}: line 1: the columns are {found}, expected {SPELLING}, {VALUE} and perhaps "
            f"{FIELD}.",
            did_you_mean(min(unknown), ALIAS_SCHEMA) if unknown else None,
        )
    field = str(record.fields.get(FIELD, "")).strip()
    if field and field not in values:
        raise UsageError(
            f"{place}: {FIELD} is {field!r}, expected a field of the catalogue or nothing.",
            did_you_mean(field, values),
        )
    spellings = [text.lower() for text in _texts(place, record, SPELLING)]
    for value in _texts(place, record, VALUE):
        # a year's digits are in other values, too
        is_year = value.isascii() and value.isdigit()
        names = [field] if field else [name for name in values if name != YEAR or is_year]
        of_fields = [
            (name, normalise(name, value))
            for name in names
            if normalise(name, value) in values[name]
        ]
        if not of_fields:
            where = f"the catalogue's field {field!r}" if field else "a field of the catalogue"
            known = sorted(values[field] if field else set().union(*values.values()))
            near = difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.5)
            close = f"Did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"{place}: {VALUE} is {value!r}, expected a value of {where}.",
                f"{close}`fastscore catalogue show` lists the values.",
            )
        for spelling in spellings:
            for name, normal in of_fields:
                yield spelling, name, normal


def _texts(place: str, record: Record, name: str) -> Iterator[str]:
    found = record.fields[name]
    for cell in found if isinstance(found, list) else [found]:
        if not isinstance(cell, str) or not cell.strip():
            raise UsageError(f"{place}: {name} is {cell!r}, expected a text.")
        yield cell.strip()


_SCHEMA = {
    "text": pl.String(),
    "concepts": pl.List(pl.Struct({"field": pl.String(), "value": pl.String()})),
}


def read_annotations(path: str) -> pl.DataFrame:
    """Read a file of annotations; once for all shards."""
    try:
        state = Path(path).stat()
        with _lock:
            return _read_annotations(path, (state.st_mtime_ns, state.st_size))
    except OSError as error:
        raise UsageError(f"annotations {path}: cannot be read: {error.strerror}.") from error


@lru_cache(1)
def _read_annotations(path: str, state: tuple[int, int]) -> pl.DataFrame:
    rows = list(_parse(path, read_option_file(path)))
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.unique("text", keep="first", maintain_order=True)


def _parse(path: str, content: bytes) -> Iterator[tuple[str, list[dict[str, str]]]]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = orjson.loads(line)
            text, concepts = found["text"], found["concepts"]
            pairs = [(name, value) for name, values in concepts.items() for value in values]
            is_sound = all(isinstance(each, str) for each in (text, *(value for _, value in pairs)))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            is_sound = False
        if not is_sound:
            raise UsageError(
                f"annotations {path}:{number}: no annotation, expected an object with "
                "a text and, under 'concepts', lists of texts by field."
            )
        yield text, [{"field": name, "value": value} for name, value in pairs]


def annotated_concepts(
    texts: pl.Series, matched: Sets, concepts: Concepts, options: PreferenceShift
) -> Sets:
    """Return the concepts of texts by the annotations of the options."""
    given = read_annotations(options.annotations)
    rows = (
        texts.to_frame("text")
        .with_row_index("row")
        .join(given.with_columns(known=True), on="text", how="left", maintain_order="left")
    )
    unknown = rows.filter(C("known").is_null() & (C("text").str.strip_chars() != ""))
    if unknown.height:
        raise UsageError(
            f"annotations {options.annotations}: has no line for "
            f"{unknown.height:,} texts of the logs, the first {unknown['text'][0]!r:.60}.",
            "Annotate these logs: `fastscore annotate concepts`, with the same merge_speakers.",
        )
    written = (
        rows.select("row", "concepts").explode("concepts").drop_nulls("concepts").unnest("concepts")
    )
    meanings = _meanings(written.select("field", "value").unique(), concepts, options)
    pairs = written.join(meanings, on=["field", "value"], how="inner")
    found = pairs.select("row", "concept").cast(pl.Int64)
    # a text without a value of the catalogue has the concepts of its words
    others = pairs_of(matched).join(found, on="row", how="anti")
    return sets_of(pl.concat([found, others]), len(texts))


def _meanings(pairs: pl.DataFrame, concepts: Concepts, options: PreferenceShift) -> pl.DataFrame:
    """Return the concept of each pair of a field and a written value.

    A value that is not in the catalogue means the first value of its field, in the catalogue's
    order, that contains it or is contained in it, or else nothing.
    """
    terms = concepts.terms.with_row_index("number").filter(~C("is_plot"))
    numbers = {(name, value): n for name, value, n in terms["field", "value", "number"].rows()}
    catalogue = load_catalogue(options.catalogue)
    order = {
        name: catalogue.field_terms(name)["value"].to_list() for name in terms["field"].unique()
    }
    found = []
    for name, value in pairs.iter_rows():
        normal = normalise(name, value)
        near = (other for other in order.get(name, ()) if normal in other or other in normal)
        meant = normal if (name, normal) in numbers or not normal else next(near, "")
        if (name, meant) in numbers:
            found.append((name, value, numbers[name, meant]))
    schema: Mapping[str, Any] = {"field": pl.String, "value": pl.String, "concept": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")
