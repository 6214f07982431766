"""The signature: one line that pins every number of a run.

Two runs with the same signature and the same input have the same numbers. Every option that can
change a number stands in it with its value, so that a reader needs no table of defaults.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError
from fastscore.options import flag_name
from fastscore.suites.base import Suite
from fastscore.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderIdentity:
    """What decides a vector.

    Parameters
    ----------
    recipe
        The recipe's name.
    fingerprint
        SHA-256 over the model file, the tokenizer and everything else that decides a vector.
    precision
        The precision in which the model runs.
    dim
        The width that is scored, after truncation.
    accuracy
        The measured nearness to fp32; empty for fp32 itself.
    """

    recipe: str
    fingerprint: str
    precision: str
    dim: int
    accuracy: str = ""

    def __str__(self) -> str:
        stated = f"({self.accuracy})" if self.accuracy else ""
        return f"{self.recipe}@{self.fingerprint[:8]},{self.precision}{stated},dim={self.dim}"


def signature(
    suite: Suite,
    options: Any,
    embedder: EmbedderIdentity | None,
    reading: Sequence[str] = (),
) -> str:
    """Return the signature of a suite's numbers under some options.

    Parameters
    ----------
    suite, options, embedder
        What decides the numbers of given rows.
    reading
        What decides the rows, as ``name=value``: columns that are mapped, for one.

    Returns
    -------
    str
        For example ``fastscore=0.1.0|suite=score_dialogue.1|lex_weight=0.5|...|embedder=none``.

    Raises
    ------
    UsageError
        A file that an option names cannot be read.
    ModelError
        A masked language model that an option names is not exported.
    """
    parts = [f"fastscore={__version__}", f"suite={suite.name}.{suite.version}"]
    parts += [
        f"{field.name}={_signed_value(field, options)}"
        for field in dataclasses.fields(options)
        if field.metadata["signed"]
    ]
    parts.append(f"embedder={embedder or 'none'}")
    parts += reading
    return "|".join(parts)


def _signed_value(field: "dataclasses.Field[Any]", options: Any) -> str:
    value = getattr(options, field.name)
    if field.metadata["names_masked_model"]:
        return _signed_model(value) if value else "none"
    if field.metadata["names_folder"]:
        return _signed_folder(field, value) if value else "none"
    if not field.metadata["names_file"]:
        return str(value)
    if not value and not field.metadata["built_in"]:
        return "none"
    try:
        content = _built_in(field, options) if not value else Path(value).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{flag_name(field.name)} {value}: cannot be read ({error.strerror})."
        ) from error
    return "blake2b:" + hashlib.blake2b(content, digest_size=8).hexdigest()


def _signed_folder(field: "dataclasses.Field[Any]", value: str) -> str:
    """Hash the names of a folder's files and their content, in the order of their names."""
    folder, digest = Path(value), hashlib.blake2b(digest_size=8)
    try:
        named = {path.relative_to(folder).as_posix(): path for path in folder.glob(_pattern(field))}
        for name in sorted(named):
            content = named[name].read_bytes()
            # the length tells where a name and where a content ends
            digest.update(f"{len(name.encode())}:{name}{len(content)}:".encode() + content)
    except OSError as error:
        raise UsageError(
            f"{flag_name(field.name)} {error.filename}: cannot be read ({error.strerror})."
        ) from error
    return "blake2b:" + digest.hexdigest()


def _pattern(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata["names_folder"])


def _built_in(field: "dataclasses.Field[Any]", options: Any) -> bytes:
    package = type(options).__module__.rpartition(".")[0]
    return files(package).joinpath(field.metadata["built_in"]).read_bytes()


def _signed_model(name: str) -> str:
    from fastscore.vectors.perplexity import PerplexityModel

    model = PerplexityModel(name)
    return f"{model.name}@{model.fingerprint[:8]}"
