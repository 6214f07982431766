"""Scoring with the options of any suite and those of a run in one set of keywords."""

import dataclasses
from typing import Any

import fastscore
from fastscore.suites.registry import load_suite


def score_by_keywords(source: Any, suite: str, **keywords: Any) -> Any:
    """Score by a suite that a test is given by name, with options of whatever suite it is."""
    declared = load_suite(suite).options
    names = {field.name for field in dataclasses.fields(declared)} & set(keywords)
    options = declared(**{name: keywords.pop(name) for name in names})
    return fastscore.score(source, options, **keywords)
