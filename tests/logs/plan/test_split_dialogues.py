"""A dialogue that is in two files is found by its key, and named where a reader meets it again."""

import polars as pl

from fastscore.errors import InputError
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.plan.shards import KEY_SCHEMA, check_split_dialogues

FILES = [InputFile(f"{number}.jsonl", "jsonl", "none", 0) for number in range(3)]


def split(*keys: tuple[int, int, int, int, int]) -> str | None:
    """Check dialogues: high and low word of the key, file, first byte, line."""
    try:
        check_split_dialogues(pl.DataFrame(keys, KEY_SCHEMA, orient="row"), FILES)
    except InputError as error:
        return error.message
    return None


def test_keys_are_equal_in_both_words_or_not_at_all():
    assert split((5, 1, 0, 0, 1), (6, 2, 0, 9, 2), (5, 2, 1, 0, 1), (6, 1, 1, 9, 2)) is None


def test_words_that_are_exchanged_are_another_key():
    # the exclusive or of the words is the same
    assert split((5, 1, 0, 0, 1), (1, 5, 1, 0, 1)) is None
    assert split() is None
    high = 2**64 - 1
    assert split((high, 0, 0, 9, 2), (4, 0, 0, 0, 1), (high, 0, 1, 9, 3)) == (
        "One dialogue is in two files: 0.jsonl:2 and 1.jsonl:3."
    )
