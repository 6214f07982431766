"""Construct what miners might have predicted for real utterances.

Every utterance's text is the ground truth of five steps:

- step 0 is another utterance, with the same speaker and the same acts, of the next dialogue of the
  same service;
- steps 1 to 4 are the first 25, 50, 75 and 100 % of the ground truth's words (rounded up),
  completed with the words of that other utterance from that position on.

Where no utterance of the other dialogue has the same acts, one of the same speaker is taken, and
without one the utterance at the same position (or the last); of several, the one nearest in
position, the earlier at a tie. A dialogue's service is the first that it lists; a service with a
single dialogue borrows from the next dialogue of the list, and a list of one from itself.

Of several simulated miners the first follows the recipe; the others borrow from the first, second
or third next dialogue, and each blanks, repeats, swaps and truncates predictions at rates of its
own, so that texts recur within and between miners as they do in real runs.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from benchmarks.source_dialogues import Dialogue

N_STEPS = 5


class Neighbours:
    """Which dialogue lends its utterances to which: the following ones of the same service."""

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        self._everyone = range(len(dialogues))
        self._members: dict[str, list[int]] = defaultdict(list)
        self._services = [dialogue.service for dialogue in dialogues]
        self._ranks: list[int] = []
        for index, dialogue in enumerate(dialogues):
            members = self._members[dialogue.service]
            self._ranks.append(len(members))
            members.append(index)

    def following(self, index: int, distance: int = 1) -> int:
        """Return the dialogue ``distance`` (>= 1) places on, round the list, never itself."""
        members: Sequence[int] = self._members[self._services[index]]
        rank = self._ranks[index]
        if len(members) == 1:
            members, rank = self._everyone, index
        if len(members) == 1:
            return index
        return members[(rank + 1 + (distance - 1) % (len(members) - 1)) % len(members)]


def counterparts(dialogue: Dialogue, other: Dialogue) -> list[str]:
    """Return for each utterance the one of another dialogue that stands in for it at step 0."""
    same_acts: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    same_speaker: dict[str, list[int]] = defaultdict(list)
    for position, turn in enumerate(other.turns):
        same_acts[turn.speaker, turn.acts].append(position)
        same_speaker[turn.speaker].append(position)
    texts = []
    for position, turn in enumerate(dialogue.turns):
        places = (
            same_acts.get((turn.speaker, turn.acts))
            or same_speaker.get(turn.speaker)
            or [min(position, len(other.turns) - 1)]
        )
        nearest = min(places, key=lambda place: abs(place - position))
        texts.append(other.turns[nearest].text)
    return texts


def predict(ground_truth: str, counterpart: str) -> list[str]:
    """Return an utterance's predictions at steps 0 to 4, as the module's recipe says."""
    truth, borrowed = ground_truth.split(), counterpart.split()
    known = [-(-len(truth) * step // (N_STEPS - 1)) for step in range(1, N_STEPS)]
    return [counterpart, *(" ".join(truth[:n] + borrowed[n:]) for n in known)]


@dataclass(frozen=True, slots=True)
class Miner:
    """A simulated miner: its labels, which next dialogue it borrows from, and its rates in [0, 1].

    A prediction is blanked with probability ``blank``, else replaced by the same utterance's
    previous step with ``repeat``, else by the previous utterance's prediction at the same step
    with ``swap``, else cut to the first half of its words with ``truncate``.
    """

    uid: str
    hotkey: str
    borrows_from: int = 1
    blank: float = 0.0
    repeat: float = 0.0
    swap: float = 0.0
    truncate: float = 0.0


def simulate_miners(count: int, seed: int) -> list[Miner]:
    """Return miners of which the first follows the recipe and the others err at seeded rates."""
    miners = []
    for index in range(count):
        draw = random.Random(f"{seed}/miner/{index}")
        hotkey = "5" + blake2b(f"{seed}/{index}".encode(), digest_size=24).hexdigest()[:47]
        rates = {name: draw.uniform(0.0, 0.15) for name in ("blank", "repeat", "swap", "truncate")}
        miners.append(Miner(str(index), hotkey, 1 + index % 3, **(rates if index else {})))
    return miners


def perturb(predictions: list[list[str]], miner: Miner, draw: random.Random) -> list[list[str]]:
    """Return a dialogue's predictions (utterances x steps) as a fallible miner would give them."""
    if not (miner.blank or miner.repeat or miner.swap or miner.truncate):
        return predictions
    given: list[list[str]] = []
    for number, steps in enumerate(predictions):
        texts: list[str] = []
        for step, text in enumerate(steps):
            if draw.random() < miner.blank:
                texts.append("")
            elif step and draw.random() < miner.repeat:
                texts.append(texts[step - 1])
            elif number and draw.random() < miner.swap:
                texts.append(given[number - 1][step])
            elif draw.random() < miner.truncate:
                words = text.split()
                texts.append(" ".join(words[: (len(words) + 1) // 2]))
            else:
                texts.append(text)
        given.append(texts)
    return given
