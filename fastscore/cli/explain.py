"""``fastscore explain``: why a number of a dialogue is what it is."""

from pathlib import Path

import click

from fastscore.terminal import write


@click.command(
    "explain",
    epilog="Examples: fastscore explain run dialogue-17 U_best; "
    "fastscore explain run --worst average_U_best_early",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("dialogue", required=False)
@click.argument("metric", required=False)
@click.option("--worst", metavar="METRIC", help="The dialogue with the worst value of a metric.")
@click.option("--best", metavar="METRIC", help="The one with the best.")
@click.option("--random", "at_random", is_flag=True, help="A dialogue at random.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of --random."
)
@click.option("--json", "as_json", is_flag=True, help="Print all evidence as JSON.")
def command(
    run: Path,
    dialogue: str | None,
    metric: str | None,
    worst: str | None,
    best: str | None,
    at_random: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Show how METRIC of DIALOGUE in RUN was computed. Default: every metric of dialogues.

    DIALOGUE is its name, or a part of it that no other has. It is read again from its log and
    scored by itself, and its numbers must equal the run's. Shown are numerator and denominator,
    the formula with the values in it, and the evidence: [matched] characters, concepts, places,
    turns.
    """
    from fastscore.results.dialogue_sums import LABEL_TABLE
    from fastscore.results.dialogues import Dialogues
    from fastscore.results.explaining import (
        choose_dialogue,
        explain,
        explanations_json,
        print_explanations,
    )
    from fastscore.results.runs import open_run
    from fastscore.terminal import result_console

    dialogues = Dialogues(open_run(run))
    if (worst or best or at_random) and dialogue is not None and metric is None:
        dialogue, metric = None, dialogue
    row = choose_dialogue(
        dialogues, dialogue, worst=worst, best=best, seed=seed if at_random else None
    )
    chosen = metric or worst or best
    metrics = [chosen] if chosen else dialogues.explained_metrics
    found = explain(dialogues, row, metrics)
    if as_json:
        file = dialogues.tables([row])[0][LABEL_TABLE]["file"][0]
        write(explanations_json(dialogues.names["name"][row], file, found))
    else:
        print_explanations(result_console(), dialogues, row, found)
