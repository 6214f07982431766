"""Published dialogue metrics over millions of logged turns, exact and fast.

::

    example = fastscore.example("score_dialogue", "example")
    run = fastscore.score(example.logs, fastscore.ScoreDialogue(lex_weight=1.0), output="run")
    run.tables["dialogues"]
    fastscore.compare(run, by="miner_uid")

Before a run: `example`, `inspect`, `layouts`, `scan`, `metrics`. A run: `score`, `open_run`,
`runs`, `summary`, `table`, `explain`, `report`. Comparisons: `compare`, `check`, `pass_k`,
`analyse`. Chat models and people: `judge`, `annotate`, `agreement`, `rank`. Your own: `metric`,
`suite`. Kernels: `text`, `sets`. Inside other engines: `Scorer`. A suite's options: a class such as
`ScoreDialogue`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastscore.version import __version__

if "free-threading" in sys.version:
    raise ImportError(
        "fastscore does not run on free-threaded builds of CPython: use the standard build, which "
        "has the global interpreter lock."
    )

if TYPE_CHECKING:
    from fastscore import sets, text
    from fastscore.api.reading import inspect, scan
    from fastscore.api.runs import Run, open_run
    from fastscore.api.scorer import Scorer
    from fastscore.api.scoring import score
    from fastscore.api.verbs import (
        check,
        example,
        layouts,
        metrics,
        pass_k,
        report,
        runs,
        summary,
        table,
    )
    from fastscore.errors import FastscoreError
    from fastscore.llm.annotate import annotate
    from fastscore.llm.pairwise import judge
    from fastscore.logs.score_input import LogsWarning, RejectsWarning
    from fastscore.results.agreement import Agreement, agreement
    from fastscore.results.analyse import Analysis, analyse
    from fastscore.results.compare import compare
    from fastscore.results.comparison import Comparison
    from fastscore.results.explaining import Explanations, explain
    from fastscore.results.pair_ranking import PairRanking, rank
    from fastscore.suites.group_travel.options import GroupTravel
    from fastscore.suites.guest_simulation.options import GuestSimulation
    from fastscore.suites.memory_finance.options import MemoryFinance
    from fastscore.suites.own_metrics import metric, suite
    from fastscore.suites.preference_shift.options import PreferenceShift
    from fastscore.suites.score_dialogue.options import ScoreDialogue
    from fastscore.vectors.embedder import Embedder
    from fastscore.vectors.store import VectorStore

_SUBMODULES = ("sets", "text")
_MODULE_OF = {
    "Agreement": "fastscore.results.agreement",
    "Analysis": "fastscore.results.analyse",
    "Comparison": "fastscore.results.comparison",
    "Embedder": "fastscore.vectors.embedder",
    "Explanations": "fastscore.results.explaining",
    "FastscoreError": "fastscore.errors",
    "GroupTravel": "fastscore.suites.group_travel.options",
    "GuestSimulation": "fastscore.suites.guest_simulation.options",
    "LogsWarning": "fastscore.logs.score_input",
    "MemoryFinance": "fastscore.suites.memory_finance.options",
    "PairRanking": "fastscore.results.pair_ranking",
    "PreferenceShift": "fastscore.suites.preference_shift.options",
    "RejectsWarning": "fastscore.logs.score_input",
    "Run": "fastscore.api.runs",
    "ScoreDialogue": "fastscore.suites.score_dialogue.options",
    "Scorer": "fastscore.api.scorer",
    "VectorStore": "fastscore.vectors.store",
    "agreement": "fastscore.results.agreement",
    "analyse": "fastscore.results.analyse",
    "annotate": "fastscore.llm.annotate",
    "check": "fastscore.api.verbs",
    "compare": "fastscore.results.compare",
    "example": "fastscore.api.verbs",
    "explain": "fastscore.results.explaining",
    "inspect": "fastscore.api.reading",
    "judge": "fastscore.llm.pairwise",
    "layouts": "fastscore.api.verbs",
    "metric": "fastscore.suites.own_metrics",
    "metrics": "fastscore.api.verbs",
    "open_run": "fastscore.api.runs",
    "pass_k": "fastscore.api.verbs",
    "rank": "fastscore.results.pair_ranking",
    "report": "fastscore.api.verbs",
    "runs": "fastscore.api.verbs",
    "scan": "fastscore.api.reading",
    "score": "fastscore.api.scoring",
    "suite": "fastscore.suites.own_metrics",
    "summary": "fastscore.api.verbs",
    "table": "fastscore.api.verbs",
}

__all__ = [
    "Agreement",
    "Analysis",
    "Comparison",
    "Embedder",
    "Explanations",
    "FastscoreError",
    "GroupTravel",
    "GuestSimulation",
    "LogsWarning",
    "MemoryFinance",
    "PairRanking",
    "PreferenceShift",
    "RejectsWarning",
    "Run",
    "ScoreDialogue",
    "Scorer",
    "VectorStore",
    "__version__",
    "agreement",
    "analyse",
    "annotate",
    "check",
    "compare",
    "example",
    "explain",
    "inspect",
    "judge",
    "layouts",
    "metric",
    "metrics",
    "open_run",
    "pass_k",
    "rank",
    "report",
    "runs",
    "scan",
    "score",
    "sets",
    "suite",
    "summary",
    "table",
    "text",
]


if not TYPE_CHECKING:  # a checker refuses names that are not public

    def __getattr__(name: str) -> Any:
        """Import the module that holds the public name, on first use."""
        if name in _SUBMODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF:
            message = f"module {__name__!r} has no attribute {name!r}"
            if name[0] != "_":  # notebooks look for many of these
                from difflib import get_close_matches

                close = get_close_matches(name, __all__, n=1)
                message += f". Did you mean {close[0]!r}?" if close else ""
            raise AttributeError(message, name=name, obj=sys.modules[__name__])
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
