"""The notebook of the examples runs to its last cell, and shows pictures and tables."""

from pathlib import Path
from xml.etree import ElementTree

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

NOTEBOOK = Path(__file__).parent.parent / "examples" / "from_logs_to_figures.ipynb"


def test_every_cell_runs_and_shows_something(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    run = ExecutePreprocessor(timeout=600, kernel_name="python3")
    run.preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [output.data for cell in cells[1:] for output in cell.outputs if "data" in output]
    assert len(shown) == len(cells) - 1  # the first cell prepares
    assert not [
        output for cell in cells for output in cell.outputs if output.output_type == "error"
    ]
    pictures = [
        ElementTree.fromstring(data["image/svg+xml"]) for data in shown if "image/svg+xml" in data
    ]
    assert len(pictures) == 2
    assert all(
        picture.tag.endswith("svg") and len(list(picture.iter())) > 50 for picture in pictures
    )
    tables = [data["text/html"] for data in shown if "text/html" in data]
    assert len(tables) == 3
    assert all("<table" in table for table in tables)
    assert int(shown[-1]["text/plain"]) > 10_000
