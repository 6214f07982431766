"""A hub on this machine, as the Hugging Face hub answers: its interface, and where files lie."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

MOST_LISTED = 3
"""Listings come in pages."""
LARGE_BYTES = 200
"""Larger files are known by SHA-256 and lie on another server."""


@dataclass
class Hub:
    """Repositories by kind and id: commits by revision, and the files of commits."""

    revisions: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Paths, tokens and ranges of requests."""
    token: str = ""
    cut_after: int | None = None
    busy: int = 0
    damaged: bool = False
    refused: tuple[int, str] | None = None
    raw: tuple[bytes, str] | None = None
    """A body and a link that answer every question."""
    url: str = ""
    other_url: str = ""

    def add(self, repository: str, commit: str, files: dict[str, bytes]) -> None:
        self.revisions.setdefault(repository, {}).update({"main": commit, commit: commit})
        self.files[commit] = files

    def downloads(self) -> list[tuple[str, str]]:
        """Return the paths and ranges of requests for content."""
        return [(path, span) for path, _, span in self.asked if path.startswith("/content/")]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.server.hub.asked.append((unquote(url.path), token, self.headers.get("Range", "")))
        if url.path.startswith("/content/"):
            self._content(self.server.hub.files[url.path.split("/")[2]], unquote(url.path))
            return
        if self.server.hub.busy:
            self.server.hub.busy -= 1
            self._answer(503)
        elif self.server.hub.refused is not None:
            self._answer(self.server.hub.refused[0], code=self.server.hub.refused[1])
        elif self.server.hub.raw is not None:
            body, link = self.server.hub.raw
            self._answer(200, body, link=link)
        elif self.server.hub.token and token != self.server.hub.token:
            self._answer(401)
        else:
            self._hub(unquote(url.path).strip("/"), url.query, parse_qs(body.decode()))

    do_POST = do_GET

    def _hub(self, path: str, query: str, asked: dict[str, list[str]]) -> None:
        for name, revisions in self.server.hub.revisions.items():
            id = name.partition("/")[2]
            if path.startswith(f"api/{name}/revision/"):
                revision = path.removeprefix(f"api/{name}/revision/")
                if revision not in revisions:
                    self._answer(404, code="RevisionNotFound")
                else:
                    self._json({"id": id, "sha": revisions[revision]})
                return
            if path.startswith(f"api/{name}/paths-info/"):
                files = self.server.hub.files[path.split("/")[-1]]
                self._json([_entry(each, files) for each in asked["paths"] if each in files])
                return
            if path.startswith(f"api/{name}/tree/"):
                self._tree(path.removeprefix(f"api/{name}/tree/"), query)
                return
            place = id if name.startswith("models/") else name
            if path.startswith(f"{place}/resolve/"):
                commit, _, file = path.removeprefix(f"{place}/resolve/").partition("/")
                is_large = len(self.server.hub.files[commit][file]) > LARGE_BYTES
                base = self.server.hub.other_url if is_large else self.server.hub.url
                self._answer(302, location=f"{base}/content/{commit}/{file}")
                return
        self._answer(404, code="RepoNotFound")

    def _tree(self, place: str, query: str) -> None:
        commit, _, folder = place.partition("/")
        files = self.server.hub.files[commit]
        names = sorted(name for name in files if name.startswith(f"{folder}/") or not folder)
        if not names:
            self._answer(404, code="EntryNotFound")
            return
        first = int(parse_qs(query).get("cursor", ["0"])[0])
        page = [_entry(name, files) for name in names[first : first + MOST_LISTED]]
        page.insert(0, {"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0})
        link = ""
        if first + MOST_LISTED < len(names):
            more = f"recursive=true&cursor={first + MOST_LISTED}"
            path = self.path.partition("?")[0]
            link = f'<{self.server.hub.url}{path}?{more}>; rel="next"'
        self._json(page, link)

    def _content(self, files: dict[str, bytes], path: str) -> None:
        content = files[path.split("/", 3)[3]]
        span = self.headers.get("Range")
        begin = 0 if span is None else int(span.removeprefix("bytes=").rstrip("-"))
        body = content[begin:]
        sent = body if self.server.hub.cut_after is None else body[: self.server.hub.cut_after]
        if self.server.hub.damaged:
            sent = bytes(byte ^ 1 for byte in sent)
        self.send_response(200 if span is None else 206)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(sent)
        self.close_connection = len(sent) < len(body)

    def _json(self, content: object, link: str = "") -> None:
        self._answer(200, json.dumps(content).encode(), link=link)

    def _answer(
        self, status: int, body: bytes = b"", *, code: str = "", location: str = "", link=""
    ) -> None:
        self.send_response(status)
        headers = {"X-Error-Code": code, "Location": location, "Link": link}
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _entry(name: str, files: dict[str, bytes]) -> dict[str, object]:
    content = files[name]
    entry: dict[str, object] = {"type": "file", "path": name, "size": len(content)}
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if len(content) > LARGE_BYTES:
        digest = hashlib.sha256(content).hexdigest()
        return {**entry, "oid": "0" * 40, "lfs": {"oid": digest, "size": len(content)}}
    return {**entry, "oid": blob}


@contextmanager
def hub_served() -> Iterator[Hub]:
    """Serve a hub on the loopback while the body goes on, and the server of its large files."""
    hub = Hub()
    with _Server(hub) as server, _Server(hub) as other:
        for each in (server, other):
            threading.Thread(target=each.serve_forever, args=(0.05,), daemon=True).start()
        hub.url, hub.other_url = server.url, other.url
        try:
            yield hub
        finally:
            server.shutdown()
            other.shutdown()
