"""Accuracy: how much the vectors of other precisions and devices differ from fp32.

A figure holds for one model, one precision and one version of the runtime.
"""

import json
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Vectors

from fastscore.errors import ModelError
from fastscore.files import committed
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.precisions import CPU, DEVICES, EXACT, PRECISIONS, RUNTIME_OF
from fastscore.vectors.store import Encoder

_REFERENCE = resources.files("fastscore_models") / "reference"


BATCH_DEPENDENCE_LIMIT = 1e-6
"""The most that a vector may change with the texts that it is embedded with."""

REFERENCE_LIMIT = 1e-6
"""The most that an fp32 vector may differ from the reference implementation's."""

_PAIRS = 100_000
_TEXTS_ALONE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Vectors of a precision against those of fp32."""

    precision: str
    fingerprint: str  # `Embedder.fingerprint` in that precision
    runtime: str  # the runtime and its version
    texts: int  # how many texts were embedded
    # of a text's vector with its fp32 vector
    cosine_mean: float
    cosine_min: float
    spearman: float  # rank correlation of the similarities of 100,000 random pairs of texts
    difference_p99: float  # 99th percentile of how far those similarities are off
    batch_dependence: float  # the most that a component changes when a text is embedded by itself
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
    """Return how far the vectors of `reference_texts` are from sentence-transformers'."""
    file = _REFERENCE / f"{embedder.name}.npz"
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        reference = np.load(stream)["vectors"]
    return float(np.abs(embedder.encode(reference_texts()) - reference).max())


def measure_accuracy(embedder: Embedder, texts: list[str], exact: Vectors) -> Accuracy:
    """Embed texts in the embedder's precision and compare."""
    vectors = embedder.encode(texts)
    cosines = np.einsum("ij,ij->i", vectors, exact, dtype=np.float64)
    found, expected = _pair_similarities(vectors), _pair_similarities(exact)
    pairs = pl.DataFrame({"found": found, "expected": expected})
    return Accuracy(
        precision=embedder.precision,
        fingerprint=embedder.fingerprint,
        runtime=_runtime(embedder.precision),
        device=embedder.device,
        texts=len(texts),
        cosine_mean=float(cosines.mean()),
        cosine_min=float(cosines.min()),
        spearman=float(pairs.select(pl.corr("found", "expected", method="spearman")).item()),
        difference_p99=float(np.quantile(np.abs(found - expected), 0.99)),
        batch_dependence=batch_dependence(embedder, texts, vectors),
    )


def batch_dependence(encoder: Encoder, texts: list[str], together: Vectors) -> float:
    """Embed some texts one by one, and in other company, and compare."""
    some = np.linspace(0, len(texts) - 1, min(len(texts), _TEXTS_ALONE)).astype(int)
    alone = np.concatenate([encoder.encode([texts[row]]) for row in some])
    few = encoder.encode([texts[row] for row in some[::-1]])[::-1]
    scale = np.maximum(1, np.abs(together[some]))
    changes = [np.abs(other - together[some]) / scale for other in (alone, few)]
    return float(np.max(changes))


def save_accuracy(embedder: Embedder, accuracy: Accuracy) -> None:
    """Keep a measurement beside the model, in place of an earlier one."""
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
    """Return the measured accuracy of an embedder; None for fp32 on the processor."""
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
