"""What kernels take to compile: processor seconds of each, beside Numba's own way.

Both sides compile the same functions to the same object files, in a process each. Numba by itself
runs all of LLVM on every function that a kernel calls, makes machine code of each, and looks in it
for closures, array expressions and the like; `fastscore_jit.building` does neither.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import click

from benchmarks.figures import Figure, describe_host, publish

AIM = 1.5
QUICK = ("fastscore_kernels.numbering:_number_texts", "fastscore_kernels.sets:_jaccard")
_SIDES = ("ours", "numba")
_OURS_ALONE = {
    "_Functions": ("get_pointer_to_function", "_optimize_final_module", "_finalize_specific"),
    "_Codegen": ("_add_module", "set_env"),
}


def seconds_by_kernel(side: str, names: Sequence[str]) -> dict[str, float]:
    """Compile kernels, all without a name, in another process; the largest first.

    Returns
    -------
    dict
        Processor seconds of each.
    """
    from fastscore_jit.objects import processor_level

    level = processor_level()
    settings = {
        **os.environ,
        "NUMBA_CPU_NAME": level.processor,
        "NUMBA_CPU_FEATURES": level.features,
        "NUMBA_DISABLE_INTEL_SVML": "1",
    }
    command = [sys.executable, "-m", "benchmarks.compile_kernels", "--side", side, *names]
    done = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _compile(side: str, names: Sequence[str]) -> dict[str, float]:
    """Compile kernels in this process, which does nothing else."""
    import time

    from fastscore_jit import building
    from fastscore_jit.objects import processor_level, reachable_functions

    from fastscore.run.kernels import every_kernel

    if side == "numba":
        _undo(building)
    kernels = [each for each in every_kernel() if not names or each.identity in names]
    building.build(
        min(kernels, key=_size(reachable_functions)), processor_level()
    )  # what is made only once
    seconds = {}
    for kernel in sorted(kernels, key=_size(reachable_functions), reverse=True):
        started = time.process_time()
        building.build(kernel, processor_level())
        seconds[kernel.identity] = time.process_time() - started
    return seconds


def _size(reach: Any) -> Any:
    return lambda kernel: sum(reach(kernel).values())


def _undo(building: Any) -> None:
    """Have Numba compile as it does by itself."""
    building._SKIPPED_PASSES = frozenset()
    for name, methods in _OURS_ALONE.items():
        for method in methods:
            delattr(getattr(building, name), method)


@click.command()
@click.option("--quick", is_flag=True, help="Two small kernels.")
@click.option("--side", type=click.Choice(_SIDES), hidden=True)
@click.argument("kernels", nargs=-1)
def main(quick: bool, side: str | None, kernels: tuple[str, ...]) -> None:
    """Compile KERNELS (module:name; all without one) both ways."""
    if side is not None:
        click.echo(json.dumps(_compile(side, kernels)))
        return
    click.echo(describe_host())
    ours, theirs = (seconds_by_kernel(each, QUICK if quick else kernels) for each in _SIDES)
    click.echo("| kernel | Numba's own way, s | ours, s |\n|---|--:|--:|")
    for name in sorted(theirs, key=lambda each: -theirs[each]):
        click.echo(f"| `{name}` | {theirs[name]:.2f} | {ours[name]:.2f} |")
    own, others = sum(ours.values()), sum(theirs.values())
    click.echo(f"| all {len(ours)} | {others:.2f} | {own:.2f} |")
    publish(
        [
            Figure(
                what="kernels compiled",
                rows=len(ours),
                unit="processor s",
                ours=own,
                peer="Numba's own way",
                theirs=others,
                ratio=others / own,
                aim=None if quick or kernels else AIM,
            )
        ]
    )


if __name__ == "__main__":
    main()
