"""The model that would be used now, why, and whether it is ready."""

import os
from functools import partial
from importlib.util import find_spec

from toolwire.app.embedded import choose_here
from toolwire.app.model_choice import choose_model
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.embedded.catalogue import MODELS
from toolwire.embedded.machine import machine, sizes
from toolwire.embedded.partial import readable
from toolwire.embedded.weights import DownloadConsent, WeightStore
from toolwire.errors import ToolwireError
from toolwire.storage.paths import places


async def model_in_use(
    settings: Settings, transport: Transport, *, offline: bool
) -> dict[str, str]:
    """Returns name, reason and readiness as text."""
    choose = partial(choose_model, settings, os.environ)
    try:
        chosen = await choose_here(choose, settings, os.environ, transport, look=not offline)
    except ToolwireError as error:
        return {"name": "", "reason": str(error), "ready": "no"}
    provider, _, model = chosen.name.partition("/")
    ready = "see its provider below"
    if provider == "local" and model in MODELS:
        ready = _embedded(model, transport)
    return {"name": chosen.name, "reason": chosen.reason, "ready": ready}


def _embedded(model: str, transport: Transport) -> str:
    weights = MODELS[model]
    if find_spec("xllamacpp") is None:
        return "no: pip install 'toolwire[local]'"
    try:
        found = sizes(weights, machine())
    except ToolwireError as error:
        return f"no: {error}"
    shelf = WeightStore.of(places(os.environ), os.environ, transport, DownloadConsent())
    file = shelf.named or shelf.folder / weights.file
    how = f"{found.threads} threads, {found.context} tokens of context"
    if file.is_file():
        return f"yes: {file} ({how})"
    return f"its file is downloaded once, on consent: {readable(weights.size)} ({how})"
