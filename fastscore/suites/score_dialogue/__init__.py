"""Suite ``score_dialogue``: early prediction of utterances, as babelbit_subnet scores it."""

from fastscore.suites.base import Suite
from fastscore.suites.declarations import Design
from fastscore.suites.score_dialogue import schema
from fastscore.suites.score_dialogue.metrics import METRICS
from fastscore.suites.score_dialogue.options import ScoreDialogue

__all__ = ["SUITE", "ScoreDialogue"]

SUITE = Suite(
    name="score_dialogue",
    package=__name__,
    title="How early and how well each utterance of a dialogue was predicted",
    papers=(
        "The authors of babelbit_subnet (2026): score_dialogue.py and its README, commit 5b7869b. "
        "https://github.com/babelbit/babelbit_subnet. No paper is known.",
        "Perplexities only: Salazar, Liang, Nguyen, Kirchhoff (2020): Masked Language Model "
        "Scoring. https://aclanthology.org/2020.acl-main.240",
    ),
    agreement="No study of agreement with people is known.",
    version=1,
    options=ScoreDialogue,
    source=schema.SOURCE,
    tables=schema.TABLES,
    metrics=METRICS,
    design=Design(
        pair=("dialogue_uid", "challenge_uid"),
        groups=schema.GROUPS,
        asked=("steps", "utterances", "n_scored"),
    ),
    read="events:read_events",
    texts="events:texts_to_embed",
    score="score:score_events",
    summarise="score:summarised",
)
