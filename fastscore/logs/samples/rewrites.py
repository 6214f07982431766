"""Logs that must be written anew before an option reads them, and the command that does it."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from fastscore.logs.inputs.column_map import (
    EACH,
    TURNS,
    WHO_IS_WHO,
    Flag,
    column_flag,
    layout_flag,
    value_flag,
)
from fastscore.logs.inputs.document_values import first_at, is_time, json_of, load_json, value_at
from fastscore.logs.inputs.files import SAID, SAID_HERE
from fastscore.logs.inputs.layout import first_keys, load_layout
from fastscore.logs.inputs.near_names import (
    is_called,
    is_of_one_model,
    nearest,
    role_meanings,
    roles_of_two,
    side_of,
)
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import NESTED, OPENAI
from fastscore.logs.samples.findings import FILE, Finding, jq, jq_key, jq_path
from fastscore.logs.samples.profile import (
    ROWS_SAMPLED,
    SHOWN_CHARACTERS,
    KeyedArrays,
    Profile,
    Record,
    RequiredColumn,
    arrays_in,
    is_said,
    keyed_arrays,
    nearest_key,
    profile_of,
    quoted,
)
from fastscore.suites.chats import ASSISTANT_ROLE, USER_ROLE
from fastscore.suites.declarations import ALL_METRICS, Source

_NUMBERED = re.compile(r"(.*[^\d_ -])[_ -]?\d+")
"""A key that ends in a number."""
_MOST_NUMBERED = 20
_SPEAKERS = {"user", "assistant", "human", "bot", "ai", "customer", "agent", "system"}
"""Words for speakers, one of which is no name of a column that has another."""
_OF_ONE_DOCUMENT = re.compile(r"(?:\{|\(\.\w+(?:\[\]\?)? // )(?!.*(?:input_line_number|\[\.\[\]))")
"""How programs of exports begin that read one document, so that an array of them is taken apart."""
_OF_PYTHON = re.compile(r"\s*(\[\s*)?[\[{(]\s*'")


@dataclass(frozen=True, slots=True)
class Export:
    """What another tool writes that no layout reads as it stands; see ``exports.toml``."""

    title: str
    needs: Sequence[str | Sequence[str]]
    without: Sequence[str] = ()
    text: str = ""
    jq: str = ""
    slurp: str | None = None
    layout: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""

    @property
    def flags(self) -> list[Flag]:
        """The options that read it, or what jq makes of it."""
        layout = OPENAI if self.jq and self.layout is None else self.layout
        return [
            *([layout_flag(layout)] if layout else []),
            *(column_flag(*item) for item in self.columns.items()),
            *(value_flag("speaker", *item) for item in self.values.items()),
        ]

    @property
    def found(self) -> Finding:
        """Say what reads a log of it."""
        anew = self.advice
        if self.jq:
            slurps, before = self.slurp is not None, self.slurp or ""
            each = "arrays[], objects | " if not slurps and _OF_ONE_DOCUMENT.match(self.jq) else ""
            anew = jq(each + self.jq, self.flags, slurps=slurps, before=before)
            if not self.flags:
                anew = f"{anew[:-1]}, and read it as `fastscore inspect chats.jsonl` says."
        return Finding(f"{self.title}.", [] if anew else self.flags, anew)


@cache
def _exports() -> tuple[tuple[list[list[str]], str], ...]:
    """Return what rows of each export have, and its table, which is parsed if they have it."""
    text = files(__package__).joinpath("exports.toml").read_text("utf-8")
    needs = map(load_json, _NEEDS.findall(text))
    paths = [[[each] if isinstance(each, str) else each for each in need] for need in needs]
    return tuple(zip(paths, text.split("[[exports]]")[1:], strict=True))


_NEEDS = re.compile(r"^needs = (.*)$", re.MULTILINE)


def export_of(row: Record) -> Export | None:
    """Return the export that a row is of."""
    heads = first_keys([row]) | {"*", "+"}
    for needs, table in _exports():
        # most lack the first key of what is needed first
        if heads.isdisjoint([path.partition(".")[0] for path in needs[0]]):
            continue
        if all(any(_leads(row, path.split(".")) for path in paths) for paths in needs):
            export = Export(**tomllib.loads(table))
            first = first_at(row, needs[0]) if export.text else ""
            if export.text in str(first) and not any(
                _leads(row, path.split(".")) for path in export.without
            ):
                return export
    return None


def _leads(value: Any, path: Sequence[str]) -> bool:
    """Tell whether a path leads to a value other than null."""
    if value_at(value, ".".join(path)) is not None:
        return True  # also by a key with dots
    for place, part in enumerate(path):
        if part in ("*", "+"):
            inside = value.values() if isinstance(value, dict) else ()
            lead = [_leads(each, path[place + 1 :]) for each in inside]
            return bool(lead) and (all(lead) if part == "*" else any(lead))
        if part.startswith("{"):
            part = part.strip("{}") if isinstance(value, dict) else ""
        value = value_at(value, part) if part else None
    return value is not None


def foreign_rows(source: Source, records: Iterable[Record]) -> Finding | None:
    """Find rows that must be converted first."""
    shapes: set[frozenset[str]] = set()
    for record in records:
        shape = frozenset([key for key, value in record.items() if value is not None])
        found = (
            _table_by_lines(source, record)
            or _python_in_cells(source, record)
            or (None if shape in shapes else _of_export(source, record))
            or _nested_dialogues(source, record)
        )
        if found is not None:
            return found
        shapes.add(shape)
    return None


def _table_by_lines(_: Source, record: Record) -> Finding | None:
    """Find a table without a header or below a title, and columns parted by another sign."""
    first, *others = record or [""]
    for name, cell in record.items():
        are_speakers = {name, str(cell).strip().lower()} <= _SPEAKERS
        has_no_names = are_speakers and not nearest(("text", "time", "conversation_id"), record)
        if isinstance(cell, str) and (has_no_names or (is_time(name) and is_time(cell))):
            return Finding(
                f"line 1 has {name!r} in the place of a name: the table has no header.",
                unless=f"Type sed '1i created_at,conversation_id,speaker,text' {FILE} > table.csv, "
                "with the names of its columns in their order, separated as its cells are.",
            )
    # the other way round it is an index
    if others == [""]:
        return Finding(
            f"line 1 names one column, {first!r}: it is a title above the table.",
            unless=f"Type tail -n +2 {FILE} > table.csv.",
        )
    if not others and first.count("|") > 1:
        return Finding(
            f"line 1 is {cut(first, SHOWN_CHARACTERS)!r}: columns are parted by |, expected "
            "commas, semicolons or tabs.",
            unless=f"Type tr '|' '\\t' < {FILE} > table.tsv.",
        )
    return None


def _python_in_cells(source: Source, record: Record) -> Finding | None:
    """Find cells as Python prints them, except in columns that a suite reads so by itself."""
    texts = {key: value for key, value in record.items() if isinstance(value, str)}
    for key, value in texts.items():
        if _OF_PYTHON.match(value) and not any(
            key in column.keys for column in source.columns if not column.items
        ):
            return Finding(
                f"{key} is a list or a dict as Python prints it, with single quotes, not JSON: "
                f"{cut(value, SHOWN_CHARACTERS)}.",
                unless="Write the log by to_json(orient='records', lines=True), or by to_parquet.",
            )
    return None


def _of_export(source: Source, record: Record) -> Finding | None:
    # an array by itself is a row of one value
    first = [each[0] for each in record.values() if isinstance(each, list) and each]
    places = [record, *(each for each in first if len(record) == 1 and isinstance(each, dict))]
    export = next(filter(None, map(export_of, places)), None)
    # what no option reads is no chat
    is_known = export is not None and (source.chat_rows is not None or not export.flags)
    return export.found if export is not None and is_known else None


def _nested_dialogues(source: Source, record: Record) -> Finding | None:
    """Find dialogues in arrays of arrays, or in one further inside an object."""
    for outer, groups in arrays_in(record) if source.chat_rows is not None else ():
        nested = load_layout(NESTED).chat if len(outer) > 1 else None
        is_inside = nested is not None and f"{'.'.join(outer)}[]" not in nested.dialogues
        for inner, dialogues in arrays_in(groups[0]):
            place = f"{jq_path(outer)}[]"
            if is_inside and _are_turns(dialogues):
                return Finding(f"its dialogues are {place}.", unless=jq(place))
            for last, turns in arrays_in(dialogues[0]):
                if _are_turns(turns) and is_called("parts", inner[-1]):
                    # with a name of each dialogue, so that a history in each part counts once
                    program = (
                        f'"\\(.id? // input_line_number)" as $id | {jq_path(outer)} | to_entries[] '
                        f'| "\\($id):\\(.key)" as $session | .value{jq_path(inner)}[] '
                        f"| {{session: $session, messages: {jq_path(last)}}}"
                    )
                    said = f"its dialogues are {place}, whose turns are in {'.'.join(inner)}."
                    return Finding(said, unless=jq(program))
                if _are_turns(turns):
                    place += f"{jq_path(inner)}[]"
                    return Finding(f"its dialogues are {place}.", unless=jq(place))
    return None


def program_of(keyed: KeyedArrays) -> str:
    """Return the program that makes jq write the values of ids, each with its id."""
    each = "(.value | objects)" if keyed.place else "{messages: .value}"
    return f"{jq_path(keyed.holder)} | to_entries[] | {{id: .key}} + {each}"


def keyed_dialogues(record: Record) -> KeyedArrays | None:
    """Return dialogues that are values of an object by their ids, outside of other arrays."""
    for keyed in keyed_arrays(record):
        turns = value_at(next(iter(keyed.objects.values())), ".".join(keyed.place))
        found = profile_of(turn for turn in turns or () if isinstance(turn, dict)).keys.values()
        if any(key.names_speakers or key.takes_turns for key in found):
            return keyed
    return None


def _are_turns(objects: Sequence[Any]) -> bool:
    """Tell whether objects say who speaks."""
    found = profile_of(each for each in objects if isinstance(each, dict)).below("")
    return any(key.tells_speakers for key in found.values())


_SPEAKERS_IN_TEXT = re.compile(r"(?m)^(\w[\w ]{0,30}): *\S")
"""The beginnings of lines of a transcript: who speaks, a colon, what is said."""
TURN_OF_TEMPLATE = re.compile(
    r"(?:<\|(?:im_start|start_header_id|start)\|>|<start_of_turn>|<\|(?=(?:user|assistant|system)\|)"
    r"|### (?=(?:Human|Assistant):)|(?=\[/?INST\]))(\w+|\[/?INST\])(?:<\|channel\|>(\w+)[^<]*)?"
    r"(?:\|>|:|<\|end_header_id\|>|<\|message\|>)?"
    r"((?:(?!<\|\w+\|>|<(?:start|end)_of_turn>|</?s>|### \w+:|\[/?INST\])[\s\S])*)"
)
"""Who speaks, perhaps in which channel, and what is said, in the templates of models."""


def speakers_in(transcript: str) -> list[str]:
    """Return who speaks in a text of several turns, turn by turn."""
    of_template = [speaker for speaker, *_ in TURN_OF_TEMPLATE.findall(transcript)]
    return of_template or _SPEAKERS_IN_TEXT.findall(transcript)


def chats_of_transcripts(path: str, texts: Iterable[str]) -> str:
    """Say how jq writes chats of the transcripts at a path."""
    texts = list(texts)
    speakers = list(dict.fromkeys(name for text in texts for name in speakers_in(text)))
    names = "|".join(map(re.escape, speakers))
    turn = f"(?:^|\n)({names})(:) *((?:(?!\\s*\n(?:{names}):)[\\s\\S])*)"
    if any(TURN_OF_TEMPLATE.search(text) for text in texts):
        turn = TURN_OF_TEMPLATE.pattern
    program = (
        f". + {{messages: [{jq_path(path.split('.'))} | scan({json.dumps(turn)}) | "
        'select(.[1] | IN("analysis", "commentary") | not) | '
        '{role: .[0], content: (.[2] | gsub("^\\\\s+|\\\\s+$"; ""))} | select(.content != "")]}'
    )
    return jq(program, [layout_flag(OPENAI), *_unknown_to(OPENAI, roles_of_two(speakers))])


def chats_of_lines(path: str, lines: Sequence[str]) -> str:
    """Say how jq writes chats of the lines at a path, each with its speaker; nothing of others."""
    said = [SAID_HERE.match(line) if isinstance(line, str) else None for line in lines]
    speakers = list(dict.fromkeys(each["speaker"] for each in said if each is not None))
    if len(speakers) < 2 or said[0] is None or 2 * sum(map(bool, said)) < len(said):
        return ""
    lines_of = jq_path(path.split("."))
    program = (
        f". + {{messages: (reduce {lines_of}[] as $line ([]; "
        f"($line | capture({json.dumps(SAID)}) // null) as $turn "
        "| if $turn then . + [{role: $turn.speaker, content: $turn.text}] "
        'elif . == [] then . else .[-1].content += "\\n" + $line end))}'
    )
    if path != "messages":  # two arrays of turns would be two dialogues
        program += f" | del({lines_of})"
    return jq(program, [layout_flag(OPENAI), *_unknown_to(OPENAI, roles_of_two(speakers))])


def _unknown_to(layout: str, roles: Mapping[str, str]) -> list[Flag]:
    """Return the options for words of speakers that a layout does not know."""
    chat = load_layout(layout).chat
    known = dict(chat.roles) if chat else {}
    return [value_flag("speaker", *each) for each in roles.items() if known.get(each[0]) != each[1]]


@dataclass(frozen=True, slots=True)
class Lack:
    """A log that lacks what a suite needs: its first rows, and what they have at each key."""

    source: Source
    lacking: Sequence[RequiredColumn]
    rows: Sequence[Record]
    found: Profile


def rewritten(lack: Lack) -> Finding | None:
    """Find a log that no option reads, but one that jq writes of it."""
    rules = _REWRITES if lack.source.chat_rows is None else _REWRITES_OF_CHATS
    return next(filter(None, (rule(lack) for rule in rules)), None)


def _dialogues_by_ids(lack: Lack) -> Finding | None:
    """Find dialogues that are values of an object inside the document, by their ids."""
    keyed = next(filter(None, map(keyed_dialogues, lack.rows[:ROWS_SAMPLED])), None)
    if keyed is None or not keyed.holder:
        return None
    where = ".".join(keyed.holder)
    said = f"its dialogues are in {where}, by their ids: {quoted(keyed.objects)}."
    return Finding(said, unless=jq(program_of(keyed)))


def _dialogues_in_array(lack: Lack) -> Finding | None:
    """Find one array whose elements have arrays of their own, and are not turns."""
    outer = {path.partition(EACH)[0] for path in lack.found.arrays if EACH in path}
    array = "".join(outer) if len(outer) == 1 else ""
    keys = lack.found.below(array).values()
    are_ids = any(each and not each.holder for each in map(keyed_dialogues, lack.rows[:1]))
    others = (each for each in lack.found.arrays if EACH not in each and each != array)
    has_turns = any(k.takes_turns for each in others for k in lack.found.below(each).values())
    if not array or are_ids or has_turns or any(key.takes_turns or key.are_texts for key in keys):
        return None
    said = f"the elements of {array} have arrays of their own, as dialogues do."
    return Finding(said, unless=jq(f"{jq_path(array.split('.'))}[]"))


def _numbered_keys(lack: Lack) -> Finding | None:
    """Find the turns of a dialogue under numbered keys: ``user_1``, ``bot_1``, ``user_2``."""
    stems: dict[str, dict[str, list[str]]] = {}
    rows = lack.source.chat_rows
    of_turns = (rows.array, rows.speaker, rows.text) if rows else ()
    if not all(need.name in of_turns for need in lack.lacking):
        return None
    for path, key in lack.found.below("").items():
        holder, _, name = path.rpartition(".")
        numbered = _NUMBERED.fullmatch(name)
        if numbered and key.types.keys() == {"string"}:
            stems.setdefault(holder, {}).setdefault(numbered[1], []).append(name)
    for holder, of_holder in stems.items():
        said_by = {stem: names for stem, names in of_holder.items() if len(names) > 1}
        roles = role_meanings(said_by)
        if {*roles.values()} < {USER_ROLE, ASSISTANT_ROLE}:
            continue
        keys = [name for names in said_by.values() for name in names]
        pattern = f"^({'|'.join(map(re.escape, said_by))})[_ -]?[0-9]+$"
        where = f"{jq_path(holder.split('.'))} | " if holder else ""
        beside = f"with_entries(select(.key | test({json.dumps(pattern)}) | not))"
        program = (
            f"{beside} + {{messages: [{where}to_entries[] | select((.value | length) > 0 and "
            f"(.key | test({json.dumps(pattern)})))] "
            '| sort_by(.key | match("[0-9]+$").string | tonumber) '
            '| map({role: (.key | sub("[_ -]?[0-9]+$"; "")), content: .value})}'
        )
        read = [layout_flag(OPENAI), *_unknown_to(OPENAI, roles)]
        said = f"its turns are under numbered keys: {quoted(keys)}."
        return Finding(said, unless=jq(program, read))
    return None


def _predictions_beside_truth(lack: Lack) -> Finding | None:
    """Find rows that have at once what a suite reads of rows of several words."""
    need = lack.lacking[0]
    words = need.column.vocabulary.needed
    columns = {
        word: [each for each in lack.source.columns if each.only_where == (need.name, word)]
        for word in words
    }
    keys = lack.found.below("")
    if len(words) < 2 or not all(columns.values()) or nearest_key(need.column, keys):
        return None
    read: list[Flag] = []
    places: dict[str, str | None] = {}
    for column in (each for word in words for each in columns[word]):
        side = side_of(column.name)
        texts = [path for path, key in keys.items() if key.are_texts and side_of(path) == side]
        named = next((key for key in column.keys if key in keys), None)
        only = texts[0] if len(texts) == 1 else None
        place = places[column.name] = named or nearest_key(column, keys) or only
        read += [column_flag(column.name, place)] if place and place != named else []
    paths = [*filter(None, places.values())]
    if 0 < len(paths) < len(places) and not read:
        absent = next(name for name, place in places.items() if place is None)
        word = next(word for word in words if any(c.name == absent for c in columns[word]))
        return Finding(
            f"no row has {need.name} or {absent}, beside {quoted(paths)}.",
            unless=f"Nothing is scored without {absent}: log it in rows of {need.name} {word!r}.",
        )
    are_beside = (all(value_at(row, path) is not None for path in paths) for row in lack.rows)
    # what a user and an assistant say are no prediction and its truth
    is_each = len({*paths}) == len(places) and not role_meanings(paths)
    if not is_each or not any(are_beside):
        return None
    defaults = []
    for column in lack.source.columns:
        is_needed = column.needed.by == ALL_METRICS and column.kind == "integer"
        if is_needed and not any(key in keys for key in column.keys):
            near = nearest_key(column, keys)
            is_first = column.needed.where is not None
            defaults += [f"{column.name}: {0 if is_first else '.key'}"] if near is None else []
            read += [column_flag(column.name, near)] if near is not None else []
    rows = ", ".join(f"(. + {{{need.name}: {json.dumps(word)}}})" for word in words)
    program = f"flatten(1) | to_entries[] | {{{', '.join(defaults)}}} + .value | {rows}"
    said = f"{' and '.join(paths)} are in the same rows, and no row has {need.name}."
    return Finding(said, unless=jq(program, read, slurps=True, into="rows.jsonl"))


def _lists_of_steps(lack: Lack) -> Finding | None:
    """Find lists of texts, one for each step, in rows without a step."""
    keys, columns = lack.found.below(""), lack.source.columns
    steps = [each.name for each in columns if each.kind == "integer" and each.needed.where]
    texts = [each.name for each in columns if each.kind == "text" and each.name not in keys]
    lists = [
        path
        for path, key in keys.items()
        if key.types.keys() == {"array"} and all(isinstance(each, str) for each in key.example)
    ]
    path = nearest(texts, lists) if texts else None
    name = nearest([path], texts) if path else None
    if len(steps) != 1 or steps[0] in keys or path is None or name is None:
        return None
    at, each = jq_path(path.split(".")), f"{{{steps[0]}: .key, {name}: .value}}"
    program = f". as $row | if {at} then {at} | to_entries[] | $row + {each} else . end"
    return Finding(
        f"{path} is a list of texts, and no row has {steps[0]}.",
        unless=f"If it has the {name} of each {steps[0]}: {jq(program, into='rows.jsonl')}",
    )


def _words_for_numbers(lack: Lack) -> Finding | None:
    """Find words in the place of numbers, such as ``first`` and ``second``."""
    for need in (each for each in lack.lacking if each.column.kind == "integer"):
        path = next((key for key in need.column.keys if key in lack.found.keys), None)
        words = [*lack.found.keys[path].words] if path else []
        are_words = 0 < len(words) <= _MOST_NUMBERED and not any(map(str.isdecimal, words))
        if need.holder is None and path and "." not in path and are_words:
            numbers = json.dumps({word: number for number, word in enumerate(words)})
            program = f".{jq_key(path)} |= ({numbers}[tostring] // .)"
            said = f"{path} is {quoted(words)}, expected integers from 0."
            return Finding(said, unless=jq(program, into="rows.jsonl"))
    return None


def _has_turns(lack: Lack, but: str = "\0") -> bool:
    """Tell whether objects of an array say who speaks, except for those inside a key."""
    arrays = (each for each in lack.found.arrays if not each.startswith(but))
    return any(key.tells_speakers for each in arrays for key in lack.found.below(each).values())


def _arrays_in_arrays(lack: Lack) -> Finding | None:
    """Find turns by numbers, or in arrays of an array: pairs of a speaker and a text, or rounds."""
    for path, key in lack.found.below("").items() if not _has_turns(lack) else ():
        at = jq_path(path.split("."))
        numbered = key.example if isinstance(key.example, dict) else {}
        if numbered and all(map(str.isdecimal, numbered)) and _are_turns([*numbered.values()]):
            program = f"{at} |= (to_entries | sort_by(.key | tonumber) | map(.value))"
            return Finding(f"{path} has its turns by their numbers.", unless=jq(program))
        inside = key.example if key.types.keys() == {"array"} else None
        if not inside or not all(isinstance(each, list) and each for each in inside):
            continue
        turns = [turn for each in inside for turn in each if isinstance(turn, dict)]
        beside = profile_of(turns).below("").values()
        if any(each.names_speakers or each.takes_turns for each in beside):
            return Finding(
                f"the turns of {path} are in arrays of their own.",
                unless=f"If these are rounds of one dialogue: {jq(f'{at} |= add')} "
                f"If each is a dialogue: {jq(f'{at}[] | {{messages: .}}')}",
            )
        words = [*dict.fromkeys(str(each[0]) for each in inside)]
        if all(len(each) == 2 and is_said(each[1]) for each in inside) and len(words) == 2:
            sides = zip(words, (USER_ROLE, ASSISTANT_ROLE), strict=True)
            places = ((TURNS, path), ("speaker", "0"), ("text", "1"))
            return Finding(
                f"{path} has pairs of {quoted(words)} and a text.",
                unless=WHO_IS_WHO,
                example=[
                    *(column_flag(*place) for place in places),
                    *(value_flag("speaker", *side) for side in sides),
                ],
            )
    return None


def _chats_in_json_text(lack: Lack) -> Finding | None:
    """Find turns further inside JSON text, which paths do not lead through."""
    for row in lack.rows[:1]:
        for key, value in row.items():
            inside = json_of(value) if isinstance(value, str) else None
            arrays = arrays_in(inside) if isinstance(inside, dict) else ()
            if any(_are_turns(turns) for _, turns in arrays) and not _has_turns(lack, f"{key}."):
                program = f". + (.{jq_key(key)} | fromjson) | del(.{jq_key(key)})"
                return Finding(f"{key} is JSON text with the turns in it.", unless=jq(program))
    return None


def _replies_of_models(lack: Lack) -> Finding | None:
    """Find what several models replied to one question, each under a key of its own."""
    texts = [path for path, key in lack.found.below("").items() if key.are_texts]
    asked = [path for path in texts if is_called("asked", path)]
    replies = [path for path in texts if is_of_one_model(path)]
    if len(asked) != 1 or len(replies) < 2:
        return None
    among = ", ".join(map(json.dumps, replies))
    program = (
        f". as $row | ({among}) as $model | with_entries(select(.key | IN({among}) | not)) "
        f'+ {{model: $model, messages: [{{role: "user", content: .{jq_key(asked[0])}}}, '
        '{role: "assistant", content: $row[$model]}]}'
    )
    return Finding(
        f"{quoted(replies)} are probably the replies of several models to {asked[0]}.",
        unless=f"If they are: {jq(program, [layout_flag(OPENAI)])}",
    )


_REWRITES = (_lists_of_steps, _predictions_beside_truth, _words_for_numbers)
_REWRITES_OF_CHATS = (
    _dialogues_by_ids,
    _dialogues_in_array,
    _arrays_in_arrays,
    _chats_in_json_text,
    _replies_of_models,
    _numbered_keys,
)
"""What is looked for in logs that lack what a suite needs, in this order."""
