import json
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from click.testing import CliRunner

from fastscore.cli.chat_models import experiment_command
from fastscore.errors import RunConflictError, UsageError
from fastscore.llm.client import ModelServerError
from fastscore.llm.spending import BudgetError, TooManyFailuresError
from fastscore.run.progress import SilentReporter
from fastscore.simulation import experiment as experiment_module
from fastscore.simulation.experiment import expect, read_experiment, run_experiment
from tests.conftest import NIGHTLY
from tests.llm.stub_server import stub_fixture
from tests.simulation.worlds import PLOTTED, SAMPLE, plotted

FILE = """
catalogue = "{catalogue}"
agents = ["offline", "openai:tiny"]
sessions = 4
turns = 5
seed = 3
{top}
[models]
base_url = "{url}"
timeout = 30.0
prices = [2.0, 10.0]
{models}
[judge]
model = "judge"
repeats = 3
"""

stub = stub_fixture(answer=lambda body: answer(body))


@pytest.fixture
def no_pages(monkeypatch):
    leave_out_pages(monkeypatch)


def leave_out_pages(monkeypatch, *names):
    """Leave out report and analysis, whose drawing takes seconds and is not tested here."""
    for name in names or ("write_report", "_analyse"):
        monkeypatch.setattr(experiment_module, name, lambda _, folder: folder)


def answer(body):
    if body["model"] == "tiny":
        return "You want something nice. How about that?"
    size = len(body["messages"][-1]["content"])
    names = ("proactiveness", "coherence", "personalization")
    return json.dumps({name: 1 + (size + k) % 5 for k, name in enumerate(names)})


def written(tmp_path, stub, *, top="", models=""):
    path = tmp_path / "experiment.toml"
    path.write_text(FILE.format(catalogue=SAMPLE, url=stub.url, top=top, models=models))
    return path


def run(path, folder, **options):
    return run_experiment(read_experiment(path), folder, SilentReporter(), **options)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (path.suffix == ".jsonl" or path.parent.name == "comparison")
    }


KEY = "sk-not-to-be-told-0123456789"


def assert_key_is_in_no_file(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.usefixtures(*(() if NIGHTLY else ("undrawn",)))
def test_agents_are_simulated_judged_scored_and_compared(stub, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    stub.answer = lambda body: (
        answer(body) if body["model"] == "judge" else f"{answer(body)} Your key is {KEY}."
    )
    path, folder = written(tmp_path, stub), tmp_path / "run"
    summary = run(path, folder)
    # 4 sessions of 5 turns of one model, and 8 dialogues judged three times
    assert summary["spent"]["requests"] == 20 + 24 == len(stub.asked)
    assert summary["spent"]["cost"] == pytest.approx((2.0 * 10 + 10.0 * 5) * 44 / 1e6)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["status"], manifest["spent"]["requests"]) == ("complete", 44)
    assert manifest["spent"]["cost"] == pytest.approx(summary["spent"]["cost"])
    parts = [
        json.loads((folder / part / "manifest.json").read_text())["spent"]["requests"]
        for part in ("logs/openai%3Atiny/.simulation", "judgements")
    ]
    assert parts == [20, 24]
    assert (folder / "analysis" / "analysis.html").is_file()
    assert summary["report"] == str(folder / "report.html")
    assert "tiny" in (folder / "report.html").read_text()
    dialogues = pl.read_parquet(folder / "scores" / "dialogues" / "*.parquet")
    assert sorted(dialogues["model"].unique()) == ["offline", "tiny"]
    shifts = dialogues.group_by("session_id").agg(pl.col("shift_points").n_unique())
    assert shifts["shift_points"].to_list() == [1] * 4  # equal users
    differences = pl.read_parquet(folder / "comparison" / "differences.parquet")
    assert {"context_adaptation_score", "judge.coherence"} <= set(differences["metric"])
    paired = differences.filter(design="paired", metric="judge.coherence")
    assert paired["n_a"].to_list() == [4]
    judged = (folder / "judgements" / "judgements.jsonl").read_text().splitlines()
    assert len(judged) == 8
    assert "Your key is ***." in (folder / "logs/openai%3Atiny/sessions-00000.jsonl").read_text()
    assert_key_is_in_no_file(folder)

    leave_out_pages(monkeypatch)
    before = contents(folder)
    again = run(path, folder)
    assert again["spent"]["requests"] == 0
    assert contents(folder) == before
    assert len(stub.asked) == 44

    monkeypatch.setattr(socket, "socket", None)
    other = tmp_path / "replayed"
    other.mkdir()
    (other / "experiment.json").write_bytes((folder / "experiment.json").read_bytes())
    (other / "answers.sqlite").write_bytes((folder / "answers.sqlite").read_bytes())
    for suffix in ("-wal", "-shm"):
        kept = folder / f"answers.sqlite{suffix}"
        if kept.exists():
            (other / kept.name).write_bytes(kept.read_bytes())
    run(path, other, replay=True)
    assert contents(other) == before


def test_an_experiment_is_written_before_a_judge_that_fails_ends_it(stub, tmp_path, monkeypatch):
    leave_out_pages(monkeypatch, "write_report")
    made = []
    monkeypatch.setattr(
        experiment_module,
        "analyse",
        lambda run, folder, **how: made.append(how) or SimpleNamespace(page=folder),
    )
    stub.answer = lambda body: "Fine." if body["model"] == "tiny" else "I would rather not say."
    file = written(tmp_path, stub)
    file.write_text(f"{file.read_text()}pairs = true\n")
    with pytest.raises(TooManyFailuresError, match="of 8 dialogues failed"):
        run(file, tmp_path / "run")
    assert made == [{}]  # it has no scores of a judge
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "incomplete"
    assert manifest["spent"]["failures"] > 0
    stub.answer = answer
    leave_out_pages(monkeypatch)
    with pytest.raises(TooManyFailuresError, match="of 4 pairs failed"):
        run(file, tmp_path / "run")  # this judge answers nothing about pairs
    stub.answer = paper_answer
    run(file, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "complete"


def test_a_key_that_a_server_repeats_is_told_nowhere(stub, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    leave_out_pages(monkeypatch)
    path, folder = written(tmp_path, stub), tmp_path / "run"
    stub.fault = lambda number: "unauthorised" if number == 7 else None
    shown = [
        CliRunner().invoke(experiment_command, [str(path), "-o", str(folder)]) for _ in range(2)
    ]
    assert isinstance(shown[0].exception, ModelServerError)
    assert shown[1].exit_code == 0, shown[1].output
    assert all(headers["authorization"] == f"Bearer {KEY}" for headers in stub.headers)
    told = [each.output + str(each.exception) for each in shown] + list(capfd.readouterr())
    assert KEY not in "".join(told)
    assert_key_is_in_no_file(tmp_path)


@pytest.mark.usefixtures("no_pages")
def test_a_budget_is_the_whole_experiments(stub, tmp_path):
    folder = tmp_path / "run"
    path = written(tmp_path, stub, models="max_requests = 25")
    with pytest.raises(BudgetError):
        run(path, folder)
    assert len(stub.asked) == 25
    summary = run(path, folder)
    assert len(stub.asked) == 44
    assert summary["spent"]["requests"] == 19
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [each["requests"] for each in manifest["commands"]] == [25, 19]
    assert max(stub.answered.values()) == 1


def test_what_is_expected_is_what_is_asked(stub, tmp_path):
    path = written(tmp_path, stub)
    expected = expect(read_experiment(path))
    assert expected.requests == 44
    assert expected.prompt_tokens > 44 * 50
    cost = (2.0 * expected.prompt_tokens + 10.0 * expected.completion_tokens) / 1e6
    assert expected.cost == pytest.approx(cost)
    assert stub.asked == []
    shown = CliRunner().invoke(experiment_command, [str(path), "--dry-run"])
    assert shown.exit_code == 0
    assert "requests   44," in shown.output
    assert not (tmp_path / "run").exists()


def test_an_estimate_needs_no_server(tmp_path, monkeypatch):
    for name in ("FASTSCORE_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "experiment.toml"
    agents = 'agents = ["offline", "openai:tiny"]'
    path.write_text(f'catalogue = "{SAMPLE}"\n{agents}\nsessions = 2\nturns = 3\n')
    assert expect(read_experiment(path)).requests == 2 * 3
    path.write_text(path.read_text().replace(', "openai:tiny"', ""))
    assert expect(read_experiment(path)).requests == 0


PAPER = """
catalogue = "{catalogue}"
agents = ["offline", "openai:tiny", "openai:mini"]
sessions = 3
turns = 2
seeds = [3, 4]
[models]
base_url = "{url}"
timeout = 60.0
[[judge]]
model = "judge"
pairs = true
[[judge]]
model = "strict"
pairs = true
{people}
"""


def paper_answer(body):
    if body["model"] in ("tiny", "mini"):
        return f"I am {body['model']}. How about that?"
    text, names = body["messages"][1]["content"], ("proactiveness", "coherence", "personalization")
    if "Conversation 2:" in text:  # mini is best, then tiny
        ranks = [2 * ("I am mini" in part) + ("I am tiny" in part) for part in
                 text.split("Conversation 2:")]  # fmt: skip
        verdict = "tie" if ranks[0] == ranks[1] else "1" if ranks[0] > ranks[1] else "2"
        return json.dumps({"reason": "so", **dict.fromkeys((*names, "overall"), verdict)})
    size = len(text) // (1 if body["model"] == "judge" else 7)
    return json.dumps({name: 1 + (size + k) % 5 for k, name in enumerate(names)})


@pytest.mark.usefixtures("no_pages")
def test_a_papers_experiment_is_one_file(stub, tmp_path):
    stub.answer = paper_answer
    path, folder = tmp_path / "paper.toml", tmp_path / "run"
    path.write_text(PAPER.format(catalogue=SAMPLE, url=stub.url, people=""))
    # two models of two turns, two judges of three agents, and of three pairs in two orders
    n = 2 * 3
    requests = 2 * n * 2 + 2 * 3 * n + 2 * 3 * n * 2
    assert expect(read_experiment(path)).requests == requests
    assert run(path, folder)["spent"]["requests"] == requests == len(stub.asked)

    dialogues = pl.read_parquet(folder / "scores" / "dialogues" / "*.parquet")
    ids = [f"{seed}-{session:05}" for seed in (3, 4) for session in range(3)]
    assert sorted(dialogues["session_id"].unique()) == ids
    names = [f"{id}/model={model}" for id in ids for model in ("mini", "offline", "tiny")]
    assert sorted(dialogues["dialogue"]) == names
    seeds = pl.read_parquet(folder / "comparison" / "seeds.parquet")
    assert seeds.select("model", "seed", "len").rows() == [
        (model, seed, 3) for model in ("mini", "offline", "tiny") for seed in (3, 4)
    ]
    for row in seeds.iter_rows(named=True):
        of_seed = [
            one["context_adaptation_score"] for one in dialogues.iter_rows(named=True)
            if one["model"] == row["model"] and one["session_id"].startswith(f"{row['seed']}-")
        ]  # fmt: skip
        assert row["context_adaptation_score"] == pytest.approx(sum(of_seed) / len(of_seed))
    for judge in ("judge-pepper", "strict-pepper"):
        differences = pl.read_parquet(folder / "comparison" / judge / "differences.parquet")
        paired = differences.filter(design="paired", metric="judge.coherence")
        assert paired["n_a"].to_list() == [6] * 3  # a user of a seed is a unit

    strengths = pl.read_parquet(folder / "ranking" / "strengths.parquet")
    overall = strengths.filter(dimension="overall").filter(pl.col("rater").str.starts_with("judge"))
    assert overall.select("system", "wins", "ties", "losses").rows() == [
        ("mini", 12, 0, 0), ("tiny", 6, 0, 6), ("offline", 0, 0, 12)
    ]  # fmt: skip
    between = pl.read_parquet(folder / "agreement" / "scores.parquet").filter(
        coefficient="weighted_kappa"
    )
    assert between.filter(dimension="coherence")["n"].to_list() == [18]
    verdicts = pl.read_parquet(folder / "agreement" / "pairs.parquet").filter(
        coefficient="weighted_kappa"
    )
    assert verdicts.filter(dimension="overall")["n"].to_list() == [18]

    # people who think as one judge does, in scores and in pairs
    rows = [
        json.loads(line)
        for line in (folder / "judgements/judge-pepper/judgements.jsonl").read_text().splitlines()
    ]
    people = [
        {"dialogue": row["dialogue"], "model": row["model"], "rater": "ann", **row["judge"]}
        for row in rows
    ]
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    pairs = [
        {"dialogue": one, "model_a": "offline", "model_b": "mini", "rater": "ann", "overall": "B"}
        for one in ids
    ]
    pl.DataFrame(pairs).write_csv(tmp_path / "pairs.csv")
    named = '[people]\nscores = "people.csv"\npairs = "pairs.csv"'
    path.write_text(PAPER.format(catalogue=SAMPLE, url=stub.url, people=named))
    assert run(path, folder)["spent"]["requests"] == 0
    agreed = pl.read_parquet(folder / "agreement" / "scores.parquet")
    agreed = agreed.filter(coefficient="weighted_kappa")
    ann = agreed.filter(dimension="coherence", second="ann").sort("first")
    assert ann["n"].to_list() == [18, 18]
    assert ann["value"][0] == pytest.approx(1.0)
    strict = [
        json.loads(line)["judge"]["coherence"]
        for line in (folder / "judgements/strict-pepper/judgements.jsonl").read_text().splitlines()
    ]
    mine = [row["judge"]["coherence"] for row in rows]
    apart = sum((a - b) ** 2 for a, b in zip(strict, mine, strict=True)) / 18
    by_chance = sum((a - b) ** 2 for a in strict for b in mine) / 18**2
    assert ann["value"][1] == pytest.approx(1 - apart / by_chance)
    ranked = pl.read_parquet(folder / "ranking" / "strengths.parquet")
    assert ranked.filter(dimension="overall", rater="ann", system="mini")["wins"].to_list() == [6]
    other = tmp_path / "longer"
    other.mkdir()
    shutil.copy(folder / "answers.sqlite", other)
    path.write_text(path.read_text().replace("sessions = 3", "sessions = 4"))
    assert run(path, other)["spent"]["requests"] == requests / 3


def test_a_rubric_is_named_from_the_experiments_folder(tmp_path):
    rubric = 'title = "t"\n[[dimension]]\nname = "wit"\nquestion = "Is it funny?"\n'
    (tmp_path / "mine.toml").write_text(rubric)
    path = tmp_path / "experiment.toml"
    path.write_text(
        f'catalogue = "{SAMPLE}"\nagents = ["offline"]\nsessions = 1\nturns = 1\n'
        '[judge]\nmodel = "judge"\nrubric = "mine.toml"\n'
    )
    (judge,) = read_experiment(path).judge
    assert judge.rubric == str(tmp_path / "mine.toml")


@pytest.mark.usefixtures("no_pages")
def test_an_experiment_continues_from_another_folder(tmp_path, monkeypatch):
    catalogue = Path(plotted(tmp_path))
    text = f'catalogue = "{catalogue.name}"\nagents = ["offline"]\nsessions = 2\nturns = 2\n'
    (tmp_path / "experiment.toml").write_text(text)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    run(Path("experiment.toml"), Path("run"))
    before = contents(tmp_path / "run")
    monkeypatch.chdir("elsewhere")
    run(Path("../experiment.toml"), Path("../run"))
    assert contents(tmp_path / "run") == before
    catalogue.write_text(json.dumps(PLOTTED[1:]))
    with pytest.raises(RunConflictError, match="another catalogue"):
        run(Path("../experiment.toml"), Path("../run"))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (FILE, "sessions = 4", "sesions = 4", "unknown key sesions. Did you mean 'sessions'?"),
        (FILE, "sessions = 4", 'sessions = "4"', "sessions is '4', expected an integer"),
        (FILE, "sessions = 4", "sessions = 0", "sessions is 0, expected an integer of at least 1"),
        (FILE, "repeats = 3", "repeats = 2", "repeats 2 is not balanced"),
        (FILE, "timeout = 30.0", 'timeout = 30.0\nmax_failures = "half"', "max_failures is 'half'"),
        (FILE, "repeats = 3", "repeets = 3", "unknown key judge.repeets. Did you mean 'repeats'?"),
        (FILE, 'model = "judge"', "", "judge.model is missing"),
        (FILE, '["offline", "openai:tiny"]', '["offline", "offline"]', "agents names one twice"),
        (FILE, '["offline", "openai:tiny"]', '"offline"', "agents is of type str, expected a list"),
        (FILE, "turns = 5", "", "turns is missing"),
        (FILE, "prices = [2.0, 10.0]", "prices = [2.0]", "prices is (2.0,), expected two numbers"),
        (FILE, "turns = 5", f"turns = {'[' * 100_000}", "nested too deeply"),
        (PAPER, "seeds = [3, 4]", "seeds = [3, 3]", "seeds names one twice"),
        (
            PAPER,
            "seeds = [3, 4]",
            "seeds = [-1]",
            "seeds[0] is -1, expected an integer of at least 0",
        ),
        (PAPER, "seeds = [3, 4]", 'seeds = ["a"]', "seeds[0] is 'a', expected an integer"),
        (PAPER, 'model = "strict"', 'model = "judge"', "judge names one twice"),
        (PAPER, "pairs = true", "pairs = 1", "judge.pairs is 1, expected bool"),
        (FILE, "timeout = 30.0", "retries = -1", "models.retries is -1, expected an integer"),
        (FILE, "timeout = 30.0", "concurrency = 0", "models.concurrency is 0, expected an integer"),
        (PAPER, "[[judge]]", "[[judge]]\nmodl = 1\n[[judge]]", "unknown key judge.modl"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, file, old, new, message):
    path = tmp_path / "experiment.toml"
    given = {"url": "http://127.0.0.1:1/v1", "top": "", "models": "", "people": ""}
    path.write_text(file.format(catalogue=SAMPLE, **given).replace(old, new, 1))
    with pytest.raises(UsageError) as refused:
        read_experiment(path)
    assert message in f"{refused.value.message} {refused.value.hint}"
