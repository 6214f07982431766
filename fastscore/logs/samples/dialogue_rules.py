"""Which turns and documents are one dialogue, and in which order: what contradicts a reading.

Each rule looks at the dialogues of a sample, as those of `chat_rules` do.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter, eq, itemgetter
from typing import Any

from fastscore.errors import counted
from fastscore.logs.inputs.chats import Turn
from fastscore.logs.inputs.column_map import (
    EXAMPLE,
    NOWHERE,
    REPLY,
    Flag,
    column_flag,
    layout_flag,
    typed,
)
from fastscore.logs.inputs.document_values import (
    NO_ORDER,
    OF_NUMBER,
    first_at,
    keys_to,
    order_of,
    scalars_of,
    times_by_day_or_month,
    value_at,
)
from fastscore.logs.inputs.near_names import is_called, is_of_model, is_of_user
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import OPENAI, ChatSample, SampledDialogue
from fastscore.logs.samples.findings import Finding, jq, jq_key, jq_path
from fastscore.logs.samples.profile import SHOWN_CHARACTERS, quoted
from fastscore.suites.chats import ROLES, SYSTEM_ROLE

_DEEPEST, _DEEPEST_ORDER = 4, 3
_FEWEST_REPEATED, _MANY_REPEATED = 2, 4
"""How many turns dialogues share that one continues, with a key of both and without one."""
_YEAR_2000, _YEAR_2100, _SPAN = 946_684_800, 4_102_444_800, 366 * 86_400
_UNITS = (10**9, 10**6, 10**3, 1)
"""How many units a second has in which times are counted, the smallest unit first."""
_UNITS_APART = 500
"""How much larger a time is than another one if its unit is smaller."""
_NEWEST_FIRST = re.compile(r"(newest|latest|most.?recent|desc|reverse)", re.IGNORECASE)
_FEWEST_ORDERED = 3
_DATE_OF_MONGO = ".$date"
KEEP_ORDER = "line"
"""What turns are sorted by to keep the order of the file."""


def same_chats(sample: ChatSample) -> Finding | None:
    """Find a document with two arrays that have the same turns."""
    for both in _grouped(sample, attrgetter("row")):
        are_arrays = len(both) == 2 and all(isinstance(each.document, list) for each in both)
        if are_arrays and both[0].texts == both[1].texts:
            return Finding(
                "two arrays of a document have the same turns, which would count twice.",
                unless="Name the one to read with --column, or write it to a file of its own.",
            )
    return None


def chained(sample: ChatSample) -> Finding | None:
    """Find documents that name the one before them as the beginning of their dialogue."""
    if sample.layout.joined_by:
        return None
    documents = [each.document for each in sample.dialogues if isinstance(each.document, dict)]
    for document in documents:
        for key in filter(partial(is_called, "previous"), document):
            before = document[key]
            named = (k for each in documents for k, v in each.items() if k != key and v == before)
            own = next(named, None) if isinstance(before, str) else None
            if own is not None:
                program = (
                    f'(reduce .[] as $row ({{}}; .[$row.{own}] = (.[$row.{key} // ""] // '
                    f"$row.{own}))) as $first | .[] | . + {{session: $first[.{own}]}}"
                )
                return Finding(
                    f"{key} is {before!r}, another document: these go on with each other.",
                    unless=jq(program, [Flag("dialogue", ("session",))], slurps=True),
                )
    return None


def unsorted(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find values to sort by that have no order."""
    key = sample.layout.sort_by
    if key in ("", KEEP_ORDER):
        return None
    found = [value_at(turn.found, key) for turn in dialogue.turns]
    if sample.layout.joined_by:
        found.append(value_at(dialogue.document, key))
    odd = [value for value in found if value is not None and order_of(value)[0] == NO_ORDER]
    if not odd:
        return None
    return Finding(
        f"sort_by is {key}, and its value {cut(repr(odd[0]), SHOWN_CHARACTERS)} has no order that "
        "is known: expected numbers or times such as 2024-05-01T14:11:00+02:00.",
        unless="Write the times so, or sort the log itself.",
    )


def versions(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns with one id and different texts: an edited message, or a reply made anew."""
    layout, turns = sample.layout, dialogue.turns
    is_named = dialogue.name or not layout.is_row_per_turn
    for key in filter(partial(is_called, "message"), turns[0].found if is_named else ()):
        texts: dict[tuple[str, str], set[str]] = {}
        for turn in turns:
            texts.setdefault((str(turn.found.get(key)), str(turn.role)), set()).add(str(turn.text))
        (id, _), several = max(texts.items(), key=lambda each: len(each[1]))
        if id == "None" or len(several) < 2 or 2 * len(texts) <= len(turns):
            continue
        array = array_in_jq(sample, dialogue)
        names = (each for paths in (*layout.id, layout.model) for each in paths if not array)
        keys = [key, *(each for each in names if each in turns[0].found)]
        values = ", ".join(f".{jq_key(each)}" for each in keys)
        last = f"(reduce flatten(1)[] as $turn ({{}}; .[$turn | [{values}] | tostring] = $turn))[]"
        anew = jq(f"{array} |= [{last}]" if array else last, slurps=not array, into="last.jsonl")
        return Finding(
            f"{key} {id!r} has {counted(len(several), 'texts')} in a dialogue: these are versions "
            "of one message, or parts.",
            unless=f"If they are parts, leave the key out. If not, keep the last of each. {anew}",
        )
    return None


def branches(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find lists of turns in which several follow the same one, by parents or by children."""
    layout, turns = sample.layout, dialogue.turns
    if layout.parent or layout.replies:
        return None
    for kind, key in ((kind, key) for kind in ("parent", "children") for key in turns[0].found):
        above: Counter[str] = Counter()
        for found in (turn.found.get(key) for turn in turns) if is_called(kind, key) else ():
            if isinstance(found, list):
                above[", ".join(map(str, found))] += len(found)
            elif found is not None:
                above[str(found)] += 1
        names, count = max(above.items(), key=itemgetter(1), default=("", 0))
        id = _id_beside(names.split(", "), turns, key) if count > 1 else ""
        if id:
            anew = _paths_anew(sample, dialogue, id, key, is_parent=kind == "parent")
            found_at = f"{names!r} in {count:,} of them" if kind == "parent" else names
            return Finding(
                f"the turns of a dialogue are no line but a tree: {key} is {found_at}.",
                unless=f"This writes each path from a first turn to a last one. {anew}",
            )
    return None


def _id_beside(names: Collection[str], turns: Sequence[Turn], but: str) -> str:
    """Return the key by which turns have such ids, no two the same; nothing without one."""
    for key in (each for each in turns[0].found if each != but):
        ids = [str(turn.found.get(key)) for turn in turns]
        if len({*ids}) == len(ids) and {*names} & {*ids}:
            return key
    return ""


def _paths_anew(
    sample: ChatSample, dialogue: SampledDialogue, id: str, key: str, *, is_parent: bool
) -> str:
    """Return what writes a dialogue for each path of a tree of turns."""
    array = array_in_jq(sample, dialogue)
    own, other = f"(.{jq_key(id)} | tostring)", f".{jq_key(key)}"
    edges = f"{other} | values | {{key: $id, value: tostring}}"
    if not is_parent:
        edges = f"{other}[]? | {{key: (objects.{jq_key(id)} // . | tostring), value: $id}}"
    program = (
        f"{array or 'flatten(1)'} | (map({{key: {own}, value: .}}) | from_entries) as $all "
        f"| (map({own} as $id | {edges}) | from_entries) as $above | .[] | {own} "
        "| select(IN($above[]) | not) | [recurse($above[.] // empty) | $all[.] // empty] "
        f"| reverse | {{messages: map({_message_anew(sample, dialogue.turns)})}}"
    )
    return jq(program, [layout_flag(OPENAI)], slurps=not array)


def array_in_jq(sample: ChatSample, dialogue: SampledDialogue) -> str:
    """Return the path of an array of turns in its document; nothing of rows that are turns."""
    document = dialogue.document
    places = (path for paths in sample.layout.turns for path in paths)
    found = next((path for path in places if first_at(document, (path,)) is not None), "")
    return "" if sample.layout.is_row_per_turn else jq_path(keys_to(document, found))


def paths_in_jq(paths: Sequence[str], turns: Sequence[Turn]) -> str:
    """Return what jq reads for some paths of turns."""
    each = ((turn.found, path) for path in paths for turn in turns)
    known = (keys_to(*place) for place in each if value_at(*place) is not None)
    return " // ".join(dict.fromkeys(jq_path(keys) for keys in known if keys))


def _message_anew(sample: ChatSample, turns: Sequence[Turn]) -> str:
    """Return the object of a turn with role and content that jq makes."""
    layout = sample.layout
    words = layout.roles or [(str(turn.role), sample.role_of(turn)) for turn in turns]
    roles = json.dumps({word: meant for word, meant in words if meant in ROLES})
    role, content = (paths_in_jq(paths, turns) for paths in (layout.speaker, layout.text))
    return f"{{role: ({role} | {roles}[tostring] // .), content: ({content})}}"


def pooled_rows(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find rows of one name that are several dialogues: each has a value of its own of a key.

    Each begins as the first does, or counts its turns anew, or the key is called as a model is.
    Rows that name no dialogue are several, too, if the same speaker begins each block of a value.
    """
    layout, turns = sample.layout, dialogue.turns
    if not layout.is_row_per_turn or layout.id == ((NOWHERE,),) or not dialogue.texts:
        return None
    said = {*layout.speaker, *layout.text}
    beside = [dict(scalars_of(turn.found, _DEEPEST_ORDER)) for turn in turns]
    columns = {key: [each.get(key) for each in beside] for key in beside[0] if key not in said}
    id = next((path for paths in layout.id for path in paths if path in turns[0].found), "")
    steps = [key for key, found in columns.items() if is_called("step", key) and _steps(key, found)]
    for key, values in columns.items():
        parts: dict[str, list[Turn]] = {}
        for turn, value in zip(turns, values, strict=True):
            parts.setdefault(str(value), []).append(turn)
        # what is only beside one side, or changes with every turn, tells no dialogues apart
        speak = [len({turn.role for turn in part}) for part in parts.values()]
        if not 1 < len(parts) < len(turns) or min(speak) < min(2, len({t.role for t in turns})):
            continue
        begins = {(part[0].role, part[0].text) for part in parts.values()}
        counted_anew = next((step for step in steps if _is_counted_in_each(step, parts)), "")
        n_changes = sum(one != other for one, other in pairwise(values))
        are_blocks = n_changes == len(parts) - 1 and len({role for role, _ in begins}) == 1
        # a session of what is named by its user, or a user of a session
        is_half = is_of_user(key) or (is_of_user(id) and bool(is_called("dialogue", key)))
        are_woven = len({role for role, _ in begins}) == 1 and not _alternate(turns)
        are_woven &= not dialogue.name and all(map(_alternate, parts.values()))
        is_sure = len(begins) == 1 or counted_anew or is_of_model(key) or is_half
        is_sure = is_sure or (are_woven and is_called("id", key))
        is_unnamed = not dialogue.name and not is_called("id", key)  # ids are asked for by name
        if not (is_sure or are_woven or (are_blocks and is_unnamed)):
            continue
        one, other = [*dict.fromkeys(values)][:2]
        texts = [[turn.text for turn in part] for part in parts.values()]
        grow = all(few == more[: len(few)] != more for few, more in pairwise(texts))
        if grow and dialogue.name and not is_of_model(key):
            return Finding(
                f"dialogue {dialogue.name} has the turns of {key} {one!r} again in those of "
                f"{other!r}: they would count several times.",
                unless=_joined_parts(sample, turns, key),
            )
        is_name = not dialogue.name or bool(is_called("session", key))
        name = sample.rows.id if is_name else sample.rows.model
        named = f"dialogue {dialogue.name}" if dialogue.name else "the only dialogue"
        how = f"{named} begins again" if len(begins) == 1 else f"{named} has rows of its own"
        if counted_anew:
            first = turns[0].found.get(counted_anew)
            how = f"the rows of {named} count {counted_anew} from {first!r} again"
        flag, whole = column_flag(name, key), typed([column_flag(name, "")])
        is_one = f"type {whole}" if name and not dialogue.name else f"leave {key} out"
        question = f"Name the key of dialogues, for example {EXAMPLE}."
        more = f" If all rows are one dialogue, {is_one}."
        if id and (is_half or (not is_name and not name)):
            own = f"{jq_path(keys_to(turns[0].found, key))}):\\(.{jq_key(id)}"
            new = sample.rows.id if is_of_user(id) else id
            program = f'arrays[], objects | . + {{{jq_key(new)}: "\\({own})"}}'
            question, name = jq(program, into="turns.jsonl"), ""
        # what only changes from block to block may be a topic
        return Finding(
            f"{how} where {key} is {other!r} after {one!r}: these are "
            f"{'' if is_sure else 'probably '}several dialogues.",
            [flag] if name and is_sure else [],
            unless=f"{question}{more}",
            example=[flag] if name else [],
            more=more,
        )
    return None


def _alternate(turns: Sequence[Turn]) -> bool:
    """Tell whether no speaker follows itself."""
    return all(one.role != other.role for one, other in pairwise(turns))


def _joined_parts(sample: ChatSample, turns: Sequence[Turn], key: str) -> str:
    """Return what writes a document for each value of a key, and joins those of a dialogue."""
    layout, first = sample.layout, turns[0].found
    times = [path for path, _ in scalars_of(first, _DEEPEST_ORDER) if is_called("time", path)]
    name, part, model, time = (
        paths_in_jq(paths, turns) for paths in (*layout.id[:1], (key,), layout.model, times[:1])
    )
    of_all = f"id: (.[0] | {name})" + (f", model: (.[0] | {model})" if model else "")
    program = (
        f"{f'sort_by({time}) | ' if time else ''}to_entries | map(.value + {{row: .key}}) "
        f"| group_by([{name}, {part}]) | sort_by(.[0].row)[] | {{{of_all}, messages: "
        f"map({_message_anew(sample, turns)})}}"
    )
    return jq(program, [layout_flag(OPENAI), Flag("dialogue", ("id",))], slurps=True)


def _is_counted_in_each(step: str, parts: Mapping[str, Sequence[Turn]]) -> bool:
    """Tell whether the turns of each side are counted from the same number on in each part."""
    counts = [
        [(turn.role, order_of(turn.found.get(step))) for turn in part] for part in parts.values()
    ]
    are_counts = all(len({*numbers}) == len(numbers) for numbers in counts)
    return are_counts and len({min(number for _, number in numbers) for numbers in counts}) == 1


def falling_order(sample: ChatSample) -> Finding | None:
    """Find a dialogue whose times or steps fall, in its turns or from document to document."""
    if sample.layout.sort_by:
        return None
    for dialogue in sample.dialogues if sample.has_documents else ():
        for key, value in scalars_of(dialogue.document, _DEEPEST_ORDER):
            array = array_in_jq(sample, dialogue)
            is_order = is_called("order", key.rpartition(".")[2]) and array not in ("", ".")
            if is_order and _NEWEST_FIRST.match(str(value)):
                anew = jq(f"{array} |= reverse | del({jq_path(key.split('.'))})")
                return Finding(f"{key} is {value!r}: the last turn comes first.", unless=anew)
    turns = (
        (each.name, [turn.found for turn in each.turns], [str(turn.role) for turn in each.turns])
        for each in sample.dialogues
    )
    joined = (
        (parts[0].name, [part.document for part in parts], range(len(parts)))
        for parts in (_of_one_name(sample) if sample.layout.joined_by else ())
        if not _are_beginnings(parts)
    )
    for name, objects, speakers in (*turns, *joined):
        fall = _fall(objects)
        if fall is None:
            continue
        key, before, after = fall[0], *(cut(repr(value), SHOWN_CHARACTERS) for value in fall[1:])
        named = f" {name}" if name else ""
        sort, keep = Flag("sort_by", (key,)), typed([Flag("sort_by", (KEEP_ORDER,))])
        more = f" To keep the order of the file, type {keep}."
        kinds, orders = zip(*(order_of(value_at(each, key)) for each in objects), strict=True)
        # seconds beside milliseconds have no order
        are_mixed = min(orders) >= _YEAR_2000 and max(orders) > _UNITS_APART * min(orders)
        is_known = NO_ORDER not in kinds and not are_mixed
        rewrite = f"Write these times as 2025-07-31T09:10:00 and type {typed([sort])}.{more}"
        by_hand = f"Sort the rows of each dialogue by {key}, or leave the key out."
        numbers = [str(value_at(each, key)) for each in objects]
        if is_called("step", key) and len({*zip(speakers, numbers, strict=True)}) < len(numbers):
            return Finding(
                f"in dialogue{named} {key} is {after} after {before}, and a speaker has a number "
                "twice: these are probably several dialogues.",
                unless=f"If they are one dialogue, type {keep}. If not: "
                f"{_numbered_anew(sample, key)}",
            )
        return Finding(
            f"the turns of dialogue{named} are not in order: {key} is {after} after {before}.",
            [sort] if sample.can_be_sorted and is_known else [],
            unless=rewrite if sample.can_be_sorted else by_hand,
            more=more,
        )
    return None


def _numbered_anew(sample: ChatSample, step: str) -> str:
    """Return what numbers the dialogues of rows, each of which counts its turns anew."""
    program = (
        f"[foreach flatten(1)[] as $row ({{number: 1}}; ($row.{jq_key(step)} | tonumber) as $at | "
        "if .at and $at < .at then .number += 1 else . end | .at = $at; "
        f'$row + {{{jq_key(sample.rows.id)}: "\\(.number)"}})][]'
    )
    return jq(program, slurps=True, into="turns.jsonl")


def _are_beginnings(parts: Sequence[SampledDialogue]) -> bool:
    """Tell whether documents are beginnings of the longest one, which are read in any order."""
    longest = max((part.texts for part in parts), key=len)
    return all(part.texts == longest[: len(part.texts)] for part in parts)


def _of_one_name(sample: ChatSample) -> list[list[SampledDialogue]]:
    """Return the dialogues of each name that several have."""
    return [each for each in _grouped(sample, attrgetter("name")) if each[0].name is not None]


def _grouped(
    sample: ChatSample, key: Callable[[SampledDialogue], Any]
) -> list[list[SampledDialogue]]:
    """Return the dialogues of each key that several have."""
    groups: dict[Any, list[SampledDialogue]] = {}
    for dialogue in sample.dialogues:
        groups.setdefault(key(dialogue), []).append(dialogue)
    return [group for group in groups.values() if len(group) > 1]


def _fall(objects: Sequence[Any]) -> tuple[str, Any, Any] | None:
    """Return a key that says the order of turns, and two values of it that fall; None without any.

    Times count before steps, and one that never falls proves the order. What can be read in two
    ways must fall in both.
    """
    firsts = scalars_of(objects[0], _DEEPEST_ORDER) if len(objects) > 1 else ()
    values = {key: [value_at(each, key) for each in objects] for key, _ in firsts}
    for readings_of in (_times, _steps):
        falls = []
        for key, found in values.items():
            name = key.removesuffix(_DATE_OF_MONGO).rpartition(".")[2]
            in_each = [
                [n for n, (a, b) in enumerate(pairwise(orders)) if b < a]
                for orders in readings_of(name, found)
            ]
            if in_each and not any(in_each):
                return None
            if in_each and all(in_each):
                place = in_each[0][0]
                falls.append((key, found[place], found[place + 1]))
        if falls:
            return falls[0]
    return None


def _times(name: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """Return values as times, in each way they can be read; nothing if they are none.

    They are times by their key, or by themselves if no two are the same.
    """
    readings: Sequence[Sequence[Any]] = times_by_day_or_month(values)
    orders = [] if readings or order_of(values[0])[0] == NO_ORDER else [*map(order_of, values)]
    kinds = {kind for kind, _ in orders}
    if len(kinds) == 1:
        readings = [orders]
    if is_called("time", name):
        return readings
    if not all(_FEWEST_ORDERED <= len({*each}) == len(each) for each in readings):
        return []
    if kinds != {OF_NUMBER}:
        return readings
    least, most = min(orders)[1], max(orders)[1]
    unit = next((each for each in _UNITS if _YEAR_2000 * each <= least), None)
    are_moments = unit is not None and most < _YEAR_2100 * unit and most - least < _SPAN * unit
    return readings if are_moments else []


def _steps(name: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """Return the numbers of turns: by their key, or as they are all numbers from 0 or 1 on."""
    if order_of(values[0])[0] != OF_NUMBER:
        return []
    orders = [order_of(value) for value in values]
    if {kind for kind, _ in orders} != {OF_NUMBER}:
        return []
    numbers = sorted(number for _, number in orders)
    counts = [float(number) for number in range(len(numbers))]
    are_steps = bool(is_called("step", name)) or (
        len(numbers) >= _FEWEST_ORDERED and numbers in (counts, [number + 1 for number in counts])
    )
    return [orders] if are_steps else []


def joined_candidates(sample: ChatSample) -> Finding | None:
    """Find documents that are parts of one dialogue and have several candidates each."""
    paths = [path for paths in sample.layout.turns for path in paths if "[]" in path]
    rows = [dialogue.row for dialogue in sample.dialogues]
    is_joined = sample.layout.joined_by or joinable_parts(sample) or repeated_beginnings(sample)
    if not paths or len({*rows}) == len(rows) or not is_joined:
        return None
    one = column_flag(REPLY, paths[-1].replace("[]", ".0"))
    return Finding(
        f"documents go on with each other, and {paths[-1]} has several candidates for a reply.",
        unless=f"Name the one that was said, for example {EXAMPLE}.",
        example=[one],
    )


def repeated_beginnings(sample: ChatSample) -> Finding | None:
    """Find dialogues that are beginnings of another one, as traces with their history are."""
    layout = sample.layout
    if not sample.has_documents or layout.replies:
        return None
    said = [
        (each.document, [(str(turn.role), turn.text) for turn in each.turns if turn.text])
        for each in sample.dialogues
    ]
    beginnings: Counter[str | None] = Counter()
    for one, shorter in said:
        for other, longer in said if len(shorter) >= _FEWEST_REPEATED else ():
            if longer[: len(shorter)] != shorter or len(longer) == len(shorter) or one is other:
                continue
            if _are_trials(one, other):
                continue
            key = _shared_key(one, other, layout.ignored)
            if key is not None or len(shorter) >= _MANY_REPEATED:
                beginnings[key] += 1
                break
    if not beginnings:
        return None
    key = beginnings.most_common(1)[0][0]
    same = f" with the same {key}" if key else ""
    return Finding(
        f"{beginnings.total():,} of the first {counted(len(said), 'dialogues')} are beginnings of "
        f"a longer one{same}: their turns would count several times.",
        [Flag("dialogue", (key,))] if key else [],
        unless=f"Keep the longest of each. {_longest_anew(sample)}",
    )


def _longest_anew(sample: ChatSample) -> str:
    """Return what leaves out documents whose turns are the beginning of those of another."""
    array = array_in_jq(sample, sample.dialogues[0])
    if array == ".":  # inside JSON text
        return f"Or name the key of their session: {typed([Flag('dialogue', ('KEY',))])}."
    begins = f"{array}[:$turns | length] == $turns and ({array} | length) > ($turns | length)"
    program = f". as $all | .[] | select({array} as $turns | any($all[]; {begins}) | not)"
    return jq(program, slurps=True, into="longest.jsonl")


def _are_trials(one: Any, other: Any) -> bool:
    """Tell whether documents say that they are several trials of one task."""
    keys = filter(partial(is_called, "trial"), one if isinstance(one, dict) else ())
    return any(one[key] != other.get(key, one[key]) for key in keys)


def pooled_documents(sample: ChatSample) -> Finding | None:
    """Find documents of one name that are of several models, by a key that is called so.

    A suite that pools them may tell them apart by another key, if they begin alike.
    """
    several = _of_one_name(sample)
    if not sample.has_documents or not sample.rows.model:
        return None
    is_alike = all(len({*map(str, (each.texts[:1] for each in group))}) == 1 for group in several)
    for key, value in scalars_of(several[0][0].document, _DEEPEST_ORDER) if several else ():
        groups = [{str(value_at(each.document, key)) for each in group} for group in several]
        is_apart = is_alike and [*map(len, groups)] == [*map(len, several)]
        are_models = is_of_model(key) and min(map(len, groups)) > 1
        if are_models or (is_apart and not sample.rows.array):
            return Finding(
                f"{counted(len(several[0]), 'documents')} have the name {several[0][0].name!r}, "
                f"and {key} is {value!r} in one of them: these are several dialogues.",
                [column_flag(sample.rows.model, key)],
            )
    return None


def same_names(sample: ChatSample) -> Finding | None:
    """Find documents of one name that a suite of rows would join, although nothing says so."""
    several = _of_one_name(sample)
    if sample.rows.array or not sample.has_documents or not several:
        return None
    one, other = several[0][:2]
    names = (key for key, value in scalars_of(one.document, 1) if one.name.startswith(str(value)))
    id = next(names, "")
    if not id or one.row == other.row:
        return None
    numbered = f'{{{json.dumps(id)}: "\\(.value.{jq_key(id)}):\\(.key)"}}'
    program = f"flatten(1) | to_entries[] | .value + {numbered}"
    joined = typed([Flag("dialogue", (id,))])
    return Finding(
        f"{counted(len(several[0]), 'documents')} have the {id} {one.name!r}, and no key "
        "tells them apart: they would be one dialogue.",
        unless=f"If they are parts of one, type {joined}. If they are several: "
        f"{jq(program, slurps=True)}",
    )


def models_of_replies(sample: ChatSample) -> Finding | None:
    """Find rows of one dialogue of which only the replies name a model, of several."""
    layout = sample.layout
    rows_of: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for turn in (turn for dialogue in sample.dialogues for turn in dialogue.turns):
        levels = (first_at(turn.found, paths) for paths in layout.id)
        name = tuple(str(level) for level in levels if level is not None)
        rows_of.setdefault(name, []).append(turn.found)
    for name, rows in rows_of.items() if layout.is_row_per_turn else ():
        for key in filter(is_of_model, dict.fromkeys(key for row in rows for key in row)):
            models = {row[key] for row in rows if isinstance(row.get(key), str)}
            if len(models) > 1 and any(row.get(key) is None for row in rows):
                program = (
                    f"reverse | [foreach .[] as $row (null; $row.{jq_key(key)} // .; "
                    f"$row + {{{json.dumps(key)}: .}})] | reverse | .[]"
                )
                named = f"dialogue {':'.join(name)}" if name else "the only dialogue"
                return Finding(
                    f"{key} is {quoted(sorted(models))} in {named}, and none in some of "
                    "its rows: which rows are of which dialogue is not said.",
                    unless="If rows are of the next model that is named: "
                    f"{jq(program, slurps=True, into='turns.jsonl')}",
                )
    return None


def joinable_parts(sample: ChatSample) -> Finding | None:
    """Find documents that have one name of a conversation and go on with each other."""
    layout = sample.layout
    if not sample.has_documents:
        return None
    begun: dict[tuple[str, Any], list[list[str]]] = {}
    for dialogue in sample.dialogues:
        # a prompt may be another one, of another version of the bot
        said = [turn.text for turn in dialogue.turns if sample.role_of(turn) != SYSTEM_ROLE]
        begins = [dialogue.texts[:1], [text for text in said if isinstance(text, str) and text][:1]]
        for key, name in scalars_of(dialogue.document, _DEEPEST_ORDER):
            if key in layout.ignored or not is_called("session", key):
                continue
            before = begun.setdefault((key, name), begins)
            # what begins alike is asked of several models, or once more
            if not any(map(eq, before, begins)):
                return Finding(
                    f"several documents have the {key} {name!r}, and go on with each other: "
                    "each would be a dialogue.",
                    [Flag("dialogue", (key,))],
                )
    return None


def _shared_key(one: Any, other: Any, ignored: Sequence[str]) -> str | None:
    """Return the key that is called as names of sessions are, and has one value in both."""
    for path, value in scalars_of(one, _DEEPEST):
        is_session = path not in ignored and is_called("session", path)
        if is_session and value_at(other, path) == value:
            return path
    return None
