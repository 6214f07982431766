"""Progress on stderr: live bars on a terminal, one line a stage elsewhere, or nothing."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

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
BRIEF_SECONDS = 10.0
"""A brief stage that ends earlier has no line."""


class StageProgress:
    """What a stage has done, and what is left of it; `changed` is called when that changes.

    Texts whose vectors are in the store are in no count: neither in rates nor in what is left.
    """

    def __init__(self, name: str, total: int, texts: int | None = None, *, width: int = 0) -> None:
        self.name, self.total, self.texts, self.done = name, total, texts, 0
        self.counts: dict[str, int] = {}
        self.reached: float | None = None
        self.deaths = self.retries = 0
        self.ticked = self.begun = 0  # texts, of all tasks
        self.open_cost, self.open_begun = 0.0, 0  # of tasks that are not done
        self.started = time.monotonic()
        self.base: tuple[float, float] | None = None
        self.width = width  # columns that a bar leaves for counts, times and rates
        self.changed: Callable[[], object] = lambda: None

    def advance(self, counts: Mapping[str, int], share: float | None = None) -> None:
        """Count one more task; `counts` (rows, texts, ...) add up to rates.

        `share` is how much of the stage is done, if its tasks take times of other orders.
        """
        self.done += 1
        self.reached = share
        self.open_cost, self.open_begun = 0.0, 0
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value
        self.changed()

    def embedded(self, texts: int, cost: float, begun: int) -> None:
        """Count texts that a task has embedded before it is done."""
        self.ticked += texts
        self.begun += begun
        self.open_cost += cost
        self.open_begun += begun
        if self.base is None:
            self.base = time.monotonic(), self.share()
        self.changed()

    def lost(self, worker: str, tasks: int) -> None:
        """Count a worker that died, and the tasks that are done again for it."""
        self.deaths += 1
        self.retries += tasks

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self.started

    @property
    def embedded_texts(self) -> int:
        """How many texts are embedded by now."""
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
        seconds = max(self.seconds, 1e-9)
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

    @property
    def first_rates(self) -> str:
        """As many of the rates as fit behind the counts and times, which are always shown."""
        before = f"{self.name:<8} {self.done}/{self.total} 0:00:00 eta {self.eta}  "
        rates = self.rates
        while rates and len(", ".join(rates)) > self.width - len(before):
            rates.pop()
        return ", ".join(rates)

    def line(self) -> str:
        """Return the line of a log."""
        parts = [f"{self.done}/{self.total} tasks", f"{self.seconds:.1f} s"]
        parts += self.rates
        if self.done < self.total:
            parts.append(f"eta {self.eta}")
        parts.append(f"peak memory {peak_memory() / 2**20:,.0f} MiB")
        return f"{self.name}: " + ", ".join(parts)


class Reporter(Protocol):
    """Shows the progress of a run's stages."""

    def stage(
        self, name: str, total: int, texts: int | None = None, *, brief: bool = False
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


class SilentReporter:
    """Shows nothing."""

    @contextmanager
    def stage(
        self, name: str, total: int, texts: int | None = None, *, brief: bool = False
    ) -> Iterator[StageProgress]:
        """Open a stage that is not shown."""
        yield StageProgress(name, total, texts)

    def note(self, text: str) -> None:
        """Say nothing."""


class CallingReporter(SilentReporter):
    """Calls a function with the progress of each stage."""

    def __init__(self, call: OnProgress) -> None:
        self.call = call

    @contextmanager
    def stage(
        self, name: str, total: int, texts: int | None = None, *, brief: bool = False
    ) -> Iterator[StageProgress]:
        """Open a stage whose progress is told."""
        stage, ticked = StageProgress(name, total, texts), 0

        def tell() -> None:
            nonlocal ticked
            if texts is not None:
                self.call(name, min(stage.embedded_texts, texts), texts)
            elif stage.ticked > ticked:
                self.call("embed", stage.ticked, stage.begun)
            else:
                self.call(name, stage.done, total)
            ticked = stage.ticked

        stage.changed = tell
        tell()
        with told_to(stage):
            yield stage


class LineReporter:
    """A line a stage when it ends, and every 30 seconds before: for logs and pipes."""

    @contextmanager
    def stage(
        self, name: str, total: int, texts: int | None = None, *, brief: bool = False
    ) -> Iterator[StageProgress]:
        """Open a stage that is shown when it ends, and while it lasts."""
        stage = StageProgress(name, total, texts)
        told, telling, ended = stage.started, threading.Lock(), threading.Event()

        def tell_if_due() -> None:
            nonlocal told
            with telling:
                now = time.monotonic()
                if now - told >= SECONDS_BETWEEN_LINES and stage.done < total:
                    told = now
                    self.note(stage.line())

        def watch() -> None:  # a line is due whether or not a task was done since
            while not ended.wait(POLL_SECONDS):
                tell_if_due()

        stage.changed = tell_if_due
        watcher = threading.Thread(target=watch, name="fastscore-progress", daemon=True)
        watcher.start()
        try:
            with told_to(stage):
                yield stage
        finally:
            ended.set()
            watcher.join()
        if not brief or stage.seconds >= BRIEF_SECONDS:
            self.note(stage.line())

    def note(self, text: str) -> None:
        """Print a line."""
        write_note(text)


class LiveReporter:
    """A bar a stage with rates and the time that remains: for terminals."""

    def __init__(self) -> None:
        self.console = note_console()
        self.bars: Progress | None = None

    @contextmanager
    def stage(
        self, name: str, total: int, texts: int | None = None, *, brief: bool = False
    ) -> Iterator[StageProgress]:
        """Open a stage that is shown live."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        bar_width = 24 if self.console.width >= WIDE else 8
        columns = (
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=bar_width),
            TextColumn("{task.fields[stage].done}/{task.fields[stage].total}"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TextColumn("{task.fields[stage].eta}", style="progress.remaining"),
            TextColumn("{task.fields[stage].first_rates}"),
        )
        stage = StageProgress(name, total, texts, width=self.console.width - bar_width)
        with Progress(*columns, console=self.console, transient=True) as bars:
            task = bars.add_task(name, total=1.0, stage=stage)
            stage.changed = lambda: bars.update(task, completed=stage.share())
            self.bars = bars
            with told_to(stage):
                yield stage
        if not brief or stage.seconds >= BRIEF_SECONDS:
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
