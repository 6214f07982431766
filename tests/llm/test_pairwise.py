"""Dialogues of two sides judged in pairs, in both orders."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from scipy import stats

from fastscore.cli.chat_models import judge_command
from fastscore.errors import UsageError
from fastscore.llm.pairwise import run_judging, summarise_pairs
from fastscore.llm.requests import Judging, ModelOptions
from fastscore.run.progress import SilentReporter
from tests.conftest import write_lines
from tests.llm.stub_server import PATIENCE, by_text, stub_fixture
from tests.llm.stub_server import read_lines as lines
from tests.suites.preference_shift.conversing import exchange

NAMES = ("proactiveness", "coherence", "personalization", "overall")


def answered(**verdicts):
    return json.dumps({"reason": "because", **dict.fromkeys(NAMES, "tie"), **verdicts})


def written(folder, side, texts):
    """Write dialogues of preference_shift by their ids, each with one text of the system."""
    rows = [
        {
            "session_id": dialogue,
            "model_name": side,
            "conversation": exchange("hi", text),
        }
        for dialogue, text in texts.items()
    ]
    return str(write_lines(folder / f"{side}.jsonl", rows))


stub = stub_fixture(answer=lambda body: answered())


def quality(body):
    """Read the qualities that the texts of both conversations name, in the order shown."""
    one, two = body["messages"][1]["content"].split("Conversation 2:")
    return tuple(int(part.split("quality ")[1].split()[0]) for part in (one, two))


def by_quality(body):
    one, two = quality(body)
    verdict = "tie" if one == two else "1" if one > two else "2"
    return answered(**dict.fromkeys(NAMES, verdict))


def run(stub, tmp_path, a, b, models=(), **options):
    asked = Judging(
        inputs=(a,),
        against=(b,),
        model="judge",
        output=tmp_path / "judged",
        models=ModelOptions(
            base_url=stub.url, answers=tmp_path / "answers.sqlite", timeout=PATIENCE, **dict(models)
        ),
        **options,
    )
    return run_judging(asked, SilentReporter())


A_SIDE = {"1": "quality 3 x", "2": "quality 1 x", "3": "quality 2 x", "4": "quality 5 x"}
B_SIDE = {"1": "quality 2 x", "2": "quality 4 x", "3": "quality 2 y", "9": "quality 5 x"}


def test_a_side_wins_if_it_is_preferred_in_both_orders(stub, tmp_path):
    stub.answer = by_quality
    found = run(stub, tmp_path, written(tmp_path, "a", A_SIDE), written(tmp_path, "b", B_SIDE))
    assert found.refusal is None
    assert len(stub.asked) == 6  # three pairs, two orders
    pairs = lines(tmp_path / "judged" / "pairs.jsonl")
    assert [(pair["dialogue"], pair["verdict"]["overall"]) for pair in pairs] == [
        ("1", "A"), ("2", "B"), ("3", "tie"),
    ]  # fmt: skip
    assert [order["first"] for order in pairs[0]["orders"]] == ["A", "B"]
    assert {order["reason"] for order in pairs[0]["orders"]} == {"because"}
    assert {order["answer"]["coherence"] for order in pairs[1]["orders"]} == {"B"}
    overall = found.summary["dimensions"]["overall"]
    assert (overall["wins"], overall["losses"], overall["ties"]) == (1, 1, 1)
    assert (overall["win_rate"], overall["consistency"], overall["p"]) == (0.5, 1.0, 1.0)
    assert (found.summary["only_in_a"], found.summary["only_in_b"]) == (1, 1)
    manifest = json.loads((tmp_path / "judged" / "manifest.json").read_text())
    assert (manifest["status"], manifest["spent"]["requests"]) == ("complete", 6)


def test_p_values_are_corrected_over_dimensions(stub, tmp_path):
    stub.answer = by_quality
    ids = [str(at) for at in range(7)]
    a, b = (dict.fromkeys(ids, f"quality {rank} x") for rank in (2, 1))
    found = run(stub, tmp_path, written(tmp_path, "a", a), written(tmp_path, "b", b)).summary
    # seven wins of seven: 2 / 2^7, four dimensions
    assert {one["p"] for one in found["dimensions"].values()} == {2 / 128}
    assert {one["p_holm"] for one in found["dimensions"].values()} == {4 * 2 / 128}


def test_a_judge_that_goes_by_the_order_decides_nothing(stub, tmp_path):
    stub.answer = lambda body: answered(coherence="1", overall="2")
    found = run(stub, tmp_path, written(tmp_path, "a", A_SIDE), written(tmp_path, "b", B_SIDE))
    first = found.summary["dimensions"]["coherence"]
    assert (first["wins"], first["losses"], first["ties"]) == (0, 0, 3)
    assert (first["consistency"], first["prefers_first"], first["prefers_second"]) == (0, 1, 0)
    assert (first["p"], first["nulls"]["p"]) == (None, "zero_variance")
    second = found.summary["dimensions"]["overall"]
    assert (second["prefers_first"], second["prefers_second"]) == (0, 1)


def test_win_rates_have_intervals_and_an_exact_test():
    def line(one, two):
        verdict = one if one == two else "tie"
        orders = [{"answer": {"wit": one}}, {"answer": {"wit": two}}]
        return {"verdict": {"wit": verdict}, "orders": orders}

    given = [("A", "A")] * 12 + [("B", "B")] * 3 + [("A", "B")] * 4 + [("B", "A")] + [("tie", "A")]
    found = summarise_pairs("wit", [line(*one) for one in given])
    assert (found["n"], found["wins"], found["losses"], found["ties"]) == (21, 12, 3, 6)
    assert found["win_rate"] == pytest.approx((12 + 6 / 2) / 21)
    assert found["p"] == pytest.approx(stats.binomtest(12, 15).pvalue)
    assert found["consistency"] == pytest.approx(15 / 21)
    assert found["prefers_first"] == pytest.approx(4 / 21)
    assert found["prefers_second"] == pytest.approx(1 / 21)
    assert 0.5 < found["low"] < found["win_rate"] < found["high"] <= 1.0
    # Wilson's interval with as many units as give the variance of the outcomes
    outcomes = [1.0] * 12 + [0.0] * 3 + [0.5] * 6
    p, n = sum(outcomes) / 21, 21
    effective = p * (1 - p) / (sum((one - p) ** 2 for one in outcomes) / (n - 1) / n)
    z = stats.t.ppf(0.975, n - 1)
    centre = (p + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = z * (p * (1 - p) / effective + z**2 / (4 * effective**2)) ** 0.5 / (1 + z**2 / effective)
    assert (found["low"], found["high"]) == pytest.approx((centre - half, centre + half))
    nothing = summarise_pairs("wit", [])
    assert (nothing["win_rate"], nothing["nulls"]["win_rate"]) == (None, "too_few_units")


def test_a_pair_fails_alone_and_is_asked_again(stub, tmp_path):
    a, b = written(tmp_path, "a", A_SIDE), written(tmp_path, "b", B_SIDE)
    stub.answer = lambda body: "no idea" if quality(body) == (4, 1) else by_quality(body)
    found = run(stub, tmp_path, a, b, models={"max_failures": 1})
    assert found.refusal is None
    assert found.summary["failures"] == {"unusable": 1}
    (failed,) = lines(tmp_path / "judged" / "failures.jsonl")
    assert (failed["dialogue"], failed["first"], failed["attempts"]) == ("2", "B", 3)
    assert [pair["dialogue"] for pair in lines(tmp_path / "judged" / "pairs.jsonl")] == ["1", "3"]
    stub.answer = by_quality
    again = run(stub, tmp_path, a, b)
    assert (again.spent.requests, again.summary["pairs_judged"]) == (1, 3)
    assert max(stub.answered.values()) == 1


def test_an_answer_that_is_none_is_a_failure(stub, tmp_path):
    reasons = {
        answered(coherence="3"): 'coherence is \'3\', not "1", "2" or "tie"',
        answered(coherence=True): 'coherence is True, not "1", "2" or "tie"',
        answered(wit="1"): "with 'wit', which nobody asked for",
        json.dumps(dict.fromkeys(NAMES, "1")): "without 'reason'",
        json.dumps({"reason": 3, **dict.fromkeys(NAMES, "1")}): "reason is 3, no text",
    }
    stub.answer = by_text([*reasons])
    a, b = written(tmp_path, "a", A_SIDE), written(tmp_path, "b", B_SIDE)
    found = run(stub, tmp_path, a, b)
    assert found.refusal.exit_code == 4
    found = run(stub, tmp_path, a, b, models={"max_failures": 1})
    assert found.refusal is None
    failed = lines(tmp_path / "judged" / "failures.jsonl")
    assert {(row["answer"], row["reason"]) for row in failed} == {*reasons.items()}


def test_sides_that_cannot_be_paired_are_refused(stub, tmp_path):
    a = written(tmp_path, "a", A_SIDE)
    with pytest.raises(UsageError, match="The sides share no dialogue: A begins with '1', B with"):
        run(stub, tmp_path, a, written(tmp_path, "c", {"x": "quality 1 x"}))
    twice = Path(written(tmp_path, "d", B_SIDE))
    twice.write_text(twice.read_text() * 2)
    with pytest.raises(UsageError, match="Side B has several dialogues with id '1'"):
        run(stub, tmp_path, a, str(twice))
    with pytest.raises(UsageError, match="repeats 3 does not apply to against"):
        run(stub, tmp_path, a, a, repeats=3)
    Path(tmp_path / "again.jsonl").symlink_to(a)
    for same in (a, str(tmp_path / "again.jsonl")):
        with pytest.raises(UsageError, match=r"a\.jsonl is on both sides, so each dialogue"):
            run(stub, tmp_path, a, same)
    assert stub.asked == []


def test_the_command_shows_wins_and_consistency(stub, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
    monkeypatch.setenv("FASTSCORE_JUDGE_MODEL", "judge")
    stub.answer = by_quality
    arguments = [
        written(tmp_path, "a", A_SIDE), "--against", written(tmp_path, "b", B_SIDE),
        "-o", str(tmp_path / "out"), "--answers", str(tmp_path / "answers.sqlite"),
    ]  # fmt: skip
    shown = CliRunner().invoke(judge_command, arguments)
    assert shown.exit_code == 0, shown.output
    assert "3 of 3 pairs judged by judge, the win rate is A's; 1 dialogue only in A" in shown.output
    assert "win rate   95 % interval" in shown.output
    assert "1, 1, 1" in shown.output
