"""A vendor's server on this machine: answers as it is told to and remembers what it was asked."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class Asked:
    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        parts = urlsplit(target)
        self.method = method
        self.path = parts.path
        self.headers = headers
        self.body = body

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = tuple[int, Any]


class StandIn:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[str, list[Answer] | Callable[[Asked], Answer]] = {}
        self._lock = threading.Lock()
        self.url = ""

    def on(self, path: str, *answers: Answer) -> None:
        self.answers[path] = list(answers)

    def decide(self, path: str, answer: Callable[[Asked], Answer]) -> None:
        self.answers[path] = answer

    def to(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            known = self.answers.get(asked.path)
            if isinstance(known, list):
                return known.pop(0) if len(known) > 1 else known[0]
        return known(asked) if known is not None else (404, {"message": "no such thing here"})


@contextmanager
def stand_in() -> Generator[StandIn]:
    vendor = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, self.rfile.read(length))
            status, body = vendor.answer(asked)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = _handle
        do_POST = _handle

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    vendor.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield vendor
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def never(message: str) -> None:
    raise AssertionError(f"nothing was to be said, but: {message}")
