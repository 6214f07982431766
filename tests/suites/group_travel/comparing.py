"""Scores of the suite and of the plain scorer, side by side.

Vectors are sums of random vectors of words, so that texts with common words are near each other and
no model is needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.vectors.view import VectorView
from tests.oracles.group_travel_logs import read_dialogues
from tests.oracles.group_travel_metrics import Options, Scores, score_dialogue
from tests.oracles.group_travel_vectors import Vectors

WIDTH = 24
SHARD_BYTES = 2_000_000
PAIR_COLUMNS = {
    "addressed_synthesis": "in_synthesis",
    "addressed_plan": "in_plan",
    "addressed": "addressed",
    "room_channel": "rooms",
    "category_channel": "category",
    "lexical_channel": "lexical",
    "semantic_channel": "semantic",
}
DEFAULTS = Options()
OTHERWISE = Options(
    address_sim=0.6,
    satisfy_sim=0.6,
    serendipity_threshold=0.6,
    m12_target="slot",
    negation="all",
    strict_overnight=True,
)
AS_PUBLISHED = GroupTravel(m12_long="cut")
Tables = Mapping[str, pl.DataFrame]


@cache
def word_vector(word: str) -> npt.NDArray[np.float64]:
    draw = np.random.default_rng([ord(c) for c in word])
    return draw.standard_normal(WIDTH)


def encode(texts: Iterable[str]) -> npt.NDArray[np.float32]:
    sums = [np.sum([word_vector(w) for w in (text.split() or ["?"])], axis=0) for text in texts]
    rows = np.array(sums).reshape(len(sums), WIDTH)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def score_with_suite(
    logs: Path, options: GroupTravel, *, semantic: bool, encoded: set[str] | None = None
) -> Tables:
    """Score logs, one shard after another; `encoded` gets the texts of all, each once a shard."""
    frames: dict[str, list[pl.DataFrame]] = {}
    files = resolve_inputs((str(logs),), SUITE.source.formats)
    scratch = logs.with_name(f"{logs.name}-plan")
    scratch.mkdir(exist_ok=True)
    plan = plan_shards(files, SUITE.source, scratch=scratch, shard_bytes=SHARD_BYTES)
    for shard in plan.shards:
        events = SUITE.read(read_shard(shard, SUITE.source).frame, options)
        assert not len(events.rejects), events.rejects
        view = VectorView.empty()
        if semantic:
            texts = SUITE.texts(events, options)
            assert texts.n_unique() == len(texts)
            view = VectorView.from_texts(texts, encode(texts))
            long_texts = SUITE.long_texts(events, options)
            if len(long_texts):
                words = long_texts.str.count_matches(r"\S+").to_numpy()[:, None]
                sums = VectorView.from_texts(long_texts, encode(long_texts) * words)
                view = replace(view, windowed=sums)
            if encoded is not None:
                encoded.update(texts)
        for name, table in SUITE.score(events, view, options).items():
            frames.setdefault(name, []).append(table)
    return {name: pl.concat(found) for name, found in frames.items()}


def score_plainly(logs: Path, options: Options, *, semantic: bool) -> list[Scores]:
    vectors = Vectors((lambda texts: encode(texts)) if semantic else None)
    return [score_dialogue(dialogue, vectors, options) for dialogue in read_dialogues([logs])]


def same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return bool(abs(ours - theirs) <= 2e-6)


def differences(tables: Tables, plain: Sequence[Scores]) -> list[str]:
    """Name every number in which the two sides differ."""
    found: list[str] = []
    rows = {row["dialogue"]: row for row in tables["dialogues"].to_dicts()}
    pairs = {(r["dialogue"], r["member"], r["slot"]): r for r in tables["pairs"].to_dicts()}
    places = {(r["dialogue"], r["key"]): r for r in tables["places"].to_dicts()}

    def check(what: str, ours: Any, theirs: Any) -> None:
        if not same(ours, theirs):
            found.append(f"{what}: suite {ours!r}, plain {theirs!r}")

    for scores in plain:
        row = rows.pop(scores.dialogue)
        if row["condition"] != scores.condition:
            found.append(f"{scores.dialogue}: {row['condition']}, plain {scores.condition}")
        for metric, score in scores.metrics.items():
            check(f"{scores.dialogue} {metric}", row[metric], score.value)
            if score.value is not None and score.den is not None and f"{metric}_num" in row:
                check(f"{scores.dialogue} {metric}_num", row[f"{metric}_num"], score.num)
                check(f"{scores.dialogue} {metric}_den", row[f"{metric}_den"], score.den)
        for pair in scores.pairs:
            ours = pairs.pop((scores.dialogue, pair.member, pair.slot))
            where = f"{scores.dialogue} {pair.member}/{pair.slot} {pair.text!r}"
            if ours["informative_tokens"] != pair.words.top:
                found.append(f"{where}: {ours['informative_tokens']}, plain {pair.words.top}")
            for column, name in PAIR_COLUMNS.items():
                check(f"{where} {column}", ours[column], getattr(pair, name))
            check(f"{where} similarity", ours["slot_similarity"], pair.similarity)
        for place in scores.places:
            ours = places.pop((scores.dialogue, place.key))
            where = f"{scores.dialogue} place {place.key!r}"
            for column in ("grounded", "explicit", "similarity", "serendipitous"):
                check(f"{where} {column}", ours[column], getattr(place, column))
    left = [*rows, *pairs, *places]
    return found + [f"only the suite has {key}" for key in left]


def compare(
    logs: Path, *, semantic: bool, options: Options = DEFAULTS, plain: Path | None = None
) -> None:
    """Score logs both ways, plainly from another place if one is named."""
    suite = GroupTravel(
        address_sim=options.address_sim,
        satisfy_sim=options.satisfy_sim,
        serendipity_sim=options.serendipity_threshold,
        m12_target="slot" if options.m12_target == "slot" else "plan",
        m12_long=options.m12_long,
        negation=options.negation,
        strict_overnight=options.strict_overnight,
    )
    tables = score_with_suite(logs, suite, semantic=semantic)
    found = differences(tables, score_plainly(plain or logs, options, semantic=semantic))
    assert not found, "\n".join([f"{len(found)} differences", *found[:20]])
