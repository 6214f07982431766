"""One simulated conversation, as logs of preference_shift have it."""

from collections.abc import Callable, Sequence
from typing import Any

from fastscore.simulation.agents import SHOWN, Agent, Turn
from fastscore.simulation.draws import AGENT, PHRASING, Draws
from fastscore.simulation.retrieval import Retrieval
from fastscore.simulation.users import UserPlan

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
