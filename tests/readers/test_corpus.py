"""Findings of fuzzing and known hard cases, each beside Python's own reader."""

import random

import pytest

from tests.fuzz_readers import CHECKS, CORPUS

CASES = sorted(path for path in CORPUS.iterdir() if path.is_file())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_each_case_of_the_corpus(path):
    _, check = CHECKS[path.name.split("-")[0]]
    check(path.read_bytes())


@pytest.mark.parametrize("name", CHECKS)
def test_mutations_by_seed(name):
    rng = random.Random(7)
    make, check = CHECKS[name]
    for _ in range(40):
        check(make(rng))
