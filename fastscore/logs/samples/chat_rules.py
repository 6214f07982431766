"""What the first dialogues of a log say of themselves, and what must be asked.

Each rule looks at dialogues as the reader interprets them, and refuses what they contradict, with
the options that read it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from fastscore.errors import counted
from fastscore.logs.inputs.chats import (
    Turn,
    all_dialogues,
    document_of,
    holds_dialogues,
    row_turn,
    threads,
)
from fastscore.logs.inputs.column_map import (
    LEFT_OUT,
    REPLY,
    Flag,
    UnmappedLogError,
    column_flag,
    layout_flag,
    own_layout,
    role_words,
    typed,
    value_flag,
)
from fastscore.logs.inputs.document_values import (
    NO_ORDER,
    OF_DATE,
    OF_NUMBER,
    first_at,
    json_of,
    order_of,
    scalars_of,
    text_of,
    value_at,
)
from fastscore.logs.inputs.found_keys import (
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    Record,
    is_of_reference,
    is_of_reply,
    role_meanings,
)
from fastscore.logs.integrity.rejects import cut
from fastscore.suites.chats import ANY_OTHER, ASSISTANT_ROLE, SYSTEM_ROLE, USER_ROLE, ChatLayout
from fastscore.suites.declarations import Source

_DEEPEST, _DEEPEST_ORDER = 4, 2
_SHOWN_CHARACTERS = 40
_FEWEST_REPEATED, _MANY_REPEATED = 2, 4
"""How many turns dialogues share that one continues, with a key of both and without one."""
_TIME = re.compile(
    r"(.*[_. -])?(date|ts)([_ -]?(ms|s|us|ns|utc))?|.*(time|timestamp)([_ -]?(ms|s|us|ns|utc))?|"
    r"(.*[_. -])?(created|sent)([_ ]?at)?",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"((turn|message|msg|utterance|step)[_ ]?)?(index|idx|number|no|num|position|seq|order)|"
    r"(turn|step|utterance)([_ ]?id)?|(turn|message|step)(Index|Idx|Number)",
    re.IGNORECASE,
)
_YEAR_2000, _YEAR_2100, _SPAN = 946_684_800, 4_102_444_800, 366 * 86_400
_UNITS = (10**9, 10**6, 10**3, 1)
"""How many units a second has in which times are counted, the smallest unit first."""
_FEWEST_STEPS = 3
_DATE_OF_MONGO = ".$date"
_OF_PYTHON = re.compile(r"\s*(\[\s*)?[\[{(]\s*'")
_PARENT = re.compile(
    r"parent([_ -]?(message|msg|turn|node))?([_ -]?(u?u?id))?|parent\w*(Id|ID|Uuid)", re.I
)
_SLACK = {"type", "user", "text", "ts"}
"""The keys of messages in Slack's exports."""
_SESSION = re.compile(
    r"(^|[._])(session|conversation|thread|chat|dialog(ue)?)([._ -]?(id|uid|key))?$|"
    r"(^|[._])(session|conversation|thread|chat|dialogue)(Id|ID|Key)$"
)


@dataclass(slots=True)
class SampledDialogue:
    """A dialogue of the first rows.

    Parameters
    ----------
    document
        What contains it.
    turns
        Its turns, with the words of their speakers.
    name
        What names it, None for nothing.
    """

    document: Any
    turns: list[Turn] = field(default_factory=list)
    name: Any = None

    @property
    def texts(self) -> list[str]:
        """What is said in it."""
        return [turn.text for turn in self.turns if isinstance(turn.text, str) and turn.text]


def sampled_dialogues(records: Iterable[Record], source: Source) -> list[SampledDialogue]:
    """Interpret the first rows as the reader does; none of a suite that does not score chats."""
    layout = source.chat.layout if source.chat else own_layout(source)
    if layout is None:
        return []
    found: list[SampledDialogue] = []
    if layout.is_row_per_turn:
        by_name: dict[Any, SampledDialogue] = {}
        native = source.chat.native if source.chat else source
        id_column = source.chat_rows.id if source.chat_rows else ""
        others = [native.column(key).keys for key in native.dialogue_key if key != id_column]
        labels = [layout.model] if layout.model else []
        for record in records:
            found_at = (first_at(record, paths) for paths in (*layout.id, *others, *labels))
            names = tuple(str(each) for each in found_at if each is not None)
            dialogue = by_name.setdefault(names, SampledDialogue(record, name=":".join(names)))
            dialogue.turns.append(row_turn(record, layout))
        return list(by_name.values())
    for record in records:
        for dialogue in all_dialogues(document_of(record, source), layout):
            own = first_at(dialogue, layout.id[0]) if layout.id else None
            for _, turns in threads(dialogue, layout):
                if turns:
                    found.append(SampledDialogue(dialogue, turns, own))
    return found


@dataclass(frozen=True, slots=True)
class _Sample:
    """Dialogues of a file, and how it is read."""

    file: str
    source: Source
    layout: ChatLayout
    dialogues: Sequence[SampledDialogue]

    def role_of(self, turn: Turn) -> str:
        """Return the role of a turn by the layout, else by the word itself."""
        roles = dict(self.layout.roles)
        word = str(turn.role)
        own = {meant: role for role, meant in self.source.chat_rows.words}  # type: ignore[union-attr]
        return roles.get(word) or own.get(word) or role_meanings([word]).get(word, word)


def chat_error(file: str, source: Source, records: Iterable[Record]) -> UnmappedLogError | None:
    """Return what the first dialogues contradict, None if nothing."""
    layout = source.chat.layout if source.chat else own_layout(source)
    if layout is None:
        return None
    records = islice(records, MOST_ROWS_SAMPLED if layout.is_row_per_turn else ROWS_SAMPLED)
    sample = _Sample(file, source, layout, sampled_dialogues(records, source))
    # a suite's own rows say by themselves what they are
    rules = RULES if source.chat else (_restarts, _falling_order)
    return next((error for rule in rules if (error := rule(sample)) is not None), None)


def foreign_rows(file: str, records: Iterable[Record]) -> UnmappedLogError | None:
    """Return the error of rows that must be converted first, None of others."""
    for record in islice(records, ROWS_SAMPLED):
        for key, value in record.items():
            if isinstance(value, str) and _OF_PYTHON.match(value):
                return UnmappedLogError(
                    f"{file}: {key} is a list or a dict as Python prints it, with single quotes, "
                    f"not JSON: {cut(value, _SHOWN_CHARACTERS)}",
                    [],
                    unless="Write the log by to_json(orient='records', lines=True), or by "
                    "to_parquet.",
                )
            first = value[0] if isinstance(value, list) and value else record
            if isinstance(first, dict) and first.keys() >= _SLACK:
                return UnmappedLogError(
                    f"{file}: it is a channel as Slack exports it.",
                    [],
                    unless="Write its messages with `jq -c '.[] | {conversation_id: (.thread_ts // "
                    f".ts), speaker: .user, text, ts}}'`, and read them with "
                    f"{typed([layout_flag('turns')])}.",
                )
    return None


def _unread_reply(sample: _Sample) -> UnmappedLogError | None:
    """Refuse dialogues that end before a reply which is elsewhere."""
    for dialogue in sample.dialogues:
        path = unread_reply(dialogue, sample.layout, sample.role_of)
        if path is not None:
            return UnmappedLogError(
                f"{sample.file}: a dialogue ends with the user, and {path} is not read. It "
                "contains what is probably the reply.",
                [column_flag(REPLY, path)],
            )
    return None


def unread_reply(
    dialogue: SampledDialogue, layout: ChatLayout, role_of: Callable[[Turn], str]
) -> str | None:
    """Return the path of a reply that a layout leaves unread after the user's last turn."""
    said = [turn for turn in dialogue.turns if turn.text not in (None, "")]
    # a text without a speaker before a reply that is not read is the user's
    if not said or (said[-1].role is not None and role_of(said[-1]) != USER_ROLE):
        return None
    known = {*dialogue.texts}
    for path, value in _values_beside(dialogue.document, layout):
        text = text_of(value["content"] if isinstance(value, dict) else value)
        if isinstance(text, str) and text and text not in known:
            return path
    return None


def _values_beside(
    value: Any, layout: ChatLayout, path: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield the texts and messages that are called replies, with their paths, unless they are read.

    A message is found under any name.
    """
    read = {each.partition("[")[0] for paths in layout.turns for each in paths}
    read |= {*layout.ignored, *(each for paths in layout.id for each in paths), *layout.model}
    if not isinstance(value, dict) or depth > _DEEPEST:
        return
    for key, stored in value.items():
        at = f"{path}{key}"
        if at in read or is_of_reference(key):
            continue
        inside = json_of(stored)
        first = inside[0] if isinstance(inside, list) and inside else inside
        if isinstance(first, dict):
            message = _message(first)
            if message is not None:
                yield at, {"content": message}
                continue
            each = f"{at}[]." if isinstance(inside, list) else f"{at}."
            yield from _values_beside(first, layout, each, depth + 1)
        elif is_of_reply(at) and isinstance(first, str) and first.strip():
            yield f"{at}[]" if isinstance(inside, list) else at, first


def _message(value: Record) -> Any:
    """Return the content of what is a message of the assistant; None of anything else."""
    role = next((value[key] for key in value if key.rpartition(".")[2] == "role"), None)
    content = next((value[key] for key in value if key.rpartition(".")[2] == "content"), None)
    if role is None or content is None or role_meanings([str(role)]).get(role) == USER_ROLE:
        return None
    return content


def _unnamed_words(sample: _Sample) -> UnmappedLogError | None:
    """Refuse words for speakers that the layout does not name, and that others beside them explain.

    The words of one dialogue decide: `agent` beside `user` replies.
    """
    chat, rows = sample.source.chat, sample.source.chat_rows
    if chat is None or rows is None or ANY_OTHER in dict(chat.layout.roles):
        return None
    named, own = role_words(chat.layout, rows), dict(rows.words)
    meant: dict[str, set[str]] = {}
    for dialogue in sample.dialogues:
        words = {str(turn.role) for turn in dialogue.turns if turn.role is not None}
        roles = dict(chat.layout.roles)
        meanings = role_meanings({roles.get(word) or word for word in words})
        for word in words - named.keys():
            # without words of a layout those of the suite are its own
            if word in meanings and (roles or word not in own.values()):
                meant.setdefault(word, set()).add(meanings[word])
    flags = []
    for word, found in sorted(meant.items()):
        if len(found) == 1:
            flags.append(value_flag(rows.speaker, word, own.get(found.pop(), LEFT_OUT)))
    flags = [flag for flag in flags if flag.words[2] or rows.array]
    if not flags:
        return None
    every = sorted({str(turn.role) for each in sample.dialogues for turn in each.turns})
    unknown = ", ".join(repr(flag.words[1]) for flag in flags)
    return UnmappedLogError(
        f"{sample.file}: {rows.speaker} is {', '.join(map(repr, every))}. The layout or the map of "
        f"words does not name {unknown}.",
        flags,
    )


def _replying_system(sample: _Sample) -> UnmappedLogError | None:
    """Refuse dialogues without an assistant in which what the layout takes for a prompt replies."""
    rows = sample.source.chat_rows
    if rows is None:
        return None
    replies: list[SampledDialogue] = []
    prompts: list[SampledDialogue] = []
    words: set[str] = set()
    for dialogue in sample.dialogues:
        roles = [sample.role_of(turn) for turn in dialogue.turns]
        if SYSTEM_ROLE not in roles:
            continue
        begins = roles.index(USER_ROLE) if USER_ROLE in roles else len(roles)
        is_reply = ASSISTANT_ROLE not in roles and SYSTEM_ROLE in roles[begins:]
        (replies if is_reply else prompts).append(dialogue)
        if is_reply:
            words |= {
                str(turn.role)
                for turn, role in zip(dialogue.turns, roles, strict=True)
                if role == SYSTEM_ROLE
            }
    if not replies:
        return None
    named = ", ".join(map(repr, sorted(words)))
    own = dict(rows.words)[ASSISTANT_ROLE]
    return UnmappedLogError(
        f"{sample.file}: beside the user only {named} speaks in {len(replies):,} of the first "
        f"{counted(len(sample.dialogues), 'dialogues')}, which the layout takes for a prompt.",
        [] if prompts else [value_flag(rows.speaker, word, own) for word in sorted(words)],
        unless="It is a prompt in others: write both kinds to files of their own.",
    )


def _falling_order(sample: _Sample) -> UnmappedLogError | None:
    """Refuse dialogues whose times or steps fall."""
    if sample.layout.sort_by:
        return None
    for dialogue in sample.dialogues:
        fall = _fall(dialogue.turns)
        if fall is not None:
            key, *values = fall
            before, after = (cut(repr(value), _SHOWN_CHARACTERS) for value in values)
            named = f" {dialogue.name}" if dialogue.name is not None else ""
            return UnmappedLogError(
                f"{sample.file}: the turns of dialogue{named} are not in order: {key} is {after} "
                f"after {before}.",
                [Flag("sort_by", (key,))],
                more=f" To keep the order of the file, type {typed([Flag('sort_by', ('line',))])}.",
            )
    return None


def _fall(turns: Sequence[Turn]) -> tuple[str, Any, Any] | None:
    """Return a key that says the order of turns, and two values of it that fall; None without any.

    Times count before steps, and one that never falls proves the order.
    """
    if len(turns) <= 1:
        return None
    firsts = scalars_of(turns[0].found, _DEEPEST_ORDER)
    values = {key: [value_at(turn.found, key) for turn in turns] for key, _ in firsts}
    for says_order in (_are_times, _are_steps):
        falls = []
        for key, found in values.items():
            if says_order(key.removesuffix(_DATE_OF_MONGO).rpartition(".")[2], found):
                pairs = pairwise(found)
                fall = next(((a, b) for a, b in pairs if order_of(b) < order_of(a)), None)
                if fall is None:
                    return None
                falls.append((key, *fall))
        if falls:
            return falls[0]
    return None


def _are_times(name: str, values: Sequence[Any]) -> bool:
    """Tell whether values are times: by their key, or by themselves if no two are the same."""
    orders = [order_of(value) for value in values]
    kinds = {kind for kind, _ in orders}
    if len(kinds) > 1 or kinds == {NO_ORDER}:
        return False
    if _TIME.fullmatch(name):
        return True
    if len({*orders}) < len(orders):
        return False
    if kinds == {OF_DATE}:
        return True
    least, most = min(orders)[1], max(orders)[1]
    unit = next((each for each in _UNITS if _YEAR_2000 * each <= least), None)
    return unit is not None and most < _YEAR_2100 * unit and most - least < _SPAN * unit


def _are_steps(name: str, values: Sequence[Any]) -> bool:
    """Tell whether values number turns: by their key, or as they are all numbers from 0 or 1 on."""
    orders = [order_of(value) for value in values]
    if {kind for kind, _ in orders} != {OF_NUMBER}:
        return False
    numbers = sorted(number for _, number in orders)
    counts = [float(number) for number in range(len(numbers))]
    return bool(_STEP.fullmatch(name)) or (
        len(numbers) >= _FEWEST_STEPS and numbers in (counts, [number + 1 for number in counts])
    )


def _repeated_beginnings(sample: _Sample) -> UnmappedLogError | None:
    """Refuse dialogues that are beginnings of another one, as traces with their history are."""
    if sample.layout.joined_by or sample.layout.is_row_per_turn or sample.layout.replies:
        return None
    texts = [tuple(dialogue.texts) for dialogue in sample.dialogues]
    beginnings: Counter[str | None] = Counter()
    for one, shorter in zip(sample.dialogues, texts, strict=True):
        for other, longer in zip(sample.dialogues, texts, strict=True):
            if _FEWEST_REPEATED <= len(shorter) < len(longer):
                if longer[: len(shorter)] != shorter or one.document is other.document:
                    continue
                key = _shared_key(one.document, other.document)
                if key is not None or len(shorter) >= _MANY_REPEATED:
                    beginnings[key] += 1
                    break
    if not beginnings:
        return None
    key = beginnings.most_common(1)[0][0]
    same = f" with the same {key}" if key else ""
    return UnmappedLogError(
        f"{sample.file}: {beginnings.total():,} of the first "
        f"{counted(len(sample.dialogues), 'dialogues')} are beginnings of a longer one{same}: "
        "their turns would count several times.",
        [Flag("dialogue", (key,))] if key else [],
        unless="Keep the longest of each, or name the key of their session: "
        f"{typed([Flag('dialogue', ('KEY',))])}.",
    )


def _branches(sample: _Sample) -> UnmappedLogError | None:
    """Refuse lists of turns in which several follow the same one."""
    if sample.layout.parent or sample.layout.replies or sample.layout.is_row_per_turn:
        return None
    for dialogue in sample.dialogues:
        for key, _ in scalars_of(dialogue.turns[0].found, 1):
            above = [str(turn.found.get(key)) for turn in dialogue.turns]
            several = [name for name, count in Counter(above).items() if count > 1]
            if _PARENT.fullmatch(key) and _are_ids(several, dialogue.turns, key):
                return UnmappedLogError(
                    f"{sample.file}: the turns of a dialogue are no line but a tree: {key} is "
                    f"{several[0]!r} in {above.count(several[0]):,} of them.",
                    [],
                    unless="Write each path from the first turn to a last one as a dialogue.",
                )
    return None


def _are_ids(names: Sequence[str], turns: Sequence[Turn], but: str) -> bool:
    """Tell whether other turns have such ids, in a key in which no two are the same."""
    for key in turns[0].found if names else ():
        ids = [str(turn.found.get(key)) for turn in turns]
        if key != but and len({*ids}) == len(ids) and {*names} & {*ids}:
            return True
    return False


def _restarts(sample: _Sample) -> UnmappedLogError | None:
    """Refuse rows of one dialogue that begin again where another key has another value."""
    rows = sample.source.chat_rows
    if rows is None or not sample.layout.is_row_per_turn:
        return None
    read = {*sample.layout.speaker, *sample.layout.text}
    for dialogue in sample.dialogues:
        turns = dialogue.turns
        first = (turns[0].role, turns[0].text)
        begins = [place for place, turn in enumerate(turns) if (turn.role, turn.text) == first]
        for key in turns[0].found if len(begins) > 1 else ():
            values = [turn.found.get(key) for turn in turns]
            changes = [n for n, (one, other) in enumerate(pairwise(values), 1) if one != other]
            if key not in read and [0, *changes] == begins:
                return UnmappedLogError(
                    f"{sample.file}: dialogue {dialogue.name} begins again where {key} is "
                    f"{values[begins[1]]!r} after {values[0]!r}: these are several dialogues.",
                    [column_flag(rows.model, key)] if rows.model else [],
                    unless="Give them ids of their own, or write a file for each.",
                )
    return None


def _named_pairs(sample: _Sample) -> UnmappedLogError | None:
    """Refuse pairs whose first texts are the names of speakers, not what users say."""
    rows = sample.source.chat_rows
    if rows is None or sample.layout.speaker:
        return None
    for dialogue in sample.dialogues:
        firsts = [turn.text for turn in dialogue.turns[::2] if isinstance(turn.text, str)]
        roles = {*role_meanings({*firsts}).values()}
        is_pair = len(firsts) > 1 and not any(turn.found for turn in dialogue.turns)
        if is_pair and ({USER_ROLE, ASSISTANT_ROLE} <= roles or 2 * len({*firsts}) <= len(firsts)):
            return UnmappedLogError(
                f"{sample.file}: the first texts of pairs are {', '.join(sorted({*firsts}))!r}: "
                "these are speakers, and the second texts are what they say.",
                [column_flag(rows.speaker, "0"), column_flag(rows.text, "1")],
            )
    return None


def _shared_key(one: Any, other: Any) -> str | None:
    """Return the key that is called as names of sessions are, and has one value in both."""
    for path, value in scalars_of(one, _DEEPEST):
        if _SESSION.search(path) and value_at(other, path) == value:
            return path
    return None


RULES = (
    _unread_reply,
    _unnamed_words,
    _replying_system,
    _named_pairs,
    _branches,
    _restarts,
    _falling_order,
    _repeated_beginnings,
)
"""What the dialogues of a sample must not contradict, in the order in which it is asked."""


def chat_notes(source: Source, records: Iterable[Record]) -> list[str]:
    """Say what a layout makes of candidates and of branches in the first rows."""
    chat = source.chat
    if chat is None or chat.layout.is_row_per_turn:
        return []
    n_several = n_left = 0
    for record in records:
        for dialogue in all_dialogues(document_of(record, source), chat.layout):
            several = sum(1 for _ in threads(dialogue, chat.layout)) > 1
            n_several += several
            if chat.layout.parent:
                nodes = first_at(dialogue, chat.layout.turns[0])
                above = Counter(
                    node.get(chat.layout.parent)
                    for node in nodes.values()
                    if isinstance(node, dict)
                )
                n_left += sum(count - 1 for parent, count in above.items() if parent is not None)
    notes = []
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


def has_keys_of(document: Any, layout: ChatLayout) -> bool:
    """Tell whether a document, or a dialogue in it, has the keys that a layout needs."""
    if layout.is_row_per_turn:
        return all(first_at(document, paths) is not None for paths in layout.needs)
    if "" not in layout.dialogues and not holds_dialogues(document, layout):
        return False
    found = list(all_dialogues(document, layout))
    if isinstance(document, dict) and "*" in layout.dialogues:
        # one value by its key is no map of ids, nor are a history and its reply
        keys = [key for key, value in document.items() if any(value is each for each in found)]
        if len(keys) == 1 or any(map(is_of_reply, keys)):
            return False
    for dialogue in found:
        # an array of turns by itself stands for the one that the layout names
        named = {layout.turns[0][0]: dialogue} if isinstance(dialogue, list) else dialogue
        if all(
            first_at(named, paths) is not None or first_at(dialogue, paths) is not None
            for paths in layout.needs
        ):
            return True
    return False


def first_unread(records: Sequence[Record], source: Source) -> str:
    """Return the path of the first reply that a layout leaves unread, empty for none."""
    layout = source.chat.layout if source.chat else ChatLayout()
    sample = _Sample("", source, layout, sampled_dialogues(records, source))
    found = (unread_reply(each, layout, sample.role_of) for each in sample.dialogues)
    return next((path for path in found if path), "")


def count_turns(records: Sequence[Record], source: Source) -> tuple[int, int]:
    """Count the turns in records whose speakers are known, and those whose words are not named."""
    chat = source.chat
    if chat is None:
        return 0, 0
    named = role_words(chat.layout, chat.rows)
    n_known = n_unnamed = 0
    for dialogue in sampled_dialogues(records, source):
        words = {str(turn.role) for turn in dialogue.turns}
        roles = role_meanings(words) | dict(chat.layout.roles)
        known = {word for word in words if roles.get(word, word) in dict(chat.rows.words)}
        for turn in dialogue.turns:
            if turn.text is not None and named.get(str(turn.role)) != LEFT_OUT:
                n_known += str(turn.role) in known
                n_unnamed += str(turn.role) not in named
    return n_known, n_unnamed


def reads_alike(one: Source, other: Source, records: Sequence[Record]) -> bool:
    """Tell whether two layouts make the same dialogues of records."""
    return _said(one, records) == _said(other, records)


def _said(source: Source, records: Sequence[Record]) -> list[list[tuple[str, Any]]]:
    layout = source.chat.layout if source.chat else ChatLayout()
    sample = _Sample("", source, layout, ())
    return [
        [(sample.role_of(turn), turn.text) for turn in dialogue.turns]
        for dialogue in sampled_dialogues(records, source)
    ]
