"""Progress on stderr: live bars on a terminal, one line a stage elsewhere, or nothing."""

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from fastscore.terminal import note_console, stderr_is_terminal, write_note

if TYPE_CHECKING:
    from rich.progress import Progress


OnProgress = Callable[[str, int, int], None]
"""Called with a stage, its tasks that are done, and all its tasks."""

SECONDS_BETWEEN_LINES = 30.0


class StageProgress(Protocol):
    """Where a stage says what it has done."""

    def advance(self, counts: Mapping[str, int]) -> None:
        """One more task is done; `counts` (rows, texts, ...) add up to rates."""

    def lost(self, worker: str, tasks: int) -> None:
        """Count a worker that died, and the tasks that are done again for it."""


class Reporter(Protocol):
    """Shows the progress of a run's stages."""

    def stage(self, name: str, total: int) -> AbstractContextManager[StageProgress]:
        """Open a stage of `total` tasks."""

    def note(self, text: str) -> None:
        """Say something that is worth a line."""


class _Counter:
    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.done = name, total, 0
        self.counts: dict[str, int] = {}
        self.deaths = self.retries = 0
        self.started = time.monotonic()

    def advance(self, counts: Mapping[str, int]) -> None:
        self.done += 1
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    def lost(self, worker: str, tasks: int) -> None:
        self.deaths += 1
        self.retries += tasks

    def rates(self) -> str:
        seconds = max(time.monotonic() - self.started, 1e-9)
        parts = [
            f"{value:,} {name} ({value / seconds:,.0f}/s)" for name, value in self.counts.items()
        ]
        if self.deaths:
            parts.append(f"{self.deaths} workers died, {self.retries} tasks done again")
        return ", ".join(parts)

    def line(self) -> str:
        seconds = time.monotonic() - self.started
        parts = [f"{self.done}/{self.total} tasks", f"{seconds:.1f} s"]
        rates = self.rates()
        if rates:
            parts.append(rates)
        parts.append(f"peak memory {peak_memory_bytes() / 2**20:,.0f} MiB")
        return f"{self.name}: " + ", ".join(parts)


class SilentReporter:
    """Shows nothing."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        """Open a stage that is not shown."""
        yield _Counter(name, total)

    def note(self, text: str) -> None:
        """Say nothing."""


class _CalledStage(_Counter):
    def __init__(self, name: str, total: int, call: OnProgress) -> None:
        super().__init__(name, total)
        self.call = call
        call(name, 0, total)

    def advance(self, counts: Mapping[str, int]) -> None:
        super().advance(counts)
        self.call(self.name, self.done, self.total)


class CallingReporter(SilentReporter):
    """Calls a function with the progress of each stage."""

    def __init__(self, call: OnProgress) -> None:
        self.call = call

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        """Open a stage whose progress is told."""
        yield _CalledStage(name, total, self.call)


class _LineStage(_Counter):
    def __init__(self, name: str, total: int, note: Callable[[str], None]) -> None:
        super().__init__(name, total)
        self.note, self.told = note, self.started

    def advance(self, counts: Mapping[str, int]) -> None:
        super().advance(counts)
        now = time.monotonic()
        if now - self.told >= SECONDS_BETWEEN_LINES and self.done < self.total:
            self.told = now
            self.note(self.line())


class LineReporter:
    """A line a stage when it ends, and every 30 seconds before: for logs and pipes.

    Lines go to stderr, unless a stream is named.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        """Open a stage that is shown when it ends."""
        counter = _LineStage(name, total, self.note)
        yield counter
        self.note(counter.line())

    def note(self, text: str) -> None:
        """Print a line."""
        write_note(text, self.stream)


class _LiveStage(_Counter):
    def __init__(self, name: str, total: int, bars: "Progress") -> None:
        super().__init__(name, total)
        self.bars = bars
        self.task = bars.add_task(name, total=total, rates="")

    def advance(self, counts: Mapping[str, int]) -> None:
        super().advance(counts)
        self.bars.update(self.task, completed=self.done, rates=self.rates())


class LiveReporter:
    """A bar a stage with rates and the time that remains: for terminals."""

    def __init__(self) -> None:
        self.console = note_console()

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[StageProgress]:
        """Open a stage that is shown live."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[rates]}"),
        )
        with Progress(*columns, console=self.console, transient=True) as bars:
            counter = _LiveStage(name, total, bars)
            yield counter
        self.note(counter.line())

    def note(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, markup=False, highlight=False)


def reporter(*, quiet: bool) -> Reporter:
    """Return the reporter for this process: silent, live, or a line a stage."""
    if quiet:
        return SilentReporter()
    return LiveReporter() if stderr_is_terminal() else LineReporter()


def chosen_reporter(progress: bool | OnProgress) -> Reporter:
    """Return the reporter that a caller asks for: as on the command line, a call, or none."""
    return CallingReporter(progress) if callable(progress) else reporter(quiet=not progress)


def peak_memory_bytes() -> int:
    """Return the largest resident memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
