"""The devices on which an embedder runs, and what each needs.

``cpu`` is the processor. ``cuda`` is an NVIDIA GPU, through ONNX Runtime's CUDA provider. A device
that cannot be used is refused, never replaced by another: ONNX Runtime itself would go on on the
processor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fastscore.errors import ModelError


@dataclass(frozen=True, slots=True)
class Device:
    """A device and how it is used."""

    provider: str  # the provider of ONNX Runtime that computes on it
    settings: Mapping[str, str] = field(default_factory=dict)  # options of the provider
    # tokens of a batch and texts that are tokenised together, in multiples of the processor's
    batch_factor: int = 1
    window_factor: int = 1


DeviceName = Literal["cpu", "cuda"]

CPU: DeviceName = "cpu"
CUDA: DeviceName = "cuda"
# TF32 would round the factors of products to 11 significant bits
DEVICES: dict[str, Device] = {
    CPU: Device("CPUExecutionProvider"),
    CUDA: Device("CUDAExecutionProvider", {"use_tf32": "0"}, batch_factor=32, window_factor=8),
}

CALLS_ON_A_GPU = 2
"""Calls of a model at once: the next batch is copied while one is computed."""

INSTALL_CUDA = (
    "pip uninstall --yes onnxruntime onnxruntime-gpu && pip install 'fastscore-dialogue[cuda]'"
)
"""Two packages have the module `onnxruntime`: the one without the provider must be gone first."""


def check_session(session: Any, device: str) -> None:
    """Refuse a session that does not compute on the device that was asked for."""
    used = session.get_providers()
    if used[0] != DEVICES[device].provider:
        raise ModelError(
            f"The model does not run on {device}: ONNX Runtime fell back to {used[0]}.",
            "Check that `nvidia-smi` lists a GPU and that its driver supports the installed CUDA "
            f"libraries, or set device to {CPU}.",
        )
