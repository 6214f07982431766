"""The numbered log of a run in an object store, and the lease by which writers take turns.

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
from typing import Any

import orjson

from fastscore.errors import RunConflictError, RunError
from fastscore.logs.objects import request_pool
from fastscore.run.remote.prefix import Prefix

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
        contents = list(request_pool().map(prefix.get, names))
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
