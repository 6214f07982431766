"""A small run of every suite, scored once a session, in any process, for what is shown of runs."""

import gzip
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import fastscore
from benchmarks import group_travel, guest_simulation_logs, miner_logs, preference_shift_logs
from fastscore.results.report.write import write_index, write_report
from fastscore.results.runs import Run
from fastscore.results.show import list_runs
from tests.by_keywords import score_by_keywords
from tests.conftest import alone
from tests.results.pages import ATTACK, BREAKING_OUT, Pages

SUITES = (
    "score_dialogue",
    "group_travel",
    "guest_simulation",
    "preference_shift",
    "memory_finance",
)
SECOND = "second"
PROFILES = (
    "preference_shift/published",
    "preference_shift/structured",
    "preference_shift/legacy",
    "guest_simulation/published",
)
"""Profiles that compute numbers in other ways: runs over the logs of their suites."""
_IN_OTHER_WORDS = {
    " the ": " ",
    " you ": " ",
    "的": "",
    " a ": f" a {ATTACK} ",
    "风险": f"风险{ATTACK}",
}
"""What second runs lack, and where their texts would do harm, were a page to take them for HTML."""
_TRACES = Path(__file__).parents[1] / "suites" / "memory_finance" / "published"


class SuiteRuns(Mapping[str, Run]):
    """Runs of the suites, each scored when a process first asks for it: no test may change one."""

    def __init__(self, folder: Path, store: Path) -> None:
        self._folder = folder
        self._store = store
        self._runs: dict[str, Run] = {}

    def __getitem__(self, name: str) -> Run:
        if name not in self._runs:
            suite, _, profile = name.partition("/")
            number = SUITES.index(suite) + 1
            output = self._folder / (f"run-{suite}-{profile}" if profile else f"run-{number}")
            if profile:
                _ = self[suite]
            with alone(output) as is_made:
                if not is_made:
                    score = self._score_again if profile else self._score
                    assert score(suite, profile, output).rejects.is_empty()
            self._runs[name] = fastscore.open_run(output)
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SUITES)

    def __len__(self) -> int:
        return len(SUITES)

    def second(self, suite: str) -> Run:
        """Return a run over the same dialogues, said in other words, some of them hostile."""
        return self[f"{suite}/{SECOND}"]

    def _score_again(self, suite: str, profile: str, output: Path) -> Run:
        base = self[suite]
        named = {"catalogue", "personas"} & base.manifest.options.keys()
        settings = {name: base.manifest.options[name] for name in named}
        logs = [Path(about["name"]) for about in base.manifest.inputs]
        if profile == SECOND:
            store = self._store if base.manifest.embedder else None
            logs = [self._in_other_words(log) for log in logs]
            return score_by_keywords(logs, suite, output=output, store=store, **settings)
        settings |= {"profile": profile}
        store = self._store if profile == "legacy" else None
        if suite == "preference_shift" and profile != "legacy":
            settings |= {"segments": "metadata"}
        embedder = {} if store else {"embedder": None}
        return score_by_keywords(logs, suite, output=output, store=store, **embedder, **settings)

    def _in_other_words(self, log: Path) -> Path:
        content = log.read_bytes()
        text = (gzip.decompress(content) if log.suffix == ".gz" else content).decode()
        for word, other in _IN_OTHER_WORDS.items():
            text = text.replace(word, other)
        copy = self._folder / SECOND / log.relative_to(self._folder)
        copy = copy.with_suffix("") if log.suffix == ".gz" else copy
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
        return copy

    def _score(self, suite: str, _: str, output: Path) -> Run:
        folder, store = self._folder, self._store
        if suite == "score_dialogue":
            _write(miner_logs, "--dialogues", 6, "--miners", 2, "-o", folder / "miners")
            return score_by_keywords(folder / "miners", suite, output=output, store=store)
        if suite == "group_travel":
            _write(group_travel, "logs", "--dialogues", 15, "-o", folder / "trips")
            return score_by_keywords(folder / "trips" / "logs", suite, output=output, store=store)
        if suite == "guest_simulation":
            _write(guest_simulation_logs, "--conversations", 20, "-o", folder / "guests")
            personas = str(folder / "guests-personas.json")
            return score_by_keywords(folder / "guests", suite, output=output, personas=personas)
        if suite == "preference_shift":
            words = ("--kind", "models", "--turns", 300, "--output", folder / "shifts")
            _write(preference_shift_logs, *words)
            catalogue = str(folder / "shifts" / "catalogue.jsonl")
            logs = folder / "shifts" / "logs.jsonl"
            return score_by_keywords(logs, suite, output=output, store=store, catalogue=catalogue)
        leave = shutil.ignore_patterns("turn*", "*.json")
        shutil.copytree(_TRACES, folder / "traces", ignore=leave)
        traces = sorted((folder / "traces").rglob("dialog_trace*"))
        return score_by_keywords(traces, suite, output=output)


def _write(command: ModuleType, *arguments: object) -> None:
    done = CliRunner().invoke(command.main, [str(word) for word in arguments])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="session")
def suite_runs(store: Path, default_model: str) -> SuiteRuns:
    """Return a run of each suite over a few real dialogues."""
    folder = store.with_name("runs")  # beside the store, which all processes share
    folder.mkdir(exist_ok=True)
    return SuiteRuns(folder, store)


@pytest.fixture(scope="session")
def pages(suite_runs: Mapping[str, Run], store: Path) -> Mapping[str, Path]:
    folder = store.with_name("pages")
    folder.mkdir(exist_ok=True)
    return Pages(suite_runs, folder)


@pytest.fixture(scope="session")
def six(suite_runs: Mapping[str, Run], store: Path) -> tuple[Path, Path]:
    """Return a report of six runs with long names, and the page that lists them."""
    folder = store.with_name("six")
    runs = [folder / f"anthropic__claude-3-5-sonnet-2024102{number}" for number in range(6)]
    page, index = folder / "page.html", folder / "all.html"
    with alone(index) as is_made:
        if not is_made:
            for path in runs:
                shutil.copytree(suite_runs["score_dialogue"].path, path)
            write_report(runs, page)
            write_index(list_runs(folder), folder, index)
    return page, index


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of score_dialogue whose every text tries to leave its element."""
    folder = tmp_path_factory.mktemp("hostile")
    rows: list[dict[str, Any]] = []
    for dialogue in ("one", "two"):
        id = f"{dialogue}{BREAKING_OUT}"
        place = {"dialogue_uid": id, "miner_uid": id, "utterance_index": 0}
        for step, text in enumerate((BREAKING_OUT, f"{BREAKING_OUT} again")):
            rows.append({**place, "event": "predicted", "step": step, "prediction": text})
        rows.append({**place, "event": "utterance_complete", "ground_truth": BREAKING_OUT})
    log = folder / "log.jsonl"
    bad = '{"event": "predicted<script>window.hit=1</script>'
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + f"{bad}\n")
    return fastscore.score(
        log, fastscore.ScoreDialogue(lex_weight=1.0), output=folder / "run", max_rejects=0.5
    )
