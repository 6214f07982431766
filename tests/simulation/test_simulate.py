import random
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import fastscore
from fastscore.errors import RunConflictError, RunError, UsageError
from fastscore.run.progress import SilentReporter
from fastscore.settings.extras import EntryPoint
from fastscore.simulation import simulate as simulate_module
from fastscore.simulation.simulate import SESSIONS_A_SHARD, Simulation, simulate
from tests.conftest import often
from tests.simulation.worlds import SAMPLE, logs, shards


def asked(folder, **options):
    usual = {"sessions": 2 * SESSIONS_A_SHARD + 7, "turns": 6, "seed": 5, "agent": "offline"}
    return Simulation(catalogue=str(SAMPLE), output=folder, **{**usual, **options})


def run(simulation):
    return simulate(simulation, SilentReporter())


def test_logs_are_equal_for_any_number_of_workers(tmp_path):
    for workers in (1, 3):  # a worker a shard
        run(asked(tmp_path / str(workers), workers=workers))
    one = shards(tmp_path / "1")
    assert list(one) == [f"sessions-{number:05}.jsonl" for number in range(3)]
    assert one == shards(tmp_path / "3")
    assert [log["session_id"] for log in logs(tmp_path / "1")] == [
        f"{number:05}" for number in range(107)
    ]


def test_what_was_killed_is_finished_with_the_same_bytes(tmp_path):
    command = [sys.executable, "-m", "fastscore", "simulate", "preference_shift"]
    command += ["--catalogue", str(SAMPLE), "--sessions", "107", "--turns", "30", "--seed", "5"]
    run(asked(tmp_path / "whole", turns=30))
    command += ["-o", str(tmp_path / "killed"), "-q"]
    described = tmp_path / "killed" / ".simulation" / "simulation.json"
    chosen = random.Random(0)
    for attempt in range(often(2, 20)):
        before = described.stat().st_mtime_ns if attempt else 0
        workers = ["--workers", str(1 + attempt % 2)]
        process = subprocess.Popen([*command, *workers], start_new_session=True)
        while process.poll() is None:  # however long a start takes
            if described.exists() and described.stat().st_mtime_ns > before:
                break
            time.sleep(0.01)
        time.sleep(chosen.uniform(0.0, 0.5))
        process.kill()
        process.wait()
    assert subprocess.run([*command, "--workers", "2"], check=False).returncode == 0
    assert shards(tmp_path / "killed") == shards(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.tmp"))


def test_what_stands_is_kept_and_more_sessions_are_added(tmp_path):
    made = run(asked(tmp_path, sessions=60))
    assert (made.kept, made.shards, made.turns) == (0, 2, 360)
    again = run(asked(tmp_path, sessions=60))
    assert (again.kept, again.shards) == (2, 0)
    more = run(asked(tmp_path, sessions=120))
    assert (more.kept, more.shards, more.sessions) == (1, 2, 70)
    run(asked(tmp_path / "at once", sessions=120))
    assert shards(tmp_path) == shards(tmp_path / "at once")


def test_another_simulation_is_not_mixed_in(tmp_path):
    run(asked(tmp_path, sessions=3))
    with pytest.raises(RunConflictError, match="another seed"):
        run(asked(tmp_path, sessions=3, seed=6))
    with pytest.raises(RunConflictError, match="more sessions"):
        run(asked(tmp_path, sessions=2))
    before = shards(tmp_path)
    run(asked(tmp_path, sessions=2, seed=6, overwrite=True))
    assert shards(tmp_path) != before
    assert len(shards(tmp_path)["sessions-00000.jsonl"].splitlines()) == 2
    # the code of an agent may have changed behind its name
    assert run(asked(tmp_path, sessions=2, seed=6, overwrite=True)).shards == 1
    with pytest.raises(UsageError, match="is an address"):
        run(asked(Path("s3://bucket/logs")))


def test_a_folder_of_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine.jsonl").write_text("{}\n")
    with pytest.raises(RunConflictError, match="cannot take a simulation: it holds"):
        run(asked(tmp_path, overwrite=True))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]


def test_logs_are_scored_as_they_are(tmp_path):
    folder = tmp_path / "logs"
    run(asked(folder, sessions=40, turns=20))
    scores = fastscore.score(
        [str(folder)],
        fastscore.PreferenceShift(catalogue=str(SAMPLE), segments="metadata"),
        embedder=None,
    )
    assert scores.rejects.is_empty()
    dialogues = scores.tables["dialogues"]
    assert dialogues.height == 40
    assert dialogues["n_turns"].to_list() == [20] * 40
    assert dialogues["has_shift_metadata"].all()
    assert dialogues["n_shifts"].to_list() == [len(log["shift_events"]) for log in logs(folder)]
    # the user names the focus when it shifts to it
    shifted = scores.tables["turns"].filter("is_shift")
    focus = shifted["user_meta"].str.json_path_match("$.focus_value").str.to_lowercase()
    is_named = pl.DataFrame({"text": shifted["user_text"].str.to_lowercase(), "focus": focus})
    assert is_named.select(pl.col("text").str.contains(pl.col("focus"), literal=True).all()).item()


AGENTS = """
class Counting:
    def __init__(self):
        self.turns = 0

    def __call__(self, conversation):
        self.turns += 1
        return {"text": f"answer {self.turns} to {len(conversation)}", "rec_titles": ["Heat"]}


def failing(conversation):
    raise ValueError("no answer")


def wrong(conversation):
    return 7


def dying(conversation):
    import os

    os._exit(9)
"""


@pytest.fixture
def own_agents(tmp_path, monkeypatch):
    (tmp_path / "own_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("own_agents", None)


def test_a_class_is_an_agent_a_session(tmp_path, own_agents):
    run(asked(tmp_path / "logs", sessions=2, agent="python:own_agents.Counting"))
    for log in logs(tmp_path / "logs"):
        assert log["model_name"] == "python:own_agents.Counting"
        answers = log["conversation"][1::2]
        assert [turn["text"] for turn in answers] == [
            f"answer {turn} to {2 * turn - 1}" for turn in range(1, 7)
        ]
        assert answers[0]["rec_titles"] == ["Heat"]


def test_an_agent_that_fails_is_named_with_its_place(tmp_path, own_agents):
    with pytest.raises(RunError, match=r"session 00000 at .*own_agents\.py:12: ValueError: no ans"):
        run(asked(tmp_path / "logs", agent="python:own_agents.failing"))
    with pytest.raises(UsageError, match="returned 7, expected a text"):
        run(asked(tmp_path / "other", agent="python:own_agents.wrong"))


def test_installed_agents_are_known_by_name(tmp_path, own_agents, monkeypatch):
    point = EntryPoint("counting", "own_agents:Counting")
    found = {"fastscore.agents": (point,)}
    monkeypatch.setattr(simulate_module, "entry_points", lambda group: found[group])
    monkeypatch.syspath_prepend(str(tmp_path))
    run(asked(tmp_path / "logs", sessions=1, agent="counting"))
    (log,) = logs(tmp_path / "logs")
    assert (log["model_name"], log["conversation"][1]["text"]) == ("counting", "answer 1 to 1")
    with pytest.raises(UsageError, match="Did you mean 'counting'"):
        run(asked(tmp_path / "other", sessions=1, agent="countin"))


def test_a_worker_that_dies_is_said(tmp_path, own_agents):
    with pytest.raises(RunError, match="A worker process died"):
        run(asked(tmp_path / "logs", agent="python:own_agents.dying", workers=2))


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("offlin", "Did you mean 'offline'?"),
        ("python:own_agents.nobody", "cannot be imported"),
        ("python:nowhere.at.all", "cannot be imported"),
        ("python:nodots", "cannot be imported"),
        ("python:os.path", "expected something to call"),
    ],
)
def test_an_agent_that_is_none_is_refused(tmp_path, own_agents, agent, message):
    with pytest.raises(UsageError) as refused:
        run(asked(tmp_path / "logs", agent=agent))
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_workers_import_nothing_from_the_folder_of_their_user(tmp_path):
    for name in ("multiprocessing", "polars", "fastscore_jit", "runpy"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    program = "import sys; sys.path.remove(''); from fastscore.cli import main; main()"
    command = [sys.executable, "-c", program, "simulate", "preference_shift", "-q", "-o", "logs"]
    command += ["--catalogue", str(SAMPLE), "--sessions", "51", "--turns", "2", "--workers", "2"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    assert not (tmp_path / "imported").exists()
