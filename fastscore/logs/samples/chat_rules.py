"""What the first dialogues of a log say of themselves, and what must be asked.

Each rule looks at dialogues as the reader interprets them. It finds what contradicts these, with
the options that read it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any

from fastscore.errors import counted
from fastscore.logs.inputs.chats import Turn, is_no_turn, values_at
from fastscore.logs.inputs.column_map import (
    EACH,
    EXAMPLE,
    LEFT_OUT,
    NOWHERE,
    REPLY,
    TURNS,
    WHO_IS_WHO,
    Flag,
    UnmappedLogError,
    column_flag,
    layout_flag,
    typed,
    value_flag,
)
from fastscore.logs.inputs.document_values import (
    NO_ORDER,
    OF_NUMBER,
    first_at,
    json_of,
    keys_to,
    order_of,
    scalars_of,
    times_by_day_or_month,
    value_at,
)
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.inputs.near_names import (
    is_called,
    is_of_model,
    is_of_reply,
    replies_beside_user,
    role_meanings,
    word_flags,
)
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import (
    NESTED,
    OPENAI,
    PAIRS,
    ChatSample,
    SampledDialogue,
    sample_chats,
    values_beside,
)
from fastscore.logs.samples.findings import Finding, jq, jq_key, jq_path
from fastscore.logs.samples.profile import (
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    Record,
    is_said,
    keyed_arrays,
    quoted,
    shape_of,
)
from fastscore.logs.samples.rewrites import program_of
from fastscore.suites.chats import ANY_OTHER, ASSISTANT_ROLE, ROLES, SYSTEM_ROLE, USER_ROLE
from fastscore.suites.declarations import Source

_DEEPEST, _DEEPEST_ORDER = 4, 2
_SHOWN_CHARACTERS = 40
_FEWEST_REPEATED, _MANY_REPEATED = 2, 4
"""How many turns dialogues share that one continues, with a key of both and without one."""
_SYSTEM_INTENT = re.compile(r"sys(tem)?_", re.IGNORECASE)
_CALLS = ("tool_calls", "function_call")
_TEMPLATE = re.compile(r"<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|\[/INST\]")
"""The marks of a chat that was written into one text for a model."""
_YEAR_2000, _YEAR_2100, _SPAN = 946_684_800, 4_102_444_800, 366 * 86_400
_UNITS = (10**9, 10**6, 10**3, 1)
"""How many units a second has in which times are counted, the smallest unit first."""
_FEWEST_ORDERED = 3
_DATE_OF_MONGO = ".$date"


def first_chats(source: Source, records: Iterable[Record]) -> ChatSample | None:
    """Interpret the first rows; None of a suite that does not score chats."""
    chat, rows = source.chat, source.chat_rows
    is_turn = chat.layout.is_row_per_turn if chat else rows is not None and not rows.array
    firsts = islice(records, MOST_ROWS_SAMPLED)
    return sample_chats(firsts if is_turn else _of_other_shapes(firsts), source)


def _of_other_shapes(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the first documents, and those after them whose keys are others."""
    shapes: set[Hashable] = set()
    for number, record in enumerate(records):
        shape = shape_of(record)
        if number < ROWS_SAMPLED or shape not in shapes:
            yield record
        shapes.add(shape)


def chat_error(file: str, source: Source, sample: ChatSample) -> UnmappedLogError | None:
    """Return what the first dialogues contradict, None if nothing."""
    # a suite's own rows say by themselves what they are, those without words of a suite do not
    rules = RULES if source.chat or {*ROLES} <= {*dict(sample.layout.roles)} else OWN_RULES
    found = _bare_arrays(file, source, sample)
    found = found or next(filter(None, (rule(sample) for rule in rules)), None)
    found = found or _unproven_guests(source, sample)
    return None if found is None else found.refused(file)


def _bare_arrays(file: str, source: Source, sample: ChatSample) -> Finding | None:
    """Find dialogues that are arrays by themselves, of a suite that reads arrays at a key."""
    chat = source.chat
    are_arrays = any(isinstance(each.document, list) for each in sample.dialogues)
    if chat is None or not chat.is_plain or chat.rows.array or not are_arrays:
        return None
    key = chat.layout.turns[0][0]
    each = f'if (.[0] | type) == "array" then .[] else . end | {{{jq_key(key)}: .}}'
    in_memory = f"Give [{{{key!r}: chat}} for chat in chats]."
    return Finding(
        f"a dialogue is an array by itself, expected an object with it under {key!r}.",
        unless=in_memory if file == FRAME_NAME else jq(each),
    )


def _unproven_guests(source: Source, sample: ChatSample) -> Finding | None:
    """Find a suite's word for the user that replies elsewhere, beside words it does not know."""
    rows, own = sample.rows, dict(sample.rows.words)
    column = source.column(rows.array or rows.speaker)
    vocabulary = column.vocabulary
    mapped = {*dict(column.mapped.words), *dict(sample.layout.roles)}
    for dialogue in sample.dialogues:
        words = sorted({str(t.role) for t in dialogue.turns if t.role is not None} - mapped)
        unknown = [word for word in words if not vocabulary.includes(word)]
        guests = [word for word in words if (rows.speaker, word) in vocabulary.any_needed]
        guest = next(filter(replies_beside_user, guests), "")
        if not (unknown and guest):
            continue
        known = USER_ROLE in role_meanings(unknown).values()
        flags = word_flags(column, words, (), (), rows) if known else []
        sides = ((guest, ASSISTANT_ROLE), (unknown[0], USER_ROLE))
        example = typed([value_flag(rows.speaker, word, own[role]) for word, role in sides])
        keep = typed([value_flag(rows.speaker, guest, guest)])
        return Finding(
            f"{rows.speaker} is {quoted(words)} in a dialogue: beside {unknown[0]!r}, {guest!r} is "
            f"probably not the {own[USER_ROLE]}.",
            flags,
            unless=f"Say who is who, for example {example}.",
            more=f" To keep it as it is, type {keep}.",
        )
    return None


KEEP_ORDER = "line"
"""What turns are sorted by to keep the order of the file."""


def absent_keys(source: Source, samples: Sequence[ChatSample]) -> Iterator[tuple[Flag, list[str]]]:
    """Yield the options whose keys are in no dialogue, with the keys that are in their place."""
    if source.chat is None:
        return
    layout, rows = source.chat.layout, source.chat.rows
    asked = {name.rpartition(EACH)[2] for name in source.asked_for}
    dialogues = [dialogue for sample in samples for dialogue in sample.dialogues]
    documents = [dialogue.document for dialogue in dialogues]
    unread = [document for sample in samples for document in sample.documents]
    turns = [turn.found for dialogue in dialogues for turn in dialogue.turns]
    places = {
        rows.array or TURNS: (layout.turns[:1], [] if documents else unread),
        rows.id: (layout.id[:1], documents),
        REPLY: (layout.turns[-1:], documents),
        rows.speaker: ((layout.speaker,), turns),
        rows.text: ((layout.text,), turns),
    }
    options = [
        (column_flag(name, paths[0]), objects)
        for name, (found, objects) in places.items()
        for paths in (found if name in asked else ())
    ]
    if layout.joined_by:
        options.append((Flag("dialogue", layout.joined_by), documents))
    if layout.sort_by not in ("", KEEP_ORDER):
        sorted_rows = documents if layout.joined_by else []
        options.append((Flag("sort_by", (layout.sort_by,)), [*turns, *sorted_rows]))
    for flag, objects in options:
        if objects and not any(_has_key(each, flag.words[-1]) for each in objects):
            yield (
                flag,
                [*dict.fromkeys(k for each in objects if isinstance(each, dict) for k in each)],
            )


def _has_key(document: Any, path: str) -> bool:
    """Tell whether a path leads to a value, or through one that is null here."""
    head = path.partition(".")[0].removesuffix("[]")
    is_null = isinstance(document, dict) and document.get(head, "") is None
    return is_null or bool(values_at(document, path))


Rule = Callable[[ChatSample], Finding | None]


def _of_each(rule: Callable[[ChatSample, SampledDialogue], Finding | None]) -> Rule:
    """Make a rule of one that looks at each dialogue by itself."""

    def of_all(sample: ChatSample) -> Finding | None:
        return next((f for each in sample.dialogues if (f := rule(sample, each))), None)

    return of_all


def _unread_turns(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find a chat, or one more text of its kind, beside the turns that are read."""
    document, layout = dialogue.document, sample.layout
    if not isinstance(document, dict) or layout.is_row_per_turn:
        return None
    places = [each for paths in layout.turns for each in paths]
    read = {
        key
        for key in document
        if any(each == key or each.startswith((f"{key}.", f"{key}[")) for each in places)
    }
    texts = {each for each in layout.text if "." not in each} if read else set()
    known = {*read, *layout.ignored, *layout.model, *layout.condition}
    for key in (each for each in document if each not in known):
        value = json_of(document[key])
        is_chat = bool(is_called("chat", key)) and isinstance(value, list) and bool(value)
        is_turn = key in texts and is_said(value)
        if is_chat or is_turn:
            what = "holds a chat" if is_chat else "stands beside the turns as it does in them"
            return Finding(
                f"{key} {what}, and is not read.",
                unless="Name its place in a layout of your own, in turns or in ignored: begin with "
                "`fastscore layouts openai --toml`.",
            )
    return None


def _other_keys(sample: ChatSample) -> Finding | None:
    """Find a dialogue whose turns say who speaks under other keys than those of another."""
    layout = sample.layout
    keys = (*layout.speaker, *layout.text)
    if layout.is_row_per_turn or not (layout.speaker and layout.text):
        return None
    firsts = [dialogue.turns[0].found for dialogue in sample.dialogues]
    usual = next((each for each in firsts if first_at(each, keys) is not None), None)
    for each in firsts if usual else ():
        words = [word for word in each.values() if isinstance(word, str)]
        if first_at(each, keys) is None and role_meanings(words):
            return Finding(
                f"a dialogue has turns of {quoted(each)}, another of {quoted(usual or ())}: of two "
                "kinds one would be left out.",
                unless="Write the dialogues of each kind to a file of their own.",
            )
    return None


def _unread_siblings(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns that are those of one id, beside others."""
    document, layout = dialogue.document, sample.layout
    paths = {path for paths in layout.turns for path in paths if "." in path}
    if not isinstance(document, dict) or layout.is_row_per_turn or not paths:
        return None
    for keyed in keyed_arrays(document):
        for key in keyed.objects:
            path = ".".join((*keyed.holder, key, *keyed.place))
            others = keyed.objects.keys() - {key, *layout.ignored}
            if path in paths and others:
                where = ".".join(keyed.holder) or "the document"
                unread = [each for each in keyed.objects if each in others]
                read_all = [layout_flag(NESTED), column_flag(TURNS, ".".join(keyed.place))]
                return Finding(
                    f"{path} is one dialogue of {where}, and those of {quoted(unread)} are not "
                    "read.",
                    unless=jq(program_of(keyed))
                    if keyed.holder
                    else f"Type {typed(read_all)} in its place.",
                )
    return None


def _unread_reply(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find a dialogue that ends before a reply which is elsewhere."""
    paths = sample.unread_replies(dialogue)
    flags = [column_flag(REPLY, path) for path in paths]
    if len(paths) > 1:
        return Finding(
            f"a dialogue ends with the user, and each of {', '.join(paths)} may be the last reply.",
            unless=f"Name the one to read, for example {EXAMPLE}.",
            example=flags[:1],
        )
    said = f"a dialogue ends with the user, and {''.join(paths)} is not read. It contains what is"
    return Finding(f"{said} probably the reply.", flags) if paths else None


def _unnamed_words(sample: ChatSample) -> Finding | None:
    """Find words for speakers that the layout does not name, and that others beside them explain.

    The words of one dialogue decide: `agent` beside `user` replies.
    """
    roles, own = dict(sample.layout.roles), dict(sample.rows.words)
    if ANY_OTHER in roles:
        return None
    meant: dict[str, set[str]] = {}
    for dialogue in sample.dialogues:
        words = {str(turn.role) for turn in dialogue.turns} - sample.words.keys()
        for word, meaning in sample.meanings_in(dialogue).items():
            # without words of a layout those of the suite are its own
            if word in words and (roles or word not in own.values()):
                meant.setdefault(word, set()).add(meaning)
    flags = [
        value_flag(sample.rows.speaker, word, own.get(found.pop(), LEFT_OUT))
        for word, found in sorted(meant.items())
        if len(found) == 1
    ]
    flags = [flag for flag in flags if flag.words[2] or sample.rows.array]
    every = sorted({str(turn.role) for each in sample.dialogues for turn in each.turns})
    unknown = quoted(flag.words[1] for flag in flags)
    said = f"{sample.rows.speaker} is {quoted(every)}. The layout or the map of words"
    return Finding(f"{said} does not name {unknown}.", flags) if flags else None


def _replying_system(sample: ChatSample) -> Finding | None:
    """Find dialogues without an assistant in which what the layout takes for a prompt replies."""
    n_replies = n_prompts = 0
    words: set[str] = set()
    for dialogue in sample.dialogues:
        roles = [sample.role_of(turn) for turn in dialogue.turns]
        begins = roles.index(USER_ROLE) if USER_ROLE in roles else len(roles)
        if ASSISTANT_ROLE not in roles and SYSTEM_ROLE in roles[begins:]:
            n_replies += 1
            spoken = zip(dialogue.turns, roles, strict=True)
            words |= {str(turn.role) for turn, role in spoken if role == SYSTEM_ROLE}
        else:
            n_prompts += SYSTEM_ROLE in roles
    if not n_replies:
        return None
    named, own = sorted(words), dict(sample.rows.words)[ASSISTANT_ROLE]
    return Finding(
        f"beside the user only {quoted(named)} speaks in {n_replies:,} of the first "
        f"{counted(len(sample.dialogues), 'dialogues')}, which the layout takes for a prompt.",
        [] if n_prompts else [value_flag(sample.rows.speaker, word, own) for word in named],
        unless="It is a prompt in others: write both kinds to files of their own.",
    )


def _named_pairs(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find pairs whose first texts are the names of speakers, not what users say."""
    firsts = [turn.text for turn in dialogue.turns[::2] if isinstance(turn.text, str)]
    names = sorted({*firsts})
    is_pair = len(firsts) > 1 and not any(turn.found for turn in dialogue.turns)
    are_roles = {USER_ROLE, ASSISTANT_ROLE} <= {*role_meanings(names).values()}
    if sample.layout.speaker or not is_pair or (2 * len(names) > len(firsts) and not are_roles):
        return None
    return Finding(
        f"the first texts of pairs are {', '.join(names)!r}: these are speakers, and the second "
        "texts are what they say.",
        [column_flag(sample.rows.speaker, "0"), column_flag(sample.rows.text, "1")],
    )


def _unread_sides(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find pairs of which only one side is read, beside other texts."""
    layout, own = sample.layout, dict(sample.rows.words)
    objects = [turn.found for turn in dialogue.turns]
    keys = [*dict.fromkeys(key for each in objects for key in each)]
    named = role_meanings(keys) | {k: r for k, r in layout.roles if k in keys}
    said = {
        word for word, _ in layout.roles for each in objects if value_at(each, word) is not None
    }
    read = {role for word, role in layout.roles if word in said}
    lacking = [role for role in (USER_ROLE, ASSISTANT_ROLE) if role not in read]
    others = [
        key
        for key in keys
        if key not in dict(layout.roles) and any(is_said(each.get(key)) for each in objects)
    ]
    if not layout.is_keyed_by_speaker or not lacking or not others:
        return None
    sides = [key for key in others if named.get(key) in (*lacking, SYSTEM_ROLE)]
    example = [value_flag(sample.rows.speaker, key, own[lacking[0]]) for key in sides or others]
    return Finding(
        f"only {quoted(read)} speaks in the pairs of a dialogue, and {quoted(others)} is not read.",
        example if len(sides) == 1 else [],
        unless=f"Name the key of what the {lacking[0]} says, for example {EXAMPLE}.",
        example=example[:1],
    )


def _unread_pairs(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns that are said to alternate, each of which has a reply beside its text."""
    layout, said = sample.layout, sample.rows.speaker
    objects = [turn.found for turn in dialogue.turns if turn.found]
    if layout.alternate not in ROLES or not objects:
        return None
    texts = [key for key in objects[0] if all(is_said(each.get(key)) for each in objects)]
    asked = next((key for key in texts if key in layout.text), "")
    reply = next((key for key in texts if key not in layout.text and is_of_reply(key)), "")
    example = [value_flag(said, asked, USER_ROLE), value_flag(said, reply, ASSISTANT_ROLE)]
    return (
        Finding(
            f"each turn has {reply} beside {asked}, which is not read: these are pairs.",
            unless=f"In place of alternate type {typed([layout_flag(PAIRS), *example])}.",
        )
        if asked and reply
        else None
    )


def _parallel_replies(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns that are said to alternate, for each of which another array has a reply."""
    layout, turns = sample.layout, dialogue.turns
    if layout.alternate not in ROLES or len(turns) < 2 or not all(turn.found for turn in turns):
        return None
    places = (path for paths in layout.turns for path in paths)
    asked = next(path for path in places if values_at(dialogue.document, path))
    for path, _, _ in values_beside(dialogue.document, layout):
        if len(values_at(dialogue.document, path)) == len(turns):
            program = f". + {{turns: ([[.{asked}[].{layout.text[0]}], [.{path}]] | transpose)}}"
            return Finding(
                f"{path} has a text for each turn of {asked}: these are pairs.",
                unless=jq(program, [layout_flag(PAIRS), column_flag(TURNS, "turns")]),
            )
    return None


def _one_speaker(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns of one role that another key tells apart, as names of agents do."""
    turns, names = dialogue.turns, {*sample.layout.speaker, *sample.layout.text}
    if len(turns) < 2 or turns[0].role is None or len({str(turn.role) for turn in turns}) > 1:
        return None
    for key in filter(
        partial(is_called, "name"), (each for each in turns[0].found if each not in names)
    ):
        found = [turn.found.get(key) for turn in turns]
        if not any(isinstance(each, dict | list) for each in found) and all(
            one != other for one, other in pairwise(found)
        ):
            said, own = sample.rows.speaker, dict(sample.rows.words)
            sides = zip(found, (own[USER_ROLE], own[ASSISTANT_ROLE]), strict=False)
            example = [column_flag(said, key), *(value_flag(said, str(w), r) for w, r in sides)]
            return Finding(
                f"only {turns[0].role!r} speaks in a dialogue, and {key} is "
                f"{quoted(map(str, found))}.",
                unless=WHO_IS_WHO,
                example=example,
            )
    return None


def _systems_by_intent(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find a speaker who is read as a member, and all of whose intents are a system's."""
    intents: dict[str, list[str]] = {}
    for turn in dialogue.turns:
        if sample.role_of(turn) not in (ASSISTANT_ROLE, SYSTEM_ROLE):
            intents.setdefault(str(turn.role), []).append(str(turn.found.get("intent") or ""))
    own = dict(sample.rows.words)
    for word, found in intents.items():
        if ASSISTANT_ROLE in own and all(map(_SYSTEM_INTENT.match, found)):
            flag = value_flag(sample.rows.speaker, word, own[ASSISTANT_ROLE])
            return Finding(
                f"{word!r} has only intents of a system, such as {found[0]!r}, and is read as a "
                "member.",
                [flag],
            )
    return None


def _marks(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find several turns in one text, and thoughts that are turns."""
    for turn in dialogue.turns:
        marked = _TEMPLATE.search(turn.text) if isinstance(turn.text, str) else None
        if marked is not None:
            return Finding(
                f"a text has {marked[0]!r}: it is a chat in the template of a model.",
                unless="Write its turns as messages with role and content.",
            )
        for key in filter(partial(is_called, "thought"), turn.found):
            if turn.found[key] is True:
                return Finding(
                    f"{key} marks thoughts among the turns of a dialogue.",
                    unless='This writes the log without them: jq -c \'walk(if type == "array" then '
                    f'map(select((type == "object" and .{key} == true) | not)) else . end)\'.',
                )
    return None


def _empty_replies(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find an empty reply of a suite that pairs turns: it is left out, and nothing replies."""
    roles = [sample.role_of(turn) for turn in dialogue.turns]
    around = zip(roles, pairwise(dialogue.turns), roles[1:], [*roles[2:], USER_ROLE], strict=False)
    for before, (asked, turn), role, after in around if sample.rows.user_begins else ():
        is_empty = turn.text == "" and not any(map(turn.found.get, _CALLS))
        if is_empty and (before, role, after) == (USER_ROLE, ASSISTANT_ROLE, USER_ROLE):
            return Finding(
                f"the reply to {cut(repr(asked.text), _SHOWN_CHARACTERS)} is empty, and "
                "would be left out.",
                unless="Write in its place what the user saw, such as '(no reply)', or leave out "
                "the user's message before it.",
            )
    return None


def _same_chats(sample: ChatSample) -> Finding | None:
    """Find a document with two arrays that have the same turns."""
    by_row: dict[int, list[SampledDialogue]] = {}
    for dialogue in sample.dialogues:
        by_row.setdefault(dialogue.row, []).append(dialogue)
    for both in by_row.values():
        are_arrays = len(both) == 2 and all(isinstance(each.document, list) for each in both)
        if are_arrays and both[0].texts == both[1].texts:
            return Finding(
                "two arrays of a document have the same turns, which would count twice.",
                unless="Name the one to read with --column, or write it to a file of its own.",
            )
    return None


def _chained(sample: ChatSample) -> Finding | None:
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


def _unsorted(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
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
        f"sort_by is {key}, and its value {cut(repr(odd[0]), _SHOWN_CHARACTERS)} has no order that "
        "is known: expected numbers or times such as 2024-05-01T14:11:00+02:00.",
        unless="Write the times so, or sort the log itself.",
    )


def _order_of_sides(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find pairs in which the assistant's key is before the user's, so that it may speak first."""
    layout, roles = sample.layout, dict(sample.layout.roles)
    for turn in dialogue.turns if layout.is_keyed_by_speaker and not layout.alternate else ():
        keys = [key for key in turn.found if roles.get(key) in (USER_ROLE, ASSISTANT_ROLE)]
        if keys and roles[keys[0]] == ASSISTANT_ROLE and turn.role != keys[0]:
            return Finding(
                f"{keys[0]} is before {keys[-1]} in the pairs of a dialogue. Who speaks first is "
                "not said.",
                [Flag("alternate", (USER_ROLE,))],
                more=f" If {keys[0]} does, type {typed([Flag('alternate', (ASSISTANT_ROLE,))])}.",
            )
    return None


def _branches(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find lists of turns in which several follow the same one."""
    layout = sample.layout
    if layout.parent or layout.replies:
        return None
    for key in filter(partial(is_called, "parent"), dialogue.turns[0].found):
        found = (turn.found.get(key) for turn in dialogue.turns)
        above = [str(value) for value in found if value is not None]
        several = [name for name, count in Counter(above).items() if count > 1]
        if several and _are_ids(several, dialogue.turns, key):
            return Finding(
                f"the turns of a dialogue are no line but a tree: {key} is {several[0]!r} in "
                f"{above.count(several[0]):,} of them.",
                unless="Write each path from the first turn to a last one as a dialogue.",
            )
    return None


def _are_ids(names: Sequence[str], turns: Sequence[Turn], but: str) -> bool:
    """Tell whether other turns have such ids, in a key in which no two are the same."""
    for key in (each for each in turns[0].found if each != but):
        ids = [str(turn.found.get(key)) for turn in turns]
        if len({*ids}) == len(ids) and {*names} & {*ids}:
            return True
    return False


def _pooled_rows(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find rows of one name that are several dialogues: each has a value of its own of a key.

    Each begins as the first does, or counts its turns anew, or the key is called as a model is.
    Rows that name no dialogue are several, too, if the same speaker begins each block of a value.
    """
    layout, turns = sample.layout, dialogue.turns
    if not layout.is_row_per_turn or layout.id == ((NOWHERE,),):
        return None
    said = {*layout.speaker, *layout.text}
    beside = [dict(scalars_of(turn.found, _DEEPEST_ORDER)) for turn in turns]
    columns = {key: [each.get(key) for each in beside] for key in beside[0] if key not in said}
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
        is_sure = len(begins) == 1 or counted_anew or is_of_model(key)
        is_unnamed = not dialogue.name and not is_called("id", key)  # ids are asked for by name
        if not (is_sure or (are_blocks and is_unnamed)):
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
        if not name:
            question = "Give them ids of their own, or write a file for each."
        more = f" If they are one, {is_one}."
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


def _joined_parts(sample: ChatSample, turns: Sequence[Turn], key: str) -> str:
    """Return what writes a document for each value of a key, and joins those of a dialogue."""
    layout, first = sample.layout, turns[0].found
    times = [path for path, _ in scalars_of(first, _DEEPEST_ORDER) if is_called("time", path)]
    name, part, role, content, model, time = (
        " // ".join(
            dict.fromkeys(
                jq_path(keys)
                for path in paths
                for turn in turns
                if value_at(turn.found, path) is not None and (keys := keys_to(turn.found, path))
            )
        )
        for paths in (*layout.id[:1], (key,), layout.speaker, layout.text, layout.model, times[:1])
    )
    words = layout.roles or [(str(turn.role), sample.role_of(turn)) for turn in turns]
    roles = json.dumps({word: meant for word, meant in words if meant in ROLES})
    of_all = f"id: (.[0] | {name})" + (f", model: (.[0] | {model})" if model else "")
    program = (
        f"{f'sort_by({time}) | ' if time else ''}to_entries | map(.value + {{row: .key}}) "
        f"| group_by([{name}, {part}]) | sort_by(.[0].row)[] | {{{of_all}, messages: "
        f"map({{role: ({role} | {roles}[tostring] // .), content: ({content})}})}}"
    )
    return jq(program, [layout_flag(OPENAI), Flag("dialogue", ("id",))], slurps=True)


def _is_counted_in_each(step: str, parts: Mapping[str, Sequence[Turn]]) -> bool:
    """Tell whether the turns of each side are counted from the same number on in each part."""
    counts = [
        [(turn.role, order_of(turn.found.get(step))) for turn in part] for part in parts.values()
    ]
    are_counts = all(len({*numbers}) == len(numbers) for numbers in counts)
    return are_counts and len({min(number for _, number in numbers) for numbers in counts}) == 1


def _falling_order(sample: ChatSample) -> Finding | None:
    """Find a dialogue whose times or steps fall, in its turns or from document to document."""
    if sample.layout.sort_by:
        return None
    turns = ((each.name, [turn.found for turn in each.turns]) for each in sample.dialogues)
    for name, objects in (*turns, *_joined_documents(sample)):
        fall = _fall(objects)
        if fall is None:
            continue
        key, before, after = fall[0], *(cut(repr(value), _SHOWN_CHARACTERS) for value in fall[1:])
        named = f" {name}" if name is not None else ""
        sort, keep = Flag("sort_by", (key,)), typed([Flag("sort_by", (KEEP_ORDER,))])
        more = f" To keep the order of the file, type {keep}."
        is_known = order_of(fall[1])[0] != NO_ORDER
        rewrite = f"Write these times as 2025-07-31T09:10:00 and type {typed([sort])}.{more}"
        by_hand = f"Sort the rows of each dialogue by {key}, or leave the key out."
        return Finding(
            f"the turns of dialogue{named} are not in order: {key} is {after} after {before}.",
            [sort] if sample.can_be_sorted and is_known else [],
            unless=rewrite if sample.can_be_sorted else by_hand,
            more=more,
        )
    return None


def _joined_documents(sample: ChatSample) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yield the name of each dialogue of several documents with these, if their order counts."""
    for parts in _of_one_name(sample) if sample.layout.joined_by else ():
        longest = max((part.texts for part in parts), key=len)
        # beginnings of the longest one are read in any order
        if any(part.texts != longest[: len(part.texts)] for part in parts):
            yield parts[0].name, [part.document for part in parts]


def _of_one_name(sample: ChatSample) -> list[list[SampledDialogue]]:
    """Return the dialogues of each name that several have."""
    by_name: dict[Any, list[SampledDialogue]] = {}
    for dialogue in sample.dialogues:
        if dialogue.name is not None:
            by_name.setdefault(dialogue.name, []).append(dialogue)
    return [group for group in by_name.values() if len(group) > 1]


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


def _joined_candidates(sample: ChatSample) -> Finding | None:
    """Find documents that are parts of one dialogue and have several candidates each."""
    paths = [path for paths in sample.layout.turns for path in paths if "[]" in path]
    rows = [dialogue.row for dialogue in sample.dialogues]
    is_joined = sample.layout.joined_by or _parts(sample) or _repeated_beginnings(sample)
    if not paths or len({*rows}) == len(rows) or not is_joined:
        return None
    one = column_flag(REPLY, paths[-1].replace("[]", ".0"))
    return Finding(
        f"documents go on with each other, and {paths[-1]} has several candidates for a reply.",
        unless=f"Name the one that was said, for example {EXAMPLE}.",
        example=[one],
    )


def _repeated_beginnings(sample: ChatSample) -> Finding | None:
    """Find dialogues that are beginnings of another one, as traces with their history are."""
    layout = sample.layout
    if layout.joined_by or layout.is_row_per_turn or layout.replies:
        return None
    said = [(each.document, each.texts) for each in sample.dialogues]
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
        unless="Keep the longest of each, or name the key of their session: "
        f"{typed([Flag('dialogue', ('KEY',))])}.",
    )


def _are_trials(one: Any, other: Any) -> bool:
    """Tell whether documents say that they are several trials of one task."""
    keys = filter(partial(is_called, "trial"), one if isinstance(one, dict) else ())
    return any(one[key] != other.get(key, one[key]) for key in keys)


def _pooled_documents(sample: ChatSample) -> Finding | None:
    """Find documents of one name that are of several models, by a key that is called so.

    A suite that pools them may tell them apart by another key, if they begin alike.
    """
    layout, several = sample.layout, _of_one_name(sample)
    if layout.joined_by or layout.is_row_per_turn or not sample.rows.model:
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


def _same_names(sample: ChatSample) -> Finding | None:
    """Find documents of one name that a suite of rows would join, although nothing says so."""
    layout, several = sample.layout, _of_one_name(sample)
    if sample.rows.array or layout.joined_by or layout.is_row_per_turn or not several:
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


def _models_of_replies(sample: ChatSample) -> Finding | None:
    """Find rows of one dialogue of which only the replies name a model, of several."""
    layout = sample.layout
    rows_of: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for turn in (turn for dialogue in sample.dialogues for turn in dialogue.turns):
        name = tuple(str(first_at(turn.found, paths)) for paths in layout.id)
        rows_of.setdefault(name, []).append(turn.found)
    for name, rows in rows_of.items() if layout.is_row_per_turn else ():
        for key in filter(is_of_model, dict.fromkeys(key for row in rows for key in row)):
            models = {row[key] for row in rows if isinstance(row.get(key), str)}
            if len(models) > 1 and any(row.get(key) is None for row in rows):
                program = (
                    f"reverse | [foreach .[] as $row (null; $row.{jq_key(key)} // .; "
                    f"$row + {{{json.dumps(key)}: .}})] | reverse | .[]"
                )
                return Finding(
                    f"{key} is {quoted(sorted(models))} in dialogue {':'.join(name)}, and none in "
                    "some of its rows: which rows are of which dialogue is not said.",
                    unless="If rows are of the next model that is named: "
                    f"{jq(program, slurps=True, into='turns.jsonl')}",
                )
    return None


def _parts(sample: ChatSample) -> Finding | None:
    """Find documents that have one name of a conversation and go on with each other."""
    layout = sample.layout
    if layout.joined_by or layout.is_row_per_turn:
        return None
    begun: dict[tuple[str, Any], list[str]] = {}
    for dialogue in sample.dialogues:
        for key, name in scalars_of(dialogue.document, _DEEPEST_ORDER):
            if key in layout.ignored or not is_called("session", key):
                continue
            before = begun.setdefault((key, name), dialogue.texts)
            # what begins alike is asked of several models, or once more
            if before[:1] != dialogue.texts[:1]:
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


OWN_RULES: tuple[Rule, ...] = (
    _of_each(_unread_siblings),
    _models_of_replies,
    *map(
        _of_each,
        (_branches, _one_speaker, _systems_by_intent, _marks, _pooled_rows),
    ),
    _falling_order,
)
"""What a suite's own rows must not contradict."""
RULES: tuple[Rule, ...] = (
    _other_keys,
    _of_each(_parallel_replies),
    _of_each(_unread_reply),
    _of_each(_unread_turns),
    _unnamed_words,
    _replying_system,
    *map(
        _of_each,
        (_empty_replies, _named_pairs, _unread_pairs, _unread_sides, _order_of_sides, _unsorted),
    ),
    *OWN_RULES,
    _same_chats,
    _joined_candidates,
    _repeated_beginnings,
    _pooled_documents,
    _parts,
    _chained,
    _same_names,
)
"""What the dialogues of a layout must not contradict, in the order in which it is asked."""


def chat_notes(source: Source, sample: ChatSample) -> list[str]:
    """Say what becomes of empty messages, candidates and branches in the first rows."""
    layout = sample.layout
    documents = {} if layout.is_row_per_turn else {id(d.document): d for d in sample.dialogues}
    counts = Counter(id(dialogue.document) for dialogue in sample.dialogues)
    n_several = sum(counts[each] > 1 for each in documents)
    n_left = 0
    for dialogue in documents.values() if layout.parent else ():
        nodes = first_at(dialogue.document, layout.turns[0])
        parents = [node.get(layout.parent) for node in nodes.values() if isinstance(node, dict)]
        above = Counter(parent for parent in parents if parent is not None)
        n_left += above.total() - len(above)
    users = (t for d in sample.dialogues for t in d.turns if sample.role_of(t) == USER_ROLE)
    n_empty = sum(is_no_turn(turn, source.chat) for turn in users) if source.chat else 0
    notes = []
    if n_empty:
        notes.append(
            f"{counted(n_empty, 'messages')} of users in the first rows "
            f"{'has' if n_empty == 1 else 'have'} no text (images, files) and "
            f"{'is' if n_empty == 1 else 'are'} left out"
        )
    if n_several:
        notes.append(
            f"{counted(n_several, 'documents')} of the first rows "
            f"{'has' if n_several == 1 else 'have'} several candidates (choices, or paths of a "
            "tree): each is a dialogue, and its number follows the id"
        )
    if n_left:
        notes.append(
            f"{counted(n_left, 'edits')} of the first rows {'is' if n_left == 1 else 'are'} left "
            "out: of a conversation with branches, the one of its last message is read"
        )
    return notes
