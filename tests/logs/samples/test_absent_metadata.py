"""A metric that has another value without a column says so."""

import json

import fastscore
from fastscore.api.examples import write_example


def test_metadata_under_another_name_are_missed(tmp_path):
    write_example("group_travel", tmp_path)
    log = next((tmp_path / "logs").iterdir())
    read = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    rows = [row for row in read if not any("metadata" in turn for turn in row["turns"])]
    assert rows
    right = fastscore.score(rows, "group_travel", embedder="none")
    assert not any(note.startswith("M1 is") for note in right.notes)
    renamed = [{("about" if k == "metadata" else k): v for k, v in row.items()} for row in rows]
    scores = fastscore.score(renamed, "group_travel", embedder="none")
    assert any(
        note.startswith("M1 is scored without it: no row has metadata (looked for: metadata; ")
        for note in scores.notes
    )
    # a turn's own are enough
    inside = [
        {"turns": [{"metadata": row["metadata"], **row["turns"][0]}, *row["turns"][1:]]}
        for row in rows
    ]
    scores = fastscore.score(inside, "group_travel", embedder="none")
    assert not any(note.startswith("M1 is") for note in scores.notes)
