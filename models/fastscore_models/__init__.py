"""Model recipes and the export of their weights to ONNX."""

from fastscore_models.export import (
    ExportedModel,
    export,
    export_layout,
    find_exported,
    is_export_of,
    list_exported,
    verify,
)
from fastscore_models.fetching import fetch
from fastscore_models.fill_mask import (
    MaskedModel,
    export_masked,
    find_masked,
    list_masked,
)
from fastscore_models.recipe import (
    Check,
    DownloadError,
    HashMismatchError,
    ModelExportError,
    NotExportedError,
    Recipe,
    RecipeError,
    Source,
    UnsupportedModelError,
    is_layout,
    list_recipes,
    load_recipe,
)

__all__ = [
    "Check",
    "DownloadError",
    "ExportedModel",
    "HashMismatchError",
    "MaskedModel",
    "ModelExportError",
    "NotExportedError",
    "Recipe",
    "RecipeError",
    "Source",
    "UnsupportedModelError",
    "export",
    "export_layout",
    "export_masked",
    "fetch",
    "find_exported",
    "find_masked",
    "is_export_of",
    "is_layout",
    "list_exported",
    "list_masked",
    "list_recipes",
    "load_recipe",
    "verify",
]
