"""A server of objects on this machine, as S3 answers, with faults on demand."""

import hashlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

MOST_LISTED = 5
"""Listings come in pages."""
WRITTEN = "Thu, 01 Jan 2026 00:00:00 GMT"
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


@dataclass
class Store:
    """Objects by bucket and key, the requests for them, and the store's faults."""

    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    refused: tuple[int, str] | None = None
    read_only: bool = False
    spell_tag: Callable[[str], str | None] = '"{}"'.format
    ignores_ranges: bool = False
    delay: float = 0.0
    url: str = ""
    faults: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fails(self, fault: str) -> bool:
        """Tell whether a request meets a fault: ``lost``, ``503`` or ``409``, by its share."""
        return random.random() < self.faults.get(fault, 0.0)

    def ranges(self, key: str) -> int:
        return sum(method == "GET" and path == key for method, path, _ in self.asked)

    def bytes_read(self, key: str) -> int:
        """Count the bytes that were asked for of an object."""
        size = len(self.objects[key])
        asked = [span for method, path, span in self.asked if method == "GET" and path == key]
        return sum(stop - start for start, stop in (_bounds(span, size) for span in asked))


class _Handler(BaseHTTPRequestHandler):
    store: Store
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path, query = unquote(url.path).lstrip("/"), dict(parse_qsl(url.query))
        self.store.asked.append((self.command, path, self.headers.get("Range", "")))
        time.sleep(self.store.delay)
        if self.store.refused is not None:
            self._answer(self.store.refused[0], _error(self.store.refused[1]))
        elif "list-type" in query:
            self._answer(*_listing(self.store, path.rstrip("/"), query))
        elif path not in self.store.objects:
            self._answer(404, _error("NoSuchKey"))
        else:
            self._object(self.store.objects[path])

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/")
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        once = self.headers.get("If-None-Match") == "*"
        self.store.asked.append((self.command, path, "once" if once else ""))
        time.sleep(self.store.delay)
        if self.store.refused is not None:
            self._answer(self.store.refused[0], _error(self.store.refused[1]))
        elif path.partition("/")[0] == "gone":
            self._answer(404, _error("NoSuchBucket"))
        elif self.store.read_only:
            self._answer(403, _error("AccessDenied"))
        elif self.store.fails("503"):
            self._answer(503, _error("SlowDown"))
        elif once and self.store.fails("409"):
            self._answer(409, _error("ConditionalRequestConflict"))
        else:
            self._put(path, content, once)

    def _put(self, path: str, content: bytes, once: bool) -> None:
        with self.store.lock:
            is_there = once and path in self.store.objects
            if not is_there:
                self.store.objects[path] = content
        if self.store.fails("lost"):
            self.close_connection = True
            self.connection.close()
        elif is_there:
            self._answer(412, _error("PreconditionFailed"))
        else:
            self._answer(200, b"", {"ETag": f'"{hashlib.md5(content).hexdigest()}"'})

    def do_DELETE(self) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/")
        self.store.asked.append((self.command, path, ""))
        with self.store.lock:
            self.store.objects.pop(path, None)
        self._answer(204, b"")

    def do_POST(self) -> None:
        """Delete several objects."""
        bucket = urlsplit(self.path).path.strip("/")
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        keys = [unescape(key) for key in re.findall("<Key>(.*?)</Key>", asked)]
        for key in keys:
            self.store.asked.append(("DELETE", f"{bucket}/{key}", ""))
            with self.store.lock:
                self.store.objects.pop(f"{bucket}/{key}", None)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._answer(200, f'<DeleteResult xmlns="{NAMESPACE}">{deleted}</DeleteResult>'.encode())

    def _object(self, content: bytes) -> None:
        headers = {"Last-Modified": WRITTEN}
        if tag := self.store.spell_tag(hashlib.md5(content).hexdigest()):
            headers["ETag"] = tag
        asked = self.headers.get("Range")
        if asked is None or self.store.ignores_ranges:
            self._answer(200, content, headers)
            return
        start, stop = _bounds(asked, len(content))
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
        self._answer(206, content[start:stop], headers)

    def _answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _bounds(asked: str, size: int) -> tuple[int, int]:
    """Return where a range begins and ends; all bytes if none was asked for."""
    start, _, last = asked.removeprefix("bytes=").partition("-")
    return int(start or 0), min(int(last or size) + 1, size)


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>secret-token</Message></Error>".encode()


def _listing(store: Store, bucket: str, query: dict[str, str]) -> tuple[int, bytes]:
    with store.lock:
        keys = sorted(key for key in store.objects if key.startswith(f"{bucket}/"))
    if not keys and bucket != "empty":
        return 404, _error("NoSuchBucket")
    prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
    names = [key[len(bucket) + 1 :] for key in keys]
    names = [each for each in names if each.startswith(prefix)]
    if query.get("delimiter"):
        cut = [(each, each[len(prefix) :].partition("/")) for each in names]
        names = sorted({prefix + first + slash for _, (first, slash, _) in cut})
    names = [each for each in names if each > after]
    page = names[:MOST_LISTED]
    more = len(names) > len(page)
    parts = [f'<ListBucketResult xmlns="{NAMESPACE}"><Name>{bucket}</Name>']
    for name in page:
        if name.endswith("/"):
            parts.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
            continue
        content = store.objects.get(f"{bucket}/{name}")
        if content is None:
            continue
        tag = hashlib.md5(content).hexdigest()
        parts.append(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
            f'<ETag>"{tag}"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>'
        )
    parts.append(f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>")
    if more:
        parts.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
    return 200, "".join([*parts, "</ListBucketResult>"]).encode()


SECRET = "very-secret-key"


def environment_of(store: Store) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ALLOW_HTTP": "true",
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Go on when a client was killed."""


@contextmanager
def served() -> Iterator[Store]:
    store = Store()
    with _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store})) as server:
        store.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield store
        finally:
            server.shutdown()
