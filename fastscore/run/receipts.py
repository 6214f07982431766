"""Receipts: the proof that a task's outputs are whole.

A task's outputs count only when a receipt for the same input fingerprint names them, and their
content still has the hash that it states; that a file exists or opens proves nothing. A receipt
carries a checksum of its own: an edited one is none.
"""

import dataclasses
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import polars as pl

from fastscore.content_hash import hash_bytes, hash_file
from fastscore.run.commit import (
    CUT_TEXTS,
    UNKNOWN_WORDS,
    AlteredFileError,
    Committed,
    commit_checked,
    part_name,
    read_checked,
)
from fastscore.run.missing import UNKNOWN_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a task did.

    Parameters
    ----------
    stage, index
        Which task it was.
    fingerprint
        What its input was; another fingerprint means other work.
    outputs
        The files that it committed, named relative to the run directory.
    counts
        What it counted.
    attempt
        Who did it: host, process and a number of its own. Attempts that overlap commit the same
        bytes, each from a file of its own; the receipt is the last one's.
    """

    stage: str
    index: int
    fingerprint: str
    outputs: tuple[Committed, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    attempt: str = ""


def attempt_name() -> str:
    """Return a new name for an attempt of this process."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def receipt_path(folder: Path, stage: str, index: int) -> Path:
    """Return where a task's receipt stands."""
    return folder / f"{stage}-{index:05d}.json"


def save_receipt(folder: Path, receipt: Receipt) -> None:
    """Commit a receipt; its outputs must be committed already."""
    path = receipt_path(folder, receipt.stage, receipt.index)
    commit_checked(path, dataclasses.asdict(receipt))


def load_receipt(path: Path) -> Receipt | None:
    """Read a receipt; None where it is absent, damaged or edited."""
    try:
        content = read_checked(path)
        outputs = tuple(Committed(**output) for output in content.pop("outputs"))
        return Receipt(**content, outputs=outputs)
    except (OSError, AlteredFileError, KeyError, TypeError):
        return None


def committed_receipt(
    run: Path,
    folder: Path,
    stage: str,
    index: int,
    fingerprint: str,
    outputs: frozenset[str],
    may_output: frozenset[str] = frozenset(),
    *,
    damaged: Callable[[str], object] = lambda name: None,
) -> Receipt | None:
    """Return the receipt of a task whose outputs stand as committed, or None if it must be done.

    Parameters
    ----------
    run
        The run directory.
    folder
        Where the stage's receipts stand.
    stage, index
        The task.
    fingerprint
        What its receipt must be bound to.
    outputs
        The names of the files that it must have committed.
    may_output
        Those that it may have committed beside them.
    damaged
        Called with the name of an output that is there, but not as it was committed.
    """
    receipt = load_receipt(receipt_path(folder, stage, index))
    if receipt is None or receipt.fingerprint != fingerprint:
        return None
    if {output.path for output in receipt.outputs} - may_output != outputs:
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
    parts = [folder / CUT_TEXTS / part_name(receipt.index) for receipt in receipts]
    ids = pl.scan_parquet(parts, glob=False).select("id_high", "id_low")
    return int(ids.unique().select(pl.len()).collect().item())


def scan_unknown_words(folder: Path, receipts: Sequence[Receipt]) -> pl.LazyFrame:
    """Scan the words that the suite does not know, which few shards have."""
    parts = [
        folder / output.path
        for receipt in receipts
        for output in receipt.outputs
        if output.path.startswith(f"{UNKNOWN_WORDS}/")
    ]
    return pl.scan_parquet(parts, glob=False) if parts else pl.LazyFrame(schema=UNKNOWN_SCHEMA)
