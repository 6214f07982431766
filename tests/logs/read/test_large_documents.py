"""A JSON document of more than 64 MiB, an array of dialogues: by element, in bounded memory."""

import json
from pathlib import Path
from typing import Any

import pytest

import fastscore
from tests.logs.test_memory_limits import score

MIB = 1 << 20
SIZE = 160 * MIB
BUDGET = 768
"""MiB at most, of which libraries take some 250 and blocks that are kept for reading 384."""
PADDING = "It has a long story, which one cannot tell in a line. " * 20
EVERY = 100
"""Number of dialogues between two whose reply names the requested value."""


def openai(number: int) -> dict[str, Any]:
    film = "a drama" if number % EVERY == 0 else "a film"
    turns = [("user", "A drama, please."), ("assistant", f"Watch {film}. {PADDING}")] * 2
    return {"id": f"d{number}", "messages": [{"role": r, "content": c} for r, c in turns]}


def native(number: int) -> dict[str, Any]:
    found = openai(number)
    words = {"user": "USER", "assistant": "SYSTEM"}
    turns = [{"speaker": words[m["role"]], "text": m["content"]} for m in found["messages"]]
    return {"session_id": found["id"], "conversation": turns}


def batch(number: int) -> dict[str, Any]:
    """Make a batch that is read document by document: the layout does not compile to paths."""
    found = openai(number)
    *history, reply = found["messages"]
    body = {"choices": [{"message": reply}]}
    return {"custom_id": found["id"], "body": {"messages": history}, "response": {"body": body}}


KINDS = {"openai": openai, "native": native, "openai-batch": batch}


def write(path: Path, kind: str, between: str) -> int:
    """Write an array larger than 64 MiB, and return how many dialogues it contains."""
    number = size = 0
    with path.open("w") as file:
        file.write("[")
        while size < SIZE:
            text = json.dumps(KINDS[kind](number))
            file.write(f"{between}{text}" if number else text)
            size += len(text) + len(between)
            number += 1
        file.write("]\n")
    return number


@pytest.mark.slow
@pytest.mark.parametrize("between", [", ", ",\n"], ids=["one line", "lines"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_dialogues_is_read_in_bounded_memory(kind, between, tmp_path):
    path = tmp_path / "log.json"
    n_dialogues = write(path, kind, between)
    assert path.stat().st_size > 64 * MIB
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps([{"name": "Heat", "genre": "drama"}]))
    options = ["--catalogue", str(catalogue), "--segments", "metadata", "--embedder", "none"]
    if kind != "native":
        options += ["--layout", kind]
    code, peak, message = score(path, *options, suite="preference_shift")
    assert code == 0, message
    assert peak < BUDGET
    run = fastscore.open_run(tmp_path / "run")
    dialogues = run.scan("dialogues").collect()
    assert dialogues["dialogue"].to_list() == [f"d{number}" for number in range(n_dialogues)]
    turns = run.scan("turns").select("cc").collect()["cc"].to_list()
    expected = [float(number % EVERY == 0) for number in range(n_dialogues) for _ in range(2)]
    assert turns == expected
    assert run.manifest.counts["rejects"] == 0


@pytest.mark.slow
def test_one_object_of_more_than_64_mib_is_named(tmp_path):
    """An object is one value: it is not cut, and the message says what to type."""
    path = tmp_path / "log.json"
    write(path, "openai", ", ")
    path.write_text(f'{{"samples": {path.read_text()}}}')
    code, peak, message = score(
        path, "--layout", "inspect", "--level", "1", suite="guest_simulation"
    )
    assert code == 3
    assert "line_too_long" in message or "more than 64 MiB" in message
    assert peak < BUDGET
