"""Files of data sets on the Hugging Face hub: ``hf://datasets/OWNER/NAME[@REVISION]/PATH``.

Addresses of found files contain the commit as their revision, which pins their content.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fastscore.errors import InputError, UsageError

if TYPE_CHECKING:
    from fastscore_models.hub import HubFile, Repository

SCHEME = "hf://"
_ADDRESS = re.compile(
    r"hf://datasets/(?P<id>[\w.-]+/[\w.-]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/@]+|[^/@]+))?(?:/(?P<path>.*))?",
    re.DOTALL,
)
_QUERY = re.compile(r"[?#&][^/?#&]*=")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BRANCHES = {"~parquet": "refs/convert/parquet"}


@dataclass(frozen=True, slots=True)
class Place:
    """A path in a data set at a commit."""

    repository: "Repository"
    path: str

    @property
    def root(self) -> str:
        """The address of the data set at its commit."""
        return f"{SCHEME}datasets/{self.repository.id}@{self.repository.commit}"


def find_place(url: str) -> Place:
    """Return the place of an address, resolved to the current commit."""
    named = _ADDRESS.fullmatch(url)
    if named is None or _QUERY.search(url):
        raise UsageError(
            "An address that begins with hf:// names no data set.",
            "Give hf://datasets/OWNER/NAME[@REVISION]/PATH. The token is taken from HF_TOKEN.",
        )
    revision = unquote(named["revision"] or "main")
    find = _pinned if _COMMIT.fullmatch(revision) else _found
    return Place(find(named["id"], _BRANCHES.get(revision, revision)), named["path"] or "")


def find_file(place: Place) -> "HubFile | None":
    """Return the file at a place, None if there is none."""
    from fastscore_models import hub

    with _explained():
        return hub.find_file(place.repository, place.path)


def list_files(place: Place, folder: str) -> "list[HubFile]":
    """List the files below a folder of a place's data set."""
    from fastscore_models import hub

    with _explained():
        return hub.list_files(place.repository, folder)


def download(url: str, size: int, hash: str, path: Path) -> None:
    """Download a file of a pinned address unless it is cached."""
    from fastscore_models import hub

    place = find_place(url)
    with _explained():
        hub.download(place.repository, hub.HubFile(place.path, size, hash), path)


def _found(id: str, revision: str) -> "Repository":
    from fastscore_models import hub

    with _explained():
        return hub.find_repository("datasets", id, revision)


_pinned = cache(_found)


@contextmanager
def _explained() -> Iterator[None]:
    from fastscore_models.hub import HubError

    try:
        yield
    except HubError as error:
        raise InputError(str(error), error.hint) from None
