"""The suite against the plain scorer: the same metrics, pairs and places, by another hand."""

import json
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.group_travel import write_logs
from benchmarks.group_travel_itineraries import read_sources
from fastscore.suites.group_travel import GroupTravel
from tests.conftest import often
from tests.oracles.group_travel_logs import read_dialogues
from tests.oracles.group_travel_metrics import Options, score_dialogue
from tests.oracles.group_travel_vectors import Vectors
from tests.suites.group_travel.comparing import (
    AS_PUBLISHED,
    DEFAULTS,
    OTHERWISE,
    compare,
    differences,
    encode,
    score_plainly,
    score_with_suite,
)
from tests.suites.group_travel.odd_dialogues import dialogues

PLANTED = ("M1", "M2", "M3", "M4", "M4b", "M5", "M9", "M10b", "M16")


WINDOWS = Options(m12_long="windows")


@pytest.mark.parametrize(
    ("layout", "semantic", "options"),
    [
        ("csv", True, DEFAULTS),
        ("jsonl", False, DEFAULTS),
        ("jsonl", True, OTHERWISE),
        ("jsonl", True, Options(m12_long="windows", m12_target="slot")),
        ("parquet", True, WINDOWS),
    ],
)
def test_generated_dialogues(tmp_path, layout, semantic, options):
    many = {"dialogues": often(24, 400), "defects": 0.3, "seed": 8}
    write_logs(tmp_path, layout=layout, per_file=often(15, 25), **many)
    plain = tmp_path / "logs"
    if layout == "parquet":  # which the plain scorer does not read
        plain = tmp_path / "twin" / "logs"
        write_logs(tmp_path / "twin", layout="csv", **many)
    compare(tmp_path / "logs", semantic=semantic, options=options, plain=plain)
    if options is WINDOWS:  # they change these logs' numbers
        cut = score_plainly(plain, DEFAULTS, semantic=True)
        found = differences(score_with_suite(tmp_path / "logs", GroupTravel(), semantic=True), cut)
        assert any(" M12:" in each for each in found)


def test_planted_defects_are_recovered(tmp_path):
    write_logs(tmp_path, dialogues=often(100, 2000), defects=0.3, seed=7)
    rows = {
        row["dialogue"]: row
        for row in score_with_suite(tmp_path / "logs", GroupTravel(), semantic=False)[
            "dialogues"
        ].to_dicts()
    }
    with (tmp_path / "expected.jsonl").open() as lines:
        expected = [json.loads(line) for line in lines]
    for metric in PLANTED:  # each defect is there
        shares = [planted[metric] for planted in expected if isinstance(planted[metric], list)]
        assert any(num < den for num, den in shares), metric
    for planted in expected:
        row = rows.pop(planted["dialogue"])
        assert row["condition"] == planted["condition"]
        for metric in PLANTED:
            found = row[metric]
            if isinstance(planted[metric], list):
                found = [row[f"{metric}_num"], row[f"{metric}_den"]]
                assert row[metric] == found[0] / found[1]
            assert found == planted[metric], (planted["dialogue"], metric)
    assert not rows


@pytest.mark.parametrize("data", [None, os.environ.get("FASTSCORE_DATA")], ids=["sample", "data"])
def test_real_plans(tmp_path, data, request):
    if data is None and "data" in request.node.callspec.id:
        pytest.skip("FASTSCORE_DATA names no folder of full data")
    with (tmp_path / "plans.jsonl").open("w") as stream:
        for number, trip in enumerate(read_sources(Path(data) if data else None).trips):
            turn = {"speaker": "System", "intent": "sys_present_plan", "plan": trip.plan}
            turn |= {f"ref_info_{kind}": records for kind, records in trip.records.items()}
            record = {"metadata": {"dialogue_id": str(number)}, "turns": [turn]}
            stream.write(json.dumps(record) + "\n")
    rows = score_with_suite(tmp_path, GroupTravel(), semantic=False)["dialogues"]
    totals = rows.select(pl.col("M9_num", "M9_den", "M16_num", "M16_den").sum()).row(0)
    assert totals == (943, 946, 712, 900)


def test_a_text_is_asked_for_once(tmp_path):
    write_logs(tmp_path, dialogues=25, seed=8)
    encoded = set()
    score_with_suite(tmp_path / "logs", AS_PUBLISHED, semantic=True, encoded=encoded)
    vectors = Vectors(lambda texts: encode(texts))
    for dialogue in read_dialogues([tmp_path / "logs"]):
        score_dialogue(dialogue, vectors)
    assert len(encoded) <= len({text.strip() for text in vectors.known})


@settings(
    max_examples=often(6, 100),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(dialogues, min_size=6, max_size=20), st.sampled_from((DEFAULTS, OTHERWISE)))
def test_any_dialogues(tmp_path_factory, batch, options):
    path = tmp_path_factory.mktemp("any") / "talks.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number, (about, turns) in enumerate(batch):
            record = {"metadata": {**about, "dialogue_id": f"d{number}"}, "turns": turns}
            stream.write(json.dumps(record) + "\n")
    compare(path, semantic=True, options=options)
