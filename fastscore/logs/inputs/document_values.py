"""Values in documents: at paths, of JSON text, and the text of a message's content."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

_OPENING = ("[", "{")
_LONG, _LONG_BYTES = re.compile("[0-9]{19}"), re.compile(b"[0-9]{19}")
_OF_MAIL, _OF_POST = "%a, %d %b %Y %H:%M:%S %z", "%a %b %d %H:%M:%S %z %Y"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""How mails write times (RFC 2822)."""
_NO_TEXT_PARTS = ("thinking", "reasoning", "redacted_thinking", "tool_use", "tool_result")
_NO_TEXT_CONTENT = ("reasoning_recap",)
"""How ChatGPT's export calls how long a thought took."""
_TEXT_KEYS = ("text", "parts", "content", "value", "extracted_content")
"""Where a part has its text; the last one is an attachment's of claude.ai."""


def text_of(content: Any) -> Any:
    """Return the text of a message's content.

    Parts of other kinds (calls of tools, thoughts, images) have none. Several texts are joined by
    line ends. A value that has no text at all is None, one that cannot be content stays itself.
    """
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [text for part in content if (text := _text_of_part(part)) is not None]
        # texts beside objects are one text with links and mentions, as Telegram writes it
        is_one = {str, dict} <= {type(part) for part in content}
        return ("" if is_one else "\n").join(texts) if texts else None
    if isinstance(content, dict):
        return _text_of_part(content)
    return content


def _text_of_part(part: Any) -> str | None:
    """Return the text of a part of a message; None if it has none."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("thought") is True:
        return None
    if part.get("type") in _NO_TEXT_PARTS or part.get("content_type") in _NO_TEXT_CONTENT:
        return None
    # ChatGPT's export: what the assistant sends to a tool
    if "author" in part and part.get("recipient") not in (None, "all"):
        return None
    for key in _TEXT_KEYS:
        if part.get(key) is not None:
            found = text_of(part[key])
            return found if isinstance(found, str) else None
    return None


def value_at(value: Any, path: str) -> Any:
    """Return the value that a path leads to; None if it leads nowhere."""
    if not path:
        return value
    if isinstance(value, str):
        value = json_of(value)
    if isinstance(value, dict):
        if path in value:
            return value[path]
        at = path.find(".")
        while at >= 0:
            inside = value.get(path[:at])
            if inside is not None:
                found = value_at(inside, path[at + 1 :])
                if found is not None:
                    return found
            at = path.find(".", at + 1)
        return None
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        try:
            return value_at(value[int(head)], rest)
        except (ValueError, IndexError):
            return None
    return None


def keys_to(value: Any, path: str) -> list[str]:
    """Return the keys along a path, which may have dots; none if it leads through JSON text."""
    if not isinstance(value, dict) or path in value:
        return [path] if isinstance(value, dict) else []
    for place in (place for place, sign in enumerate(path) if sign == "."):
        inside = keys_to(value.get(path[:place]), path[place + 1 :])
        if inside:
            return [path[:place], *inside]
    return []


def first_at(value: Any, paths: Sequence[str]) -> Any:
    """Return the first value other than null that one of some paths leads to."""
    for path in paths:
        is_key = isinstance(value, dict) and path in value
        found = value[path] if is_key else value_at(value, path)
        if found is not None:
            return found
    return None


def scalars_of(value: Any, deepest: int, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the texts, numbers and truth values in objects, with their paths."""
    value = json_of(value)
    if isinstance(value, dict) and deepest:
        for key, inside in value.items():
            yield from scalars_of(inside, deepest - 1, f"{path}.{key}" if path else key)
    elif isinstance(value, str | int | float) and path:
        yield path, value


_YEAR_FIRST = re.compile(
    r"(\d{4})[/.-](\d{1,2})[/.-](\d{1,2})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?"
)
"""How spreadsheets write times in East Asia: 2024/5/1 9:05."""
NO_ORDER, OF_NUMBER, OF_DATE = range(3)
"""What `order_of` takes a value for."""


def order_of(value: Any) -> tuple[int, float]:
    """Return what a time or a number is sorted by; what is neither comes first."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))  # {"$date": ...}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return OF_NUMBER, float(value)
    if not isinstance(value, str):
        return NO_ORDER, 0.0
    with suppress(ValueError):
        return OF_NUMBER, float(value)
    with suppress(ValueError):
        moment = datetime.fromisoformat(value.replace("/", "-"))
        return OF_DATE, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if day := _YEAR_FIRST.fullmatch(value):
        with suppress(ValueError):
            year, month, date, hour, minute, second = (int(part or 0) for part in day.groups())
            moment = datetime(year, month, date, hour, minute, second, tzinfo=UTC)
            return OF_DATE, moment.timestamp()
    if value[:3] in _DAYS:
        form = _OF_MAIL if value[3:4] == "," else _OF_POST
        with suppress(ValueError):
            return OF_DATE, datetime.strptime(value, form).timestamp()
    return NO_ORDER, 0.0


_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?([.,]\d+)?(\s*[AaPp]\.?[Mm]\.?)?")
_OF_DAY = re.compile(
    r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2}),?\s+(\d{1,2}):(\d{2})(?::(\d{2}))?"
    r"(?:\s*([AaPp])\.?[Mm]\.?)?"
)


def is_time(text: str) -> bool:
    """Tell whether a text is a date or a time of day."""
    is_day = _OF_DAY.fullmatch(text) or _CLOCK.fullmatch(text)
    return bool(is_day) or order_of(text)[0] == OF_DATE


def times_by_day_or_month(values: Sequence[Any]) -> list[list[datetime]]:
    """Return times such as 31/07/2025 09:10 as days of months, and as months and days.

    A reading that one of the values does not fit is left out.
    """
    found = [_OF_DAY.fullmatch(value.strip()) for value in values if isinstance(value, str)]
    parts = [each.groups() for each in found if each is not None]
    readings: list[list[datetime]] = []
    for day, month in ((0, 1), (1, 0)) if len(parts) == len(values) else ():
        with suppress(ValueError):
            readings.append(
                [
                    datetime(
                        int(each[2]) + (0 if len(each[2]) > 2 else 2000),
                        int(each[month]),
                        int(each[day]),
                        # 12 AM is midnight
                        int(each[3]) % 12 + 12 * (each[6] in "Pp") if each[6] else int(each[3]),
                        int(each[4]),
                        int(each[5] or 0),
                        tzinfo=UTC,
                    )
                    for each in parts
                ]
            )
    return readings


def json_of(value: Any) -> Any:
    """Return the array or object that a text spells, the value itself otherwise."""
    if isinstance(value, str) and value[:64].lstrip()[:1] in _OPENING:
        try:
            return load_json(value)
        except ValueError:
            return value
    return value


def load_json(text: str | bytes) -> Any:
    """Read JSON; orjson reads no NaN, and integers of more than 64 bits as floats."""
    has_long = _LONG.search(text) if isinstance(text, str) else _LONG_BYTES.search(text)
    if has_long is None:
        try:
            return orjson.loads(text)
        except ValueError:
            pass
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dump_json(value: Any) -> bytes:
    """Write JSON on one line."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # integers of more than 64 bits, lone surrogates: the reader judges them
        return json.dumps(value).encode()
