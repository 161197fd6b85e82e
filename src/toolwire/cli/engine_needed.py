"""`python -m toolwire.cli.engine_needed` fails if the embedded model needs its engine first."""

import asyncio
import os
from importlib.util import find_spec

from toolwire import config
from toolwire.cli.doctor_model import model_in_use
from toolwire.client.http.transport import HttpTransport
from toolwire.config import current_folder


async def needed() -> bool:
    """Whether the engine must be installed before a model can be used."""
    if find_spec("xllamacpp") is not None:
        return False
    transport = HttpTransport()
    try:
        settings = config.load(os.environ, current_folder())
        model = await model_in_use(settings, transport, offline=False)
    finally:
        await transport.aclose()
    return model["name"].startswith("local/")


if __name__ == "__main__":
    raise SystemExit(int(asyncio.run(needed())))
