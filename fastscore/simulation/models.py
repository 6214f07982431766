"""Chat models in a simulation: as recommenders, and for the words of a user.

A model recommends from what retrieval found, told so by its prompt; what it says is checked
against the catalogue, because a prompt binds nobody. A user's model only rewords the planned turn:
state, shifts and constraints stay the plan's.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fastscore.content_hash import hash_bytes
from fastscore.llm.client import Asks
from fastscore.llm.options import OPENAI
from fastscore.llm.requests import ASSISTANT, SYSTEM, USER, Answer, ChatRequest
from fastscore.simulation.agents import SHOWN, Reply, Respond, Turn, restate_constraints
from fastscore.simulation.draws import Draws
from fastscore.simulation.retrieval import Item, Retrieval
from fastscore.simulation.users import ConstraintReader
from fastscore.suites.preference_shift.catalogue import NAME

MARK, ASK_AGAIN, IGNORE = "mark", "ask-again", "ignore"
OFF_CATALOGUE = (MARK, ASK_AGAIN, IGNORE)
"""What is done about titles that the catalogue does not have."""

MOST_AGAIN = 2
"""How often an answer of no use is asked for again."""

_READING = "reading=2"
"""How answers become turns; the number rises if equal answers give other turns."""

_PLOT_LENGTH = 300
_QUOTED = re.compile(
    r'"([^"\n]{1,120})"|\u201c([^\u201d\n]{1,120})\u201d|\*{1,2}([^*\n]{1,120})\*{1,2}'
)
_DATED = re.compile(
    r"((?:[A-Z0-9][\w'\u2019:&,.!-]*\s+)(?:[\w'\u2019:&,.!-]+\s+){0,8}?)\(((?:18|19|20)\d\d)\)"
)
_YEAR_AFTER = re.compile(r"\s*\((?:1[89]|20)\d\d\)$")


@dataclass(frozen=True, slots=True)
class ModelAgent:
    """A chat model that recommends from what is retrieved.

    Parameters
    ----------
    model
        The model's name at its server.
    retrieval, client
        What it chooses from, and how it is asked.
    off_catalogue
        One of `OFF_CATALOGUE`: titles that the catalogue lacks are listed in the log's turn under
        ``unknown_titles``, or first asked about again, or not looked for.
    """

    model: str
    retrieval: Retrieval
    client: Asks
    off_catalogue: str = MARK

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def identity(self) -> str:
        """Model, server, prompt and what is done about unknown titles."""
        asked = self.client.options
        return (
            f"{OPENAI}{self.model} {asked.endpoint} temperature={asked.temperature} "
            f"tokens={asked.answer_tokens} off-catalogue={self.off_catalogue} {_READING} "
            f"{prompts_digest()}"
        )

    def open(self, draws: Draws) -> Respond:
        """Begin a session."""
        reader = ConstraintReader(self.retrieval)

        def respond(conversation: Sequence[Turn]) -> Reply:
            constraints = reader.read(conversation[-1]["text"])
            rows = self.retrieval.recommend(constraints, draws)[:SHOWN]
            shown = [self.retrieval.items[row] for row in rows]
            request = self._request(conversation, constraints, shown, draws)
            answer, unknown = self._answer(request)
            notes: dict[str, Any] = {}
            if unknown:
                notes["unknown_titles"] = unknown
            if answer.refused:
                notes["refused"] = True
            if answer.cut_off:
                notes["cut_off"] = answer.cut_off
            return Reply(answer.said, constraints, [item.title for item in shown], notes)

        return respond

    def _request(
        self,
        conversation: Sequence[Turn],
        constraints: Mapping[str, Sequence[str]],
        shown: Sequence[Item],
        draws: Draws,
    ) -> ChatRequest:
        words, asked = prompts()["agent"], self.client.options
        system = words["system"].format(
            constraints=restate_constraints(constraints),
            candidates="\n".join(_candidate(item, words) for item in shown) or "(none)",
        )
        roles = {"USER": USER, "SYSTEM": ASSISTANT}
        history = conversation[-1 - words["history"] :]
        # templates of many models want a user's message first
        while history and history[0]["speaker"] != "USER":
            history = history[1:]
        said = ((roles[turn["speaker"]], str(turn["text"])) for turn in history)
        return ChatRequest(
            model=self.model,
            messages=((SYSTEM, system.strip()), *said),
            temperature=asked.temperature,
            seed=_seed(draws),
            max_tokens=asked.answer_tokens,
        )

    def _answer(self, request: ChatRequest) -> tuple[Answer, list[str]]:
        """Ask; ask again for an empty answer, and about unknown titles where that is wanted."""
        for attempt in range(MOST_AGAIN + 1):
            answer = self.client.ask(request)
            looks = self.off_catalogue != IGNORE and not answer.refused
            unknown = unknown_titles(answer.said, self.retrieval) if looks else []
            is_last = attempt == MOST_AGAIN
            if not answer.said and not is_last:
                request = request.again()
            elif unknown and self.off_catalogue == ASK_AGAIN and not is_last:
                titles = ", ".join(f'"{title}"' for title in unknown)
                again = prompts()["agent"]["again"].format(titles=titles).strip()
                request = request.again((ASSISTANT, answer.said), (USER, again))
            else:
                break
        return answer, unknown


def _candidate(item: Item, words: Mapping[str, str]) -> str:
    years, actors = item.values.get("year", ()), item.values.get("actor", ())
    plot = item.plot[:_PLOT_LENGTH]
    return words["candidate"].format(
        title=item.title,
        year=words["year"].format(value=years[0]) if years else "",
        actors=words["actors"].format(value=", ".join(actors[:3])) if actors else "",
        plot=words["plot"].format(value=plot) if plot else "",
    )


def unknown_titles(text: str, retrieval: Retrieval) -> list[str]:
    """Return what a text names as titles that the catalogue does not have.

    Titles are what stands in double quotes or between asterisks, and words in capitals before a
    year in brackets. The catalogue's titles count with and without such a year.
    """
    known = _known_titles(retrieval)
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        found[next(part for part in match.groups() if part)] = None
    bare = _QUOTED.sub("|", text)  # no title goes on beyond a quoted one
    for match in _DATED.finditer(bare):
        words = match[1].strip()
        ends = (words.split(" ", skipped)[-1] for skipped in range(words.count(" ") + 1))
        if not any(_plain(end) in known for end in ends):
            found[f"{words} ({match[2]})"] = None
    return [title for title in found if _plain(title) and _plain(title) not in known]


def _plain(title: str) -> str:
    return _YEAR_AFTER.sub("", title.strip().strip(".,!?:;").lower()).strip()


_kept_titles: dict[str, frozenset[str]] = {}


def _known_titles(retrieval: Retrieval) -> frozenset[str]:
    known = _kept_titles.get(retrieval.digest)
    if known is None:
        known = frozenset(map(_plain, retrieval.index.get(NAME, {})))
        _kept_titles[retrieval.digest] = known
    return known


@dataclass(frozen=True, slots=True)
class ModelPhrasing:
    """A chat model that says a planned turn in other words."""

    model: str
    client: Asks

    @property
    def identity(self) -> str:
        """Model, server and prompt."""
        asked = self.client.options
        how = f"temperature={asked.temperature} {_READING} {prompts_digest()}"
        return f"{OPENAI}{self.model} {asked.endpoint} {how}"

    def __call__(
        self, conversation: Sequence[Turn], text: str, draws: Draws
    ) -> tuple[str, dict[str, Any]]:
        """Return the words, and what the turn's metadata should say of them.

        If the model refuses, says nothing or is cut off, the template's words are used, and
        ``not_reworded`` in the metadata gives the reason.
        """
        words = prompts()["user"]
        said = [f"{turn['speaker']}: {turn['text']}" for turn in conversation[-words["history"] :]]
        message = words["message"].format(
            conversation="\n".join(said) or "(nothing yet)", text=text
        )
        request = ChatRequest(
            model=self.model,
            messages=((SYSTEM, words["system"].strip()), (USER, message.strip())),
            temperature=self.client.options.temperature,
            seed=_seed(draws),
            max_tokens=self.client.options.answer_tokens,
        )
        for _ in range(MOST_AGAIN + 1):
            answer = self.client.ask(request)
            reworded = answer.said.strip('"')
            if answer.refused:
                return text, {"template": text, "not_reworded": "refused"}
            if reworded and not answer.cut_off:
                return reworded, {"template": text}
            request = request.again()
        return text, {"template": text, "not_reworded": answer.cut_off or "empty"}


def _seed(draws: Draws) -> int:
    return int(draws.uniform() * 2**31)


@cache
def prompts() -> dict[str, Any]:
    """Return what models are told."""
    return tomllib.loads(_prompts_content().decode())


@cache
def prompts_digest() -> str:
    """Return the hash of what models are told."""
    return hash_bytes(_prompts_content())


def _prompts_content() -> bytes:
    return files(__package__).joinpath("models.toml").read_bytes()
