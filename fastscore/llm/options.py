"""How chat models are asked: plain values that a command line, a file or Python gives."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from fastscore.errors import UsageError, nearest
from fastscore.llm.requests import JSON_SCHEMA, STRUCTURED
from fastscore.paths import cache_root

OPENAI = "openai:"
"""Before the name of a model at a server with the usual protocol."""

KEY_VARIABLES = ("FASTSCORE_API_KEY", "OPENAI_API_KEY")
URL_VARIABLES = ("FASTSCORE_BASE_URL", "OPENAI_BASE_URL")
USUAL_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How models are asked.

    Parameters
    ----------
    base_url
        The server's; None for `URL_VARIABLES`, else `USUAL_URL`.
    temperature
        Passed on; None leaves it to the server.
    answer_tokens
        The most tokens of an answer.
    structured
        How a server is asked for JSON of a schema: ``json-schema`` as most take it, ``json-object``
        as llama.cpp's Python server does, ``none`` for what the prompt says alone.
    concurrency
        The most requests at once.
    timeout
        Seconds that a request may take.
    retries
        How often a request is sent again after a failure that may pass.
    max_requests, max_tokens
        Where to stop; None for never. What is asked again counts, what is kept does not.
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
    max_requests: int | None = None
    max_tokens: int | None = None
    answers: Path | None = None
    replay: bool = False

    def resolved(self) -> "ModelOptions":
        """Return the options with the server's address and the answers' file filled in."""
        if self.structured not in STRUCTURED:
            raise UsageError(
                f"Unknown structured {self.structured!r}.", nearest(self.structured, STRUCTURED)
            )
        url = self.base_url or _variable(URL_VARIABLES) or USUAL_URL
        return replace(
            self,
            base_url=url.rstrip("/"),
            answers=self.answers or cache_root() / "llm" / "answers.sqlite",
        )

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
