r"""Formulas in LaTeX as plain Unicode text: `\frac{1}{N} \sum_i s_i` is `(1 / N) Σᵢ sᵢ`.

The part of LaTeX that metrics are declared with: fractions, roots, scripts, cases, text, symbols.
"""

import re
from functools import cache

_SYMBOLS = {
    "sum": "Σ",
    "prod": "Π",
    "cdot": "·",
    "times": "×",
    "in": "∈",
    "cap": "∩",
    "cup": "∪",
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "lvert": "|",
    "rvert": "|",
    "lVert": "‖",
    "rVert": "‖",
    "infty": "∞",
    "ldots": "...",
    "setminus": "∖",
    "subseteq": "⊆",
    "emptyset": "∅",
    "mid": "|",
    "land": "and",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "theta": "θ",
    "lambda": "λ",
    "pi": "π",
    "mu": "μ",
    "sigma": "σ",
    "tau": "τ",
    "Delta": "Δ",
    "to": "→",
    "lor": "or",
    "left": "",
    "right": "",
    "quad": " ",
    ",": " ",
    ";": " ",
    "{": "{",
    "}": "}",
    "%": "%",
    "lfloor": "⌊",
    "rfloor": "⌋",
    "lceil": "⌈",
    "rceil": "⌉",
    "neg": "not ",
    "_": "_",
}
_WORDS = ("min", "max", "exp", "ln", "log", "cos", "arg")
_PLAIN = ("text", "mathrm", "operatorname", "mathbf", "mathit")
_ACCENTS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303"}
_SUBSCRIPTS = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)
_SUPERSCRIPTS = dict(zip("0123456789+-=()in", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿ", strict=True))
_TOKEN = re.compile(r"\\([A-Za-z]+|.)\s*|([{}^_&])|([^\\{}^_&]+)", re.DOTALL)


@cache
def plain_formula(latex: str) -> str:
    """Return a formula in LaTeX as plain text in one line."""
    text, rest = _read(list(_TOKEN.finditer(latex)))
    if rest:
        raise ValueError(f"formula {latex!r}: a closing brace without an opening one")
    return " ".join(text.split()).replace(" ;", ";").replace(" ,", ",")


def plain_words(text: str) -> str:
    """Return words with formulas between dollar signs as plain text."""
    return re.sub(r"\$([^$]+)\$", lambda formula: plain_formula(formula[1]), text)


Tokens = list[re.Match[str]]


def _read(tokens: Tokens) -> tuple[str, Tokens]:
    """Write tokens up to a closing brace or the end; return what follows it."""
    parts = []
    while tokens and tokens[0][0] != "}":
        text, tokens = _read_one(tokens)
        parts.append(text)
    return "".join(parts), tokens


def _read_one(tokens: Tokens) -> tuple[str, Tokens]:
    token, tokens = tokens[0], tokens[1:]
    command, mark, text = token.groups()
    if text is not None:
        return text, tokens
    if mark == "{":
        inner, tokens = _read(tokens)
        if not tokens:
            raise ValueError(f"formula {token.string!r}: an opening brace without a closing one")
        return inner, tokens[1:]
    if mark in ("_", "^"):
        return _read_script(mark, tokens)
    if mark == "&":
        return " ", tokens
    return _read_command(command, token, tokens)


def _read_script(mark: str, tokens: Tokens) -> tuple[str, Tokens]:
    """Write a subscript or superscript by its own characters if Unicode has all of them."""
    if tokens[0][3] is not None:  # of a run of characters only the first is the script
        script, after = tokens[0][3][0], tokens[0][3][1:]
        tokens = tokens[1:]
    else:
        (script, tokens), after = _read_one(tokens), ""
    known = _SUBSCRIPTS if mark == "_" else _SUPERSCRIPTS
    if all(character in known for character in script):
        return "".join(known[character] for character in script) + after, tokens
    return mark + (script if script.isalnum() else f"({script})") + after, tokens


def _read_command(command: str, token: re.Match[str], tokens: Tokens) -> tuple[str, Tokens]:
    space = " " if command.isalpha() and token[0][-1].isspace() else ""
    if command == "frac":
        above, tokens = _read_one(tokens)
        below, tokens = _read_one(tokens)
        fraction = f"{_grouped(above)} / {_grouped(below)}"
        return (f"({fraction})" if _is_factor(tokens) else fraction), tokens
    if command == "sqrt":
        inner, tokens = _read_one(tokens)
        return f"√({inner})", tokens
    if command in _PLAIN:
        return _read_one(tokens)
    if command in _ACCENTS:
        inner, tokens = _read_one(tokens)
        return inner + _ACCENTS[command], tokens
    if command in ("begin", "end"):
        name, tokens = _read_one(tokens)
        if name != "cases":
            raise ValueError(f"formula {token.string!r}: unknown environment {name!r}")
        return "", tokens
    if command == "\\":
        return "; ", tokens
    if command in _WORDS:
        return command + space, tokens
    if command not in _SYMBOLS:
        raise ValueError(f"formula {token.string!r}: unknown command {command!r}")
    return _SYMBOLS[command] + space, tokens


def _is_factor(after: Tokens) -> bool:
    """Tell whether the text after a fraction multiplies it."""
    following = "".join(token[0] for token in after if token[1] != "right").lstrip()
    return following != "" and following[0] not in "+-=<>.,;:)]}&" and following[:2] != "\\\\"


def _grouped(text: str) -> str:
    """Put brackets around a sum or product, not around one number, name, size or function."""
    is_one = re.fullmatch(r"[^\s/()+·-]+|\|[^|]*\||[^\W\d]*\([^()]*\)", text.strip())
    return text.strip() if is_one else f"({text.strip()})"
