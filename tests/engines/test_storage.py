"""Workers without access to the driver's files are detected before anything starts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from fastscore.errors import UsageError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.limits import Limits
from fastscore.run import drive
from fastscore.run.context import run_context
from fastscore.run.drive import Expected, check_here, check_workers
from fastscore.run.engines.engine import attempt, done_or_raise
from fastscore.run.request import EmbedderSettings, Request
from fastscore.run.writer import writing
from tests.run.logs import write_logs


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A worker of which something is different."""

    prepare: Callable[[], object]

    def map(self, task, keys, **named):
        raise AssertionError("something was started")

    def ask(self, question):
        self.prepare()
        return {"tcp://node7:1234": question()}


@pytest.fixture
def inputs(tmp_path):
    return resolve_inputs(write_logs(tmp_path / "logs", files=2))


@pytest.fixture
def context(tmp_path):
    request = Request(
        suite="score_dialogue",
        inputs=(),
        output=tmp_path / "run",
        options={"lex_weight": 1.0},
        embedder=None,
    )
    suite = request.load_suite()
    with writing(request.folder) as (_, writer):
        yield replace(run_context(request, suite, None), writer=writer)


def trouble(context, inputs, prepare):
    with pytest.raises(UsageError, match="Nothing was started") as caught:
        check_workers(Elsewhere(prepare), Expected(context, None), inputs)
    return caught.value.message


def test_what_a_worker_does_not_see_is_named_with_it(context, inputs, monkeypatch):
    assert check_workers(Elsewhere(lambda: None), Expected(context, None), inputs) == 1
    assert sorted(path.name for path in context.run.parent.iterdir()) == ["logs", "run"]
    lock = (context.run / ".lock").read_bytes()
    found = trouble(context, inputs, (context.run / ".lock").unlink)
    assert "worker tcp://node7:1234 (host " in found
    assert str(context.run) in found
    (context.run / ".lock").write_bytes(lock)
    second = Path(inputs[1].path)
    found = trouble(context, inputs, lambda: second.write_text("{}"))
    assert f"bytes in the input {second}" in found
    assert f"does not see the input {second}" in trouble(context, inputs, second.unlink)

    def older():
        monkeypatch.setattr(drive, "installed_version", lambda package: "0.9")

    assert "has fastscore-dialogue 0.9, expected " in trouble(context, inputs, older)


def test_another_store_is_named_and_a_token_with_other_content_is_no_proof(
    context, inputs, tmp_path
):
    store = tmp_path / "store"
    context = replace(context, embedder=EmbedderSettings("none", "fp32", None, store))

    def change(each):
        return lambda: [each(path) for path in store.iterdir()]

    found = trouble(context, inputs, change(Path.unlink))
    assert "tcp://node7:1234" in found
    assert f"does not see what was written to {store}/" in found
    found = trouble(context, inputs, change(lambda path: path.write_text("another run's")))
    assert "sees something else" in found
    assert not list(store.iterdir())


def test_a_worker_that_joins_later_is_checked_before_its_first_task(context):
    check = partial(check_here, Expected(context, None))
    lock = context.run / ".lock"
    held = lock.read_bytes()
    lock.unlink()
    done = []
    with pytest.raises(UsageError, match="does not see this process's lock") as caught:
        done_or_raise(attempt(Limits(), check, done.append, 1))
    assert caught.value.message.startswith("A worker (host ")
    assert "what is committed is kept" in caught.value.hint
    assert not done
    lock.write_bytes(held)
    done_or_raise(attempt(Limits(), check, done.append, 1))
    lock.unlink()
    # it is trusted; commits look at the lock themselves
    done_or_raise(attempt(Limits(), check, done.append, 2))
    assert done == [1, 2]
