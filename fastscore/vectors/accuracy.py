"""Lower precisions: calibrating int8, and how much vectors and metrics differ from fp32.

A figure holds for one model, one precision and one version of the runtime; with another of any of
them it counts as not measured.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Vectors
from fastscore_models import ExportedModel
from fastscore_models.export import check_files

from fastscore.errors import ModelError
from fastscore.extras import scipy_stats
from fastscore.paths import committed
from fastscore.vectors.devices import CPU, DEVICES
from fastscore.vectors.embedder import (
    TOKENS_PER_BATCH,
    Embedder,
    export_errors_explained,
    group_texts,
    load_tokenizer,
)
from fastscore.vectors.precisions import EXACT, PRECISIONS, RUNTIME_OF
from fastscore.vectors.view import Encoder, as_series

INT8_FILE = "model-int8.onnx"
_MANIFEST = "int8.json"


_REFERENCE = resources.files("fastscore_models") / "reference"


def calibration_texts() -> list[str]:
    """Return the 512 dialogue utterances that int8 is calibrated on."""
    return (_REFERENCE / "calibration.txt").read_text("utf-8").splitlines()


def export_int8(exported: ExportedModel) -> Path:
    """Build an exported model's int8 form beside it; return its file.

    Raises
    ------
    ModelError
        If the model is damaged, or the file cannot be written.
    """
    import onnx
    from fastscore_models.int8 import INT8_VERSION, quantise

    with export_errors_explained():
        exported.check_hashes()
    model = onnx.load(exported.onnx_path)
    content = quantise(model, _ranges(exported, model)).SerializeToString(deterministic=True)
    manifest = {
        "version": INT8_VERSION,
        "of": exported.onnx_sha256,
        "calibration_sha256": hashlib.sha256("\n".join(calibration_texts()).encode()).hexdigest(),
        "onnx_sha256": hashlib.sha256(content).hexdigest(),
    }
    try:
        with committed(exported.folder / INT8_FILE) as file:
            file.write(content)
        with committed(exported.folder / _MANIFEST) as file:
            file.write(f"{json.dumps(manifest, indent=2, sort_keys=True)}\n".encode())
    except OSError as error:
        raise ModelError(
            f"The int8 form of {exported.recipe.name} could not be written to {exported.folder}: "
            f"{error.strerror}."
        ) from error
    return exported.folder / INT8_FILE


def int8_sha256(exported: ExportedModel) -> str:
    """Return the SHA-256 that the file of a model's int8 form had when it was written.

    Raises
    ------
    ModelError
        If there is none, or it was made of other weights or by another version.
    """
    from fastscore_models.int8 import INT8_VERSION

    name = exported.recipe.name
    try:
        manifest = json.loads((exported.folder / _MANIFEST).read_text(encoding="utf-8"))
        made = (manifest["version"], manifest["of"])
        digest = str(manifest["onnx_sha256"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        made, digest = None, ""
    if made != (INT8_VERSION, exported.onnx_sha256):
        raise ModelError(
            f"The model {name!r} has no int8 form in {exported.folder}.",
            f"Run `fastscore models export {name} --precision int8`.",
        )
    return digest


def check_int8(exported: ExportedModel) -> Path:
    """Return the int8 file, its SHA-256 compared with its manifest.

    Raises
    ------
    ModelError
        If it is missing or damaged.
    """
    path = exported.folder / INT8_FILE
    with export_errors_explained():
        check_files([(path, int8_sha256(exported))], f"{exported.recipe.name} --precision int8")
    return path


def _ranges(
    exported: ExportedModel, model: Any
) -> dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """Return the least and greatest value of each quantised tensor by channel."""
    import onnxruntime
    from fastscore_models.int8 import quantisable, with_outputs

    tensors = quantisable(model)
    session = onnxruntime.InferenceSession(
        with_outputs(model, tensors).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    tokenizer = load_tokenizer(exported.tokenizer_path, exported.recipe.max_tokens)
    texts = as_series(calibration_texts())
    lows: dict[str, list[Any]] = {name: [] for name in tensors}
    highs: dict[str, list[Any]] = {name: [] for name in tensors}
    for group in group_texts(texts, tokenizer, exported.recipe.prefix):
        size = max(1, TOKENS_PER_BATCH // group.ids.shape[1])
        for at in range(0, len(group.rows), size):
            found = session.run(tensors, {"input_ids": group.ids[at : at + size]})
            for name, values in zip(tensors, found, strict=True):
                lows[name].append(values.min(0))
                highs[name].append(values.max(0))
    return {name: (np.min(lows[name], axis=0), np.max(highs[name], axis=0)) for name in tensors}


BATCH_DEPENDENCE_LIMIT = 1e-6
"""The most that a vector may change with the texts that it is embedded with."""

REFERENCE_LIMIT = 1e-6
"""The most that an fp32 vector may differ from the reference implementation's."""

_PAIRS = 100_000
_TEXTS_ALONE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Vectors of a precision against those of fp32.

    Attributes
    ----------
    precision
        The precision.
    fingerprint
        `Embedder.fingerprint` in that precision.
    runtime
        The runtime and its version.
    texts
        How many texts were embedded.
    cosine_mean, cosine_min
        Of a text's vector with its fp32 vector.
    spearman
        Rank correlation of the similarities of 100,000 random pairs of texts.
    difference_p99
        99th percentile of how far those similarities are off.
    batch_dependence
        The most that a component changes when a text is embedded by itself.
    device
        The device.
    """

    precision: str
    fingerprint: str
    runtime: str
    texts: int
    cosine_mean: float
    cosine_min: float
    spearman: float
    difference_p99: float
    batch_dependence: float
    device: str = CPU

    @property
    def label(self) -> str:
        """The precision, and the device unless it is the processor."""
        return self.precision if self.device == CPU else f"{self.precision} {self.device}"

    def __str__(self) -> str:
        return (
            f"cos={self.cosine_mean:.5f},min={self.cosine_min:.5f},"
            f"rho={self.spearman:.5f},p99={self.difference_p99:.5f},texts={self.texts}"
        )


def reference_texts() -> list[str]:
    """Return the 500 dialogue utterances that come with the package."""
    return (_REFERENCE / "sentences.txt").read_text("utf-8").splitlines()


def reference_difference(embedder: Embedder) -> float | None:
    """Return how far the vectors of `reference_texts` are from sentence-transformers'.

    Returns
    -------
    float or None
        The largest absolute difference; None for a model without reference vectors.
    """
    file = _REFERENCE / f"{embedder.name}.npz"
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        reference = np.load(stream)["vectors"]
    return float(np.abs(embedder.encode(reference_texts()) - reference).max())


def measure_accuracy(embedder: Embedder, texts: list[str], exact: Vectors) -> Accuracy:
    """Embed texts in the embedder's precision and compare.

    Parameters
    ----------
    embedder
        In the precision in question.
    texts
        At least two texts.
    exact : float32 (texts, dim)
        Their fp32 vectors.
    """
    vectors = embedder.encode(texts)
    cosines = np.einsum("ij,ij->i", vectors, exact, dtype=np.float64)
    found, expected = _pair_similarities(vectors), _pair_similarities(exact)
    return Accuracy(
        precision=embedder.precision,
        fingerprint=embedder.fingerprint,
        runtime=_runtime(embedder.precision),
        device=embedder.device,
        texts=len(texts),
        cosine_mean=float(cosines.mean()),
        cosine_min=float(cosines.min()),
        spearman=float(scipy_stats().spearmanr(found, expected).statistic),
        difference_p99=float(np.quantile(np.abs(found - expected), 0.99)),
        batch_dependence=batch_dependence(embedder, texts, vectors),
    )


def batch_dependence(encoder: Encoder, texts: list[str], together: Vectors) -> float:
    """Embed some texts one by one, and in other company, and compare.

    Parameters
    ----------
    encoder
        An embedder, or a model of pseudo-perplexity.
    texts
        At least one text.
    together : float32 (texts, dim)
        What it made of all of them at once.

    Returns
    -------
    float
        The most that a component changes; in units of the component where that is above 1.
    """
    some = np.linspace(0, len(texts) - 1, min(len(texts), _TEXTS_ALONE)).astype(int)
    alone = np.concatenate([encoder.encode([texts[row]]) for row in some])
    few = encoder.encode([texts[row] for row in some[::-1]])[::-1]
    scale = np.maximum(1, np.abs(together[some]))
    changes = [np.abs(other - together[some]) / scale for other in (alone, few)]
    return float(np.max(changes))


def save_accuracy(embedder: Embedder, accuracy: Accuracy) -> None:
    """Keep a measurement beside the model, in place of an earlier one.

    Raises
    ------
    ModelError
        If it cannot be written.
    """
    path = _path(embedder.exported.folder, accuracy.precision, accuracy.device)
    fields = asdict(accuracy)
    if accuracy.device == CPU:
        del fields["device"]
    try:
        with committed(path) as file:
            file.write(f"{json.dumps(fields, indent=2)}\n".encode())
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror}.") from error


def list_accuracies(folder: Path) -> list[Accuracy]:
    """Return what has been measured of an exported model, by device and precision."""
    found = (
        _load(_path(folder, precision, device)) for device in DEVICES for precision in PRECISIONS
    )
    return [accuracy for accuracy in found if accuracy is not None]


def stated_accuracy(embedder: Embedder) -> Accuracy | None:
    """Return the measured accuracy of an embedder; None for fp32 on the processor.

    Raises
    ------
    ModelError
        If it has not been measured for this model and this version of the runtime.
    """
    precision, device = embedder.precision, embedder.device
    if precision == EXACT and device == CPU:
        return None
    found = _load(_path(embedder.exported.folder, precision, device))
    wanted = embedder.fingerprint, _runtime(precision)
    if found is None or (found.fingerprint, found.runtime) != wanted:
        place, option = ("", "") if device == CPU else (f" on {device}", f" --device {device}")
        raise ModelError(
            f"The accuracy of {embedder.name} in {precision}{place} has not been measured with "
            f"{wanted[1]}.",
            f"Run `fastscore models verify {embedder.name}{option}`.",
        )
    return found


def _path(folder: Path, precision: str, device: str) -> Path:
    return folder / f"accuracy-{precision}{'' if device == CPU else f'-{device}'}.json"


def _load(path: Path) -> Accuracy | None:
    """Read a measurement; one that is missing or cannot be read was not made."""
    try:
        return Accuracy(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _runtime(precision: str) -> str:
    package = RUNTIME_OF[precision]
    if package == "onnxruntime":  # a module of two packages
        import onnxruntime

        return f"{package} {onnxruntime.__version__}"
    return f"{package} {version(package)}"


def _pair_similarities(vectors: Vectors) -> npt.NDArray[np.float64]:
    """Return the similarities of random pairs of different texts, the same pairs each time."""
    rng = np.random.default_rng(0)
    count = len(vectors)
    first = rng.integers(0, count, _PAIRS)
    second = (first + rng.integers(1, count, _PAIRS)) % count
    chunks = zip(np.array_split(first, 100), np.array_split(second, 100), strict=True)
    return np.concatenate(
        [np.einsum("ij,ij->i", vectors[a], vectors[b], dtype=np.float64) for a, b in chunks]
    )
