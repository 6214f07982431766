"""Write logs of group trip-planning dialogues of any size, with what each dialogue must score.

Plans, catalogues and preferences are real, the rest is synthetic: see `group_travel_sources`,
`group_travel_itineraries` and `group_travel_dialogues`. ``OUTPUT/logs`` holds the logs: one CSV a
dialogue, or JSON Lines or Parquet files of many. ``OUTPUT/expected.jsonl`` holds for each dialogue
``[numerator, denominator]`` of M1 to M5, M4b, M9, M10b and M16; null where there is no value, 0.0
where the definition says so. The same arguments give the same dialogues.

Usage: python -m benchmarks.group_travel_logs --output FOLDER [--dialogues 2000] [--layout csv]
"""

import csv
import io
import json
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
import polars as pl

from benchmarks.group_travel_dialogues import Made, make_dialogues
from benchmarks.group_travel_itineraries import read_sources

Layout = Literal["csv", "jsonl", "parquet"]
COLUMNS = (
    *("turn_id", "speaker", "intent", "utterance", "metadata", "constraint_state", "plan"),
    *("ref_info_accommodations", "ref_info_restaurants", "ref_info_attractions", "ref_info_events"),
)
PER_FILE = 500


def text_rows(made: Made) -> list[dict[str, str]]:
    """Return a dialogue's rows as text, one cell in ten as a Python literal."""
    draw = random.Random(f"{made.id}/cells")
    rows: list[dict[str, Any]] = [dict(row) for row in made.rows]
    rows[0]["metadata"] = made.metadata
    return [
        {
            name: _cell(row.get(name, number if name == "turn_id" else None), draw)
            for name in COLUMNS
        }
        for number, row in enumerate(rows)
    ]


def _cell(value: Any, draw: random.Random) -> str:
    if value is None:
        return draw.choice(("", "", "", "nan", "{}"))
    if isinstance(value, str | int):
        return str(value)
    return str(value) if draw.random() < 0.1 else json.dumps(value, ensure_ascii=False)


def csv_file(made: Made) -> bytes:
    """Return a dialogue as CSV: some with a byte order mark, some with a header in capitals."""
    draw = random.Random(f"{made.id}/file")
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, COLUMNS)
    header = (name.title() if draw.random() < 0.1 else name for name in COLUMNS)
    writer.writerow(dict(zip(COLUMNS, header, strict=True)))
    writer.writerows(text_rows(made))
    return stream.getvalue().encode("utf-8-sig" if draw.random() < 0.1 else "utf-8")


def json_line(made: Made) -> bytes:
    """Return a dialogue as a line of JSON; in one of five the cells are text, as in CSV."""
    turns: Sequence[Any] = made.rows
    if random.Random(f"{made.id}/line").random() < 0.2:
        turns = text_rows(made)
    record = {"metadata": made.metadata, "turns": turns}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def write_logs(
    output: Path,
    *,
    dialogues: int,
    layout: Layout = "jsonl",
    per_file: int = PER_FILE,
    data: Path | None = None,
    seed: int = 0,
    defects: float = 0.15,
    variants: int = 20,
) -> int:
    """Write logs and expectations; returns the bytes of the logs.

    Raises
    ------
    click.ClickException
        The folder holds files already.
    """
    logs = output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    if any(logs.iterdir()):
        raise click.ClickException(f"{logs} is not empty; name a new folder or empty it first.")
    made = make_dialogues(
        read_sources(data), dialogues, seed=seed, defects=defects, variants=variants
    )
    with (output / "expected.jsonl").open("w", encoding="utf-8") as expectations:
        number = 0
        while batch := list(islice(made, per_file)):
            _write_batch(logs, number, batch, layout)
            number += 1
            for one in batch:
                row = {"dialogue": one.id, "condition": one.condition, **one.expected}
                expectations.write(json.dumps(row) + "\n")
    return sum(path.stat().st_size for path in logs.iterdir())


def _write_batch(logs: Path, number: int, batch: Sequence[Made], layout: Layout) -> None:
    if layout == "csv":
        for made in batch:
            (logs / f"{made.id}.csv").write_bytes(csv_file(made))
    elif layout == "jsonl":
        (logs / f"part-{number:05d}.jsonl").write_bytes(b"".join(map(json_line, batch)))
    else:
        rows = list(_parquet_rows(batch))
        pl.DataFrame(rows).write_parquet(logs / f"part-{number:05d}.parquet")


def _parquet_rows(batch: Sequence[Made]) -> Iterator[dict[str, str]]:
    for made in batch:
        for row in text_rows(made):
            yield {"dialogue_id": made.id, **row}


@click.command(context_settings={"show_default": True})
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="New folder.")
@click.option("--dialogues", type=click.IntRange(min=1), default=2000, help="How many.")
@click.option("--layout", type=click.Choice(["csv", "jsonl", "parquet"]), default="jsonl")
@click.option("--per-file", type=click.IntRange(min=1), default=PER_FILE, help="Not of CSV.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    show_default="the bundled sample",
    help="A folder with travelplanner_train45.jsonl.gz and sgd_*.jsonl.gz.",
)
@click.option("--seed", default=0, help="Decides every choice.")
@click.option(
    "--defects", type=click.FloatRange(0, 1), default=0.15, help="Probability of each defect."
)
@click.option("--variants", type=click.IntRange(min=1), default=20, help="Itineraries a plan.")
def main(output: Path, dialogues: int, **options: Any) -> None:
    """Write group trip-planning dialogues and what they must score."""
    size = write_logs(output, dialogues=dialogues, **options)
    click.echo(f"{output}: {dialogues:,} dialogues, {size / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
