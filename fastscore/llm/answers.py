"""Answers of chat models, kept in an SQLite file under the hash of their request.

An answer is committed before anyone uses it, so that whatever is interrupted asks nothing twice.
Several processes may share a file.
"""

import dataclasses
import sqlite3
import threading
from pathlib import Path

import orjson

from fastscore.errors import RunError
from fastscore.llm.requests import Answer, ChatRequest

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT NOT NULL,
    asked_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)
"""
_PATIENCE = 60.0


class AnswerStore:
    """A file of answers.

    Parameters
    ----------
    path
        The file; it is made where it does not stand.

    Raises
    ------
    RunError
        The file cannot be written, or is no such store.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise self._failure(error) from error

    def get(self, key: str) -> Answer | None:
        """Return an answer that was kept, or None."""
        try:
            with self._lock:
                row = self._connection.execute(
                    "SELECT answer FROM answers WHERE key = ?", (key,)
                ).fetchone()
        except sqlite3.Error as error:
            raise self._failure(error) from error
        return None if row is None else Answer(**orjson.loads(row[0]))

    def put(self, key: str, endpoint: str, request: ChatRequest, answer: Answer) -> None:
        """Keep an answer; the first one of a request stays."""
        row = (
            key,
            endpoint,
            request.model,
            orjson.dumps(request.body()).decode(),
            orjson.dumps(dataclasses.asdict(answer)).decode(),
        )
        try:
            with self._lock:
                self._connection.execute(
                    "INSERT OR IGNORE INTO answers (key, endpoint, model, request, answer) "
                    "VALUES (?, ?, ?, ?, ?)",
                    row,
                )
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _failure(self, error: Exception) -> RunError:
        return RunError(
            f"{self.path}: cannot keep answers there ({error}).", "Name another file by --answers."
        )
