"""Chats: where their parts are in a document, and how they become the rows of a suite. Data only.

A `ChatLayout` describes other people's documents, `ChatRows` the rows of a suite. Paths are keys
joined by dots; a number is a place in an array. A key that contains dots is found too. JSON text is
read as the value that it spells.
"""

from dataclasses import dataclass

Paths = tuple[str, ...]
"""Paths of one value, best first."""
Words = tuple[tuple[str, str], ...]
"""Words, each with what it means."""

USER_ROLE, ASSISTANT_ROLE, SYSTEM_ROLE, TOOL_ROLE = ROLES = ("user", "assistant", "system", "tool")
"""Who speaks, in the words of layouts."""
NOT_A_TURN = ""
"""The meaning of a word whose messages are left out."""
BEFORE_REPLY = "reply"
"""In `ChatLayout.alternate`: the turn before the first one with a speaker is the other one's."""
CHATS = "chats"
"""In place of a suite: chats of any kind, which layouts describe."""
ANY_OTHER = "*"
"""In `ChatLayout.roles`: every word that is not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLayout:
    """Where the parts of chats are in other people's documents."""

    # where dialogues are in a document, the first that leads to any: ``""`` is the document itself,
    # ``samples[]`` the elements of an array, ``*`` the values of an object by their ids
    dialogues: Paths = ("",)
    # what names a dialogue: the values of several places are joined by a colon
    id: tuple[Paths, ...] = ()
    # which model replies and under which condition, in the dialogue or else in the document
    model: Paths = ()
    condition: Paths = ()
    # where a dialogue's turns are. Those of several places follow each other. A place is an array
    # of turns, one turn, or a text.
    turns: tuple[Paths, ...] = ()
    is_row_per_turn: bool = False  # whether each document is one turn; `id` names its dialogue
    # where a turn says who speaks, and what
    speaker: Paths = ()
    text: Paths = ()
    # whether each key that is a word of `roles` has what this speaker says: ``{user: ..., bot:
    # ...}``. Who is named by `alternate` begins, by default the user.
    is_keyed_by_speaker: bool = False
    # words for speakers and what they mean: one of `ROLES`, `NOT_A_TURN`, or a suite's own word
    roles: Words = ()
    # places of `turns` and the role that speaks in them, if the turns do not name a speaker
    said_by: Words = ()
    # keys of a dialogue whose value is the name of a speaker, and that speaker's role
    beside: Words = ()
    # the key of a turn's replies, if turns form a tree: every path from root to leaf is a dialogue
    replies: str = ""
    # the key of the turn before, if the turns are an object by their ids, and where a dialogue
    # names its last one: that one's path is the dialogue. Without a name it is the last turn.
    parent: str = ""
    leaf: Paths = ()
    # who begins, if turns without a speaker take turns; `BEFORE_REPLY` counts from the first turn
    # that has one
    alternate: str = ""
    # the key of a turn, or of a document that is joined, by which a dialogue is sorted
    sort_by: str = ""
    # where a document names the dialogue of which it is a part, if documents are joined
    joined_by: Paths = ()
    # names of tags that are left out of texts with what they contain: ``think``
    without: Paths = ()
    # where a dialogue of this layout has a value: it has one at each of these places
    needs: tuple[Paths, ...] = ()
    ignored: Paths = ()  # keys of a dialogue that are left unread on purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRows:
    """How a chat becomes the rows of a suite."""

    id: str  # the column that names a dialogue
    array: str = ""  # the column whose array contains the turns; empty if each turn is a row
    # the columns, or items of the array, for the speaker and the text
    speaker: str
    text: str
    # the suite's words for the roles that it reads. Messages of other roles are left out.
    words: Words
    # speakers that the suite reads as the system, casefolded; empty if intents do not tell it
    systems: tuple[str, ...] = ()
    of_turn: tuple[str, ...] = ()  # other columns that belong to a turn, if each turn is a row
    # the columns for these labels; empty if the suite has none
    model: str = ""
    condition: str = ""
    # whether a dialogue begins with the user: what others say before is left out
    user_begins: bool = False
    # whether rows that are turns are put together by their dialogue, in `array`
    can_be_turns: bool = False
