"""What a wheel carries beside the sources: compiled kernels, and a README for the package's page."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

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


_RELATIVE = r"(?!https?:|#)[^)]*"


def without_relative_links(text: str) -> str:
    """Return a README whose links all work outside the source tree: others become plain text."""
    text = re.sub(rf"!\[[^\]]*\]\({_RELATIVE}\)\n*", "", text)
    return re.sub(rf"\[([^\]]+)\]\({_RELATIVE}\)", r"\1", text)


class ReadmeHook(MetadataHookInterface):
    """Gives the package's page the README without links to files that only a checkout has."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the text."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_relative_links(text),
        }
