"""The envelope around a Gemini request: model, project and the ids of prompt and session."""

from msgspec.structs import replace

from toolwire.dialects.gemini.encode_request import RequestBody, model_member, write_request
from toolwire.dialects.gemini.shapes import ENVELOPE, is_object
from toolwire.dialects.gemini.shapes import NAME as FAMILY
from toolwire.dialects.quirks import Quirks
from toolwire.errors import BadInput
from toolwire.messages import Kept
from toolwire.request import JsonObject, ModelRequest, Source
from toolwire.wire.json_access import dump, parse_object

NAME = "code-assist"
_SESSION = "session_id"
"""A member of the request inside that Gemini itself does not know."""
_INNER = "request."


def open_envelope(body: JsonObject, model: str) -> ModelRequest:
    """The request inside, with the members of the envelope stored on it."""
    from toolwire.dialects.gemini.decode_request import read_request  # noqa: PLC0415 - for servers

    given = body.get("request")
    if not is_object(given):
        raise BadInput("request: expected an object")
    inner = dict(given)
    outer = {key: value for key, value in body.items() if key != "request"}
    fields: JsonObject = {}
    if _SESSION in inner:
        fields[ENVELOPE + _INNER + _SESSION] = inner.pop(_SESSION)
    named = outer.get("model")
    if isinstance(named, str) and named:
        del outer["model"]
        model = model or named.removeprefix("models/")
    fields |= {ENVELOPE + key: value for key, value in outer.items()}
    source = Source(NAME, body)
    request = read_request(inner, model, source)
    if fields and request.kept is not None:
        members = parse_object(request.kept.fields, "kept members") | fields
        request = replace(request, kept=Kept(dialect=FAMILY, fields=dump(members)))
        source.record(request)
    return request


def seal_envelope(request: ModelRequest, quirks: Quirks) -> tuple[JsonObject, RequestBody]:
    """The body with its envelope, and the request inside."""
    given = request.source.body if request.source.dialect == NAME else None
    written = write_request(request, quirks, None if given is None else given["request"])
    inner = written.body
    outer = {"model": request.model} if given is None else model_member(request, given)
    for key, value in written.envelope.items():
        if key.startswith(_INNER):
            inner[key.removeprefix(_INNER)] = value
        else:
            outer[key] = value
    return {**outer, "request": inner}, written
