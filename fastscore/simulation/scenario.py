"""The request of a simulation, from which the options of its command are made."""

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Literal

from fastscore.llm.requests import OPENAI, ModelOptions
from fastscore.settings.options import check_settings, setting

OFFLINE, TEMPLATE = "offline", "template"
OffCatalogue = Literal["mark", "ask-again"]
"""What is done about titles that the catalogue lacks: they are marked, at once or in the end."""
Refusals = Literal["mark", "leave-out"]
"""What is done about refusals: the log's turn is marked, or also has no text."""
MARK: Literal["mark"] = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Which users talk about what, for how long, and how what models say is treated."""

    catalogue: str = setting(MISSING, "The items: JSON, JSON Lines, CSV or Parquet.")
    user: str = setting(
        TEMPLATE,
        "Who says the user's words: template, or openai:MODEL, which rewords the template.",
    )
    off_catalogue: OffCatalogue = setting(
        MARK, "What is done about a model's titles that the catalogue lacks."
    )
    refusals: Refusals = setting(
        MARK,
        "What is done about a recommender's refusals: mark them, or leave out their text, so that "
        "their metrics are null.",
    )
    sessions: int = setting(MISSING, minimum=1)
    turns: int = setting(MISSING, minimum=1)
    seed: int = setting(
        0, "Seed of the users. Equal seeds give equal users for every agent.", minimum=0
    )
    policy: Path | None = setting(
        None, "The user's rates and phrases, a TOML file.  [default: the built-in one]"
    )
    models: ModelOptions = field(default_factory=ModelOptions)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation(Scenario):
    """What is simulated.

    Session i of one seed is the same user whatever the agent. `ids` is what sessions' ids begin
    with, so that those of several seeds differ. With chat models as many sessions run at once as
    the models' concurrency, otherwise `workers` shards.
    """

    agent: str = setting(
        OFFLINE,
        "Who recommends: offline, openai:MODEL, python:module.object, or an installed agent.",
    )
    ids: str = ""
    workers: int = setting(
        1, "Number of shards simulated at once. Default: the number of processors.", minimum=1
    )
    output: Path = setting(MISSING, "The folder of logs.", flags=("-o", "--output"))
    overwrite: bool = setting(False, "Replace an existing simulation in -o.")

    @property
    def asks_models(self) -> bool:
        """Whether a chat model recommends or speaks for the user."""
        return self.agent.startswith(OPENAI) or self.user.startswith(OPENAI)
