"""A chat server on this machine that answers by a function and fails on command.

It keeps what it was asked and what it answered, so that tests can say what was asked how often.
"""

import json
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Body = dict[str, Any]

PATIENCE = 60.0
"""Seconds that a test's client waits for an answer: however much else a machine has to do."""
HASTE, LATE = 3.0, 4.0
"""Seconds that a client waits of which some answers come late, and after which those come."""


@dataclass
class Stub:
    """The server's script and its diary.

    Parameters
    ----------
    answer
        Makes the model's text of a request's body.
    fault
        By a request's number from 0: ``None`` to answer, or the name of a fault.
    """

    answer: Callable[[Body], str] = lambda body: 'I recommend "Heat".'
    fault: Callable[[int], str | None] = lambda number: None
    asked: list[Body] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    url: str = ""
    elsewhere: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


def completion(text: str | None, **more: Any) -> Body:
    """Make a response as the protocol has it."""
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    reason = more.pop("finish_reason", "stop")
    return {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **more,
    }


@cache
def packed_zeros() -> bytes:
    """Pack 200 MiB of zeros."""
    packed = zlib.compressobj(9, wbits=31)
    return b"".join(packed.compress(bytes(1 << 20)) for _ in range(200)) + packed.flush()


REFUSALS = {
    "busy": (429, "slow down", "0.3"),
    "busy_for_long": (429, "slow down", "100"),
    "busy_for_days": (429, "slow down", "86400"),
    "broken": (500, "oh no", ""),
    "rejected": (400, "content policy", ""),
    "renamed": (400, "Unsupported parameter: use 'max_completion_tokens' instead.", ""),
    "not_found": (404, "no model tiny", ""),
    "forbidden": (403, "not yours", ""),
}
"""Faults that are an error's status, its message, and the seconds after which to ask again."""
CUT = {
    "refusal": completion(None, message={"refusal": "I cannot help with that."}),
    "cut_off": completion('{"proacti', finish_reason="length"),
    "filtered": completion("I recommend", finish_reason="content_filter"),
}
"""Faults that are answers all the same."""


class _Handler(BaseHTTPRequestHandler):
    stub: Stub

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        stub = self.stub
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with stub.lock:
            number = len(stub.asked)
            stub.asked.append(body)
            stub.headers.append({name.lower(): value for name, value in self.headers.items()})
            stub.times.append(time.monotonic())
        fault = stub.fault(number)
        if fault is None or fault in CUT:
            with stub.lock:
                stub.answered[json.dumps(body, sort_keys=True)] += 1
            self._send(200, CUT[fault] if fault else completion(stub.answer(body)))
        elif fault in REFUSALS:
            status, message, wait = REFUSALS[fault]
            headers = {"Retry_After": wait} if wait else {}
            self._send(status, {"error": {"message": message}}, **headers)
        else:
            getattr(self, f"_{fault}")(body)

    def _send(self, status: int, content: Body, **headers: str) -> None:
        self._raw(status, json.dumps(content).encode(), **headers)

    def _raw(self, status: int, data: bytes, **headers: str) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # who asked has given up

    def _late(self, body: Body) -> None:
        time.sleep(LATE)
        self._send(200, completion("too late"))

    def _truncated(self, body: Body) -> None:
        self._raw(200, json.dumps(completion("cut")).encode()[:60])

    def _hung_up(self, body: Body) -> None:
        self.connection.close()

    def _cut(self, body: Body) -> None:
        """Send the head of a whole response, and half of its body."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices"')
        self.close_connection = True

    def _redirected(self, body: Body) -> None:
        self._raw(307, b"", Location=self.stub.elsewhere)

    def _dripping(self, body: Body) -> None:
        self._drip(b'{"choices":' + b" " * 400)

    def _dripping_head(self, body: Body) -> None:
        self._drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 400, head=b"")

    def _drip(self, data: bytes, head: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> None:
        try:
            self.wfile.write(head)
            for byte in data:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass

    def _endless(self, body: Body) -> None:
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                self.wfile.write(b" " * (1 << 16))
        except OSError:
            pass

    def _packed_zeros(self, body: Body) -> None:
        self._raw(200, packed_zeros(), Content_Encoding="gzip")

    def _packed(self, body: Body) -> None:
        data = zlib.compress(json.dumps(completion("unpacked")).encode(), wbits=31)
        self._raw(200, data, Content_Encoding="gzip")

    def _odd_usage(self, body: Body) -> None:
        usage = {"prompt_tokens": -1_000_000, "completion_tokens": True}
        self._send(200, completion("four", usage=usage))

    def _long_number(self, body: Body) -> None:
        whole = json.dumps(completion("x")).replace("15}", f"{'1' * 5000}}}")
        self._raw(200, whole.encode())

    def _unauthorised(self, body: Body) -> None:
        key = self.headers["Authorization"].removeprefix("Bearer ")
        self._send(401, {"error": {"message": f"Incorrect API key provided: {key}"}})

    def _empty(self, body: Body) -> None:
        self._send(200, {"choices": []})


def by_text(answers: Sequence[str]) -> Callable[[Body], str]:
    """Return a model that answers each text in its own way, however often it is asked."""
    places: dict[str, int] = {}
    lock = threading.Lock()

    def answer(body: Body) -> str:
        with lock:
            place = places.setdefault(body["messages"][1]["content"], len(places))
        return answers[place % len(answers)]

    return answer


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    """Serve on a free port of this machine until the block ends."""
    handler = type("Handler", (_Handler,), {"stub": stub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()


def stub_fixture(**given: Any) -> Any:
    """Return a fixture of a stub for clients, which wait little before they ask again."""

    @pytest.fixture
    def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
        with serving(Stub(**given)) as served:
            yield served

    return stub
