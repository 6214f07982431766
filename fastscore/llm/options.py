"""How chat models are asked: plain values that a command line, a file or Python gives."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from fastscore.errors import UsageError, did_you_mean
from fastscore.llm.requests import JSON_SCHEMA, STRUCTURED
from fastscore.llm.spending import DEFAULT_MAX_FAILURES, FailureLimit, Limits, Prices, parse_limit
from fastscore.paths import cache_root

OPENAI = "openai:"
"""Before the name of a model at a server with the usual protocol."""

KEY_VARIABLES = ("FASTSCORE_API_KEY", "OPENAI_API_KEY")
URL_VARIABLES = ("FASTSCORE_BASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How models are asked.

    Parameters
    ----------
    base_url
        The server's address; None for that of `URL_VARIABLES`.
    temperature
        Passed on; None leaves it to the server.
    answer_tokens
        The most tokens of an answer.
    structured
        How a server is asked for JSON of a schema: ``json-schema`` as most take it, ``json-object``
        as llama.cpp's Python server does, ``none`` for the prompt alone.
    concurrency
        The most requests at once.
    timeout
        Seconds that a request may take.
    retries
        How often a request is sent again after a failure that may pass.
    max_failures
        The most samples that may fail: a count, or a share as ``"5%"`` or 0.05.
    max_requests, max_tokens, max_cost
        The budget; None for no limit. What is sent again counts, what is kept does not.
    prices
        What a million tokens cost.
    answers
        The file that keeps answers; None for the one in the cache.
    replay
        Whether only answers that are kept are used: no connection is opened.
    """

    base_url: str | None = None
    temperature: float | None = None
    answer_tokens: int = 512
    structured: str = JSON_SCHEMA
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 6
    max_failures: str | float = DEFAULT_MAX_FAILURES
    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: Prices = field(default_factory=Prices)
    answers: Path | None = None
    replay: bool = False

    def resolved(self) -> "ModelOptions":
        """Return the options with the server's address and the answers' file filled in.

        Raises
        ------
        UsageError
            No server is named, or an option cannot be used.
        """
        if self.structured not in STRUCTURED:
            raise UsageError(
                f"Unknown structured {self.structured!r}.",
                did_you_mean(self.structured, STRUCTURED),
            )
        url = self.base_url or _variable(URL_VARIABLES)
        if url is None:
            raise UsageError(
                "No server of chat models is named.",
                f"Name one with --base-url, or set {' or '.join(URL_VARIABLES)}.",
            )
        if self.max_cost is not None and not self.prices.are_given:
            raise UsageError("--max-cost needs prices.", "Give them with --prices.")
        parse_limit(self.max_failures)
        return replace(
            self,
            base_url=url.rstrip("/"),
            answers=self.answers or cache_root() / "llm" / "answers.sqlite",
        )

    @property
    def limits(self) -> Limits:
        """The budget."""
        return Limits(
            requests=self.max_requests,
            tokens=self.max_tokens,
            cost=self.max_cost,
            prices=self.prices,
        )

    @property
    def failure_limit(self) -> FailureLimit:
        """The most samples that may fail."""
        return parse_limit(self.max_failures)

    @property
    def endpoint(self) -> str:
        """The server's address without what may be secret in it: who, and a query."""
        parts = urlsplit(self.base_url or "")
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


def api_key() -> str | None:
    """Return the key that the environment holds, or None."""
    return _variable(KEY_VARIABLES)


def _variable(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
