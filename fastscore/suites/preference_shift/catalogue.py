"""The catalogue: which values its items have in which fields.

Its file is JSON, JSON Lines, CSV or Parquet, plain or compressed. A value is normalised as
published: a genre loses " film", " movie" and " fiction", a year all but its digits, everything is
lower case. The compiled catalogue does not depend on any option.
"""

import codecs
import csv
import hashlib
import io
import json
import math
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import orjson
import polars as pl
from fastscore_jit.threads import raise_if_stopped
from polars import col as C

from fastscore.errors import UsageError, did_you_mean, listed
from fastscore.files import SUFFIXES, UnpackingError, unpack
from fastscore.settings.options import read_option_file

LIST_SEPARATOR = "|"
"""Between the values of one CSV cell."""

_PLAIN_CELLS = ("name", "title", "plot")


@dataclass(frozen=True, slots=True)
class Record:
    """An item as the file has it."""

    place: str  # its place, for messages: `line 3`, `record 'Inception'`
    key: str | None  # its key in a JSON object; None elsewhere
    fields: dict[str, Any]  # its values by field


def read_records(path: str, content: bytes) -> list[Record]:
    """Read the records of a catalogue."""
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in SUFFIXES else ""
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _READERS:
        raise UsageError(
            f"{path}: the suffix names no format of a catalogue.",
            "Formats: " + ", ".join(_READERS) + ", each also with .gz or .zst.",
        )
    try:
        data = unpack(content, compression) if compression else content
    except UnpackingError as error:
        raise UsageError(f"{path}: cannot be unpacked: {error}.") from error
    records = []
    for record in _READERS[suffix](path, data.removeprefix(codecs.BOM_UTF8)):
        raise_if_stopped()
        records.append(record)
    if not records:
        raise UsageError(f"{path}: holds no item, expected at least one.")
    return records


def _read_json(path: str, data: bytes) -> Iterator[Record]:
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path}: not JSON: {error}.") from error
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            place = f"record {key!r}"
            yield Record(place, key, _object(path, place, value))
    elif isinstance(parsed, list):
        for number, value in enumerate(parsed, 1):
            place = f"record {number}"
            yield Record(place, None, _object(path, place, value))
    else:
        raise UsageError(
            f"{path}: holds a JSON {type(parsed).__name__}, expected an object of records by title "
            "or an array of records."
        )


def _read_json_lines(path: str, data: bytes) -> Iterator[Record]:
    for number, line in enumerate(io.BytesIO(data), 1):
        if not line.strip():
            raise_if_stopped()
            continue
        place = f"line {number}"
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise UsageError(f"{path}: {place}: not JSON: {error}.") from error
        yield Record(place, None, _object(path, place, value))


def _object(path: str, place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {place} is {shown(value)}, expected an object of fields.")
    return value


def shown(value: Any) -> str:
    """Write a value as JSON for a message, cut short."""
    try:
        return json.dumps(value, default=str)[:60]
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"


def read_csv(path: str, data: bytes) -> Iterator[Record]:
    """Read the lines of a CSV file with a header; names are in lower case."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}.") from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        if len(set(header)) < len(header):
            raise UsageError(f"{path}: line 1: two columns have the same name.")
        for cells in rows:
            if not cells:
                continue
            place = f"line {rows.line_num}"
            if len(cells) != len(header):
                raise UsageError(
                    f"{path}: {place}: {len(cells)} cells, expected {len(header)} as in the header."
                )
            fields = zip(header, cells, strict=True)
            yield Record(place, None, {name: _cell(name, cell) for name, cell in fields})
    except csv.Error as error:
        raise UsageError(f"{path}: line {rows.line_num}: not CSV: {error}.") from error


def _cell(name: str, cell: str) -> Any:
    if cell.lstrip().startswith("["):
        try:
            return orjson.loads(cell)
        except orjson.JSONDecodeError:
            return cell
    if LIST_SEPARATOR in cell and name not in _PLAIN_CELLS:
        return cell.split(LIST_SEPARATOR)
    return cell


def _read_parquet(path: str, data: bytes) -> Iterator[Record]:
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"{path}: not Parquet: {error}.") from error
    for number, fields in enumerate(frame.iter_rows(named=True), 1):
        yield Record(f"row {number}", None, fields)


_READERS = {
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".csv": read_csv,
    ".parquet": _read_parquet,
}


PLOT = "plot"
YEAR = "year"
NAME = "name"
TITLE = "title"
PLOT_WORD = re.compile(r"[a-zA-Z]{4,}")
PLOT_STOP_WORDS = frozenset(
    """
    about after against also and before city family film from have into life lives movie over
    people place stories story takes that the their them they this through toward towards town
    under when where while with
    """.split()  # noqa: SIM905
)
_GENRE_SUFFIXES = (" film", " movie", " fiction")
_TERM_SCHEMA = {"field": pl.String, "value": pl.String, "surface": pl.String, "item": pl.Int32}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A compiled catalogue."""

    digest: str  # BLAKE2b of the file's content, 16 hexadecimal digits
    # `title` of each item (the key of a JSON object, else its name, else empty)
    items: pl.DataFrame
    # One row a field and normalised value, in order of first appearance by field: `field`, `value`,
    # `surface` (as first written), `n_items` (different items that have it) and `items` (their
    # rows, repeats kept). The field `plot` holds keywords of the plots.
    terms: pl.DataFrame
    # By field, the first entry that is not a value. These fields have no terms.
    unusable: Mapping[str, str]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that have values, in order of first appearance, ``plot`` last."""
        return tuple(self.terms["field"].unique(maintain_order=True).to_list())

    def field_terms(self, name: str) -> pl.DataFrame:
        """Return the terms of a field; none if the catalogue lacks the field."""
        if name in self.unusable:
            raise UsageError(
                f"The catalogue's field {name!r} cannot be used: {self.unusable[name]}"
            )
        return self.terms.filter(C("field") == name)

    def __len__(self) -> int:
        return self.items.height


def inverse_document_frequency(n_items: int, having: int) -> float:
    """Return ``ln((1 + N) / (1 + df)) + 1`` with N at least 1."""
    return math.log((1 + max(1, n_items)) / (1 + having)) + 1.0


def normalise(field_name: str, value: object) -> str:
    """Return a value as it is compared; empty where there is nothing to compare."""
    text = _surface(value)
    if field_name == "genre":
        text = text.lower()
        for suffix in _GENRE_SUFFIXES:
            text = text.replace(suffix, "")
        return text.strip()
    if field_name == YEAR:
        return re.sub(r"[^0-9]", "", text)
    return text.lower()


def _surface(value: object) -> str:
    # a gap in a float column of Parquet is NaN
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    # a table with a gap in it makes 1999.0 of a year
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def plot_keywords(text: str) -> list[str]:
    """Return the distinct words of a plot that are keywords, in order."""
    words = dict.fromkeys(PLOT_WORD.findall(text.lower()))
    return [word for word in words if word not in PLOT_STOP_WORDS]


def load_catalogue(path: str) -> Catalogue:
    """Return a file's compiled catalogue; the latest ones are kept."""
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(
            f"catalogue {path}: cannot be read: {error.strerror}.",
            "Name the file of your items: JSON Lines, JSON or CSV, an item in a row.",
        ) from error
    # the suffix decides how the content is read
    name = "".join(PurePath(path).suffixes[-2:]).lower().encode()
    digest = hashlib.blake2b(name + b"\0" + content, digest_size=8).hexdigest()
    with _lock:
        known = _recent.pop(digest, None)
        _recent[digest] = known or compile_records(read_records(path, content), digest)
        if len(_recent) > _MOST_RECENT:
            del _recent[next(iter(_recent))]
        return _recent[digest]


_recent: dict[str, Catalogue] = {}
_MOST_RECENT = 4
_lock = threading.Lock()


def compile_records(records: Iterable[Record], digest: str = "") -> Catalogue:
    """Collect the terms of records.

    A record without the key ``name`` is called by its key in the JSON object, elsewhere by its
    ``title``.
    """
    titles: list[str] = []
    found: dict[str, list[tuple[str, str, int]]] = {}
    unusable: dict[str, str] = {}
    for item, record in enumerate(records):
        raise_if_stopped()
        fields = record.fields
        if NAME not in fields:
            fields = {**fields, NAME: fields.get(TITLE) if record.key is None else record.key}
        name = "" if isinstance(fields[NAME], list) else _surface(fields[NAME])
        titles.append(name if record.key is None else record.key)
        for field, value in fields.items():
            of_field = found.setdefault(field, [])
            for element in value if isinstance(value, list) else (value,):
                if isinstance(element, dict | list):
                    unusable.setdefault(
                        field,
                        f"{record.place} has {shown(element)} there, "
                        "expected a text, a number or a list of them.",
                    )
                elif field == PLOT:
                    of_field += ((word, word, item) for word in plot_keywords(_surface(element)))
                elif normal := normalise(field, element):
                    of_field.append((normal, _surface(element), item))
    rows = [
        (field, *term)
        for field, of_field in found.items()
        if field not in unusable
        for term in of_field
    ]
    terms = (
        pl.DataFrame(rows, schema=_TERM_SCHEMA, orient="row")
        .group_by("field", "value", maintain_order=True)
        .agg(C("surface").first(), n_items=C("item").n_unique().cast(pl.Int64), items="item")
    )
    return Catalogue(digest, pl.DataFrame({"title": titles}, {"title": pl.String}), terms, unusable)


def check_fields(catalogue: Catalogue, names: Iterable[str], usual: Iterable[str]) -> None:
    """Refuse names of fields that the catalogue does not have, the usual ones excepted."""
    wanted, there = tuple(names), set(catalogue.fields)
    for name in wanted:
        if name not in there and name not in usual and name not in catalogue.unusable:
            raise UsageError(f"The catalogue has no field {name!r}.", did_you_mean(name, there))
    if wanted and not there.union(catalogue.unusable).intersection(wanted):
        raise UsageError(
            f"The catalogue has none of the fields {', '.join(wanted)}.",
            f"It has {listed(sorted(there)) or 'none at all'}: name some in fields.",
        )


def list_fields(catalogue: Catalogue) -> pl.DataFrame:
    """Return one row a field: how many values it has, in how many items, and the commonest."""
    usable = (
        catalogue.terms.group_by("field", maintain_order=True)
        .agg(
            values=pl.len().cast(pl.Int64),
            items=C("items").list.explode().n_unique().cast(pl.Int64),
            commonest=C("value").get(C("n_items").arg_max()),
        )
        .with_columns(problem=pl.lit(None, dtype=pl.String))
    )
    unusable = pl.DataFrame(
        [(name, 0, 0, None, problem) for name, problem in catalogue.unusable.items()],
        schema=usable.schema,
        orient="row",
    )
    return pl.concat([usable, unusable])


def list_values(catalogue: Catalogue, field: str) -> pl.DataFrame:
    """Return the values of a field, the commonest first."""
    terms = catalogue.field_terms(field)
    if terms.is_empty():
        raise UsageError(
            f"The catalogue has no field {field!r}.", did_you_mean(field, catalogue.fields)
        )
    idf = [inverse_document_frequency(len(catalogue), n) for n in terms["n_items"].to_list()]
    return terms.select("value", "surface", "n_items", pl.Series("idf", idf)).sort(
        "n_items", descending=True, maintain_order=True
    )
