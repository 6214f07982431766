"""Errors of files that are no logs of a suite: what was expected, what was found instead."""

from collections import Counter
from collections.abc import Mapping, Sequence

from fastscore.errors import InputError
from fastscore.logs.inputs.column_map import (
    Flag,
    UnmappedLogError,
    column_flag,
    typed,
    value_flag,
)
from fastscore.logs.inputs.found_keys import count_keys, listed, shortened
from fastscore.logs.inputs.needs import Need, needs_of
from fastscore.logs.inputs.occurrences import Occurrences
from fastscore.logs.inputs.records import begins_with
from fastscore.logs.inputs.roles import role_flags, role_meanings
from fastscore.logs.inputs.sampling import FileSample
from fastscore.logs.inputs.similar_names import KINDS, nearest_words
from fastscore.logs.inputs.speaker_keys import mark_speakers
from fastscore.logs.inputs.suggestions import (
    flags_to_type,
    keys_beside,
    layout_of_arrays,
    suggested,
)
from fastscore.suites.chats import USER_ROLE
from fastscore.suites.declarations import Source

_SHOWN_CHARACTERS = 40


def beginning(seen: FileSample) -> str:
    """Return how a file begins that holds text but no row; nothing of any other."""
    if seen.rows or seen.file.format not in ("json", "jsonl"):
        return ""
    text = begins_with(seen.file).decode(errors="replace").partition("\n")[0].rstrip()
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def foreign_error(
    suite: str, source: Source, foreign: Sequence[tuple[FileSample, Sequence[Need]]]
) -> InputError:
    """Make the error of files that are no logs of a suite."""
    lacking = next((lacking for _, lacking in foreign if lacking), ())
    if lacking:
        return lacking_error(suite, source, lacking, [seen for seen, needs in foreign if needs])
    first = foreign[0][0]
    layout = layout_of_arrays(suite, source, first) if beginning(first).startswith("[") else None
    return UnmappedLogError(
        f"{_named([seen for seen, _ in foreign])}: {describe_no_row(first)}.",
        [("--layout", layout)] if layout else [],
        unless=_what_is_read(first),
    )


def describe_no_row(seen: FileSample) -> str:
    """Say that a file holds no row, and how it begins."""
    what = "no line is a JSON object" if seen.file.format == "jsonl" else "no JSON object"
    return f"{what}; it begins with {beginning(seen)!r}"


def _what_is_read(seen: FileSample) -> str:
    if seen.file.format == "json":
        return "A JSON document holds an object, or an array of them."
    if beginning(seen).startswith("[{"):
        return "JSON Lines have one object on each line: `jq -c '{messages: .}'` names its array."
    if beginning(seen).startswith("["):
        return "JSON Lines have one object on each line: `jq -c '.[]'` writes those of an array so."
    return "JSON Lines have one object on each line: `jq -c .` writes an indented file so."


class MissingColumnsError(UnmappedLogError):
    """Rows without columns that all metrics need, or that were asked for.

    Parameters
    ----------
    absent
        The place of each column, and in what way it is absent.
    """

    def __init__(
        self, message: str, absent: Mapping[str, str], flags: Sequence[Flag], unless: str
    ) -> None:
        super().__init__(message, flags, unless=unless)
        self.absent = absent

    @property
    def reason(self) -> str:
        """What is absent, on one line."""
        return "; ".join(f"{place}: {how}" for place, how in self.absent.items())


def lacking_error(
    suite: str, source: Source, lacking: Sequence[Need], seen: Sequence[FileSample]
) -> MissingColumnsError:
    """Make the error of rows that lack what all metrics need, or what was asked for."""
    found = count_keys(seen[0].read())
    mark_speakers(found, seen[0].read())
    advice = suggested(source, lacking, found)
    what = f"what {suite} needs" if lacking[0] in needs_of(source) else "a column that is asked for"
    lines = [f"{_named(seen)}: no row has {what}."]
    told: set[str] = set()
    absent = {need.place: _absence(need, seen) for need in lacking}
    for need in lacking:
        lines += [
            f"  {need.place}: {absent[need.place]}",
            f"    looked for: {', '.join(need.column.keys)}",
        ]
        keys = listed(keys_beside(need, source, advice, found))
        if keys not in told:
            lines.append(f"    found: {keys}")
            told.add(keys)
        if need.place in advice:
            lines.append(f"    nearest: {advice[need.place]}")
    return MissingColumnsError(
        "\n".join(lines),
        absent,
        flags_to_type(suite, source, lacking, advice, found, seen[0]),
        f"Say where it stands: --column {lacking[0].name}=KEY; `fastscore inspect` lists the keys "
        "of a log and the suites that it fits.",
    )


def words_error(
    suite: str, source: Source, need: Need, counts: Occurrences, seen: Sequence[FileSample]
) -> UnmappedLogError | None:
    """Make the error of a column in which expected words stand under another name, or none do."""
    absent = [word for word in need.column.expects if word not in counts.known]
    words = sorted(counts.words.items(), key=lambda item: (-item[1], item[0]))
    flags = word_flags(source, need, counts, absent)
    if not words or not absent:
        return None
    return UnknownWordsError(
        f"{_named(seen)}: no row has what {suite} needs: "
        f"{need.place} is never {' or '.join(map(repr, absent))}.\n"
        f"  looked for: {', '.join(need.column.expects)}\n"
        f"  found: {shortened([f'{word!r} ({count:,})' for word, count in words])}",
        flags,
        unless=_question(source, need, counts, need.column.expects[0]),
    )


class UnknownWordsError(UnmappedLogError):
    """Words of a column that lacks the words it needs; if no flags map them, the hint asks."""


def _question(source: Source, need: Need, counts: Occurrences, meant: str) -> str:
    """Ask what words mean: of two speakers with what to type if the user is the first."""
    rows, words = source.chat_rows, [*counts.words][:2]
    if rows is None or need.name != rows.speaker or len(words) < len(rows.words[:2]):
        return f"Say what they mean: --value {need.name}:WORD={meant}."
    example = [
        value_flag(need.name, word, own) for word, (_, own) in zip(words, rows.words, strict=False)
    ]
    if source.chat is None and need.holder is not None:
        # in the suite's own arrays only texts are words
        example.insert(0, column_flag(need.name, need.name))
    return f"Say what they mean, for example {typed(example)}."


def word_flags(source: Source, need: Need, counts: Occurrences, known: Sequence[str]) -> list[Flag]:
    """Return the flags to type for words: of speakers by their roles, of others by their names."""
    words = [word for word, _ in sorted(counts.words.items(), key=lambda item: (-item[1], item[0]))]
    rows = source.chat_rows
    if rows is not None and need.name == rows.speaker:
        return role_flags(words, counts.known, rows, known)
    return nearest_words(need.name, words, known)


def speakers_error(
    suite: str, source: Source, need: Need, counts: Occurrences, seen: Sequence[FileSample]
) -> UnmappedLogError | None:
    """Make the error of speakers one of whom the suite takes for another than they are together."""
    rows = source.chat_rows
    if rows is None or need.name != rows.speaker:
        return None
    found = sorted([*counts.words, *counts.known])
    message = f"{_named(seen)}: {need.place} is {', '.join(map(repr, found))}"
    if source.chat is not None:
        flags = role_flags([*counts.words], counts.known, rows)
        return UnmappedLogError(f"{message}.", flags) if flags else None
    if need.column.value_map:
        return None
    meanings = role_meanings(found)
    own = dict(rows.words)
    others = [word for word in counts.known if own.get(meanings.get(word, ""), word) != word]
    if not others or USER_ROLE not in {meanings.get(word) for word in counts.words}:
        return None
    flags = role_flags(found, (), rows)
    return UnmappedLogError(
        f"{message}: beside the others, {others[0]!r} is probably not who {suite} takes it for.",
        flags,
        more=f" To keep it as it is, type --value {need.name}:{others[0]}={others[0]}.",
    )


def any_word_error(
    suite: str, source: Source, need: Need, counts: Occurrences, seen: Sequence[FileSample]
) -> UnmappedLogError | None:
    """Make the error of a column in which none of the words stands of which one is expected."""
    column = need.column
    has_words = bool(counts.words or counts.known)
    if not (column.expects_any and has_words) or counts.any_expected:
        return None
    expected = [word for name, word in column.expects_any if name == column.name]
    elsewhere = [
        f", and {name} never begins with {word.removesuffix('*')!r}"
        for name, word in column.expects_any
        if name != column.name
    ]
    words = sorted(counts.words.items(), key=lambda item: (-item[1], item[0]))
    found = [f"{word!r} ({count:,})" for word, count in words] + list(
        map(repr, sorted(counts.known))
    )
    flags = word_flags(source, need, counts, column.allowed_values)
    is_mapped = any(value.endswith(f"={word}") for _, value in flags for word in expected)
    return UnknownWordsError(
        f"{_named(seen)}: no row has what {suite} needs: {need.place} is never "
        f"{', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}{''.join(elsewhere)}.\n"
        f"  found: {shortened(found)}",
        flags if is_mapped else (),
        unless=_question(source, need, counts, expected[0]),
    )


def _named(seen: Sequence[FileSample]) -> str:
    first = seen[0].file.path
    count = sum(len(each.files) for each in seen)
    return first if count == 1 else f"{first} and {count - 1:,} more"


def _absence(need: Need, seen: Sequence[FileSample]) -> str:
    """Say how a need is absent; files of columns lack one as a whole."""
    occurrences = [each.occurrences[need.place] for each in seen if each.occurrences]
    asked = sum(counts.asked for counts in occurrences)
    unusable = sum((counts.unusable for counts in occurrences), Counter[str]())
    if unusable:
        found = ", ".join(f"{kind}s ({count:,})" for kind, count in unusable.most_common())
        return f"found {found}, expected {KINDS[need.column.kind]}, in {_objects(need, asked)}"
    in_columns = all(each.file.format in ("csv", "parquet") for each in seen)
    if need.holder is None and in_columns and not any(counts.keyed for counts in occurrences):
        return "no such column"
    if not all(each.is_whole and not each.alike for each in seen):
        return f"absent or null in all {_objects(need, 0).removeprefix('0 ')}"
    return f"absent or null in {_objects(need, asked)}"


def _objects(need: Need, asked: int) -> str:
    if need.holder is None:
        return "1 row" if asked == 1 else f"{asked:,} rows"
    what = f"{need.holder.name}[]"
    return f"1 object of {what}" if asked == 1 else f"{asked:,} objects of {what}"
