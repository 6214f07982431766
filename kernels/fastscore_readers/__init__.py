"""How bytes become columns: JSON, CSV and Python literals.

It stands on `fastscore_machine` alone and knows nothing of what is computed.
"""

from importlib import import_module

_MODULES = (
    *("csv.records", "json.json_elements", "json.json_paths", "json.json_texts"),
    *("json.json_trees", "json.json_values", "json.jsonl_names", "json.line_ends", "json.lines"),
    *("json.located_values", "python_literals.orders", "python_literals.trees"),
)

__all__ = ["warm"]


def warm() -> None:
    """Compile every reader, or load it from the cache, so that no later call has to."""
    for module in _MODULES:
        import_module(f"{__name__}.{module}").compile_kernels()
