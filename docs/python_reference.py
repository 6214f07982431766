"""Write the public names of `import fastscore` into docs/python.md: signature, purpose, example.

``python docs/python_reference.py`` writes the text between the markers. A test compares the page
with the docstrings, and another runs the examples.
"""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import fastscore
from fastscore.api.arguments import SuiteName

PAGE = Path(__file__).parent / "python.md"
MARKED = re.compile(r"(<!-- begin names -->\n).*?(<!-- end -->\n)", re.DOTALL)
_PREFIX = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=\w)")
_SUITES = f"Literal[{', '.join(map(repr, get_args(SuiteName)))}]"
_WIDTH = 100
_HEADINGS = ("Parameters", "Attributes", "Returns", "Raises")
MEMBERS = {"Embedder": True, "Run": False, "Scorer": True}
"""Classes whose attributes and methods are listed, and whether users call the class itself."""


def filled(page: str) -> str:
    """Return the page with a section for each public name between its markers."""
    lines = [line for name in public_names() for line in _section(name)]
    sections = "".join(f"{line}\n" for line in [*_index(public_names()), *lines])
    return MARKED.sub(lambda found: f"{found[1]}\n{sections}{found[2]}", page)


def public_names() -> list[str]:
    """Return the functions and classes of the package, by name."""
    named = [name for name in fastscore.__all__ if callable(getattr(fastscore, name))]
    return sorted(named, key=lambda name: (isinstance(getattr(fastscore, name), type), name))


def _index(names: list[str]) -> Iterator[str]:
    """Yield links to the functions and the classes. Of names that differ in case, the first."""
    for title, is_class in (("Functions", False), ("Classes", True)):
        linked = [name for name in names if isinstance(getattr(fastscore, name), type) is is_class]
        unique = [name for name in linked if not is_class or name.lower() not in names]
        yield from (f"{title}: {', '.join(f'[`{one}`](#{one.lower()})' for one in unique)}.", "")


def _section(name: str) -> Iterator[str]:
    value = getattr(fastscore, name)
    text = inspect.getdoc(value) or ""
    yield from (f"### {name}", "", " ".join(text.split("\n\n")[0].split()), "")
    if MEMBERS.get(name, True):
        yield from ("```text", signature(name, value), "```", "")
    for heading in _HEADINGS if MEMBERS.get(name, True) else ():
        yield from _described(heading, text)
    if name in MEMBERS:
        yield from _members(value)
    yield from ("Example:", "")
    yield from _example(text)


def _members(kind: type) -> Iterator[str]:
    yield from ("Attributes and methods:", "")
    for name, value in inspect.getmembers_static(kind):
        is_method = inspect.isfunction(value)
        is_read = hasattr(value, "fget") or hasattr(value, "func")
        if name.startswith("_") or not (is_method or is_read):
            continue
        text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
        called = f"({', '.join([*inspect.signature(value).parameters][1:])})" if is_method else ""
        yield f"- `{name}{called}`: {text.replace('``', '`')}"
    yield ""


def _described(heading: str, text: str) -> Iterator[str]:
    """Yield the items of a docstring's section as a list."""
    found = re.search(rf"^{heading}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if not found:
        return
    yield from (f"{heading}:", "")
    for item in re.split(r"\n(?=\S)", re.sub(r",\n(?=\S)", ", ", found[1].strip())):
        name, _, described = item.partition("\n")
        names = ", ".join(f"`{one.strip()}`" for one in name.split(","))
        words = " ".join(described.split()).replace("``", "`")
        yield f"- {names}: {words}" if words else f"- {names}"
    yield ""


def signature(name: str, value: Any) -> str:
    """Return the call of a function or class with its types and defaults."""
    if isinstance(value, type) and issubclass(value, Warning):
        return f"fastscore.{name}(UserWarning)"
    parts = list(_parameters(inspect.signature(value)))
    returned = inspect.signature(value).return_annotation
    after = "" if isinstance(value, type) else f" -> {_annotation(returned)}"
    line = f"fastscore.{name}({', '.join(parts)}){after}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"fastscore.{name}(", *(f"    {part}," for part in parts), f"){after}"])


def _parameters(found: inspect.Signature) -> Iterator[str]:
    keywords = False
    for one in found.parameters.values():
        if one.name.startswith("_"):
            continue
        if one.kind is one.KEYWORD_ONLY and not keywords:
            yield "*"
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        keywords |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        yield f"{stars}{one.name}: {_annotation(one.annotation)}{default}"


def _default(value: Any) -> str:
    return "..." if "object at" in repr(value) or "factory" in repr(value) else repr(value)


def _annotation(kind: Any) -> str:
    text = _PREFIX.sub("", inspect.formatannotation(kind)).replace(_SUITES, "SuiteName")
    union = re.fullmatch(r"Union\[(.*)\]", text)
    return union[1].replace(", ", " | ") if union else text


def _example(text: str) -> Iterator[str]:
    examples = doctest.DocTestParser().get_examples(text)
    yield "```python"
    for one in examples:
        is_shown = one.want and not one.source.startswith(("try", "with", "for"))
        source = one.source.rstrip("\n").replace("'''", '"""')
        yield f"print({source})" if is_shown else source
        if source.startswith("@"):
            yield from ("", "")
    yield from ("```", "")
    shown = "".join(_printed(one.want) for one in examples if one.want)
    if shown:
        yield from (f"```text\n{shown}```", "")


def _printed(want: str) -> str:
    """Return what `print` shows of a value whose `repr` is given."""
    try:
        return f"{ast.literal_eval(want)}\n"
    except (SyntaxError, ValueError):
        return want


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
