"""Files of the Hugging Face hub by plain HTTPS: pinned to a commit, downloaded once, verified.

The environment variables are those of the hub's own tools: ``HF_ENDPOINT``, ``HF_TOKEN``,
``HF_TOKEN_PATH``, ``HF_HOME``, ``HF_HUB_OFFLINE``. The token is sent only to the hub, never to
servers that it redirects to. No message contains it.
"""

import contextlib
import hashlib
import http.client
import importlib
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from fastscore_jit.system import lock_if_supported, replace_file

_POLL_SECONDS = 0.1
_BLOCK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 60
_PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each retry of a request."""
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
_MOST_ANSWER = 32 << 20
_MOST_PAGES = 10_000
_ID, _COMMIT = re.compile(r"[\w.-]+(?:/[\w.-]+)?"), re.compile(r"[0-9a-f]{40}")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ON = ("1", "ON", "YES", "TRUE")


class HubError(Exception):
    """A failed request to the hub, in one sentence, and the next step."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of the hub at a commit."""

    kind: str  # `datasets` or `models`
    id: str  # its current id on the hub, `owner/name`
    commit: str  # the commit, 40 hexadecimal digits


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file: its path in the repository, its size, and its hash on the hub."""

    path: str
    size: int
    hash: str


def find_repository(kind: str, id: str, revision: str = "main") -> Repository:
    """Return a repository at the current commit of a branch, a tag or a commit id."""
    place = f"/api/{kind}/{id}/revision/{quote(revision, safe='')}"
    what = f"{id!r} at {revision!r}"
    found, _ = _answer(place, what, dict)
    name, commit = found.get("id"), found.get("sha")
    _check(_fits(_ID, name) and _fits(_COMMIT, commit), what)
    return Repository(kind, name, commit)


def find_file(repository: Repository, path: str) -> HubFile | None:
    """Return a file of a repository by its path, None if there is none."""
    place = f"/api/{repository.kind}/{repository.id}/paths-info/{repository.commit}"
    asked = urlencode({"paths": path}).encode()
    what = f"{path!r} of {repository.id!r}"
    entries, _ = _answer(place, what, list, asked)
    return next(_files(entries, what), None)


def list_files(repository: Repository, folder: str = "") -> list[HubFile]:
    """List the files below a folder of a repository; empty if the folder does not exist."""
    place = f"/api/{repository.kind}/{repository.id}/tree/{repository.commit}"
    place = f"{place}/{quote(folder)}" if folder else place
    following: str | None = f"{place}?recursive=true"
    files: list[HubFile] = []
    what, pages = f"{folder!r} of {repository.id!r}", set[str]()
    while following is not None:
        pages.add(following)
        try:
            entries, link = _answer(following, what, list)
        except FileNotFoundError:
            return []
        files += _files(entries, what)
        named = _NEXT.search(link)
        following = named and named[1]
        _check(following not in pages and len(pages) < _MOST_PAGES, what)
    return files


def download(repository: Repository, file: HubFile, path: Path) -> None:
    """Download a file unless it is there. An interrupted download is resumed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("ab+") as out:
        # two processes never write the same partial file
        while not lock_if_supported(out.fileno()):
            time.sleep(_POLL_SECONDS)
        if path.exists():
            with contextlib.suppress(OSError):  # Windows does not remove open files
                part.unlink()
            return
        _complete(repository, file, out)
        out.flush()
        if _hash_of(out, file) != file.hash:
            out.truncate(0)
            raise HubError(
                f"{file.path!r} of {repository.id!r} came damaged: its hash is not the hub's.",
                "Run the same command again.",
            )
    with contextlib.suppress(FileNotFoundError):  # another process finished it meanwhile
        replace_file(part, path)


def _files(entries: list[Any], what: str) -> Iterator[HubFile]:
    """Yield the files of a listing, whose paths stay in their repository."""
    for entry in entries:
        _check(isinstance(entry, dict), what)
        if entry.get("type") != "file":
            continue
        path, size, stored = entry.get("path"), entry.get("size"), entry.get("lfs") or entry
        hash = stored.get("oid") if isinstance(stored, dict) else None
        _check(isinstance(path, str) and isinstance(size, int) and size >= 0, what)
        parts = path.replace("\\", "/").split("/")
        _check(not {"", ".", ".."} & {*parts} and ":" not in parts[0] and "\0" not in path, what)
        _check(_fits(_HASH, hash), what)
        yield HubFile(path, size, str(hash))


def _fits(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _check(condition: bool, what: str) -> None:
    """Refuse an answer that is not one of a hub, such as a page that asks for a login."""
    if not condition:
        raise HubError(
            f"{what}: the server does not answer as the Hugging Face hub does.",
            "Check HF_ENDPOINT, and whether the network asks for a login first.",
        )


def _hash_of(file: IO[bytes], of: HubFile) -> str:
    """Hash content as the hub does: large files by SHA-256, others as Git does."""
    is_large = len(of.hash) == 64
    digest = hashlib.sha256() if is_large else hashlib.sha1(usedforsecurity=False)
    if not is_large:
        digest.update(b"blob %d\0" % of.size)
    file.seek(0)
    while block := file.read(_BLOCK_BYTES):
        digest.update(block)
    return digest.hexdigest()


def _complete(repository: Repository, file: HubFile, out: IO[bytes]) -> None:
    """Append the missing bytes of a partial file."""
    kind = "" if repository.kind == "models" else f"/{repository.kind}"
    place = f"{kind}/{repository.id}/resolve/{repository.commit}/{quote(file.path)}"
    what = f"{file.path!r} of {repository.id!r}"
    for pause in (*_PAUSES, None):
        begin = out.seek(0, os.SEEK_END)
        if begin > file.size:
            begin = out.truncate(0)
        if begin == file.size:
            return
        try:
            with _opened(place, what, begin=begin) as answer:
                if begin and answer.status != http.client.PARTIAL_CONTENT:
                    out.truncate(0)
                while out.tell() <= file.size and (block := answer.read(_BLOCK_BYTES)):
                    out.write(block)
        except (http.client.HTTPException, ConnectionError, TimeoutError):
            pass
        if out.seek(0, os.SEEK_END) == file.size:
            return
        if pause is not None:
            time.sleep(pause)
    raise HubError(f"{what} came in part only.", "Run the same command again: it goes on there.")


def _answer(place: str, what: str, kind: type[Any], asked: bytes | None = None) -> tuple[Any, str]:
    """Return the hub's answer, JSON of a kind, and the address of the next page."""
    with _opened(place, what, asked) as answer:
        try:
            body = answer.read(_MOST_ANSWER + 1)
        except (http.client.HTTPException, OSError):
            raise HubError(f"{what}: the answer came in part only.", "Try again later.") from None
        link = answer.headers.get("Link", "")
    found = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(body) if len(body) <= _MOST_ANSWER else None
    _check(isinstance(found, kind), what)
    return found, link


def _opened(place: str, what: str, asked: bytes | None = None, begin: int = 0) -> Any:
    """Send a request to the hub, with retries if it is busy."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in _ON:
        raise HubError(f"{what} is on the hub, and HF_HUB_OFFLINE is set.", "Unset it.")
    endpoint = _endpoint(what).rstrip("/")
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise HubError(
            "HF_ENDPOINT is no address that begins with https://.", "Mend it, or unset it."
        )
    request = urllib.request.Request(urljoin(f"{endpoint}/", place), asked)
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    token = _token()
    if token and _host(request.full_url) == _host(endpoint):
        # not to servers that the hub redirects to
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    for pause in (*_PAUSES, None):
        try:
            return _opener.open(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            is_busy = error.code == http.client.TOO_MANY_REQUESTS or error.code >= 500
            if pause is None or not is_busy:
                raise _refusal(error, what, has_token=bool(token)) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            if pause is None:
                raise HubError(
                    f"{what}: the hub {endpoint} cannot be reached.", "Check the network."
                ) from None
        time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _endpoint(what: str) -> str:
    """Return the hub's address: ``HF_ENDPOINT``, or the default of the hub's own package."""
    endpoint = os.environ.get("HF_ENDPOINT", "")
    if not endpoint:
        try:
            endpoint = importlib.import_module("huggingface_hub.constants").ENDPOINT
        except ImportError:
            raise HubError(
                f"{what} is on the hub, whose address is not known.",
                "Set HF_ENDPOINT to it, or type: pip install huggingface_hub.",
            ) from None
    return endpoint


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, none of https to http, and sends the token only to the same host."""

    def redirect_request(self, req: Any, *args: Any) -> Any:
        following = super().redirect_request(req, *args)
        if following is None:
            return None
        (scheme, host), (next_scheme, _) = _host(req.full_url), _host(following.full_url)
        if scheme == "https" and next_scheme != scheme:
            raise HubError(f"{host} redirects from https to {next_scheme}.", "Check HF_ENDPOINT.")
        token = req.unredirected_hdrs.get("Authorization")
        if token and _host(following.full_url) == (scheme, host):
            following.add_unredirected_header("Authorization", token)
        return following


_opener = urllib.request.build_opener(_Redirects)


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _refusal(
    error: urllib.error.HTTPError, what: str, *, has_token: bool
) -> HubError | FileNotFoundError:
    code = error.headers.get("X-Error-Code", "")
    error.close()
    if code == "EntryNotFound":
        return FileNotFoundError(what)
    if code == "RevisionNotFound":
        return HubError(f"{what}: there is no such revision.", "Name a branch, tag or commit.")
    if code == "GatedRepo" or error.code == http.client.FORBIDDEN:
        return HubError(
            f"{what}: access is denied; the permission that is needed: read access to it.",
            "Accept its terms on its page, and log in: hf auth login, or HF_TOKEN.",
        )
    if error.code == http.client.UNAUTHORIZED and has_token and code != "RepoNotFound":
        return HubError(
            f"{what}: the token is not valid or has expired.", "Log in again: hf auth login."
        )
    if error.code in (http.client.UNAUTHORIZED, http.client.NOT_FOUND):
        return HubError(
            f"{what}: the hub has no such repository, or it is private.",
            "Check the name. For a private one log in: hf auth login, or HF_TOKEN.",
        )
    return HubError(f"{what}: the hub answers with status {error.code}.", "Try again later.")


def _token() -> str:
    """Find the token as the hub's own tools do; empty if there is none."""
    if os.environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in _ON:
        return ""
    named = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    if named:
        return named.strip()
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("HF_HOME", os.path.join(cache, "huggingface"))
    path = os.environ.get("HF_TOKEN_PATH", os.path.join(home, "token"))
    try:
        return Path(os.path.expandvars(path)).expanduser().read_text().strip()
    except OSError:
        return ""
