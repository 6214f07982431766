"""Names with an interval of the day, written plainly, against their oracle."""

import numpy as np
import polars as pl
import pytest
from fastscore_jit.arrow import text_rows
from fastscore_jit.declaring import CHECKED
from hypothesis import given
from hypothesis import strategies as st

from fastscore.suites.group_travel import plans as module
from fastscore.suites.group_travel.plans import plain_intervals
from tests.oracles import texts as naive_texts

LEADS = [", visit from ", ", check-in from "]
timed = st.lists(
    st.lists(
        st.sampled_from(
            [
                *LEADS,
                *("07:30", "24:59", "25:00", "7:3", "10:60"),
                " to ",
                "Bar",
                "é",
                " ",
                ",",
                ":",
            ]
        ),
        max_size=7,
    ).map("".join)
    | st.builds(
        "{}{}{}{}{}{}".format,
        st.text(st.sampled_from("aé汉 ,:-"), max_size=3),
        st.sampled_from([*LEADS, ""]),
        st.sampled_from(["07:30", "24:00", "25:00", "1:00", "7:30 AM", "0:30 am", "12:05pm", ":1"]),
        st.sampled_from([" to ", " - ", "-"]),
        st.sampled_from(["08:59", "08:60", "٠٨:00", "8:59 pm", "13:00 PM", "8:5", "108:00"]),
        st.sampled_from(
            ["", ",", ", nearest transit: x", "am", ".", " ,", ": Zoé", ": a:", ":  a"]
        ),
    )
)


@given(timed)
def test_plain_intervals_oracle(given_texts):
    found = plain_intervals(given_texts, LEADS)
    expected = naive_texts.plain_intervals(given_texts, LEADS)
    assert list(zip(*(each.tolist() for each in found), strict=True)) == expected


def test_plain_intervals_by_hand():
    given_texts = [
        "Café Tú!, visit from 07:30 to 08:15, nearest transit: Old Mill, 3m away",
        "Inn, check-in from 22:00 to 25:00",
        "Zoo, visit from 9:05 AM to 12:30pm",
        "Inn , visit from 22:00 to 23:00",
        ", visit from 22:00 to 23:00",
        "22:00 to 23:00",
        "9:00 AM - 10:15 AM: Zoo, é",
        "Inn: old, visit from 22:00 to 23:00",
        "",
    ]
    name, size, begins, ends = plain_intervals(pl.Series(given_texts), LEADS)
    assert name.tolist() == [0, 0, 0, -1, -1, -1, 20, -1, -1]
    assert size.tolist() == [8, 3, 3, -1, -1, -1, 6, -1, -1]
    assert begins.tolist() == [450, 1320, 545, -1, -1, -1, 540, -1, -1]
    assert ends.tolist() == [495, -1, 750, -1, -1, -1, 615, -1, -1]


@pytest.mark.skipif(not CHECKED, reason="kernels are compiled without checks")
def test_a_lead_out_of_range_is_named():
    rows = text_rows("strings", ["Park, visit from 7:30 to 8:30"])
    leads, offsets = np.frombuffer(b", ", np.uint8), np.array([0, 13])
    with pytest.raises(IndexError, match="plans:_find` touches 1 items at index 2 of 2"):
        module._find(rows.views, leads, offsets)
