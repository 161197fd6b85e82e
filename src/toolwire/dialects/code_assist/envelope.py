"""The envelope around a Gemini request: model, project and the ids of prompt and session."""

from msgspec.structs import replace

from toolwire.dialects.gemini import enveloped
from toolwire.dialects.gemini.encode_request import ENVELOPE, Body, is_own, write_request
from toolwire.dialects.gemini.shapes import NAME, is_object
from toolwire.dialects.quirks import Quirks
from toolwire.errors import BadInput
from toolwire.messages import Kept
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.json_access import dump, parse_object

_SESSION = "session_id"
"""Stands inside the request, yet Gemini itself does not know it."""
_INNER = f"{ENVELOPE}request."


def open_envelope(body: JsonObject, model: str) -> ModelRequest:
    """The request inside, with the envelope noted."""
    from toolwire.dialects.gemini.decode_request import read_request  # noqa: PLC0415

    given = body.get("request")
    if not is_object(given):
        raise BadInput("request: expected an object")
    inner = dict(given)
    outer = {key: value for key, value in body.items() if key != "request"}
    fields: JsonObject = {}
    if _SESSION in inner:
        fields[_INNER + _SESSION] = inner.pop(_SESSION)
    named = outer.get("model")
    if isinstance(named, str) and named:
        del outer["model"]
    else:
        named = ""
    fields |= {ENVELOPE + key: value for key, value in outer.items()}
    request = read_request(inner, "")
    kept = request.kept or Kept(dialect=NAME)
    form = parse_object(kept.form, "kept form") if kept.form else {}
    form["envelope"] = named
    form["model_read"] = named.removeprefix("models/") or request.model
    members = parse_object(kept.fields, "kept members") | fields
    kept = Kept(dialect=NAME, fields=dump(members), form=dump(form))
    return replace(request, model=model or form["model_read"], kept=kept)


def seal_envelope(request: ModelRequest, quirks: Quirks) -> tuple[JsonObject, Body]:
    """The body with its envelope, and the request inside."""
    exact = is_own(request) and enveloped(request)
    written = write_request(request, quirks, exact=exact)
    inner = written.body
    outer: JsonObject = {}
    named = written.envelope.form.get("envelope") if exact else None
    if not exact:
        outer["model"] = request.model
    elif named:
        unchanged = written.envelope.form["model_read"] == request.model
        outer["model"] = named if unchanged else request.model
    for key, value in written.envelope.fields.items():
        if key.startswith(_INNER):
            inner[key.removeprefix(_INNER)] = value
        else:
            outer[key.removeprefix(ENVELOPE)] = value
    return {**outer, "request": inner}, written
