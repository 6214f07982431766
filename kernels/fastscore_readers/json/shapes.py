"""What is wanted of JSON values, as the tables by which lines are walked.

A `Shape` says what is wanted: ``None`` the value itself, a mapping its members by key, a list of
one shape its elements. Every object or array that has a shape is wanted itself, too.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from fastscore_readers.json.tokens import key_table
from fastscore_readers.json.walk import Plan

Shape: TypeAlias = "Mapping[str, Shape] | Sequence[Shape] | None"


def plan_of(shape: Shape) -> Plan:
    """Make the tables of a shape."""
    names: dict[bytes, int] = {}
    # by place: those of the members by their keys, and that of the elements
    members: list[dict[int, int]] = []
    elements: list[int] = []

    def add(shape: Shape) -> int:
        place = len(members)
        members.append({})
        elements.append(-1)
        if isinstance(shape, Mapping):
            for name, below in shape.items():
                key = names.setdefault(name.encode(), len(names))
                members[place][key] = add(below)
        elif shape is not None:
            (below,) = shape
            elements[place] = add(below)
        return place

    add(shape)
    children = np.full((len(members), max(1, len(names))), -1, np.int32)
    for place, inside in enumerate(members):
        children[place, list(inside)] = list(inside.values())
    return Plan(
        key_table(list(names)),
        children.shape[1],
        children.reshape(-1),
        np.array([bool(inside) for inside in members], np.int8),
        np.array(elements, np.int32),
        0,
    )


@lru_cache(maxsize=64)
def plan_of_keys(keys: tuple[bytes, ...]) -> Plan:
    """Make the tables of an object whose members are wanted as they are, in slots."""
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys must be distinct, found {list(keys)!r}")
    plan = plan_of({key.decode(): None for key in keys})
    return plan._replace(n_slots=1 + len(keys))
