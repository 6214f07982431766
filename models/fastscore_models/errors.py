"""What can go wrong with a recipe or an export."""


class ModelExportError(Exception):
    """A recipe, a download, a set of weights or an exported model that cannot be used.

    Parameters
    ----------
    message
        What was found, where, and what was expected.
    hint
        What to do next, a full sentence.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class RecipeError(ModelExportError):
    """A recipe that is unknown or malformed."""


class DownloadError(ModelExportError):
    """Weights that could not be fetched."""


class HashMismatchError(ModelExportError):
    """A file whose SHA-256 is not the expected one."""


class UnsupportedModelError(ModelExportError):
    """A model configuration or a weight set outside what the exporter can build."""


class NotExportedError(ModelExportError):
    """A model that has not been exported into the cache yet."""
