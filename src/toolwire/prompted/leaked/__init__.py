"""Calls that a model printed as text in a known format, recognised and checked."""

from collections.abc import AsyncIterator, Callable, Iterable

from toolwire.errors import ToolwireError, UnknownName
from toolwire.events import ModelEvent
from toolwire.model import Model, reading
from toolwire.prompted.leaked import gemma, marked_json, pythonic, special_tokens, tagged
from toolwire.prompted.leaked.cursor import Format
from toolwire.prompted.leaked.gate import Gate
from toolwire.prompted.leaked.reader import Reader
from toolwire.request import ModelRequest

FORMATS = {
    form.name: form
    for form in (
        *marked_json.FORMATS,
        *tagged.FORMATS,
        *special_tokens.FORMATS,
        *pythonic.FORMATS,
        *gemma.FORMATS,
    )
}
"""Every known format by name, as `ModelRule.leaked` lists them."""


def wrap(model: Model, formats: Iterable[str], new_id: Callable[[], str]) -> Model:
    """The model with printed calls turned into call events; unchanged without formats."""
    known = tuple(map(_format, formats))
    if not known:
        return model

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        reader = Reader(known, Gate(request.tools, request.tool_choice), new_id)
        async with reading(model(request)) as events:
            try:
                async for event in events:
                    for out in reader.read(event):
                        yield out
            except ToolwireError:
                for out in reader.flush(whole=False):
                    yield out
                raise

    return ask


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UnknownName("format of printed calls", name, FORMATS)
    return FORMATS[name]
