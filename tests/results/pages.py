"""Reports to be looked at, and a reader of their elements."""

import contextlib
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

from fastscore.results.report.write import write_report
from fastscore.results.runs import Run
from tests.conftest import NIGHTLY, alone, blank_figures

ATTACK = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>"
"""Text of logs that a page would run, were it taken for HTML."""
BREAKING_OUT = f"{ATTACK}\"'>"
"""The same, which ends quotes as well."""
LARGE = ("group_travel", "preference_shift")


class Page(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


class Pages(Mapping[str, Path]):
    """Reports of the suites, and of two runs of each, written when they are first asked for.

    By day those of two runs are without figures, which reports of six runs have. Pages of the two
    suites with the largest have none either, and the second run alone.
    """

    def __init__(self, runs: Mapping[str, Run], folder: Path) -> None:
        self._runs = runs
        self._folder = folder

    def __getitem__(self, suite: str) -> Path:
        path = self._folder / f"{suite.replace('/', '-')}.html"
        base, _, other = suite.partition("/")
        with alone(path) as is_made:
            if not is_made:
                is_large = base in LARGE and not NIGHTLY
                names = [suite] if is_large or not other else [base, suite]
                undrawn = is_large or (other and not NIGHTLY)
                with blank_figures() if undrawn else contextlib.nullcontext():
                    write_report([self._runs[name] for name in names], path)
        return path

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)
