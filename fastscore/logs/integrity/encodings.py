"""Which encoding text that is not UTF-8 probably has: named in messages, never used for reading."""

import shlex
from contextlib import suppress
from pathlib import PurePath

from fastscore.errors import FastscoreError
from fastscore.logs.inputs.archives import open_unpacked
from fastscore.logs.inputs.first_bytes import content_of, read_head
from fastscore.unpacked import Compression, DamageError

_SAMPLE_BYTES = 1 << 15
_FARTHEST = 64 << 20
_ENCODINGS = {
    "cp1252": "WINDOWS-1252",
    "cp1250": "WINDOWS-1250",
    "cp1251": "WINDOWS-1251",
    "cp1253": "WINDOWS-1253",
    "cp1254": "WINDOWS-1254",
    "cp1255": "WINDOWS-1255",
    "cp1256": "WINDOWS-1256",
    "koi8_r": "KOI8-R",
    "gb18030": "GB18030",
    "big5": "BIG5",
    "shift_jis": "SHIFT_JIS",
    "euc_jp": "EUC-JP",
    "euc_kr": "EUC-KR",
}
"""Encodings that logs have, by Python's names, and what ``iconv`` calls them."""


def suggest_conversion(path: str, offset: int) -> str:
    """Say how a file is converted to UTF-8, by its text around a byte that is not UTF-8.

    Returns
    -------
    str
        Sentences, empty if the text tells nothing.
    """
    compression, text = _text_around(path, offset)
    name = likely_encoding(text) if text else ""
    if not name:
        return ""
    written = PurePath(path)
    if compression != "none":
        return f" Its encoding is probably {name}. Unpack it and convert it to UTF-8."
    target = written.with_name(f"{written.stem}.utf8{written.suffix}")
    command = shlex.join(["iconv", "-f", name, "-t", "UTF-8", path])
    return f" Its encoding is probably {name}. Type {command} > {shlex.quote(str(target))}."


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
        with open_unpacked(path, compression) as file:
            before = max(offset - _SAMPLE_BYTES, 0)
            if compression == "none":
                before -= file.seek(before)
            while before > 0 and (skipped := file.read(min(before, 1 << 20))):
                before -= len(skipped)
            return compression, file.read(2 * _SAMPLE_BYTES)
    return "none", b""
