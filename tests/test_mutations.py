"""The table of mutations that are equal in effect holds none that cannot be made any more."""

import tomllib
from pathlib import Path

from tests.mutations import ROOT, SUITES, TABLE, mutants

FOUND = tomllib.loads(TABLE.read_text("utf-8"))


def test_every_mutation_of_the_table_can_be_made_and_has_its_reason():
    made = {
        mutation.name
        for suite in FOUND["suites"].values()
        for module in suite["modules"]
        for mutation, _ in mutants(str(SUITES / module))
    }
    for each in FOUND["equal"]:
        assert (each["place"], each["before"], each["after"]) in made, each
        assert len(each["why"].split()) > 4, each


def test_every_suite_has_modules_and_tests_that_exist():
    assert {path.parent.name for path in ROOT.glob("fastscore/suites/*/score.py")} <= set(
        FOUND["suites"]
    )
    for suite in FOUND["suites"].values():
        for name in suite["tests"]:
            assert Path(ROOT, name.partition("::")[0]).exists(), name
