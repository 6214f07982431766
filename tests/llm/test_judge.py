import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.examples import example_names, write_example
from fastscore.llm import client as client_module
from fastscore.llm.client import ModelServerError
from fastscore.llm.judge import rotated
from fastscore.llm.judging import Judging, run_judge
from fastscore.llm.options import ModelOptions
from fastscore.llm.rubrics import load_rubric
from fastscore.llm.transcripts import read_transcripts
from fastscore.results.analyse import analyse
from fastscore.run.progress import SilentReporter
from fastscore.simulation.simulate import simulate
from fastscore.simulation.world import Simulation
from fastscore.statistics.agreement import krippendorff_alpha
from tests.llm.stub_server import HASTE, PATIENCE, Stub, serving
from tests.simulation.worlds import SAMPLE

NAMES = ("proactiveness", "coherence", "personalization")


def scores(*values):
    return json.dumps(dict(zip(NAMES, values, strict=True)))


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(client_module, "_FIRST_PAUSE", 0.01)
    with serving(Stub(answer=lambda body: scores(4, 3, 5))) as served:
        yield served


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    asked = Simulation(
        catalogue=str(SAMPLE), agent="offline", sessions=6, turns=4, seed=2, output=folder / "logs"
    )
    simulate(asked, SilentReporter())
    return str(folder / "logs")


def run(stub, tmp_path, inputs, folder="judged", models=(), **options):
    asked = {"base_url": stub.url, "answers": tmp_path / "answers.sqlite", "timeout": PATIENCE}
    judging = Judging(
        inputs=(inputs,),
        model="judge",
        output=tmp_path / folder,
        models=ModelOptions(**{**asked, "retries": 40, **dict(models)}),
        **options,
    )
    return run_judge(judging, SilentReporter())[0]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_scores_stand_beside_their_dialogues(stub, tmp_path, logs):
    summary = run(stub, tmp_path, logs)
    found = lines(tmp_path / "judged" / "judgements.jsonl")
    assert [row["dialogue"] for row in found] == [f"{number:05}" for number in range(6)]
    assert all(row["judge"] == dict(zip(NAMES, (4, 3, 5), strict=True)) for row in found)
    assert {row["model"] for row in found} == {"offline"}
    assert summary["dimensions"]["coherence"]["mean"] == 3
    assert summary["dimensions"]["coherence"]["alpha"] is None
    body = stub.asked[0]
    text = body["messages"][1]["content"]
    log = lines(Path(logs) / "sessions-00000.jsonl")[0]
    for body in stub.asked:
        assert body["response_format"]["json_schema"]["schema"]["required"] == list(NAMES)
    assert any(
        all(
            f"{turn['speaker']}: {turn['text']}" in body["messages"][1]["content"]
            for turn in log["conversation"]
        )
        for body in stub.asked
    )
    assert "proactiveness" in text


BAD = ("11", "not JSON", "half", "missing", "more", "text", "list", "")


def bad_answer(kind):
    return {
        "11": scores(4, 11, 5),
        "not JSON": "I would give it a 4.",
        "half": '{"proactiveness": 4, "coher',
        "missing": '{"proactiveness": 4}',
        "more": json.dumps({**json.loads(scores(1, 2, 3)), "overall": 4}),
        "text": scores("4", 3, 5),
        "list": "[4, 3, 5]",
        "": "",
    }[kind]


@pytest.mark.parametrize("kind", BAD)
def test_an_answer_that_is_none_is_asked_for_again(stub, tmp_path, logs, kind):
    def answer(body):
        return scores(2, 2, 2) if len(body["messages"]) > 2 else bad_answer(kind)

    stub.answer = answer
    summary = run(stub, tmp_path, logs)
    assert len(stub.asked) == 12
    assert summary["repeats_rejected"] == 0
    repeats = pl.read_parquet(tmp_path / "judged" / "repeats.parquet")
    assert repeats["score"].to_list() == [2] * 18
    assert repeats["attempts"].to_list() == [2] * 18
    said = next(body["messages"][-1]["content"] for body in stub.asked if len(body["messages"]) > 2)
    assert "That was not usable" in said


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (scores(4, 11, 5), "coherence is 11, out of range"),
        (scores(0, 3, 5), "proactiveness is 0, out of range"),
        (scores(4, 3.5, 5), "coherence is 3.5, no whole number"),
        ("four", "not a JSON object"),
    ],
)
def test_what_stays_unusable_is_rejected_with_its_answer(stub, tmp_path, logs, answer, reason):
    stub.answer = lambda body: answer
    with pytest.raises(ModelServerError, match="Not one answer of judge could be used"):
        run(stub, tmp_path, logs)
    rejected = lines(tmp_path / "judged" / "rejects.jsonl")
    assert [row["dialogue"] for row in rejected] == [f"{number:05}" for number in range(6)]
    assert {(row["reason"], row["answer"], row["attempts"]) for row in rejected} == {
        (reason, answer, 3)
    }
    assert (tmp_path / "judged" / "judgements.jsonl").read_text() == ""


FAULTS = (
    None,
    "busy",
    "broken",
    "refusal",
    "late",
    "cut_off",
    None,
    "truncated",
    "hung_up",
    "empty",
)


def test_nothing_is_lost_and_nothing_asked_twice(stub, tmp_path, logs):
    faults = itertools.cycle(FAULTS)
    stub.fault = lambda number: next(faults)
    answers = itertools.cycle((scores(4, 3, 5), scores(4, 11, 5)))
    stub.answer = lambda body: next(answers)
    summary = run(stub, tmp_path, logs, repeats=3, models={"timeout": HASTE})
    assert max(stub.answered.values()) == 1
    repeats = pl.read_parquet(tmp_path / "judged" / "repeats.parquet")
    rejected = lines(tmp_path / "judged" / "rejects.jsonl")
    assert repeats.height // 3 + len(rejected) == 18  # six dialogues, three repeats
    assert repeats["score"].max() == 5
    assert summary["repeats_rejected"] == len(rejected)
    before = {path.name: path.read_bytes() for path in (tmp_path / "judged").glob("*.*")}
    asked = len(stub.asked)
    run(stub, tmp_path, logs, "again", repeats=3, models={"replay": True})
    assert len(stub.asked) == asked
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "again").glob("*.*")}


def test_a_fence_is_no_fault(stub, tmp_path, logs):
    stub.answer = lambda body: f"```json\n{scores(1, 2, 3)}\n```"
    assert run(stub, tmp_path, logs)["dimensions"]["coherence"]["mean"] == 2


def test_dimensions_are_asked_in_rotated_order(stub, tmp_path, logs):
    def answer(body):
        # a judge that gives whatever it is asked first one point more
        text = body["messages"][1]["content"]
        places = sorted(NAMES, key=text.index)
        return json.dumps({name: 4 if name == places[0] else 3 for name in NAMES})

    stub.answer = answer
    summary = run(stub, tmp_path, logs, repeats=3)
    for name in NAMES:
        found = summary["dimensions"][name]
        assert found["by_position"] == pytest.approx({"1": 2 / 3, "2": -1 / 3, "3": -1 / 3})
        assert found["all_repeats_agree"] == 0
    assert rotated(NAMES, 4) == ("coherence", "personalization", "proactiveness")
    assert len({body["seed"] for body in stub.asked}) == 3


def test_agreement_is_krippendorffs():
    # Krippendorff (2011), the reliability data of four observers and twelve units: 0.849
    nan = np.nan
    data = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
    assert krippendorff_alpha(np.array(data).T) == pytest.approx(0.849, abs=5e-4)
    assert krippendorff_alpha([[1, 1], [2, 2]]) == 1
    assert krippendorff_alpha([[3, 3], [3, 3]]) is None
    assert krippendorff_alpha([[3, nan], [2, nan]]) is None


def test_judgements_feed_the_analysis(stub, tmp_path, logs):
    stub.answer = lambda body: scores(
        *(1 + (len(body["messages"][1]["content"]) + k) % 5 for k in (0, 1, 2))
    )
    run(stub, tmp_path, logs)
    fastscore.score(
        [logs], "preference_shift", output=tmp_path / "run", catalogue=str(SAMPLE),
        segments="metadata", embedder=None,
    )  # fmt: skip
    made = analyse(tmp_path / "run", judge=tmp_path / "judged" / "judgements.jsonl")
    convergent = made.tables["convergent_validity"]
    assert set(NAMES) <= set(convergent["judge"])
    assert convergent.filter(pl.col("group") == "all")["n"].max() == 6


def test_two_models_are_compared_on_equal_users(stub, tmp_path, logs):
    asked = Simulation(
        catalogue=str(SAMPLE),
        agent="openai:talker",
        sessions=6,
        turns=4,
        seed=2,
        output=tmp_path / "both" / "talker",
        models=ModelOptions(base_url=stub.url, answers=tmp_path / "answers.sqlite"),
    )
    stub.answer = lambda body: "Fine."
    simulate(asked, SilentReporter())
    (tmp_path / "both" / "offline").symlink_to(logs)
    stub.answer = lambda body: scores(*((2, 2, 2) if "Fine." in str(body) else (4, 3, 5)))
    summary = run(stub, tmp_path, str(tmp_path / "both"))
    assert summary["models"]["talker"]["coherence"]["mean"] == 2
    (first, *_) = summary["differences"]
    assert first["dimension"] == "proactiveness"
    assert (first["model"], first["against"], first["n"], first["difference"]) == (
        "talker",
        "offline",
        6,
        -2.0,
    )


def transcripts_of(folder, name, *rows):
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_transcripts([str(path)], name).dialogues


def test_logs_of_one_row_a_dialogue_have_transcripts(tmp_path):
    (shifting,) = transcripts_of(
        tmp_path,
        "preference_shift",
        {
            "session_id": "7",
            "model_name": "m",
            "conversation": [
                {"speaker": "USER", "text": "hi"},
                {"speaker": "SYSTEM", "text": ""},
                {"speaker": "SYSTEM", "text": "hello"},
            ],
        },
    )
    assert (shifting.dialogue, shifting.model) == ("7", "m")
    assert shifting.said == (("USER", "hi"), ("SYSTEM", "hello"))
    (traced,) = transcripts_of(
        tmp_path,
        "memory_finance",
        {"dialog_id": "d", "turns": [{"user_text": "a?", "pred_assistant_text": "b."}]},
    )
    assert traced.said == (("USER", "a?"), ("ASSISTANT", "b."))


def test_logs_of_one_row_a_message_have_transcripts(tmp_path):
    travellers = transcripts_of(
        tmp_path,
        "group_travel",
        {"dialogue_id": "g", "speaker": "Ann", "intent": "x", "utterance": "one"},
        {"dialogue_id": "h", "speaker": "Bob", "intent": "x", "utterance": "two"},
        {"dialogue_id": "g", "speaker": "System", "intent": "x", "utterance": "three"},
    )
    assert [each.dialogue for each in travellers] == ["g", "h"]
    assert travellers[0].said == (("ann", "one"), ("SYSTEM", "three"))
    (guest,) = transcripts_of(
        tmp_path,
        "guest_simulation",
        {"conversation_id": "c", "role": "guest", "name": "guest", "content": "pizza"},
        {"conversation_id": "c", "role": "system", "name": "test_case_info", "content": "{}"},
        {"conversation_id": "c", "role": "waiter", "content": "sure"},
    )
    assert guest.said == (("guest", "pizza"), ("waiter", "sure"))
    (miner,) = transcripts_of(
        tmp_path,
        "score_dialogue",
        {
            "event": "predicted",
            "utterance_index": 0,
            "step": 0,
            "prediction": "h",
            "dialogue_uid": "u",
        },
        {
            "event": "utterance_complete",
            "utterance_index": 0,
            "ground_truth": "hey",
            "dialogue_uid": "u",
        },
    )
    assert miner.said == (("PREDICTION 0 OF 0", "h"), ("UTTERANCE 0", "hey"))


@pytest.mark.parametrize("suite", example_names())
def test_dialogues_have_the_ids_and_places_of_the_suites_tables(suite, tmp_path):
    write_example(suite, tmp_path)
    options = {
        "score_dialogue": {"lex_weight": 1.0},
        "guest_simulation": {"personas": str(tmp_path / "personas.json")},
        "preference_shift": {"catalogue": str(tmp_path / "catalogue.jsonl")},
    }.get(suite, {})
    if suite == "preference_shift":
        options["segments"] = "metadata"
    scores = fastscore.score(str(tmp_path / "logs"), suite, embedder=None, **options)
    dialogues = scores.tables["dialogues"]
    columns = [name for name in ("dialogue", "model", "file", "line") if name in dialogues.columns]
    found = read_transcripts([str(tmp_path / "logs")], suite).dialogues
    assert sorted(dialogues.select(columns).rows()) == sorted(
        tuple(getattr(each, name) for name in columns) for each in found
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("low = 1", "low = 5", "scale.high is 5, expected a whole number from 6"),
        ("[scale]", "[scale", "not TOML"),
        ('name = "coherence"', 'name = "proactiveness"', "another name than those before"),
        ("{members}.", "{membres}.", "no slots but"),
        ("(?i)i want", "(?i)(i want", "a regular expression"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused(tmp_path, old, new, message):
    from importlib.resources import files

    text = files("fastscore.llm.rubrics").joinpath("pepper.toml").read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        load_rubric(str(file))
    assert message in str(refused.value)


def test_a_rubric_of_ones_own(tmp_path, stub, logs):
    from importlib.resources import files

    text = files("fastscore.llm.rubrics").joinpath("pepper.toml").read_text(encoding="utf-8")
    head = text[: text.index("[[dimension]]")].replace("high = 5", "high = 100")
    file = tmp_path / "mine.toml"
    file.write_text(f'{head}[[dimension]]\nname = "wit"\nquestion = "Is it funny?"\n')
    stub.answer = lambda body: '{"wit": 77}'
    summary = run(stub, tmp_path, logs, rubric=str(file))
    assert summary["dimensions"]["wit"]["mean"] == 77
    assert summary["scale"] == [1, 100]


def test_what_cannot_be_judged_is_said(tmp_path):
    with pytest.raises(UsageError, match="Did you mean 'pepper'"):
        load_rubric("peper")
    with pytest.raises(UsageError, match="Did you mean 'group_travel'"):
        read_transcripts(["x.jsonl"], "group_travl")
    (tmp_path / "empty.jsonl").write_text('{"conversation": []}\n')
    with pytest.raises(InputError, match="says anything"):
        read_transcripts([str(tmp_path / "empty.jsonl")], "preference_shift")
