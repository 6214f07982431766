"""What the first rows of a log say against how it is read, and what to type."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from fastscore.logs.inputs.column_map import Flag, UnmappedLogError, typed
from fastscore.logs.inputs.folders import name_file

FILE = "FILE"
"""What stands for the log in the commands of findings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, options that read the log, or what else to do, perhaps with an example."""

    said: str
    flags: Sequence[Flag] = ()
    unless: str = ""
    example: Sequence[Flag] = ()
    more: str = ""

    def refused(self, file: str) -> UnmappedLogError:
        """Make the error of a file."""
        return UnmappedLogError(
            f"{file}: {self.said}",
            self.flags,
            unless=name_file(self.unless, file),
            example=self.example,
            more=self.more,
        )


_OF_DOCUMENTS = re.compile(r"\. \+ |\.[^ ]+ [|+]= ")
"""How programs begin that change each document, also in one array of documents."""


def jq(
    program: str,
    read: Sequence[Flag] = (),
    *,
    into: str = "chats.jsonl",
    slurps: bool = False,
    before: str = "",
    by_lines: bool = False,
) -> str:
    """Say how jq writes a log anew, and what reads that.

    jq gets each row, or all rows at once, perhaps after those of another file, or lines of text.
    """
    if _OF_DOCUMENTS.match(program) and not (slurps or by_lines):
        program = f"arrays[], objects | {program}"
    how = "-cs" if slurps else "-cnR" if by_lines else "-c"
    command = ["jq", how, program, *filter(None, [before]), FILE]
    then = f", and read it with {typed(read)}" if read else ""
    return f"Type {shlex.join(command)} > {into}{then}."


def jq_key(key: str) -> str:
    """Return a key as jq's paths spell it."""
    return key if key.isascii() and key.isidentifier() else json.dumps(key)


def jq_path(keys: Sequence[str]) -> str:
    """Return the path of keys in jq; of none the document itself."""
    return "".join(f".{jq_key(key)}" for key in keys) or "."
