"""Progress on stderr: live bars on a terminal, one line a stage elsewhere, or nothing."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, TextIO

from fastscore_jit.system import peak_memory

from fastscore.errors import UsageError
from fastscore.terminal import note_console, stderr_is_terminal, write_note

if TYPE_CHECKING:
    from rich.progress import Progress


OnProgress = Callable[[str, int, int], None]
"""Called with a stage, its tasks that are done, and all its tasks; while texts are embedded with
``"embed"``, the texts that are embedded, and all that are to be embedded."""

SECONDS_BETWEEN_LINES = 30.0
WIDE = 100
"""Columns of a terminal from which on a bar is long."""
POLL_SECONDS = 0.5
"""How often it is looked whether a line is due."""


class StageProgress(Protocol):
    """Where a stage says what it has done."""

    def advance(self, counts: Mapping[str, int], share: float | None = None) -> None:
        """One more task is done; `counts` (rows, texts, ...) add up to rates.

        `share` is how much of the stage is done, if its tasks take times of other orders.
        """

    def embedded(self, texts: int, cost: float, begun: int) -> None:
        """Count texts that a task has embedded before it is done."""

    def lost(self, worker: str, tasks: int) -> None:
        """Count a worker that died, and the tasks that are done again for it."""


class Reporter(Protocol):
    """Shows the progress of a run's stages."""

    def stage(
        self, name: str, total: int, texts: int | None = None
    ) -> AbstractContextManager[StageProgress]:
        """Open a stage of `total` tasks, or of so many texts that it embeds."""

    def note(self, text: str) -> None:
        """Say something that is worth a line."""


_STAGE: ContextVar[StageProgress | None] = ContextVar("fastscore_stage", default=None)


def current_stage() -> StageProgress | None:
    """Return the stage that this thread works for; None in a process of its own."""
    return _STAGE.get()


@contextmanager
def told_to(stage: StageProgress | None) -> Iterator[None]:
    """Let tasks that begin meanwhile tell a stage what they embed; None tells nobody."""
    token = _STAGE.set(stage)
    try:
        yield
    finally:
        _STAGE.reset(token)


class _Counter:
    """What a stage has done, and what is left of it.

    Texts whose vectors are in the store are in no count: neither in rates nor in what is left.
    """

    def __init__(self, name: str, total: int, texts: int | None = None) -> None:
        self.name, self.total, self.texts, self.done = name, total, texts, 0
        self.counts: dict[str, int] = {}
        self.reached: float | None = None
        self.deaths = self.retries = 0
        self.ticked = self.begun = 0  # texts, of all tasks
        self.open_cost, self.open_begun = 0.0, 0  # of tasks that are not done
        self.started = time.monotonic()
        self.base: tuple[float, float] | None = None

    def advance(self, counts: Mapping[str, int], share: float | None = None) -> None:
        self.done += 1
        self.reached = share
        self.open_cost, self.open_begun = 0.0, 0
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    def embedded(self, texts: int, cost: float, begun: int) -> None:
        self.ticked += texts
        self.begun += begun
        self.open_cost += cost
        self.open_begun += begun
        if self.base is None:
            self.base = time.monotonic(), self.share()

    def lost(self, worker: str, tasks: int) -> None:
        self.deaths += 1
        self.retries += tasks

    @property
    def embedded_texts(self) -> int:
        return max(self.ticked, self.counts.get("texts", 0) if self.texts is not None else 0)

    def share(self) -> float:
        """Return which share of the stage is done."""
        if self.reached is not None:
            return self.reached
        if self.texts is not None:
            done = self.counts.get("texts", 0) + self.open_cost
            return min(1.0, done / self.texts) if self.texts else 1.0
        part = self.open_cost / self.open_begun if self.open_begun else 0.0
        return (self.done + min(part, 1.0)) / self.total if self.total else 1.0

    @property
    def eta(self) -> str:
        """How long the rest takes at the mean rate so far, without the loading of the model."""
        then, share_then = self.base or (self.started, 0.0)
        share, seconds = self.share(), time.monotonic() - then
        if share <= share_then or seconds <= 0.0:
            return "-:--:--"
        left = seconds * (1.0 - share) / (share - share_then)
        return str(timedelta(seconds=round(left)))

    @property
    def rates(self) -> list[str]:
        """What is done of everything that is counted, and how much a second."""
        seconds = max(time.monotonic() - self.started, 1e-9)
        counts = {name: f"{value:,} {name}" for name, value in self.counts.items()}
        values = dict(self.counts)
        if self.texts is not None:
            counts["texts"] = f"{self.embedded_texts:,}/{self.texts:,} texts"
            values["texts"] = self.embedded_texts
        elif self.begun:
            counts["embedded"] = f"{self.ticked:,}/{self.begun:,} texts embedded"
            values["embedded"] = self.ticked
        parts = [f"{count} ({values[name] / seconds:,.0f}/s)" for name, count in counts.items()]
        if self.deaths:
            parts.append(f"{self.deaths} workers died, {self.retries} tasks done again")
        return parts

    def line(self) -> str:
        parts = [f"{self.done}/{self.total} tasks", f"{time.monotonic() - self.started:.1f} s"]
        parts += self.rates
        if self.done < self.total:
            parts.append(f"eta {self.eta}")
        parts.append(f"peak memory {peak_memory() / 2**20:,.0f} MiB")
        return f"{self.name}: " + ", ".join(parts)


class SilentReporter:
    """Shows nothing."""

    @contextmanager
    def stage(self, name: str, total: int, texts: int | None = None) -> Iterator[StageProgress]:
        """Open a stage that is not shown."""
        yield _Counter(name, total, texts)

    def note(self, text: str) -> None:
        """Say nothing."""


class _CalledStage(_Counter):
    def __init__(self, name: str, total: int, texts: int | None, call: OnProgress) -> None:
        super().__init__(name, total, texts)
        self.call = call
        self._tell()

    def advance(self, counts: Mapping[str, int], share: float | None = None) -> None:
        super().advance(counts, share)
        self._tell()

    def embedded(self, texts: int, cost: float, begun: int) -> None:
        super().embedded(texts, cost, begun)
        if self.texts is None:
            self.call("embed", self.ticked, self.begun)
        else:
            self._tell()

    def _tell(self) -> None:
        if self.texts is None:
            self.call(self.name, self.done, self.total)
        else:
            self.call(self.name, min(self.embedded_texts, self.texts), self.texts)


class CallingReporter(SilentReporter):
    """Calls a function with the progress of each stage."""

    def __init__(self, call: OnProgress) -> None:
        self.call = call

    @contextmanager
    def stage(self, name: str, total: int, texts: int | None = None) -> Iterator[StageProgress]:
        """Open a stage whose progress is told."""
        stage = _CalledStage(name, total, texts, self.call)
        with told_to(stage):
            yield stage


class _LineStage(_Counter):
    def __init__(
        self, name: str, total: int, texts: int | None, note: Callable[[str], None]
    ) -> None:
        super().__init__(name, total, texts)
        self.note, self.told = note, self.started
        self._telling = threading.Lock()

    def advance(self, counts: Mapping[str, int], share: float | None = None) -> None:
        super().advance(counts, share)
        self.tell_if_due()

    def tell_if_due(self) -> None:
        """Print a line if the last one is long ago, whether or not a task was done since."""
        with self._telling:
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
    def stage(self, name: str, total: int, texts: int | None = None) -> Iterator[StageProgress]:
        """Open a stage that is shown when it ends, and while it lasts."""
        stage = _LineStage(name, total, texts, self.note)
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(POLL_SECONDS):
                stage.tell_if_due()

        watcher = threading.Thread(target=watch, name="fastscore-progress", daemon=True)
        watcher.start()
        try:
            with told_to(stage):
                yield stage
        finally:
            ended.set()
            watcher.join()
        self.note(stage.line())

    def note(self, text: str) -> None:
        """Print a line."""
        write_note(text, self.stream)


class _LiveStage(_Counter):
    def __init__(self, name: str, total: int, texts: int | None, bars: "Progress") -> None:
        super().__init__(name, total, texts)
        self.bars = bars
        self.bar_width = 24 if bars.console.width >= WIDE else 8
        self.task = bars.add_task(name, total=1.0, stage=self)

    def advance(self, counts: Mapping[str, int], share: float | None = None) -> None:
        super().advance(counts, share)
        self.bars.update(self.task, completed=self.share())

    def embedded(self, texts: int, cost: float, begun: int) -> None:
        super().embedded(texts, cost, begun)
        self.bars.update(self.task, completed=self.share())

    @property
    def first_rates(self) -> str:
        """As many of the rates as fit behind the counts and times, which are always shown."""
        before = f"{self.name:<8} {self.done}/{self.total} 0:00:00 eta {self.eta}  "
        room = self.bars.console.width - len(before) - self.bar_width
        rates = self.rates
        while rates and len(", ".join(rates)) > room:
            rates.pop()
        return ", ".join(rates)


class LiveReporter:
    """A bar a stage with rates and the time that remains: for terminals."""

    def __init__(self) -> None:
        self.console = note_console()

    @contextmanager
    def stage(self, name: str, total: int, texts: int | None = None) -> Iterator[StageProgress]:
        """Open a stage that is shown live."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=24 if self.console.width >= WIDE else 8),
            TextColumn("{task.fields[stage].done}/{task.fields[stage].total}"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TextColumn("{task.fields[stage].eta}", style="progress.remaining"),
            TextColumn("{task.fields[stage].first_rates}"),
        )
        with Progress(*columns, console=self.console, transient=True) as bars:
            stage = _LiveStage(name, total, texts, bars)
            with told_to(stage):
                yield stage
        self.note(stage.line())

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
    if callable(progress):
        return CallingReporter(progress)
    if not isinstance(progress, bool):
        raise UsageError(f"progress is {progress!r}, expected True, False or a function.")
    return reporter(quiet=not progress)
