"""The run directory: taking up the run that is in it, or starting a new one."""

import contextlib
import os
import platform
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import RunConflictError, RunError
from fastscore.files import RUN, check_output
from fastscore.logs.inputs.column_map import stored_map
from fastscore.logs.inputs.files import STDIN
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.objects import is_remote
from fastscore.logs.plan.shards import Plan
from fastscore.run.commit import (
    CUT_TEXTS,
    LEGACY,
    RECEIPTS,
    REJECTS,
    SUMMARY_JSON,
    SUMMARY_PARQUET,
    UNKNOWN_WORDS,
    WORK,
    is_intact,
    load_receipt,
    part_name,
    receipt_path,
    receipts_folder,
    remove_temporaries,
)
from fastscore.run.context import RunContext
from fastscore.run.manifest import MANIFEST_NAME, DamagedManifestError, Manifest, read_manifest
from fastscore.run.request import Request
from fastscore.run.signature import EmbedderIdentity, deciding_differences, package_version
from fastscore.run.writer import LOCK_NAME, FolderWriter, Writer
from fastscore.settings.extras import installed_version
from fastscore.settings.options import available_processors, option_values
from fastscore.suites.base import Suite

REPORTED_PACKAGES = ("polars", "numpy", "numba", "onnxruntime", "faiss-cpu", "tokenizers")


def open_manifest(
    folder: Path,
    request: Request,
    suite: Suite,
    context: RunContext,
    identity: EmbedderIdentity | None,
    note: Callable[[str], object],
    name: str,
) -> Manifest:
    """Return the manifest to go on with: the one in the folder, or a new one.

    One that is lost or damaged is made anew where a committed part says, by its signature, that
    the run is this one. A run keeps the signature that it was begun with, so that its receipts
    stay valid under another version of fastscore.
    """
    _refuse_links(folder)
    earlier = None if request.overwrite else _earlier_manifest(folder)
    there = None if request.overwrite else _earlier_signature(folder, earlier)
    differing = [] if there is None else deciding_differences(there, context.signature)
    if differing and _is_unscored(folder, earlier, context.writer):
        earlier = there = None
    if there is not None:
        if differing:
            raise RunConflictError(
                f"{name} holds a run with another signature: {'; '.join(map(str, differing))}.",
                "Choose another folder as output, or set overwrite to replace it.",
            )
        begun, now = package_version(there), package_version(context.signature)
        if begun != now:
            note(f"{name}: begun by fastscore {begun}, continued by {now}")
    context.check_writer()
    if earlier is not None:
        remove_temporaries(folder)
        earlier.settings, earlier.environment = _settings(request, suite), _environment()
        return earlier
    if there is None:
        _clear(folder, suite)
    else:
        note(f"{name}/{MANIFEST_NAME}: lost or damaged; made anew from this run's receipts")
        remove_temporaries(folder)
    manifest = new_manifest(request, suite, context, identity)
    manifest.signature = there or manifest.signature
    context.check_writer()
    # nothing else is written before: what is beside a manifest is this run's
    manifest.save(folder)
    return manifest


def new_manifest(
    request: Request, suite: Suite, context: RunContext, identity: EmbedderIdentity | None
) -> Manifest:
    """Return the manifest of a run that has scored nothing yet."""
    return Manifest(
        signature=context.signature,
        suite=suite.name,
        suite_version=suite.version,
        options=option_values(request.options),
        settings=_settings(request, suite),
        column_map=stored_map(context.columns),
        embedder=None if identity is None else identity.as_dict(),
        own_metrics=[one.to_json() for one in request.own_metrics],
        environment=_environment(),
        tables={table.name: {"rows": 0, "parts": 0} for table in suite.tables},
    )


def _settings(request: Request, suite: Suite) -> dict[str, Any]:
    """Return how a run is done, which no number depends on."""
    return {"shard_bytes": request.shard_bytes or suite.source.shard_bytes, **request.settings}


def _refuse_links(folder: Path) -> None:
    """Refuse a run directory in which something is a link: what it leads to is not ours."""
    for path in folder.iterdir():
        if path.is_symlink():
            raise RunConflictError(
                f"{path} is a link, expected a file or folder of the run's own.",
                "Remove it, or choose another folder as output.",
            )


def _earlier_manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except DamagedManifestError:
        return None


def _is_unscored(folder: Path, earlier: Manifest | None, writer: Writer | None) -> bool:
    """Tell whether a run has scored nothing, or ended before; one in a store is not looked into."""
    if not isinstance(writer, FolderWriter) or earlier is None:
        return False
    if earlier.status == "complete":
        return earlier.all_null or not next(iter(earlier.tables.values()))["rows"]
    return not any((folder / RECEIPTS).glob("score-*.json"))


def _earlier_signature(folder: Path, earlier: Manifest | None) -> str | None:
    """Return the signature of the run in the folder; without a manifest, of a part."""
    if earlier is not None:
        return earlier.signature
    for path in sorted((folder / RECEIPTS).glob("score-*.json")):
        receipt = load_receipt(path)
        for output in receipt.outputs if receipt is not None else ():
            if is_intact(folder, output):
                return pl.read_parquet_metadata(folder / output.path).get("fastscore.signature")
    return None


def _environment() -> dict[str, Any]:
    return {
        "fastscore": installed_version("fastscore-dialogue"),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "processors": available_processors(),
        **{name: version for name in REPORTED_PACKAGES if (version := installed_version(name))},
    }


def _clear(folder: Path, suite: Suite) -> None:
    """Remove a run's own files; a folder that holds anything else is refused."""
    names = {MANIFEST_NAME, SUMMARY_PARQUET, SUMMARY_JSON, LOCK_NAME}
    folders = {WORK, RECEIPTS, REJECTS, CUT_TEXTS, UNKNOWN_WORDS, LEGACY}
    folders |= {table.name for table in suite.tables}
    with contextlib.suppress(RunError):  # a damaged manifest is replaced with the rest
        earlier = read_manifest(folder)
        folders |= set(earlier.tables) if earlier is not None else set()
    check_output(folder, RUN, names | folders, alone=True)
    if not (folder / MANIFEST_NAME).exists():  # of something else, with folders of these names
        check_output(folder, RUN, names, alone=True)
    for name in sorted(names - {LOCK_NAME}):
        (folder / name).unlink(missing_ok=True)
    for name in sorted(folders):
        shutil.rmtree(folder / name, ignore_errors=True)
    remove_temporaries(folder)


def accept_inputs(folder: Path, manifest: Manifest, plan: Plan, writer: Writer) -> None:
    """Take a plan's inputs into the manifest, and remove parts of shards that are gone."""
    given = {entry.name for entry in plan.inputs}
    contents = {entry.content_hash for entry in plan.inputs}
    gone = [
        entry["name"]
        for entry in manifest.inputs
        if entry["name"] not in given and entry["content_hash"] not in contents
    ]
    if gone:
        raise RunConflictError(
            f"{writer.name} was begun with {gone[0]}, which is not among the inputs now.",
            "Name all its inputs again, choose another folder as output, or set overwrite.",
        )
    manifest.inputs = describe_inputs(plan)
    manifest.shards = len(plan.shards)
    manifest.status = "running"
    writer.commit_manifest(folder, manifest)
    _remove_parts_after(folder, manifest, len(plan.shards))


def describe_inputs(plan: Plan) -> list[dict[str, Any]]:
    """Return of each input its name as typed, its absolute path, its size and its hash."""
    return [
        {
            "name": entry.name,
            "path": _place(entry.name),
            "bytes": entry.n_bytes,
            "content_hash": entry.content_hash,
        }
        for entry in plan.inputs
    ]


def _place(name: str) -> str:
    """Return the absolute path or the address of an input; empty for a stream or a frame."""
    if name in (STDIN, FRAME_NAME):
        return ""
    return name if is_remote(name) else os.path.abspath(name)


def _remove_parts_after(folder: Path, manifest: Manifest, n_shards: int) -> None:
    """Remove parts of shards that are no longer planned."""
    kept = {Path(part_name(index)).name for index in range(n_shards)}
    for name in (REJECTS, CUT_TEXTS, UNKNOWN_WORDS, *manifest.tables):
        for part in (folder / name).rglob("part-*.parquet"):
            if part.name not in kept:
                part.unlink()
    receipts = receipts_folder(folder, "score")
    kept = {receipt_path(receipts, "score", index).name for index in range(n_shards)}
    for path in receipts.glob("score-*.json"):
        if path.name not in kept:
            path.unlink()
