"""The published runs, reproduced byte for byte."""

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.memory_finance import SUITE, MemoryFinance
from fastscore.suites.memory_finance.summarise import published_files, suffix_of
from fastscore.vectors.view import VectorView

BUNDLED = Path(__file__).parent / "published"
WITHOUT_MEMORY = "20260221_085707"
EDITED_TITLE = b"# llm Eval Report\n"
OUR_TITLE = b"# MemFinRobot Eval Report\n"


def published(folder, name):
    plain = folder / name
    content = plain.read_bytes() if plain.exists() else None
    return content or gzip.decompress((folder / f"{name}.gz").read_bytes())


def reproduce(folder):
    trace = next(folder.glob("dialog_trace*"))
    options = MemoryFinance(ignore_memory_keys=folder.name == WITHOUT_MEMORY)
    rows = read_shard(whole_file(str(trace), compression="gz"), SUITE.source)
    events = SUITE.read(rows.frame, options)
    assert rows.rejects.is_empty()
    assert events.rejects.is_empty()
    tables = SUITE.score(events, VectorView.empty(), options)
    suffix = suffix_of([trace.name])
    summary = json.loads(published(folder, f"metrics_summary{suffix}.json"))
    return published_files(tables, dataset_path=summary["dataset_path"], suffix=suffix)


def published_runs():
    """Return the folders of published runs: the bundled ones, and those that FASTSCORE_DATA has."""
    data = os.environ.get("FASTSCORE_DATA")
    folders = [BUNDLED, *([Path(data) / "memory_finance"] if data else [])]
    return [path for folder in folders for path in sorted(folder.iterdir()) if path.is_dir()]


@pytest.mark.parametrize("folder", published_runs(), ids=lambda folder: str(folder.name))
def test_published_runs_are_reproduced(folder):
    files = reproduce(folder)
    assert len(files) == 3
    for name, content in files.items():
        expected = published(folder, name)
        if folder.name == WITHOUT_MEMORY and name.endswith(".md"):
            # the title of this one report was edited by hand
            assert expected.startswith(EDITED_TITLE)
            expected = OUR_TITLE + expected.removeprefix(EDITED_TITLE)
        assert content == expected, name


def test_suffix_is_that_of_the_trace():
    assert suffix_of(["runs/dialog_trace_llm.jsonl.gz"]) == "_llm"
    assert suffix_of(["dialog_trace.jsonl"]) == ""
    assert suffix_of(["other.jsonl.zst"]) == ""
    assert suffix_of(["dialog_trace_mem0.ndjson"]) == "_mem0"
    assert suffix_of(["dialog_trace.json"]) == ""
    assert suffix_of([]) == ""


def test_legacy_files_are_made_only_when_asked_for():
    tables = {table.name: pl.LazyFrame(schema=table.schema) for table in SUITE.tables}
    assert SUITE.legacy_files(tables, ("a.jsonl",), MemoryFinance()) == {}
    options = MemoryFinance(legacy_files=True, legacy_dataset_path="set.jsonl")
    files = SUITE.legacy_files(tables, ("dialog_trace_mem0.jsonl",), options)
    assert sorted(files) == ["metrics_summary_mem0.json", "report_mem0.md", "turn_eval_mem0.jsonl"]
    summary = json.loads(files["metrics_summary_mem0.json"])
    assert summary["dataset_path"] == "set.jsonl"
    assert summary["metrics"]["m2_profile_accuracy"]["micro"]["profile_score"] == 0.0
    assert files["turn_eval_mem0.jsonl"] == b""


def test_a_dataset_path_without_legacy_files_is_refused():
    with pytest.raises(UsageError, match=r"legacy_dataset_path is 'set\.jsonl', but no legacy"):
        MemoryFinance(legacy_dataset_path="set.jsonl")
