"""The runtimes under the models: an ONNX file goes in, a function of its inputs comes out.

A function may be called from several threads at once; each call computes on one thread.
"""

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore.errors import ModelError
from fastscore.extras import install_command

Inputs = Mapping[str, npt.NDArray[np.int64]]
Inference = Callable[[Inputs], npt.NDArray[np.float32]]

CALLS_PER_THREAD = 2
"""How many calls of a model in OpenVINO keep each of its threads busy."""

_CONVERTER = "openvino.tools.ovc"
_thread = threading.local()


class Calls:
    """Calls of models in several threads, which end together.

    ONNX Runtime looks between two operations whether to go on; OpenVINO ends what it has begun.
    """

    def __init__(self) -> None:
        # whoever has a model in it has imported it
        runtime: Any = sys.modules.get("onnxruntime")
        self._options = None if runtime is None else runtime.RunOptions()

    def join(self) -> None:
        """Have the calls of this thread be among them."""
        _thread.options = self._options

    def end(self) -> None:
        """Have those fail that run, and those that begin later."""
        if self._options is not None:
            self._options.terminate = True


def run_in_onnxruntime(path: Path) -> Inference:
    """Load a model into ONNX Runtime, which computes in the precision of the file.

    A text's output is the same to the last bit in a batch of any size. ONNX Runtime itself adds up
    the tokens, and multiplies the row, of a batch of one in another order than those of several:
    so it never gets one, but the text and its double.

    Raises
    ------
    ModelError
        If the file cannot be loaded.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Shapes vary from batch to batch; a remembered pattern for each would only cost memory.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            str(path),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],
        )
    except Exception as error:  # the runtime has a class of its own for each way to fail
        raise ModelError(f"ONNX Runtime cannot load {path}: {error}") from error

    def run(inputs: Inputs) -> npt.NDArray[np.float32]:
        texts = len(next(iter(inputs.values())))
        if texts == 1:
            inputs = {name: np.repeat(values, 2, axis=0) for name, values in inputs.items()}
        options = getattr(_thread, "options", None)
        output: npt.NDArray[np.float32] = session.run(None, inputs, options)[0]
        return output[:texts]

    return run


def run_in_openvino(path: Path, *, precision: str, threads: int) -> Inference:
    """Load a model into OpenVINO, which computes matrix products in a precision of its own.

    Parameters
    ----------
    path
        The ONNX file.
    precision
        ``"bf16"``: factors are rounded to bfloat16, sums stay float32.
    threads
        Calls that may compute at once. Of those that wait, as many are handed to OpenVINO already:
        it begins the next without waiting for Python.

    Raises
    ------
    ModelError
        If the package is missing or the file cannot be loaded; from the function, if a value is
        no number.
    """
    openvino = import_openvino()
    settings = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": threads,
        # two processes that pin threads would meet on the same processor
        "ENABLE_CPU_PINNING": False,
    }
    try:
        compiled = openvino.Core().compile_model(str(path), "CPU", settings)
        requests: SimpleQueue[Any] = SimpleQueue()
        # The binding initialises parts of itself at their first use, and two threads that get there
        # at once wait for each other for ever: so every part is used here, by one.
        # A single token would do harm: OpenVINO 2026.4 gives NaN for other shapes after it.
        blank = {
            port.any_name: np.zeros([8] * len(port.partial_shape), np.int64)
            for port in compiled.inputs
        }
        for _ in range(CALLS_PER_THREAD * threads):
            request = compiled.create_infer_request()
            request.infer(blank)
            _ = request.get_output_tensor(0).data.copy()
            requests.put(request)
    except RuntimeError as error:
        raise ModelError(f"OpenVINO cannot load {path}: {error}") from error

    def run(inputs: Inputs) -> npt.NDArray[np.float32]:
        request = requests.get()
        try:
            # Inputs are copied: after a shared one, a later copy would overwrite the caller's.
            request.infer(dict(inputs))
            output: npt.NDArray[np.float32] = request.get_output_tensor(0).data.copy()
        finally:
            requests.put(request)
        if not np.isfinite(output).all():
            raise ModelError(f"OpenVINO computed a value that is no number from {path}.")
        return output

    return run


def import_openvino() -> Any:
    """Import OpenVINO, without what reports over the network.

    Raises
    ------
    ModelError
        If the package is missing.
    """
    with _without_converter():
        try:
            return importlib.import_module("openvino")
        except ImportError as error:
            raise ModelError(
                f"Precision bf16 needs the package openvino, which cannot be imported: {error}.",
                f"Run: {install_command('openvino')}",
            ) from error


@contextlib.contextmanager
def _without_converter() -> Iterator[None]:
    """Keep ``import openvino`` from importing its model converter, which reports over the network.

    The converter is optional to the package; who wants it can still import it afterwards.
    """
    if _CONVERTER in sys.modules:
        yield
        return
    sys.modules[_CONVERTER] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[_CONVERTER]
