"""Examples of the documentation, run as a reader would run them, before a scripted vendor."""

import contextlib
import io
import re
from base64 import b64decode
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Script

ROOT = Path(__file__).parents[1]
RED = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
_BLOCK = re.compile(r"^## (.+?)$|^```python\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.M | re.S)


class Example(NamedTuple):
    title: str
    code: str
    printed: str


def examples_of(page: str) -> list[Example]:
    """Every block of Python below a heading, and what the page says it prints."""
    found: list[Example] = []
    title = ""
    for match in _BLOCK.finditer((ROOT / page).read_text("utf-8")):
        if match[1]:
            title = match[1]
        else:
            found.append(Example(title, match[2], match[3] or ""))
    return found


def printed_by(code: str, script: Script, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What an example prints, where Anthropic keeps to a script and the folder has two files."""
    place = Place(folder)
    (place.work / "notes.txt").write_text("to be done", "utf-8")
    (place.work / "red.png").write_bytes(RED)
    shown = io.StringIO()
    with Simulated(script) as sim, monkeypatch.context() as at:
        at.chdir(place.work)
        at.setenv("HOME", str(place.root))
        at.setenv("TOOLWIRE_HOME", str(place.home))
        at.setenv("ANTHROPIC_API_KEY", "sk-example")
        at.setenv("ANTHROPIC_BASE_URL", sim.upstream("anthropic-messages").partition("=")[2])
        with contextlib.redirect_stdout(shown):
            exec(compile(code, "example", "exec"), {"__name__": "example"})
        assert sim.refusals == []
    return shown.getvalue()
