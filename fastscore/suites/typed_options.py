"""Writing the options of the suites as types, so that editors complete and type checkers know them.

``python -m fastscore.suites.typed_options`` writes ``fastscore/score_options.py`` anew; a test
compares the file with the declarations.
"""

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

from fastscore.suites.base import Suite

SUITES = (
    "group_travel",
    "guest_simulation",
    "memory_finance",
    "preference_shift",
    "score_dialogue",
)
"""The suites that come with the package; others take any option by name."""

_WIDTH = 100
_HEAD = '''"""The options of `fastscore.score` by suite, as types.

Written by ``python -m fastscore.suites.typed_options`` from what the suites declare.
"""

from typing import Literal

from fastscore.run_options import RunOptions
'''


def typed_options(suites: Iterable[Suite]) -> str:
    """Return a module that has a class of typed keywords for each suite."""
    return _HEAD + "".join(_class(suite) for suite in suites)


def class_name(suite: str) -> str:
    """Return the name of a suite's class: ``GroupTravelKeywords``."""
    return suite.title().replace("_", "") + "Keywords"


def _class(suite: Suite) -> str:
    types = get_type_hints(suite.options)
    head = f"\n\nclass {class_name(suite.name)}(RunOptions, total=False):\n"
    lines = [head, *_docstring(f"Options of {suite.name}.", "    ")]
    for field in dataclasses.fields(suite.options):
        lines.append(f"\n    {field.name}: {_type(types[field.name], field)}\n")
        lines += _docstring(_help(field), "    ")
    return "".join(lines)


def _type(declared: Any, field: "dataclasses.Field[Any]") -> str:
    choices = field.metadata["choices"]
    optional = " | None" if field.default is None else ""
    if not choices:
        return getattr(declared, "__name__", str(declared)) if not optional else str(declared)
    listed = ", ".join(f'"{choice}"' for choice in choices)
    written = f"    {field.name}: Literal[{listed}]{optional}"
    if len(written) <= _WIDTH:
        return f"Literal[{listed}]{optional}"
    each = "".join(f'        "{choice}",\n' for choice in choices)
    return f"Literal[\n{each}    ]{optional}"


def _help(field: "dataclasses.Field[Any]") -> str:
    rules = field.metadata
    unit = f" ({rules['unit']})" if rules["unit"] else ""
    default = "" if field.default is None or field.default == "" else f" Default: {field.default}."
    said = " ".join(rules["help"].partition("[default:")[0].split())
    return f"{said.rstrip('.')}{unit}.{default}".replace("\\", "\\\\")


def _docstring(text: str, indent: str) -> Iterator[str]:
    single = f'{indent}"""{text}"""'
    if len(single) <= _WIDTH:
        yield single + "\n"
        return
    wrapped = textwrap.wrap(f'"""{text}', _WIDTH, initial_indent=indent, subsequent_indent=indent)
    yield "\n".join(wrapped)
    yield f'\n{indent}"""\n'


def main() -> None:
    """Write the module."""
    from fastscore.suites.registry import load_suite

    path = Path(__file__).parents[1] / "score_options.py"
    path.write_text(typed_options(load_suite(name) for name in SUITES), encoding="utf-8")


if __name__ == "__main__":
    main()
