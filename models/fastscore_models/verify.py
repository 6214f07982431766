"""Checking an exported model: its files, and a vector against one known from elsewhere."""

from typing import cast

import numpy as np
import numpy.typing as npt

from fastscore_models.errors import ModelExportError
from fastscore_models.export import ExportedModel, check_hashes

TOLERANCE = 1e-5
_UNCHECKED_IDS = (1, 2, 3, 4)


def verify(exported: ExportedModel) -> float:
    """Check hashes and run a test sentence through the graph.

    The sentence goes through ONNX's reference evaluator, which shares no code with the runtime
    that scores. A recipe without a known vector is checked for a finite vector of length 1.

    Parameters
    ----------
    exported
        A model in the cache.

    Returns
    -------
    float
        The largest difference from what is expected.

    Raises
    ------
    HashMismatchError
        If a file is not what was exported.
    ModelExportError
        If the vector is off by more than 1e-5.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    check_hashes(exported)
    check = exported.recipe.check
    ids = np.array([check.ids if check else _UNCHECKED_IDS], np.int64)
    evaluator = ReferenceEvaluator(onnx.load(exported.onnx_path))
    (vectors,) = cast("list[npt.NDArray[np.float32]]", evaluator.run(None, {"input_ids": ids}))
    vector = vectors[0].astype(np.float64)
    difference = abs(float(np.linalg.norm(vector)) - 1)
    if check:
        known = np.array(check.components)
        difference = max(difference, float(np.abs(vector[: len(known)] - known).max()))
    if not difference <= TOLERANCE:
        raise ModelExportError(
            f"The model {exported.recipe.name!r} gives the test sentence a vector that is off by "
            f"{difference:.2g}: expected at most {TOLERANCE:g}.",
            f"Run `fastscore models export {exported.recipe.name}`.",
        )
    return difference
