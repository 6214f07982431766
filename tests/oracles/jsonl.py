"""Plain-Python definition of a JSON Lines scan's result, by Python's own json."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

LINE_END = re.compile(rb"\r\n|\n|\r")
MAX_DEPTH = 500


@dataclass
class NaiveLine:
    number: int
    start: int
    end: int
    status: str
    values: dict[str, Any] = field(default_factory=dict)


def naive_lines(data: bytes) -> list[tuple[int, int]]:
    """Bounds of each line as Python's text files cut them."""
    bounds = []
    start = 0
    for match in LINE_END.finditer(data):
        bounds.append((start, match.start()))
        start = match.end()
    if start < len(data):
        bounds.append((start, len(data)))
    return bounds


def depth_of(value: Any) -> int:
    """Levels of arrays and objects, equal keys' dropped values not counted."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def naive_scan(data: bytes) -> list[NaiveLine]:
    """Read every line by ``json.loads(line.strip())``."""
    lines = []
    for number, (start, end) in enumerate(naive_lines(data), 1):
        line = NaiveLine(number, start, end, "row")
        lines.append(line)
        try:
            text = data[start:end].decode("utf-8").strip()
        except UnicodeDecodeError:
            line.status = "not_utf8"
            continue
        if not text:
            line.status = "blank"
            continue
        try:
            value = json.loads(text)
        except RecursionError:
            line.status = "nested_too_deeply"
            continue
        except ValueError:
            line.status = "not_json"
            continue
        if not isinstance(value, dict):
            line.status = "not_an_object"
        elif depth_of(value) > MAX_DEPTH:
            line.status = "nested_too_deeply"
        else:
            line.values = value
    return lines
