"""Conversations, catalogues and scores in few words, for the tests of the suite."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.suites.base import Events
from fastscore.suites.declarations import ROW_SCHEMA
from fastscore.suites.preference_shift import SUITE, PreferenceShift
from fastscore.vectors.view import VectorView

DRAMA, HORROR = "drama", "horror"
GOOD, BAD = (DRAMA, DRAMA), (DRAMA, HORROR)


MOVIES = {
    "Alien": {
        "name": "Alien",
        "year": "1979",
        "genre": ["Horror Film", "Science Fiction"],
        "actor": ["Sigourney Weaver", "John Hurt"],
        "director": ["Ridley Scott"],
        "language": ["English"],
        "plot": "The crew of a spaceship is hunted by a creature from another planet.",
    },
    "Heat": {
        "name": "Heat",
        "year": 1995,
        "genre": ["Crime Fiction", "Drama"],
        "actor": ["Al Pacino", "Al Pacino", "Robert De Niro"],
        "director": ["Michael Mann"],
        "language": ["English", "Spanish"],
        "plot": "A detective hunts a crew of professional thieves.",
    },
    "Her": {"name": "Her", "year": "2013", "genre": ["Drama", "Romance Film"]},
    "X": {"genre": ["Horror"], "year": None, "actor": "Mia Goth", "name": "X"},
}


def write_catalogue(folder: Path, movies: Any = MOVIES) -> str:
    path = folder / "catalogue.json"
    path.write_text(json.dumps(movies))
    return str(path)


def user(text: str | None, **meta: Any) -> dict[str, Any]:
    return {"speaker": "USER", "text": text} | ({"user_meta": meta} if meta else {})


def system(text: str | None) -> dict[str, Any]:
    return {"speaker": "SYSTEM", "text": text}


def exchange(*texts: str) -> list[dict[str, Any]]:
    return [(user, system)[place % 2](text) for place, text in enumerate(texts)]


def log(*turns: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"session_id": "00001", "model_name": "m", "conversation": list(turns)} | fields


def raw_frame(logs: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make the frame that a log reader would make of these logs."""
    columns: dict[str, Any] = {
        "file": ["logs/a.jsonl"] * len(logs),
        "line": list(range(1, len(logs) + 1)),
        "byte_offset": [0] * len(logs),
    }
    schema = dict(ROW_SCHEMA)
    for column in SUITE.source.columns:
        values = [each.get(column.name) for each in logs]
        if column.kind == "json":
            values = [
                json.dumps(each[column.name]) if column.name in each else None for each in logs
            ]
        columns[column.name] = values
        schema[column.name] = pl.String()
    return pl.DataFrame(columns, schema=schema)


def options(catalogue: str, **values: Any) -> PreferenceShift:
    return PreferenceShift(**{"catalogue": catalogue, "segments": "metadata"} | values)


def read(logs: Sequence[Mapping[str, Any]], chosen: PreferenceShift) -> Events:
    return SUITE.read(raw_frame(logs), chosen)


def score(
    logs: Sequence[Mapping[str, Any]], chosen: PreferenceShift, vectors: VectorView | None = None
) -> dict[str, pl.DataFrame]:
    """Score logs; every table has its declared schema."""
    tables = SUITE.score(read(logs, chosen), vectors or VectorView.empty(), chosen)
    for table in SUITE.tables:
        assert dict(tables[table.name].schema) == table.schema
    return tables


def turn_rows(tables: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    return tables["turns"].to_dicts()


def shifted(*texts: str, points: Sequence[int]) -> dict[str, Any]:
    """Return a log of these texts, taken in turn, in which preferences shift at these turns."""
    return log(*exchange(*texts), shift_events=[{"turn": point} for point in points])
