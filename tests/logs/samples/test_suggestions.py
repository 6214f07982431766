"""Where what is lacking probably stands, and what to type for it."""

from typing import Any

from fastscore.logs.inputs.column_map import Flag, column_flag, layout_flag, typed, value_flag
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.samples.file_samples import FileSample
from fastscore.logs.samples.profile import RequiredColumn, all_columns, profile_of
from fastscore.logs.samples.refusals import flags_to_type, keys_beside, suggested
from fastscore.suites.declarations import ALL_METRICS, Column, Needed, Source

TEXT = Column(name="text", kind="text", needed=Needed(ALL_METRICS))
SPEAKER = Column(name="speaker", kind="text", needed=Needed(ALL_METRICS))
TURNS = Column(name="turns", kind="json", needed=Needed(ALL_METRICS), items=(TEXT, SPEAKER))
FLAT = Source(columns=(TEXT, SPEAKER))
NESTED = Source(columns=(TURNS,))


def needs(source: Source) -> list[RequiredColumn]:
    return list(all_columns(source))


def flags_for(source: Source, *rows: dict[str, Any]) -> list[Flag]:
    """Return what to type for rows that lack all that a source needs."""
    found = profile_of(rows)
    advice = suggested(source, needs(source), found)
    sample = FileSample(InputFile("log.jsonl", "jsonl", "none", 0), lambda: iter(rows))
    return flags_to_type("toy", source, needs(source), advice, sample)


def test_each_column_has_a_key_of_its_own() -> None:
    found = profile_of([{"content": "a", "utterance": "b", "Role": "c"}])
    advice = suggested(FLAT, needs(FLAT), found)
    # content is nearer to text than utterance
    assert advice == {"text": "content", "speaker": "Role"}


def test_a_key_of_another_type_is_no_suggestion() -> None:
    found = profile_of([{"content": 7, "role": ["a"]}])
    assert suggested(FLAT, needs(FLAT), found) == {}


def test_an_array_brings_what_its_objects_hold() -> None:
    found = profile_of([{"messages": [{"content": "a", "role": "user"}], "content": "outside"}])
    advice = suggested(NESTED, needs(NESTED), found)
    assert advice == {"turns": "messages", "turns[].text": "content", "turns[].speaker": "role"}


def test_rows_may_stand_in_the_array_that_has_most() -> None:
    rows = [{"notes": [{"content": "x"}], "talk": [{"content": "a", "role": "user"}]}]
    advice = suggested(FLAT, needs(FLAT), profile_of(rows))
    assert advice == {"text": "talk[].content", "speaker": "talk[].role"}


def test_keys_beside_an_item_are_those_of_the_array_under_its_new_name() -> None:
    found = profile_of([{"messages": [{"content": "a"}], "id": 1}])
    array, item, _ = needs(NESTED)
    assert set(keys_beside(array, NESTED, {}, found)) == {"messages", "id"}
    assert set(keys_beside(item, NESTED, {"turns": "messages"}, found)) == {"content"}
    assert keys_beside(item, NESTED, {}, found) == {}


def test_what_to_type_names_every_column_that_was_found() -> None:
    assert flags_for(FLAT, {"content": "a", "role": "b"}) == [
        column_flag("text", "content"),
        column_flag("speaker", "role"),
    ]
    assert flags_for(FLAT, {"zzz": "a"}) == []


def test_a_path_with_blanks_is_quoted() -> None:
    assert typed(flags_for(FLAT, {"my text": "a"})) == "--column 'text=my text'"


def test_flags_are_written_as_a_shell_reads_them() -> None:
    flags = [
        layout_flag("openai"),
        column_flag("a", "b.c"),
        value_flag("x", "user", "USER"),
        value_flag("x", "a=b", ""),
        Flag("sort_by", ("line",)),
    ]
    assert typed(flags) == (
        "--layout openai --column a=b.c --value x:user=USER --value x:a=b= --sort-by line"
    )


def test_a_layout_that_has_everything_is_named_before_columns() -> None:
    from fastscore.suites.preference_shift import SUITE

    rows = [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]
    found = profile_of(rows)
    lacking = [need for need in all_columns(SUITE.source) if need.name == "conversation"]
    advice = suggested(SUITE.source, lacking, found)
    sample = FileSample(InputFile("log.jsonl", "jsonl", "none", 0), lambda: iter(rows))
    told = flags_to_type("preference_shift", SUITE.source, lacking, advice, sample)
    assert told == [layout_flag("openai")]
