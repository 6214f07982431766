"""``fastscore simulate``: conversations of simulated users with a recommender, as logs."""

from pathlib import Path
from typing import Any

import click

from fastscore.cli.command_types import HeadedCommand, SuggestingGroup
from fastscore.cli.model_options import model_options, read_model_options
from fastscore.processors import available_processors
from fastscore.terminal import write_note


@click.group(
    "simulate",
    cls=SuggestingGroup,
    epilog="`fastscore simulate preference_shift --help` lists the options.",
)
def command() -> None:
    """Simulate dialogues that a suite scores."""


@command.command(
    "preference_shift",
    cls=HeadedCommand,
    epilog="Example: fastscore simulate preference_shift --catalogue movies.json --agent offline "
    "--sessions 600 --turns 50 -o logs",
)
@click.option("--catalogue", required=True, help="The items: JSON, JSON Lines, CSV or Parquet.")
@click.option(
    "--agent",
    default="offline",
    show_default=True,
    help="Who recommends: offline, openai:MODEL, python:module.object, or an installed agent.",
)
@click.option(
    "--user",
    default="template",
    show_default=True,
    help="Who says the user's words: template, or openai:MODEL, which rewords the template.",
)
@click.option(
    "--off-catalogue",
    type=click.Choice(["mark", "ask-again", "ignore"]),
    default="mark",
    show_default=True,
    help="What is done about a model's titles that the catalogue lacks.",
)
@click.option("--sessions", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--turns", type=click.IntRange(min=1), default=50, show_default=True)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Seed of the users. Equal seeds give equal users for every agent.",
)
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    help="The user's rates and phrases, a TOML file.  [default: the built-in one]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=available_processors(),
    help="Number of shards simulated at once. Default: the number of processors.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder of logs."
)
@click.option("--overwrite", is_flag=True, help="Replace an existing simulation in -o.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@model_options
def preference_shift(
    catalogue: str,
    agent: str,
    user: str,
    off_catalogue: str,
    sessions: int,
    turns: int,
    seed: int,
    policy: Path | None,
    workers: int,
    output: Path,
    overwrite: bool,
    quiet: bool,
    **models: Any,
) -> None:
    """Users whose preferences shift talk with a recommender.

    Writes shards of JSON Lines that `fastscore score preference_shift` reads as they are. Running
    the same command again finishes an interrupted simulation. More --sessions add to it. Only
    openai:MODEL uses the network. Its answers are stored and never asked for again.
    """
    from fastscore.run.progress import reporter
    from fastscore.simulation.simulate import simulate
    from fastscore.simulation.world import Simulation

    asked = Simulation(
        catalogue=catalogue,
        agent=agent,
        user=user,
        off_catalogue=off_catalogue,
        models=read_model_options(models),
        sessions=sessions,
        turns=turns,
        seed=seed,
        output=output,
        policy=policy,
        workers=workers,
        overwrite=overwrite,
    )
    done = simulate(asked, reporter(quiet=quiet))
    if done.refusal is not None:
        if done.spent is not None and not quiet:
            write_note(done.spent.line(asked.models.prices))
        raise done.refusal
    if not quiet:
        if done.spent is not None:
            write_note(done.spent.line(asked.models.prices))
        if done.failed:
            write_note(
                f"{done.failed:,} sessions failed and are missing from the logs; the same command "
                "asks for them again"
            )
        write_note(
            f"next: fastscore score preference_shift {output} --catalogue {catalogue} "
            "--segments metadata --embedder none -o RUN"
        )
