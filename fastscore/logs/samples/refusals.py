"""Why files are refused: what a suite lacks, where that probably is, and what to type."""

import codecs
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from typing import Any

import polars as pl

from fastscore.errors import FastscoreError, InputError, counted, listed
from fastscore.files import Compression, DamageError
from fastscore.logs.inputs.column_map import (
    EACH,
    EXAMPLE,
    TURNS,
    WHO_IS_WHO,
    Flag,
    UnmappedLogError,
    column_flag,
    in_shared_words,
    layout_flag,
    typed,
    value_flag,
)
from fastscore.logs.inputs.document_values import first_at
from fastscore.logs.inputs.files import InputFile, content_of, read_head
from fastscore.logs.inputs.folders import name_file
from fastscore.logs.inputs.layout import load_layout
from fastscore.logs.inputs.near_names import (
    is_called,
    is_of_reply,
    nearest,
    replies_beside_user,
    roles_of_keys,
    side_of,
    word_flags,
)
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.read.lines import first_text, read_blocks
from fastscore.logs.samples.chat_samples import (
    NESTED,
    PAIRS,
    ROW_PER_TURN,
    fitting_layout,
    rows_of_arrays,
)
from fastscore.logs.samples.file_samples import FileSample
from fastscore.logs.samples.findings import Finding, jq, jq_path
from fastscore.logs.samples.profile import (
    ANY_KEY,
    KINDS,
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    SHOWN,
    SHOWN_CHARACTERS,
    ColumnSample,
    KeyProfile,
    Profile,
    Record,
    RequiredColumn,
    is_said,
    keys_of_others,
    list_keys,
    nearest_key,
    profile_of,
    quoted,
    required_columns,
)
from fastscore.logs.samples.rewrites import (
    Lack,
    chats_of_lines,
    chats_of_transcripts,
    foreign_rows,
    keyed_dialogues,
    rewritten,
    speakers_in,
)
from fastscore.suites.chats import ASSISTANT_ROLE, ROLES, USER_ROLE
from fastscore.suites.declarations import Column, Source

_ARRAYS_TRIED = 20
_BY_ITSELF = "turns"
"""What an array that is a dialogue by itself is called among rows."""
_FEWEST_VALUES = 2
_DIGITS = re.compile(r"\d+")


def beginning(seen: FileSample) -> str:
    """Return how a file begins that holds text but no row; nothing of any other."""
    if seen.rows or not seen.file.size or seen.file.format not in ("json", "jsonl"):
        return ""
    begins = first_text(seen.file.location, seen.file.compression)
    if b"".join(begins.split()) == b"[]":
        return ""  # an empty document
    text = begins.decode(errors="replace").partition("\n")[0].rstrip()
    return cut(text, SHOWN_CHARACTERS)


def foreign_error(suite: str, source: Source, foreign: Sequence[FileSample]) -> InputError:
    """Make the error of files that are no logs of a suite."""
    lacking = [seen for seen in foreign if seen.lacking]
    if lacking:
        return lacking_error(suite, source, lacking[0].lacking, lacking)
    first = foreign[0]
    begins = beginning(first)
    flags = fitting_layout(suite, source, first, ()) if begins.startswith("[") else []
    line = first_text(first.file.location, first.file.compression).decode(errors="replace")
    advice = next(text for pattern, text in _CONVERTED[first.file.format] if pattern.match(line))
    said = f"{_named(foreign)}: {describe_no_row(first)}."
    return UnmappedLogError(said, flags, unless=name_file(advice, first.file.path))


def describe_no_row(seen: FileSample) -> str:
    """Say that a file holds no row, and how it begins."""
    what = "no line is a JSON object" if seen.file.format == "jsonl" else "no JSON object"
    return f"{what}; it begins with {beginning(seen)!r}"


_ONE_EACH = "JSON Lines have one object on each line"
_NO_JSON = (
    (
        re.compile(r"\s*[\[{(]+\s*'"),
        "It is Python's repr, with single quotes: write each row by json.dumps.",
    ),
    (
        re.compile(r"[^\[{\"]{3,}\{\s*\""),
        "A log prefix stands before the JSON. Type sed 's/^[^{]*//' FILE > rows.jsonl.",
    ),
)
_CONVERTED = {
    "json": (
        *_NO_JSON,
        (
            re.compile(r"(?s).*\]\s*\["),
            f"Arrays follow each other. {jq('.[]', into='rows.jsonl')}",
        ),
        (re.compile(""), "A JSON document holds an object, or an array of them."),
    ),
    "jsonl": (
        *_NO_JSON,
        (
            re.compile(r"\{.*\},\s*\n"),
            "Each line ends with a comma. Type sed 's/,[[:space:]]*$//' FILE > rows.jsonl.",
        ),
        (re.compile(r'\s*"[{\[]'), f"Its lines are texts that spell JSON. {jq('fromjson')}"),
        (
            re.compile(r'\s*\[\{(?![^\[}]*"(?:role|from|speaker|content)")[^}]*\[\s*\{'),
            f"It is an array of dialogues. {jq('.[]', into='rows.jsonl')}",
        ),
        (
            re.compile(r'\s*\[\{[^\[}]*"(?:dialogue|conversation|session|chat)(?:_?u?id)?"\s*:'),
            f"It is an array of rows. {jq('.[]', into='rows.jsonl')}",
        ),
        (re.compile(r"\s*\[\{"), f"{_ONE_EACH}. {jq('{messages: .}')}"),
        (re.compile(r"\s*\["), f"{_ONE_EACH}. {jq('.[]', into='rows.jsonl')}"),
        (re.compile(""), f"{_ONE_EACH}. {jq('.', into='rows.jsonl')}"),
    ),
}
"""How text without a row begins, by its format, and how it is converted."""


class MissingColumnsError(UnmappedLogError):
    """Rows without columns that all metrics need, or that were asked for."""

    absent: Mapping[str, str]
    """The place of each column, and in what way it is absent."""
    asked: str
    """What is asked of chats whose turns do not say who speaks, perhaps with an example."""

    @property
    def reason(self) -> str:
        """What is absent, on one line."""
        return "; ".join(f"{place}: {how}" for place, how in self.absent.items())


def lacking_error(
    suite: str, source: Source, lacking: Sequence[RequiredColumn], seen: Sequence[FileSample]
) -> UnmappedLogError:
    """Make the error of rows that lack what all metrics need, or what was asked for."""
    rows = list(islice(seen[0].read(), MOST_ROWS_SAMPLED))
    of_others = foreign_rows(source, rows[:ROWS_SAMPLED])
    if of_others is not None:
        return of_others.refused(seen[0].file.path)
    rows = (rows_of_arrays(rows, source) if source.chat_rows else []) or rows
    by_id = _of_ids(rows, source)
    found = profile_of(by_id or rows)
    # an array under another name brings what its objects should have
    items = [
        RequiredColumn(item.name, need.column, item)
        for need in lacking
        for item in need.column.items
        if item.needed.by and item.needed.by == need.column.needed.by
    ]
    advice = suggested(source, [*lacking, *items], found)
    is_needed = lacking[0] in required_columns(source)
    what = f"what {suite} needs" if is_needed else "a column that is asked for"
    lines = [f"{_named(seen)}: no row has {what}."]
    told: set[str] = set()
    absent = {need.place: _absence(need, seen) for need in lacking}
    for need in lacking:
        lines += [
            f"  {need.place}: {absent[need.place]}",
            f"    looked for: {', '.join(need.column.keys)}",
        ]
        keys = list_keys(keys_beside(need, source, advice, found))
        if keys not in told:
            lines.append(f"    found: {keys}")
            told.add(keys)
        if need.place in advice:
            lines.append(f"    nearest: {advice[need.place]}")
    columns = [
        column_flag(need.name, advice[need.place])
        for need in (*lacking, *items)
        if need.place in advice and advice[need.place] not in need.column.keys
    ]
    array = next(iter({path.rpartition(EACH)[0] for path in advice.values()}), "")
    is_found = all(need.place in advice for need in lacking)
    if array and is_found and source.chat_rows is None and not items:
        path = jq_path(array.split("."))
        program = jq(f"{path} as $rows | del({path}) + $rows[]", into="rows.jsonl")
        in_array = Finding(f"its rows are the elements of {array}.", unless=program)
        return in_array.refused(seen[0].file.path)
    layout = fitting_layout(suite, source, seen[0], rows[:ROWS_SAMPLED])
    anew = None if layout or source.chat else rewritten(Lack(source, lacking, rows, found))
    if anew is not None:
        return anew.refused(seen[0].file.path)
    flags = layout or list(dict.fromkeys(columns))
    if by_id and not layout:
        begin = [] if source.chat else [layout_flag(NESTED)]
        shared = in_shared_words(flags, source)
        flags = [*begin, *(flag for flag in shared if flag != column_flag(TURNS, _BY_ITSELF))]
    unnamed = [need for need in (*lacking, *items) if need.place not in advice]
    is_layout = any(flag.option == "layout" for flag in flags)
    unnamed = [] if is_layout else unnamed
    # what turns never have is not found by reading them
    is_hopeless = not {need.name for need in unnamed} <= {*_parts_of_turns(source)}
    of_chats, asked, example = (
        ([], "", []) if is_layout or is_hopeless else _chat_flags(seen[0].file.path, source, found)
    )
    rows_of = source.chat_rows
    if rows_of and not (is_layout or of_chats or asked or source.chat):
        speakers = [flag for flag in flags if flag.words[0].endswith(rows_of.speaker)]
        asked = "" if speakers else name_file(_chats_to_write(found), seen[0].file.path)
    if of_chats or asked:
        flags = of_chats
        unnamed = [need for need in lacking if need.name not in _parts_of_turns(source)]
    named, alternate = _key_to_name(source, unnamed, advice, found) if unnamed else ("", [])
    question = " ".join(filter(None, (asked, named)))
    error = MissingColumnsError(
        "\n".join(lines),
        flags,
        unless=question,
        example=example or alternate,
        more=f" {question.replace(EXAMPLE, typed(example or alternate))}" if question else "",
    )
    error.absent, error.asked = absent, asked if not alternate else question
    return error


def _chats_to_write(found: Profile) -> str:
    """Say how chats are written of transcripts that are one text."""
    for path, key in found.below("").items():
        texts = [text for text in key.words if len(speakers_in(text)) > 1]
        if 2 * len(texts) > len(key.words):
            return f"{path!r} has whole transcripts. {chats_of_transcripts(path, texts)}"
    return ""


def _of_ids(rows: Sequence[Record], source: Source) -> list[Record]:
    """Return the dialogues that rows are objects of, by their ids; none of other rows."""
    is_read = source.chat is None or ANY_KEY in source.chat.layout.dialogues
    if source.chat_rows is None or not is_read:
        return []
    keyed = map(keyed_dialogues, rows[:ROWS_SAMPLED])
    return [
        dialogue if isinstance(dialogue, dict) else {_BY_ITSELF: dialogue}
        for each in keyed
        if each is not None and not each.holder
        for dialogue in each.objects.values()
    ][:MOST_ROWS_SAMPLED]


def absent_key_error(
    flag: Flag, keys: Sequence[str], seen: Sequence[FileSample]
) -> UnmappedLogError:
    """Make the error of an option that names a key which no dialogue has."""
    *name, path = flag.words
    near = nearest([path, *name], keys)
    return Finding(
        f"{name[0] if name else flag.option} is read from {path!r}, which no dialogue has; it has "
        f"{quoted(keys) or 'no keys'}.",
        [] if near is None else [flag._replace(words=(*name, near))],
        unless="Name one of these keys, or leave the option out.",
    ).refused(_named(seen))


LISTED = " `fastscore inspect` lists the keys of a log and the suites that it fits."


def _key_to_name(
    source: Source, unnamed: Sequence[RequiredColumn], advice: Mapping[str, str], found: Profile
) -> tuple[str, Sequence[Flag]]:
    """Ask for the keys of what no name is near, of speakers also whether they alternate."""
    asked = typed([column_flag(need.name, "KEY") for need in unnamed])
    named = f"Name {'its key' if len(unnamed) == 1 else 'their keys'}: {asked}. "
    rows = source.chat_rows
    is_mapped = source.asked_for and not (source.chat and source.chat.layout.is_row_per_turn)
    if rows and is_mapped and unnamed[0].name == rows.array:
        named = f"If each row is a turn, add {typed([layout_flag(ROW_PER_TURN)])}. {named}"
    if rows is not None and unnamed[0].name == rows.speaker:
        keys = keys_beside(unnamed[0], source, advice, found)
        changing = [path for path, key in keys.items() if key.may_take_turns and not _counts(path)]
        if len(changing) == 1:
            words, own = [*keys[changing[0]].words], [own for _, own in rows.words[:2]]
            sides = zip(words, _sides(words, own, set()), strict=True)
            values = [value_flag(rows.speaker, *side) for side in sides]
            return WHO_IS_WHO, [column_flag(rows.speaker, changing[0]), *values]
    layout = source.chat.layout if source.chat else None
    can_alternate = layout and not (layout.is_row_per_turn or any(map(is_of_reply, layout.text)))
    if can_alternate and rows is not None and unnamed[0].name == rows.speaker:
        alternate = [Flag("alternate", (USER_ROLE,))]
        return f"{named}If turns alternate and the user begins, type {EXAMPLE}.", alternate
    return named.rstrip() + LISTED, []


Reading = tuple[list[Flag], str, list[Flag]]
"""Options that read a log; else a question, and the options that read it if it is so."""


def _chat_flags(file: str, source: Source, found: Profile) -> Reading:
    """Return what reads chats without roles under keys of their own, or what is asked of them."""
    flags, asked, example = _pair_flags(source, found)
    flags = flags or _turn_flags(source, found)
    if flags:
        return flags, "", []
    if asked or source.chat_rows is None or source.chat is not None:
        return [], asked, example
    lists = [
        path
        for path, key in found.below("").items()
        if key.types.keys() == {"array"} and key.example and all(map(is_said, key.example))
    ]
    if len(lists) == 1:
        if anew := chats_of_lines(lists[0], found.below("")[lists[0]].example):
            return [], name_file(f"The texts of {lists[0]!r} begin with speakers. {anew}", file), []
        alternate = [column_flag(TURNS, lists[0]), Flag("alternate", (USER_ROLE,))]
        asked = f"If the texts of {lists[0]} alternate and the user begins: {EXAMPLE}."
        return [], asked, alternate
    if len(lists) == len(ROLES[:2]):
        sides = ", ".join(jq_path(path.split(".")) for path in lists)
        read = [layout_flag(PAIRS), column_flag(TURNS, "turns")]
        anew = jq(f". + {{turns: ([{sides}] | transpose)}}", read)
        asked = f"If {lists[0]} is what the user says, and {lists[1]} the replies: "
        return [], asked + name_file(anew, file), []
    return [], "", []


def _pair_flags(source: Source, found: Profile) -> Reading:
    """Return what reads objects of two texts as pairs, and the question who says which."""
    rows, layout = source.chat_rows, load_layout(PAIRS)
    if rows is None or layout.chat is None:
        return [], "", []
    words, own, places = dict(layout.chat.roles), dict(rows.words), layout.chat.turns[0]
    begin = [] if source.chat and source.chat.layout.is_keyed_by_speaker else [layout_flag(PAIRS)]
    for array in ("", *(array for array in found.arrays if EACH not in array)):
        keys = found.below(array)
        # of two keys with the same texts one is enough
        spoken_by = {
            tuple(key.words): path for path, key in reversed(keys.items()) if key.are_texts
        }
        texts = [*reversed(spoken_by.values())]
        if not array and sum(keys[path].count for path in texts) <= found.rows:
            continue  # no object has two of them
        roles = roles_of_keys(texts)
        # a prediction and its truth are no pair
        sides = {side_of(path) for path in texts if path not in roles}
        are_named = bool(roles) or any(map(is_of_reply, texts))  # then true and false are others'
        is_told = any(
            key.names_speakers or (key.tells_speakers and not are_named) for key in keys.values()
        )
        if is_told or len(texts) < 2 or {1, -1} <= sides:
            continue
        if source.chat is not None and {*texts} <= {*dict(source.chat.layout.roles)}:
            continue  # who says which is known
        moved = [column_flag(rows.array or TURNS, array)] if array not in places else []
        spoken = [(path, own[roles[path]]) for path in texts if roles.get(path) in own]
        if sorted(roles[path] for path, _ in spoken) == [ASSISTANT_ROLE, USER_ROLE]:
            named = [value_flag(rows.speaker, *side) for side in spoken if side[0] not in words]
            return [*begin, *moved, *named], "", []
        replies = [path for path in texts if is_of_reply(path)]
        if len(texts) == 2 or len(replies) == 1:
            said = [path for path in texts if path not in replies[:1]]
            both = zip((said[0], *replies[:1], *said[1:]), own.values(), strict=False)
            example = [value_flag(rows.speaker, path, word) for path, word in both][:2]
            flags = [*in_shared_words([*begin, *moved, *example], source)]
            pairs = f"objects of {array}" if array else "rows"
            return [], f"If {pairs} are pairs, {WHO_IS_WHO[0].lower()}{WHO_IS_WHO[1:]}", flags
    return [], "", []


def _turn_flags(source: Source, found: Profile) -> list[Flag]:
    """Return what reads rows as turns, if one of their keys says who speaks, and one what.

    A suite whose own rows are turns reads by itself who speaks, except what is true or false.
    """
    rows = source.chat_rows
    keys = {path: key for path, key in found.below("").items() if ANY_KEY not in path}
    truths = [p for p, key in keys.items() if key.takes_turns and key.types.keys() == {"boolean"}]
    can_be = rows is not None and (rows.can_be_turns or (not rows.array and len(truths) == 1))
    if rows is None or not can_be or source.chat is not None or found.arrays:
        return []
    layout = load_layout(ROW_PER_TURN)
    assert layout.chat is not None
    flags, taken = [layout_flag(ROW_PER_TURN)], {path for paths in layout.chat.id for path in paths}
    items = source.column(rows.array).items if rows.array else source.columns
    for name, paths in ((rows.speaker, layout.chat.speaker), (rows.text, layout.chat.text)):
        if not any(path in keys and "object" not in keys[path].types for path in paths):
            column = next(item for item in items if item.name == name)
            near = _nearest_key(column, source, keys, taken)
            if not rows.array and name == rows.speaker:
                near = truths[0]
            if near is None:
                return []
            flags.append(column_flag(name, near))
            taken.add(near)
    names = [path for path in keys if is_called("dialogue", path) and path not in taken]
    if names and rows.array and keys.keys().isdisjoint(taken):
        flags.append(column_flag(rows.id, names[0]))
    return flags if rows.array or len(flags) > 1 else []


def _parts_of_turns(source: Source) -> tuple[str, ...]:
    """Return the columns that turns become."""
    rows = source.chat_rows
    return (rows.array, rows.speaker, rows.text) if rows is not None else ()


def suggested(source: Source, lacking: Sequence[RequiredColumn], found: Profile) -> dict[str, str]:
    """Return for what is lacking the paths at which it probably stands, by its place."""
    # rows are lines, or the objects of one array
    is_apart = not (any(column.items for column in source.columns) or source.rows)
    arrays = ["", *(_own_arrays(found) if is_apart else ())]
    keys = (found.below_line(array) for array in arrays[:_ARRAYS_TRIED] if EACH not in array)
    advice = max((_suggested(source, lacking, found, each) for each in keys), key=len)
    # who speaks is beside what is said
    rows = source.chat_rows
    speaker = advice.get(rows.speaker, "") if rows else ""
    text = advice.get(rows.text) or source.column(rows.text).keys[0] if speaker and rows else ""
    array = text.rpartition(EACH)[0] or source.rows
    if array and not speaker.startswith(array + EACH):
        return {place: path for place, path in advice.items() if path != speaker}
    return advice


def _suggested(
    source: Source,
    lacking: Sequence[RequiredColumn],
    found: Profile,
    in_array: Mapping[str, KeyProfile],
) -> dict[str, str]:
    advice: dict[str, str] = {}
    for need in lacking:
        siblings = need.holder.items if need.holder else source.columns
        taken = keys_of_others(siblings, need.name)
        if need.column.items:
            arrays = {
                path: KeyProfile(count=1, types=Counter(array=1))
                for path in _own_arrays(found)
                if EACH not in path and ANY_KEY not in path and path not in taken
            }
            spoken = (
                path for path in arrays if any(key.are_texts for key in found.below(path).values())
            )
            near = nearest_key(need.column, arrays)
            path = near or next(spoken, None) or next(iter(arrays), None)
        else:
            keys = {**keys_beside(need, source, advice, found), **in_array}
            path = _nearest_key(need.column, source, keys, taken | set(advice.values()))
        if path is not None:
            advice[need.place] = path
    return advice


def _own_arrays(found: Profile) -> list[str]:
    """Return the arrays that are no values of a map: one of several dialogues by their ids.

    Several whose objects have the same keys are dialogues each, or sides of one, as are those at
    one place inside several keys of an object. An array that is called a reply is left out.
    """
    places = Counter(place for path in found.arrays for place in _places_by_key(path))
    by_shape: dict[tuple[str, frozenset[str]], list[str]] = {}
    for path in found.arrays:
        parent, _, name = path.rpartition(".")
        is_one_of_several = any(places[place] > 1 for place in _places_by_key(path))
        if not is_of_reply(name) and not is_one_of_several:
            by_shape.setdefault((parent, frozenset(found.below(path))), []).append(name)
    return [
        f"{parent}.{name}" if parent else name
        for (parent, _), names in by_shape.items()
        if len(names) < _FEWEST_VALUES
        and len({_DIGITS.sub("", name) for name in names}) == len(names)
        for name in names
    ]


def _places_by_key(path: str) -> list[tuple[str, ...]]:
    """Return a path once for each key before its last, which any key replaces; none of replies."""
    keys = path.split(".")
    return [
        (*keys[:at], ANY_KEY, *keys[at + 1 :])
        for at in range(len(keys) - 1)
        if not is_of_reply(path)
    ]


def _nearest_key(
    column: Column, source: Source, keys: Mapping[str, KeyProfile], taken: Collection[str]
) -> str | None:
    """Return the key that a column probably is: of speakers by its values, else by its name.

    What is said and by whom is also told by the values of the only key that has such.
    """
    rows = source.chat_rows
    is_speaker = rows is not None and column.name == rows.speaker
    is_text = rows is not None and column.name == rows.text
    free = {path: key for path, key in keys.items() if path not in taken and ANY_KEY not in path}
    if is_speaker:
        free = {path: key for path, key in free.items() if key.names_speakers or not _counts(path)}
        keys = free
    named = (path for path, key in free.items() if is_speaker and key.names_speakers)
    near = next(named, None) or nearest_key(column, keys, taken)
    # who speaks changes, whatever the key is called
    if is_speaker and near in free and len(free[near].words) == 1 < free[near].count:
        near = None
    # under any name the only one of its kind
    if is_text and near in free and not free[near].are_texts:
        near = next((path for path, key in free.items() if key.are_texts), near)
    alone = [path for path, key in free.items() if is_text and key.are_texts]
    if len(alone) > 1:  # names of speakers come again and again
        alone = [path for path in alone if 3 * len(free[path].words) > free[path].words.total()]
    if is_speaker:  # a row of a suite reads no boolean as a word
        is_row = source.chat is None and rows is not None and not rows.array
        turns = {path: key for path, key in free.items() if key.takes_turns}
        alone = [
            path
            for path, key in turns.items()
            if "boolean" not in key.types or EACH in path or not is_row
        ]
    truths = [path for path in alone if "boolean" in keys[path].types]
    alone = truths if len(truths) == 1 else alone
    return alone[0] if near is None and len(alone) == 1 else near


def _counts(path: str) -> bool:
    """Tell whether a key is called as times or numbers of turns are."""
    name = path.rpartition(EACH)[2].rpartition(".")[2]
    return is_called("time", name) or is_called("step", name)


def keys_beside(
    need: RequiredColumn, source: Source, advice: Mapping[str, str], found: Profile
) -> dict[str, KeyProfile]:
    """Return the keys of the objects in which a need should stand, in an array by its new name."""
    if need.holder is not None and need.holder.name in advice:
        return found.below(advice[need.holder.name])
    return found.around(source, need.holder)


def words_error(
    suite: str,
    source: Source,
    need: RequiredColumn,
    counts: ColumnSample,
    seen: Sequence[FileSample],
) -> UnmappedLogError | None:
    """Make the error of a column that lacks words: one of those needed, or any of several."""
    vocabulary = need.column.vocabulary
    found_words = [word for word, _ in counts.by_count]
    found = [f"{cut(word, SHOWN_CHARACTERS)!r} ({count:,})" for word, count in counts.by_count]
    absent = [word for word in vocabulary.needed if word not in counts.known]
    if absent and counts.words:
        meant = absent[0]
        flags = word_flags(need.column, found_words, counts.known, absent, source.chat_rows)
        flags = flags or _flags_by_columns(need, source, found_words, absent, seen[0])
        never = " or ".join(map(repr, absent))
        never += f".\n  looked for: {', '.join(vocabulary.needed)}"
    elif vocabulary.any_needed and not counts.any_expected and (counts.words or counts.known):
        found += map(repr, sorted(counts.known))
        expected = [word for name, word in vocabulary.any_needed if name == need.name]
        meant = expected[0]
        flags = word_flags(
            need.column, found_words, counts.known, vocabulary.known, source.chat_rows
        )
        flags = flags if any(flag.words[-1] in expected for flag in flags) else []
        never = f"{', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}"
        for name, word in vocabulary.any_needed:
            if name != need.name:
                never += f", and {name} never begins with {word.removesuffix('*')!r}"
        never += "."
    else:
        return None
    question, example = _question(source, need, counts, meant)
    return UnknownWordsError(
        f"{_named(seen)}: no row has what {suite} needs: {need.place} is never {never}\n"
        f"  found: {listed(found, SHOWN)}",
        flags,
        unless=question,
        example=example,
    )


def _flags_by_columns(
    need: RequiredColumn,
    source: Source,
    words: Sequence[str],
    absent: Sequence[str],
    seen: FileSample,
) -> list[Flag]:
    """Return what words mean, if each is told by the columns that only its rows have."""
    rows = list(islice(seen.read(), MOST_ROWS_SAMPLED))
    flags: list[Flag] = []
    taken: set[str] = set()
    for word in words:
        keys = profile_of(r for r in rows if str(first_at(r, need.column.keys)) == word).below("")
        meanings = {}
        for meant in absent:
            columns = [c for c in source.columns if c.only_where == (need.name, meant)]
            places = {
                column.name: next(filter(keys.get, column.keys), None) or nearest_key(column, keys)
                for column in columns
            }
            if places and None not in places.values():
                meanings[meant] = [
                    column_flag(name, str(place))
                    for name, place in places.items()
                    if place not in source.column(name).keys
                ]
        if len(meanings) != 1 or not taken.isdisjoint(meanings):
            return []
        taken.update(meanings)
        for meant, moved in meanings.items():
            flags += [*moved, value_flag(need.name, word, meant)]
    return flags


class UnknownWordsError(UnmappedLogError):
    """Words of a column that lacks the words it needs; if no flags map them, the hint asks."""


def _question(
    source: Source, need: RequiredColumn, counts: ColumnSample, meant: str
) -> tuple[str, Sequence[Flag]]:
    """Ask what words mean: of two speakers with what to type if the user is the first."""
    rows = source.chat_rows
    sides = [own for role, own in rows.words if role in (USER_ROLE, ASSISTANT_ROLE)] if rows else []
    words = [*counts.words, *sorted(counts.known.difference(sides))]
    is_speaker = rows is not None and need.name == rows.speaker
    if rows is None or not is_speaker or len(words) < len(rows.words[:2]):
        is_other = len(words) == 1 and (is_speaker or need.column.vocabulary.needed)
        meant = sides[0] if is_speaker and meant not in sides else meant
        flag = value_flag(need.name, words[0] if is_other else "WORD", meant)
        asked = EXAMPLE if is_other else typed(in_shared_words([flag], source))
        return f"Say what they mean: {asked}.", [flag] if is_other else []
    means = _sides(words, sides, counts.known)
    example = [value_flag(need.name, *each) for each in zip(words, means, strict=True)]
    if source.chat is None and need.holder is not None:
        # in the suite's own arrays only texts are words
        example.insert(0, column_flag(need.name, need.name))
    return WHO_IS_WHO, example


def _sides(words: Sequence[str], own: Sequence[str], known: set[str]) -> list[str]:
    """Return a suite's word for the user or the assistant, for each word.

    If one of these is known, words are the other one. Else the assistant is who replies beside a
    user, or of two words the second, of more the first.
    """
    user, assistant = own
    if not known.isdisjoint(own):
        return [user if assistant in known else assistant for _ in words]
    replies = next(filter(replies_beside_user, words), words[1 if len(words) == 2 else 0])
    return [assistant if word == replies else user for word in words]


def _named(seen: Sequence[FileSample]) -> str:
    first = seen[0].file.path
    count = sum(len(each.files) for each in seen)
    return first if count == 1 else f"{first} and {count - 1:,} more"


def _absence(need: RequiredColumn, seen: Sequence[FileSample]) -> str:
    """Say how a need is absent; files of columns lack one as a whole."""
    samples = [each.samples[need.place] for each in seen if each.samples]
    asked = sum(counts.asked for counts in samples)
    unusable = sum((counts.unusable for counts in samples), Counter[str]())
    if unusable:
        found = ", ".join(f"{kind}s ({count:,})" for kind, count in unusable.most_common())
        return f"found {found}, expected {KINDS[need.column.kind]}, in {_objects(need, asked)}"
    in_columns = all(each.file.format in ("csv", "parquet") for each in seen)
    if need.holder is None and in_columns and not any(counts.keyed for counts in samples):
        return "no such column"
    if not all(each.is_whole and not each.alike for each in seen):
        return f"absent or null in all {_objects(need, 0).removeprefix('0 ')}"
    return f"absent or null in {_objects(need, asked)}"


def _objects(need: RequiredColumn, asked: int) -> str:
    if need.holder is None:
        return counted(asked, "rows")
    return f"{counted(asked, 'objects')} of {need.holder.name}[]"


_SAMPLE_BYTES = 1 << 15
_FARTHEST = 64 << 20
_OF_ICONV = (
    "WINDOWS-1252 WINDOWS-1250 WINDOWS-1251 WINDOWS-1253 WINDOWS-1254 WINDOWS-1255 WINDOWS-1256 "
    "KOI8-R GB18030 BIG5 SHIFT_JIS EUC-JP EUC-KR"
)
_ENCODINGS = {codecs.lookup(name).name.replace("-", "_"): name for name in _OF_ICONV.split()}
"""Encodings that logs have, by Python's names, and what ``iconv`` calls them."""


def suggest_conversion(path: str, offset: int) -> str:
    """Say how a file is converted to UTF-8, by its text around a byte that is not UTF-8."""
    compression, text = _text_around(path, offset)
    name = likely_encoding(text) if text else ""
    if not name:
        return ""
    probably = f" The encoding of {path} is probably {name}."
    written = PurePath(path)
    if compression != "none":
        return f"{probably} Unpack it and convert it to UTF-8."
    target = written.with_name(f"{written.stem}.utf8{written.suffix}")
    command = shlex.join(["iconv", "-f", name, "-t", "UTF-8", path])
    return f"{probably} Type {command} > {shlex.quote(str(target))}."


def suggest_conversion_of(rejects: pl.LazyFrame) -> str:
    """Say how the first file with text that is not UTF-8 is converted; nothing if none has any."""
    encoded = rejects.filter(pl.col("reason") == "not_utf8").head(1).collect()
    places = encoded.select("file", "byte_offset").rows()
    return "".join(suggest_conversion(str(file), offset or 0) for file, offset in places)


def suggest_words(path: str, reject: Mapping[str, Any]) -> str:
    """Say how booleans in the place of a text are written as words; nothing of other rejects."""
    key, found = reject["field"] or "", reject["found"]
    is_of_text = reject["expected"] == "a string" and key.isidentifier()
    if reject["reason"] != "wrong_type" or found not in ("true", "false") or not is_of_text:
        return ""
    if not path.endswith(_JSON_SUFFIXES):
        return f" Write {key} as text: yes or no."
    program = f'(.[]?, . | objects | .{key} | booleans) |= if . then "yes" else "no" end'
    return f" {name_file(jq(program, into=f'rows{PurePath(path).suffix}'), path)}"


_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


def likely_encoding(text: bytes) -> str:
    """Name the encoding that bytes probably have, empty if none fits."""
    from charset_normalizer import from_bytes  # late: it loads tables of languages

    found = from_bytes(text, cp_isolation=[*_ENCODINGS], preemptive_behaviour=False)
    scores = {
        name: (round(match.chaos, 2), -round(match.coherence, 2))
        for match in found
        for name in match.could_be_from_charset
    }
    # of equals the more common one
    known = [name for name in _ENCODINGS if name in scores]
    return _ENCODINGS[min(known, key=scores.__getitem__)] if known else ""


def _text_around(path: str, offset: int) -> tuple[Compression, bytes]:
    """Return some text around a byte of the unpacked file, none if it cannot be read again.

    How it is packed comes first.
    """
    with suppress(OSError, DamageError, FastscoreError):
        compression = content_of(read_head(path)).compression
        if offset > _FARTHEST and compression != "none":
            return compression, b""
        begin = max(offset - _SAMPLE_BYTES, 0)
        text, at = b"", begin if compression == "none" else 0
        for block in read_blocks(path, compression, at, block_bytes=_SAMPLE_BYTES):
            text += block[max(begin - at, 0) :]
            at += len(block)
            if len(text) >= 2 * _SAMPLE_BYTES:
                break
        return compression, text
    return "none", b""


def encoding_error(file: InputFile) -> InputError | None:
    """Make the error of a file whose text is in another encoding, None of any other."""
    compression, text = _text_around(file.path, 0) if file.size else ("none", b"")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        advice = suggest_conversion(file.path, error.start)
        # a last character may be cut
        if advice and error.end < len(text) and compression == "none":
            line = 1 + text.count(b"\n", 0, error.start)
            return InputError(f"{file.path}:{line}: the text is not UTF-8.{advice}")
    return None
