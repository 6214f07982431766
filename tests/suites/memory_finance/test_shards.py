"""A trace is cut into shards line by line, and no number depends on it."""

import gzip
from pathlib import Path

from fastscore import open_run
from fastscore.run.drive import execute
from fastscore.run.progress import SilentReporter
from fastscore.run.request import Request

PUBLISHED = Path(__file__).parent / "published"
COPIES = 8


def test_shards_change_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "dialog_trace.jsonl"
    content = [gzip.decompress(path.read_bytes()) for path in PUBLISHED.glob("*/dialog_trace*.gz")]
    trace.write_bytes(b"".join(sorted(content)) * COPIES)
    size = trace.stat().st_size
    for name, shard_bytes in (("whole", 1 << 30), ("cut", size // COPIES)):
        request = Request(
            suite="memory_finance",
            inputs=(str(trace),),
            output=tmp_path / name,
            options={"legacy_files": True},
            shard_bytes=shard_bytes,
            workers=2,
        )
        execute(request, SilentReporter())
    whole, cut = open_run(tmp_path / "whole"), open_run(tmp_path / "cut")
    assert whole.manifest.shards == 1
    assert cut.manifest.shards >= COPIES
    for table in whole.manifest.tables:
        assert whole.scan(table).collect().equals(cut.scan(table).collect()), table
    assert whole.summary.equals(cut.summary)
    files = sorted(path.name for path in (tmp_path / "whole" / "legacy").iterdir())
    assert files
    for name in files:
        one, other = (tmp_path / run / "legacy" / name for run in ("whole", "cut"))
        assert one.read_bytes() == other.read_bytes(), name
