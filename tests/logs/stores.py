"""A server of objects on this machine, as S3 answers, with faults on demand."""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

MOST_LISTED = 5
"""Listings come in pages."""
WRITTEN = "Thu, 01 Jan 2026 00:00:00 GMT"
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


@dataclass
class Store:
    """Objects by bucket and key, the requests for them, and what is wrong with the store."""

    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    refused: tuple[int, str] | None = None
    delay: float = 0.0
    url: str = ""

    def ranges(self, key: str) -> int:
        """Count the reads of an object."""
        return sum(method == "GET" and path == key for method, path, _ in self.asked)

    def bytes_read(self, key: str) -> int:
        """Count the bytes that were asked for of an object."""
        size = len(self.objects[key])
        asked = [span for method, path, span in self.asked if method == "GET" and path == key]
        return sum(stop - start for start, stop in (_bounds(span, size) for span in asked))


def _handler(store: Store) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            path, query = unquote(url.path).lstrip("/"), dict(parse_qsl(url.query))
            store.asked.append((self.command, path, self.headers.get("Range", "")))
            time.sleep(store.delay)
            if store.refused is not None:
                self._answer(store.refused[0], _error(store.refused[1]))
            elif "list-type" in query:
                self._answer(*_listing(store, path.rstrip("/"), query))
            elif path not in store.objects:
                self._answer(404, _error("NoSuchKey"))
            else:
                self._object(store.objects[path])

        do_HEAD = do_GET

        def _object(self, content: bytes) -> None:
            headers = {"ETag": f'"{hashlib.md5(content).hexdigest()}"', "Last-Modified": WRITTEN}
            asked = self.headers.get("Range")
            if asked is None:
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

    return Handler


def _bounds(asked: str, size: int) -> tuple[int, int]:
    """Return where a range begins and ends; all bytes if none was asked for."""
    start, _, last = asked.removeprefix("bytes=").partition("-")
    return int(start or 0), min(int(last or size) + 1, size)


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>secret-token</Message></Error>".encode()


def _listing(store: Store, bucket: str, query: dict[str, str]) -> tuple[int, bytes]:
    keys = sorted(key for key in store.objects if key.startswith(f"{bucket}/"))
    if not keys:
        return 404, _error("NoSuchBucket")
    names = [key[len(bucket) + 1 :] for key in keys]
    after = query.get("continuation-token", "")
    names = [each for each in names if each.startswith(query.get("prefix", "")) and each > after]
    page = names[:MOST_LISTED]
    more = len(names) > len(page)
    parts = [f'<ListBucketResult xmlns="{NAMESPACE}"><Name>{bucket}</Name>']
    for name in page:
        content = store.objects[f"{bucket}/{name}"]
        tag = hashlib.md5(content).hexdigest()
        parts.append(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
            f'<ETag>"{tag}"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>'
        )
    parts.append(f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>")
    if more:
        parts.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
    return 200, "".join([*parts, "</ListBucketResult>"]).encode()


@contextmanager
def served() -> Iterator[Store]:
    """Serve a store on the loopback while the body goes on."""
    store = Store()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(store)) as server:
        server.daemon_threads = True
        store.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield store
        finally:
            server.shutdown()
