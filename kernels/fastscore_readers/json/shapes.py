"""What is wanted of JSON values, as the tables by which lines are walked.

A `Shape` says what is wanted: ``None`` the value itself, a mapping its members by key, a list of
one shape its elements. Every object or array that has a shape is wanted itself, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fastscore_readers.json.tokens import key_table
from fastscore_readers.json.walk import Plan

Shape: TypeAlias = "Mapping[str, Shape] | Sequence[Shape] | None"


@dataclass(frozen=True, slots=True)
class ShapePlan:
    """A shape as tables.

    Parameters
    ----------
    plan
        What the walk goes by.
    grain : int32 (places,)
        See `walk.Tables`.
    is_element : int8 (places,)
        See there.
    n_grains
        How many grains there are.
    """

    plan: Plan
    grain: npt.NDArray[np.int32]
    is_element: npt.NDArray[np.int8]
    n_grains: int

    def members_of(self, place: int) -> list[int]:
        """Return the places of an object's members, in the order of the shape."""
        children = self.plan.children.reshape(-1, self.plan.n_keys)[place]
        return sorted(children[children >= 0].tolist())


class _Places:
    """Places in preorder."""

    def __init__(self) -> None:
        self.names: dict[bytes, int] = {}
        self.members: list[dict[int, int]] = []
        self.elements: list[int] = []
        self.grain: list[int] = []
        self.is_element: list[bool] = []
        self.n_grains = 1

    def add(self, shape: Shape, grain: int, is_element: bool) -> int:
        """Add a place and those below it; return its number."""
        place = len(self.grain)
        self.members.append({})
        self.elements.append(-1)
        self.grain.append(grain)
        self.is_element.append(is_element)
        if isinstance(shape, Mapping):
            for name, below in shape.items():
                key = self.names.setdefault(name.encode(), len(self.names))
                self.members[place][key] = self.add(below, grain, False)
        elif shape is not None:
            (below,) = shape
            self.n_grains += 1
            self.elements[place] = self.add(below, self.n_grains - 1, True)
        return place


def plan_of(shape: Shape) -> ShapePlan:
    """Make the tables of a shape."""
    places = _Places()
    places.add(shape, 0, True)
    children = np.full((len(places.grain), max(1, len(places.names))), -1, np.int32)
    for place, members in enumerate(places.members):
        for key, member in members.items():
            children[place, key] = member
    plan = Plan(
        key_table(list(places.names)),
        children.shape[1],
        children.reshape(-1),
        np.array([bool(members) for members in places.members], np.int8),
        np.array(places.elements, np.int32),
        0,
    )
    grain, is_element = np.array(places.grain, np.int32), np.array(places.is_element, np.int8)
    return ShapePlan(plan, grain, is_element, places.n_grains)


@lru_cache(maxsize=64)
def plan_of_keys(keys: tuple[bytes, ...]) -> Plan:
    """Make the tables of an object whose members are wanted as they are, in cells."""
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys must be distinct, found {list(keys)!r}")
    plan = plan_of({key.decode(): None for key in keys}).plan
    return plan._replace(n_cells=1 + len(keys))
