"""Installed size of the core and of each extra, from a wheel, each in a new environment."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.figures import Figure, describe_host, publish

ROOT = Path(__file__).parent.parent
SOURCES = ("fastscore", "kernels", "models", "hatch_build.py", "pyproject.toml", "README.md")
CORE = "core"
EXTRAS = ("embed", "stats", "plots", "compile", "all")
MEGABYTE = 1e6
SHOWN = 12
MOST_OF_CORE = 350.0
SUITES = {
    "score_dialogue": ["--lex-weight", "1"],
    "memory_finance": [],
    "preference_shift": ["--catalogue", "{}/catalogue.jsonl", "--segments", "metadata"],
    "guest_simulation": ["--personas", "{}/personas.json"],
    "group_travel": [],
}
WITHOUT_MODEL = ("preference_shift", "group_travel")
MEASURE = """
import json, os
from importlib.metadata import distributions
sizes = {}
for each in distributions():
    if each.name not in ("pip", "setuptools"):
        places = [each.locate_file(file) for file in each.files or ()]
        sizes[each.name] = sum(os.path.getsize(place) for place in places if os.path.isfile(place))
print(json.dumps(sizes))
"""


def build_wheel(folder: Path) -> Path:
    """Build a wheel of this checkout with the kernels of this processor's level.

    Wheels of a release have every level (`make wheel`).
    """
    copy = folder / "source"
    copy.mkdir()
    for name in (*SOURCES, "LICENSE"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
    shipped = copy / "kernels" / "fastscore_jit" / "compiled"
    shutil.rmtree(shipped, ignore_errors=True)
    compile_words = ["-m", "fastscore", "kernels", "compile", "--quiet", "--ship", str(shipped)]
    subprocess.run([sys.executable, *compile_words], check=True, cwd=ROOT)
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, *words, "-w", str(folder), str(copy)], check=True)
    return next(folder.glob("*.whl"))


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """Install the wheel into a new environment; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    what = str(wheel) if extra == CORE else f"{wheel}[{extra}]"
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([str(python), *words, what], check=True)
    return python


def score_suites(python: Path, folder: Path, **environment: str) -> None:
    """Score the example of each suite without a model, from the installed wheel alone."""
    settings = {"FASTSCORE_CACHE": str(folder / "cache"), "PATH": "/usr/bin:/bin", **environment}
    if os.name == "nt":
        settings["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    for suite, options in SUITES.items():
        example = folder / suite
        words = [*options, *(["--embedder", "none"] if suite in WITHOUT_MODEL else [])]
        commands = [
            ["example", suite, "-o", str(example)],
            ["score", suite, str(example / "logs"), "-o", str(folder / f"{suite}-run"), "-q"],
        ]
        commands[1] += [word.format(example) for word in words]
        for command in commands:
            subprocess.run(
                [str(python), "-I", "-m", "fastscore", *command],
                check=True,
                stdout=subprocess.DEVNULL,
                env=settings,
            )


def _figure(extra: str, packages: int, megabytes: float) -> Figure:
    found = Figure(what=f"installed: {extra}", rows=packages, unit="MB", ours=megabytes)
    if extra != CORE:
        return found
    ratio = MOST_OF_CORE / megabytes
    limit = {"peer": "the most that it may", "theirs": MOST_OF_CORE}
    return replace(found, **limit, ratio=ratio, aim=1.0)


@click.command()
@click.option("--wheel", type=click.Path(exists=True, path_type=Path), help="Default: build one.")
@click.option("--extra", "extras", multiple=True, type=click.Choice([CORE, *EXTRAS]))
def main(wheel: Path | None, extras: Sequence[str]) -> None:
    """Install the wheel, print sizes by package, and score all suites with the core."""
    click.echo(describe_host())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = wheel or build_wheel(folder)
        for extra in extras or (CORE, *EXTRAS):
            python = install(built.resolve(), extra, folder / f"venv-{extra}")
            if extra == CORE:
                score_suites(python, folder)
            found = subprocess.run(
                [str(python), "-I", "-c", MEASURE], check=True, stdout=subprocess.PIPE, text=True
            )
            sizes: dict[str, int] = json.loads(found.stdout)
            total = sum(sizes.values()) / MEGABYTE
            click.echo(f"\n{extra}: {total:,.0f} MB in {len(sizes)} packages")
            for package in sorted(sizes, key=sizes.__getitem__, reverse=True)[:SHOWN]:
                click.echo(f"  {package:<24} {sizes[package] / MEGABYTE:7.1f} MB")
            publish([_figure(extra, len(sizes), total)])
            shutil.rmtree(folder / f"venv-{extra}")


if __name__ == "__main__":
    main()
