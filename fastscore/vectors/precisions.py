"""The precisions in which an embedder runs, and what each needs.

``fp32`` runs everywhere. ``bf16`` runs the same ONNX file with its matrix products' factors rounded
to bfloat16, where the processor multiplies those itself. ``int8`` runs an int8 form of the model,
made by ``fastscore models export NAME --precision int8``, where the processor has VNNI. A precision
that cannot run here is refused, never replaced by another.
"""

from typing import TYPE_CHECKING

from fastscore_jit.objects import processor_flags

from fastscore.errors import ModelError, UsageError, did_you_mean
from fastscore.extras import install_command, is_installed

if TYPE_CHECKING:
    from fastscore_models import ExportedModel

    from fastscore.vectors.runtimes import Inference


EXACT = "fp32"
RUNTIME_OF = {EXACT: "onnxruntime", "bf16": "openvino", "int8": "onnxruntime"}
"""The package that runs each precision."""

PRECISIONS = tuple(RUNTIME_OF)

_BFLOAT16_FLAGS = frozenset({"amx_bf16", "avx512_bf16"})
# Without them ONNX Runtime adds products of 8 bits in 16, which overflow.
_INT8_FLAGS = frozenset({"avx512_vnni", "avx_vnni"})


def check_precision(precision: str) -> None:
    """Refuse a precision that is unknown or cannot run here.

    Raises
    ------
    UsageError
        If there is no such precision.
    ModelError
        If the processor cannot compute in it.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"Unknown precision {precision!r}.", did_you_mean(precision, PRECISIONS))
    if precision == "bf16" and not _BFLOAT16_FLAGS & processor_flags():
        raise ModelError(
            "The precision bf16 needs a processor with AMX or AVX512-BF16: this one has neither "
            f"{' nor '.join(sorted(_BFLOAT16_FLAGS))} among its flags.",
            f"Use --precision {EXACT}.",
        )
    if precision == "bf16" and not is_installed("openvino"):
        raise ModelError(
            "Precision bf16 needs the package openvino, which is not installed.",
            f"Run: {install_command('openvino')}",
        )
    if precision == "int8" and not _INT8_FLAGS & processor_flags():
        raise ModelError(
            "The precision int8 needs a processor with VNNI: this one has neither "
            f"{' nor '.join(sorted(_INT8_FLAGS))} among its flags.",
            f"Use --precision {EXACT}.",
        )


def graph_sha256(exported: "ExportedModel", precision: str) -> str:
    """Return the SHA-256 of the ONNX file that a precision runs.

    Raises
    ------
    ModelError
        If the model has no int8 form and that is what is asked for.
    """
    from fastscore.vectors.calibration import find_int8

    return find_int8(exported).sha256 if precision == "int8" else exported.onnx_sha256


def load_inference(exported: "ExportedModel", precision: str, threads: int) -> "Inference":
    """Load an exported model's graph in a precision.

    Parameters
    ----------
    exported
        A model in the cache, its files checked.
    precision
        One that `check_precision` lets pass.
    threads
        How many threads will call the function at once.

    Raises
    ------
    ModelError
        If the runtime is missing or cannot load the file.
    """
    from fastscore.vectors.calibration import check_int8
    from fastscore.vectors.runtimes import run_in_onnxruntime, run_in_openvino

    if precision == "bf16":
        return run_in_openvino(exported.onnx_path, precision=precision, threads=threads)
    if precision == "int8":
        return run_in_onnxruntime(check_int8(exported))
    return run_in_onnxruntime(exported.onnx_path)


def calls_at_once(precision: str, threads: int) -> int:
    """Return how many calls of a precision's function keep so many threads busy."""
    from fastscore.vectors.runtimes import CALLS_PER_THREAD

    return CALLS_PER_THREAD * threads if RUNTIME_OF[precision] == "openvino" else threads
