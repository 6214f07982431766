"""Reading whole files, one after another, without planning which dialogues they hold."""

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fastscore.logs.file_ranges import FileRange
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.integrity.file_state import FileState, read_whole
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.logs.read.parquet import parquet_rows
from fastscore.logs.read.rows import Part, read_parts
from fastscore.suites.declarations import Source


def read_files(
    files: Sequence[InputFile],
    source: Source,
    *,
    threads: int = 1,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Part]:
    """Read files in order; memory is bounded by a few batches.

    Parameters
    ----------
    files, source
        What to read, and by which declared columns.
    threads
        How many threads scan at once; the result does not depend on it.
    limits
        What the reading may take.

    Raises
    ------
    InputError
        When a file cannot be read, or takes too much.
    """
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        for format, group in itertools.groupby(files, lambda file: file.format):
            if format == "parquet":
                for file in group:
                    yield from read_parts([_parquet_range(file, Path(scratch), limits)], source)
            else:
                ranges = [
                    FileRange(
                        file.path,
                        file.location,
                        file.format,
                        file.compression,
                        0,
                        file.size,
                        limits=limits,
                    )
                    for file in group
                ]
                yield from read_parts(ranges, source, threads=threads)


def _parquet_range(file: InputFile, scratch: Path, limits: Limits) -> FileRange:
    """Make the range that a whole Parquet file is, unpacked where it is packed once more."""
    path = file.location
    if file.compression != "none":
        state = FileState(file, path=path, compression=file.compression, limits=limits)
        read_whole(state, scratch)
        path = state.path
    return FileRange(file.path, path, "parquet", "none", 0, parquet_rows(path, file.path))
