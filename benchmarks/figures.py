"""Published figures of benchmarks: ours beside a named peer's, and whether an aim was held.

A benchmark publishes each figure when it is known. Run by itself it prints its own table. With
``python -m benchmarks`` all figures end in one table and, if requested, one JSON file.
"""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "fastscore-dialogue",
    "polars",
    "numpy",
    "numba",
    "onnxruntime",
    "tokenizers",
    "faiss-cpu",
    "torch",
    "sentence-transformers",
)


def describe_host() -> dict[str, str]:
    """Return the processor, system, load, and versions of the measured packages, by name."""
    described = {
        "processor": f"{processor()}, {os.cpu_count()} visible cores",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "load": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
    }
    for name in PACKAGES:
        try:
            described[name] = version(name)
        except PackageNotFoundError:
            described[name] = "not installed"
    return described


def processor() -> str:
    """Return the processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


FILE_VARIABLE = "FASTSCORE_FIGURES"
"""The variable with the file to append figures to, one JSON object per line. Unset: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One comparison.

    Parameters
    ----------
    what
        Description of the measurement.
    rows
        The number of rows, texts, dialogues or KiB that ours processed.
    unit
        The unit of `ours` and `theirs`.
    ours
        Our figure.
    peer, theirs
        The peer, and its figure; empty and None without a peer.
    ratio
        How many times as good ours is.
    aim
        The minimum ratio aimed at, at full size; None without an aim.
    """

    what: str
    rows: int
    unit: str
    ours: float
    peer: str = ""
    theirs: float | None = None
    ratio: float | None = None
    aim: float | None = None

    @property
    def held(self) -> bool | None:
        """Whether the aim was held; None without an aim."""
        return None if self.aim is None or self.ratio is None else self.ratio >= self.aim


def publish(figures: Iterable[Figure]) -> None:
    """Append figures to the file in the environment, if set."""
    path = os.environ.get(FILE_VARIABLE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(figure)) + "\n" for figure in figures)


def read_figures(path: Path) -> list[Figure]:
    """Read the figures published to a file."""
    if not path.exists():
        return []
    return [Figure(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def table(benchmark: str, figures: Sequence[Figure], *, judged: bool) -> Iterator[str]:
    """Return the rows of a benchmark's figures in the common Markdown table.

    Aims are for full size. At a small size they are shown, and not judged.
    """
    for figure in figures:
        theirs = "" if figure.theirs is None else _number(figure.theirs)
        ratio = "" if figure.ratio is None else f"{figure.ratio:,.2f}x"
        aim = "" if figure.aim is None else f"{figure.aim:.3g}x"
        held = {None: "", True: "held", False: "SHORT"}[figure.held if judged else None]
        yield (
            f"| {benchmark} | {figure.what} | {figure.rows:,} "
            f"| {_number(figure.ours)} {figure.unit} "
            f"| {figure.peer} | {theirs} | {ratio} | {aim} | {held} |"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


HEADER = (
    "| benchmark | what | how many | ours | peer | theirs | ratio | aim | |\n"
    "|---|---|--:|--:|---|--:|--:|--:|---|"
)
