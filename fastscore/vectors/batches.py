"""From texts to batches of equal token count, and batches through a model on several threads.

Nothing is padded or masked, so a text's result depends on the text alone, to the last bit.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from fastscore_jit.stopping import raise_if_stopped, result_of

from fastscore.errors import ModelError
from fastscore.vectors.runtimes import Calls, Inference, Inputs

if TYPE_CHECKING:
    import polars as pl

# Activations of 512 tokens stay close to the core's cache.
TOKENS_PER_BATCH = 512
_TEXTS_PER_WINDOW = 8192
_TEXTS_PER_LOOK = 512

Tag = TypeVar("Tag")


class TextGroup(NamedTuple):
    """Texts of one token count.

    Attributes
    ----------
    rows : int64 (texts,)
        Their places among the texts that were given; of windows, those of their texts.
    ids : int64 (texts, tokens)
        Their token ids.
    encodings
        The tokenizer's own records of them.
    """

    rows: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]
    encodings: list[Any]


def load_tokenizer(path: Path, max_tokens: int | None) -> Any:
    """Load a tokenizer that truncates at `max_tokens`, special ones included, and never pads.

    None truncates nothing.

    Raises
    ------
    ModelError
        If the file cannot be read.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelError(f"{path} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if max_tokens is not None:
        tokenizer.enable_truncation(max_tokens)
    return tokenizer


def group_texts(
    texts: "pl.Series", tokenizer: Any, prefix: str = "", *, windows: bool = False
) -> Iterator[TextGroup]:
    """Tokenise texts window by window and group each window's by token count, ascending.

    Parameters
    ----------
    texts
        Strings without nulls.
    tokenizer
        From `load_tokenizer`.
    prefix
        Put before every text.
    windows
        Whether what is truncated follows as texts of their own, each truncated in its turn.
    """
    for start in range(0, len(texts), _TEXTS_PER_WINDOW):
        window = texts.slice(start, _TEXTS_PER_WINDOW).to_list()
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


def cut_batches(texts: int, tokens: int) -> Iterator[slice]:
    """Cut texts of one token count into batches for a model.

    A text is in a batch of its own only where it is the only one: two cost little more than one,
    whose result a runtime may add up in another order.

    Parameters
    ----------
    texts
        How many there are.
    tokens
        How many tokens each has.
    """
    size = max(2, TOKENS_PER_BATCH // tokens)
    for start in range(0, texts, size):
        left = texts - start
        if left > 1 or texts == 1:  # a last one alone has joined those before it
            yield slice(start, start + (left if left == size + 1 else size))


def run_batches(
    run: Inference, batches: Iterable[tuple[Inputs, Tag]], threads: int
) -> Generator[tuple[npt.NDArray[np.float32], Tag], None, None]:
    """Run batches on so many threads; yield each one's output and tag in the order given.

    The next batches are made while earlier ones are in the model. Closed early, or asked to stop,
    those that wait are given up, and those in the model end where its runtime lets them.
    """
    calls = Calls()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="fastscore-model", initializer=calls.join)
    try:
        running: deque[tuple[Future[npt.NDArray[np.float32]], Tag]] = deque()
        for inputs, tag in batches:
            running.append((pool.submit(run, inputs), tag))
            # Enough in flight to keep threads busy while the next window is tokenised.
            while len(running) > 4 * threads:
                future, done = running.popleft()
                yield result_of(future), done
        while running:
            future, done = running.popleft()
            yield result_of(future), done
    finally:
        calls.end()
        pool.shutdown(wait=True, cancel_futures=True)
