"""What a benchmark ran on."""

import os
import platform
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
    """Return the processor, system, load, and versions of what is measured, by name."""
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
