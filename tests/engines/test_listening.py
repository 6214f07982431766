"""The addresses on which our own cluster listens, and its demands on clients."""

import ipaddress
import json
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
        print(json.dumps([*asked, listening()]), flush=True)
        sys.stdin.read()
"""
"""Starts a cluster, tells of it, and keeps it until standard input ends."""


@pytest.fixture
def opened(engine, tmp_path, monkeypatch):
    """Mode and token of a cluster that was just started, and the addresses that it listens on."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "opening.py"  # Dask's workers import it
    program.write_text(OPEN)
    words = [sys.executable, str(program), engine]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield json.loads(process.stdout.readline())
        process.communicate()
    assert process.returncode == 0


def test_a_cluster_of_our_own_listens_on_loopback(engine, opened):
    mode, token, listening = opened
    assert len(listening) >= 3
    for each in listening:
        found = ipaddress.ip_address(each)
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        assert (mapped or found).is_loopback, each
    if engine == "ray":
        assert (mode, len(token)) == ("token", 64)


def test_workers_import_nothing_from_the_folder_of_their_user(engine, tmp_path):
    (tmp_path / "opening").mkdir()
    program = tmp_path / "opening" / "opening.py"
    program.write_text(OPEN)
    for name in ("multiprocessing", "runpy", "distributed", "ray", "fastscore_jit"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    done = subprocess.run(
        [sys.executable, str(program), engine],
        cwd=tmp_path,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()
