"""``RUN/manifest.json``: what a run is, what it read, what it wrote and how long that took."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fastscore.errors import RunError
from fastscore.files import stays_below
from fastscore.run.commit import AlteredFileError, commit_checked, read_checked
from fastscore.suites.declarations import PARTIAL_REJECTS

MANIFEST_NAME = "manifest.json"
FORMAT = 2


class DamagedManifestError(RunError):
    """A manifest that cannot be read, or is not as it was committed."""


@dataclass(slots=True, kw_only=True)
class Manifest:
    """The manifest's content."""

    signature: str  # the run's signature
    # the suite and its version
    suite: str
    suite_version: int
    options: dict[str, Any]  # every option of the suite by name
    column_map: dict[str, Any]  # where the suite's columns are in the logs (`map_from`)
    # what does not change numbers: shard size, workers, largest share of rejects
    settings: dict[str, Any] = field(default_factory=dict)
    # Declarations of metrics beside the suite's own. The file has the field only if there are some.
    own_metrics: list[dict[str, Any]] = field(default_factory=list)
    embedder: dict[str, Any] | None = None  # recipe, fingerprint, precision and dim, or None
    status: Literal["running", "complete"] = "running"  # `running` until every stage is committed
    # name, bytes and content hash of every input
    inputs: list[dict[str, Any]] = field(default_factory=list)
    # files in the folders and globs among the inputs whose format the suite does not read
    left_aside: list[str] = field(default_factory=list)
    shards: int = 0
    # metrics that are null in every row, and the columns that they lack
    lacking: list[str] = field(default_factory=list)
    # what else there is to say of the inputs: columns that are null in some rows
    notes: list[str] = field(default_factory=list)
    all_null: bool = False  # whether every metric is null in every row
    # the key that tells apart rows that replace each other, or that is lacking; empty for none
    mixed: str = ""
    # lines, rows, rejects and what the suite counts, over all shards
    counts: dict[str, int] = field(default_factory=dict)
    tables: dict[str, dict[str, int]] = field(default_factory=dict)  # rows and parts by table
    # tasks and seconds by stage; seconds add up over resumed runs
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)  # versions, host and processor count
    # name, size and content hash of the files beside the parts, which receipts name
    outputs: list[dict[str, Any]] = field(default_factory=list)
    # hash of what all receipts state (`commit.hash_of_outputs`), in a complete run
    parts_hash: str = ""
    peak_memory_bytes: int = 0  # the largest resident memory of a process of the run
    format: int = FORMAT

    @property
    def lost_lines(self) -> tuple[int, int]:
        """How many lines are rejects, those read in part not among them, and how many there are."""
        rejects = self.counts.get("rejects", 0) - self.counts.get(PARTIAL_REJECTS, 0)
        return rejects, self.counts.get("lines", 0) - self.counts.get("blank", 0)

    def save(self, run: Path) -> None:
        """Write the manifest into a run directory, atomically."""
        names = (each.name for each in dataclasses.fields(self))
        content = {name: getattr(self, name) for name in names}
        if not self.own_metrics:
            del content["own_metrics"]
        commit_checked(run / MANIFEST_NAME, content)


def read_manifest(run: Path) -> Manifest | None:
    """Read a run directory's manifest; None where there is none."""
    path = run / MANIFEST_NAME
    try:
        content = read_checked(path)
    except FileNotFoundError:
        return None
    except (OSError, AlteredFileError) as error:
        raise DamagedManifestError(
            f"{path}: not the manifest that was committed ({error}).",
            "Score it again with the same options: it is made anew from the receipts.",
        ) from error
    if content.get("format") != FORMAT:
        raise RunError(
            f"{path}: not a manifest of format {FORMAT}.",
            "Read it with the fastscore that wrote it, or set overwrite to start anew.",
        )
    if not all(map(stays_below, content.get("tables", ()))):
        raise RunError(f"{path}: a table is not below the run.", "Use no run that was edited.")
    try:
        return Manifest(**content)
    except TypeError as error:
        raise DamagedManifestError(
            f"{path}: not a whole manifest ({error}).",
            "Score it again with the same options: it is made anew from the receipts.",
        ) from error
