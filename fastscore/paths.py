"""Where fastscore keeps what can be made again: exported models, vectors, compiled kernels."""

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the cache folder: ``$FASTSCORE_CACHE``, else the platform's cache folder.

    The folder is not created here.
    """
    named = os.environ.get("FASTSCORE_CACHE")
    if named:
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("fastscore", appauthor=False))
