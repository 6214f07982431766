"""The int8 form of an exported model: calibrated on real dialogue, kept beside the model."""

import hashlib
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_models import ExportedModel, ModelExportError, check_hashes
from fastscore_models.publishing import check_files

from fastscore.durable import committed
from fastscore.errors import ModelError
from fastscore.vectors.embedder import TOKENS_PER_BATCH, group_texts, load_tokenizer
from fastscore.vectors.text_ids import as_series

INT8_FILE = "model-int8.onnx"
_MANIFEST = "int8.json"


@dataclass(frozen=True, slots=True)
class Int8Model:
    """An int8 form in the cache: its file and the file's SHA-256 when it was written."""

    path: Path
    sha256: str


def calibration_texts() -> list[str]:
    """Return the 512 dialogue utterances that int8 is calibrated on."""
    file = resources.files("fastscore_models") / "reference" / "calibration.txt"
    return file.read_text("utf-8").splitlines()


def export_int8(exported: ExportedModel) -> Int8Model:
    """Build an exported model's int8 form beside it.

    Raises
    ------
    ModelError
        If the model is damaged, or the file cannot be written.
    """
    import onnx
    from fastscore_models.int8 import INT8_VERSION, quantise

    try:
        check_hashes(exported)
    except ModelExportError as error:
        raise ModelError(error.message, error.hint) from error
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
    return find_int8(exported)


def find_int8(exported: ExportedModel) -> Int8Model:
    """Find a model's int8 form, without reading its weights.

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
    return Int8Model(exported.folder / INT8_FILE, digest)


def check_int8(exported: ExportedModel) -> Path:
    """Return the int8 file, its SHA-256 compared with its manifest.

    Raises
    ------
    ModelError
        If it is missing or damaged.
    """
    found = find_int8(exported)
    try:
        check_files([(found.path, found.sha256)], f"{exported.recipe.name} --precision int8")
    except ModelExportError as error:
        raise ModelError(error.message, error.hint) from error
    return found.path


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
