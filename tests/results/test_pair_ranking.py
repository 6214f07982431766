"""Systems ranked by verdicts on pairs of a judge and of people."""

import json
from pathlib import Path

import numpy as np
import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.statistics.significance import holm
from tests.conftest import fastscore_command
from tests.statistics.test_bradley_terry import draw

SYSTEMS = ("large", "medium", "small")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files of one judge, and people who saw each pair the other way round."""
    first, second, outcomes, dialogue = draw(np.random.default_rng(8), 40, [1.5, 0, -1.5], 0.3)
    words = {1.0: "A", 0.5: "tie", 0.0: "B"}
    judged: dict[bool, list[str]] = {True: [], False: []}
    people = ["dialogue,model_a,model_b,rater,overall"]
    for i, j, y, at in zip(first, second, outcomes, dialogue, strict=True):
        pair = {"dialogue": f"d{at}", "model_a": SYSTEMS[i], "model_b": SYSTEMS[j]}
        row = {**pair, "verdict": {"overall": words[y], "wit": words[1 - y]}, "judged_by": "judge"}
        judged[i == 0].append(json.dumps(row) + "\n")
        people.append(f"d{at},{SYSTEMS[j]},{SYSTEMS[i]},ann,{words[1 - y]}")
    for number, lines in enumerate(judged.values()):
        (tmp_path / f"{number}.jsonl").write_text("".join(lines))
    (tmp_path / "people.csv").write_text("\n".join(people))
    return [tmp_path / "0.jsonl", tmp_path / "1.jsonl", tmp_path / "people.csv"]


def test_systems_are_ranked_by_dimension_and_rater(files: list[Path]) -> None:
    found = fastscore.rank(*files)
    overall = found.strengths.filter(rater="judge", dimension="overall")
    assert overall["system"].to_list() == list(SYSTEMS)
    assert overall["place"].to_list() == [1, 2, 3]
    assert overall["apart_from_next"].to_list() == [True, True, None]
    assert overall["strength"].sum() == pytest.approx(0)
    assert (overall["low"] < overall["strength"]).all()
    assert overall["n"].to_list() == [80] * 3
    assert (overall["wins"] + overall["ties"] + overall["losses"] == 80).all()
    # the other dimension is the opposite one, the people's is the judge's
    wit = found.strengths.filter(rater="judge", dimension="wit")
    assert wit["system"].to_list() == list(SYSTEMS)[::-1]
    assert wit["strength"].to_list() == pytest.approx((-overall["strength"]).to_list()[::-1])
    ann = found.strengths.filter(rater="ann")
    assert ann["strength"].to_list() == pytest.approx(overall["strength"].to_list())
    # both raters say the same, so intervals over dialogues are those of one
    both = found.strengths.filter(found.strengths["rater"].is_null(), dimension="overall")
    for name in ("strength", "low", "high"):
        assert both[name].to_list() == pytest.approx(overall[name].to_list())
    of_judge = found.differences.filter(rater="judge")
    assert of_judge.height == 6
    assert of_judge["p_holm"].to_list() == pytest.approx(holm(of_judge["p"].to_list()))


def test_what_cannot_be_ranked_is_refused_or_has_a_reason(
    tmp_path: Path, files: list[Path]
) -> None:
    file = tmp_path / "more.csv"
    file.write_text("dialogue,overall\nd0,3\n")
    with pytest.raises(UsageError, match=r"more\.csv has scores of dialogues, not verdicts"):
        fastscore.rank(files[0], file)
    for columns, row in {
        "dialogue,overall": "d0,A",
        "dialogue,model_a,model_b,overall": "d0,x,,A",
    }.items():
        file.write_text(f"{columns}\n{row}\n")
        with pytest.raises(UsageError, match=r"does not name the models .* model_a and model_b"):
            fastscore.rank(file)
    file.write_text("dialogue,model_a,model_b,overall\nd0,x,x,A\n")
    with pytest.raises(UsageError, match=r"more\.csv compares 'x' with itself"):
        fastscore.rank(file)
    rows = ["dialogue,model_a,model_b,overall", "d0,x,y,A", "d0,y,x,B"]
    file.write_text("\n".join(rows))
    with pytest.raises(InputError, match=r"more\.csv:2: .* scored overall of dialogue 'd0' more"):
        fastscore.rank(file)
    # x is preferred to both others always: by shares of wins x 1, z 1/2, y 0
    file.write_text("\n".join([*rows[:2], "d1,x,z,A", "d2,z,y,A"]))
    found = fastscore.rank(file).strengths
    assert found.select("system", "wins", "losses", "strength", "place", "reason").rows() == [
        ("x", 2, 0, None, None, "separated"),
        ("z", 1, 1, None, None, "separated"),
        ("y", 0, 2, None, None, "separated"),
    ]


def test_two_that_always_tie_have_no_interval_of_their_difference(tmp_path: Path) -> None:
    file, tied = tmp_path / "tied.csv", {}
    for against_y in ("AB", "AAAB"):
        rows = ["dialogue,model_a,model_b,overall"]
        for number in range(12):
            verdict = against_y[number % len(against_y)]
            rows += [f"d{number},x,y,tie", f"d{number},x,z,{verdict}", f"d{number},y,z,{verdict}"]
        file.write_text("\n".join(rows))
        found = fastscore.rank(file)
        tied[against_y] = found.differences.filter(a="x", b="y").row(0, named=True)
        assert found.differences.filter(b="z")["p_holm"].null_count() == 0
    for row in tied.values():
        assert row["difference"] == pytest.approx(0, abs=1e-9)
        assert [row[name] for name in ("low", "high", "p", "p_holm")] == [None] * 4


@pytest.mark.parametrize("wrong", [1, 3])
def test_what_is_no_verdict_is_refused_as_such(wrong: int) -> None:
    """Rows that name two models have verdicts, however many of them are unusable."""
    names = {"model_a": "x", "model_b": "y"}
    rows = [{"dialogue": f"d{k}", **names, "overall": "ABAB"[k]} for k in range(4)]
    for row in rows[:wrong]:
        row["overall"] = "x"
    found = fastscore.rank(rows)
    assert found.strengths["n"].to_list() == [4 - wrong] * 2
    (note,) = found.notes
    assert 'the first at line 1: judge.overall: not a verdict ("x")' in note


def test_the_command_shows_the_ranking(files: list[Path]) -> None:
    paths = [str(file) for file in files]
    shown = fastscore_command(["rank", *paths])
    assert shown.returncode == 0, shown.stderr
    assert "strengths by judge" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    written = json.loads(fastscore_command(["rank", *paths, "--json"]).stdout)
    assert written["strengths"] == fastscore.rank(*files).strengths.to_dicts()
