"""Writers that are killed, stopped, paused and doubled, on a store that loses answers.

A reader looks all the time. It must never see a receipt that changes, a part that is not what its
receipt states, entries of a writer after its successor's, or shards that are void without damage.
``FASTSCORE_ATTACK_ROUNDS`` is the number of rounds.
"""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess

import orjson
import pytest

from fastscore.files import hash_bytes
from fastscore.run.commit import parse_checked
from fastscore.run.remote import log, runs
from fastscore.run.remote.log import Prefix
from tests.conftest import often
from tests.logs.stores import environment_of
from tests.run.remote import attack_worker
from tests.run.remote.attack_worker import CONFLICT, TABLES, Order

ROUNDS = int(os.environ.get("FASTSCORE_ATTACK_ROUNDS", often(1, 40)))
FAULTS = {"lost": 0.04, "503": 0.06, "409": 0.05}


class Attack:
    """Rounds of writers and a reader on one store."""

    def __init__(self, store, folder, seed):
        self.store, self.folder = store, folder
        self.random = random.Random(seed)
        self.counted: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["tests.run.remote.attack_worker"])

    def round(self, number):
        url = f"s3://bucket/attacked/{number}"
        self.reader = Reader(Prefix(url), self.folder / f"reader-{number}", self.wrong)
        self.cache = str(self.folder / f"cache-{number}")
        self.processes: list[BaseProcess] = []
        self.store.faults = FAULTS
        for _ in range(self.random.choice([1, 2, 3])):
            self.start(url)
        stopped = self.disturb(url)
        for process in stopped:
            send(process, signal.SIGCONT)
        for process in self.processes:
            process.join(60)
            if process.is_alive():
                process.kill()
                self.wrong.append("hangs")
            self.count_end(process)
        self.store.faults = {}
        last = self.start(url)
        last.join(60)
        if last.exitcode != 0:
            self.wrong.append(f"the last writer ends with {last.exitcode}")
        self.finish(url)

    def disturb(self, url):
        """Kill, stop and continue writers for a while; return those that stand."""
        stopped = []
        end = time.monotonic() + self.random.uniform(1.5, 3.5)
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.02, 0.25))
            live = [each for each in self.processes if each.is_alive()]
            if not live:
                break
            process, act = self.random.choice(live), self.random.random()
            if act < 0.4:
                process.kill()
                stopped = [each for each in stopped if each is not process]
                self.counted["kills"] += 1
                self.start(url)
            elif act < 0.7:
                send(process, signal.SIGSTOP)
                stopped.append(process)
                self.counted["stops"] += 1
                self.start(url)
            elif stopped:
                send(stopped.pop(), signal.SIGCONT)
            self.reader.look()
        return stopped

    def start(self, url):
        seed = self.random.getrandbits(30)
        order = Order(url, self.cache, environment_of(self.store), seed)
        process = self.context.Process(target=attack_worker.work, args=(order,))
        process.start()
        self.processes.append(process)
        self.counted["writers"] += 1
        return process

    def count_end(self, process):
        if process.exitcode == CONFLICT:
            self.counted["refused or followed"] += 1
        elif process.exitcode not in (0, -signal.SIGKILL):
            self.counted["ended by an error"] += 1

    def finish(self, url):
        """Look at what is left."""
        self.reader.look()
        entries = log.read_log(Prefix(url))
        self.counted["take-overs"] += sum(entry["kind"] == "begin" for entry in entries) - 1
        self.counted["completions"] += sum(entry["kind"] == "complete" for entry in entries)
        if not self.reader.complete:
            self.wrong.append("never complete")
        left = {name for table in TABLES for name in Prefix(url).listed(table)}
        if left != self.reader.named:
            self.wrong.append(f"parts left or lost: {sorted(left ^ self.reader.named)[:3]}")
        self.counted["looks"] += self.reader.looks


def send(process, number):
    """Send a signal, unless the process has ended."""
    if process.is_alive() and process.pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


class Reader:
    """Looks at a run, and notes what must not be."""

    def __init__(self, prefix, cache, wrong):
        self.prefix, self.cache, self.wrong = prefix, cache, wrong
        self.receipts: dict[str, str] = {}
        self.named: set[str] = set()
        self.complete = False
        self.looks = 0

    def look(self):
        self.looks += 1
        entries = log.read_log(self.prefix)
        epoch = 0
        for entry in entries:
            if entry["kind"] == "begin" and entry["epoch"] != epoch + 1:
                self.wrong.append(f"epoch {entry['epoch']} after {epoch}")
            if entry["kind"] != "begin" and entry["epoch"] != epoch:
                self.wrong.append(f"{entry['kind']} of epoch {entry['epoch']} in {epoch}")
            if entry["kind"] == "void":
                self.wrong.append(f"void without damage: {entry['shards']}")
            epoch = max(epoch, entry["epoch"])
        if log.latest(entries, "complete") is not None:
            self.complete = True
            self._compare_complete()
        self._compare_receipts()

    def _compare_complete(self):
        opened = runs.open_copy(self.prefix.url)
        if opened.manifest.shards != attack_worker.SHARDS:
            self.wrong.append("shards")
        for index in range(attack_worker.SHARDS):
            stored = orjson.loads(runs.received_path(opened.folder, index).read_bytes())
            for (name, _), output in zip(stored["objects"], stored["outputs"], strict=True):
                content = self.prefix.get(name)
                if content is None or hash_bytes(content) != output["content_hash"]:
                    self.wrong.append(f"part {name}")
        summary = self.prefix.get(opened.names["summary.json"])
        expected = {"total": attack_worker.total(), "receipts": attack_worker.SHARDS}
        if summary is None or orjson.loads(summary) != expected:
            self.wrong.append(f"summary {summary!r}")

    def _compare_receipts(self):
        for name in self.prefix.listed("receipts"):
            content = self.prefix.get(name) or b""
            if self.receipts.setdefault(name, hash_bytes(content)) != hash_bytes(content):
                self.wrong.append(f"receipt {name} changed")
            self.named |= {name for name, _ in parse_checked(content)["objects"]}


@pytest.fixture
def quick(store, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "cache_root", lambda: tmp_path / "reader")
    return store


def test_no_attack_leaves_anything_wrong(quick, tmp_path):
    attack = Attack(quick, tmp_path, seed=int(os.environ.get("FASTSCORE_ATTACK_SEED", "0")))
    for number in range(ROUNDS):
        attack.round(number)
        assert attack.wrong == [], number
    print(f"{ROUNDS} rounds: {dict(attack.counted)}")
    assert attack.counted["completions"] >= ROUNDS
    assert not attack.counted["ended by an error"]
