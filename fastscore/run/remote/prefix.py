"""The objects below an address, with answers that may be lost.

Every request may be repeated. What became of a conditional request without a clear answer (a lost
one, 409, 412 or 503) is settled by reading back, so what is put once must be unlike anyone else's.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from fastscore.errors import FastscoreError, InputError, RunError
from fastscore.logs import objects

TRIES = 6
PAUSE_SECONDS = 0.05
"""After the first failure; doubled after each further one."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Listed:
    """An object's size in bytes and its entity tag, empty if the store has none."""

    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """The objects of a run, by their names below its address."""

    url: str

    def get(self, name: str) -> bytes | None:
        """Read an object, None if there is none."""

        def read() -> bytes:
            return bytes(objects.obstore().get(*self._place(name)).bytes())

        return self._answer(name, "read", read)

    def head(self, name: str) -> Listed | None:
        """Look an object up, None if there is none."""
        return self._answer(
            name, "read", lambda: _listed(objects.obstore().head(*self._place(name)))
        )

    def put(self, name: str, data: bytes) -> None:
        """Write or overwrite an object that nothing depends on."""
        bucket, key = self._place(name)
        self._answer(
            name, "write", lambda: objects.obstore().put(bucket, key, data, use_multipart=False)
        )

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Write an object once; return whether it has these bytes, however answers were lost."""
        for left in _pauses():
            if self._created(name, data, is_last=not left) is not None:
                return True
            found = self.get(name)
            if found is not None:
                return found == data
            time.sleep(left)
        raise self._error(name, "write", None)

    def add(self, name: str, data: bytes) -> str:
        """Write an object whose name tells its content, unless it is there; return its tag."""
        for left in _pauses():
            tag = self._created(name, data, is_last=not left)
            if tag is not None:
                return tag
            found = self.head(name)
            if found is not None and found.size == len(data):
                return found.tag
            time.sleep(left)
        raise self._error(name, "write", None)

    def listed(self, below: str) -> dict[str, Listed]:
        """List the objects below a name."""
        bucket, key = self._place(below)
        start = len(key) - len(below)

        def collect() -> dict[str, Listed]:
            batches = objects.obstore().list(bucket, key)
            return {each["path"][start:]: _listed(each) for batch in batches for each in batch}

        return self._answer(below, "list", collect) or {}

    def first_level(self) -> list[str]:
        """List the first names below the address, with a slash if objects are below them."""
        bucket, key = self._place("")
        key = key.rstrip("/")

        def collect() -> list[str]:
            found = objects.obstore().list_with_delimiter(bucket, key or None)
            folders = [each.rstrip("/") for each in found["common_prefixes"]]
            names = [each["path"].rpartition("/")[2] for each in found["objects"]]
            return [*names, *(f"{each.rpartition('/')[2]}/" for each in folders)]

        return self._answer("", "list", collect) or []

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""
        self._answer(name, "delete", lambda: objects.obstore().delete(*self._place(name)))

    def _created(self, name: str, data: bytes, *, is_last: bool) -> str | None:
        """Write an object unless it is there; return its tag, None if that is not certain."""
        bucket, key = self._place(name)
        try:
            put = objects.obstore().put(bucket, key, data, mode="create", use_multipart=False)
        except objects.obstore().exceptions.AlreadyExistsError:
            return None
        except (objects.obstore().exceptions.BaseError, FileNotFoundError) as error:
            reason = objects.refusal(self.url, error, "write")
            if reason is not None or is_last:
                raise self._error(name, "write", reason) from None
            return None
        return put["e_tag"] or ""

    def _answer(self, name: str, doing: str, ask: Callable[[], Answer]) -> Answer | None:
        """Ask until there is an answer, None if there is no such object."""
        for left in _pauses():
            try:
                return ask()
            except (objects.obstore().exceptions.BaseError, FileNotFoundError) as error:
                reason = objects.refusal(self.url, error, doing)
                if reason is None and isinstance(error, FileNotFoundError):
                    return None
                if reason is not None or not left:
                    raise self._error(name, doing, reason) from None
            time.sleep(left)
        raise AssertionError

    def _place(self, name: str) -> tuple[Any, str]:
        root, key = objects.split_url(self.url)
        with _as_run_error():
            return objects.open_bucket(root), f"{key}/{name}".lstrip("/")

    def _error(self, name: str, doing: str, reason: str | None) -> FastscoreError:
        return objects.store_error(f"{self.url}/{name}".rstrip("/"), doing, reason, RunError)


@contextmanager
def _as_run_error() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise RunError(error.message, error.hint) from None


def _pauses() -> list[float]:
    """Return the pauses after each try; none after the last."""
    return [*(PAUSE_SECONDS * 2**n for n in range(TRIES - 1)), 0.0]


def _listed(meta: Any) -> Listed:
    return Listed(meta["size"], meta["e_tag"] or "")
