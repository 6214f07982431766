"""Parts of logs: the first dialogues, a sample by names, and standard input."""

import gzip
import json
import random
import subprocess
import sys
from dataclasses import asdict

import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastscore
from fastscore.logs.read.chosen import Choice
from fastscore.run.drive import execute
from fastscore.run.progress import SilentReporter
from fastscore.run.request import Request
from tests.by_keywords import score_by_keywords
from tests.conftest import often, write_lines
from tests.run.logs import dialogue_lines, write_logs
from tests.suites.memory_finance.tracing import dialog, turn

SUITE = "score_dialogue"


def scored(source, **more):
    return score_by_keywords(source, SUITE, lex_weight=1.0, **more)


def run_of(paths, folder, choice, shard_bytes):
    request = Request(
        suite=SUITE,
        inputs=tuple(map(str, paths)),
        output=folder,
        options={"lex_weight": 1.0},
        shard_bytes=shard_bytes,
        **asdict(choice),
    )
    execute(request, SilentReporter())
    return fastscore.open_run(folder)


def interleaved(rng, uids):
    """Return lines of dialogues, those of one in order, in turns."""
    queues = [dialogue_lines(uid, utterances=2, steps=2) for uid in uids]
    lines = []
    while queues:
        queue = rng.choice(queues)
        lines.append(queue.pop(0))
        if rng.random() < 0.1:
            lines.append("no row")
        queues = [each for each in queues if each]
    return lines


def first_dialogues(files, limit):
    """Return the files less the rows of all but the first dialogues; the last file is cut."""
    uids = []
    kept = []
    for lines in files:
        rows = [None if line == "no row" else json.loads(line)["dialogue_uid"] for line in lines]
        before = len(uids)
        if before == limit:
            break
        uids += [uid for uid in dict.fromkeys(rows) if uid is not None and uid not in uids]
        uids = uids[:limit]
        theirs = [place for place, uid in enumerate(rows) if uid in uids]
        rest = [place for place, uid in enumerate(rows) if uid and place > theirs[-1]]
        kept.append(
            [
                line if uid is None or uid in uids else ""
                for line, uid in zip(lines, rows, strict=True)
            ][: rest[0] if rest else None]
        )
    return kept


@settings(max_examples=often(8, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1000),
    limit=st.integers(1, 8),
    shard_bytes=st.sampled_from([300, 1 << 20]),
    packing=st.sampled_from(["", ".gz", ".zst"]),
)
def test_a_limit_takes_the_first_dialogues_whole(
    tmp_path_factory, seed, limit, shard_bytes, packing
):
    rng, folder = random.Random(seed), tmp_path_factory.mktemp("limit")
    files = [interleaved(rng, [f"d{file}-{n}" for n in range(3)]) for file in range(2)]
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[packing]
    paths, wanted = [], []
    for index, lines in enumerate(files):
        paths.append(folder / f"{index}.jsonl{packing}")
        paths[-1].write_bytes(pack("\n".join(lines).encode()))
    for index, lines in enumerate(first_dialogues(files, limit)):
        (folder / "by hand").mkdir(exist_ok=True)
        wanted.append(folder / "by hand" / f"{index}.jsonl")
        wanted[-1].write_text("\n".join(lines))
    run = run_of(paths, folder / "run", Choice(limit=limit), shard_bytes)
    expected = scored(wanted, max_rejects=1.0)
    assert run.signature.endswith(f"|limit={limit}")
    for name, table in expected.tables.items():
        assert (
            run.scan(name)
            .collect()
            .drop("file", strict=False)
            .equals(table.drop("file", strict=False))
        ), name
    places = run.rejects.select("line", "reason")
    assert places.equals(expected.rejects.select("line", "reason"))
    counts = run.manifest.counts
    parts = ("blank", "rows", "rejects", "left_out")
    assert counts["lines"] == sum(counts.get(name, 0) for name in parts)


@settings(max_examples=often(8, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    order=st.integers(0, 1000),
    size=st.integers(1, 14),
    seed=st.sampled_from([0, 7]),
    shard_bytes=st.sampled_from([300, 1 << 20]),
)
def test_a_sample_is_the_same_in_any_order_and_shard_size(
    tmp_path_factory, order, size, seed, shard_bytes
):
    rng, folder = random.Random(order), tmp_path_factory.mktemp("sample")
    uids = [f"d{number}" for number in range(12)]
    whole = folder / "whole.jsonl"
    whole.write_text("\n".join(line for uid in uids for line in dialogue_lines(uid)))
    rng.shuffle(uids)
    paths = [folder / "a.jsonl", folder / "b.jsonl"]
    for path, part in zip(paths, (uids[:5], uids[5:]), strict=True):
        path.write_text("\n".join(interleaved(rng, part)))
    chosen = run_of(paths, folder / "run", Choice(sample=size, seed=seed), shard_bytes)
    again = scored(whole, sample=size, seed=seed)
    found = set(chosen.scan("dialogues").collect()["dialogue"])
    assert found == set(again.tables["dialogues"]["dialogue"])
    assert len(found) == min(size, 12)
    assert chosen.signature.endswith(f"|sample={size}|seed={seed}")
    fewer = scored(whole, sample=max(1, size - 1), seed=seed)
    assert set(fewer.tables["dialogues"]["dialogue"]) <= found
    # selected dialogues have the scores of the whole log
    everything = scored(whole).tables["dialogues"]
    assert again.tables["dialogues"].equals(
        everything.filter(pl.col("dialogue").is_in(list(found)))
    )


def test_seeds_take_other_samples(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(line for n in range(40) for line in dialogue_lines(f"d{n}")))
    samples = {
        tuple(scored(path, sample=5, seed=seed).tables["dialogues"]["dialogue"])
        for seed in range(5)
    }
    assert len(samples) == 5


@pytest.mark.parametrize("choice", [{"limit": 2}, {"sample": 2, "seed": 5}])
def test_a_chosen_dialogue_is_explained_as_of_the_whole_log(tmp_path, choice):
    logs = write_logs(tmp_path / "logs")
    chosen, whole = scored(logs, **choice), scored(logs)
    (name,) = chosen.tables["dialogues"]["dialogue"].head(1)
    explained = [
        str(fastscore.explain(run, name, metric="average_U_best_early")) for run in (chosen, whole)
    ]
    assert name in explained[0]
    assert explained[0] == explained[1]


def test_lines_that_are_dialogues_are_counted_and_sampled(tmp_path):
    path = tmp_path / "log.jsonl"
    traces = [dialog(turn("hello"), dialog_id=f"d{number}") for number in range(9)]
    write_lines(path, traces)
    limited = fastscore.score(path, "memory_finance", limit=4)
    assert limited.tables["dialogues"]["line"].to_list() == [1, 2, 3, 4]
    sampled = fastscore.score(path, "memory_finance", sample=4)
    assert sampled.tables["dialogues"].height == 4
    frame = fastscore.score(traces, "memory_finance", limit=4)
    assert frame.tables["dialogues"].height == 4
    both = [path, tmp_path / "other.jsonl"]
    both[1].write_text(json.dumps(traces[0]) + "\nbroken")  # not read any more
    assert fastscore.score(both, "memory_finance", limit=9).rejects.is_empty()


def test_a_sample_of_more_files_is_scored_anew(tmp_path):
    paths = write_logs(tmp_path / "logs", files=3)
    choice = Choice(sample=3)
    run_of(paths[:1], tmp_path / "run", choice, 1 << 20)
    more = run_of(paths, tmp_path / "run", choice, 1 << 20)
    anew = run_of(paths, tmp_path / "anew", choice, 1 << 20)
    assert more.scan("dialogues").collect().equals(anew.scan("dialogues").collect())


def pipe(data, *arguments):
    command = [sys.executable, "-m", "fastscore", "score", SUITE, "-", "--lex-weight", "1"]
    return subprocess.run(
        [*command, *arguments], input=data, capture_output=True, timeout=120, check=False
    )


def test_standard_input_is_scored_as_a_file_is(tmp_path):
    log = write_logs(tmp_path / "logs", files=1)[0]
    pl.read_ndjson(log).write_parquet(tmp_path / "log.parquet")
    expected = scored(log)
    given = {
        "plain": (log.read_bytes(), []),
        "packed": (zstandard.compress(log.read_bytes()), []),
        "parquet": ((tmp_path / "log.parquet").read_bytes(), ["--format", "parquet"]),
    }
    for name, (data, flags) in given.items():
        done = pipe(data, "-o", str(tmp_path / name), *flags)
        assert done.returncode == 0, done.stderr.decode()
        found = fastscore.open_run(tmp_path / name)
        assert [entry["name"] for entry in found.manifest.inputs] == ["-"]
        steps = found.scan("steps").collect()
        assert steps.drop("line").equals(expected.tables["steps"].drop("line"))
    again = pipe(given["packed"][0], "-o", str(tmp_path / "packed"))
    assert b"1 of 1 shards are scored already" in again.stderr


def test_rejects_of_standard_input_name_it(tmp_path):
    guess = {"event": "predicted", "utterance_index": 0, "step": 0, "prediction": "yes"}
    said = {"event": "utterance_complete", "utterance_index": 0, "ground_truth": "yes"}
    data = f"{json.dumps(guess)}\n{json.dumps(said)}\nnothing\n".encode()
    done = pipe(data, "-o", str(tmp_path / "run"))
    assert done.returncode == 3
    assert b"-:3" in done.stderr
    assert b"/tmp" not in done.stderr.replace(str(tmp_path).encode(), b"")


def test_a_format_that_the_suite_does_not_read_is_told(tmp_path):
    done = pipe(b"a,b\n", "-o", str(tmp_path / "run"), "--format", "csv")
    assert done.returncode == 2
    assert b"format is 'csv'" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_format_reads_named_files_without_a_suffix(tmp_path):
    log = write_logs(tmp_path, files=1)[0]
    other = log.rename(tmp_path / "log.txt")
    with pytest.raises(fastscore.FastscoreError, match="names no format"):
        scored(other)
    assert scored(other, format="jsonl").tables["steps"].height
