"""Small real logs of every suite, with their licences, to try a suite without own logs."""

import gzip
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from fastscore.errors import RunError, UsageError, counted, did_you_mean
from fastscore.files import check_output
from fastscore.suites.registry import load_suite

_LOGS = "logs"


@dataclass(frozen=True, slots=True, repr=False)
class Example:
    """An example as it was written."""

    suite: str  # the suite's name
    folder: Path
    files: tuple[tuple[str, int], ...]  # its files in the folder, by name, and their bytes
    options: tuple[str, ...]  # the arguments of `fastscore score` after its logs
    finds: str  # what `finding` shows, a sentence

    @property
    def logs(self) -> Path:
        """The folder of its logs."""
        return self.folder / _LOGS

    def command(self, run: str) -> str:
        """Return the command that scores it and writes a run directory."""
        words = ["fastscore", "score", self.suite, str(self.logs), "-o", run, *self.options]
        return shlex.join(words)

    def __repr__(self) -> str:
        """Show what to type, in Python and in a shell."""
        flags = [each.removeprefix("--").replace("-", "_") for each in self.options[::2]]
        given = {
            name: value if name == "lex_weight" else None if value == "none" else repr(value)
            for name, value in zip(flags, self.options[1::2], strict=True)
        }
        embedder = f", embedder={given.pop('embedder')}" if "embedder" in given else ""
        own = ", ".join(f"{name}={value}" for name, value in given.items())
        options = f"fastscore.{load_suite(self.suite).options.__name__}({own})"
        return (
            f"Example of {self.suite}: {counted(len(self.files), 'files')} in {self.folder}\n"
            f"  fastscore.score({str(self.logs)!r}, {options}{embedder})\n"
            f"  {self.command('run')}\n{self.finds}"
        )

    def finding(self, run: str) -> str:
        """Return the command that shows what a scored run of it finds."""
        return "fastscore " + str(_declared()[self.suite]["then"]).format(
            run=shlex.quote(run), folder=shlex.quote(str(self.folder))
        )


def example_names() -> tuple[str, ...]:
    """Return the suites with an example, sorted."""
    return tuple(sorted(_declared()))


def example_options(suite: str, folder: Path) -> tuple[str, ...]:
    """Return the arguments that score a suite's example, after its logs."""
    return tuple(each.format(folder=folder) for each in _declared()[suite]["options"])


def write_example(suite: str, folder: Path) -> Example:
    """Write a suite's example into a new folder, or one that holds the example."""
    declared = _declared()
    if suite not in declared:
        raise UsageError(f"There is no example of {suite!r}.", did_you_mean(suite, declared))
    found = dict(_contents(_folder() / suite))
    check_output(folder, "an example", {Path(name).parts[0] for name in found})
    try:
        for name, data in found.items():
            path = folder / name
            if path.exists() and path.read_bytes() != data:
                raise UsageError(
                    f"{path} exists already and is not one of the example's files.",
                    "Name another folder as output.",
                )
        for name, data in found.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except OSError as error:
        raise RunError(
            f"{folder}: the example cannot be written there ({error.strerror}).",
            "Name another folder as output.",
        ) from error
    sizes = tuple((name, len(data)) for name, data in found.items())
    finds = str(declared[suite]["finds"])
    return Example(suite, folder, sizes, example_options(suite, folder), finds)


def _folder() -> Traversable:
    return files("fastscore") / "example_logs"


@cache
def _declared() -> dict[str, dict[str, Any]]:
    return tomllib.loads((_folder() / "examples.toml").read_text(encoding="utf-8"))


def _contents(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the files of an example, unpacked, by name."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _contents(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(".gz"):
            name = entry.name.removesuffix(".gz")
            yield above + name, gzip.decompress(entry.read_bytes())
        else:
            yield above + entry.name, entry.read_bytes()
