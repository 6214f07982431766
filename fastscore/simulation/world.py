"""What a simulation is, and what all its sessions share: catalogue, policy, agent, models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from fastscore.errors import UsageError
from fastscore.llm.client import ChatClient
from fastscore.llm.options import OPENAI, ModelOptions
from fastscore.llm.spending import Meter
from fastscore.simulation.agents import SHOWN, Agent, Turn, local_agent
from fastscore.simulation.draws import AGENT, PHRASING, Draws
from fastscore.simulation.models import MARK, ModelAgent, ModelPhrasing
from fastscore.simulation.policy import Policy, load_policy
from fastscore.simulation.retrieval import GENRE, Retrieval, load_retrieval
from fastscore.simulation.users import UserPlan, plan_user

Phrase = Callable[[Sequence[Turn], str, Draws], tuple[str, dict[str, Any]]]
"""Says what a user means in other words, given the conversation so far; what to note of it."""


def converse(
    plan: UserPlan,
    agent: Agent,
    retrieval: Retrieval,
    *,
    seed: int,
    session: int,
    follows_system: bool,
    phrase: Phrase | None = None,
) -> dict[str, Any]:
    """Let a planned user talk to an agent.

    Parameters
    ----------
    plan, agent
        Who talks.
    retrieval
        The catalogue whose titles a user recognises in answers.
    seed, session
        Which session.
    follows_system
        Whether details are asked about titles that the system named.
    phrase
        Rewords what the user says; states, shifts and constraints stay as planned.

    Returns
    -------
    dict
        A log in the published schema.
    """
    phrasing = Draws(seed, session, PHRASING)
    respond = agent.open(Draws(seed, session, AGENT))
    conversation: list[Turn] = []
    named: Sequence[str] = ()
    for planned in plan.turns:
        text, meta = planned.text(named), planned.meta
        if phrase is not None:
            text, notes = phrase(conversation, text, phrasing)
            meta = {**meta, **notes}
        conversation.append({"speaker": "USER", "text": text, "user_meta": meta})
        reply = respond(conversation)
        if follows_system:
            named = retrieval.find_titles(reply.text) or named
        conversation.append(
            {
                "speaker": "SYSTEM",
                "text": reply.text,
                "constraints": reply.constraints,
                "rec_titles": list(reply.titles[:SHOWN]),
                **reply.notes,
            }
        )
    return {
        "session_id": f"{session:05}",
        "model_name": agent.name,
        "true_genre": plan.true_genre,
        "conversation": conversation,
        "shift_events": plan.shift_events,
    }


TEMPLATE = "template"
VERSION = 1
"""Rises whenever the same arguments give other logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What is simulated.

    Parameters
    ----------
    catalogue
        The file of items.
    agent
        ``offline``, ``openai:MODEL``, ``python:module.object`` or an entry point's name.
    user
        ``template``, or ``openai:MODEL`` to reword the template's texts.
    models
        How chat models are asked.
    off_catalogue
        What is done about a model's titles that the catalogue lacks.
    sessions, turns
        How many sessions of how many pairs of turns.
    seed
        Session i of one seed is the same user whatever the agent.
    output
        The folder of logs.
    policy
        The user's TOML file, or None for the built-in one.
    workers
        How many shards are simulated at once; with chat models, sessions are, as many as the
        models' concurrency.
    overwrite
        Whether another simulation's logs in `output` are replaced.
    """

    catalogue: str
    agent: str
    user: str = TEMPLATE
    models: ModelOptions = field(default_factory=ModelOptions)
    off_catalogue: str = MARK
    sessions: int
    turns: int
    seed: int
    output: Path
    policy: Path | None = None
    workers: int = 1
    overwrite: bool = False

    @property
    def asks_models(self) -> bool:
        """Whether a chat model recommends or speaks for the user."""
        return self.agent.startswith(OPENAI) or self.user.startswith(OPENAI)


@dataclass(frozen=True, slots=True)
class World:
    """What every session of a simulation shares."""

    simulation: Simulation
    retrieval: Retrieval
    policy: Policy
    agent: Agent
    phrase: ModelPhrasing | None = None
    client: ChatClient | None = None

    def session(self, number: int) -> bytes:
        """Simulate a session; return its log as a line."""
        asked = self.simulation
        plan = plan_user(
            self.retrieval, self.policy, seed=asked.seed, session=number, turns=asked.turns
        )
        log = converse(
            plan,
            self.agent,
            self.retrieval,
            seed=asked.seed,
            session=number,
            follows_system=self.policy.follows_system,
            phrase=self.phrase,
        )
        return orjson.dumps(log, option=orjson.OPT_APPEND_NEWLINE)


def open_world(simulation: Simulation, meter: Meter | None = None) -> World:
    """Load what a simulation needs.

    Parameters
    ----------
    simulation
        What is simulated.
    meter
        Counts what chat models are asked, with its own budget; None for that of the options.

    Raises
    ------
    UsageError
        The catalogue, the policy or the agent cannot be used.
    """
    retrieval = load_retrieval(simulation.catalogue)
    if not retrieval.index.get(GENRE):
        raise UsageError(
            f"--catalogue {simulation.catalogue}: has no genres, which simulated users begin with."
        )
    policy = load_policy(simulation.policy)
    if simulation.user != TEMPLATE and not simulation.user.startswith(OPENAI):
        raise UsageError(f"--user is {simulation.user!r}, expected {TEMPLATE} or {OPENAI}MODEL.")
    if not simulation.asks_models:
        return World(simulation, retrieval, policy, local_agent(simulation.agent, retrieval))
    return _with_models(simulation, retrieval, policy, meter)


def _with_models(
    simulation: Simulation, retrieval: Retrieval, policy: Policy, meter: Meter | None
) -> World:
    """Open the client, and what asks by it."""
    for flag, name in (("--agent", simulation.agent), ("--user", simulation.user)):
        if name == OPENAI:
            raise UsageError(f"{flag} {OPENAI} names no model.", f"Name one: {OPENAI}MODEL.")
    client = ChatClient(simulation.models, meter)
    agent: Agent
    if simulation.agent.startswith(OPENAI):
        model = simulation.agent.removeprefix(OPENAI)
        agent = ModelAgent(model, retrieval, client, simulation.off_catalogue)
    else:
        agent = local_agent(simulation.agent, retrieval)
    phrase = None
    if simulation.user.startswith(OPENAI):
        phrase = ModelPhrasing(simulation.user.removeprefix(OPENAI), client)
    return World(simulation, retrieval, policy, agent, phrase, client)


def fingerprint(world: World) -> dict[str, Any]:
    """Return what decides the logs, but for the number of sessions."""
    return {
        "version": VERSION,
        "catalogue": world.retrieval.digest,
        "policy": world.policy.digest,
        "agent": world.agent.identity,
        "user": world.phrase.identity if world.phrase else TEMPLATE,
        "turns": world.simulation.turns,
        "seed": world.simulation.seed,
    }
