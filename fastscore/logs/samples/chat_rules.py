"""What the first dialogues of a log say of themselves, and what must be asked.

Each rule looks at dialogues as the reader interprets them. It finds what contradicts these, with
the options that read it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

from fastscore.errors import counted
from fastscore.logs.inputs.chats import Turn, is_no_turn, values_at
from fastscore.logs.inputs.column_map import (
    EACH,
    EXAMPLE,
    LEFT_OUT,
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
from fastscore.logs.inputs.document_values import first_at, json_of, scalars_of, value_at
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.inputs.near_names import (
    is_called,
    is_of_reply,
    is_unsaid,
    may_be_unsaid,
    replies_beside_user,
    role_meanings,
    word_flags,
)
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import (
    NESTED,
    PAIRS,
    ROW_PER_TURN,
    ChatSample,
    SampledDialogue,
    key_of_dialogues,
    sample_chats,
    values_beside,
)
from fastscore.logs.samples.dialogue_rules import (
    KEEP_ORDER,
    array_in_jq,
    branches,
    chained,
    falling_order,
    joinable_parts,
    joined_candidates,
    models_of_replies,
    paths_in_jq,
    pooled_documents,
    pooled_rows,
    repeated_beginnings,
    same_chats,
    same_names,
    unsorted,
    versions,
)
from fastscore.logs.samples.findings import Finding, jq, jq_key
from fastscore.logs.samples.profile import (
    LEAST_CHARACTERS,
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    SHOWN_CHARACTERS,
    Record,
    is_said,
    keyed_arrays,
    quoted,
    shape_of,
)
from fastscore.logs.samples.rewrites import (
    TURN_OF_TEMPLATE,
    chats_of_transcripts,
    program_of,
    speakers_in,
)
from fastscore.suites.chats import ANY_OTHER, ASSISTANT_ROLE, ROLES, SYSTEM_ROLE, USER_ROLE
from fastscore.suites.declarations import Source

_DEEPEST = 4
_SYSTEM_INTENT = re.compile(r"sys(tem)?_", re.IGNORECASE)
_FEWEST_AGAIN = 2
_CALLS = ("tool_calls", "function_call")
_BEFORE_FINAL = re.compile(r"^[\s\S]*<\|channel\|>final<\|message\|>")
"""What a model thought before its reply, in the channels of harmony."""


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
    spoken = [
        {str(turn.role) for turn in each.turns if turn.role is not None} - mapped
        for each in sample.dialogues
    ]
    unknown = {word for words in spoken for word in words if not vocabulary.includes(word)}
    for words in filter(unknown.intersection, spoken):
        guests = [word for word in sorted(words) if (rows.speaker, word) in vocabulary.any_needed]
        guest = next(filter(replies_beside_user, guests), "")
        if not guest:
            continue
        known = USER_ROLE in role_meanings(unknown).values()
        users = [value_flag(rows.speaker, word, own[USER_ROLE]) for word in sorted(unknown)]
        keep = typed([value_flag(rows.speaker, guest, guest)])
        other = min(words & unknown)
        return Finding(
            f"{rows.speaker} is {quoted(sorted(words))} in a dialogue: beside {other!r}, {guest!r} "
            f"is probably not the {own[USER_ROLE]}.",
            word_flags(column, sorted(words), (), (), rows) if known else [],
            unless=WHO_IS_WHO,
            example=[value_flag(rows.speaker, guest, own[ASSISTANT_ROLE]), *users],
            more=f" To keep it as it is, type {keep}.",
        )
    return None


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
    labelled = turns if layout.is_row_per_turn else [*documents, *unread]
    places = {
        rows.model: ((layout.model,), labelled),
        rows.condition: ((layout.condition,), labelled),
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
            keys = dict.fromkeys(k for each in objects if isinstance(each, dict) for k in each)
            yield flag, [*keys]


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


def _rows_in_array(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find an array whose elements name several dialogues."""
    key, array = key_of_dialogues([turn.found for turn in dialogue.turns]), ""
    if not key or sample.layout.is_row_per_turn:
        return None
    how = [layout_flag(ROW_PER_TURN), column_flag(sample.rows.id, key)]
    rows, layout = sample.rows, sample.layout
    parts = ((rows.speaker, layout.speaker[:1]), (rows.text, layout.text[:1]))
    how += [column_flag(name, path) for name, paths in parts for path in paths if "." in path]
    if isinstance(dialogue.document, dict):
        array = array_in_jq(sample, dialogue)
    if sample.layout.is_keyed_by_speaker:
        said_by = {turn.role for turn in dialogue.turns}
        sides = (value_flag("speaker", *each) for each in sample.layout.roles if each[0] in said_by)
        how, array = [layout_flag(PAIRS), *sides, Flag("dialogue", (key,))], array or "."
    return Finding(
        f"{key} names several dialogues in one array.",
        unless=jq(f"{array}[]", how, into="rows.jsonl")
        if array
        else f"Type {typed(how)} in its place.",
    )


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


def _unread_pair(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find what a user asked last and the reply, beside the turns before them."""
    document, array = dialogue.document, array_in_jq(sample, dialogue)
    if not isinstance(document, dict) or array in ("", ".") or sample.layout.replies:
        return None
    layout, said = sample.layout, "\n".join(dialogue.texts)
    known = {*layout.ignored, *layout.model, *layout.condition}
    texts = [k for k, v in document.items() if k not in known and isinstance(v, str) and v.strip()]
    asked = [
        key
        for key in texts
        if is_called("asked", key)
        and not (document[key] in said or any(text in document[key] for text in dialogue.texts))
    ]
    reply = [key for key in texts if is_of_reply(key)]
    first, last = dialogue.turns[0], dialogue.turns[-1]
    read = [path for paths in layout.turns for path in paths if path in reply]
    has_turns_before = len(dialogue.turns) > len(read)
    is_unread = has_turns_before and (read or (reply and document[reply[0]] not in said))
    if len(asked) != 1 or len(reply) != 1 or not is_unread or sample.role_of(last) == USER_ROLE:
        return None
    asks, replies = f".{jq_key(asked[0])}", f".{jq_key(reply[0])}"
    added = f"[[{asks}, {replies}]]"
    if first.found:
        words = {sample.role_of(turn): turn.role for turn in reversed(dialogue.turns) if turn.found}
        keys = [
            next((path for path in paths if path in first.found), paths[0])
            for paths in (layout.speaker, layout.text)
        ]
        added = ", ".join(
            f"{{{jq_key(keys[0])}: {json.dumps(words.get(role, role))}, {jq_key(keys[1])}: {text}}}"
            for role, text in ((USER_ROLE, asks), (ASSISTANT_ROLE, replies))
        )
        added = f"[{added}]"
    return Finding(
        f"{asked[0]} is not read, a question beside the turns before it. {reply[0]} is its reply.",
        unless="To leave them out, name them in ignored of a layout of your own. To read them: "
        f"{jq(f'{array} += {added} | del({asks}, {replies})')}",
    )


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
    prompt = (USER_ROLE, SYSTEM_ROLE, USER_ROLE)
    for dialogue in sample.dialogues:
        roles = [sample.role_of(turn) for turn in dialogue.turns]
        begins = roles.index(USER_ROLE) if USER_ROLE in roles else len(roles)
        amid = zip(roles, roles[1:], roles[2:], strict=False)
        replies = SYSTEM_ROLE in roles[begins:] and ASSISTANT_ROLE not in roles
        if replies or (prompt in amid and ASSISTANT_ROLE not in roles[:-1]):
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


def _lists_of_sides(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find pairs whose sides are lists of texts, one for each pair."""
    roles = dict(sample.layout.roles) if sample.layout.is_keyed_by_speaker else {}
    for turn in dialogue.turns if roles else ():
        found = {key: turn.found[key] for key in turn.found if isinstance(turn.found[key], list)}
        sides = {roles[key]: key for key, texts in found.items() if key in roles and len(texts) > 1}
        both = [sides[role] for role in (USER_ROLE, ASSISTANT_ROLE) if role in sides]
        if len(both) == 2 and all(isinstance(each, str) for key in both for each in found[key]):
            keys = ", ".join(f".{jq_key(key)}" for key in both)
            return Finding(
                f"{both[0]} and {both[1]} are lists of texts, one for each pair.",
                unless=jq(
                    f". + {{turns: ([{keys}] | transpose)}} | del({keys})",
                    [layout_flag(PAIRS), column_flag(TURNS, "turns")],
                ),
            )
    return None


def _said_with_names(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find texts that begin with who speaks."""
    texts, layout = dialogue.texts, sample.layout
    names = [name for text in texts for name in speakers_in(text)[:1]]
    array, roles = array_in_jq(sample, dialogue), {*role_meanings({*names}).values()}
    if not array or len(names) < len(texts) or not {USER_ROLE, ASSISTANT_ROLE} <= roles:
        return None
    said = f"texts begin with who speaks, {cut(texts[0], SHOWN_CHARACTERS)!r}."
    if any(turn.found for turn in dialogue.turns):
        at = paths_in_jq(layout.text, dialogue.turns)
        return Finding(said, unless=jq(f'{array}[] |= ({at} |= sub("^[^:]+: *"; ""))'))
    program = f'{array} |= map(capture("^(?<role>[^:]+): *(?<content>(.|\\n)*)"))'
    parts = {TURNS: array[1:], "speaker": "role", "text": "content"}
    return Finding(said, unless=jq(program, [column_flag(*part) for part in parts.items()]))


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


def _unread_replies(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns that are said to alternate, each of which has a reply beside it or elsewhere."""
    layout, turns = sample.layout, dialogue.turns
    objects = [turn.found for turn in turns if turn.found]
    if layout.alternate not in ROLES or not objects:
        return None
    asked = next((path for path in layout.text if value_at(objects[0], path) is not None), "")
    beside = (path.partition("[")[0] for path, *_ in values_beside(objects[0], layout))
    reply = next((path for path in beside if path not in layout.text), "")
    if asked and reply:
        sides = ((asked, USER_ROLE), (reply, ASSISTANT_ROLE))
        read = [layout_flag(PAIRS), *(value_flag(sample.rows.speaker, *side) for side in sides)]
        return Finding(
            f"each turn has {reply} beside {asked}, which is not read: these are pairs.",
            unless=f"In place of alternate type {typed(read)}.",
        )
    places = (path for paths in layout.turns for path in paths)
    array = next((path for path in places if values_at(dialogue.document, path)), "")
    for path, _, _ in values_beside(dialogue.document, layout):
        if 1 < len(turns) == len(objects) == len(values_at(dialogue.document, path)):
            program = f". + {{turns: ([[.{array}[].{layout.text[0]}], [.{path}]] | transpose)}}"
            return Finding(
                f"{path} has a text for each turn of {array}: these are pairs.",
                unless=jq(program, [layout_flag(PAIRS), column_flag(TURNS, "turns")]),
            )
    return None


def _one_speaker(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns of one role that another key tells apart, as names of agents do."""
    turns, names = dialogue.turns, {*sample.layout.speaker, *sample.layout.text}
    if len(turns) < 2 or turns[0].role is None or len({str(turn.role) for turn in turns}) > 1:
        return None
    for key in (key for key in turns[0].found if key not in names and is_called("name", key)):
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


def _contrary_names(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find turns whose names mean the other side than their roles do."""
    known = {*sample.layout.speaker, *sample.layout.text}
    other = {ASSISTANT_ROLE: USER_ROLE, USER_ROLE: ASSISTANT_ROLE}
    roles = [sample.role_of(turn) for turn in dialogue.turns]
    for key in filter(partial(is_called, "name"), dialogue.turns[0].found.keys() - known):
        names = [str(turn.found.get(key)) for turn in dialogue.turns]
        meanings = role_meanings({*names})
        said = {(name, role) for name, role in zip(names, roles, strict=True) if name in meanings}
        if not said or any(other.get(role) != meanings[name] for name, role in said):
            continue
        own, column, (name, role) = dict(sample.rows.words), sample.rows.speaker, min(said)
        meant = {each: other.get(role, "") for each, role in zip(names, roles, strict=True)}
        values = [value_flag(column, each, own[role]) for each, role in meant.items() if role]
        return Finding(
            f"the {role} is called {name!r} by {key}: roles are probably those of the other side.",
            unless=WHO_IS_WHO,
            example=[column_flag(column, key), *values],
        )
    return None


def _systems_by_intent(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find a speaker who is read as a member, and all of whose intents are a system's."""
    if not sample.rows.systems:
        return None
    intents: dict[str, list[str]] = {}
    roles, own = dict(sample.layout.roles), dict(sample.rows.words)
    for turn in dialogue.turns:
        word = "" if turn.role is None else str(turn.role)
        read = roles.get(word, word).strip().casefold()
        if read and read not in sample.rows.systems:  # nobody is no member
            intents.setdefault(word, []).append(str(turn.found.get("intent") or ""))
    for word, found in intents.items():
        if all(map(_SYSTEM_INTENT.match, found)):
            flag = value_flag(sample.rows.speaker, word, own[ASSISTANT_ROLE])
            return Finding(
                f"{word!r} has only intents of a system, such as {found[0]!r}, and is read as a "
                "member.",
                [flag],
            )
    return None


def _templates(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find several turns in one text."""
    for text in dialogue.texts:
        roles = {*role_meanings({*speakers_in(text)}).values()}
        key = next((k for k, v in scalars_of(dialogue.document, _DEEPEST) if v == text), "")
        if key and {USER_ROLE, ASSISTANT_ROLE} <= roles:
            said = f"{key} is a whole transcript, {cut(text, SHOWN_CHARACTERS)!r}."
            return Finding(said, unless=chats_of_transcripts(key, [text]))
        if marked := TURN_OF_TEMPLATE.search(text):
            before = json.dumps(_BEFORE_FINAL.pattern)
            program = f'walk(if type == "string" then sub({before}; "") else . end)'
            anew = jq(program) if _BEFORE_FINAL.search(text) else "Write its turns as messages."
            said = f"a text is in the template of a model: {cut(marked[0], SHOWN_CHARACTERS)!r}."
            return Finding(said, unless=anew)
    return None


def _unsaid(sample: ChatSample) -> Finding | None:
    """Find messages that are marked as thoughts, as deleted or as notes, beside others."""
    turns = [turn.found for dialogue in sample.dialogues for turn in dialogue.turns]
    for key in filter(may_be_unsaid, dict.fromkeys(chain.from_iterable(turns))):
        values = [str(turn.get(key)).casefold() for turn in turns]
        marks = [*filter(partial(is_unsaid, key), values)]
        if 0 < len(marks) < len(turns):
            words = [*dict.fromkeys(marks)]
            among = ", ".join(map(json.dumps, words))
            value = f'if type == "object" then .{jq_key(key)} else null end'
            said = f"({value} | tostring | ascii_downcase | IN({among})) | not"
            program = (
                f'walk(if type == "array" then map(select({said})) else . end) | select({said})'
            )
            return Finding(
                f"{key} is {' or '.join(words)} in {counted(len(marks), 'messages')} of the first "
                f"{len(turns):,}: these were not said in the dialogue.",
                unless="If they were said, leave the key out. If not: "
                f"{jq(program, into='said.jsonl')}",
            )
    return None


def _no_texts(sample: ChatSample) -> Finding | None:
    """Find first dialogues in which the user never says a word."""
    turns = [turn for dialogue in sample.dialogues for turn in dialogue.turns]
    users = [turn for turn in turns if sample.role_of(turn) == USER_ROLE] or turns
    if not users or any(str(turn.text or "").strip() or turn.text is None for turn in users):
        return None
    return Finding(
        f"what users say is empty in all of the first {counted(len(users), 'messages')}.",
        unless=f"Name the key of texts: {typed([column_flag(sample.rows.text, 'KEY')])}.",
    )


def _objects_for_texts(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find JSON text of objects in the place of all texts."""
    objects = [json_of(text) for text in dialogue.texts]
    if len(objects) < 2 or not all(isinstance(each, dict) for each in objects):
        return None
    turn = next(turn for turn in dialogue.turns if turn.text)
    at = next((path for path in sample.layout.text if value_at(turn.found, path) is not None), "")
    texts = [(key, said) for key, said in scalars_of(objects[0], _DEEPEST) if isinstance(said, str)]
    inside = max(texts, key=lambda each: len(each[1]), default=("KEY", ""))[0]
    return Finding(
        f"{at} is an object, {cut(turn.text, SHOWN_CHARACTERS)}, expected what is said.",
        [column_flag(sample.rows.text, f"{at}.{inside}")],
    )


def _empty_replies(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find an empty reply of a suite that pairs turns: it is left out, and nothing replies."""
    roles = [sample.role_of(turn) for turn in dialogue.turns]
    around = zip(roles, pairwise(dialogue.turns), roles[1:], [*roles[2:], USER_ROLE], strict=False)
    for before, (asked, turn), role, after in around if sample.rows.user_begins else ():
        is_empty = turn.text == "" and not any(map(turn.found.get, _CALLS))
        if is_empty and (before, role, after) == (USER_ROLE, ASSISTANT_ROLE, USER_ROLE):
            return Finding(
                f"the reply to {cut(repr(asked.text), SHOWN_CHARACTERS)} is empty, and "
                "would be left out.",
                unless="Write in its place what the user saw, or leave out the user's message "
                f"before it. {_filled(turn, sample.layout.text)}".rstrip(),
            )
    return None


def _filled(turn: Turn, paths: Sequence[str]) -> str:
    """Return what writes a text in the place of empty ones of a speaker."""
    key = next((path for path in paths if turn.found.get(path) == ""), "")
    said_by = [each for each, value in turn.found.items() if value == turn.role is not None]
    if not key or not said_by:
        return ""
    which = f'.{jq_key(said_by[0])} == {json.dumps(turn.role)} and .{jq_key(key)} == ""'
    program = f'walk(if type == "object" and {which} then .{jq_key(key)} = "(no reply)" else . end)'
    return f"If nothing: {jq(program)}"


def _order_of_sides(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find pairs in which the assistant's key is before the user's, so that it may speak first."""
    layout, roles = sample.layout, dict(sample.layout.roles)
    for turn in dialogue.turns if layout.is_keyed_by_speaker and not layout.alternate else ():
        sides = [key for key in roles if roles[key] in (USER_ROLE, ASSISTANT_ROLE)]
        heads = [*turn.found]
        keys = [side for head in heads for side in sides if side.partition(".")[0] == head]
        if keys and roles[keys[0]] == ASSISTANT_ROLE and turn.role != keys[0]:
            return Finding(
                f"{keys[0]} is before {keys[-1]} in the pairs of a dialogue. Who speaks first is "
                "not said.",
                [Flag("alternate", (USER_ROLE,))],
                more=f" If {keys[0]} does, type {typed([Flag('alternate', (ASSISTANT_ROLE,))])}.",
            )
    return None


def _said_again(sample: ChatSample, dialogue: SampledDialogue) -> Finding | None:
    """Find messages that follow themselves, or what was there of them before they were whole."""
    turns, layout = dialogue.turns, sample.layout
    again = [
        (one.text, other)
        for one, other in pairwise(turns)
        if one.found and isinstance(one.text, str) and one.role == other.role
        if one.text and str(other.text).startswith(one.text)
    ]
    # one side alone may say the same again
    may_be_said = len({other.role for _, other in again}) < 2 and not any(
        text != other.text for text, other in again
    )
    are_few = len(again) < _FEWEST_AGAIN or len(turns) > len(again) * _FEWEST_AGAIN + 1
    if are_few or may_be_said:
        return None
    array = array_in_jq(sample, dialogue)
    said_by, said = (f"({paths_in_jq(paths, turns)})" for paths in (layout.speaker, layout.text))
    once = (
        f"reduce .[] as $turn ([]; if length > 0 and (.[-1] | {said_by}) == ($turn | {said_by}) "
        f"and ((.[-1] | {said}) as $said | $turn | {said} | startswith($said)) "
        "then .[:-1] + [$turn] else . + [$turn] end)"
    )
    program = f"{array} |= ({once})" if array else f"flatten(1) | ({once})[]"
    return Finding(
        f"{counted(len(again), 'messages')} of a dialogue follow themselves or their beginning, "
        f"such as {cut(again[0][0], SHOWN_CHARACTERS)!r}: these are duplicates.",
        unless=f"This writes each once. {jq(program, slurps=not array, into='once.jsonl')}",
    )


OWN_RULES: tuple[Rule, ...] = (
    _no_texts,
    _unsaid,
    _of_each(_unread_siblings),
    models_of_replies,
    *map(
        _of_each,
        (
            branches,
            versions,
            _one_speaker,
            _contrary_names,
            _systems_by_intent,
            _templates,
            pooled_rows,
            _said_again,
        ),
    ),
    falling_order,
)
"""What a suite's own rows must not contradict."""
RULES: tuple[Rule, ...] = (
    _other_keys,
    _of_each(_rows_in_array),
    _of_each(_unread_replies),
    _of_each(_unread_reply),
    _of_each(_unread_pair),
    _of_each(_unread_turns),
    _unnamed_words,
    _replying_system,
    *map(
        _of_each,
        (
            _objects_for_texts,
            _empty_replies,
            _named_pairs,
            _lists_of_sides,
            _said_with_names,
            _unread_sides,
            _order_of_sides,
            unsorted,
        ),
    ),
    *OWN_RULES,
    same_chats,
    joined_candidates,
    repeated_beginnings,
    pooled_documents,
    joinable_parts,
    chained,
    same_names,
)
"""What the dialogues of a layout must not contradict, in the order in which it is asked."""


def chat_notes(source: Source, sample: ChatSample) -> list[str]:
    """Say what becomes of empty and repeated messages, candidates and branches in first rows."""
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
    # of messages that are rows of the suite all are counted
    are_rows = any(column.name == sample.rows.text for column in source.columns)
    said = Counter(
        (number, str(turn.role), turn.text)
        for number, dialogue in enumerate(() if are_rows else sample.dialogues)
        for turn in dialogue.turns
        if isinstance(turn.text, str)
    )
    again = Counter({each: count - 1 for each, count in said.items() if count > 1})
    # a log that was written twice has also its short ones twice
    if again.total() + len(again) < said.total():
        again = Counter({e: n for e, n in again.items() if len(e[2]) >= LEAST_CHARACTERS})
    of_rows = "of the first rows"
    notes = (
        (again.total(), "messages", f"{of_rows} repeats", f"{of_rows} repeat",
         " an earlier one of the same dialogue: such messages count twice"),
        (n_empty, "messages", "of users in the first rows has no text (images, files) and is",
         "of users in the first rows have no text (images, files) and are", " left out"),
        (n_several, "documents", f"{of_rows} has", f"{of_rows} have",
         " several candidates (choices, or paths of a tree): each is a dialogue, and its number "
         "follows the id"),
        (n_left, "edits", f"{of_rows} is", f"{of_rows} are",
         " left out: of a conversation with branches, the one of its last message is read"),
    )  # fmt: skip
    return [
        f"{counted(n, noun)} {one if n == 1 else many}{said}"
        for n, noun, one, many, said in notes
        if n
    ]
