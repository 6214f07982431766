"""Names of files, and where fastscore keeps what can be made again: models, vectors, kernels."""

import os
from pathlib import Path

from fastscore.errors import UsageError


def cache_root() -> Path:
    """Return the cache folder: ``$FASTSCORE_CACHE``, else the platform's cache folder.

    The folder is not created here.

    Raises
    ------
    UsageError
        The variable is no name of a folder, or there is no home folder.
    """
    named = os.environ.get("FASTSCORE_CACHE")
    if named:
        check_path(named)
        return Path(named).expanduser()
    from fastscore_jit.objects import user_cache_folder

    try:
        return user_cache_folder()
    except RuntimeError as error:
        raise UsageError(
            "The home folder cannot be determined.", "Set FASTSCORE_CACHE to a folder."
        ) from error


def is_utf8(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is UTF-8: tables, manifests and messages can hold no other."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path as it is shown: bytes that are not UTF-8 as ``\xe9``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is not UTF-8.

    Raises
    ------
    UsageError
        It is not.
    """
    if not is_utf8(path):
        raise UsageError(
            f"The name '{shown_path(path)}' is not UTF-8: no table or message can hold it.",
            "Rename the file or folder, or name a link to it.",
        )
