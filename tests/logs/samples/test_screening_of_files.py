"""How files are looked at: their forms, how far they are read, and which are left aside."""

import gzip
import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from fastscore.logs.inputs.column_map import column_map
from fastscore.logs.samples.profile import ROWS_SAMPLED
from tests.logs.samples.screened import refusal, screened
from tests.logs.samples.wrong_logs import RIGHT, changed, renamed, write

COLUMNS = io.BytesIO()
pl.DataFrame(RIGHT["score_dialogue"]).write_parquet(COLUMNS)
CUT = gzip.compress(COLUMNS.getvalue())[:-30]
"""A packed table of columns that ends early."""


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_nulls_all_through_a_long_file_are_told(name, tmp_path):
    log = tmp_path / name
    rows = [{**row, "prediction": None} for row in RIGHT["score_dialogue"][:2]] * 300
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    log.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    said = refusal("score_dialogue", log)
    assert said.startswith(
        f"{log}: no row has what score_dialogue needs.\n  prediction: absent or null in all rows\n"
    )
    # a value after what was looked at is found in the text
    last = json.dumps(RIGHT["score_dialogue"][0]).encode()
    log.write_bytes(gzip.compress(text + last) if name.endswith("gz") else text + last)
    assert screened("score_dialogue", log).files


def test_a_log_of_completed_utterances_alone_is_one(tmp_path):
    """A miner that predicted nothing for a dialogue is scored, as published: no steps."""
    good = write(tmp_path / "logs" / "a.jsonl", RIGHT["score_dialogue"])
    bare = write(tmp_path / "logs" / "b.jsonl", RIGHT["score_dialogue"][2:])
    seen = screened("score_dialogue", tmp_path / "logs")
    assert [file.path for file in seen.files] == [str(good), str(bare)]
    assert seen.left_aside == ()


def test_files_of_another_shape_are_counted(tmp_path):
    for name in "abc":
        rows: list[dict[str, Any]] = [
            {**row, "session_id": name} for row in RIGHT["preference_shift"]
        ]
        if name == "c":
            rows = [{**row, "model_name": "m"} for row in rows]
        write(tmp_path / f"{name}.jsonl", rows)
    (note,) = screened("preference_shift", tmp_path).notes
    assert note == (
        f"pools files of different shape: 1 file of 3 with model_name (first: {tmp_path}/c.jsonl)"
    )


@pytest.mark.parametrize(
    "rows",
    [
        # a value late in a file is found
        [{**row, "prediction": None} for row in RIGHT["score_dialogue"][:2]] * 300
        + RIGHT["score_dialogue"],
        # a dialogue that is not over has no ground truth yet
        RIGHT["score_dialogue"][:2],
    ],
    ids=["late", "not over"],
)
def test_what_some_rows_lack_is_no_fault(rows, tmp_path):
    assert screened("score_dialogue", write(tmp_path / "log.jsonl", rows)).notes == ()


@pytest.mark.parametrize(
    ("suite", "name", "content"),
    [
        ("score_dialogue", "log.jsonl", b""),
        ("score_dialogue", "log.jsonl", b"\n\n"),
        ("score_dialogue", "log.jsonl.gz", b"\x1f\x8b\x08cut"),
        ("score_dialogue", "log.parquet.gz", CUT),
        ("group_travel", "log.json", b"[]"),
        ("group_travel", "log.json", b" [ ]\n"),
    ],
)
def test_what_holds_no_text_or_ends_early_is_left_to_the_reader(suite, name, content, tmp_path):
    log = tmp_path / name
    log.write_bytes(content)
    assert screened(suite, log).files


def test_an_array_is_one_session_or_holds_several(tmp_path):
    """The first element tells: a turn, or an object that contains turns."""
    log = tmp_path / "log.json"
    log.write_text(json.dumps(RIGHT["preference_shift"] * 2))
    assert screened("preference_shift", log).files
    (row,) = RIGHT["preference_shift"]
    log.write_text(json.dumps(row["conversation"]))
    assert screened("preference_shift", log).files


def test_an_indented_document_is_json_by_its_suffix(tmp_path):
    good = write(tmp_path / "logs" / "trace.jsonl", RIGHT["memory_finance"])
    foreign = tmp_path / "logs" / "metrics_summary.json"
    foreign.write_text(json.dumps({"model": "m", "means": {"coverage": 0.5}}, indent=2))
    seen = screened("memory_finance", tmp_path / "logs")
    assert [file.path for file in seen.files] == [str(good)]
    assert [file.path for file in seen.left_aside] == [str(foreign)]
    assert seen.notes == (
        f"left aside, as 1 file is no log of memory_finance: {foreign} (no turns, valid_dialog; "
        "found model (1), means (1), means.coverage (1))",
    )
    good.unlink()
    assert refusal("memory_finance", tmp_path / "logs").startswith(f"{foreign}: no row has what")
    indented = tmp_path / "logs" / "indented.jsonl"
    indented.write_text(json.dumps({"model": "m"}, indent=2))
    assert refusal("memory_finance", indented) == (
        f"{indented}: no line is a JSON object; it begins with '{{'. JSON Lines have one object on "
        f"each line. Type jq -c . {tmp_path / 'logs' / 'indented.jsonl'} > rows.jsonl."
    )
    # beside a file of other keys, those are told
    foreign.unlink()
    other = write(tmp_path / "logs" / "other.jsonl", RIGHT["guest_simulation"])
    assert refusal("memory_finance", tmp_path / "logs").startswith(f"{other}: no row has what")


def test_csv_and_json_documents(tmp_path):
    log = write(tmp_path / "log.csv", renamed("guest_simulation", "speaker"))
    said = refusal("guest_simulation", log)
    assert "  role: no such column\n" in said
    assert said.endswith("Type --column role=speaker.")
    # names of CSV have no case
    log = write(tmp_path / "cased.csv", renamed("guest_simulation", "ROLE"))
    assert screened("guest_simulation", log).notes == ()
    assert screened("guest_simulation", log, columns=column_map({"role": "Role"})).notes == ()
    rows = renamed("guest_simulation", "Role")
    said = refusal(
        "guest_simulation", write(tmp_path / "a.jsonl", rows), columns=column_map({"role": "ROLE"})
    )
    assert "    looked for: ROLE\n" in said
    log = write(tmp_path / "log.json", renamed("group_travel", "message"))
    assert refusal("group_travel", log).endswith("Type --column utterance=message.")
    # a document larger than what is read at first
    rows = changed("group_travel", lambda row: {**row, "utterance": "x" * 9000}) * 4
    assert screened("group_travel", write(tmp_path / "large.json", rows)).notes == ()


def test_reading_ends_as_soon_as_everything_was_seen(tmp_path, monkeypatch):
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"] * 5000)
    read = 0

    def counted(*given: Any) -> Iterator[dict[str, Any]]:
        nonlocal read
        for row in RIGHT["score_dialogue"] * 5000:
            read += 1
            yield row

    monkeypatch.setattr("fastscore.logs.samples.file_samples.read_records", counted)
    screened("score_dialogue", log)
    assert read == ROWS_SAMPLED + 1


SCORE = """
import os
import sys
from fastscore.cli import main


def tell(event, found):
    if event == "open" and str(found[0]).startswith("logs/"):
        os.write(2, f"{found[0]}\\n".encode())


sys.addaudithook(tell)
main()
"""


def test_each_file_is_opened_once_to_be_looked_at(tmp_path):
    """For its first bytes, by planning, and to be scored; the first one by screening too."""
    for index in range(12):
        rows = [dict(row, dialogue_uid=f"d{index}") for row in RIGHT["score_dialogue"]]
        write(tmp_path / "logs" / f"{index:02}.jsonl", rows)
    words = "score score_dialogue logs -o run --lex-weight 1 --embedder none -q"
    done = subprocess.run(
        [sys.executable, "-c", SCORE, *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    opened = Counter(line for line in done.stderr.splitlines() if line.startswith("logs/"))
    assert opened == {f"logs/{index:02}.jsonl": 3 + (index == 0) for index in range(12)}
