"""Python's literals as JSON against `ast.literal_eval`."""

import ast
import json
from typing import Any

import numpy as np
import pytest
from fastscore_readers.python_literals.trees import literals_to_json
from hypothesis import example, given
from hypothesis import strategies as st

TEXTS = st.text(max_size=12) | st.text("'\"\\\nuxa0 {[(,:", max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
CONTAINERS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS | SCALARS, inner, max_size=3)
    ),
    max_leaves=10,
)
PARTS = st.sampled_from(
    [
        *"{}[]():,'\" \n1-.e#",
        *("'a'", '"b"', "\\n", "\\x41", "\\u00e9", "\\ud800", "\\q", "\\'", "'" * 3, "b'x'", "é"),
        *("1_0", "True", "None", "nan", "(1)", "(1,)", "[1,]", "{'a':1,}", "{1:2}", "{1}"),
    ]
)


def write(texts: list[str]) -> list[str | None]:
    """Return the JSON of literals, None for those that are left to Python."""
    coded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, coded)])
    data, bounds, written = literals_to_json(np.frombuffer(b"".join(coded), np.uint8), offsets)
    parts = zip(bounds[:-1], bounds[1:], written, strict=True)
    made = [data[begin:end].tobytes().decode() if ok else None for begin, end, ok in parts]
    assert all(text != "" for text in made)
    return made


def as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_lists(part) for key, part in value.items()}
    return [as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def check(text: str, made: str | None) -> None:
    """A literal that is written is what Python reads, and nothing else is written."""
    if made is None:
        return
    value = as_lists(ast.literal_eval(text.strip()))
    assert isinstance(value, list | dict)
    assert repr(json.loads(made)) == repr(value)


@given(st.lists(CONTAINERS, max_size=4))
def test_what_python_writes_it_reads_again(values: list[Any]) -> None:
    texts = [repr(value) for value in values]
    for text, made in zip(texts, write(texts), strict=True):
        if made is not None:
            check(text, made)


@given(st.lists(st.lists(PARTS, max_size=12).map("".join), max_size=4))
@example(["['a' 'b']", "{'a': 1, 'a': 2}", "(('x'))", "[(1)]", "[1, -2.5e3, - 1]", "{'a': {}, }"])
@example(["['\\x4']", "['\\u12']", "['a", "[1", "['a'", "{'a'", "{'a':", "[", "(", "()", "(,)"])
def test_pieces_of_literals(texts: list[str]) -> None:
    for text, made in zip(texts, write(texts), strict=True):
        check(text, made)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{'a': [1, 2.5, None], 'b': (True, False)}", '{"a":[1,2.5,null],"b":[true,false]}'),
        (" [\n'it\\'s', \"it's\", '\"']\t", '["it\'s","it\'s","\\""]'),
        ("['\\xe9\\u00e9é', '\\\\', '\\n']", '["\\u00e9\\u00e9é","\\\\","\\n"]'),
        ("[(), (1,), (1, 2,), [], {}, {'a': [],},]", '[[],[1],[1,2],[],{},{"a":[]}]'),
        ("[[" * 32 + "]]" * 32, "[[" * 32 + "]]" * 32),
        ("[[" * 33 + "]]" * 33, None),
        ("'text'", None),
        ("", None),
        ("{1: 2}", None),
        ("{1, 2}", None),
        ("[(1)]", None),
        ("['a' 'b']", None),
        ("['\\ud83d\\ude00']", None),
        ("[u'a']", None),
        ("['a\nb']", None),
        ("[1] # end", None),
        ("[nan]", None),
        ("[1,,2]", None),
        ("[1}", None),
    ],
)
def test_what_is_written_and_what_is_left(text: str, made: str | None) -> None:
    found, other = write([text, "[1]"])
    assert other == "[1]"
    assert (found is None) == (made is None)
    if found is not None and made is not None:
        assert repr(json.loads(found)) == repr(json.loads(made))
    check(text, found)
