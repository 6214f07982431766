"""Receipts: the proof that a task's outputs are whole.

A task's outputs count only when a receipt for the same input fingerprint names them, and they
still have the size that it states; that a file exists or opens proves nothing.
"""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from fastscore.content_hash import hash_file
from fastscore.run.commit import Committed, commit_json


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
    """

    stage: str
    index: int
    fingerprint: str
    outputs: tuple[Committed, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


def receipt_path(folder: Path, stage: str, index: int) -> Path:
    """Return where a task's receipt stands."""
    return folder / f"{stage}-{index:05d}.json"


def save_receipt(folder: Path, receipt: Receipt) -> None:
    """Commit a receipt; its outputs must be committed already."""
    commit_json(
        receipt_path(folder, receipt.stage, receipt.index),
        dataclasses.asdict(receipt),
    )


def load_receipt(path: Path) -> Receipt | None:
    """Read a receipt; None where it is absent or damaged."""
    try:
        content = orjson.loads(path.read_bytes())
        outputs = tuple(Committed(**output) for output in content.pop("outputs"))
        return Receipt(**content, outputs=outputs)
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return None


def committed_receipt(
    run: Path, folder: Path, stage: str, index: int, fingerprint: str, outputs: frozenset[str]
) -> Receipt | None:
    """Return the receipt of a task whose outputs all stand, or None if it must be done.

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
    """
    receipt = load_receipt(receipt_path(folder, stage, index))
    if receipt is None or receipt.fingerprint != fingerprint:
        return None
    if {output.path for output in receipt.outputs} != outputs:
        return None
    for output in receipt.outputs:
        path = run / output.path
        if not path.is_file() or path.stat().st_size != output.n_bytes:
            return None
    return receipt


def is_intact(run: Path, output: Committed) -> bool:
    """Read a committed file and compare it with what was committed."""
    try:
        return hash_file(run / output.path) == output.content_hash
    except OSError:
        return False
