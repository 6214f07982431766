"""What a page's template is given: a run with its name, small tables, values as one reads them."""

from dataclasses import dataclass
from typing import Any

from fastscore.results.number_text import decimals_for, number_text
from fastscore.results.runs import Run
from fastscore.suites.showing import Listing

LISTED_ROWS = 60

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Named:
    """A run and what a page calls it."""

    name: str
    run: Run


def listing_of(listing: Listing) -> Values:
    """Write a small table's cells, and say how many rows are left out."""
    frame = listing.frame.head(LISTED_ROWS)
    return {
        "title": listing.title,
        "columns": [
            {"name": name, "right": dtype.is_numeric()} for name, dtype in frame.schema.items()
        ],
        "rows": [[cell_of(value) for value in row] for row in frame.iter_rows()],
        "more": listing.frame.height - frame.height,
    }


def cell_of(value: Any) -> str:
    """Write a value for a person."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value, decimals_for([value]))
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def value_text(value: float | None) -> str:
    """Write a number with as many decimals as it needs."""
    return number_text(value, decimals_for([value]))
