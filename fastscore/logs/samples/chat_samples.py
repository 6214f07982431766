"""The first dialogues of a log as its reader interprets them, and the layout that the log is in."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, compress, islice
from operator import attrgetter
from typing import Any

from fastscore.logs.inputs.chats import (
    BARE,
    Turn,
    all_dialogues,
    document_of,
    holds_dialogues,
    is_array_of_turns,
    threads,
    turn_of,
)
from fastscore.logs.inputs.column_map import (
    EXAMPLE,
    LEFT_OUT,
    NO_MAP,
    NOWHERE,
    REPLY,
    ColumnMap,
    Flag,
    column_flag,
    edited_layout,
    layout_flag,
    map_source,
    own_layout,
    role_words,
)
from fastscore.logs.inputs.document_values import (
    first_at,
    json_of,
    order_of,
    scalars_of,
    text_of,
    value_at,
)
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.layout import first_keys, layout_names, load_layout, may_read
from fastscore.logs.inputs.near_names import is_called, is_of_reply, role_meanings, side_of
from fastscore.logs.samples.file_samples import FileSample, Known, sample_file
from fastscore.logs.samples.findings import Finding
from fastscore.logs.samples.profile import MOST_ROWS_SAMPLED, ROWS_SAMPLED, Record
from fastscore.logs.samples.records import read_records, records
from fastscore.suites.chats import ASSISTANT_ROLE, SYSTEM_ROLE, USER_ROLE, ChatLayout, ChatRows
from fastscore.suites.declarations import Source

_DEEPEST, _DEEPEST_ID = 4, 2
NOT_READ = "left out"
"""In `ChatSample.speakers`: nobody whose turns the suite reads."""
ROW_PER_TURN = "turns"
"""The layout of rows that are turns."""
OPENAI = "openai"
"""The layout of messages with role and content."""
NESTED = "nested"
"""The layout of dialogues inside one document, also by their ids."""
PAIRS = "pairs"
"""The layout of what a user says and the reply, side by side."""


@dataclass(slots=True)
class SampledDialogue:
    """A dialogue: what contains it, its turns with the words of their speakers, and its name.

    ``row`` is the number of its row among the first ones.
    """

    document: Any
    turns: list[Turn] = field(default_factory=list)
    name: Any = None
    row: int = 0

    @property
    def texts(self) -> list[str]:
        """What is said in it."""
        return [turn.text for turn in self.turns if isinstance(turn.text, str) and turn.text]


@dataclass(frozen=True)
class ChatSample:
    """The first dialogues of a log, interpreted by a layout."""

    layout: ChatLayout
    rows: ChatRows
    dialogues: Sequence[SampledDialogue]
    can_be_sorted: bool = True  # by an option; else the log itself must be
    documents: Sequence[Any] = ()  # the rows that they were looked for in

    @cached_property
    def words(self) -> dict[str, str]:
        """The suite's words for the words of speakers that the layout knows."""
        return role_words(self.layout, self.rows)

    def role_of(self, turn: Turn) -> str:
        """Return the role of a turn by the layout, else by the word itself."""
        word, own = str(turn.role), {meant: role for role, meant in self.rows.words}
        meant = dict(self.layout.roles).get(word) or own.get(word)
        return own.get(meant, meant) if meant else role_meanings([word]).get(word, word)

    def meanings_in(self, dialogue: SampledDialogue) -> dict[str, str]:
        """Return the roles of the words of a dialogue, which decide together."""
        roles = dict(self.layout.roles)
        said = [str(turn.role) for turn in dialogue.turns if turn.role is not None]
        words = [roles.get(word) or word for word in said]
        found = role_meanings({*words})
        sides = [found.get(word) for word in words]
        # no prompt is between two messages of a user
        amid = zip(words[1:], sides, sides[1:], sides[2:], strict=False)
        prompt = (USER_ROLE, SYSTEM_ROLE, USER_ROLE)
        return found | {word: ASSISTANT_ROLE for word, *around in amid if (*around,) == prompt}

    @property
    def has_documents(self) -> bool:
        """Whether each dialogue is a document by itself, which no option joins."""
        return not (self.layout.joined_by or self.layout.is_row_per_turn)

    @property
    def has_unnamed_rows(self) -> bool:
        """Whether rows are turns that name no dialogue, though nothing says that they are one."""
        is_asked = self.layout.is_row_per_turn and self.layout.id != ((NOWHERE,),)
        return is_asked and any(not dialogue.name for dialogue in self.dialogues)

    @property
    def found_words(self) -> list[str]:
        """The words for speakers, as they are found."""
        turns = (turn for each in self.dialogues for turn in each.turns)
        return sorted({str(turn.role) for turn in turns if turn.role is not None})

    @property
    def speakers(self) -> dict[str, str]:
        """The roles of the words for speakers, as they are read; nothing of unknown words."""
        own = {meant: role for role, meant in self.rows.words}
        found = {}
        for word in {str(turn.role) for each in self.dialogues for turn in each.turns}:
            meant = self.words.get(word, word)
            role = own.get(meant) or dict(self.layout.roles).get(word)
            if role is not None:
                found[word] = role or NOT_READ
        return found

    @property
    def said(self) -> list[list[tuple[str, Any]]]:
        """Who says what in each dialogue."""
        return [[(self.role_of(turn), turn.text) for turn in each.turns] for each in self.dialogues]

    def unread_replies(self, dialogue: SampledDialogue) -> list[str]:
        """Return the paths of replies that are left unread after the user's last turn."""
        said = [turn for turn in dialogue.turns if turn.text not in (None, "")]
        # a text without a speaker before a reply that is not read is the user's
        if not said or (said[-1].role is not None and self.role_of(said[-1]) != USER_ROLE):
            return []
        known = {*dialogue.texts}
        found: list[str] = []
        beside = [*values_beside(dialogue.document, self.layout)]
        messages = [(path, value) for path, value, is_message in beside if is_message]
        for path, value in messages or [(path, value) for path, value, _ in beside]:
            text = text_of(value)
            if isinstance(text, str) and text and text not in known:
                found.append(path)
                known.add(text)
        return found

    def count_turns(self) -> tuple[int, int]:
        """Count the turns whose speakers are known, and those whose words are not named."""
        n_known = n_unnamed = 0
        own = dict(self.rows.words)
        for dialogue in self.dialogues:
            roles = self.meanings_in(dialogue) | dict(self.layout.roles)
            for turn in dialogue.turns:
                word = str(turn.role)
                if turn.text is not None and self.words.get(word) != LEFT_OUT:
                    n_known += roles.get(word, word) in own
                    n_unnamed += word not in self.words
        return n_known, n_unnamed


def sample_chats(records: Iterable[Record], source: Source) -> ChatSample | None:
    """Interpret rows as the reader does; None of a suite that does not score chats."""
    layout = source.chat.layout if source.chat else own_layout(source)
    if layout is None or source.chat_rows is None:
        return None
    rows, records = source.chat_rows, list(records)
    # a suite's own rows may be turns of its arrays
    can_be_rows = source.chat is None and rows.array and source.dialogue_key and records
    is_row = can_be_rows and first_at(records[0], layout.turns[0]) is None
    if is_row:
        layout = replace(layout, turns=(), is_row_per_turn=True)
    if not layout.is_row_per_turn:
        found = [
            SampledDialogue(dialogue, turns, _name_of(dialogue, source, layout), row)
            for row, record in enumerate(records)
            for dialogue in all_dialogues(document_of(record, source), layout)
            for _, turns in threads(dialogue, layout)
            if turns
        ]
        documents = [document_of(record, source) for record in records]
        return ChatSample(layout, rows, found, documents=documents)
    by_name: dict[Any, SampledDialogue] = {}
    native = source.chat.native if source.chat else source
    others = [native.column(key).keys for key in native.dialogue_key if key != rows.id]
    for record in records:
        found_at = (first_at(record, paths) for paths in (*layout.id, *others, layout.model))
        names = tuple(str(each) for each in found_at if each is not None)
        dialogue = by_name.setdefault(names, SampledDialogue(record, name=":".join(names)))
        dialogue.turns.append(turn_of(record, layout))
    for dialogue in by_name.values() if layout.sort_by else ():
        dialogue.turns.sort(key=lambda turn: order_of(value_at(turn.found, layout.sort_by)))
    return ChatSample(layout, rows, [*by_name.values()], can_be_sorted=not is_row)


def _name_of(dialogue: Any, source: Source, layout: ChatLayout) -> str | None:
    """Return what names a dialogue that is a document: its id, and the model if there is one."""
    rows = source.chat_rows
    assert rows is not None
    ids = layout.id or (source.column(rows.id).keys,)
    models = layout.model or (source.column(rows.model).keys if rows.model else ())
    id, *others = (first_at(dialogue, paths) for paths in (*ids, models))
    return None if id is None else ":".join(str(each) for each in (id, *others) if each is not None)


def sample_speakers(file: InputFile, source: Source) -> ChatSample | None:
    """Interpret a file's first rows; None of a suite that does not score chats."""
    return sample_chats(islice(read_records(file, source), MOST_ROWS_SAMPLED), source)


def values_beside(
    value: Any, layout: ChatLayout, path: str = "", depth: int = 0
) -> Iterator[tuple[str, Any, bool]]:
    """Yield the texts that are called replies, with their paths, unless they are read.

    The text of a message of the assistant, the third is true, is found under any name.
    """
    read = {each.partition("[")[0] for paths in layout.turns for each in paths}
    read |= {*layout.ignored, *(each for paths in layout.id for each in paths), *layout.model}
    if not isinstance(value, dict) or depth > _DEEPEST:
        return
    for key, stored in value.items():
        at = f"{path}{key}"
        inside = json_of(stored)
        # of an object at a place that is read a text may be left
        is_left = side_of(key) > 0 or is_called("beside_reply", key)
        if is_left or (at in read and not isinstance(inside, dict)):
            continue
        is_array = isinstance(inside, list) and bool(inside)
        first = inside[0] if is_array else inside
        if isinstance(first, dict):
            message = _message(first, layout)
            if message is not None:
                yield at, message, True
            else:
                each = f"{at}[]." if is_array else f"{at}."
                yield from values_beside(first, layout, each, depth + 1)
        elif is_of_reply(at) and isinstance(first, str) and first.strip():
            yield f"{at}[]" if is_array else at, first, False


def _message(value: Record, layout: ChatLayout) -> Any:
    """Return the content of what is a message of the assistant; None of anything else."""
    ends = {key.rpartition(".")[2]: key for key in reversed(value)}
    role, content = (
        next((value[ends[name]] for name in names if name in ends), None)
        for names in (("role", *layout.speaker), ("content", *layout.text))
    )
    if role is None or content is None or role_meanings([str(role)]).get(role) == USER_ROLE:
        return None
    return content


def has_keys_of(document: Any, is_flat: bool, layout: ChatLayout) -> bool:
    """Tell whether a document, or a dialogue in it, has the keys that a layout needs.

    A document that is flat contains no object or array, so it is the only dialogue in it.
    """
    if layout.is_row_per_turn or (is_flat and "" in layout.dialogues):
        return all(first_at(document, paths) is not None for paths in layout.needs)
    if is_flat:
        return False
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


@dataclass(frozen=True, slots=True)
class _Fit:
    """A layout whose keys a file has: the source by it, replies that it leaves unread, its rank.

    ``is_inside`` tells whether the dialogues are inside a document that is none.
    """

    name: str
    source: Source
    unread: Sequence[str]
    is_inside: bool
    rank: tuple[Any, ...]


def fitting_layout(
    suite: str, source: Source, seen: FileSample, first: Sequence[Record]
) -> list[Flag]:
    """Return the flags of the layout that a file is in; none without one, or of several.

    A file is in a layout if a dialogue of its first rows has the layout's own keys, some speakers
    are known, and no reply is left unread. Of layouts that read the same the simplest is taken.
    """
    if source.chat_rows is None or source.chat is not None:
        return []
    if not first and seen.file.size:  # lines or documents that are arrays
        arrays = records(seen.file, BARE, holds_rows=is_array_of_turns)
        first = list(islice(arrays, ROWS_SAMPLED))
    first = rows_of_arrays(first, source) or first
    found = list(_layouts_of(first, suite, source))
    complete = [each for each in found if not each.unread]
    fits = [each for each in complete or found if _has_all(each.source, seen)]
    # what another layout takes for parts of one dialogue are no dialogues by their keys
    fits = [each for each in fits if not each.is_inside] or fits
    if not fits:
        return []
    best = min(fits, key=attrgetter("rank"))
    said = _said(first, best.source)
    others = [each.name for each in fits if _said(first, each.source) != said]
    if others:
        raise Finding(
            "it is in several layouts, which read it in different ways: "
            f"{', '.join(sorted((best.name, *others)))}.",
            unless=f"Type one of them, for example {EXAMPLE}.",
            example=[layout_flag(best.name)],
        ).refused(seen.file.path)
    replies = [column_flag(REPLY, path) for path in best.unread]
    if len(replies) > 1:
        raise Finding(
            f"each of {', '.join(best.unread)} may be the last reply.",
            unless=f"Name the one to read, for example {EXAMPLE}.",
            example=[layout_flag(best.name), replies[0]],
        ).refused(seen.file.path)
    return [layout_flag(best.name), *replies]


def rows_of_arrays(first: Sequence[Record], source: Source) -> list[Record]:
    """Return the rows of arrays in which a key names several dialogues; no row otherwise."""
    bare = source.array_column or BARE
    arrays = (record[bare] for record in first if set(record) == {bare})
    rows = [row for each in arrays if isinstance(each, list) for row in each]
    rows = [row for row in rows if isinstance(row, dict)]
    return rows if key_of_dialogues(rows) else []


def key_of_dialogues(rows: Sequence[Record]) -> str:
    """Return a key that is called as names of dialogues are and has several values, if any."""
    beside = [dict(scalars_of(row, _DEEPEST_ID)) for row in rows]
    for path in dict.fromkeys(chain.from_iterable(beside)):
        names = {str(each[path]) for each in beside if each.get(path) not in (None, "")}
        if len(names) > 1 and is_called("dialogue", path.rpartition(".")[2]):
            return path
    return ""


def _said(first: Sequence[Record], source: Source) -> list[list[tuple[str, Any]]]:
    sample = sample_chats(first, source)
    return sample.said if sample is not None else []


def _layouts_of(first: Sequence[Record], suite: str, source: Source) -> Iterator[_Fit]:
    """Yield the layouts whose keys records have."""
    rows = source.chat_rows
    bare = source.array_column or BARE
    holds_arrays = any(set(record) <= {BARE, bare} for record in first)
    # an array is a document by itself
    documents = [
        record[bare] if set(record) == {bare} and isinstance(record[bare], list) else record
        for record in first
    ]
    are_objects = all(isinstance(each, dict) for each in documents)
    are_flat = [
        isinstance(each, dict)
        and not any(isinstance(json_of(value), dict | list) for value in each.values())
        for each in documents
    ]
    keys = first_keys(documents) if are_objects else ()
    for name in layout_names():
        if are_objects and not may_read(name, documents, keys):
            continue
        layout = load_layout(name)
        chat = layout.chat
        if chat is None or rows is None or not chat.needs:
            continue
        # of rows with such names a suite of rows maps columns
        can_be_turns = rows.can_be_turns or (not rows.array and name != ROW_PER_TURN)
        if chat.is_row_per_turn and (holds_arrays or not can_be_turns):
            continue
        columns = layout.of(suite)
        has_keys = partial(has_keys_of, layout=edited_layout(columns, rows))
        own = [*compress(first, map(has_keys, documents, are_flat))]
        if not own:
            continue
        mapped = map_source(source, columns)
        is_compiled = mapped.document_chat is None
        if is_compiled and holds_arrays and not rows.array:
            continue  # paths begin at keys
        sample = sample_chats(own, mapped)
        if sample is None:
            continue
        n_read = len({each.row for each in sample.dialogues})
        if n_read < len(own) and not chat.is_row_per_turn:
            continue  # of some rows it reads no turn
        unread = next(filter(None, map(sample.unread_replies, sample.dialogues)), [])
        if any(path.endswith("].role") for path in unread):
            continue  # the array is a chat by itself
        if unread:
            mapped = map_source(source, columns | ColumnMap(((REPLY, unread[0]),)))
            sample = sample_chats(own, mapped) or sample
        roles = [[role for role, text in each if text is not None] for each in sample.said]
        has_reply = any(USER_ROLE in each and each[-1] == ASSISTANT_ROLE for each in roles)
        if chat.said_by and not has_reply:
            continue  # no reply is at its places
        n_known, n_unnamed = sample.count_turns()
        if n_known:
            steps = (*chat.turns, *chat.id, chat.speaker, chat.text, chat.dialogues)
            is_of_texts = not chat.speaker and not chat.text
            rank = (n_unnamed, not is_of_texts, not is_compiled, sum(map(len, steps)), name)
            yield _Fit(name, mapped, unread, "" not in chat.dialogues, rank)


def _has_all(source: Source, seen: FileSample) -> bool:
    """Tell whether everything that is needed has a value; words may still have to be mapped."""
    read = None if seen.file.size else seen.read
    sample = sample_file(seen.file, source, Known(), read)
    return sample.rows > 0 and not sample.open


def row_per_turn(files: Sequence[InputFile], suite: str, source: Source) -> ColumnMap:
    """Return the map of logs whose rows are turns in the suite's own words; else an empty one."""
    rows = source.chat_rows
    if rows is None or not rows.can_be_turns or source.chat is not None or not files:
        return NO_MAP
    if files[0].path == STDIN or not files[0].size:
        return NO_MAP
    array = source.column(rows.array)
    first = list(islice(read_records(files[0], source), ROWS_SAMPLED))
    is_turns = first and all(
        record.get(rows.speaker) is not None
        and rows.text in record
        and not any(key in record for key in array.keys)
        for record in first
    )
    return load_layout(ROW_PER_TURN).of(suite) if is_turns else NO_MAP
