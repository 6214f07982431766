"""The two files that the command leaves: what it logged, and the document of the scores."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastscore.durable import committed

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
