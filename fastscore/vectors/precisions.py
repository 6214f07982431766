"""The precisions in which an embedder runs, and what each needs.

``fp32`` runs everywhere. ``bf16`` runs the same ONNX file with its matrix products' factors rounded
to bfloat16, where the processor multiplies those itself. A precision that cannot run here is
refused, never replaced by another.
"""

from fastscore_models import ExportedModel

from fastscore.errors import ModelError, UsageError, nearest
from fastscore.processors import processor_flags
from fastscore.vectors.runtimes import Run, run_in_onnxruntime, run_in_openvino

EXACT = "fp32"
RUNTIME_OF = {EXACT: "onnxruntime", "bf16": "openvino"}
"""The package that runs each precision."""

PRECISIONS = tuple(RUNTIME_OF)

_BFLOAT16_FLAGS = frozenset({"amx_bf16", "avx512_bf16"})


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
        raise UsageError(f"Unknown precision {precision!r}.", nearest(precision, PRECISIONS))
    if precision == "bf16" and not _BFLOAT16_FLAGS & processor_flags():
        raise ModelError(
            "The precision bf16 needs a processor with AMX or AVX512-BF16: this one has neither "
            f"{' nor '.join(sorted(_BFLOAT16_FLAGS))} among its flags.",
            f"Use --precision {EXACT}.",
        )


def load_run(exported: ExportedModel, precision: str, threads: int) -> Run:
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
    if precision == "bf16":
        return run_in_openvino(exported.onnx_path, precision=precision, threads=threads)
    return run_in_onnxruntime(exported.onnx_path)
