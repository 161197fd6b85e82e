"""A provider's model as a `Model`: encode, send, decode, and try again where that is safe."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import urlencode

import msgspec

from toolwire import dialects
from toolwire.acceptance.fit import fitted
from toolwire.acceptance.limits import Facts, facts_of
from toolwire.client.attempt import Attempt
from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.client.redact import Redactor, hide_in_url, learn_url, secrets_of
from toolwire.client.retry import USUAL, GiveUp, Learned, RetryPolicy, decide, droppable, without
from toolwire.dialects.losses import without_members
from toolwire.dialects.quirks import Quirks
from toolwire.errors import BadInput, ErrorKind, ProviderError, ToolwireError
from toolwire.events import ModelEvent, Notice, Retry
from toolwire.history import repair
from toolwire.ids import new_id
from toolwire.messages import Origin
from toolwire.providers._spec import Provider
from toolwire.providers.catalogue import quirks_of
from toolwire.request import HttpRequest, Loss, ModelRequest
from toolwire.wire.json_access import encode, parse_object

Headers: TypeAlias = tuple[tuple[str, str], ...]
Credential: TypeAlias = Callable[[bool], Awaitable[Headers]]
"""The credential headers; True requests fresh ones after a refusal."""
Sign: TypeAlias = Callable[[Outgoing, float], Awaitable[Headers]]
"""The headers that sign a finished request, sent at this Unix time; they replace equal ones."""

_REMEMBERED = 64
"""Addresses and sets of headers: the requests of one endpoint have the same."""
_LONGEST_WORDS = 300
_LONGEST_MESSAGE = 4000


def connect(
    provider: Provider,
    model: str,
    *,
    transport: Transport,
    credential: Credential,
    origin: str = "",
    base_url: str = "",
    quirks: Quirks | None = None,
    learned: Learned | None = None,
    policy: RetryPolicy = USUAL,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
    make_id: Callable[[], str] = new_id,
    project: Callable[[], Awaitable[str]] | None = None,
    sign: Sign | None = None,
    now: Callable[[], float] = time.time,
) -> "Endpoint":
    """A callable model; failures before the first event are retried, later ones raised.

    `origin` says where the credential comes from, for the error if it is refused.
    `project` returns the project that Code Assist bodies must name, which only the login knows.
    `sign` signs each attempt, for servers that check a signature of the body.
    """
    base = base_url or provider.base_url
    learn_url(base)
    if "{" in base:
        raise BadInput(
            f"the address of {provider.name} is not complete: {hide_in_url(base)}; set its base URL"
        )
    return Endpoint(
        provider=provider,
        model=model,
        base=base,
        quirks=quirks or quirks_of(provider, model),
        facts=facts_of(provider, model),
        transport=transport,
        credential=credential,
        origin=origin,
        learned=Learned() if learned is None else learned,
        policy=policy,
        sleep=sleep,
        jitter=jitter,
        make_id=make_id,
        project=project,
        sign=sign,
        now=now,
    )


class _Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its credentials."""

    http: HttpRequest
    losses: tuple[Loss, ...]
    reading: dialects.DecodeOptions


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One model behind one address; callable as a `Model`."""

    provider: Provider
    model: str
    base: str
    quirks: Quirks
    facts: Facts
    transport: Transport
    credential: Credential
    origin: str
    """Where the credential comes from, for errors."""
    learned: Learned
    policy: RetryPolicy
    sleep: Callable[[float], Awaitable[object]]
    jitter: Callable[[], float]
    make_id: Callable[[], str]
    project: Callable[[], Awaitable[str]] | None
    sign: Sign | None
    now: Callable[[], float]

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The answer's events: an endpoint is a `Model`."""
        return self.ask(request)

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The answer's events, with a notice for every loss and every retry."""
        batches = self.batches(request)
        try:
            async for batch in batches:
                for event in batch:
                    yield event
        finally:
            await batches.aclose()

    async def batches(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent]]:
        """The same, as many events at once as arrived together."""
        question = _RequestRun(self, request)
        reported: set[Loss] = set()
        while True:
            prepared = question.prepared
            for loss in prepared.losses:
                if loss not in reported:
                    reported.add(loss)
                    words = ": ".join(filter(None, (loss.path, loss.what, loss.why)))
                    yield (Notice("loss", words, loss=loss),)
            attempt = await question.attempt()
            if request.meter is not None:
                request.meter.reading = attempt.usage
            if request.tap is not None:
                names = prepared.reading.names
                request.tap.renamed = names is not None and not names.verbatim
            answered, failed = False, None
            events = attempt.events()
            try:
                async for batch in events:
                    if not answered and any(type(event) is not Notice for event in batch):
                        answered = True
                        question.answered()
                    yield batch
            except ToolwireError as error:
                failed = question.cleaned(error)
            finally:
                await events.aclose()
            if failed is None:
                return
            if request.meter is not None:
                request.meter.add(attempt.usage())
            try:
                if answered:
                    raise failed
                words, retry = await question.again(failed, attempt)
            except ToolwireError:
                yield attempt.pending()
                raise
            yield (Notice("retry", words, retry=retry),)
            if retry.wait:
                await self.sleep(retry.wait)

    def prepare(self, request: ModelRequest, refused: Sequence[str]) -> _Prepared:
        """The request adapted to this model and server."""
        dialect = dialects.get(self.provider.dialect)
        quirks = without(self.quirks, refused)
        origin = Origin(dialect.family, self.provider.name, self.model)
        notes: tuple[Loss, ...] = ()
        if not self.provider.faithful:
            request, notes = without_members(request, dialect.maker_members)
        request, left_out = fitted(request, self.facts)
        repaired = repair(request.messages, origin, quirks.history or dialect.history)
        request = msgspec.structs.replace(
            request,
            model=self.model,
            messages=repaired.messages,
            stream=request.stream is not False,
        )
        encoded = dialect.encode_request(request, quirks)
        http = encoded.http
        if self.provider.prepare is not None:
            http = self.provider.prepare(http)
        if request.traceparent:
            traced = (*http.headers, ("traceparent", request.traceparent))
            http = msgspec.structs.replace(http, headers=traced)
        return _Prepared(
            http=http,
            losses=(*notes, *left_out, *repaired.changes, *encoded.losses),
            reading=dialects.DecodeOptions(
                new_id=self.make_id, origin=origin, quirks=quirks, names=encoded.names
            ),
        )

    def outgoing(self, http: HttpRequest, credentials: Headers) -> Outgoing:
        """The request with its URL and credentials."""
        return Outgoing(
            method=http.method,
            url=_address(self.base, http.path, http.query),
            headers=_merged(http.headers, self.provider.headers, credentials),
            body=http.body,
            insecure=self.provider.allow_insecure_http,
        )

    async def exchange(self, http: HttpRequest) -> AbstractAsyncContextManager[Incoming]:
        """The answer to any request to the same server, as it is; not retried."""
        outgoing = await self._with_credentials(http)
        return self.transport.open(outgoing)

    async def count(self, request: ModelRequest) -> int | None:
        """The vendor's own count of a request's tokens; None if it does not offer one."""
        path = _COUNTS.get(self.provider.dialect)
        if path is None:
            return None
        prepared = self.prepare(request, self.learned.refused(self.provider.name, self.model))
        http = path(prepared.http, self.model)
        async with await self.exchange(http) as incoming:
            body = b"".join([chunk async for chunk in incoming.chunks])
        if incoming.status != 200:
            return None
        try:
            counted = msgspec.json.decode(body, type=_Counted)
        except msgspec.MsgspecError:
            return None
        return counted.input_tokens or counted.total or None

    async def _with_credentials(self, http: HttpRequest) -> Outgoing:
        outgoing = self.outgoing(http, await self.credential(False))
        if self.sign is None:
            return outgoing
        signature = await self.sign(outgoing, self.now())
        return msgspec.structs.replace(outgoing, headers=_merged(outgoing.headers, signature))


class _Counted(msgspec.Struct):
    input_tokens: int = 0
    total: int = msgspec.field(name="totalTokens", default=0)


_COUNTED = ("model", "system", "messages", "tools", "tool_choice", "thinking")
"""Members of a request that Anthropic counts; others are errors there."""


def _anthropic_count(http: HttpRequest, model: str) -> HttpRequest:
    body = parse_object(http.body, "request")
    counted = {name: body[name] for name in _COUNTED if name in body}
    return msgspec.structs.replace(http, path=f"{http.path}/count_tokens", body=encode(counted))


def _gemini_count(http: HttpRequest, model: str) -> HttpRequest:
    body = parse_object(http.body, "request")
    whole = {"model": f"models/{model}", **body}
    path = f"{http.path.rpartition(':')[0]}:countTokens"
    return msgspec.structs.replace(
        http, path=path, query=(), body=encode({"generateContentRequest": whole})
    )


_COUNTS: dict[str, Callable[[HttpRequest, str], HttpRequest]] = {
    "anthropic-messages": _anthropic_count,
    "gemini": _gemini_count,
}


class _RequestRun:
    """One request with all its attempts."""

    _dropped: tuple[str, ...] = ()
    _number = 1
    _sent = 0
    _credentials: Headers | None = None
    _refreshed = False
    _outgoing: Outgoing | None = None
    """The request of the last attempt."""

    def __init__(self, line: Endpoint, request: ModelRequest) -> None:
        self._line = line
        self._request = request
        self._known = line.learned.refused(line.provider.name, line.model)
        self.prepared = line.prepare(request, self._known)

    async def attempt(self) -> Attempt:
        """The next attempt."""
        line = self._line
        self._sent += 1
        if self._credentials is None:
            self._credentials = await line.credential(False)
        http = self.prepared.http
        if line.project is not None:
            http = _with_project(http, await line.project())
        outgoing = line.outgoing(http, self._credentials)
        if line.sign is not None:
            # Last, and for each attempt: it covers the bytes and the time.
            signature = await line.sign(outgoing, line.now())
            headers = _merged(outgoing.headers, signature)
            outgoing = msgspec.structs.replace(outgoing, headers=headers)
        self._outgoing = outgoing
        dialect = dialects.get(line.provider.dialect)
        tap = self._request.tap
        return Attempt(line.transport, dialect, outgoing, self.prepared.reading, tap)

    def cleaned(self, error: ToolwireError) -> ToolwireError:
        """The error without the secrets of the last attempt, its message shortened."""
        secrets = [value for _, value in self._credentials or ()]
        if self._outgoing is not None:
            secrets += secrets_of(self._outgoing.url, self._outgoing.headers)
        cleaned = Redactor(tuple(secrets)).clean(error)
        message = str(cleaned)
        if cleaned.kind == ErrorKind.AUTH and self._line.origin:
            message = f"{self._line.provider.name}: {message} (credential {self._line.origin})"
            cleaned.args = (message,)
        if len(message) > _LONGEST_MESSAGE:
            left = len(message) - _LONGEST_MESSAGE
            cleaned.args = (f"{message[:_LONGEST_MESSAGE]}… ({left} more characters)",)
        return cleaned

    def answered(self) -> None:
        """Record the members that had to be dropped."""
        line = self._line
        for member in self._dropped:
            line.learned.add(line.provider.name, line.model, member)

    async def again(self, error: ToolwireError, attempt: Attempt) -> tuple[str, Retry]:
        """Why and how the request is repeated; raises the error if it is not."""
        retry = Retry(status=_status(error), attempt=self._sent + 1)
        if isinstance(error, ProviderError):
            if error.status == 401 and error.kind == ErrorKind.AUTH and await self._refresh():
                return f"{_words(error)}; retrying with fresh credentials", retry
            member = droppable(error)
            if member is not None and self._drop(member):
                return f"{_words(error)}; retrying without {member}", retry
        policy = self._line.policy
        decision = decide(
            error,
            self._number,
            policy,
            self._line.jitter(),
            should_retry=attempt.should_retry,
        )
        if isinstance(decision, GiveUp):
            if decision.reason:
                error.args = (f"{error} ({decision.reason})",)
            raise error
        self._number += 1
        if not self._refreshed:
            # They may expire during the wait.
            self._credentials = None
        count = f"attempt {self._number} of {policy.attempts}"
        words = f"{_words(error)}; waiting {decision.seconds:.1f} s ({count})"
        return words, msgspec.structs.replace(retry, wait=decision.seconds)

    async def _refresh(self) -> bool:
        """Whether credentials other than the refused ones are available; tried once."""
        if self._refreshed:
            return False
        self._refreshed = True
        old, self._credentials = self._credentials, await self._line.credential(True)
        return self._credentials != old

    def _drop(self, member: str) -> bool:
        """Whether dropping a member changes the request; each is dropped once."""
        if member in self._dropped:
            return False
        dropped = (*self._dropped, member)
        prepared = self._line.prepare(self._request, (*self._known, *dropped))
        if prepared.http == self.prepared.http:
            return False
        self._dropped, self.prepared = dropped, prepared
        return True


@lru_cache(maxsize=_REMEMBERED)
def _merged(*given: Headers) -> Headers:
    """The headers in lower case; the last of a name counts."""
    found = {name.lower(): value for headers in given for name, value in headers}
    return tuple(found.items())


@lru_cache(maxsize=_REMEMBERED)
def _address(base: str, path: str, members: Headers) -> str:
    base, _, query = base.partition("?")
    path = path if "://" in path else base.rstrip("/") + path
    query = "&".join(part for part in (query, urlencode(members)) if part)
    return f"{path}?{query}" if query else path


def _with_project(http: HttpRequest, project: str) -> HttpRequest:
    if not project:
        return http
    body = parse_object(http.body, "request")
    if body.get("project"):
        return http
    return msgspec.structs.replace(http, body=encode({**body, "project": project}))


def _status(error: ToolwireError) -> int | None:
    return error.status if isinstance(error, ProviderError) else None


def _words(error: ToolwireError) -> str:
    status = _status(error)
    words = " ".join(str(error).split())
    if len(words) > _LONGEST_WORDS:
        words = f"{words[:_LONGEST_WORDS]}…"
    return f"{status} {words}" if status else words
