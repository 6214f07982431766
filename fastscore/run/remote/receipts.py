"""Receipts of shards in an object store: which objects hold a shard's tables.

``receipts/FINGERPRINT-ROUND.json`` is put if absent: the first attempt at a shard wins, and others
adopt it. Objects are named by what they hold: ``TABLE/part-00000-FINGERPRINT-ROUND-HASH.parquet``.
A round is over when its receipt was made void. Names of a round that is over are never used again.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from os.path import splitext
from pathlib import Path

from fastscore.errors import RunError
from fastscore.files import hash_bytes
from fastscore.logs.objects import request_pool
from fastscore.run.commit import (
    AlteredFileError,
    Committed,
    Receipt,
    checked_bytes,
    commit_bytes,
    is_intact,
    parse_checked,
    part_name,
)
from fastscore.run.remote.prefix import Listed, Prefix

_PART = re.compile(r"part-\d+-(?P<shard>[0-9a-f]+-\d+)-[0-9a-f]+\.parquet")
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt, and for each of its outputs the name and the entity tag of the object.

    ``name`` is the receipt's own, and ``content`` its bytes.
    """

    name: str
    content: bytes
    receipt: Receipt
    objects: tuple[tuple[str, str], ...]

    def at(self, index: int) -> Receipt:
        """Return the receipt as a folder has it whose shard of this number it is."""
        outputs = tuple(
            replace(output, path=f"{output.path.partition('/')[0]}/{part_name(index)}")
            for output in self.receipt.outputs
        )
        return replace(self.receipt, index=index, outputs=outputs)

    def is_complete(self, listed: Mapping[str, Listed]) -> bool:
        """Tell whether all objects are there as they were written."""
        return all(
            _is_same(listed.get(name), output, tag)
            for (name, tag), output in zip(self.objects, self.receipt.outputs, strict=True)
        )


def _is_same(found: Listed | None, output: Committed, tag: str) -> bool:
    return found is not None and found.size == output.n_bytes and found.tag == tag


def shard_name(fingerprint: str, round: int) -> str:
    """Return the name of a shard's round, as names of objects contain it."""
    return f"{fingerprint}-{round}"


def receipt_name(shard: str) -> str:
    """Return the name of a receipt's object."""
    return f"receipts/{shard}.json"


def fingerprint_of(name: str) -> str:
    """Return the fingerprint of the shard whose receipt has this name."""
    return name.removeprefix("receipts/").removesuffix(".json").rpartition("-")[0]


def object_name(output: Committed, shard: str = "") -> str:
    """Return the name of an output's object; without a shard, of a file beside the parts."""
    root, suffix = splitext(output.path)
    between = f"-{shard}" if shard else ""
    return f"{root}{between}-{output.content_hash[:_HASH_DIGITS]}{suffix}"


def shard_of(name: str) -> str | None:
    """Return the shard and round that a part's object belongs to."""
    found = _PART.fullmatch(name.rpartition("/")[2])
    return None if found is None else found["shard"]


def put_outputs(
    prefix: Prefix, folder: Path, shard: str, outputs: Iterable[Committed]
) -> tuple[tuple[str, str], ...]:
    """Put files of a folder into the store; return name and tag of each object."""

    def put(output: Committed) -> tuple[str, str]:
        name = object_name(output, shard)
        return name, prefix.add(name, (folder / output.path).read_bytes())

    return tuple(request_pool().map(put, outputs))


def put_receipt(
    prefix: Prefix, shard: str, receipt: Receipt, named: tuple[tuple[str, str], ...]
) -> StoredReceipt:
    """Put a receipt unless the shard has one; return the one that the shard has then."""
    name = receipt_name(shard)
    content = checked_bytes({**asdict(receipt), "objects": named})
    if prefix.put_if_absent(name, content):
        return StoredReceipt(name, content, receipt, named)
    return read_receipt(prefix, name)


def read_receipt(prefix: Prefix, name: str) -> StoredReceipt:
    """Read a receipt."""
    content = prefix.get(name)
    if content is None:
        raise damaged(prefix, name)
    return parse_receipt(prefix, name, content)


def parse_receipt(prefix: Prefix, name: str, content: bytes) -> StoredReceipt:
    """Take a receipt from its bytes."""
    try:
        fields = parse_checked(content)
        named = tuple((name, tag) for name, tag in fields.pop("objects"))
        outputs = tuple(Committed(**output) for output in fields.pop("outputs"))
        receipt = Receipt(**fields | {"names": tuple(fields["names"])}, outputs=outputs)
        return StoredReceipt(name, content, receipt, named)
    except (AlteredFileError, KeyError, TypeError, ValueError) as error:
        raise damaged(prefix, name) from error


def fetch_output(prefix: Prefix, folder: Path, output: Committed, name: str) -> None:
    """Bring an object into a folder as the file of an output, unless it is there."""
    if is_intact(folder, output):
        return
    content = prefix.get(name)
    if content is None or hash_bytes(content) != output.content_hash:
        raise damaged(prefix, name)
    commit_bytes(folder / output.path, content)


def fetch_outputs(prefix: Prefix, folder: Path, stored: StoredReceipt, index: int) -> Receipt:
    """Bring all objects of a receipt into a folder; return the receipt as the folder has it."""
    receipt = stored.at(index)
    for (name, _), output in zip(stored.objects, receipt.outputs, strict=True):
        fetch_output(prefix, folder, output, name)
    return receipt


def damaged(prefix: Prefix, name: str) -> RunError:
    """Return the error for an object that is missing or changed."""
    return RunError(
        f"{prefix.url}/{name}: missing, or not what was committed.",
        "Score it again with the same options: what is damaged is scored again.",
    )
