"""The signature: one line that determines all numbers of a run.

Two runs with equal signatures and equal input have equal numbers. A signature contains the value of
every option that can change a number, defaults included. It begins with the version of the package,
as information. A suite's own version increases when a number may change.
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError
from fastscore.settings.options import build_options, read_option_file
from fastscore.suites.base import Suite
from fastscore.suites.registry import load_suite
from fastscore.version import __version__

PACKAGE = "fastscore"
INFORMATION = (PACKAGE,)
"""The parts of a signature that do not affect numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderIdentity:
    """The properties of an embedder that affect vectors."""

    recipe: str  # the recipe's name
    # SHA-256 over the model file, the tokenizer and everything else that affects vectors
    fingerprint: str
    precision: str  # the precision in which the model runs
    dim: int  # the scored dimension, after truncation
    accuracy: str = ""  # the measured similarity to fp32; empty for fp32 on the CPU
    device: str = "cpu"  # The device of the model. The CPU, `"cpu"`, is not written.

    def __str__(self) -> str:
        stated = f"({self.accuracy})" if self.accuracy else ""
        run = self.precision if self.device == "cpu" else f"{self.precision},{self.device}"
        return f"{self.recipe}@{self.fingerprint[:8]},{run}{stated},dim={self.dim}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as in a run's manifest, without the device if that is the CPU."""
        fields = dataclasses.asdict(self)
        if self.device == "cpu":
            del fields["device"]
        return fields


def signature(
    suite: Suite, options: Any, embedder: EmbedderIdentity | None, reading: Sequence[str] = ()
) -> str:
    """Return the signature of a suite's numbers with some options."""
    parts = [f"{PACKAGE}={__version__}", f"suite={suite.name}.{suite.version}"]
    parts += [
        f"{field.name}={_signed_value(field, options)}"
        for field in dataclasses.fields(options)
        if field.metadata["signed"]
    ]
    parts.append(f"embedder={embedder or 'none'}")
    parts += reading
    if suite.code:
        parts.append(f"code={','.join(suite.code)}")
    return "|".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A part in which two signatures differ."""

    name: str  # the part's name: `suite`, `embedder`, an option, or a setting of reading
    # its value in each signature, None if the signature has no such part
    first: str | None
    second: str | None
    decides: bool  # Whether numbers may differ because of it. False for the version of the package.

    def __str__(self) -> str:
        first, second = (value or "not set" for value in (self.first, self.second))
        return f"{self.name} was {first} and is {second}"


def differences(first: str, second: str) -> list[Difference]:
    """Return the parts in which two signatures differ, in the order of the signatures.

    A release may declare an option that an earlier one did not have. In a signature without the
    option, it counts as its default, which gives the numbers of the earlier release.
    """
    one, other = signature_parts(first), signature_parts(second)
    found = []
    for name in dict.fromkeys([*one, *other]):
        values = one.get(name), other.get(name)
        if values[0] == values[1]:
            continue
        if None in values and _default(name, one) == (values[0] or values[1]):
            continue
        decides = name not in INFORMATION
        found.append(Difference(name=name, first=values[0], second=values[1], decides=decides))
    return found


def deciding_differences(first: str, second: str) -> list[Difference]:
    """Return the parts in which two signatures differ and by which numbers may differ."""
    return [each for each in differences(first, second) if each.decides]


def signature_parts(signed: str) -> dict[str, str]:
    """Return a signature's values by name."""
    return dict(part.partition("=")[::2] for part in signed.split("|"))


def package_version(signed: str) -> str:
    """Return the version of fastscore that started a run."""
    return signature_parts(signed).get(PACKAGE, "")


def _default(name: str, parts: Mapping[str, str]) -> str | None:
    """Return an option's default as in a signature; None if the suite has no such option."""
    suite = load_suite(parts["suite"].rpartition(".")[0])
    fields = {field.name: field for field in dataclasses.fields(suite.options)}
    if name not in fields or not fields[name].metadata["signed"]:
        return None
    return _signed_value(fields[name], build_options(suite.options, {}))


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
        content = _built_in(field, options) if not value else read_option_file(value)
    except OSError as error:
        raise UsageError(f"{field.name} {value}: cannot be read ({error.strerror}).") from error
    return "blake2b:" + hashlib.blake2b(content, digest_size=8).hexdigest()


def _signed_folder(field: "dataclasses.Field[Any]", value: str) -> str:
    """Hash the names and contents of a folder's files, sorted by name."""
    folder, digest = Path(value), hashlib.blake2b(digest_size=8)
    try:
        found = folder.glob(field.metadata["names_folder"])
        named = {path.relative_to(folder).as_posix(): path for path in found}
        for name in sorted(named):
            content = read_option_file(named[name])
            # the length separates names and contents
            digest.update(f"{len(name.encode())}:{name}{len(content)}:".encode() + content)
    except OSError as error:
        raise UsageError(
            f"{field.name} {error.filename}: cannot be read ({error.strerror})."
        ) from error
    return "blake2b:" + digest.hexdigest()


def _built_in(field: "dataclasses.Field[Any]", options: Any) -> bytes:
    package = type(options).__module__.rpartition(".")[0]
    return files(package).joinpath(field.metadata["built_in"]).read_bytes()


def _signed_model(name: str) -> str:
    from fastscore.vectors.perplexity import PerplexityModel

    model = PerplexityModel(name)
    return f"{model.name}@{model.fingerprint[:8]}"
