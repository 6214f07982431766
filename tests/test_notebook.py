"""The notebook of the examples runs from its first cell to its last."""

import json
import shutil
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

NOTEBOOK = Path(__file__).parent.parent / "examples" / "from_logs_to_figures.ipynb"


def test_every_cell_runs_and_shows_something() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    shown = []
    try:
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            lines = "".join(cell["source"]).rstrip().split("\n")
            last = lines[-1]
            if last[:1].isspace() or last.startswith(")"):
                exec("\n".join(lines), names)
                continue
            exec("\n".join(lines[:-1]), names)
            shown.append(eval(last, names))
        assert sum(isinstance(one, Figure) for one in shown) == 2
        tables = [one._repr_html_() for one in shown if not isinstance(one, Figure | int)]
        assert len(tables) == 3
        assert all("<table" in table for table in tables)
        assert isinstance(shown[-1], int)
        assert shown[-1] > 10_000
    finally:
        shutil.rmtree(names.get("folder", ""), ignore_errors=True)
