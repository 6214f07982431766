"""Precisions and devices of a model, and the runtimes that compute its vectors.

``fp32`` runs everywhere. ``bf16`` runs the same ONNX file with its matrix products' factors rounded
to bfloat16, where the processor multiplies those itself. The device ``cuda`` is an NVIDIA GPU,
through ONNX Runtime's CUDA provider. What cannot run here is refused, never replaced by another.

A function may be called from several threads at once; each call computes on one thread.
"""

import contextlib
import importlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt
from fastscore_jit.system import processor_flags
from fastscore_jit.threads import result_of

from fastscore.errors import ModelError, UsageError, did_you_mean
from fastscore.settings.extras import install_command, is_installed

if TYPE_CHECKING:
    from fastscore_models.export import ExportedModel


Precision = Literal["fp32", "bf16"]

EXACT: Precision = "fp32"
RUNTIME_OF: dict[str, str] = {EXACT: "onnxruntime", "bf16": "openvino"}
"""The package that runs each precision."""

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


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


_BFLOAT16_FLAGS = frozenset({"amx_bf16", "avx512_bf16"})


def check_precision(precision: str) -> None:
    """Refuse a precision that is unknown or cannot run here."""
    if precision not in PRECISIONS:
        raise UsageError(f"Unknown precision {precision!r}.", did_you_mean(precision, PRECISIONS))
    if precision == "bf16" and not _BFLOAT16_FLAGS & processor_flags():
        raise ModelError(
            "The precision bf16 needs a processor with AMX or AVX512-BF16: this one has neither "
            f"{' nor '.join(sorted(_BFLOAT16_FLAGS))} among its flags.",
            f"Set precision to {EXACT}.",
        )
    if precision == "bf16" and not is_installed("openvino"):
        raise ModelError(
            "Precision bf16 needs the package openvino, which is not installed.",
            f"Run: {install_command('openvino')}",
        )


def check_device(device: str, precision: str) -> None:
    """Refuse a device that is unknown, lacks its provider, or does not run a precision."""
    if device not in DEVICES:
        raise UsageError(f"Unknown device {device!r}.", did_you_mean(device, tuple(DEVICES)))
    if device == CPU:
        return
    if precision != EXACT:
        raise UsageError(
            f"The device {device} runs precision {EXACT} only, and precision is {precision}.",
            f"Set precision to {EXACT}, or device to {CPU}.",
        )
    import onnxruntime

    if DEVICES[device].provider not in onnxruntime.get_available_providers():
        raise ModelError(
            f"The device {device} needs ONNX Runtime's CUDA provider, which is not installed.",
            f"Run: {INSTALL_CUDA}",
        )


def load_inference(
    exported: "ExportedModel", precision: str, threads: int, device: str
) -> "Inference":
    """Load an exported model's graph in a precision."""
    if precision == "bf16":
        return run_in_openvino(exported.onnx_path, precision=precision, threads=threads)
    return run_in_onnxruntime(exported.onnx_path, device)


def calls_at_once(precision: str, threads: int, device: str) -> int:
    """Return how many calls of a precision's function keep so many threads, or a GPU, busy."""
    if device != CPU:
        return CALLS_ON_A_GPU
    return CALLS_PER_THREAD * threads if RUNTIME_OF[precision] == "openvino" else threads


Inputs = Mapping[str, npt.NDArray[np.int64]]
Inference = Callable[[Inputs], npt.NDArray[np.float32]]

CALLS_PER_THREAD = 2
"""How many calls of a model in OpenVINO keep each of its threads busy."""

_CONVERTER = "openvino.tools.ovc"
_thread = threading.local()

Tag = TypeVar("Tag")


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


def run_batches(
    run: Inference, batches: Iterable[tuple[Inputs, Tag]], threads: int
) -> Generator[tuple[npt.NDArray[np.float32], Tag], None, None]:
    """Run batches on so many threads; yield each one's output and tag in the order given.

    The next batches are made while earlier ones are in the model. Closed early, or asked to stop,
    those that wait are given up, and those in the model end where its runtime lets them.
    """
    calls = Calls()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="fastscore-model", initializer=calls.join)
    try:
        running: deque[tuple[Future[npt.NDArray[np.float32]], Tag]] = deque()
        for inputs, tag in batches:
            running.append((pool.submit(run, inputs), tag))
            # Enough in flight to keep threads busy while the next window is tokenised.
            while len(running) > 4 * threads:
                future, done = running.popleft()
                yield result_of(future), done
        while running:
            future, done = running.popleft()
            yield result_of(future), done
    finally:
        calls.end()
        pool.shutdown(wait=True, cancel_futures=True)


def run_in_onnxruntime(path: Path, device: str = CPU) -> Inference:
    """Load a model into ONNX Runtime, which computes in the precision of the file.

    A text's output is the same to the last bit in a batch of any size. ONNX Runtime itself adds up
    the tokens, and multiplies the row, of a batch of one in another order than those of several:
    so it never gets one, but the text and its double.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Shapes vary from batch to batch; a remembered pattern for each would only cost memory.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    wanted = DEVICES[device]
    if device != CPU and hasattr(onnxruntime, "preload_dlls"):
        with contextlib.redirect_stdout(sys.stderr):  # it prints what it does not find
            onnxruntime.preload_dlls()
    try:
        session = onnxruntime.InferenceSession(
            str(path),
            options,
            providers=[(wanted.provider, dict(wanted.settings))],
            disabled_optimizers=["SkipLayerNormFusion"],
        )
    except Exception as error:  # the runtime has a class of its own for each way to fail
        raise ModelError(f"ONNX Runtime cannot load {path}: {error}") from error
    check_session(session, device)

    def run(inputs: Inputs) -> npt.NDArray[np.float32]:
        texts = len(next(iter(inputs.values())))
        if texts == 1:
            inputs = {name: np.repeat(values, 2, axis=0) for name, values in inputs.items()}
        options = getattr(_thread, "options", None)
        output: npt.NDArray[np.float32] = session.run(None, inputs, options)[0]
        return output[:texts]

    return run


def run_in_openvino(path: Path, *, precision: str, threads: int) -> Inference:
    """Load a model into OpenVINO, which computes matrix products in a precision of its own."""
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
    """Import OpenVINO, without what reports over the network."""
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
