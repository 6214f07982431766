"""The options of every verb that asks chat models."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastscore.cli.command_types import HeadedOption

if TYPE_CHECKING:
    from fastscore.llm.options import ModelOptions

Command = TypeVar("Command", bound=Callable[..., Any])

HEADING = "How models are asked"

_DECLARED: dict[str, tuple[str, dict[str, Any]]] = {
    "base_url": (
        "--base-url",
        {
            "help": "The models' server, such as http://127.0.0.1:11434/v1.  [default: "
            "FASTSCORE_BASE_URL or OPENAI_BASE_URL]. The key comes from FASTSCORE_API_KEY or "
            "OPENAI_API_KEY."
        },
    ),
    "temperature": (
        "--temperature",
        {"type": float, "help": "Passed on.  [default: the server's]"},
    ),
    "answer_tokens": (
        "--answer-tokens",
        {"type": click.IntRange(min=1), "default": 512, "help": "The most tokens of an answer."},
    ),
    "structured": (
        "--structured",
        {
            "type": click.Choice(["json-schema", "json-object", "none"]),
            "default": "json-schema",
            "help": "How to request JSON: json-object is for llama.cpp's Python server, none "
            "uses the prompt only.",
        },
    ),
    "concurrency": (
        "--concurrency",
        {"type": click.IntRange(min=1), "default": 8, "help": "The most requests at once."},
    ),
    "timeout": (
        "--timeout",
        {"type": click.FloatRange(min=0.001), "default": 120.0, "help": "Seconds of a request."},
    ),
    "retries": (
        "--retries",
        {
            "type": click.IntRange(min=0),
            "default": 6,
            "help": "Retries of a request after a failure that may pass.",
        },
    ),
    "max_failures": (
        "--max-failures",
        {
            "default": "5%",
            "help": "Maximum of failed samples: a count or a share such as 5%. Above it exit 4.",
        },
    ),
    "max_requests": (
        "--max-requests",
        {
            "type": click.IntRange(min=0),
            "help": "Maximum number of requests. Later the command can continue.",
        },
    ),
    "max_tokens": (
        "--max-tokens",
        {"type": click.IntRange(min=0), "help": "The most tokens, sent and received."},
    ),
    "max_cost": (
        "--max-cost",
        {"type": click.FloatRange(min=0), "help": "The most that tokens may cost, by --prices."},
    ),
    "prices": (
        "--prices",
        {
            "type": (click.FloatRange(min=0), click.FloatRange(min=0)),
            "metavar": "SENT RECEIVED",
            "help": "Prices of a million tokens sent and of a million received, in USD.",
        },
    ),
    "answers": (
        "--answers",
        {
            "type": click.Path(path_type=Path, dir_okay=False),
            "help": "The SQLite file that keeps every answer.  [default: in the cache]",
        },
    ),
    "replay": (
        "--replay",
        {"is_flag": True, "help": "Use stored answers only and open no connection."},
    ),
}


def model_options(command: Command) -> Command:
    """Give a command the options; they arrive as keyword arguments for `read_model_options`."""
    for name, (flag, declared) in reversed(_DECLARED.items()):
        shown = declared.get("default") is not None
        command = click.option(
            flag, name, cls=HeadedOption, heading=HEADING, show_default=shown, **declared
        )(command)
    return command


def read_model_options(given: dict[str, Any]) -> "ModelOptions":
    """Take the options out of a command's keyword arguments."""
    from fastscore.llm.options import ModelOptions
    from fastscore.llm.spending import Prices

    taken = {name: given.pop(name) for name in _DECLARED}
    prompt, completion = taken.pop("prices") or (0.0, 0.0)
    return ModelOptions(**taken, prices=Prices(prompt=prompt, completion=completion))
