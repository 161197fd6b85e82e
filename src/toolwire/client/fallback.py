"""Fallback to another model when one does not answer."""

from collections.abc import AsyncIterator, Sequence

from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import ModelEvent, Notice
from toolwire.model import Model, reading
from toolwire.request import ModelRequest

_ELSEWHERE = frozenset(
    {
        ErrorKind.QUOTA,
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.TIMEOUT,
        ErrorKind.MALFORMED_CALL,
    }
)
_LOCKED_OUT = frozenset({ErrorKind.AUTH, ErrorKind.PERMISSION})


def falling_back(models: Sequence[tuple[str, Model]], *, on_auth: bool = False) -> Model:
    """The first model that answers; there is no fallback after its first event. Raises the error of
    the last one.

    `on_auth` also skips a model whose credentials are refused; by default that is an error.
    """
    models = tuple(models)
    if not models:
        raise BadInput("no models to fall back on; name at least one")
    kinds = _ELSEWHERE | _LOCKED_OUT if on_auth else _ELSEWHERE

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        followers = (*(name for name, _ in models[1:]), "")
        for (name, model), following in zip(models, followers, strict=True):
            answered = False
            try:
                async with reading(model(request)) as events:
                    async for event in events:
                        answered = answered or not isinstance(event, Notice)
                        yield event
                return
            except ToolwireError as error:
                if answered or not following or not _helps(error, kinds):
                    raise
                words = " ".join(str(error).split())
            yield Notice("fallback", f"{name} does not answer: {words}; asking {following}")

    return ask


def _helps(error: ToolwireError, kinds: frozenset[ErrorKind]) -> bool:
    if isinstance(error, ProviderError):
        return error.kind in kinds
    return isinstance(error, ConnectionFailed | IncompleteStream | MalformedStream)
