"""What the words of a role column mean: decided for all words together."""

from collections.abc import Collection

from fastscore.logs.inputs.column_map import LEFT_OUT, Flag, value_flag
from fastscore.logs.inputs.similar_names import nearest_words
from fastscore.suites.chats import ASSISTANT_ROLE, SYSTEM_ROLE, TOOL_ROLE, USER_ROLE, ChatRows

_WORDS = {
    USER_ROLE: "user users human customer client guest seeker prompter person caller tourist "
    "traveler patient buyer initiator",
    ASSISTANT_ROLE: "assistant bot ai gpt chatgpt bing bard claude gemini model recommender "
    "chatbot wizard operator respondent",
    TOOL_ROLE: "tool tools function function_call observation tool_call tool_result action slot "
    "ipython environment",
    SYSTEM_ROLE: "developer instruction instructions metadata",
}
_MEANINGS = {word: role for role, words in _WORDS.items() for word in words.split()}
_SYSTEMS = ("system", "sys")
_LETTERS = {"u": USER_ROLE, "a": ASSISTANT_ROLE, "s": ASSISTANT_ROLE}
_AGENTS = ("agent",)


def role_meanings(words: Collection[str]) -> dict[str, str]:
    """Return the roles of words; a word that nothing is known of has none.

    ``agent`` replies, except beside an assistant, where it is nobody that is known; ``system``
    replies, except beside another word that does: then it is a prompt.
    """
    plain = {word: word.strip().casefold() for word in words}
    found = {word: _MEANINGS[name] for word, name in plain.items() if name in _MEANINGS}
    letters = {word: _LETTERS[name] for word, name in plain.items() if name in _LETTERS}
    if {USER_ROLE, ASSISTANT_ROLE} <= set(letters.values()):
        found |= letters
    replies = ASSISTANT_ROLE in found.values()
    agents = [word for word, name in plain.items() if name in _AGENTS]
    if not replies and USER_ROLE in found.values():
        found |= dict.fromkeys(agents, ASSISTANT_ROLE)
    replies = ASSISTANT_ROLE in found.values()
    systems = [word for word, name in plain.items() if name in _SYSTEMS]
    return found | dict.fromkeys(systems, SYSTEM_ROLE if replies else ASSISTANT_ROLE)


def role_flags(
    words: Collection[str], known: Collection[str], rows: ChatRows, knows: Collection[str] = ()
) -> list[Flag]:
    """Return the flags to type for the words of speakers.

    Parameters
    ----------
    words
        Words that the suite does not know.
    known
        Words of the column that it does know.
    rows
        The suite's words for roles.
    knows
        Words of the suite that other words may be similar to, if they are no role's.
    """
    own = dict(rows.words)
    roles = {word: role for role, word in own.items()}
    # a word of the suite has the suite's meaning, whatever it means elsewhere
    among = [*words, *(roles.get(word, word) for word in known)]
    meanings = role_meanings(among)
    flags: list[Flag] = []
    for word in words:
        if word not in meanings:
            flags += nearest_words(rows.speaker, [word], knows)
            continue
        means = own.get(meanings[word], LEFT_OUT)
        if means != word and (means != LEFT_OUT or rows.array):
            flags.append(value_flag(rows.speaker, word, means))
    return flags
