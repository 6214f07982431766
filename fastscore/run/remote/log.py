"""The objects of a run in a store, its numbered log, and the lease by which writers take turns.

Every request may be repeated. What became of a conditional request without a clear answer (a lost
one, 409, 412 or 503) is settled by reading back, so what is put once must be unlike anyone else's.

``log/00000000.json`` and those after it are put once each: ``begin`` of a writer, with an epoch one
higher than the last one's, its ``manifest``, shards that are ``void``, and ``complete`` or ``end``.
A writer appends at the place after the last entry that it has read. So the first entry of a new
writer makes every later one of an older writer fail: no lock has to expire.

``lease/EPOCH`` is a counter that a living writer raises. One whose counter does not rise for
`STILL_SECONDS` by the clock of whoever looks is followed by another writer.
"""

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import getpid
from typing import Any, TypeVar

import orjson

from fastscore.errors import FastscoreError, InputError, RunConflictError, RunError
from fastscore.logs import objects

# Objects

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


# The log

BEAT_SECONDS = 2.0
STILL_SECONDS = 12.0

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Epoch:
    """The time of one writer."""

    number: int  # one higher than that of the writer before
    position: int  # the place of its `begin` in the log
    rounds: int  # how often all receipts before were made void, by `--overwrite`


def read_log(prefix: Prefix, start: int = 0) -> list[Entry]:
    """Read the entries of a log from a place on, in order."""
    found: list[bytes] = []
    if start == 0:
        names = sorted(prefix.listed("log"))
        contents = list(objects.request_pool().map(prefix.get, names))
        for position, (name, content) in enumerate(zip(names, contents, strict=True)):
            if name != _place(position) or content is None:
                break
            found.append(content)
    while (content := prefix.get(_place(start + len(found)))) is not None:
        found.append(content)
    try:
        return [orjson.loads(content) for content in found]
    except orjson.JSONDecodeError as error:
        raise RunError(
            f"{prefix.url}/log: an entry is damaged.",
            "Choose another address as output.",
        ) from error


def append(prefix: Prefix, position: int, entry: Entry) -> bool:
    """Append an entry at a place; False if another one is there."""
    content = orjson.dumps({**entry, "time": int(time.time()), "id": secrets.token_hex(8)})
    return prefix.put_if_absent(_place(position), content)


def rounds(entries: Sequence[Entry]) -> int:
    """Count how often all receipts were made void."""
    return sum(entry["kind"] == "begin" and entry["replaces"] for entry in entries)


def voids(entries: Sequence[Entry]) -> dict[str, int]:
    """Count how often a shard's receipts were made void, by its fingerprint."""
    counted: dict[str, int] = {}
    for entry in entries:
        for fingerprint in entry["shards"] if entry["kind"] == "void" else ():
            counted[fingerprint] = counted.get(fingerprint, 0) + 1
    return counted


def latest(entries: Sequence[Entry], *kinds: str) -> Entry | None:
    """Return the last entry of some kinds since all receipts were made void."""
    for entry in reversed(entries):
        if entry["kind"] in kinds:
            return entry
        if entry["kind"] == "begin" and entry["replaces"]:
            return None
    return None


@contextmanager
def written(
    prefix: Prefix, *, replaces: bool, note: Callable[[str], object]
) -> Iterator[tuple[Epoch, list[Entry]]]:
    """Begin as the log's writer, and end; yields the epoch and the entries so far."""
    epoch, entries = _begin(prefix, replaces, note)
    ended = threading.Event()
    beating = threading.Thread(target=_beat, args=(prefix, epoch, ended), daemon=True)
    beating.start()
    try:
        yield epoch, entries
    finally:
        ended.set()
        with suppress(RunError):
            _end(prefix, epoch)


def check_epoch(prefix: Prefix, epoch: Epoch) -> int:
    """Return the place of the next entry, if no later writer has begun."""
    own = read_log(prefix, epoch.position)
    others = [entry for entry in own if entry["epoch"] != epoch.number]
    if others:
        raise lost(prefix, others[-1])
    return epoch.position + len(own)


def append_as(prefix: Prefix, epoch: Epoch, entry: Entry) -> None:
    """Append an entry of the writer of an epoch."""
    position = check_epoch(prefix, epoch)
    if not append(prefix, position, {**entry, "epoch": epoch.number}):
        check_epoch(prefix, epoch)
        raise lost(prefix, {})


def lost(prefix: Prefix, begun: Entry) -> RunConflictError:
    """Return the error of a writer that another one follows."""
    return RunConflictError(
        f"{prefix.url}: this process no longer holds the run ({_holder(begun)}); it commits "
        "nothing more.",
        "Run the same command again when no other writes there.",
    )


def _begin(
    prefix: Prefix, replaces: bool, note: Callable[[str], object]
) -> tuple[Epoch, list[Entry]]:
    entries = read_log(prefix)
    while True:
        held = max((entry["epoch"] for entry in entries), default=0)
        if held and not _is_released(entries, held):
            _wait_until_still(prefix, held, entries, note)
        later = read_log(prefix, len(entries))
        if later:
            entries += later
            continue
        begin = {
            "kind": "begin",
            "epoch": held + 1,
            "replaces": replaces,
            "host": socket.gethostname(),
            "process": getpid(),
        }
        if append(prefix, len(entries), begin):
            return Epoch(held + 1, len(entries), rounds([*entries, begin])), entries
        entries += read_log(prefix, len(entries))


def _is_released(entries: Sequence[Entry], epoch: int) -> bool:
    kinds = {entry["kind"] for entry in entries if entry["epoch"] == epoch}
    return not kinds.isdisjoint(("complete", "end"))


def _wait_until_still(
    prefix: Prefix, epoch: int, entries: Sequence[Entry], note: Callable[[str], object]
) -> None:
    """Watch the counter of an epoch until it has stood still for long."""
    begun = next(each for each in entries if each["epoch"] == epoch)
    note(
        f"{prefix.url}: another fastscore wrote there ({_holder(begun)}); waiting up to "
        f"{STILL_SECONDS:g} s for a sign of it"
    )
    counter = prefix.get(_lease(epoch))
    since = time.monotonic()
    while time.monotonic() - since < STILL_SECONDS:
        time.sleep(BEAT_SECONDS / 4)
        if prefix.get(_lease(epoch)) != counter:
            raise RunConflictError(
                f"{prefix.url}: another fastscore writes there ({_holder(begun)}).",
                "Wait for it to end, or choose another address as output.",
            )
        if read_log(prefix, len(entries)):
            return


def _beat(prefix: Prefix, epoch: Epoch, ended: threading.Event) -> None:
    """Raise the counter of an epoch until the writer has ended."""
    count = 0
    while True:
        count += 1
        with suppress(RunError):  # the next one may come through
            prefix.put(_lease(epoch.number), str(count).encode())
        if ended.wait(BEAT_SECONDS):
            return


def _end(prefix: Prefix, epoch: Epoch) -> None:
    """Let another writer begin at once."""
    own = read_log(prefix, epoch.position)
    if all(entry["epoch"] == epoch.number for entry in own) and own[-1]["kind"] != "complete":
        append(prefix, epoch.position + len(own), {"kind": "end", "epoch": epoch.number})


def _holder(begun: Entry) -> str:
    if "host" not in begun:
        return "holder unknown"
    return f"host {begun['host']}, process {begun['process']}"


def _place(position: int) -> str:
    return f"log/{position:08d}.json"


def _lease(epoch: int) -> str:
    return f"lease/{epoch}"
