"""From logs to a judge's folder."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastscore.llm.client import ChatClient, ModelServerError, Spent
from fastscore.llm.judge import judge
from fastscore.llm.judgements import REJECTS, write_judgements
from fastscore.llm.options import OPENAI, ModelOptions
from fastscore.llm.rubrics import load_rubric
from fastscore.llm.transcripts import read_transcripts
from fastscore.run.lock import sole_writer
from fastscore.run.progress import Reporter


class NothingJudgedError(ModelServerError):
    """Not one answer of a judge could be used; ``spent`` says what it cost."""

    def __init__(self, message: str, hint: str, spent: Spent) -> None:
        super().__init__(message, hint)
        self.spent = spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is judged.

    Parameters
    ----------
    inputs, suite
        Logs, and whose they are.
    rubric
        A bundled rubric's name, or a TOML file.
    model
        The judge's name at its server, with or without ``openai:`` before it.
    repeats, seed
        How often each dialogue is judged, and from which seed on.
    output
        The folder to write.
    models
        How the judge is asked.
    files_from
        The folder from which the output names the logs' files; None to name them as given.
    """

    inputs: tuple[str, ...]
    model: str
    output: Path
    suite: str = "preference_shift"
    rubric: str = "pepper"
    repeats: int = 1
    seed: int = 0
    models: ModelOptions = field(default_factory=ModelOptions)
    files_from: Path | None = None


def run_judge(asked: Judging, reporter: Reporter) -> tuple[dict[str, Any], Spent]:
    """Judge logs; return the summary and what was spent.

    Raises
    ------
    InputError
        No dialogue can be read.
    UsageError
        The suite or the rubric is not known.
    ModelServerError
        The server fails.
    NothingJudgedError
        Not one answer could be used; the folder is written all the same.
    """
    rubric = load_rubric(asked.rubric)
    transcripts = read_transcripts(asked.inputs, asked.suite)
    if transcripts.rejects.height:
        first = transcripts.rejects.row(0, named=True)
        reporter.note(
            f"{transcripts.rejects.height:,} rows of the logs were rejected and are not judged, "
            f"the first {first['file']}:{first['line']} ({first['reason']})."
        )
    dialogues = transcripts.dialogues
    if asked.files_from is not None:
        start = asked.files_from
        dialogues = tuple(replace(one, file=os.path.relpath(one.file, start)) for one in dialogues)
    model = asked.model.removeprefix(OPENAI)
    client = ChatClient(asked.models)
    with sole_writer(asked.output):
        found = judge(
            dialogues,
            rubric,
            model,
            client,
            reporter,
            repeats=asked.repeats,
            seed=asked.seed,
        )
        described = {
            "suite": asked.suite,
            "model": model,
            "endpoint": client.options.endpoint,
            "temperature": client.options.temperature,
            "repeats": asked.repeats,
            "seed": asked.seed,
            "log_rows_rejected": transcripts.rejects.height,
        }
        summary = write_judgements(asked.output, dialogues, found, rubric, described)
    if found.scores.is_empty():
        raise NothingJudgedError(
            f"Not one answer of {model} could be used: {found.rejects['reason'][0]}.",
            f"All answers stand in {asked.output / REJECTS}.",
            client.spent,
        )
    return summary, client.spent
