"""The suite against the plain scorer: the same metrics, pairs and places, by another hand.

Vectors are sums of random vectors of words, so that texts with common words are near each other and
no model is needed.
"""

import json
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.group_travel_logs import write_logs
from benchmarks.group_travel_sources import read_sources
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.suites.group_travel import SUITE, GroupTravelOptions
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.oracles.group_travel_logs import read_dialogues
from tests.oracles.group_travel_metrics import score_dialogue
from tests.oracles.group_travel_scores import Options, Scores
from tests.oracles.group_travel_vectors import Vectors

WIDTH = 24
SHARD_BYTES = 2_000_000
PLANTED = ("M1", "M2", "M3", "M4", "M4b", "M5", "M9", "M10b", "M16")
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
AS_PUBLISHED = GroupTravelOptions(m12_long="cut")
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
    logs: Path, options: GroupTravelOptions, *, semantic: bool, encoded: set[str] | None = None
) -> Tables:
    """Score logs, one shard after another; `encoded` gets the texts of all, each once a shard."""
    frames: dict[str, list[pl.DataFrame]] = {}
    files = resolve_inputs((str(logs),), SUITE.source.formats)
    scratch = logs.with_name(f"{logs.name}-plan")
    scratch.mkdir(exist_ok=True)
    plan = plan_shards(files, SUITE.source, scratch=scratch, shard_bytes=SHARD_BYTES)
    for shard in plan.shards:
        events = SUITE.events(read_shard(shard, SUITE.source).frame, options)
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


def compare(logs: Path, *, semantic: bool, options: Options = DEFAULTS) -> None:
    suite = GroupTravelOptions(
        address_sim=options.address_sim,
        satisfy_sim=options.satisfy_sim,
        serendipity_sim=options.serendipity_threshold,
        m12_target="slot" if options.m12_target == "slot" else "plan",
        m12_long=options.m12_long,
        negation=options.negation,
        strict_overnight=options.strict_overnight,
    )
    tables = score_with_suite(logs, suite, semantic=semantic)
    found = differences(tables, score_plainly(logs, options, semantic=semantic))
    assert not found, "\n".join([f"{len(found)} differences", *found[:20]])


@pytest.mark.parametrize("semantic", [True, False], ids=["vectors", "words"])
@pytest.mark.parametrize("layout", ["csv", "jsonl", "parquet"])
def test_generated_dialogues(tmp_path: Path, layout: Any, semantic: bool) -> None:
    dialogues = often(40, 400)
    write_logs(tmp_path, dialogues=dialogues, layout=layout, defects=0.3, seed=5, per_file=25)
    if layout != "parquet":
        compare(tmp_path / "logs", semantic=semantic)
        return
    write_logs(tmp_path / "twin", dialogues=dialogues, layout="csv", defects=0.3, seed=5)
    plain = score_plainly(tmp_path / "twin" / "logs", DEFAULTS, semantic=semantic)
    tables = score_with_suite(tmp_path / "logs", AS_PUBLISHED, semantic=semantic)
    assert differences(tables, plain) == []


def test_other_options(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=40, defects=0.3, seed=6)
    compare(tmp_path / "logs", semantic=True, options=OTHERWISE)


@pytest.mark.parametrize("target", ["default", "slot"])
def test_generated_dialogues_in_windows(tmp_path: Path, target: str) -> None:
    write_logs(tmp_path, dialogues=often(40, 400), defects=0.3, seed=8)
    options = Options(m12_long="windows", m12_target=target)
    compare(tmp_path / "logs", semantic=True, options=options)
    # the default reads in windows, so both ways are not the same on these logs
    if target == "default":
        found = score_with_suite(tmp_path / "logs", GroupTravelOptions(), semantic=True)
        plain = score_plainly(tmp_path / "logs", DEFAULTS, semantic=True)
        assert any(" M12:" in each for each in differences(found, plain))


def test_planted_defects_are_recovered(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=often(200, 2000), defects=0.3, seed=7)
    rows = {
        row["dialogue"]: row
        for row in score_with_suite(tmp_path / "logs", GroupTravelOptions(), semantic=False)[
            "dialogues"
        ].to_dicts()
    }
    with (tmp_path / "expected.jsonl").open() as lines:
        for planted in map(json.loads, lines):
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
def test_real_plans(tmp_path: Path, data: str | None, request: pytest.FixtureRequest) -> None:
    if data is None and "data" in request.node.callspec.id:
        pytest.skip("FASTSCORE_DATA names no folder of full data")
    with (tmp_path / "plans.jsonl").open("w") as stream:
        for number, trip in enumerate(read_sources(Path(data) if data else None).trips):
            turn = {"speaker": "System", "intent": "sys_present_plan", "plan": trip.plan}
            turn |= {f"ref_info_{kind}": records for kind, records in trip.records.items()}
            record = {"metadata": {"dialogue_id": str(number)}, "turns": [turn]}
            stream.write(json.dumps(record) + "\n")
    rows = score_with_suite(tmp_path, GroupTravelOptions(), semantic=False)["dialogues"]
    totals = rows.select(pl.col("M9_num", "M9_den", "M16_num", "M16_den").sum()).row(0)
    assert totals == (943, 946, 712, 900)


def test_a_text_is_asked_for_once(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=50, seed=8)
    encoded: set[str] = set()
    score_with_suite(tmp_path / "logs", AS_PUBLISHED, semantic=True, encoded=encoded)
    vectors = Vectors(lambda texts: encode(texts))
    for dialogue in read_dialogues([tmp_path / "logs"]):
        score_dialogue(dialogue, vectors)
    assert len(encoded) <= len({text.strip() for text in vectors.known})


# --- dialogues that nobody would log

SPEAKERS = ("Ann", " ann", "BOB", "Zoë", "System", "planner", "Everyone", "group")
SLOT_NAMES = (
    *("cuisine", "food", "event", "events", "attraction", "lodging", "Room_Type", "hotel"),
    *("traveler_type", "house_rule", "spending"),
)
PHRASES = (
    *("Italian food", "BBQ or barbecues", "a café, cafes even", "fast food & pizza", "movies"),
    *("Not a museum but parks", "museums, Museums; MUSEUM", "live music", "theater and sports"),
    *("a private room", "no hostels", "anything but a shared room", "share a room", "entire home"),
    *("rather than a dorm", "we don't want, ever, to share a room", "own room; however a dorm"),
    *("I would like something", "Sushi", "12 seats", "東京 寿司", "Straße ŒUVRE ﬁne", "हिन्दी संगीत"),
    *("O'Neill's “Pub”", "spas", "glass bus tennis", "", "   ", "n/a", "-", "İstanbul", "x_y_z"),
    *("no conflict here", "Conflict: none", "a compromise", "tastes differ", "any trade-offs"),
    *("without a real balance", "parental authority", "least_misery", "include both rule", "nash"),
    *("sub-groups", "the elders, senior veto", "Roma is great", "the Wok house", "Museum of Art"),
)
NAMES = (
    *("Roma", "Wok", "Museum of Art", "Fort Park", "Loft, the (west)", "Café Zoë", "Nowhere"),
    *("Roma (old)", "Jazz Night", "Go", "12"),
)
ENDS = ("", ", Salem", ", Salem (Oregon)", "; Cost: 14", ".", " ;", "; -")
TIMES = ("09:00", "9:30 AM", "12:15 p.m.", "13:00 pm", "23:30", "24:00", "25:00", "8:75", "00:10")
EMPTY_CELLS = ("", "nan", "{}", "-", "None", None)
ROOM_TYPES = ("Entire home/apt", "Private room", "shared_room", "Whole villa", "boat", None)
CATEGORIES = (
    "Italian, Tea",
    ["Fast Food", "BBQ"],
    "['Museums', 'Nature & Parks']",
    "Jazz|Movies",
    "",
)
TRUTHS = (True, False, "true", "no", "1", 0, None)


def phrases(most: int = 3) -> st.SearchStrategy[str]:
    # U+001C to U+001F are white space for Python alone
    odd = st.text(st.characters(exclude_characters="\x1c\x1d\x1e\x1f", codec="utf-8"), max_size=8)
    parts = st.one_of(*[st.sampled_from(PHRASES)] * 9, odd)
    return st.lists(parts, min_size=1, max_size=most).map(" ".join)


def written(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Write a cell as it is, as JSON, as a Python literal, or not at all."""
    forms: tuple[Callable[[Any], Any], ...] = (lambda value: value, json.dumps, str)
    shaped = st.tuples(values, st.sampled_from(forms)).map(
        lambda pair: pair[0] if isinstance(pair[0], str) else pair[1](pair[0])
    )
    return st.one_of(shaped, shaped, st.sampled_from(EMPTY_CELLS))


def some_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


place_texts = st.tuples(st.sampled_from(NAMES), st.sampled_from(ENDS)).map("".join)
places = st.one_of(
    place_texts,
    st.sampled_from(("-", "", "N/A", "none", None)),
    st.lists(place_texts, max_size=3),
    st.lists(place_texts, max_size=3).map("; ".join),
    st.sampled_from(NAMES).map(lambda name: {"name": name}),
)
spans = st.tuples(st.sampled_from(TIMES), st.sampled_from(TIMES))
entries = st.one_of(
    st.tuples(st.sampled_from(NAMES[:4]), spans).map(
        lambda e: f"{e[0]}, visit from {e[1][0]} to {e[1][1]}, nearest transit: Elm St, 5m away"
    ),
    st.tuples(st.sampled_from(NAMES[:4]), spans).map(lambda e: f"{e[1][0]} - {e[1][1]}: {e[0]}"),
    st.sampled_from(NAMES),
)
points = st.one_of(
    st.lists(entries, max_size=4).map(";".join),
    st.lists(entries, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(NAMES), spans).map(
            lambda e: {"place": e[0], "start": e[1][0], "end_time": e[1][1]}
        ),
        max_size=3,
    ),
)
days = some_of(
    days=st.integers(1, 7),
    breakfast=places,
    Lunch=places,
    dinner=places,
    accommodation=places,
    Attractions=places,
    event=places,
    point_of_interest_list=points,
)
plans = st.one_of(
    st.lists(days, max_size=3),
    some_of(days=st.lists(days, max_size=3), raw_output=phrases(6)),
    some_of(days=st.integers(1, 3), itinerary=st.lists(days, max_size=2)),
    phrases(),
)
synthesis = some_of(
    has_conflict=st.sampled_from(TRUTHS),
    conflict_description=phrases(),
    resolution_strategy=st.sampled_from(("N/A", "Include Both", None, "no strategy")),
    strategy_id=st.sampled_from(("", "log_roll", None)),
    resolution_explanation=st.one_of(phrases(), st.sampled_from(("N/A", None, "tbd"))),
)
synthesis_cells = st.one_of(synthesis, synthesis.map(lambda found: {"synthesis": found}))
states = st.dictionaries(
    st.sampled_from(("slot_decision_state", "synthesis", "slot_decisions")),
    st.dictionaries(st.sampled_from(("cuisine", "lodging", "event")), synthesis, max_size=2),
    max_size=2,
)


def records(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    found = st.lists(some_of(**fields), max_size=4)
    return st.one_of(found, found.map(lambda rows: {"in Salem": rows, "note": "x"}))


catalogues = some_of(
    ref_info_restaurants=written(
        records(Name=st.sampled_from(NAMES), Cuisines=st.sampled_from(CATEGORIES))
    ),
    ref_info_accommodations=written(
        records(
            **{
                "NAME": st.sampled_from(NAMES),
                "room type": st.sampled_from(ROOM_TYPES),
                "house_rules": st.sampled_from(("No pets", "")),
            }
        )
    ),
    ref_info_attractions=written(
        records(
            name=st.sampled_from(NAMES),
            subcategories=st.sampled_from(CATEGORIES),
            description=phrases(),
        )
    ),
    ref_info_events=written(
        records(eventName=st.sampled_from(NAMES), segmentName=st.sampled_from(CATEGORIES))
    ),
)
prefixes = st.sampled_from(
    ("user_provide_", "USER_PROVIDE_", "sys_synthesize_", "sys_synthesize_", "user_feedback_")
)
slot_turns = st.fixed_dictionaries(
    {
        "speaker": st.sampled_from(SPEAKERS),
        "intent": st.tuples(prefixes, st.sampled_from(SLOT_NAMES)).map("".join),
        "utterance": phrases(),
    },
    optional={"metadata": written(synthesis_cells), "constraint_state": written(states)},
)
other_turns = st.tuples(
    st.fixed_dictionaries(
        {
            "speaker": st.sampled_from(SPEAKERS),
            "intent": st.sampled_from(("sys_present_plan", "user_accept_plan", "chat", "")),
            "utterance": phrases(),
        },
        optional={"plan": written(plans)},
    ),
    catalogues,
).map(lambda parts: {**parts[0], **parts[1]})
metadata = st.fixed_dictionaries(
    {},
    optional={
        **{flag: st.booleans() for flag in ("multi_user", "enable_synthesis", "enable_feedback")},
        "condition": st.sampled_from(("C1", "c3", "C4", "C5", "C9")),
        "flags": st.fixed_dictionaries({}, optional={"use_social_theory": st.booleans()}),
        "member_count": st.integers(0, 5),
        "members": st.lists(st.just({"name": "x"}), max_size=4),
        "group_type": st.sampled_from(("family", "strangers")),
    },
)
dialogues = st.tuples(
    metadata, st.lists(st.one_of(slot_turns, slot_turns, other_turns), min_size=1, max_size=14)
)


@settings(
    max_examples=often(8, 100),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(dialogues, min_size=6, max_size=20), st.sampled_from((DEFAULTS, OTHERWISE)))
def test_any_dialogues(
    tmp_path_factory: pytest.TempPathFactory,
    batch: list[tuple[dict[str, Any], list[dict[str, Any]]]],
    options: Options,
) -> None:
    path = tmp_path_factory.mktemp("any") / "talks.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number, (about, turns) in enumerate(batch):
            record = {"metadata": {**about, "dialogue_id": f"d{number}"}, "turns": turns}
            stream.write(json.dumps(record) + "\n")
    compare(path, semantic=True, options=options)


def test_what_else_is_in_a_batch_changes_nothing(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=40, seed=9)
    (path,) = (tmp_path / "logs").iterdir()
    lines = path.read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)
    (tmp_path / "shuffled.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = GroupTravelOptions()
    both = [
        score_with_suite(source, options, semantic=True)["dialogues"]
        .sort("dialogue")
        .drop("file", "line", "warnings")
        for source in (path, tmp_path / "shuffled.jsonl")
    ]
    assert both[0].equals(both[1])
