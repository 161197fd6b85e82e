import asyncio
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from toolwire.app import open_model
from toolwire.client.http.transport import HttpTransport
from toolwire.config import Settings
from toolwire.embedded.catalogue import MODELS
from toolwire.embedded.engine import start
from toolwire.embedded.machine import Sizes
from toolwire.errors import ModelMissing
from toolwire.events import Finished, ModelEvent, StopReason, TextDelta
from toolwire.messages import Message, Text
from toolwire.request import ModelRequest, OutputFormat
from toolwire.storage.paths import state_paths

installed = find_spec("xllamacpp") is not None
needs_engine = pytest.mark.skipif(not installed, reason="xllamacpp is not installed")


def there() -> str:
    """A model whose weights this user has fetched, the smaller one first."""
    folder = state_paths(os.environ).cache / "models"
    found = sorted(MODELS.values(), key=lambda it: it.size)
    return next((it.model for it in found if (folder / it.file).is_file()), "")


async def said(model: str, environ: dict[str, str]) -> list[ModelEvent]:
    transport = HttpTransport()
    try:
        opened = await open_model(
            f"local/{model}", settings=Settings(), environ=environ, transport=transport
        )
        request = ModelRequest(
            model=opened.model,
            messages=(Message(role="user", parts=(Text("Is water wet?"),)),),
            output=OutputFormat(kind="json_schema", schema={"enum": ["yes", "no"]}, name="answer"),
        )
        return [event async for event in opened.ask(request)]
    finally:
        await transport.aclose()


@needs_engine
def test_a_file_that_is_not_a_model_is_refused_with_its_name(tmp_path: Path):
    file = tmp_path / "no.gguf"
    file.write_bytes(b"GGUF but not really")
    with pytest.raises(ModelMissing, match=r"cannot load .*no\.gguf"):
        start(file, Sizes(threads=1, context=256), tmp_path / "states", "no")


@pytest.mark.skipif(installed, reason="xllamacpp is installed")
def test_without_the_package_the_command_to_install_it_is_reported(tmp_path: Path):
    with pytest.raises(ModelMissing, match=r"pip install 'toolwire\[local\]'"):
        start(tmp_path / "a.gguf", Sizes(threads=1, context=256), tmp_path / "states", "a")


def test_without_weights_and_consent_asking_says_the_ways_on(tmp_path: Path):
    environ = {"TOOLWIRE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(ModelMissing, match="other options"):
        asyncio.run(said("qwen2.5-coder-0.5b", environ))


@needs_engine
@pytest.mark.slow
@pytest.mark.skipif(not there(), reason="the weights were not fetched on this machine")
def test_the_embedded_model_answers_within_a_schema():
    events = asyncio.run(said(there(), dict(os.environ)))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    last = events[-1]
    assert text in ('"yes"', '"no"')
    assert isinstance(last, Finished)
    assert (last.reason, last.model) == (StopReason.END, there())
