"""The addresses on which our own cluster listens, and its demands on clients."""

import ipaddress
import json
import os
import subprocess
import sys

import pytest

OPEN = """
import json, os, sys

import psutil

from fastscore.run.engines.engine import open_engine


def listening() -> list[str]:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [each for process in processes for each in process.net_connections("inet")]
    return [each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN]


if __name__ == "__main__":
    with open_engine(sys.argv[1], None, 2):
        asked = [os.environ.get(f"RAY_AUTH_{name}", "") for name in ("MODE", "TOKEN")]
        print(json.dumps([*asked, listening()]))
"""
"""Starts a cluster and tells of it."""


@pytest.fixture(scope="module")
def opened(engine, tmp_path_factory):
    """Start a cluster in a folder of modules named as Python's; return the folder and its words."""
    folder = tmp_path_factory.mktemp("user")
    program = folder / "opening" / "opening.py"  # Dask's workers import it
    program.parent.mkdir()
    program.write_text(OPEN)
    for name in ("multiprocessing", "runpy", "distributed", "ray", "fastscore_jit"):
        (folder / f"{name}.py").write_text("open('imported', 'w')")
    done = subprocess.run(
        [sys.executable, str(program), engine],
        cwd=folder,
        env={name: each for name, each in os.environ.items() if not name.startswith("RAY_AUTH_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_a_cluster_of_our_own_listens_on_loopback(engine, opened):
    _, (mode, token, listening) = opened
    assert len(listening) >= 3
    for each in listening:
        found = ipaddress.ip_address(each)
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        assert (mapped or found).is_loopback, each
    if engine == "ray":
        assert (mode, len(token)) == ("token", 64)


def test_workers_import_nothing_from_the_folder_of_their_user(opened):
    folder, _ = opened
    assert not (folder / "imported").exists()
