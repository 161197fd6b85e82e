"""A browser's requests to the console, without the browser."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

_LONGEST = 40.0


class Got(NamedTuple):
    """An answer."""

    status: int
    fields: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error."""
        return self.json["error"]["message"]


def fetch(
    origin: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Got:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(origin.partition("://")[2], timeout=60)
    fields = dict(headers or {})
    data = None
    if body is not None:
        fields.setdefault("content-type", "application/json")
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, fields)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, found, answer.read())
    finally:
        connection.close()


class Browser:
    """Logged in with the token, it sends cookie and CSRF header with each request."""

    def __init__(self, origin: str, token: str = "", cookie: str = "", csrf: str = "") -> None:
        self.origin = origin
        self.cookie = cookie
        self.csrf = csrf
        if not cookie:
            got = fetch(origin, "POST", "/api/login", {"token": token} if token else {})
            assert got.status == 200, got.body
            self.cookie = got.fields["set-cookie"].partition(";")[0]
            self.csrf = got.json["csrf"]

    @property
    def headers(self) -> dict[str, str]:
        """What the page sends with every request."""
        return {"cookie": self.cookie, "x-toolwire-csrf": self.csrf, "origin": self.origin}

    def get(self, path: str, **headers: str) -> Got:
        """Reads."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return fetch(self.origin, "GET", path, None, {"cookie": self.cookie, **fields})

    def post(self, path: str, body: Any = None, **headers: str) -> Got:
        """Changes."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return fetch(
            self.origin, "POST", path, {} if body is None else body, {**self.headers, **fields}
        )

    def events(self, path: str, **headers: str) -> "Events":
        """An open event stream; comments keep it alive, so that it has a deadline of its own."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return Events(self.origin, path, {"cookie": self.cookie, **fields})


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    id: str
    data: Any


class Events:
    """Reads an event stream until it is closed."""

    def __init__(self, origin: str, path: str, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection(origin.partition("://")[2], timeout=60)
        fields = {"accept": "text/event-stream", **headers}
        self._connection.request("GET", path, headers=fields)
        self.answer = self._connection.getresponse()

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __iter__(self) -> Iterator[Event]:
        found: dict[str, str] = {}
        until = time.monotonic() + _LONGEST
        for raw in iter(self.answer.readline, b""):
            assert time.monotonic() < until, "the expected event did not come"
            line = raw.decode().rstrip("\n")
            if not line:
                if "data" in found:
                    name, data = found.get("event", "message"), json.loads(found["data"])
                    yield Event(name, found.get("id", ""), data)
                found = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                found[name] = found[name] + "\n" + value if name in found else value

    def until(self, name: str) -> Event:
        """The next event of that name."""
        return next(event for event in self if event.name == name)
