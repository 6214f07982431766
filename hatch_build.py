"""What a wheel carries beside the sources: compiled kernels, where `make wheel` has made them."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = Path("kernels", "fastscore_jit", "compiled")
TAG = "py3-none-manylinux_2_17_x86_64"
"""Kernels call a few functions of the C library, by names that all versions have."""


class KernelsHook(BuildHookInterface[Any]):
    """Marks a wheel that carries machine code as one of a platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say of what platform the wheel is."""
        if version == "standard" and any((Path(self.root) / COMPILED).glob("*/*")):
            build_data["pure_python"] = False
            build_data["tag"] = TAG
