"""Reading JSON Lines, CSV and JSON documents into columns, beside commonly used readers.

Sizes are in KiB of input: 1,024 ns per KiB are 1 GB/s. Each reader's behaviour on a bad line is
tried and written to stderr: a broken value, a value of another type, a duplicate key.
"""

import csv
import io
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import orjson
import polars as pl
import pyarrow.csv

from benchmarks.harness import SEED, Case, command
from benchmarks.memory_finance import SAMPLE, read_dialogues, write_traces
from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.lines import keep_buffers
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Column, Source
from fastscore.suites.memory_finance.events import read_events
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.schema import SOURCE as TRACES

KIB = "KiB"
OPTIONS = MemoryFinance()
NAMES = ("speaker", "intent", "utterance", "plan")
SOURCE = Source(
    columns=tuple(Column(name=name, kind="text") for name in NAMES), formats=("csv", "json")
)
LINES = Source(
    columns=(
        Column(name="event", kind="text"),
        Column(name="utterance_index", kind="integer"),
        Column(name="step", kind="integer"),
        *(Column(name=name, kind="text") for name in ("prediction", "dialogue_uid", "miner_uid")),
    ),
    formats=("jsonl",),
)
KINDS = {column.name: column.kind for column in LINES.columns}
BAD_LINES = {
    "broken": b'{"event":"predicted","step":}',
    "another type": b'{"event":5,"step":1.5}',
    "twice": b'{"event":"first","event":"last"}',
}
TALK = "we would like a quiet café near the station, please - two rooms, no stairs"
WORDS = tuple(TALK.split(" "))
WORDS_BEYOND = ("我们", "想要", "一个", "安静的", "咖啡馆", "靠近", "车站", "両部屋", "お願い")
TURN = {
    "turn_status": "VARCHAR",
    "pred_assistant_text": "VARCHAR",
    "user_text": "VARCHAR",
    "gt_turn_tags": "STRUCT(memory_required_keys_gt VARCHAR[], "
    "risk_disclosure_required_gt VARCHAR[], explainability_rubric_gt VARCHAR[], "
    "compliance_label_gt VARCHAR)",
    "recall": "STRUCT(short_term_context VARCHAR, profile_context VARCHAR, "
    "items STRUCT(content VARCHAR)[])",
    "compliance": "STRUCT(violations STRUCT(type VARCHAR, severity VARCHAR)[])",
    "profile_snapshot": "STRUCT(risk_level VARCHAR, investment_horizon VARCHAR, "
    "liquidity_need VARCHAR, preferred_topics VARCHAR[], forbidden_assets VARCHAR[])",
}
"""The columns of a turn for memory_finance, as declared in DuckDB."""


def _text(rng: random.Random, words: int, choice: Sequence[str] = WORDS) -> str:
    return " ".join(rng.choices(choice, k=words))


def _plan(rng: random.Random, entries: int) -> str:
    days = [{"day": day, "lunch": _text(rng, 6), "cost": day * 1.5} for day in range(entries)]
    return json.dumps({"days": days}, ensure_ascii=False, indent=1)


def _row(rng: random.Random, kind: str) -> tuple[str, str, str, str]:
    plan, words = "", 12
    if kind == "cells of JSON":
        plan = _plan(rng, 2500)
    elif kind == "cells of text":
        words = 45_000
    return f"Member {rng.randint(1, 9)}", "user_provide_dining", _text(rng, words), plan


def _rows(rng: random.Random, kind: str, size: float) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    while size > 0:
        rows.append(_row(rng, kind))
        size -= sum(map(len, rows[-1]))
    return rows


def _ours(path: Path, format: Any) -> pl.DataFrame:
    return read_shard(whole_file(str(path), format), SOURCE).frame.select(NAMES)


def _lines(rng: random.Random, size: float, words: Sequence[str] = WORDS) -> bytes:
    """Return predictions of utterances, one per line, as in logs of miners."""
    made: list[bytes] = []
    while size > 0:
        row = {
            "event": "predicted",
            "utterance_index": len(made) // 5,
            "step": len(made) % 5,
            "prediction": _text(rng, rng.randint(4, 24), words),
            "dialogue_uid": f"dialogue-{len(made) // 200:05d}",
            "miner_uid": f"{len(made) // 10_000}",
            "miner_hotkey": f"{rng.getrandbits(160):040x}",
        }
        made.append(orjson.dumps(row))
        size -= len(made[-1])
    return b"\n".join(made) + b"\n"


class _Line(msgspec.Struct):
    """A line's columns."""

    event: str | None = None
    utterance_index: int | None = None
    step: int | None = None
    prediction: str | None = None
    dialogue_uid: str | None = None
    miner_uid: str | None = None


def _duckdb(path: Path, *, ignore_errors: bool = False) -> Any:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    types = {"text": "VARCHAR", "integer": "BIGINT"}
    columns = {name: types[kind] for name, kind in KINDS.items()}
    found = connection.sql(
        f"SELECT * FROM read_ndjson('{path}', columns = {columns}, "
        f"ignore_errors = {str(ignore_errors).lower()})"
    )
    return found.to_arrow_table()


def _duckdb_csv(path: Path) -> Any:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    columns = dict.fromkeys(NAMES, "VARCHAR")
    # with the dialect given, as for the others: detecting it takes minutes for long cells
    found = connection.sql(
        f"SELECT * FROM read_csv('{path}', columns = {columns}, header = true, "
        "auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
        "store_rejects = true, max_line_size = 100000000, buffer_size = 300000000)"
    )
    return found.to_arrow_table()


def _duckdb_traces(path: Path) -> Any:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    turn = ", ".join(f"{name} {type}" for name, type in TURN.items())
    columns = {"dialog_id": "VARCHAR", "valid_dialog": "BOOLEAN", "turns": f"STRUCT({turn})[]"}
    return connection.sql(
        f"SELECT * FROM read_ndjson('{path}', columns = {columns})"
    ).to_arrow_table()


def _our_traces(path: Path) -> pl.DataFrame:
    """Read traces to the tables that memory_finance scores: lines judged, labels numbered."""
    events = read_events(read_shard(whole_file(str(path), "jsonl"), TRACES).frame, OPTIONS)
    assert events.rejects.is_empty()
    return events.frames["turns"]


def _check_traces(outputs: dict[str, Any]) -> None:
    n_turns = [len(trace["turns"]) for trace in outputs["json"]]
    assert outputs["fastscore"].height == sum(n_turns)
    read = pl.DataFrame(pl.from_arrow(outputs["duckdb"]))
    assert read["turns"].list.len().to_list() == n_turns


def _polars_lines(path: Path) -> pl.DataFrame:
    types = {"text": pl.String(), "integer": pl.Int64()}
    return pl.scan_ndjson(
        path, schema={name: types[kind] for name, kind in KINDS.items()}
    ).collect()


def _our_lines(path: Path) -> pl.DataFrame:
    return read_shard(whole_file(str(path), "jsonl"), LINES).frame.select(*KINDS)


def _line_readers(path: Path) -> dict[str, Callable[[], Any]]:
    """Return the readers of lines: the first four into columns, the others into rows."""
    return {
        "fastscore": partial(_our_lines, path),
        "duckdb": partial(_duckdb, path),
        "duckdb, ignore_errors": partial(_duckdb, path, ignore_errors=True),
        "polars": partial(_polars_lines, path),
        "msgspec": lambda: msgspec.json.Decoder(_Line).decode_lines(path.read_bytes()),
        "orjson": lambda: [orjson.loads(line) for line in path.read_bytes().splitlines()],
        "json": lambda: [json.loads(line) for line in path.read_bytes().splitlines()],
    }


def _outcome(read: Callable[[], Any], columns: Sequence[str]) -> str:
    """Return a reader's rows of a file, or its error."""
    try:
        found = read()
    except Exception as error:
        return f"fails with {type(error).__name__}"
    if hasattr(found, "to_pydict"):
        found = pl.DataFrame(pl.from_arrow(found))
    return str(found.select(columns).rows() if isinstance(found, pl.DataFrame) else found)


def _show_bad_records(folder: Path) -> None:
    """Read two good CSV records with one of too many cells between them, by each reader."""
    path = folder / "bad.csv"
    good = ",".join(NAMES)
    path.write_text(f"{good}\na,b,c,d\na,b,c,d,e\na,b,c,d\n", encoding="utf-8")
    rejects = read_shard(whole_file(str(path), "csv"), SOURCE).rejects
    shown = ", ".join(f"{line}: {why}" for line, why in rejects["line", "reason"].rows())
    print(f"bad record: fastscore names ({shown})", file=sys.stderr)
    for name, read in _record_readers(path).items():
        print(f"bad record: {name}: {_outcome(read, NAMES[:1])}", file=sys.stderr)


def _show_bad_lines(folder: Path) -> None:
    """Read two good lines with a bad one between them, by each reader."""
    good = b'{"event":"good"}'
    for fault, line in BAD_LINES.items():
        path = folder / "bad.jsonl"
        path.write_bytes(b"\n".join((good, line, good)) + b"\n")
        rejects = read_shard(whole_file(str(path), "jsonl"), LINES).rejects
        shown = ", ".join(f"{line}: {why}" for line, why in rejects["line", "reason"].rows())
        print(f"bad line, {fault}: fastscore names ({shown})", file=sys.stderr)
        for name, read in _line_readers(path).items():
            shown = _outcome(read, ("event", "step"))
            print(f"bad line, {fault}: {name}: {shown}", file=sys.stderr)


def _check_lines(outputs: dict[str, Any]) -> None:
    ours = outputs["fastscore"]
    assert ours.rows(named=True) == [
        {name: row.get(name) for name in KINDS} for row in outputs["json"]
    ]
    assert ours.equals(outputs["polars"])
    assert ours.equals(pl.DataFrame(pl.from_arrow(outputs["duckdb"])))


def _python_csv(path: Path) -> list[list[str]]:
    csv.field_size_limit(1 << 40)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def _arrow(path: Path) -> Any:
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=64 << 20),
        parse_options=pyarrow.csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=lambda row: "skip"
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(NAMES, pyarrow.string()), strings_can_be_null=False
        ),
    )


def _polars(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, schema=dict.fromkeys(NAMES, pl.String)).fill_null("")


def _record_readers(path: Path) -> dict[str, Callable[[], Any]]:
    """Return the readers of CSV records."""
    return {
        "fastscore": partial(_ours, path, "csv"),
        "python csv": partial(_python_csv, path),
        "pyarrow": partial(_arrow, path),
        "polars": partial(_polars, path),
        "duckdb": partial(_duckdb_csv, path),
    }


def _check(outputs: dict[str, Any]) -> None:
    ours = outputs["fastscore"]
    if "python csv" in outputs:
        header, *rows = outputs["python csv"]
        assert tuple(header) == NAMES
        assert ours.rows() == [tuple(row) for row in rows]
        assert ours.equals(pl.DataFrame(pl.from_arrow(outputs["pyarrow"])))
        assert ours.equals(outputs["polars"])
        assert ours.equals(pl.DataFrame(pl.from_arrow(outputs["duckdb"])).fill_null(""))
    else:
        for name in set(outputs) - {"fastscore"}:
            assert ours.rows(named=True) == outputs[name]


def _further_lines(rng: random.Random, folder: Path, size: float) -> Iterator[Case]:
    """Compare readers on non-ASCII lines, plain and escaped as by Python, and on traces."""
    lines = _lines(rng, size, WORDS_BEYOND)
    escaped = b"".join(
        b"%s\n" % json.dumps(orjson.loads(line)).encode() for line in lines.split(b"\n")[:-1]
    )
    for name, text in (("beyond ASCII", lines), ("beyond ASCII, escaped", escaped)):
        path = folder / "log.jsonl"
        path.write_bytes(text)
        n_kib = path.stat().st_size >> 10
        readers = _line_readers(path)
        yield Case(f"JSON Lines {name}", n_kib, readers, ("duckdb", 1.0), _check_lines, KIB)
    path = folder / "traces.jsonl"
    n_kib = write_traces(path, read_dialogues(SAMPLE), round(size / 3500), SEED) >> 10
    traces = {
        "fastscore": partial(_our_traces, path),
        "duckdb": partial(_duckdb_traces, path),
        "orjson": lambda: [orjson.loads(line) for line in path.read_bytes().splitlines()],
        "json": lambda: [json.loads(line) for line in path.read_bytes().splitlines()],
    }
    yield Case("JSON Lines of nested traces", n_kib, traces, ("duckdb", 1.0), _check_traces, KIB)


def cases(scale: float) -> Iterator[Case]:
    """Compare readers on large cells, long texts, small rows and documents."""
    keep_buffers()  # as a run does
    rng = random.Random(SEED)
    size = 40e6 * scale
    with tempfile.TemporaryDirectory() as folder:
        _show_bad_lines(Path(folder))
        _show_bad_records(Path(folder))
        path = Path(folder) / "log.jsonl"
        path.write_bytes(_lines(rng, size))
        readers = _line_readers(path)
        n_kib = path.stat().st_size >> 10
        yield Case("JSON Lines of miners", n_kib, readers, ("duckdb", 1.5), _check_lines, KIB)
        yield from _further_lines(rng, Path(folder), size)
        for kind in ("cells of JSON", "cells of text", "short rows"):
            rows = _rows(rng, kind, size)
            path = Path(folder) / "log.csv"
            out = io.StringIO(newline="")
            csv.writer(out).writerows([NAMES, *rows])
            path.write_text(out.getvalue(), encoding="utf-8", newline="")
            contenders = _record_readers(path)
            n_kib = path.stat().st_size >> 10
            yield Case(f"CSV, {kind}", n_kib, contenders, ("pyarrow", 1.0), _check, KIB)
        path = Path(folder) / "log.json"
        named = [dict(zip(NAMES, row, strict=True)) for row in _rows(rng, "short rows", size)]
        path.write_text(json.dumps(named, indent=1, ensure_ascii=False), encoding="utf-8")
        contenders = {
            "fastscore": partial(_ours, path, "json"),
            "python json": lambda: json.loads(path.read_bytes()),
        }
        yield Case("JSON document", path.stat().st_size >> 10, contenders, None, _check, KIB)


main = command(cases)

if __name__ == "__main__":
    main()
