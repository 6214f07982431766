"""Texts to vectors: each vector depends only on its text.

Texts of equal token count go through the model together, so nothing is padded or masked. One
model, single-threaded inside, is shared by as many Python threads as asked for (a run releases
the GIL): batches are independent, so threads change neither a result nor its order. The next
window is tokenised while the current one is in the model.

A text longer than the model takes is cut, or read whole: its windows do not overlap, and every
token lies in one. What a `VectorStore` keeps of it is the sum of its windows' vectors, each times
its tokens, so that texts can be joined: the direction of the sum of two is that of the mean by
tokens over the windows of both.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Vectors
from fastscore_jit.threads import raise_if_stopped
from fastscore_models.export import ExportedModel, find_exported, is_export_of, list_exported
from fastscore_models.recipe import ModelExportError, NotExportedError, list_recipes, load_recipe

from fastscore.errors import ModelError, UsageError, names_arguments
from fastscore.files import cache_root
from fastscore.settings.extras import require
from fastscore.settings.options import available_processors
from fastscore.vectors.precisions import (
    CPU,
    DEVICES,
    EXACT,
    DeviceName,
    Inference,
    Inputs,
    Precision,
    calls_at_once,
    check_device,
    check_precision,
    load_inference,
    run_batches,
)
from fastscore.vectors.view import (
    Progress,
    VectorView,
    as_texts,
    check_dim,
    scaled,
    truncate,
    without_nulls,
)

if TYPE_CHECKING:
    import polars as pl

    from fastscore.vectors.view import Texts

# Activations of 512 tokens stay close to the core's cache.
TOKENS_PER_BATCH = 512
_TEXTS_PER_WINDOW = 8192
_TEXTS_PER_LOOK = 512


class TextGroup(NamedTuple):
    """Texts of one token count."""

    # their places among the texts that were given, int64 (texts,); of windows, those of their texts
    rows: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]  # their token ids, int64 (texts, tokens)
    encodings: list[Any]  # the tokenizer's own records of them


def load_tokenizer(path: Path, max_tokens: int | None) -> Any:
    """Load a tokenizer that truncates at `max_tokens` (None: nowhere), special ones included."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode("")  # a template may name tokens that are not there
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # bare Exception, and panics, which are none
        raise ModelError(f"{path} cannot be read: {error}") from error
    if max_tokens is not None:
        tokenizer.enable_truncation(max_tokens)
    return tokenizer


def group_texts(
    texts: "pl.Series",
    tokenizer: Any,
    prefix: str = "",
    *,
    windows: bool = False,
    device: str = CPU,
) -> Iterator[TextGroup]:
    """Tokenise texts window by window and group each window's by token count, ascending.

    With ``windows`` what is truncated follows as texts of their own.
    """
    size = _TEXTS_PER_WINDOW * DEVICES[device].window_factor
    for start in range(0, len(texts), size):
        window = texts.slice(start, size).to_list()
        if prefix:
            window = [prefix + text for text in window]
        encodings: list[Any] = []
        for first in range(0, len(window), _TEXTS_PER_LOOK):
            raise_if_stopped()
            encodings += tokenizer.encode_batch_fast(window[first : first + _TEXTS_PER_LOOK])
        places = np.arange(start, start + len(window))
        if windows:
            places = np.repeat(places, [1 + len(whole.overflowing) for whole in encodings])
            encodings = [part for whole in encodings for part in (whole, *whole.overflowing)]
        tokens = [encoding.ids for encoding in encodings]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        order = np.argsort(lengths, kind="stable")
        cuts = np.flatnonzero(np.diff(lengths[order])) + 1
        for rows in np.split(order, cuts):
            yield TextGroup(
                places[rows],
                np.array([tokens[row] for row in rows], np.int64),
                [encodings[row] for row in rows],
            )


def cut_batches(texts: int, tokens: int, device: str = CPU) -> Iterator[slice]:
    """Cut texts of one token count into batches for a model.

    A text is in a batch of its own only where it is the only one: two cost little more than one,
    whose result a runtime may add up in another order.
    """
    size = max(2, TOKENS_PER_BATCH * DEVICES[device].batch_factor // max(1, tokens))
    for start in range(0, texts, size):
        left = texts - start
        if left > 1 or texts == 1:  # a last one alone has joined those before it
            yield slice(start, start + (left if left == size + 1 else size))


@names_arguments
class Embedder:
    """An exported model, ready to encode.

    Parameters
    ----------
    recipe
        A model's name, the path of a recipe file (``.toml``) that was exported, or the folder of an
        export: ``model.onnx``, ``tokenizer.json`` and ``manifest.json``.
    precision
        ``"fp32"``: equal to sentence-transformers within 1e-6. ``"bf16"``: faster, if the processor
        supports it. `fastscore models verify` measures its accuracy.
    device
        ``"cpu"``, or ``"cuda"`` for an NVIDIA GPU, which needs the extra `cuda` and runs fp32.
    threads
        Batches in the model at once. Default: one per processor. No vector depends on it.
    cache_dir
        Root of the cache. Default: ``FASTSCORE_CACHE``, or ``~/.cache/fastscore``.

    Raises
    ------
    ModelError
        If the model is unknown, not exported or damaged, or cannot run here as asked.
    UsageError
        If `precision`, `device` or `threads` cannot be used.

    Examples
    --------
    >>> embedder = fastscore.Embedder("minilm-l6-v2")
    >>> embedder.embed(pl.Series(["a table for two", None]))
    """

    def __init__(
        self,
        recipe: str = "minilm-l6-v2",
        *,
        precision: Precision = EXACT,
        device: DeviceName = CPU,
        threads: int | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        require("embed", "Comparing texts by meaning")
        check_precision(precision)
        check_device(device, precision)
        if threads is not None and threads < 1:
            raise UsageError(f"The number of threads is {threads}: expected at least 1.")
        self.precision = precision
        self.device = device
        self.threads = threads or available_processors()
        self.exported = _find(recipe, cache_dir or cache_root())
        self._loaded: tuple[Inference, Any] | None = None
        self._loading = threading.Lock()

    def __repr__(self) -> str:
        return f"Embedder({self.name!r}, precision={self.precision!r}, device={self.device!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self.exported.recipe.name

    @property
    def dim(self) -> int:
        """Full width of the vectors."""
        return self.exported.dim

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's vector."""
        recipe = self.exported.recipe
        parts = {
            "max_tokens": recipe.max_tokens,
            "normalisation": recipe.normalisation,
            "onnx": self.exported.onnx_sha256,
            "pooling": recipe.pooling,
            "precision": self.precision,
            "prefix": recipe.prefix,
            "tokenizer": self.exported.tokenizer_sha256,
        }
        if self.device != CPU:
            parts["device"] = self.device
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def embed(
        self,
        texts: "pl.Series | Sequence[str | None]",
        *,
        dim: int | None = None,
        progress: Progress | None = None,
    ) -> "pl.Series":
        """Embed a column of texts, each distinct text once.

        Parameters
        ----------
        texts
            Strings. `VectorStore.get_or_embed` keeps their vectors for later calls.
        dim
            Keep the leading `dim` components and normalise anew. Default: all.
        progress
            Called with (texts done, texts in all), of distinct texts.

        Returns
        -------
        pl.Series
            Of dtype ``Array(Float32, dim)``, each vector of length 1. Null if the text is.

        Raises
        ------
        ModelError
            If the model's files are damaged.
        UsageError
            If `dim` is not within the model's width, or the texts are not strings.
        """
        series = as_texts(texts)
        distinct = series.drop_nulls().unique(maintain_order=True)
        vectors = self.encode(distinct, dim=dim, progress=progress)
        return VectorView.from_texts(distinct, vectors).series(series)

    def encode(
        self, texts: "Texts", *, dim: int | None = None, progress: Progress | None = None
    ) -> Vectors:
        """Embed texts into a matrix.

        Parameters
        ----------
        texts
            Strings, a polars Series or an Arrow array, without nulls. Repeats are embedded again.
        dim
            Keep the leading `dim` components and normalise anew; None for all.
        progress
            Called with (texts done, texts in all).

        Returns
        -------
        float32 (n, dim)
            C-contiguous, rows of length 1 in the order of `texts`.

        Raises
        ------
        ModelError
            If the model's files are damaged.
        UsageError
            If `dim` is not within the model's width, or a text is null.
        """
        width = check_dim(dim, self.dim)
        series = without_nulls(texts)
        vectors = np.empty((len(series), width), np.float32)
        run, tokenizer = self._load()
        done, batches = 0, self._batches(series, tokenizer)
        calls = calls_at_once(self.precision, self.threads, self.device)
        with closing(run_batches(run, batches, calls)) as outputs:
            for output, rows in outputs:
                vectors[rows] = truncate(output, width)
                done += len(rows)
                if progress is not None:
                    progress(done, len(series))
        return vectors

    def open_model(self) -> Inference:
        """Return the model itself: token ids of equal count to vectors, from any thread."""
        return self._load()[0]

    def _load(self) -> tuple[Inference, Any]:
        """Check the model's files and open them, once for all threads."""
        with self._loading:
            if self._loaded is None:
                exported = self.exported
                with export_errors_explained():
                    exported.check_hashes()
                self._loaded = (
                    load_inference(exported, self.precision, self.threads, self.device),
                    load_tokenizer(exported.tokenizer_path, exported.recipe.max_tokens),
                )
            return self._loaded

    def _batches(
        self, series: "pl.Series", tokenizer: Any
    ) -> Iterator[tuple[Inputs, npt.NDArray[np.int64]]]:
        """Yield the inputs of texts of equal token count, and the texts' rows."""
        prefix = self.exported.recipe.prefix
        for group in group_texts(series, tokenizer, prefix, device=self.device):
            texts, tokens = group.ids.shape
            for batch in cut_batches(texts, tokens, self.device):
                yield {"input_ids": group.ids[batch]}, group.rows[batch]


Embed = Callable[[list[str]], npt.ArrayLike]
"""A function of the caller's: from texts to a matrix with a row for each."""

_PROBES = ["a table for two", "Where is the station?", "Hay una mesa libre?", "\u4f60\u597d"]
_TEXTS_PER_CALL = 1024


class FunctionEmbedder:
    """Vectors by a function of the caller, which gets up to 1,024 distinct texts at once.

    Nobody knows what decides its vectors. So signatures tell it by its name and its vectors of a
    few texts, and no vector is kept longer than this object, unless a store is named.
    """

    precision: Precision = EXACT
    device: DeviceName = CPU

    def __init__(self, function: Embed) -> None:
        self.function = function
        name = str(getattr(function, "__qualname__", type(function).__name__))
        self.name = name.rpartition("<locals>.")[2]

    @cached_property
    def _probed(self) -> Vectors:
        return self._call(_PROBES)

    @cached_property
    def store(self) -> TemporaryDirectory[str]:
        """The folder of the vectors' store."""
        return TemporaryDirectory(prefix="fastscore-")

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return int(self._probed.shape[1])

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over the name and the vectors of a few texts."""
        parts = (self.name, self._probed.round(5).tolist())
        return _fingerprint("function", json.dumps(parts))

    def encode(
        self, texts: "Texts", *, dim: int | None = None, progress: Progress | None = None
    ) -> Vectors:
        """Embed texts into a matrix of rows of length 1, as `Embedder.encode` does."""
        series = without_nulls(texts)
        vectors = np.empty((len(series), check_dim(dim, self.dim)), np.float32)
        for start in range(0, len(series), _TEXTS_PER_CALL):
            raise_if_stopped()
            some = series.slice(start, _TEXTS_PER_CALL).to_list()
            found = self._call(some)
            for place in np.flatnonzero(~found.any(axis=1)).tolist():
                if some[place].strip():
                    raise ModelError(
                        f"The embedder {self.name} gave a vector of zeros for {some[place]!r:.80}, "
                        "and no text is like it.",
                        "Give a vector that is not all zeros for each text that is not blank.",
                    )
            vectors[start : start + len(some)] = truncate(found, vectors.shape[1])
            if progress is not None:
                progress(start + len(some), len(series))
        return vectors

    def _call(self, texts: list[str]) -> Vectors:
        try:
            given = self.function(texts)
            if given is None or np.iscomplexobj(given):
                raise TypeError("it returned " + ("None" if given is None else "complex numbers"))
            found = np.asarray(given, np.float32)
        except Exception as error:
            raise ModelError(
                f"The embedder {self.name} failed on {len(texts)} texts: {error!r}.",
                "Give a function that takes a list of strings and returns a matrix.",
            ) from error
        is_finite = np.isfinite(found).all()
        if found.ndim != 2 or len(found) != len(texts) or not is_finite:
            raise ModelError(
                f"The embedder {self.name} gave an array of shape {found.shape} for {len(texts)} "
                f"texts{'' if is_finite else ', NaN or an infinity in it'}, expected a row of "
                "finite numbers for each."
            )
        return scaled(found)


@contextmanager
def export_errors_explained() -> Iterator[None]:
    """Raise what `fastscore_models` refuses as a `ModelError`."""
    try:
        yield
    except ModelExportError as error:
        raise ModelError(error.message, error.hint) from error


def _find(name: str, cache: Path) -> ExportedModel:
    """Find an export, and refuse one that its recipe no longer describes."""
    if is_model_folder(name):
        name = str(Path(name).absolute())
    elif name and Path(name).is_dir() and name not in (*list_recipes(), *list_exported(cache)):
        raise ModelError(
            f"The folder {name} has no manifest.json: it is no exported model.",
            f"Run `fastscore models export {name}` and give the name that it prints.",
        )
    with export_errors_explained():
        described = name.endswith(".toml") or name in list_recipes()
        wanted = load_recipe(name) if described else None
        try:
            exported = find_exported(wanted.name if wanted else name, cache)
        except NotExportedError as error:
            if name not in list_exported(cache):
                _check_name(name)  # an unknown name has a message of its own
            raise ModelError(error.message, f"Run `fastscore models export {name}`.") from error
    if wanted is not None and not is_export_of(exported, wanted):
        raise ModelError(
            f"The model {wanted.name!r} was exported from another recipe than {name} is now.",
            f"Run `fastscore models export {name}`.",
        )
    return exported


def _check_name(name: str) -> None:
    """Refuse an unknown model, such as ``sentence-transformers/all-MiniLM-L6-v2``."""
    owner, _, model = name.partition("/")
    if owner.strip(".~") and model and "/" not in model and not Path(name).exists():
        close = get_close_matches(model.lower(), list_recipes(), n=1, cutoff=0.7)
        raise ModelError(
            f"There is no exported model {name!r}.",
            (f"Did you mean {close[0]!r}? " if close else "")
            + f"For a model of the Hugging Face hub, run `fastscore models export {name}` and give "
            "the name that it prints.",
        )
    load_recipe(name)


def check_model_name(name: "str | FunctionEmbedder") -> None:
    """Refuse the name of a model that there is not, exported or yet to be."""
    if isinstance(name, FunctionEmbedder) or is_model_folder(name):
        return
    if name not in list_exported(cache_root()):
        with export_errors_explained():
            _check_name(name)


def is_model_folder(name: str) -> bool:
    """Tell whether a name is the folder of an exported model, and no recipe's name."""
    return (Path(name) / "manifest.json").is_file() and name not in list_recipes()


_Tag = tuple[npt.NDArray[np.int64], int]
_TEXTS_PER_COUNT = 8192


class WindowEmbedder:
    """An embedder that reads texts of any length, window by window."""

    def __init__(self, embedder: Embedder | FunctionEmbedder) -> None:
        self._embedder = embedder

    @property
    def dim(self) -> int:
        """Full width of the vectors."""
        return self._embedder.dim

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's sum."""
        return _fingerprint("sum over windows, times tokens", self._embedder.fingerprint)

    def encode(self, texts: "Texts", *, progress: Progress | None = None) -> Vectors:
        """Sum the vectors of each text's windows, each times its tokens without special ones.

        A function of the caller has no tokens: it takes texts whole, and their characters count.
        """
        series = without_nulls(texts)
        if isinstance(self._embedder, FunctionEmbedder):
            characters = np.maximum(series.str.len_chars().to_numpy(), 1)
            whole = self._embedder.encode(series, progress=progress) * characters[:, None]
            return np.asarray(whole, np.float32)
        run = self._embedder.open_model()
        sums = np.zeros((len(series), self.dim))
        begun = np.zeros(len(series), np.bool_)
        embedder = self._embedder
        calls = calls_at_once(embedder.precision, embedder.threads, embedder.device)
        with closing(run_batches(run, self._batches(embedder, series), calls)) as outputs:
            for output, (rows, tokens) in outputs:
                np.add.at(sums, rows, tokens * output.astype(np.float64))
                begun[rows] = True
                if progress is not None:
                    progress(int(np.count_nonzero(begun)), len(series))
        return sums.astype(np.float32)

    def _batches(self, embedder: Embedder, series: "pl.Series") -> Iterator[tuple[Inputs, _Tag]]:
        """Yield windows of equal token count, the rows of their texts and the tokens of each."""
        exported = embedder.exported
        tokenizer = load_tokenizer(exported.tokenizer_path, None)
        prefix = tokenizer.encode(exported.recipe.prefix, add_special_tokens=False).ids
        # every window has the prefix, so the text has that much less room
        tokenizer.enable_truncation(exported.recipe.max_tokens - len(prefix))
        special = tokenizer.num_special_tokens_to_add(False)
        leading = _leading_specials(tokenizer)
        device = embedder.device
        for group in group_texts(series, tokenizer, windows=True, device=device):
            tokens = max(1, group.ids.shape[1] - special)
            ids = np.insert(group.ids, [leading] * len(prefix), prefix, axis=1)
            for batch in cut_batches(len(ids), ids.shape[1], device):
                yield {"input_ids": ids[batch]}, (group.rows[batch], tokens)


class TokenCounter:
    """Counts the tokens of texts as an embedder's model would take them, if it took them whole."""

    dim = 1

    def __init__(self, embedder: Embedder) -> None:
        self._exported = embedder.exported

    @property
    def limit(self) -> int:
        """The most tokens that the model takes; of longer texts it takes the beginning."""
        return self._exported.recipe.max_tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's tokens."""
        exported = self._exported
        return _fingerprint("tokens", exported.tokenizer_sha256, exported.recipe.prefix)

    def encode(self, texts: "Texts", *, progress: Progress | None = None) -> Vectors:
        """Count the tokens of each text, special ones and the prefix included, float32 (n, 1)."""
        series = without_nulls(texts)
        tokenizer = load_tokenizer(self._exported.tokenizer_path, None)
        counts = np.empty((len(series), 1), np.float32)
        for start in range(0, len(series), _TEXTS_PER_COUNT):
            some = (self._exported.recipe.prefix + series.slice(start, _TEXTS_PER_COUNT)).to_list()
            encodings = tokenizer.encode_batch_fast(some)
            counts[start : start + len(some), 0] = [len(encoding.ids) for encoding in encodings]
            if progress is not None:
                progress(start + len(some), len(series))
        return counts

    def may_be_cut(self, texts: "pl.Series") -> npt.NDArray[np.bool_]:
        """Say which texts are so long that counting their tokens is worth it.

        A token has at least one character of the normalised text; normalising lengthens no ASCII
        text, and others to six characters a byte at most.
        """
        n_bytes = texts.str.len_bytes().to_numpy().astype(np.int64)
        is_ascii = n_bytes == texts.str.len_chars().to_numpy()
        most = np.where(is_ascii, n_bytes, 6 * n_bytes) + len(self._exported.recipe.prefix) + 8
        found: npt.NDArray[np.bool_] = most > self.limit
        return found


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _leading_specials(tokenizer: Any) -> int:
    """Return how many special tokens precede a text."""
    mask: list[int] = tokenizer.encode("a").special_tokens_mask
    return mask.index(0)
