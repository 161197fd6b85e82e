"""Code Assist: Gemini's format in an envelope, as gemini-cli uses it after a login."""

from msgspec.structs import replace

from toolwire.dialects import Encoded
from toolwire.dialects.gemini import Gemini, encoded, read_body
from toolwire.dialects.gemini.encode_request import RequestBody, model_member, write_request
from toolwire.dialects.gemini.shapes import ENVELOPE
from toolwire.dialects.gemini.shapes import NAME as FAMILY
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import BadInput
from toolwire.messages import Kept
from toolwire.request import JsonObject, ModelRequest, Source
from toolwire.wire.json_access import dump, is_object, parse_object

NAME = "code-assist"
_SESSION = "session_id"
"""A member of the request inside that Gemini itself does not know."""
_INNER = "request."


class CodeAssist(Gemini):
    """The dialect. Its history, seals, kept members and errors are Gemini's."""

    name = NAME
    enveloped = True

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The request as it goes over the wire, and what it could not carry."""
        body, written = _seal_envelope(request, quirks)
        return encoded(request, "/v1internal", body, written)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request."""
        return read_body(body, lambda given: _open_envelope(given, model))


def _open_envelope(body: JsonObject, model: str) -> ModelRequest:
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


def _seal_envelope(request: ModelRequest, quirks: Quirks) -> tuple[JsonObject, RequestBody]:
    """The body with its envelope, and the request inside."""
    given = request.source.body if request.source.dialect == NAME else None
    written = write_request(request, quirks, None if given is None else given["request"])
    inner = written.body
    outer = {} if given is None else model_member(request, given)
    named = given is not None and (given.get("model") or given["request"].get("model"))
    if given is None or (request.model and not named):
        outer = {"model": request.model}
    for key, value in written.envelope.items():
        if key.startswith(_INNER):
            inner[key.removeprefix(_INNER)] = value
        else:
            outer[key] = value
    return {**outer, "request": inner}, written


DIALECT = CodeAssist()
