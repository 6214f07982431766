"""Logs in object stores: listed, read by ranges with read-ahead, or downloaded to the cache.

An object is pinned to its entity tag at the first access, a file of a data set on the Hugging Face
hub to the commit, which its address then contains. Messages name objects, and never quote the
store's library, as its texts may contain credentials.
"""

import fnmatch
import hashlib
import io
import itertools
import os
import re
import secrets
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from fastscore_jit.system import replace_file

from fastscore.errors import FastscoreError, InputError, UsageError
from fastscore.files import cache_root
from fastscore.settings.extras import load

SCHEMES = ("s3", "gs", "az", "https", "http", "hf")
BLOCK_BYTES = 8 << 20
"""Larger ranges take twice the processor time."""
BLOCKS_AHEAD = 16
"""Number of blocks of a file to read ahead; twice as many for several files together."""
FIRST_BYTES = 1 << 17
"""Size of an object's beginning, which is cached because many readers need nothing else."""
SMALL_BYTES = 4 << 20
"""Objects up to this size are downloaded whole to the cache, several at once."""
_AT_ONCE = 32
_KEPT = 256
_MAGIC = "*?["
_HUB = "hf://"
_DATA_SET = re.compile(
    r"hf://datasets/(?P<id>[\w.-]+/[\w.-]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/@]+|[^/@]+))?(?:/(?P<path>.*))?",
    re.DOTALL,
)
_QUERY = re.compile(r"[?#&][^/?#&]*=")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BRANCHES = {"~parquet": "refs/convert/parquet"}
_WITHOUT_LIST = ("https", "http")
_PURPOSE = "Reading objects of a store"
_RETRY = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}


@dataclass(frozen=True, slots=True)
class Object:
    """An object: its address, size and entity tag."""

    url: str
    size: int
    tag: str

    @property
    def is_fetched(self) -> bool:
        """Whether it is downloaded to the cache as a whole."""
        return self.size <= SMALL_BYTES or self.url.startswith(_HUB)


_known: dict[str, Object] = {}


def is_remote(path: str) -> bool:
    """Return whether a path is the address of an object."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and scheme in SCHEMES


def look_up(url: str, *, again: bool = False) -> Object | None:
    """Return an object, None if there is none. The answer is cached until the next look-up."""
    if again or url not in _known:
        found = _look_up_hub(url) if url.startswith(_HUB) else _look_up(url)
        if found is None:
            return None
        _known[url] = _known[found.url] = found
    return _known[url]


def _look_up(url: str) -> Object | None:
    store, key = _place(url)
    if not key or key.endswith("/"):
        return None
    try:
        with errors_named(url, "read"):
            head = obstore().head(store, key)
    except FileNotFoundError:
        return None
    return Object(url, head["size"], _tag(head))


def _look_up_hub(url: str) -> Object | None:
    repository, path = find_data_set(url)
    if not path or path.endswith("/"):
        return None
    with _hub() as hub:
        found = hub.find_file(repository, path)
    root = f"{_HUB}datasets/{repository.id}@{repository.commit}"
    return None if found is None else Object(f"{root}/{found.path}", found.size, found.hash)


def find_data_set(url: str) -> tuple[Any, str]:
    """Return the repository of a data set at its current commit, and the path in an address."""
    named = _DATA_SET.fullmatch(url)
    if named is None or _QUERY.search(url):
        raise UsageError(
            "An address that begins with hf:// names no data set.",
            "Give hf://datasets/OWNER/NAME[@REVISION]/PATH. The token is taken from HF_TOKEN.",
        )
    revision = unquote(named["revision"] or "main")
    find = _pinned if _COMMIT.fullmatch(revision) else _repository
    return find(named["id"], _BRANCHES.get(revision, revision)), named["path"] or ""


def _repository(id: str, revision: str) -> Any:
    with _hub() as hub:
        return hub.find_repository("datasets", id, revision)


_pinned = cache(_repository)


@contextmanager
def _hub() -> Iterator[Any]:
    """Return the client of the hub, whose errors become those of inputs."""
    from fastscore_models import hub

    try:
        yield hub
    except hub.HubError as error:
        raise InputError(str(error), error.hint) from None


def list_objects(url: str) -> list[Object]:
    """List the objects below an address, or matching a glob, by name, without hidden ones."""
    if url.startswith(_HUB):
        repository, key = find_data_set(url)
        root = f"{_HUB}datasets/{repository.id}@{repository.commit}"
        list_below = partial(_list_hub, repository)
    else:
        root, key = split_url(url)
        list_below = partial(_list_store, url)
    is_glob = any(character in key for character in _MAGIC)
    before = key[: min(map(key.find, filter(key.__contains__, _MAGIC)))] if is_glob else key
    prefix = before.rpartition("/")[0] if is_glob else key.rstrip("/")
    found = [Object(f"{root}/{path}", size, tag) for path, size, tag in list_below(prefix)]
    begin = len(root) + 1
    below = [
        each
        for each in found
        if not any(part.startswith(".") for part in each.url[begin + len(prefix) :].split("/"))
    ]
    if is_glob:
        parts = key.split("/")
        below = [each for each in below if matches(each.url[begin:].split("/"), parts)]
    _known.update((each.url, each) for each in below)
    return sorted(below, key=lambda each: each.url)


def _list_hub(repository: Any, prefix: str) -> list[tuple[str, int, str]]:
    with _hub() as hub:
        files = hub.list_files(repository, prefix)
    return [(file.path, file.size, file.hash) for file in files]


def _list_store(url: str, prefix: str) -> list[tuple[str, int, str]]:
    if url.startswith(_WITHOUT_LIST):
        raise InputError(
            f"There is no object {url!r}, or it cannot be read.",
            "Over https only single files are read: name each of them.",
        )
    store, _ = _place(url)
    with errors_named(url, "list"):
        listed = obstore().list(store, prefix or None)
        return [(each["path"], each["size"], _tag(each)) for batch in listed for each in batch]


def fetch(objects: Iterable[Object]) -> list[str]:
    """Download whole objects to the cache, several at once, unless cached; return the paths."""
    # not the pool of ranges, for which each task waits
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_fetched, objects))


def size_of(path: str) -> int:
    """Return the size of a file or an object in bytes."""
    return _found(path).size if is_remote(path) else os.stat(path).st_size


def stamp(path: str) -> str:
    """Return a text that changes when a file or an object is rewritten, empty if there is none."""
    if is_remote(path):
        found = look_up(path)
        return "" if found is None else f"{found.size}:{found.tag}"
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def open_file(path: str, stop: int | None = None) -> io.FileIO:
    """Open a file or an object, unbuffered. Nothing after ``stop`` is requested of an object."""
    if path.startswith(_HUB):
        (path,) = fetch([_found(path)])
    if is_remote(path):
        return cast(io.FileIO, ObjectFile(_found(path), stop))
    return open(path, "rb", buffering=0)


class ObjectFile(io.RawIOBase):
    """An object as an unbuffered file, up to ``stop``. Reading past its beginning reads ahead."""

    def __init__(self, object: Object, stop: int | None = None) -> None:
        self._object = object
        self._stop = object.size if stop is None else min(stop, object.size)
        self._at = self._next = 0
        self._ahead: deque[tuple[int, int, Future[bytes]]] = deque()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Change the position."""
        self._at = offset + (0, self._at, self._object.size)[whence]
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, partly at the end."""
        out = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(out) and self._at < self._stop:
            block = self._block()[: min(len(out) - filled, self._stop - self._at)]
            out[filled : filled + len(block)] = block
            filled += len(block)
            self._at += len(block)
        return filled

    def close(self) -> None:
        """Stop the read-ahead."""
        if not self.closed:
            _read_ahead.discard(self)
            for start, _, block in self._ahead:
                if start:  # the beginning stays cached for other readers
                    block.cancel()
            self._ahead.clear()
        super().close()

    def _block(self) -> memoryview:
        """Return the rest of the block at the position, and request blocks after it."""
        while self._ahead and not self._ahead[0][0] <= self._at < self._ahead[0][1]:
            self._ahead.popleft()
        if self._at < FIRST_BYTES:
            if not self._ahead:
                self._next = min(FIRST_BYTES, self._object.size)
                self._ahead.append((0, self._next, _beginning(self._object)))
        else:
            self._ask_ahead()
        start, _, block = self._ahead[0]
        return memoryview(block.result())[self._at - start :]

    def _ask_ahead(self) -> None:
        if not self._ahead:
            self._next = self._at
        _read_ahead.add(self)
        n_ahead = max(2, min(BLOCKS_AHEAD, _AT_ONCE // len(_read_ahead)))
        while self._next < self._stop and len(self._ahead) < n_ahead:
            after = min(self._next + BLOCK_BYTES, self._stop)
            block = request_pool().submit(_range, self._object, self._next, after)
            self._ahead.append((self._next, after, block))
            self._next = after


_read_ahead: "weakref.WeakSet[ObjectFile]" = weakref.WeakSet()
"""Open files, which share the read-ahead."""

_beginnings: dict[Object, Future[bytes]] = {}
_lock = threading.Lock()


def _beginning(object: Object) -> Future[bytes]:
    """Return the future first bytes of an object. Those of the latest objects are cached."""
    with _lock:
        found = _beginnings.pop(object, None)
        if found is None or (found.done() and found.exception()):
            found = request_pool().submit(_range, object, 0, min(FIRST_BYTES, object.size))
        _beginnings[object] = found
        while len(_beginnings) > _KEPT:
            del _beginnings[next(iter(_beginnings))]
        return found


def ask_for_beginnings(objects: Iterable[Object]) -> None:
    """Request the first bytes of objects that are read soon, as many as the cache keeps."""
    for each in itertools.islice(objects, _KEPT):
        _beginning(each)


def _found(url: str) -> Object:
    found = look_up(url)
    if found is None:
        raise FileNotFoundError(2, "there is no such object", url)
    return found


def _range(object: Object, start: int, stop: int) -> bytes:
    """Read bytes of an object, and compare its current entity tag."""
    store, key = _place(object.url)
    try:
        with errors_named(object.url, "read"):
            got = obstore().get(store, key, options={"range": (start, stop)})
            content = bytes(got.bytes())
    except FileNotFoundError as error:
        raise _changed(object.url) from error
    # some stores do not support If-Match
    if _tag(got.meta) != object.tag or len(content) != stop - start:
        raise _changed(object.url)
    return content


def _fetched(object: Object) -> str:
    """Download an object to the cache, under the hash of its address and tag."""
    identity = hashlib.blake2b(f"{object.url}\n{object.tag}".encode(), digest_size=16)
    name = object.url.rpartition("/")[2]
    path = cache_root() / "objects" / identity.hexdigest() / name
    if not path.exists():
        try:
            if object.url.startswith(_HUB):
                repository, key = find_data_set(object.url)
                with _hub() as hub:
                    hub.download(repository, hub.HubFile(key, object.size, object.tag), path)
            else:
                _download(object, path)
        except OSError as error:
            raise InputError(
                f"{object.url!r} cannot be kept in {str(path.parent)!r}: {error.strerror}.",
                "Free some space, or set FASTSCORE_CACHE to another folder.",
            ) from error
    return str(path)


def _download(object: Object, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{secrets.token_hex(8)}.part")
    try:
        with part.open("wb") as out, ObjectFile(object) as remote:
            while block := remote.read(BLOCK_BYTES):
                out.write(block)
        replace_file(part, path)
    finally:
        part.unlink(missing_ok=True)


def split_url(url: str) -> tuple[str, str]:
    """Split an address into its store and the object's key."""
    scheme, _, rest = url.partition("://")
    root, _, key = rest.partition("/")
    if not root or "@" in root or (scheme in _WITHOUT_LIST and ("?" in key or "#" in key)):
        raise UsageError(
            f"The address {scheme}://{root.rpartition('@')[2]}/... cannot be used: "
            + ("it names no store." if not root else "it contains credentials or a query."),
            "Give SCHEME://BUCKET/KEY. Credentials are taken from the environment.",
        )
    return f"{scheme}://{root}", key


def _place(url: str) -> tuple[Any, str]:
    root, key = split_url(url)
    return open_bucket(root), key


@cache
def open_bucket(root: str) -> Any:
    """Open the store of a bucket, once in a process."""
    allowed = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes", "on")
    is_plain = root.startswith("http://") or (root.startswith("s3://") and allowed)
    options = {"allow_http": True} if is_plain else {}
    with errors_named(root, "open"):
        return load("obstore.store", _PURPOSE).from_url(
            root, client_options=options, retry_config=_RETRY
        )


def obstore() -> Any:
    """Import the library of object stores."""
    return load("obstore", _PURPOSE)


@cache
def request_pool() -> ThreadPoolExecutor:
    """Return the threads that wait for stores. Their tasks must not submit tasks to the pool."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fastscore-objects")


def _tag(meta: Any) -> str:
    return str(meta["e_tag"] or meta["last_modified"])


_DONE = {
    "read": "read",
    "list": "listed",
    "open": "opened",
    "write": "written",
    "delete": "deleted",
}
_READER, _CONTRIBUTOR = "Storage Blob Data Reader", "Storage Blob Data Contributor"
_NEEDED = {
    "s3": {
        "read": "s3:GetObject",
        "list": "s3:ListBucket",
        "write": "s3:PutObject",
        "delete": "s3:DeleteObject",
    },
    "gs": {
        "read": "storage.objects.get",
        "list": "storage.objects.list",
        "write": "storage.objects.create",
        "delete": "storage.objects.delete",
    },
    "az": {"read": _READER, "list": _READER, "write": _CONTRIBUTOR, "delete": _CONTRIBUTOR},
}
"""The permission or role for each operation."""
_DENIALS = ("AccessDenied", "403 Forbidden", "AuthorizationPermissionMismatch")
_WORDS = (
    (("ExpiredToken", "TokenRefreshRequired", "token expired"), "the credentials have expired"),
    (("InvalidAccessKeyId", "SignatureDoesNotMatch"), "the credentials are not valid"),
    (("NoSuchBucket", "NoSuchContainer", "ContainerNotFound"), "there is no such bucket"),
    (("Account must be specified",), "AZURE_STORAGE_ACCOUNT_NAME is not set"),
    (("169.254.", "metadata.google.internal"), "no credentials are found"),
)
"""Error texts of stores, and the reasons reported for them."""
_UNREACHABLE = ("kind: Connect", "kind: Timeout")


def refusal(url: str, error: Exception, doing: str) -> str | None:
    """Return why a store refuses a request, or None if it gives no usable answer."""
    answer = str(error)
    for marks, words in _WORDS:
        if any(mark in answer for mark in marks):
            return words
    exceptions = obstore().exceptions
    kinds = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
    if isinstance(error, kinds) or any(mark in answer for mark in _DENIALS):
        needed = _NEEDED.get(url.partition("://")[0], {}).get(doing)
        return "access is denied" + (f"; the permission that is needed: {needed}" if needed else "")
    return None


def store_error(
    url: str, doing: str, reason: str | None, kind: type[FastscoreError] = InputError
) -> FastscoreError:
    """Return the error for a failed request: one sentence, without the store's own text."""
    return kind(
        f"{url!r} cannot be {_DONE[doing]}: {reason or 'the store gives no usable answer'}.",
        "Check the name, the region and the credentials in the environment.",
    )


@contextmanager
def errors_named(url: str, doing: str) -> Iterator[None]:
    """Raise errors of a store as one sentence, without the store's own text."""
    try:
        yield
    except (obstore().exceptions.BaseError, FileNotFoundError, ValueError) as error:
        reason = refusal(url, error, doing)
        if reason is None and isinstance(error, FileNotFoundError):
            raise FileNotFoundError(2, "there is no such object", url) from None
        if reason is None and any(mark in str(error) for mark in _UNREACHABLE):
            reason = "the store cannot be reached"
        raise store_error(url, doing, reason) from None


def _changed(url: str) -> InputError:
    return InputError(
        f"The object {url!r} was changed while it was read.",
        "Run the same command again when nothing writes to it any more.",
    )


def matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether the parts of a key match those of a glob, with ** for any number of parts."""
    if not parts:
        return not names
    if parts[0] == "**":
        return any(matches(names[n:], parts[1:]) for n in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], parts[0]) and matches(names[1:], parts[1:])
