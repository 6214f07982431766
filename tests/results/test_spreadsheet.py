"""Text of a log that a spreadsheet would compute is written as text."""

import polars as pl

from fastscore.results.metric_text import write_csv


def test_formulas_become_text_and_numbers_stay() -> None:
    frame = pl.DataFrame(
        {
            "=model": ["=1+1", "plain", None, "@x", "-5", "+", "\tz"],
            "mean": [-1.5, 2.0, 3.0, None, 5.0, 6.0, 7.0],
        }
    )
    assert write_csv(frame) == (
        "'=model,mean\n'=1+1,-1.5\nplain,2.0\n,3.0\n'@x,\n'-5,5.0\n'+,6.0\n'\tz,7.0\n"
    )


def test_a_frame_without_text_is_written_as_it_is() -> None:
    assert write_csv(pl.DataFrame({"n": [-1]})) == "n\n-1\n"
