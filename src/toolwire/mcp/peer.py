"""One side of a JSON-RPC connection: requests with limits, progress and cancellation."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

import msgspec

from toolwire.errors import ToolwireError
from toolwire.mcp.lists import members, text
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Id,
    RpcFailure,
    RpcMessage,
    RpcNotification,
    RpcRequest,
    RpcResult,
    read_id,
)

CLOSED = -32000
TIMED_OUT = -32001
_CANCEL_SECONDS = 1.0
"""How long a cancellation may take to reach the other side."""
_MOST_SERVED = 100
"""Requests of the other side that are answered at the same time."""
_BURST = 100
"""Progress notes of a request that are all passed on; further ones at intervals."""
_INTERVAL = 0.05


class RpcError(ToolwireError):
    """The other side answered with an error, or cannot answer any more."""

    kind = "mcp_error"

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"MCP error {code}: {message}")
        self.code = code
        self.words = message
        self.data = data


class TimedOut(RpcError):
    """The other side was silent for too long; a server may use its number for another error."""


class ConnectionLost(RpcError):
    """The connection ended; a server may use the same number for an error of its own."""


Progress: TypeAlias = Callable[[str], None]
Serve: TypeAlias = Callable[[str, JsonObject], Awaitable[Any]]
"""Answers a request of the other side; RpcError becomes the error it receives."""
Notice: TypeAlias = Callable[[str, JsonObject], None]
answered: ContextVar[RpcRequest] = ContextVar("answered")
"""The request of the other side that this task answers."""


class CallTrace(msgspec.Struct, frozen=True):
    """The trace that a call of a server belongs to, and facts of the request for it."""

    parent: str
    """As `traceparent` of W3C Trace Context writes it."""
    facts: dict[str, str | int] = {}


call_trace: ContextVar[CallTrace | None] = ContextVar("call_trace", default=None)
"""Set by what records traces, for the task of a call."""


class Channel(Protocol):
    """Carries messages to the other side; those it receives go to `Peer.receive`."""

    async def send(self, message: RpcMessage) -> None:
        """Hands one message over; for a request it never waits for the other side."""
        ...

    async def cancel(self, request: Id) -> bool:
        """Ends a request by the channel's own means; False if a notification has to."""
        ...


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one request."""

    silence: float = 600.0
    """Seconds without an answer or progress."""
    total: float = 3600.0


class _Pending:
    def __init__(self, limits: TimeLimits, progress: Progress | None) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = loop.create_future()
        self._progress = progress
        self._notes = 0
        self._noted = 0.0
        self._silence = limits.silence
        self._end = loop.time() + limits.total
        self._timer = loop.call_at(self._next(), self._late)

    def note(self, params: JsonObject) -> None:
        """Passes progress on and starts the limit of silence again; a flood of it is thinned."""
        now = asyncio.get_running_loop().time()
        self._notes += 1
        if self._notes > _BURST and now - self._noted < _INTERVAL:
            return
        self._noted = now
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._next(), self._late)
        if self._progress is not None:
            self._progress(_progress(params))

    def done(self) -> None:
        self._timer.cancel()

    def _next(self) -> float:
        return min(asyncio.get_running_loop().time() + self._silence, self._end)

    def _late(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(TimedOut(TIMED_OUT, "Request timed out"))


class Peer:
    """Matches answers to requests, answers those of the other side, and ends all when it closes."""

    def __init__(
        self,
        channel: Channel,
        serve: Serve,
        notice: Notice,
        finished: Callable[[Id], None] = lambda number: None,
    ) -> None:
        """`finished` is called when work on a request ends, answered or not."""
        self._finished = finished
        self._channel = channel
        self._serve = serve
        self._notice = notice
        self._numbers = itertools.count(1)
        self._pending: dict[Id, _Pending] = {}
        self._serving: dict[asyncio.Task[None], Id] = {}
        self._closed: RpcError | None = None

    async def request(
        self,
        method: str,
        params: JsonObject,
        limits: TimeLimits,
        progress: Progress | None = None,
    ) -> Any:
        """The result; RpcError if the other side reports one, is late, or is gone."""
        if self._closed is not None:
            raise self._closed
        number = next(self._numbers)
        if progress is not None:
            params = {**params, "_meta": {**members(params.get("_meta")), "progressToken": number}}
        trace = call_trace.get()
        if trace is not None:
            trace.facts["jsonrpc.request.id"] = number
        pending = self._pending[number] = _Pending(limits, progress)
        try:
            await self._channel.send(RpcRequest(number, method, params))
            return await pending.answer
        except TimedOut:
            if method != "initialize":
                await self._cancel(number, "timed out")
            raise
        except asyncio.CancelledError:
            await asyncio.shield(self._cancel(number, "cancelled by the user"))
            raise
        finally:
            pending.done()
            self._pending.pop(number, None)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._closed is not None

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Sends a notification; a connection that is gone or refuses it loses it."""
        if self._closed is None:
            with suppress(ToolwireError):
                await self._channel.send(RpcNotification(method, params or {}))

    async def _cancel(self, number: Id, reason: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                if self._closed is not None or await self._channel.cancel(number):
                    return
                about: JsonObject = {"requestId": number, "reason": reason}
                await self.notify("notifications/cancelled", about)

    def receive(self, message: RpcMessage) -> None:
        """Takes one message of the other side; late and unknown answers are dropped."""
        match message:
            case RpcResult():
                self._settle(message.id, message.result, None)
            case RpcFailure():
                error = RpcError(message.code, message.message, message.data)
                if message.id is not None:
                    self._settle(message.id, None, error)
            case RpcRequest() if self._closed is None:
                task = asyncio.ensure_future(self._answer(message, len(self._serving)))
                self._serving[task] = message.id
                task.add_done_callback(self._served)
            case RpcRequest():
                return
            case RpcNotification():
                self._noticed(message)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._finished(self._serving.pop(task))

    def fail(self, number: Id, error: Exception) -> None:
        """The channel could not carry a request."""
        self._settle(number, None, error)

    def _settle(self, number: Id, result: Any, error: Exception | None) -> None:
        pending = self._found(number)
        if pending is None or pending.answer.done():
            return
        if error is None:
            pending.answer.set_result(result)
        else:
            pending.answer.set_exception(error)

    def _found(self, number: Any) -> _Pending | None:
        """The open request of an id, which some servers send back as text."""
        known = read_id(number)
        if known is None:
            return None
        pending = self._pending.get(known)
        if pending is None and isinstance(known, str) and known.isdecimal() and len(known) < 20:
            pending = self._pending.get(int(known))
        return pending

    def _noticed(self, message: RpcNotification) -> None:
        if message.method == "notifications/progress":
            pending = self._found(message.params.get("progressToken"))
            if pending is not None:
                pending.note(message.params)
        elif message.method == "notifications/cancelled":
            self.drop(read_id(message.params.get("requestId")))
        else:
            self._notice(message.method, message.params)

    @property
    def serving(self) -> tuple[Id, ...]:
        """The requests of the other side that are not answered yet."""
        return tuple(self._serving.values())

    async def settled(self, seconds: float) -> None:
        """Waits until every request of the other side is answered, at most that long."""
        if self._serving:
            await asyncio.wait(self._serving, timeout=seconds)

    def drop(self, number: Id | None) -> None:
        """Stops work on a request of the other side; it gets no answer."""
        for task in [each for each, known in self._serving.items() if known == number]:
            task.cancel()

    async def _answer(self, request: RpcRequest, others: int) -> None:
        answered.set(request)
        try:
            if others >= _MOST_SERVED:
                raise RpcError(INTERNAL_ERROR, "too many requests at the same time")
            result = await self._serve(request.method, request.params)
        except RpcError as error:
            answer: RpcMessage = RpcFailure(request.id, error.code, error.words, error.data)
        except asyncio.CancelledError:
            return
        except Exception as error:
            answer = RpcFailure(request.id, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        else:
            answer = RpcResult(request.id, result)
        if self._closed is None:
            with suppress(ToolwireError):
                await self._channel.send(answer)

    def close(self, why: str = "Connection closed") -> None:
        """Answers everything that is open with an error; nothing is sent any more."""
        if self._closed is None:
            self._closed = ConnectionLost(CLOSED, why)
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(self._closed)
        for task in self._serving:
            task.cancel()


def unknown_method(method: str) -> RpcError:
    """The error for a method that is not offered."""
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")


def _progress(params: JsonObject) -> str:
    done, total = params.get("progress"), params.get("total")
    share = str(done) if _is_number(done) else ""
    if share and _is_number(total):
        share = f"{share}/{total}"
    return " ".join(filter(None, (share, text(params.get("message")))))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
