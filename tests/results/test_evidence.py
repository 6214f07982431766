"""Evidence of explanations: the shown values add up to the numbers, in plain Python."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from fastscore.results.explaining import Dialogues, explain_metrics
from fastscore.results.runs import Run
from fastscore.suites.showing import Explanation
from tests.conftest import often
from tests.oracles import guest_simulation as plain_guests
from tests.oracles.kernels import levenshtein_similarity
from tests.results.conftest import PROFILES
from tests.results.test_explain import _DST


def test_shifts_recover_by_the_test_of_the_metric(suite_runs: Mapping[str, Run]) -> None:
    dialogues = Dialogues(suite_runs["preference_shift"])
    differing = 0
    for row in range(0, dialogues.names.len(), often(3, 1)):
        rates = {"topic_recovery_rate": "recovered", "recovery_rate_cosine": "recovered_cosine"}
        shifts = dialogues.tables([row])[0]["shifts"]
        for one in explain_metrics(dialogues, row, list(rates)):
            column = rates[one.metric]
            recovered = sum(part.values.get(column) is True for part in one.evidence)
            assert recovered == (shifts[column].sum() if one.value is not None else 0)
        differing += int((shifts["recovered"] != shifts["recovered_cosine"]).sum())
    assert differing


def test_evidence_of_group_travel_adds_up_to_its_numbers(suite_runs: Mapping[str, Run]) -> None:
    """Counts and means of the first column of the evidence, welfare and Gini in plain Python."""
    dialogues = Dialogues(suite_runs["group_travel"])
    seen: set[str] = set()
    shares = {"M8", "M8a", "M8b", "M9", "M10", "M10b", "M12", "M14", "M4b"}
    for row in range(0, dialogues.names.len(), often(3, 1)):
        for one in explain_metrics(
            dialogues, row, [*shares, "W1", "W2", "W3", "M11", "M13", "M15"]
        ):
            if one.value is None:
                continue
            first = [next(iter(part.values.values())) for part in one.evidence if part.values]
            if one.metric in shares:
                expected = sum(first) / len(first)
                assert one.denominator == len(first)
            elif one.metric == "M15":
                marked = [bool(part.values["serendipitous"]) for part in one.evidence]
                expected = sum(marked) / len(marked)
            else:
                expected = {
                    "W1": lambda s: sum(s) / len(s),
                    "W2": min,
                    "W3": lambda s: math.prod(s) ** (1 / len(s)),
                    "M11": lambda s: sum(share == 1 for share in s) / len(s),
                    "M13": _gini,
                }[one.metric](first)
            assert one.value == pytest.approx(expected, abs=1e-6), one
            seen.add(one.metric)
    assert seen == shares | {"W1", "W2", "W3", "M11", "M13", "M15"}


def test_evidence_of_score_dialogue_adds_up_to_its_numbers(suite_runs: Mapping[str, Run]) -> None:
    """Similarity of the shown texts, utility of the shown parts, the best of the shown steps."""
    dialogues = Dialogues(suite_runs["score_dialogue"])
    weight = dialogues.options.lex_weight
    asked = ["lexical_similarity", "semantic_similarity", "U_step", "U_best"]
    seen: set[str] = set()
    for row in range(0, dialogues.names.len(), 7):
        baseline = dialogues.tables([row])[0]["dialogues"]["semantic_baseline_b"][0]
        for one in explain_metrics(dialogues, row, asked):
            if one.value is None:
                continue
            values: dict[str, Any] = {}
            for part in one.evidence:
                values |= part.values
            if one.metric == "lexical_similarity":
                texts = [part.text for part in one.evidence if part.what in _SHOWN_TEXTS]
                expected = levenshtein_similarity(*texts)
            elif one.metric == "semantic_similarity":
                calibrated = (values["semantic_cosine_raw"] - baseline) / (1 - baseline)
                expected = min(1.0, max(0.0, calibrated))
            elif one.metric == "U_step":
                mixed = weight * (values["lexical_similarity"] or 0.0)
                mixed += (1 - weight) * (values["semantic_similarity"] or 0.0)
                expected = mixed * values["earliness"]
            else:
                expected = max(part.values["U_step"] for part in one.evidence)
            assert one.value == pytest.approx(expected, abs=1e-6), one
            seen.add(one.metric)
    assert seen >= {"lexical_similarity", "U_step", "U_best"}


_MEAN_OF = {
    "cross_coherence": ("cc", "cosine_to_user"),
    "context_retention": ("cr", "cosine_to_last"),
    "topic_interference": ("i", ""),
    "context_adaptation_score": ("tas", ""),
    "segment_i": ("i", "i"),
    "i_around_shift": ("i", "i"),
    **{f"dst_{part}_mean": (f"dst_{part}", f"dst_{part}") for part in ("precision", "f1")},
}
"""What a metric is the mean of, and in the profile legacy."""
_PLAIN = ("cr", "segment_cr", "tas", "segment_tas", "cas", "cas_all", "delay", "delay_cosine")
_LISTED = ("missing_concepts_total", "hallucinated_concepts_total", "dst_joint_accuracy", "i")


SHIFTS = ("preference_shift/legacy", "preference_shift", *PROFILES[:2])


@pytest.mark.parametrize("run", SHIFTS[: often(2, 4)])
def test_evidence_of_preference_shift_adds_up_to_its_numbers(
    run: str, suite_runs: Mapping[str, Run]
) -> None:
    """Means, cosines, maxima, weighted sums, first turns and counts of what is shown."""
    dialogues = Dialogues(suite_runs[run])
    legacy = run.endswith("legacy")
    seen: set[str] = set()
    for row in range(0, dialogues.names.len(), 2):
        for one in explain_metrics(dialogues, row, [*_MEAN_OF, *_PLAIN, *_LISTED]):
            if one.value is None:
                continue
            parts = [part.values for part in one.evidence if part.values]
            merged: dict[str, Any] = {name: value for part in parts for name, value in part.items()}
            if one.metric in _MEAN_OF and (column := _MEAN_OF[one.metric][legacy]):
                values = [part[column] for part in parts if column in part]
                expected = sum(values) / len(values) if values else 0.0
            elif one.metric in ("cr", "segment_cr"):
                expected = _weighted_cosine([part for part in parts if "idf" in part])
            elif one.metric == "i":
                expected = max(_copied(part) for part in parts if "share" in part)
            elif one.metric == "dst_joint_accuracy":
                expected = float(set(merged["gold_concepts"]) == set(merged["system_concepts"]))
            elif one.metric in ("tas", "segment_tas"):
                cc, cr, copied = merged.values()
                expected = min(1.0, max(-1.0, cc + cr - copied))
            elif one.metric in ("cas", "cas_all", "context_adaptation_score"):
                expected = _conversation_score(one, parts, merged, legacy)
            elif one.metric in ("delay", "delay_cosine"):
                expected = _first(one, parts, dialogues.options)
            elif one.metric == "topic_interference":
                expected = _mean_interference(dialogues.tables([row])[0]["shifts"].height, parts)
            else:
                column = one.metric.removesuffix("_total")
                expected = sum(len(part[column]) for part in parts)
            assert one.value == pytest.approx(expected, abs=1e-6), one
            seen.add(one.metric)
    missing = set() if "structured" in run else {id for id in (*_MEAN_OF, *_LISTED) if id in _DST}
    assert seen | missing | ({"cas_all"} if legacy else set()) == {*_MEAN_OF, *_PLAIN, *_LISTED}


def _copied(phrases: Any) -> float:
    """Count the listed phrases, of which the kernel returns the share alone."""
    found = len(phrases["copied"]) / max(1, phrases["phrases"])
    assert phrases["share"] == pytest.approx(found)
    return float(found)


def _weighted_cosine(concepts: list[Any]) -> float:
    user, system = ([part[side] * part["idf"] for part in concepts] for side in ("user", "system"))
    lengths = math.hypot(*user) * math.hypot(*system)
    return sum(a * b for a, b in zip(user, system, strict=True)) / lengths if lengths else 0.0


def _conversation_score(
    one: Explanation, parts: list[Any], merged: dict[str, Any], legacy: bool
) -> float:
    """Add up CAS by its weights, by which legacy divides without a delay."""
    late = merged.get("avg_recovery_delay")
    speed = None if late is None else 1 - min(1.0, max(0.0, (late - legacy) / 5))
    if one.metric == "cas_all":
        known = [part for part in parts if "recovered" in part]
        speeds = [1 - min(1, part["delay"] / 5) if part["recovered"] else 0 for part in known]
        speed = sum(speeds) / len(speeds)
    found = [
        (0.02, merged["topic_recovery_rate"]),
        (0.04, speed),
        (0.04, 1 - min(1.0, merged["topic_interference"])),
        (0.60, merged["cross_coherence"]),
        (0.30, merged["context_retention"]),
    ]
    there = [(weight, value) for weight, value in found if value is not None]
    return sum(weight * value for weight, value in there) / sum(weight for weight, _ in there)


def _first(one: Explanation, parts: list[Any], options: Any) -> int:
    """Find the first turn that meets the test; of legacy, the number of the answer that does."""
    if "like_new" in parts[0]:
        return 1 + next(place for place, part in enumerate(parts) if part["like_new"] >= 0.65)
    by_both = options.recovery == "cc-or-cr"
    return next(
        place
        for place, part in enumerate(parts)
        if (part["cr"] >= 0.65 and (one.metric == "delay_cosine" or by_both))
        or (one.metric == "delay" and part["cc"] >= options.recovery_cc)
    )


def _mean_interference(n_shifts: int, answers: list[Any]) -> float:
    """Average over shifts the share of answers that are like the topics of before."""
    shares: list[float] = []
    for number in range(1, n_shifts + 1):
        of_shift = [part for part in answers if part["shift"] == number]
        hits = sum(part["like_old"] >= 0.65 for part in of_shift)
        recovered = any(part["like_new"] >= 0.65 for part in of_shift)
        n = len(of_shift) if recovered else min(4, len(of_shift))
        shares.append(hits / max(1, n))
    return sum(shares) / len(shares) if shares else 0.0


_SHOWN_TEXTS = ("prediction", "ground truth")


def _gini(values: list[float]) -> float:
    apart = sum(abs(a - b) for a in values for b in values)
    return apart / (2 * len(values) * sum(values)) if sum(values) else 0.0


@pytest.mark.parametrize("run", ["guest_simulation", "guest_simulation/published"])
def test_evidence_of_guest_simulation_adds_up_to_its_numbers(
    run: str, suite_runs: Mapping[str, Run]
) -> None:
    dialogues = Dialogues(suite_runs[run])
    plain = {"PAS": _adherence, "BVS": _variance, "ORA": _overlap, "DEI": _index, "CRRS": _sum}
    seen: set[str] = set()
    for row in range(dialogues.names.len()):
        for one in explain_metrics(dialogues, row, list(plain)):
            if one.value is not None:
                parts = [part.values for part in one.evidence if part.values]
                assert one.value == pytest.approx(plain[one.metric](parts), abs=1e-9), one
                seen.add(one.metric)
    assert seen == set(plain)


def _adherence(parts: list[Any]) -> float:
    """PAS of the shown states beside what the persona is shown to expect of them."""
    messages = [part for part in parts if "message_score" in part]
    scores = [message["message_score"] for message in messages]
    for wanted in (part for part in parts if "expected_moods" in part):
        expected = {
            "is_ordering_complete": wanted["expected_complete"],
            "next_message_menu_exploration_style": wanted["expected_exploration"],
            "next_message_mood_tones": wanted["expected_moods"],
            "next_message_ordering_style": wanted["expected_ordering"],
        }
        states = [tuple(one[name] for name in _STATE) for one in messages]
        scores = [plain_guests.message_score(state, expected)[0] for state in states]
    return sum(scores) / len(scores) if scores else 0.0


_STATE = ("is_ordering_complete", "menu_exploration_style", "mood_tone", "ordering_style")


def _variance(parts: list[Any]) -> float:
    states = [("", *part.values()) for part in parts if "mood_tone" in part]
    return plain_guests.behavioural_variance(states) if len(states) > 1 else 0.0


def _overlap(parts: list[Any]) -> float:
    """F1, or the Jaccard index, of the names that are shown with the order that each is in."""
    found = {name: value for part in parts for name, value in part.items()}
    names = [(part["in_order"], part["in_target"]) for part in parts if "in_order" in part]
    c, t = (sum(side) for side in zip(*names, strict=True)) if names else (0, 0)
    both = sum(ordered and wanted for ordered, wanted in names)
    assert (c, t, both) == tuple(found[f"n_{each}_names"] for each in ("final", "target", "common"))
    if found["ORA_source"] == "text":
        return both / (c + t - both) if c + t else 0.0
    return 2 * both / (c + t) if c + t else 0.0


def _index(parts: list[Any]) -> float:
    found = {name: value for part in parts for name, value in part.items()}
    n, level = found["n_guest_messages"], found["experiment_level"]
    order, attributes = found["n_order_tracking"], found["n_message_attributes"]
    shares = (0, found["n_basic_tools"] / 5, order / 2, attributes / 2, (order + attributes) / 2)
    return float(min(1.0, shares[level - 1] / n)) if n else 0.0


def _sum(parts: list[Any]) -> float:
    found = {name: value for part in parts for name, value in part.items()}
    weights = {"PAS": 0.25, "BVS": 0.2, "ORA": 0.35, "DEI": 0.2}
    return sum(weight * found[name] for name, weight in weights.items())


def test_evidence_of_memory_finance_adds_up_to_its_numbers(suite_runs: Mapping[str, Run]) -> None:
    """Means of the shown parts, F1 of the shown lists; ratios are in `test_explain`."""
    dialogues = Dialogues(suite_runs["memory_finance"])
    asked = ["profile_score", "risk_level_acc", "horizon_acc", "liquidity_acc"]
    asked += ["constraints_f1", "preferences_f1", "judge_score_mean", "judge_score_1_5"]
    seen: set[str] = set()
    for row in range(dialogues.names.len()):
        for one in explain_metrics(dialogues, row, asked):
            if one.value is None:
                continue
            parts: list[Any] = [part.values for part in one.evidence if part.values]
            if one.metric == "judge_score_mean":
                expected = sum(turn["judge_score_1_5"] for turn in parts) / len(parts)
            elif one.metric == "profile_score":
                expected = sum(value for part in parts for value in part.values()) / 5
            elif one.metric.endswith("_acc"):
                labelled, stated, *mentioned = (part["level"] for part in parts)
                found = next((level for level in (stated, *mentioned) if level != "unknown"), "")
                expected = float(found == labelled)
            elif one.metric.endswith("_f1"):
                labelled, stated, mentioned = (set(part["texts"]) for part in parts)
                predicted = stated | mentioned
                hits, total = len(labelled & predicted), len(labelled) + len(predicted)
                expected = 2 * hits / total if total else 1.0
            else:
                hit, required = parts
                share = len(hit["rubric_hit_items"]) / len(required["rubric_required"])
                expected = round(1 + 4 * share, 2)
            assert one.value == pytest.approx(expected, abs=1e-6), one
            seen.add(one.metric)
    assert seen == {*asked}


COUNTED = {
    "m1": ("key_coverage", "strict_key_hit_rate", "contradiction_rate"),
    "m3": ("risk_coverage", "strict_risk_coverage_rate"),
    "m4": ("compliance_label_acc", "severe_violation_rate", "forbidden_hit_rate"),
    "m5": ("rubric_hit_rate",),
}


def test_ratios_of_memory_finance_show_the_turns_that_count(
    suite_runs: Mapping[str, Run],
) -> None:
    dialogues = Dialogues(suite_runs["memory_finance"])
    for row in range(dialogues.names.len()):
        turns = dialogues.tables([row])[0]["turns"]
        for group, metrics in COUNTED.items():
            for one in explain_metrics(dialogues, row, list(metrics)):
                shown = [part for part in one.evidence if part.values]
                n_counted = turns[f"eligible_{group}"].sum()
                assert len(shown) == (0 if one.value is None else n_counted), one
