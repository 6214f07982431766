"""Python runs this at its start: scored shards of a run that is held get no receipt.

A test holds a run by a file beside it, ``RUN.hold``, with the number of shards at which it is held;
so whatever the test then does happens amid the run, however loaded the machine is. Tasks that score
take more memory, while there is a file ``RUN.memory`` beside it with how many MiB.
"""

import importlib.util
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

TASKS = "fastscore.run.tasks"


class Holding(MetaPathFinder):
    """Changes `TASKS` when it is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module by all others that find modules."""
        if name != TASKS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec else None
        if loader is not None:
            run = loader.exec_module
            loader.exec_module = lambda module: (run(module), hold(), take(module))
        return spec


def hold() -> None:
    """Have receipts of scored shards wait until the run is held no more."""
    from fastscore.run import writer

    save = writer.save_receipt

    def save_when_let_go(folder: Path, receipt: Any) -> None:
        while receipt.stage == "score" and is_held(folder):
            time.sleep(0.01)
        save(folder, receipt)

    writer.save_receipt = save_when_let_go  # type: ignore[assignment]


def is_held(receipts: Path) -> bool:
    """Tell whether a run has as many receipts as it is to be held at."""
    try:
        limit = int(receipts.parent.with_suffix(".hold").read_text())
    except FileNotFoundError:
        return False
    return len(list(receipts.glob("score-*.json"))) >= limit


def take(tasks: Any) -> None:
    """Have tasks that score take memory until they are to end."""
    compute = tasks.compute_tables

    def compute_with_more(loaded: Any, shard: Any) -> Any:
        path = loaded.context.run.with_suffix(".memory")
        held = b"x" * (int(path.read_text()) << 20) if path.exists() else b""
        while held:
            tasks.raise_if_stopped()
            time.sleep(0.01)
        return compute(loaded, shard)

    tasks.compute_tables = compute_with_more


sys.meta_path.insert(0, Holding())
