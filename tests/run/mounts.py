"""Small file systems in memory, for tests of full and read-only disks."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str, *options: str) -> Iterator[Path]:
    """Mount a file system of a size on a new folder; skip the test where that is not allowed."""
    folder.mkdir(parents=True)
    words = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        ",".join((f"size={size}", *options)),
        "tmpfs",
        str(folder),
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `mount` here")
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    """Let nobody write to a mounted file system any more, root neither."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
