"""Other spellings of values: matches in both modes, and valid tables of them."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE
from tests.suites.preference_shift.conversing import (
    exchange,
    log,
    options,
    score,
    user,
    write_catalogue,
)

ALIASES = """spelling,value,field
 Sci-Fi |SF,Science Fiction,genre
rom-com,Romance Film|Drama,
Tongue of Shakespeare,English,language
De Niro,Robert De Niro,actor
"""


def write_aliases(folder: Path, content: str = ALIASES) -> str:
    path = folder / "aliases.csv"
    path.write_text(content)
    return str(path)


def concepts_in(text: str, catalogue: str, **values: Any) -> list[str]:
    found = score([log(*exchange(text, "..."))], options(catalogue, **values))
    concepts: list[str] = found["turns"]["user_concepts"][0].to_list()
    return concepts


def test_spellings_mean_their_values_in_both_modes(tmp_path: Path, catalogue: str) -> None:
    aliases = write_aliases(tmp_path)
    said = "A SCI-FI rom-com with De Niro in the tongue of Shakespeare, say an sfumato drama"
    assert concepts_in(said, catalogue) == ["genre=drama"]
    both = [
        "actor=robert de niro",
        "genre=drama",
        "genre=romance",
        "genre=science",
        "language=english",
    ]
    assert concepts_in(said, catalogue, aliases=aliases) == both
    # under substring as under word, where "sf" stands in a word alone
    assert concepts_in("an sfumato", catalogue, aliases=aliases) == []
    found = concepts_in("an sfumato", catalogue, aliases=aliases, match="substring")
    assert found == ["genre=science"]
    assert concepts_in("SF, then", catalogue, aliases=aliases) == ["genre=science"]


@pytest.mark.parametrize("match", ["word", "substring"])
def test_the_digits_of_a_title_are_no_year(tmp_path: Path, match: str) -> None:
    movies = [{"name": "2001: A Space Odyssey", "year": 1968}, {"name": "Amelie", "year": "2001"}]
    fields = {"genre": "Drama", "actor": "X Y", "director": "X Z", "language": "English"}
    path = write_catalogue(tmp_path, [movie | fields for movie in movies])

    def found(said: str, lines: str) -> list[str]:
        chosen = write_aliases(tmp_path, f"spelling,value,field\n{lines}\n")
        return concepts_in(said, path, aliases=chosen, match=match)

    title = "space odyssey,2001: A Space Odyssey,"
    assert found("that space odyssey", title) == ["name=2001: a space odyssey"]
    # digits alone are a year, and so is any value of which the table says that it is one
    assert found("the year of nine eleven", "nine eleven, 2001 ,") == ["year=2001"]
    assert found("nine eleven", "nine eleven,c. 2001,year") == ["year=2001"]
    with pytest.raises(
        UsageError, match=r"line 2: value is 'c\. 2001', expected a value of a field"
    ):
        found("nine eleven", "nine eleven,c. 2001,")


def test_an_alias_adds_and_never_takes_away(tmp_path: Path, catalogue: str) -> None:
    aliases = write_aliases(tmp_path, "spelling,value\nher,Heat\nheat,Heat\n")
    assert concepts_in("her", catalogue, aliases=aliases) == ["name=heat", "name=her"]
    assert concepts_in("heat", catalogue, aliases=aliases) == ["name=heat"]
    # of a field that is not asked for it means nothing
    assert concepts_in("her drama", catalogue, aliases=aliases, fields="genre") == ["genre=drama"]


def test_gold_constraints_know_aliases_too(tmp_path: Path, catalogue: str) -> None:
    chosen = options(catalogue, aliases=write_aliases(tmp_path))
    turns = [user("?", constraints={"genre": ["sci-fi"]}), {"speaker": "SYSTEM", "text": "an sf"}]
    (row,) = score([log(*turns)], chosen)["turns"].to_dicts()
    assert row["gold_concepts"] == row["system_concepts"] == ["genre=science"]
    assert row["dst_f1"] == 1.0


def test_the_table_stands_in_the_signature(tmp_path: Path, catalogue: str) -> None:
    frame = pl.DataFrame({"session_id": ["1"], "conversation": [exchange("sf", "sf")]})

    def signed(aliases: str) -> str:
        return fastscore.score(
            frame,
            fastscore.PreferenceShift(catalogue=catalogue, segments="metadata", aliases=aliases),
            embedder=None,
        ).signature

    one = signed(write_aliases(tmp_path))
    assert re.search(r"\|aliases=blake2b:[0-9a-f]{16}\|", one)
    assert one != signed(write_aliases(tmp_path, ALIASES + "x,Heat,name\n"))
    assert "|aliases=none|" in signed("")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("spelling,value\nsf,Horor\n",
         r"aliases.csv: line 2: value is 'Horor', expected a value of a field of the catalogue. "
         r"Did you mean 'horror'\? `fastscore catalogue show` lists the values."),
        ("spelling,value,field\nsf,Drama,genre\nx,Drama,actor\n",
         r"line 3: value is 'Drama', expected a value of the catalogue's field 'actor'. `fast"),
        ("spelling,value,field\nsf,Drama,gener\n",
         r"line 2: field is 'gener', expected a field of the catalogue or nothing. "
         r"Did you mean 'genre'\?"),
        ("spelling,value,field\nsf,crew,plot\n", r"line 2: field is 'plot', expected a field"),
        ("spelling,value\n ,Drama\n", r"line 2: spelling is ' ', expected a text."),
        ("spelling,value\na||b,Drama\n", r"line 2: spelling is '', expected a text."),
        ("spelling,value\nsf\n", r"line 2: 1 cells, expected 2 as in the header."),
        ("alias,value\nsf,Drama\n", r"line 1: the columns are alias, value, expected spelling, "),
        ("spelling,value,filed\nsf,Drama,genre\n", r"line 1: the columns are spelling, value, "
         r"filed, expected .* Did you mean 'field'\?"),
        ("spelling,value\n", r"holds no alias, expected a header and at least one line."),
        ("", r"holds no alias"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_aliases(
    tmp_path: Path, catalogue: str, content: str, message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        SUITE.check(options(catalogue, aliases=write_aliases(tmp_path, content)))
    assert re.search(message, str(raised.value)), raised.value


def test_what_is_no_file_of_aliases(tmp_path: Path, catalogue: str) -> None:
    with pytest.raises(UsageError, match=r"none\.csv: cannot be read: No such file"):
        SUITE.check(options(catalogue, aliases=str(tmp_path / "none.csv")))
    with pytest.raises(UsageError, match=r"expected a CSV file with spelling, value and field"):
        SUITE.check(options(catalogue, aliases=catalogue))
    with pytest.raises(UsageError, match="not searched for spellings with extract embed"):
        options(catalogue, aliases=write_aliases(tmp_path), extract="embed")
