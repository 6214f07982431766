"""What a wheel carries beside the sources: compiled kernels, and a README for its page."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

COMPILED = Path("kernels", "fastscore_jit", "compiled")
PLATFORMS = {
    "linux-x86_64": "manylinux_2_28_x86_64",
    "linux-aarch64": "manylinux_2_28_aarch64",
    "darwin-arm64": "macosx_14_0_arm64",
    "darwin-x86_64": "macosx_14_0_x86_64",
    "win32-AMD64": "win_amd64",
}
"""Tags by system and machine: the oldest releases that the dependencies' wheels support."""

LIBRARIES = (".dll", ".dylib", ".so")


class KernelsHook(BuildHookInterface[Any]):
    """Marks a wheel that carries machine code as one of a platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the wheel's tag."""
        tag = platform_tag(Path(self.root) / COMPILED)
        if version == "standard" and tag is not None:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{tag}"


def platform_tag(compiled: Path) -> str | None:
    """Return the tag of the platform of compiled kernels; None if there are none.

    Raises
    ------
    ValueError
        If kernels are of several platforms, of an unknown platform, or not linked.
    """
    files = sorted(compiled.glob("*/*"))
    platforms = {"-".join(file.parent.name.split("-")[:2]) for file in files}
    if not platforms:
        return None
    if len(platforms) > 1 or not platforms <= PLATFORMS.keys():
        raise ValueError(
            f"{compiled} has kernels for {', '.join(sorted(platforms))}: expected one of "
            f"{', '.join(PLATFORMS)}. Remove the folder and run `make wheel`."
        )
    unlinked = [file.name for file in files if file.suffix not in LIBRARIES]
    if unlinked:
        raise ValueError(
            f"{compiled} has {len(unlinked)} files that are not libraries, the first is "
            f"{unlinked[0]}. Install a linker, such as clang, and run `make wheel`."
        )
    return PLATFORMS[platforms.pop()]


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
