"""Logs, runs and configurations with a few bytes changed: read, refused by name, nothing else."""

import gzip
import json
import random
import shutil
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
import zstandard

from fastscore.api.examples import example_names, example_options, write_example
from fastscore.cli import cli
from fastscore.errors import FastscoreError
from tests.conftest import often
from tests.fuzz_readers import mutated
from tests.run.logs import write_logs
from tests.run.running import run_lexical
from tests.run.test_equivalence import FORMATS

MUTATIONS = often(12, 600)
CORPUS = Path(__file__).parents[1] / "corpus" / "logs"
CONFIG = b"""
suite = "score_dialogue"
output = "run"
max-rejects = 0.5
[score_dialogue]
lex-weight = 1.0
semantic = "jaccard"
[columns]
prediction = "said.text"
"""


@contextmanager
def kept_if_found(path, name):
    """Keep a log in the corpus if it makes its test fail."""
    try:
        yield
    except BaseException:
        CORPUS.mkdir(exist_ok=True)
        shutil.copy(path, CORPUS / name)
        raise


def exit_code(words):
    """Return the command's exit code; an error in house style is none that it should not have."""
    try:
        cli.main(words, standalone_mode=False)
    except FastscoreError as error:
        return error.exit_code
    except click.ClickException as error:
        return error.exit_code
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def check(path, output):
    """Score a log; whatever its bytes are, it is scored, each line counted, or refused by name."""
    try:
        counts = run_lexical([path], output, max_rejects=1.0).manifest.counts
    except FastscoreError as error:
        if path.name not in str(error):
            raise
    else:
        if path.suffix != ".parquet":
            assert counts["rows"] + counts["rejects"] + counts["blank"] == counts["lines"]


@pytest.mark.parametrize("format", [*FORMATS, "jsonl.gz", "jsonl.zst"])
def test_a_mutated_log_is_scored_or_refused_by_name(format, tmp_path):
    """Of packed logs both the bytes and, where a suffix is of JSON Lines, the lines within."""
    (plain,) = write_logs(tmp_path / "plain", files=1, dialogues=2)
    path = tmp_path / f"log.{format}"
    pack = {"jsonl.gz": gzip.compress, "jsonl.zst": zstandard.compress}.get(format)
    FORMATS.get(format, FORMATS["jsonl"])(path, plain.read_bytes())
    whole = path.read_bytes()
    rng = random.Random(format)
    for number in range(MUTATIONS):
        case = mutated(rng, whole)
        path.write_bytes(pack(case) if pack else case)
        with kept_if_found(path, f"{number}.{format}"):
            check(path, tmp_path / f"run-{number}")


@pytest.mark.parametrize("suite", example_names())
def test_a_mutated_example_of_each_suite(suite, tmp_path):
    write_example(suite, tmp_path / suite)
    log = min((tmp_path / suite / "logs").rglob("*.*"))
    data = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
    data = b"".join(data.splitlines(keepends=True)[:40])
    path = tmp_path / log.name.removesuffix(".gz")
    rng = random.Random(suite)
    for number in range(often(4, 150)):
        case = data
        for _ in range(5):
            case = mutated(rng, case)
        path.write_bytes(case)
        words = ["score", suite, str(path), "-o", str(tmp_path / f"run-{number}"), "-q"]
        with kept_if_found(path, f"{suite}-{number}-{path.name}"):
            assert exit_code([*words, *example_options(suite, tmp_path / suite)]) in (0, 3)


def test_a_mutated_configuration_is_read_or_refused(tmp_path):
    (log,) = write_logs(tmp_path / "logs", files=1, dialogues=1)
    path = tmp_path / "fastscore.toml"
    rng = random.Random(0)
    for _ in range(MUTATIONS * 4):
        path.write_bytes(mutated(rng, CONFIG))
        words = ["score", "score_dialogue", str(log), "--config", str(path), "--dry-run"]
        with kept_if_found(path, "configuration.toml"):
            assert exit_code([*words, "-q", "-o", str(tmp_path / "run")]) in (0, 2, 3)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.*")), ids=lambda path: path.name)
def test_each_log_of_the_corpus(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    check(copy, tmp_path / "run")


def test_mutations_keep_the_good_lines(tmp_path):
    """One broken line among good ones costs itself alone."""
    (plain,) = write_logs(tmp_path / "plain", files=1, dialogues=2)
    lines = plain.read_bytes().splitlines(keepends=True)
    rng = random.Random(1)
    path = tmp_path / "log.jsonl"
    for number in range(often(5, 200)):
        at = rng.randrange(len(lines))
        broken = lines[at][: rng.randrange(1, len(lines[at]) - 2)] + b"\n"
        path.write_bytes(b"".join([*lines[:at], broken, *lines[at + 1 :]]))
        outcome = run_lexical([path], tmp_path / f"run-{number}", max_rejects=1.0)
        assert outcome.manifest.counts["rejects"] == 1
        assert outcome.manifest.counts["rows"] == len(lines) - 1
        assert json.loads(lines[at])
