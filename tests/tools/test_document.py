from pathlib import Path

import msgspec

from toolwire.config.settings import Tools
from toolwire.tools.document import SETTINGS, page
from toolwire.tools.registry import builtins

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"


def test_the_page_about_the_tools_is_what_the_tools_say() -> None:
    assert PAGE.read_text("utf-8") == page(builtins()), (
        "run: python -m toolwire.tools.document > docs/tools.md"
    )


def test_every_setting_of_the_tools_is_told_with_its_default() -> None:
    usual = msgspec.json.decode(msgspec.json.encode(Tools()))
    told = {name: _value(default) for name, (default, _) in SETTINGS.items()}
    assert told == usual


def _value(default: str) -> object:
    return None if default == "not set" else msgspec.json.decode(default)
