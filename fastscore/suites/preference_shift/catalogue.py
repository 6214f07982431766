"""The catalogue: which values its items have in which fields, compiled once and cached.

A value is normalised as published: a genre loses " film", " movie" and " fiction", a year all but
its digits, everything is lower case. The compiled catalogue does not depend on any option; it is
kept in the cache under the hash of the file's content.
"""

import contextlib
import hashlib
import io
import json
import math
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import polars as pl
from fastscore_jit.stopping import raise_if_stopped

from fastscore.content_hash import hash_bytes
from fastscore.errors import UsageError, listed, nearest
from fastscore.option_files import read_option_file
from fastscore.paths import cache_root
from fastscore.suites.preference_shift.catalogue_files import Record, read_records, shown

PLOT = "plot"
YEAR = "year"
NAME = "name"
TITLE = "title"
LAYOUT = 2
"""Rises whenever the same file compiles to something else."""

PLOT_WORD = re.compile(r"[a-zA-Z]{4,}")
PLOT_STOP_WORDS = frozenset(
    """
    about after against also and before city family film from have into life lives movie over
    people place stories story takes that the their them they this through toward towards town
    under when where while with
    """.split()  # noqa: SIM905
)
_GENRE_SUFFIXES = (" film", " movie", " fiction")
_ITEMS, _TERMS, _HASHES = "items.parquet", "terms.parquet", "hashes"
_UNUSABLE = "fastscore.unusable"

_ITEM_SCHEMA = {"title": pl.String}
_TERM_SCHEMA: dict[str, Any] = {
    "field": pl.String,
    "value": pl.String,
    "surface": pl.String,
    "n_items": pl.Int64,
    "items": pl.List(pl.Int32),
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A compiled catalogue.

    Parameters
    ----------
    digest
        BLAKE2b of the file's content, 16 hexadecimal digits.
    items
        ``title`` of each item (the key of a JSON object, else its name, else empty).
    terms
        One row a field and normalised value, in order of first appearance by field: ``field``,
        ``value``, ``surface`` (as first written), ``n_items`` (different items that have it) and
        ``items`` (their rows, repeats kept). The field ``plot`` holds keywords of the plots.
    unusable
        By field, what stands there first that is no value: such a field has no terms.
    """

    digest: str
    items: pl.DataFrame
    terms: pl.DataFrame
    unusable: Mapping[str, str]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that have values, in order of first appearance, ``plot`` last."""
        return tuple(self.terms["field"].unique(maintain_order=True).to_list())

    def field_terms(self, name: str) -> pl.DataFrame:
        """Return the terms of a field; none where the catalogue has no such field.

        Raises
        ------
        UsageError
            The field holds what is no value.
        """
        if name in self.unusable:
            raise UsageError(
                f"The catalogue's field {name!r} cannot be used: {self.unusable[name]}"
            )
        return self.terms.filter(pl.col("field") == name)

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
    """Return a file's compiled catalogue, from the cache where it is there.

    Raises
    ------
    UsageError
        The file cannot be read, or is no catalogue.
    """
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"--catalogue {path}: cannot be read: {error.strerror}.") from error
    # the suffix decides how the content is read
    name = "".join(PurePath(path).suffixes[-2:]).lower().encode()
    digest = hashlib.blake2b(name + b"\0" + content, digest_size=8).hexdigest()
    with _lock:
        known = _recent.pop(digest, None)
        _recent[digest] = known or _cached(digest) or _compiled(path, content, digest)
        if len(_recent) > _MOST_RECENT:
            del _recent[next(iter(_recent))]
        return _recent[digest]


_recent: dict[str, Catalogue] = {}
_MOST_RECENT = 4
_lock = threading.Lock()


def catalogue_folder(digest: str) -> Path:
    """Return the folder in the cache that holds a compiled catalogue."""
    return cache_root() / "catalogues" / f"{digest}-{LAYOUT}"


def _cached(digest: str) -> Catalogue | None:
    folder = catalogue_folder(digest)
    try:
        written = [(folder / name).read_bytes() for name in (_ITEMS, _TERMS)]
        if (folder / _HASHES).read_bytes() != _hashes(written):
            return None  # damaged: it is compiled again
        items, terms = map(pl.read_parquet, written)
        unusable = json.loads(pl.read_parquet_metadata(io.BytesIO(written[1]))[_UNUSABLE])
    except (OSError, pl.exceptions.PolarsError, KeyError, ValueError):
        return None  # not compiled yet
    if items.schema != _ITEM_SCHEMA or terms.schema != _TERM_SCHEMA:
        return None
    return Catalogue(digest, items, terms, unusable)


def _compiled(path: str, content: bytes, digest: str) -> Catalogue:
    catalogue = compile_records(read_records(path, content), digest)
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
        _save(catalogue)
    return catalogue


def _save(catalogue: Catalogue) -> None:
    """Write the files under another name, then rename: readers see all or nothing."""
    folder = catalogue_folder(catalogue.digest)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        catalogue.items.write_parquet(made / _ITEMS)
        unusable = json.dumps(dict(catalogue.unusable))
        catalogue.terms.write_parquet(made / _TERMS, metadata={_UNUSABLE: unusable})
        written = [(made / name).read_bytes() for name in (_ITEMS, _TERMS)]
        (made / _HASHES).write_bytes(_hashes(written))
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _hashes(written: Iterable[bytes]) -> bytes:
    """Return what the hashes of the cache's files are kept as: a line each."""
    return "".join(f"{hash_bytes(data)}\n" for data in written).encode()


@dataclass(slots=True)
class _Terms:
    """The terms of a field while they are collected."""

    surfaces: dict[str, str] = field(default_factory=dict)
    items: dict[str, list[int]] = field(default_factory=dict)

    def add(self, value: str, surface: str, item: int) -> None:
        self.surfaces.setdefault(value, surface)
        self.items.setdefault(value, []).append(item)


def compile_records(records: Iterable[Record], digest: str = "") -> Catalogue:
    """Collect the terms of records.

    A record without the key ``name`` is called by its key in the JSON object, elsewhere by its
    ``title``.
    """
    titles: list[str] = []
    found: dict[str, _Terms] = {}
    unusable: dict[str, str] = {}
    for item, record in enumerate(records):
        raise_if_stopped()
        fields = record.fields
        if NAME not in fields:
            fields = {**fields, NAME: fields.get(TITLE) if record.key is None else record.key}
        name = _surface(fields.get(NAME)) if not isinstance(fields.get(NAME), list) else ""
        titles.append(record.key if record.key is not None else name)
        for field_name, value in fields.items():
            terms = found.setdefault(field_name, _Terms())
            for element in value if isinstance(value, list) else (value,):
                if isinstance(element, dict | list):
                    unusable.setdefault(
                        field_name,
                        f"{record.place} has {shown(element)} there, "
                        "expected a text, a number or a list of them.",
                    )
                elif field_name == PLOT:
                    for word in plot_keywords(_surface(element)):
                        terms.add(word, word, item)
                else:
                    normal = normalise(field_name, element)
                    if normal:
                        terms.add(normal, _surface(element), item)
    columns: dict[str, list[Any]] = {name: [] for name in _TERM_SCHEMA}
    for field_name, terms in found.items():
        if field_name in unusable:
            continue
        columns["field"] += [field_name] * len(terms.items)
        columns["value"] += terms.items
        columns["surface"] += terms.surfaces.values()
        columns["n_items"] += [len(set(items)) for items in terms.items.values()]
        columns["items"] += terms.items.values()
    return Catalogue(
        digest,
        pl.DataFrame({"title": titles}, schema=_ITEM_SCHEMA),
        pl.DataFrame(columns, schema=_TERM_SCHEMA),
        unusable,
    )


def check_fields(catalogue: Catalogue, names: Iterable[str], usual: Iterable[str]) -> None:
    """Refuse names of fields that the catalogue does not have, the usual ones excepted.

    Raises
    ------
    UsageError
        A name that is neither usual nor in the catalogue, or not one that is there.
    """
    wanted, there = tuple(names), set(catalogue.fields)
    for name in wanted:
        if name not in there and name not in usual and name not in catalogue.unusable:
            raise UsageError(f"The catalogue has no field {name!r}.", nearest(name, there))
    if wanted and not there.union(catalogue.unusable).intersection(wanted):
        raise UsageError(
            f"The catalogue has none of the fields {', '.join(wanted)}.",
            f"It has {listed(sorted(there)) or 'none at all'}: name some by --fields.",
        )
