"""Screening of logs, and the full messages of refusals."""

from pathlib import Path

import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, map_source
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.samples.screening import Screened, screen
from fastscore.suites.registry import load_suite
from tests.logs.samples.wrong_logs import NEEDED

WHERE = {
    "score_dialogue": ("prediction", "2 rows"),
    "preference_shift": ("conversation[].text", "2 objects of conversation[]"),
    "memory_finance": ("turns[].pred_assistant_text", "2 objects of turns[]"),
    "guest_simulation": ("role", "2 rows"),
    "group_travel": ("utterance", "2 rows"),
}
LOOKED_FOR = {**NEEDED, "group_travel": "utterance, text"}
FOUND = {
    "score_dialogue": "event (3), utterance_index (3), step (2), {}ground_truth (1)",
    "preference_shift": "speaker (2){}",
    "memory_finance": "turn_pair_id (2), turn_status (2){}",
    "guest_simulation": "conversation_id (2), {}content (2)",
    "group_travel": "dialogue_id (2), speaker (2), intent (2){}",
}
INSPECT = "`fastscore inspect` lists the keys of a log and the suites that it fits."


def screened(suite: str, *inputs: Path, columns: ColumnMap = NO_MAP) -> Screened:
    source = map_source(load_suite(suite).source, columns)
    return screen(resolve_inputs(inputs, source.formats), source, suite)


def refusal(suite: str, *inputs: Path, columns: ColumnMap = NO_MAP) -> str:
    with pytest.raises(InputError) as caught:
        screened(suite, *inputs, columns=columns)
    assert caught.value.exit_code == 3
    return str(caught.value)


def found(suite: str, key: str) -> str:
    """Return the keys that are found, one more among them."""
    more = f"{key} (2)" if key else ""
    text = FOUND[suite]
    if ", {}" in text:
        return text.format(f"{more}, " if more else "")
    return text.format(f", {more}" if more else "")


def message(suite: str, path: Path, keys: str, nearest: str, absence: str = "") -> str:
    """Return the full message for a log that lacks a suite's columns."""
    place, asked = WHERE[suite]
    lines = [
        f"{path}: no row has what {suite} needs.",
        f"  {place}: {absence or f'absent or null in {asked}'}",
        f"    looked for: {LOOKED_FOR[suite]}",
        f"    found: {keys}",
    ]
    if nearest:
        lines += [f"    nearest: {nearest}", f"Type --column {NEEDED[suite]}={nearest}."]
    else:
        lines.append(f"Name its key: --column {NEEDED[suite]}=KEY. {INSPECT}")
    return "\n".join(lines)
