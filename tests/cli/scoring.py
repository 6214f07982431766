"""`fastscore score` with the further arguments of a suite."""

import json
from pathlib import Path

from tests.conftest import fastscore_command

MORE = {
    "score_dialogue": ("--lex-weight", "1"),
    "preference_shift": ("--segments", "metadata"),
    "group_travel": ("--embedder", "none"),
}
CATALOGUE = [{"name": "Her", "genre": ["comedy"]}]


def options(suite: str, tmp_path: Path) -> list[str]:
    more = list(MORE.get(suite, ()))
    if suite == "preference_shift":
        catalogue = tmp_path / "catalogue.json"
        catalogue.write_text(json.dumps(CATALOGUE))
        more += ["--catalogue", str(catalogue)]
    return more


def score(suite: str, tmp_path: Path, *words: object) -> tuple[int, str, str]:
    run = tmp_path / "run"
    done = fastscore_command(["score", suite, *words, "-o", run, *options(suite, tmp_path)])
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr
