"""Where runs are: in folders, or below addresses of object stores."""

import re
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from fastscore.errors import UsageError
from fastscore.files import check_path
from fastscore.logs.objects import split_url
from fastscore.settings.extras import require

_ADDRESS = re.compile(r"(s3|gs|az|https?|hf):/{1,2}(.*)", re.DOTALL)
"""Pathlib makes one slash of two."""
_WITHOUT_RUNS = ("http", "https", "hf")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a run in an object store, such as ``s3://bucket/run``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "Address":
        return Address(f"{self.url}/{name}")

    def resolve(self) -> "Address":
        """Return the address, which is absolute."""
        return self

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]


Place = Path | Address


def place_of(path: str | PathLike[str]) -> Place:
    """Return the folder or the address that a path names."""
    check_path(path)
    found = _ADDRESS.fullmatch(fspath(path))
    if found is None:
        return Path(path)
    scheme, rest = found.groups()
    if scheme in _WITHOUT_RUNS:
        raise UsageError(
            f"A run cannot be at {scheme}://{rest.rpartition('@')[2].partition('?')[0]}.",
            "Name a folder, or an address of S3, Google Cloud Storage or Azure, such as "
            "s3://bucket/run.",
        )
    url = f"{scheme}://{rest.rstrip('/')}"
    split_url(url)
    require("cloud", "A run in an object store")
    return Address(url)
