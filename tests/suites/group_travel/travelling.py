"""Group dialogues for tests: made in a few words, read and scored as a run does."""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from fastscore.suites.base import Events
from fastscore.suites.declarations import ROW_SCHEMA
from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.vectors.view import VectorView

DEFAULTS = GroupTravel()
WIDTH = 64
Turn = Mapping[str, Any]

FLAGS = ("multi_user", "enable_synthesis", "use_social_theory", "enable_feedback")


def flags(condition: str) -> dict[str, bool]:
    return {name: int(condition[1]) > place + 1 for place, name in enumerate(FLAGS)}


def turn(speaker: str, intent: str, utterance: str = "", **cells: Any) -> dict[str, Any]:
    return {"speaker": speaker, "intent": intent, "utterance": utterance, **cells}


def opening(condition: str = "C4", **metadata: Any) -> dict[str, Any]:
    return turn("System", "sys_welcome", metadata={**flags(condition), **metadata})


def raw_rows(*dialogues: Sequence[Turn], name: str = "trip{}.csv") -> pl.DataFrame:
    """Lay dialogues out as the rows of one CSV file each."""
    columns = [column.name for column in SUITE.source.columns]
    rows = []
    for number, turns in enumerate(dialogues):
        for line, cells in enumerate(turns, start=2):
            row = dict.fromkeys(columns)
            row |= {"file": name.format(number), "line": line, "byte_offset": 0}
            for column, cell in cells.items():
                is_text = cell is None or isinstance(cell, str)
                row[column] = cell if is_text else json.dumps(cell, ensure_ascii=False)
            rows.append(row)
    return pl.DataFrame(rows, schema={**ROW_SCHEMA, **dict.fromkeys(columns, pl.String)})


def read(*dialogues: Sequence[Turn], options: GroupTravel = DEFAULTS, **more: Any) -> Events:
    events = SUITE.read(raw_rows(*dialogues, **more), options)
    assert events.rejects.is_empty(), events.rejects.to_dicts()
    return events


def embed(text: str) -> Any:
    """Return a vector of which texts with common words share parts."""
    vector = np.zeros(WIDTH, np.float32)
    for word in text.lower().split() or ["?"]:
        vector[zlib.crc32(word.encode()) % WIDTH] += 1.0
    return vector / np.linalg.norm(vector)


def score(
    *dialogues: Sequence[Turn],
    options: GroupTravel = DEFAULTS,
    semantic: bool | Callable[[str], Any] = False,
    **more: Any,
) -> dict[str, pl.DataFrame]:
    """Score dialogues; without vectors unless asked for, or with those of a function."""
    events = read(*dialogues, options=options, **more)
    view = VectorView.empty()
    if semantic:
        vector = semantic if callable(semantic) else embed
        texts = SUITE.texts(events, options)
        view = VectorView.from_texts(texts, np.stack([vector(text) for text in texts]))
        long_texts = SUITE.long_texts(events, options)
        if len(long_texts):
            # every text is one window, of as many tokens as words
            sums = [len(text.split()) * vector(text) for text in long_texts]
            view = replace(view, windowed=VectorView.from_texts(long_texts, np.stack(sums)))
    tables = SUITE.score(events, view, options)
    for table in SUITE.tables:
        assert dict(tables[table.name].schema) == table.schema
    return tables


def dialogue(*turns: Turn, **more: Any) -> dict[str, Any]:
    return score(turns, **more)["dialogues"].row(0, named=True)


def ratio(row: Mapping[str, Any], metric: str) -> tuple[float | None, float, int]:
    return row[metric], row[f"{metric}_num"], row[f"{metric}_den"]


def pairs_of(*turns: Turn, **more: Any) -> dict[tuple[str, str], dict[str, Any]]:
    rows = score(turns, **more)["pairs"].to_dicts()
    return {(row["member"], row["slot"]): row for row in rows}


DAY = {
    "breakfast": "Dial A Cake, Rockford",
    "lunch": "Flying Mango, Rockford",
    "dinner": "Cafe Southall, Rockford",
    "accommodation": "Pure luxury one bdrm + sofa bed on Central Park, Rockford",
}


def presented(plan: Any, **cells: Any) -> list[dict[str, Any]]:
    return [opening("C4"), turn("System", "sys_present_plan", "", plan=plan, **cells)]


RESTAURANTS = [
    {"Name": "Dial A Cake", "Cuisines": "Bakery, Tea", "Average Cost": 20},
    {"Name": "Flying Mango", "Cuisines": "['Seafood', 'BBQ']"},
    {"name": "Cafe Southall", "cuisines": ["Italian"]},
]

STAYS = [
    {"NAME": "Pure luxury one bdrm + sofa bed on Central Park", "room type": "Entire home/apt",
     "house_rules": "No smoking"},
]  # fmt: skip

CATALOGUE = {
    "ref_info_restaurants": str({"In Rockford": RESTAURANTS}),
    "ref_info_accommodations": STAYS,
}


def wish(speaker: str, slot: str, text: str) -> dict[str, Any]:
    return turn(speaker, f"user_provide_{slot}", text)
