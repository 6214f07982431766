"""Which metric uses what: the table of the docs, from the declarations.

``python -m fastscore.suites.group_travel.uses`` prints it; a test compares it with the docs.
"""

from fastscore.suites.group_travel.metrics import METRICS, SOURCES
from fastscore.terminal import write


def uses_table() -> str:
    """Return the table as Markdown: a row a metric, a column a source, and the conditions."""
    head = ["metric", *SOURCES, "conditions"]
    lines = [head, ["---", *(":-:" for _ in SOURCES), "---"]]
    for metric in METRICS:
        used = ["yes" if source in metric.uses else "" for source in SOURCES]
        lines.append([f"{metric.id}: {metric.name}", *used])
        lines[-1].append(", ".join(metric.conditions) or "all")
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    write(uses_table())
