"""Shell completion: names known to the command line, and names in the typed run."""

import pytest
from click.testing import CliRunner

import fastscore
from fastscore.cli import cli


def completed(*words):
    """Return bash's completions of the last word."""
    asked = {
        "COMP_WORDS": " ".join(["fastscore", *words]),
        "COMP_CWORD": str(len(words)),
        "_FASTSCORE_COMPLETE": "bash_complete",
    }
    shown = CliRunner().invoke(cli, [], prog_name="fastscore", env=asked).stdout
    return {line.partition(",")[2] for line in shown.splitlines()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["metrics", "group"], {"group_travel"}),
        (["layouts", "openai-"], {"openai-batch"}),
        (["score", "score_dialogue", "--layout", "openai-"], {"openai-batch"}),
        (["score", "score_dialogue", "--lex"], {"--lex-weight"}),
        (["score", "score_dialogue", "--embedder", "no"], {"none"}),
        (["models", "export", "mxbai"], {"mxbai-embed-large-v1"}),
        (["judge", "logs", "--suite", "memory"], {"memory_finance"}),
    ],
)
def test_names_are_completed(words, expected):
    assert completed(*words) == expected


def test_metrics_and_labels_of_the_run_are_completed(golden, tmp_path):
    run = tmp_path / "run"
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    fastscore.score(golden / "a.jsonl", options, output=run, max_rejects=1.0)
    assert completed("summary", str(run), "--metric", "average") == {"average_U_best_early"}
    assert completed("summary", str(run), "--by", "miner_") == {"miner_uid", "miner_hotkey"}
    assert completed("compare", str(run), "--by", "miner_uid,chall") == {
        "miner_uid,challenge_uid",
        "miner_uid,challenge_type",
    }
    assert completed("explain", str(run), "any", "U_s") == {"U_step"}
