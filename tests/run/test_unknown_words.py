"""Words that a suite does not know: their numbers are totals, however a log is sharded."""

import json
import random
from collections import Counter

import polars as pl

import fastscore
from fastscore.logs.samples.profile import SHOWN
from fastscore.run.commit import UNKNOWN_WORDS
from fastscore.run.notes import MOST_NAMED
from tests.conftest import write_lines
from tests.logs.samples.wrong_logs import RIGHT
from tests.run.running import run_lexical, table_bytes

N_DIALOGUES = 7
RARE, USUAL = 2 * MOST_NAMED, 12


def write_logs(folder):
    """Write a file a dialogue, with foreign events; return these with their numbers, and rows."""
    chance, counted, n_rows = random.Random(3), Counter[str](), 0
    folder.mkdir()
    for number in range(N_DIALOGUES):
        words = [f"d{number}-{each}" for each in range(RARE)] * 2
        words += [f"all-{each}" for each in range(USUAL) for _ in range(each % 4)]
        chance.shuffle(words)
        counted.update(words)
        rows = [{**row, "dialogue_uid": f"d{number}"} for row in RIGHT["score_dialogue"]]
        rows += [
            {"event": word, "utterance_index": 0, "dialogue_uid": f"d{number}"} for word in words
        ]
        n_rows += len(rows)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number}.jsonl").write_text(text)
    return folder, counted, n_rows


def told(counted, n_rows):
    """Say what a run must: the words by number, then by name."""
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{word!r} in {count}" for word, count in ranked[:SHOWN])
    return (
        f"event: {shown} and {len(ranked) - SHOWN:,} more words, in {counted.total():,} together "
        f"of {n_rows:,} rows; known: predicted, revealed, utterance_complete"
    )


def test_numbers_of_unknown_words_do_not_depend_on_shards(tmp_path):
    logs, counted, n_rows = write_logs(tmp_path / "logs")
    assert len(counted) > N_DIALOGUES * MOST_NAMED
    size = sum(path.stat().st_size for path in logs.iterdir())
    expected = [told(counted, n_rows)]
    of_shards = {}
    for n_shards in (1, 3, 7):
        output = tmp_path / str(n_shards)
        shard_bytes = 1 << 30 if n_shards == 1 else -(-size // n_shards)
        outcome = run_lexical([logs], output, shard_bytes=shard_bytes)
        of_shards[outcome.manifest.shards] = output
        assert list(outcome.manifest.notes) == expected
        listed = pl.read_parquet(output / UNKNOWN_WORDS / "*.parquet")
        assert set(listed["column"]) == {"event"}
        words = listed.group_by("word").agg(pl.col("rows").sum())
        assert dict(words.iter_rows()) == dict(counted)
        # nothing is scored again where nothing is missing
        before = table_bytes(output)
        again = run_lexical([logs], output, shard_bytes=shard_bytes)
        assert list(again.manifest.notes) == expected
        assert table_bytes(output) == before
        assert fastscore.open_run(output).damaged() == []
    assert len(of_shards) == 3
    scores = fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0))
    assert list(scores.notes) == expected


def test_a_part_of_unknown_words_is_made_again_or_removed(tmp_path):
    logs, counted, n_rows = write_logs(tmp_path / "logs")
    run_lexical([logs], tmp_path / "run")
    (part,) = (tmp_path / "run" / UNKNOWN_WORDS).iterdir()
    before = part.read_bytes()
    part.write_bytes(before[:-1])
    outcome = run_lexical([logs], tmp_path / "run")
    assert part.read_bytes() == before
    assert list(outcome.manifest.notes) == [told(counted, n_rows)]
    # of logs without such words nothing is left behind
    (tmp_path / "right").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in RIGHT["score_dialogue"])
    (tmp_path / "right" / "a.jsonl").write_text(text)
    outcome = run_lexical([tmp_path / "right"], tmp_path / "run", overwrite=True)
    assert list(outcome.manifest.notes) == []
    assert not (tmp_path / "run" / UNKNOWN_WORDS).exists()


def test_long_words_are_told_by_their_beginning(tmp_path):
    log = tmp_path / "log.jsonl"
    rows = [*RIGHT["score_dialogue"], {"event": "x" * 1000, "utterance_index": 0}]
    write_lines(log, rows)
    notes = fastscore.score(log, fastscore.ScoreDialogue(lex_weight=1.0)).notes
    assert notes == (
        f"event: '{'x' * 39}…' in 1 of 4 rows; known: predicted, revealed, utterance_complete",
    )
