"""Representations of scores and runs."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

import fastscore
from fastscore.results.summary_table import LINES, WIDTH
from tests.run.logs import write_logs
from tests.suites.memory_finance.tracing import dialog, turn


class Tags(HTMLParser):
    """Counts what is opened and closed, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":
            self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def shown(tmp_path: Path) -> list[fastscore.Run]:
    logs = write_logs(tmp_path / "logs")
    traces = [dialog(turn("ok"), dialog_id=f"d{number}") for number in range(3)]
    return [
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0)),
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0), output=tmp_path / "<b>"),
        fastscore.score(traces, "memory_finance"),
    ]


def test_scores_and_runs_print_on_ten_lines(shown: list[fastscore.Run]) -> None:
    for each in shown:
        lines = repr(each).splitlines()
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= WIDTH
    scores, run, traces = map(repr, shown)
    assert scores.startswith(
        "Scores of score_dialogue\nsteps: 108, utterances: 36, dialogues: 12, rejects: 0\n"
    )
    assert "average_U_best_early" in scores
    assert run.startswith("Run ")
    assert "more in .summary" in traces


def test_notebooks_show_a_table(shown: list[fastscore.Run]) -> None:
    for each in shown:
        page = Tags()
        page.feed(each._repr_html_())
        assert not page.open
        assert page.rows > 4
        assert each.signature in page.text
    assert "<b> of score_dialogue" in shown[1]._repr_html_().replace("&lt;b&gt;", "<b>")
    assert "<b>" not in shown[1]._repr_html_()
