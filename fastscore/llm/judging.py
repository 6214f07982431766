"""From logs to a judge's folder."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastscore.llm.client import ChatClient
from fastscore.llm.judge import check_repeats, judge
from fastscore.llm.judgements import FAILURES, write_judgements
from fastscore.llm.options import OPENAI, ModelOptions
from fastscore.llm.rubrics import load_rubric
from fastscore.llm.spending import (
    MANIFEST,
    Failure,
    Meter,
    Spent,
    TooManyFailuresError,
    spending_recorded,
    too_many,
)
from fastscore.llm.transcripts import Transcript, Transcripts, find_logs, read_transcripts
from fastscore.run.lock import run_lock
from fastscore.run.progress import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is judged.

    Parameters
    ----------
    inputs
        Logs, or one run directory.
    model
        The judge's name at its server, with or without ``openai:`` before it.
    output
        The folder to write.
    suite
        Whose logs they are; None to take the run's, or the only suite that reads them.
    rubric
        A bundled rubric's name, or a TOML file.
    repeats, seed
        How often each dialogue is judged, and from which seed on.
    models
        How the judge is asked.
    files_from
        The folder from which the output names the logs' files; None to name them as given.
    """

    inputs: tuple[str, ...]
    model: str
    output: Path
    suite: str | None = None
    rubric: str = "pepper"
    repeats: int = 1
    seed: int = 0
    models: ModelOptions = field(default_factory=ModelOptions)
    files_from: Path | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's results.

    Parameters
    ----------
    summary
        The content of ``summary.json``.
    spent
        What this command spent.
    refusal
        The error if more samples failed than may. The folder is written all the same.
    """

    summary: dict[str, Any]
    spent: Spent
    refusal: TooManyFailuresError | None


def run_judge(asked: Judging, reporter: Reporter, meter: Meter | None = None) -> Judged:
    """Judge logs.

    Parameters
    ----------
    asked
        What is judged, by whom.
    reporter
        Shows the progress.
    meter
        Counts what is spent, with its own budget; None for that of the options.

    Raises
    ------
    InputError
        No dialogue can be read.
    UsageError
        The suite or the rubric is unknown, the repeats are not balanced, or no server is named.
    ModelServerError
        The server cannot be reached or refuses every request.
    """
    rubric = load_rubric(asked.rubric)
    check_repeats(rubric, asked.repeats)
    client = ChatClient(asked.models, meter)
    before = client.spent
    logs = find_logs(asked.inputs, asked.suite)
    transcripts = read_transcripts(logs)
    note_rejects(transcripts, reporter)
    dialogues = name_files(transcripts.dialogues, asked.files_from)
    described = {
        "suite": logs.suite,
        **describe_judge(asked, client),
        "repeats": asked.repeats,
        "log_rows_rejected": transcripts.rejects.height,
    }
    manifest = asked.output / MANIFEST
    with (
        run_lock(asked.output),
        spending_recorded(manifest, described, client.meter) as outcome,
    ):
        found = judge(
            dialogues,
            rubric,
            described["model"],
            client,
            reporter,
            repeats=asked.repeats,
            seed=asked.seed,
        )
        summary = write_judgements(asked.output, dialogues, found, rubric, described)
        outcome |= {
            "status": "incomplete" if found.failed or found.not_asked else "complete",
            "failures": summary["failures"],
        }
    refusal = refuse_failures(found.first_failure, len(found.failed), len(dialogues), asked)
    return Judged(summary, client.spent - before, refusal)


def refuse_failures(
    first: Failure | None, failed: int, samples: int, asked: Judging, noun: str = "dialogues"
) -> TooManyFailuresError | None:
    """Return the error if more dialogues failed than may."""
    if first is None:
        return None
    limit, place = asked.models.failure_limit, str(asked.output / FAILURES)
    return too_many(first, failed, samples, limit, noun=noun, place=place)


def describe_judge(asked: Judging, client: ChatClient) -> dict[str, Any]:
    """Return who judges, and how it is asked."""
    return {
        "model": asked.model.removeprefix(OPENAI),
        "endpoint": client.options.endpoint,
        "temperature": client.options.temperature,
        "seed": asked.seed,
    }


def note_rejects(transcripts: Transcripts, reporter: Reporter) -> None:
    """Report the rows that belong to no dialogue, if any."""
    if transcripts.rejects.height:
        first = transcripts.rejects.row(0, named=True)
        reporter.note(
            f"{transcripts.rejects.height:,} rows of the logs were rejected and are not judged, "
            f"the first {first['file']}:{first['line']} ({first['reason']})."
        )


def name_files(dialogues: tuple[Transcript, ...], start: Path | None) -> tuple[Transcript, ...]:
    """Name the files of dialogues from a folder, if one is given."""
    if start is None:
        return dialogues
    return tuple(replace(one, file=os.path.relpath(one.file, start)) for one in dialogues)
