"""Where a run is, the names of its files, and committing them whole or not at all.

Committed files are described by hash. JSON files carry a checksum of their own content: an edited
one is not taken for true. Receipts are the proof that a task's outputs are whole: outputs count
only if a receipt for the same input fingerprint names them, and their content still has the hash
that it states.
"""

import contextlib
import dataclasses
import io
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import polars as pl
from fastscore_jit.system import sync_folder

from fastscore.errors import RunError, UsageError
from fastscore.files import (
    check_path,
    committed,
    explain,
    hash_bytes,
    hash_file,
    is_temporary,
    stays_below,
)
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


ROW_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed file: its size in bytes and the XXH3-128 hash of its content."""

    path: str
    n_bytes: int
    content_hash: str
    rows: int | None = None


@contextlib.contextmanager
def commit_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears at `path`, on disk, when the block ends without error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with committed(path) as file:
            yield file
        sync_folder(path.parent)
    except OSError as error:
        raise explain(path, error) from error


def commit_json(path: Path, content: Any) -> Committed:
    """Write `content` as indented JSON, atomically."""
    return commit_bytes(path, as_json(content).encode())


def as_json(content: Any) -> str:
    """Write a value as indented JSON."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def commit_bytes(path: Path, data: bytes) -> Committed:
    """Make a file of these bytes appear atomically."""
    with commit_file(path) as file:
        file.write(data)
    return Committed(path.name, len(data), hash_bytes(data))


def commit_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Committed:
    """Write rows as JSON Lines, atomically."""
    lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return commit_bytes(path, b"".join(lines))


def commit_table(path: Path, frame: pl.DataFrame, metadata: Mapping[str, str]) -> Committed:
    """Write a frame as Parquet, check that it reads back alike, and make it appear atomically.

    The bytes depend only on the frame and the metadata.
    """
    # written to memory first: polars does not say why a file could not be written
    buffer = io.BytesIO()
    frame.write_parquet(
        buffer,
        compression="zstd",
        compression_level=1,
        statistics=True,
        row_group_size=ROW_GROUP_ROWS,
        metadata=dict(metadata),
    )
    # a view that the garbage collector releases after an error crashes Python 3.12.1
    with buffer.getbuffer() as written:
        expected = hash_bytes(written)
        with commit_file(path) as file:
            file.write(written)
            file.flush()
            if hash_file(Path(file.name)) != expected:
                raise RunError(
                    f"{path}: what was read back is not what was written.",
                    "Check the disk and run the same command again.",
                )
        size = len(written)
    return Committed(path.name, size, expected, frame.height)


def remove_temporaries(folder: Path) -> None:
    """Remove what interrupted commits left below a folder; links are not followed."""
    for parent, _, names in os.walk(folder):
        for name in filter(is_temporary, names):
            Path(parent, name).unlink(missing_ok=True)


SUMMARY_PARQUET = "summary.parquet"
SUMMARY_JSON = "summary.json"
RECEIPTS = "receipts"
REJECTS = "rejects"
CUT_TEXTS = "cut_texts"
UNKNOWN_WORDS = "unknown_words"
LEGACY = "legacy"
WORK = ".work"


PARTS_PER_FOLDER = 1000


def part_name(index: int) -> str:
    """Return the name of a shard's part in every table's folder.

    Every thousand parts after the first have a folder of their own.
    """
    name = f"part-{index:05d}.parquet"
    folder = index // PARTS_PER_FOLDER
    return f"{folder:05d}/{name}" if folder else name


def names_of_parts(receipts: Iterable["Receipt"], table: str) -> list[str]:
    """Return the names of a table's parts, relative to the run, as receipts state them."""
    names = (output.path for receipt in receipts for output in receipt.outputs)
    return [name for name in names if name.startswith(f"{table}/")]


def texts_part(run: Path, index: int) -> Path:
    """Return where a shard's missing texts are until they are embedded."""
    return run / WORK / "texts" / part_name(index)


def receipts_folder(run: Path, stage: str) -> Path:
    """Return where a stage's receipts are; only those of ``score`` outlive the run."""
    return run / RECEIPTS if stage == "score" else run / WORK / RECEIPTS


CHECKSUM = "checksum"


class AlteredFileError(Exception):
    """A file that is no JSON object, or whose content is not what its checksum was made of."""


def commit_checked(path: Path, content: dict[str, Any]) -> Committed:
    """Commit an object and the checksum of its members."""
    return commit_bytes(path, checked_bytes(content))


def checked_bytes(content: dict[str, Any]) -> bytes:
    """Return an object and the checksum of its members as JSON."""
    return as_json({**content, CHECKSUM: _checksum(content)}).encode()


def read_checked(path: Path) -> dict[str, Any]:
    """Read an object that `commit_checked` wrote, without its checksum."""
    return parse_checked(path.read_bytes())


def parse_checked(data: bytes) -> dict[str, Any]:
    """Return the object of `checked_bytes`, without its checksum."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise AlteredFileError(str(error)) from error
    if not isinstance(content, dict):
        raise AlteredFileError(f"a JSON {type(content).__name__}, expected an object")
    stated = content.pop(CHECKSUM, None)
    if stated != _checksum(content):
        raise AlteredFileError("its content differs from its checksum")
    return content


def _checksum(content: dict[str, Any]) -> str:
    # what is read back gives the same bytes: orjson prints the shortest form of a float
    return hash_bytes(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a task did."""

    # which task it was
    stage: str
    index: int
    fingerprint: str  # what its input was; another fingerprint means other work
    # the files that it committed, named relative to the run directory
    outputs: tuple[Committed, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)  # what it counted
    # Who did it: host, process and a number of its own. Attempts that overlap commit the same
    # bytes, each from a file of its own; the receipt is the last one's.
    attempt: str = ""
    content: str = ""  # hash of a shard's input without its file names; only for scores
    # the names of the files that the outputs contain, in the order of the shard
    names: tuple[str, ...] = ()


def attempt_name() -> str:
    """Return a new name for an attempt of this process."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def receipt_path(folder: Path, stage: str, index: int) -> Path:
    """Return where a task's receipt is."""
    return folder / f"{stage}-{index:05d}.json"


def save_receipt(folder: Path, receipt: Receipt) -> None:
    """Commit a receipt; its outputs must be committed already."""
    path = receipt_path(folder, receipt.stage, receipt.index)
    commit_checked(path, dataclasses.asdict(receipt))


def load_receipt(path: Path) -> Receipt | None:
    """Read a receipt; None where it is absent, damaged or edited, or names files elsewhere."""
    try:
        content = read_checked(path)
        outputs = tuple(Committed(**output) for output in content.pop("outputs"))
        names = tuple(content.pop("names", ()))
        if not all(stays_below(output.path) for output in outputs):
            return None
        return Receipt(**content, outputs=outputs, names=names)
    except (OSError, AlteredFileError, KeyError, TypeError):
        return None


def committed_receipt(
    run: Path,
    folder: Path,
    stage: str,
    index: int,
    fingerprint: str,
    outputs: frozenset[str],
    optional: frozenset[str] = frozenset(),
    *,
    damaged: Callable[[str], object] = lambda name: None,
) -> Receipt | None:
    """Return the receipt of a task whose outputs are as committed, or None if it must be done."""
    receipt = load_receipt(receipt_path(folder, stage, index))
    if receipt is None or fingerprint not in (receipt.fingerprint, receipt.content):
        return None
    if {output.path for output in receipt.outputs} - optional != outputs:
        return None
    altered = [output.path for output in receipt.outputs if not is_intact(run, output)]
    for name in altered:
        if (run / name).exists():
            damaged(name)
    return None if altered else receipt


def hash_of_outputs(receipts: Iterable[Receipt]) -> str:
    """Return a hash of what receipts name, in order: what binds a manifest to its parts.

    Each file by itself may be whole and yet another run's, of the same signature.
    """
    stated = [
        (output.path, output.content_hash) for receipt in receipts for output in receipt.outputs
    ]
    return hash_bytes(orjson.dumps(stated))


def is_intact(run: Path, output: Committed) -> bool:
    """Read a committed file and compare it with what was committed."""
    try:
        if (run / output.path).stat().st_size != output.n_bytes:
            return False
        return hash_file(run / output.path) == output.content_hash
    except OSError:
        return False


def count_cut_texts(folder: Path, receipts: Sequence[Receipt]) -> int:
    """Count the distinct texts of a run of which the model took the beginning only."""
    if not receipts:
        return 0
    parts = [folder / name for name in names_of_parts(receipts, CUT_TEXTS)]
    ids = pl.scan_parquet(parts, glob=False).select("id_high", "id_low")
    return int(ids.unique().select(pl.len()).collect().item())


UNKNOWN_SCHEMA = {"column": pl.String, "word": pl.String, "rows": pl.Int64}
"""Words that a suite does not know: of which column, and in how many rows or objects."""


def scan_unknown_words(folder: Path, receipts: Sequence[Receipt]) -> pl.LazyFrame:
    """Scan the words that the suite does not know, which few shards have."""
    parts = [folder / name for name in names_of_parts(receipts, UNKNOWN_WORDS)]
    return pl.scan_parquet(parts, glob=False) if parts else pl.LazyFrame(schema=UNKNOWN_SCHEMA)
