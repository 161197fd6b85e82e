"""One request while it is worked on: progress, log messages, and questions to the client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from toolwire.mcp.lists import members
from toolwire.mcp.peer import RpcError
from toolwire.mcp_server.protocol import LEVELS, MISSING_CAPABILITY, Caller
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import INVALID_PARAMS, Id, RpcRequest

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"
_CAPABILITY = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}


class Back(Protocol):
    """The way back to the client while its request is open."""

    async def notify(self, method: str, params: JsonObject) -> None:
        """Sends a notification that belongs to the request."""
        ...

    async def request(self, method: str, params: JsonObject) -> Any:
        """Sends a request of ours; only clients with a session answer those."""
        ...


Suspend = Callable[[str, str, JsonObject], Awaitable[JsonObject]]
"""Ends the request with a question, and goes on with the answer in the client's next one."""


class ServedRequest:
    """What a tool, prompt or resource may use of the request it answers."""

    def __init__(self, caller: Caller, request: RpcRequest, back: Back) -> None:
        self.caller = caller
        self.suspend: Suspend | None = None
        self._done = 0.0
        self._back = back
        self.id: Id = request.id
        self._token = members(request.params.get("_meta")).get("progressToken")
        self.inputs = _inputs(request.params)
        """What the client sent along in answer to an earlier result of ours."""
        self.state = ""
        """The state that an earlier result of ours carried, unchanged."""

    def go_on(self, by: "ServedRequest") -> None:
        """Goes on in another request of the client."""
        self._back, self.id, self._token = by._back, by.id, by._token

    async def notify(self, method: str, params: JsonObject) -> None:
        """Sends a notification that belongs to this request."""
        await self._back.notify(method, params)

    async def progress(
        self, done: float | None = None, total: float | None = None, message: str = ""
    ) -> None:
        """Reports progress if the client wants it; without a figure, one step more."""
        if not isinstance(self._token, str | int) or isinstance(self._token, bool):
            return
        self._done = self._done + 1 if done is None else done
        params: JsonObject = {"progressToken": self._token, "progress": self._done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        await self.notify("notifications/progress", params)

    async def log(self, level: str, data: Any, logger: str = "") -> None:
        """Sends a log message, if the client takes those of this level."""
        if self.caller.level and LEVELS.index(level) >= LEVELS.index(self.caller.level):
            params: JsonObject = {"level": level, "data": data}
            if logger:
                params["logger"] = logger
            await self.notify("notifications/message", params)

    def can(self, method: str) -> bool:
        """Whether the client answers such a question; an elicitation is a form."""
        declared = members(self.caller.capabilities.get(_CAPABILITY[method]))
        only_other = method == ELICITATION and declared and "form" not in declared
        return self.caller.has(_CAPABILITY[method]) and not only_other

    async def ask(self, method: str, params: JsonObject, key: str = "input") -> JsonObject:
        """The client's answer to a question; RpcError if it answers no such question."""
        if not self.can(method):
            name = _CAPABILITY[method]
            raise RpcError(
                MISSING_CAPABILITY,
                f"the client does not declare the capability {name}",
                {"requiredCapabilities": {name: {}}},
            )
        if self.suspend is not None:
            return await self.suspend(key, method, params)
        return members(await self._back.request(method, params))


def input_required(asked: JsonObject, state: str = "") -> JsonObject:
    """A result that asks the client for input; its next request carries it, and the state."""
    found: JsonObject = {"resultType": "input_required", "inputRequests": asked}
    return found | ({"requestState": state} if state else {})


def asked(method: str, params: JsonObject) -> JsonObject:
    """One entry of `input_required`."""
    return {"method": method, "params": params}


def _inputs(params: JsonObject) -> JsonObject:
    """The answers that are objects; the others count as missing."""
    if "inputResponses" not in params:
        return {}
    given = params["inputResponses"]
    if not isinstance(given, dict):
        raise RpcError(INVALID_PARAMS, "inputResponses is not an object")
    return {key: value for key, value in members(given).items() if isinstance(value, dict)}


class Round:
    """Work that pauses for the client's answers, over several requests."""

    def __init__(
        self, exchange: ServedRequest, work: Awaitable[JsonObject], subject: JsonObject
    ) -> None:
        self.exchange = exchange
        self.subject = subject
        """What every request of this work must repeat."""
        self._open: dict[str, tuple[JsonObject, asyncio.Future[JsonObject]]] = {}
        self._asked = asyncio.Event()
        exchange.suspend = self._suspend
        self.task = asyncio.ensure_future(work)

    async def result(self) -> JsonObject | None:
        """The result; None once it waits for the client. Cancelled, the work is too."""
        waiting = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({self.task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.cancel()
            raise
        finally:
            waiting.cancel()
        return self.task.result() if self.task.done() else None

    def questions(self) -> JsonObject:
        """What the client is asked."""
        return {key: question for key, (question, _) in self._open.items()}

    def answer(self, inputs: JsonObject) -> None:
        """Goes on with the answers; questions without one stay open."""
        for key in [key for key in self._open if key in inputs]:
            _, future = self._open.pop(key)
            if not future.done():
                future.set_result(inputs[key])
        if not self._open:
            self._asked.clear()

    async def cancel(self) -> None:
        """Ends the work, and waits for its end."""
        self.task.cancel()
        await asyncio.wait({self.task})

    async def _suspend(self, key: str, method: str, params: JsonObject) -> JsonObject:
        name, number = key, 2
        while name in self._open:
            name, number = f"{key}_{number}", number + 1
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._open[name] = (asked(method, params), future)
        self._asked.set()
        try:
            return await future
        finally:
            self._open.pop(name, None)
