"""Lexicons as files: reading of their tables, and messages about faults."""

import tomllib

import pytest

from fastscore.errors import UsageError
from fastscore.settings.options import TomlTable, lexicon_content, parse_lexicon
from fastscore.suites.group_travel.lexicon import load_lexicon as travelling
from fastscore.suites.memory_finance.score import load_lexicon as tracing
from tests.suites.reading import changed_lexicon


def table(content):
    return TomlTable("w.toml", "", tomllib.loads(content))


@pytest.mark.parametrize(
    ("content", "read", "message"),
    [
        ("a = ' '", lambda top: top.word("a"), "a is ' ', expected a word that is not blank"),
        (r'a = "x\ny"', lambda top: top.word("a"), r"a is 'x\ny', expected a word"),
        ("a = 'x'", lambda top: top.words("a"), "a is 'x', expected a list of words."),
        ("a = ['x', 1]", lambda top: top.words("a"), "a is 1, expected a word"),
        ("a = 1", lambda top: top.flag("a"), "a is 1, expected true or false."),
        ("a = []", lambda top: top.patterns("a"), "a is [], expected a list of at least one"),
        ("a = ['']", lambda top: top.patterns("a"), "a is '', expected a pattern"),
        ("a = ['x', '(']", lambda top: top.patterns("a"), "a is '(', expected a regular"),
        (
            f"a = {['xy'] * 10_001}",
            lambda top: top.patterns("a"),
            "a holds 20,002 characters, expected patterns of at most 20,000 together.",
        ),
        (
            f"a = ['{'x' * 20_001}']",
            lambda top: top.patterns("a"),
            "a holds 20,001 characters, expected patterns of at most 20,000 together.",
        ),
        (
            f"a = {['x{1000}{30}'] * 30}",
            lambda top: top.patterns("a"),
            "expected patterns that are one regular expression together.",
        ),
        ("a = {x = 1}", lambda top: top.word_by_name("a"), "a.x is 1, expected a word"),
        ("a = 1", lambda top: top.word_by_name("a"), "a is 1, expected a table of words."),
        ("a = {x = ['']}", lambda top: top.words_by_name("a"), "a.x is '', expected a word"),
        (
            "a = {xs = ['y']}",
            lambda top: top.words_by_name("a", ("x", "z")),
            "unknown key a.xs. Did you mean 'x'? Known: 'x', 'z'.",
        ),
        ("a = 1", lambda top: top.table("a", ()), "a is 1, expected a table."),
        ("a = {}", lambda top: top.table("a", ("x",)), "a.x is missing."),
        (
            "a = {b = {c = ''}}",
            lambda top: top.table("a", ("b",)).table("b", ("c",)).word("c"),
            "a.b.c is '', expected a word",
        ),
        ("a = {}", lambda top: top.tables("a", ()), "a is {}, expected a list of tables."),
        ("a = [{}, 1]", lambda top: top.tables("a", ()), "a[1] is 1, expected a table."),
        ("a = [{y = 1}]", lambda top: top.tables("a", (), ("x",)), "unknown key a[0].y."),
        ("a = true", lambda top: top.whole("a"), "a is True, expected a whole number."),
        ("a = 1", lambda top: top.whole("a", 2), "a is 1, expected a whole number from 2."),
        ("a = 1.5", lambda top: top.rate("a"), "a is 1.5, expected a probability from 0 to 1."),
        ("a = ['x', ' ']", lambda top: top.texts("a"), "a is ' ', expected a text"),
        ("a = []", lambda top: top.texts("a"), "a is [], expected a list of at least one text."),
        ("a = {}", lambda top: top.texts_by_name("a"), "a is {}, expected a table of at least one"),
        ("a = {x = []}", lambda top: top.texts_by_name("a"), "a.x is [], expected a list"),
        ("a = ['z']", lambda top: top.choices("a", ("x", "y")), "expected a list of some of x, y."),
    ],
)
def test_a_fault_names_the_file_the_key_and_what_was_found(content, read, message):
    with pytest.raises(UsageError, match=r"^w\.toml: ") as refused:
        read(table(content))
    assert message in str(refused.value)


def test_the_top_level_has_all_names_and_no_others():
    assert parse_lexicon("w.toml", b"a = 'x'", ("a",)).word("a") == "x"
    with pytest.raises(UsageError, match=r"^the built-in lexicon: b is missing\."):
        parse_lexicon("", b"a = 'x'", ("a", "b"))
    with pytest.raises(UsageError, match=r"^w\.toml: unknown key a\."):
        parse_lexicon("w.toml", b"a = 'x'", ("b",))


def test_a_file_of_ones_own_is_read_anew(tmp_path):
    path = tmp_path / "w.toml"
    for content in (b"a = 'x'", b"a = 'y'"):
        path.write_bytes(content)
        assert lexicon_content(str(path), "none") == content
    with pytest.raises(UsageError, match=r"^lexicon .*none\.toml: cannot be read: No such file"):
        lexicon_content(str(tmp_path / "none.toml"), "none")


@pytest.mark.parametrize(
    ("suite", "load", "old", "new", "message"),
    [
        ("group_travel", travelling, "filler = [", "fillers = [", "unknown key fillers"),
        ("group_travel", travelling, "[slot_generic]", '[slot_generic]\nhotel = ["x"]', "c.hotel"),
        ("group_travel", travelling, "'least misery'", "'least (misery'", "a regular expression"),
        ("memory_finance", tracing, 'guards = ["不建议", ', 'guards = ["", ', "guards is ''"),
        ("memory_finance", tracing, 'severe_severities = ["high"]', "", "severities is missing"),
        ("memory_finance", tracing, 'name = "credit_risk"', 'name = "volatility_risk"', "its own"),
        ("memory_finance", tracing, 'version = "1"', "version = 1", "version is 1"),
    ],
)
def test_a_faulty_lexicon_of_a_suite_is_refused(tmp_path, suite, load, old, new, message):
    path = changed_lexicon(suite, tmp_path, old, new)
    with pytest.raises(UsageError, match=r"\S") as refused:
        load(path)
    assert message in f"{refused.value.message} {refused.value.hint}"
    assert path in str(refused.value)
