"""The scanner against Python's json, line by line."""

import json

import numpy as np
import pytest
from fastscore_readers.fill import TEXT, WHOLE
from fastscore_readers.json import line_ends, tokens
from fastscore_readers.json import lines as jsonl
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracles.jsonl import naive_scan
from tests.readers.json_texts import FAULTS, as_bytes

KEYS = ("a", "event", "step_index", "é", "step_index_of", "")
STATUS = {
    jsonl.NOT_JSON: "not_json",
    jsonl.NOT_OBJECT: "not_an_object",
    jsonl.NOT_UTF8: "not_utf8",
    jsonl.TOO_DEEP: "nested_too_deeply",
}
LINE_ENDS = (b"\n", b"\r\n", b"\r", b"\n\n", b" \n")


def tag_of(value):
    if value is None:
        return {tokens.NULL}
    if isinstance(value, bool):
        return {tokens.TRUE if value else tokens.FALSE}
    if isinstance(value, int):
        return {tokens.INTEGER}
    if isinstance(value, float):
        return {tokens.FLOAT}
    if isinstance(value, str):
        return {tokens.STRING, tokens.ESCAPED}
    return {tokens.ARRAY if isinstance(value, list) else tokens.OBJECT}


def same(left, right):
    """Equal, NaN included."""
    return json.dumps(left) == json.dumps(right)


def check_against_json(data):
    scan = jsonl.scan_jsonl(as_bytes(data), tuple(key.encode() for key in KEYS))
    expected = naive_scan(data)
    rows = [line for line in expected if line.status == "row"]
    faults = [line for line in expected if line.status not in ("row", "blank")]
    assert scan.n_lines == len(expected)
    assert scan.n_blank == len(expected) - len(rows) - len(faults)
    assert scan.next_line == len(expected) + 1
    found = zip(scan.line, scan.start, scan.end, strict=True)
    assert list(found) == [(line.number, line.start, line.end) for line in rows]
    places = zip(scan.faults["line"], scan.faults["start"], scan.faults["end"], strict=True)
    assert list(places) == [(line.number, line.start, line.end) for line in faults]
    assert [STATUS[int(code)] for code in scan.faults["status"]] == [line.status for line in faults]
    for position, line in zip(scan.faults["position"], faults, strict=True):
        assert line.start <= position <= line.end
    for index, line in enumerate(rows):
        for key, name in enumerate(KEYS):
            tag = int(scan.tags[key, index])
            if name not in line.values:
                assert tag == tokens.ABSENT
                continue
            value = line.values[name]
            assert tag in tag_of(value)
            raw = data[slice(*scan.columns.words[key, index].tolist())]
            if tag in (tokens.STRING, tokens.ESCAPED):
                assert (b"\\" in raw) == (tag == tokens.ESCAPED)
                raw = b'"' + raw + b'"'
            assert same(json.loads(raw), value)


keys = st.sampled_from([*KEYS, "other", "step_indexx", 'q"k', "A"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["\ud800", "\udc00\ud800", "\U0001f600", 'a"b\\c\n\t\x7f', "EOF"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A line: mostly an object, its members perhaps repeated, written one way or another."""
    if draw(st.integers(0, 9)) == 0:
        return dump(draw, draw(values))
    members = draw(st.lists(st.tuples(keys, values), max_size=5))
    blank = draw(st.sampled_from([b"", b" ", b"\t "]))
    joined = (blank + b"," + blank).join(
        dump(draw, name) + blank + b":" + blank + dump(draw, value) for name, value in members
    )
    return blank + b"{" + blank + joined + blank + b"}" + blank


def dump(draw, value):
    ascii_only = draw(st.booleans())
    text = json.dumps(value, ensure_ascii=ascii_only)
    if ascii_only and draw(st.integers(0, 5)) == 0:
        text = text.replace("e", "\\u0065") if isinstance(value, str) else text
    return text.encode("utf-8", "surrogatepass")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A line with a few bytes replaced, taken out or put in."""
    line = bytearray(draw(documents()))
    alphabet = st.sampled_from(
        list(b'{}[]",:\\ \t\x00\x0b\x1f-+.0123456789eEtfnuNI/\x85\xa0\xc2\xe2\x80\xed\xff\xf0')
    )
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(line)))
        kind = draw(st.integers(0, 2))
        if kind == 0:
            line.insert(place, draw(alphabet))
        elif place < len(line) and kind == 1:
            del line[place]
        elif place < len(line):
            line[place] = draw(alphabet)
    return bytes(line)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    parts = []
    for line in draw(st.lists(mutated() | documents(), max_size=6)):
        parts += [line, draw(st.sampled_from(LINE_ENDS))]
    if parts and draw(st.booleans()):
        parts.pop()
    return b"".join(parts)


@given(logs())
@example(b"")
@example(b"\r")
@example(b'{"a":1}\r\r\n{"a":2}')
def test_equals_json(data):
    check_against_json(data)


NUMBERS = [
    "0", "-0", "01", "-", "1.", ".5", "1e", "1e+", "1E5", "1e-5", "-1.5e+10", "0e0", "00", "1.5.2",
    "+1", "0x10", "1_000", "NaN", "-NaN", "Infinity", "-Infinity", "+Infinity", "Inf", "nan",
    "Infinit", "NaNs", "1e400", "-1e400", "1e-400", "123456789012345678901234567890", "1a", "--1",
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", ['{"a":%s}', '{"a":[%s, 1]}', '{"a":{"b": %s}}', "%s"])
def test_number_syntax(number, form):
    check_against_json((form % number).encode())


SPACES = (
    "\x0b \x0c \x1c \x1d \x1e \x1f \x85 \xa0 "
    "\u1680 \u2000 \u200a \u2028 \u2029 \u202f \u205f \u3000"
)
NO_SPACES = "\u200b \ufeff \u180e \x00"


@pytest.mark.parametrize("space", f"{SPACES} {NO_SPACES}".split(" "))
def test_white_space_round_a_line(space):
    for form in ('{s}{{"a":1}}', '{{"a":1}}{s}', " {s}{{}} {s} ", "{s}", '{{"a":{s}1}}', "{s}x{s}"):
        check_against_json(form.format(s=space).encode())


def test_all_single_bytes_between_tokens_and_in_strings():
    for byte in range(256):
        for form in (b'{"a":1%s}', b'{"a":"%s"}', b'{"a":"\\%s"}', b"%s", b'{"a"%s:[]}'):
            check_against_json(form.replace(b"%s", bytes([byte])))


@pytest.mark.parametrize("length", [500, 501, 5000])
def test_depth(length):
    for line in (
        b'{"a":' + b"[" * (length - 1) + b"]" * (length - 1) + b"}",
        b'{"a":' * length + b"1" + b"}" * length,
    ):
        scan = jsonl.scan_jsonl(as_bytes(line), (b"a",))
        assert scan.line.size == (length <= tokens.MAX_DEPTH)
        assert scan.faults["status"].tolist() == [jsonl.TOO_DEEP] * (length > tokens.MAX_DEPTH)


def test_last_equal_key_wins_and_escaped_keys_match():
    line = b'{"a":1,"\\u0061":"x","b":{"a":7},"c":["a"]}'
    scan = jsonl.scan_jsonl(as_bytes(line), (b"a",))
    assert scan.tags.tolist() == [[tokens.STRING]]
    assert line[slice(*scan.columns.words[0, 0].tolist())] == b"x"


def test_a_faulty_line_leaves_no_value_behind():
    scan = jsonl.scan_jsonl(as_bytes(b'{"a":1,"b":2\n{"b":3}\n'), (b"a", b"b"))
    assert scan.tags.tolist() == [[tokens.ABSENT], [tokens.INTEGER]]


def test_line_ends_are_counted_in_pieces_that_may_part_one(monkeypatch):
    piece = 100
    monkeypatch.setattr(line_ends, "_PIECE_BYTES", piece)
    # a return before a line feed ends its line with it
    for before, ends, expected in (
        (piece - 1, b"\r\n", 2),
        (piece - 1, b"\n\r", 3),
        (piece, b"\r\n", 2),
        (0, b"\r\n", 2),
    ):
        data = b"a" * before + ends + b"a" * piece + b"\n"
        assert line_ends.count_line_ends(as_bytes(data)) == expected
    data = b"\r\n" * (piece + 5)
    assert line_ends.count_line_ends(as_bytes(data)) == piece + 5
    assert line_ends.count_line_ends(as_bytes(data[1:])) == piece + 5


def test_lines_are_found_in_what_positions_reach():
    data = np.broadcast_to(np.uint8(0), 1 << 32)
    with pytest.raises(ValueError, match=r"^4294967296 bytes .* fewer than 4 GiB$"):
        line_ends.line_begins(data)


@given(st.lists(st.sampled_from((b"a" * 61, b"\xe6\xb3\xa2", *LINE_ENDS))))
def test_lines_begin_after_line_ends(parts):
    data = b"".join(parts)
    lines = data.splitlines(keepends=True)
    expected = np.cumsum([len(line) for line in lines if line.endswith((b"\n", b"\r"))])
    assert line_ends.line_begins(as_bytes(data)).tolist() == expected.tolist()


def test_rows_may_stand_closer_behind_the_first_block():
    data = b'{"a":1,"b":"%s"}\n' % (b"x" * 300_000)
    data += b"".join(
        b'{"a":%d,"b":"row %d and some text"}\n' % (row, row) for row in range(2, 20_000)
    )
    for fill in (None, {b"a": WHOLE, b"b": TEXT}, {b"b": TEXT}):
        scan = jsonl.scan_jsonl(as_bytes(data), (b"a", b"b"), fill=fill)
        assert scan.line.tolist() == list(range(1, 20_000))
        assert data[scan.start[-1] : scan.end[-1]] == data.splitlines()[-1]
        words = scan.columns.words[0]
        numbers = words[:, 0].tolist()
        if not (fill and b"a" in fill):
            numbers = [int(data[start:end]) for start, end in words.tolist()]
        assert numbers == list(range(1, 20_000))


def test_many_short_lines_have_room_behind_one_very_long_line():
    many = 200_000
    data = b'{"a":"%s"}\n' % (b"x" * 2_000_000) + b'{"a":1}\n' * many + b'{"a":\n' * many
    for fill in (None, {b"a": TEXT}):
        scan = jsonl.scan_jsonl(as_bytes(data), (b"a",), fill=fill)
        assert scan.line.tolist() == list(range(1, many + 2))
        assert scan.faults["line"].tolist() == list(range(many + 2, 2 * many + 2))
        assert scan.tags[0].tolist() == [tokens.STRING] + [tokens.INTEGER] * many


def test_buffers_of_another_type_are_refused():
    with pytest.raises(TypeError, match="`data` has dtype float64; expected uint8"):
        jsonl.scan_jsonl(np.zeros(4), ())
    with pytest.raises(ValueError, match="distinct"):
        jsonl.scan_jsonl(np.zeros(4, np.uint8), (b"a", b"a"))


def test_every_fault_is_found_at_every_place_of_a_block():
    after = b'"}\n{"a":"' + b"z" * 200 + b'"}'
    for fault in [b"", *FAULTS]:
        for before in range(68):
            check_against_json(b'{"a":"' + b"x" * before + fault + "一".encode() + after)
            check_against_json(b'{"a":"' + b"x" * before + fault + after)
