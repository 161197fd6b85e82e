"""A scripted model behind real HTTP, in every wire format at once."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from toolwire import dialects
from toolwire.acceptance.limits import NO_DEMANDS, Demands
from toolwire.acceptance.violation import member
from toolwire.dialects.paths import PathMatch, match_path
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.events import Usage
from toolwire.ids import new_id
from toolwire.request import JsonObject
from toolwire.simulator.answers import (
    ChatThinking,
    Shape,
    Voice,
    Written,
    error_answer,
    fault_answer,
    written,
)
from toolwire.simulator.received import Received
from toolwire.simulator.script import NO_FAULT, Answering, Fault, Question, Reply, Script
from toolwire.simulator.vendor_rules import Asked, Seals, check
from toolwire.wire.json_access import dump, parse_object

if TYPE_CHECKING:
    from aiohttp import web

    Send = Callable[[web.BaseRequest, Written, Fault, Received], Awaitable[web.StreamResponse]]


class Simulator:
    """`async with Simulator(script) as sim`: a server at `sim.origin` until the block ends."""

    def __init__(
        self,
        script: Script | Iterable[Reply] | Answering,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str = "",
        demands: Demands = NO_DEMANDS,
        chat_thinking: ChatThinking = "reasoning_content",
        on_request: Callable[[Received], None] | None = None,
    ) -> None:
        self.requests: list[Received] = []
        """Every model request in order; lists of models and health checks are not recorded."""
        self.origin = ""
        """`http://host:port`, once the server runs."""
        self.seals = Seals()
        self._model = script.model if isinstance(script, Script) else "simulated"
        self._answer = _answering(script)
        self._asked = 0
        self._host = host
        self._port = port
        self._key = key
        """If set, requests without it are answered 401."""
        self._demands = demands
        self._chat_thinking: ChatThinking = chat_thinking
        self._on_request = on_request
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Simulator":
        from toolwire.simulator.answers import send, serving  # noqa: PLC0415 - loads the HTTP library

        async def handle(request: "web.BaseRequest") -> "web.StreamResponse":
            return await self._handle(request, send)

        self.origin = await self._stack.enter_async_context(serving(handle, self._host, self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def refusals(self) -> list[str]:
        """Returns what a vendor would have rejected, in order."""
        return [received.refusal for received in self.requests if received.refusal]

    async def _handle(self, request: "web.BaseRequest", send: "Send") -> "web.StreamResponse":
        received = Received(
            request.method,
            request.path,
            request.query_string,
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
        )
        if request.method != "POST":
            return await send(request, self._looked_up(received), NO_FAULT, received)
        self.requests.append(received)
        try:
            answer, fault = self._answered(received)
            return await send(request, answer, fault, received)
        finally:
            received.left.set()
            if self._on_request is not None:
                self._on_request(received)

    def _looked_up(self, received: Received) -> Written:
        path = received.path.rstrip("/")
        if path.endswith("/models"):
            return _json(_models(path, self._model))
        if path in ("", "/healthz"):
            return _json({"status": "ok"})
        # Codex asks for a socket first; any other status causes seven retries.
        status = 426 if path.endswith("/responses") else 404
        return Written(status=status, pieces=(b'{"error":{"message":"no such address"}}',))

    def _answered(self, received: Received) -> tuple[Written, Fault]:
        route = received.route = match_path(received.path)
        if route is None:
            body = dump({"error": {"message": f"no such address: {received.path}"}})
            received.refusal = "no such address"
            return Written(status=404, pieces=(body.encode(),)), NO_FAULT
        try:
            self._check_key(received)
            if route.does in ("load", "onboard"):
                return _json(_onboarding(route)), NO_FAULT
            if route.does == "count":
                return _json(_counts(route, received)), NO_FAULT
            return self._spoken(route, received)
        except ProviderError as error:
            received.refusal = str(error)
            return error_answer(route.dialect, error), NO_FAULT
        except BadInput as error:
            received.refusal = str(error)
            bad = ProviderError(ErrorKind.BAD_REQUEST, str(error), status=400)
            return error_answer(route.dialect, bad), NO_FAULT

    def _check_key(self, received: Received) -> None:
        headers = received.headers
        shown = {
            headers.get("authorization", "").removeprefix("Bearer "),
            headers.get("x-api-key", ""),
            headers.get("api-key", ""),
            headers.get("x-goog-api-key", ""),
        }
        if self._key and self._key not in shown:
            raise ProviderError(ErrorKind.AUTH, "the API key is not valid", status=401)

    def _spoken(self, route: PathMatch, received: Received) -> tuple[Written, Fault]:
        body = parse_object(received.body, "request")
        model = _model(route, body)
        family = dialects.get(route.dialect).family
        asked = Asked(
            body=body,
            headers=received.headers,
            model=model,
            seals=self.seals,
            demands=self._demands,
            path=received.path,
        )
        check(route.dialect, asked)
        request = dialects.get(route.dialect).decode_request(received.body, route.model)
        question = Question(dialect=route.dialect, request=request, number=self._asked)
        self._asked += 1
        reply = self._answer(question)
        if reply.fault.is_error:
            return fault_answer(route.dialect, reply), reply.fault
        voice = Voice(
            family=family,
            model=model,
            seals=self.seals,
            new_id=new_id,
            chat_thinking=self._chat_thinking,
            id_length=self._demands.id_length,
        )
        shape = _shape(route, body, received.query)
        counted = _usage(route, body, reply, shape)
        return written(reply, route.dialect, voice, counted, shape), reply.fault


def _answering(script: Script | Iterable[Reply] | Answering) -> Answering:
    if isinstance(script, Script):
        return script.answering()
    if callable(script):
        return script
    return Script(replies=tuple(script)).answering()


def _json(value: JsonObject) -> Written:
    return Written(pieces=(dump(value).encode(),))


def _models(path: str, name: str) -> JsonObject:
    if "/v1beta" in path:
        methods = ["generateContent", "streamGenerateContent", "countTokens"]
        return {"models": [{"name": f"models/{name}", "supportedGenerationMethods": methods}]}
    model = {"id": name, "object": "model", "created": 0, "owned_by": "toolwire"}
    return {"object": "list", "data": [{**model, "type": "model", "display_name": name}]}


def _onboarding(route: PathMatch) -> JsonObject:
    project = "simulated-project"
    if route.does == "load":
        return {"currentTier": {"id": "standard-tier"}, "cloudaicompanionProject": project}
    return {"done": True, "response": {"cloudaicompanionProject": {"id": project}}}


def _counts(route: PathMatch, received: Received) -> JsonObject:
    count = len(received.body) // 4 + 1
    return {"input_tokens" if route.dialect == "anthropic-messages" else "totalTokens": count}


def _model(route: PathMatch, body: JsonObject) -> str:
    named = route.model or body.get("model")
    return named if isinstance(named, str) else ""


def _shape(route: PathMatch, body: JsonObject, query: str) -> Shape:
    if route.does == "stream":
        return Shape.STREAM if "alt=sse" in query else Shape.ARRAY
    by_body = route.dialect not in ("gemini", "code-assist") and body.get("stream") is True
    return Shape.STREAM if by_body else Shape.WHOLE


def _usage(route: PathMatch, body: JsonObject, reply: Reply, shape: Shape) -> Usage:
    """Counts tokens, at four characters each. A chat stream sends them only on request."""
    chat = route.dialect == "openai-chat" and shape is Shape.STREAM
    if chat and member(body, "stream_options", "include_usage") is not True:
        return Usage()
    length = sum(len(str(piece)) for piece in reply.pieces)
    return Usage(input=len(dump(body)) // 4 + 1, output=length // 4 + 1)
