"""One vocabulary of reject reasons: the suites' and the readers', as documented."""

import re
from pathlib import Path
from typing import get_args

import fastscore.suites
from fastscore.statistics.clustered import EstimateReason
from fastscore.suites.declarations import NULL_REASONS, REJECT_REASONS

DOCS = Path(__file__).parents[2] / "docs"
SUITES = Path(fastscore.suites.__file__).parent
NAMED = re.compile(r"""\breason["']?\s*[=:]\s*["'](\w+)["']""")


def test_suites_name_only_reasons_that_are_documented():
    found = {(path.name, reason) for path in SUITES.rglob("*.py")
             for reason in NAMED.findall(path.read_text())}  # fmt: skip
    assert {("events.py", "unpaired_turn"), ("turns.py", "missing_field")} <= found
    # those of estimates are why a summary's mean has no interval
    allowed = {*REJECT_REASONS, *NULL_REASONS, *get_args(EstimateReason)}
    allowed |= {*re.findall(r"`(\w+)`", (DOCS / "analysis.md").read_text())}
    assert [each for each in sorted(found) if each[1] not in allowed] == []


def test_every_reason_stands_in_the_documentation():
    section = (DOCS / "formats.md").read_text().split("\n## Rejects\n")[1].split("| Column |")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    documented = [reason for cell in cells for reason in re.findall(r"`(\w+)`", cell)]
    assert sorted(documented) == sorted(REJECT_REASONS)
