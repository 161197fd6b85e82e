"""The page docs/editors.md: options, settings and examples as the program has them."""

import json
import re
import tomllib
from pathlib import Path

import msgspec

from toolwire.acp.choices import MODES
from toolwire.acp.protocol import AUTH_REQUIRED, NOT_FOUND
from toolwire.acp.questions import CONTENT, FEEDBACK
from toolwire.acp.slash import OWN
from toolwire.cli.acp import acp_command
from toolwire.config.acp import AcpSettings, IdeSettings
from toolwire.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS

PAGE = (Path(__file__).parents[2] / "docs" / "editors.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_option_is_on_the_page():
    line = PAGE[PAGE.index("Options of the command:") :].partition("\n\n")[0]
    known = {name for one in acp_command.params for name in one.opts if name.startswith("--")}
    assert set(re.findall(r"`(--[a-z-]+)", line)) == known


def test_configurations_of_editors_start_the_command():
    for block in blocks("json"):
        [server] = json.loads(block)["agent_servers"].values()
        assert (server["command"], server["args"]) == ("toolwire", ["acp"])
        acp_command.make_context("acp", server["args"][1:])
    [lua] = blocks("lua")
    assert '{ "toolwire", "acp" }' in lua


def test_settings_have_their_defaults():
    [acp] = [one["acp"] for one in map(tomllib.loads, blocks("toml")) if "acp" in one]
    assert msgspec.convert(acp, AcpSettings) == AcpSettings()
    assert set(acp) == set(AcpSettings.__struct_fields__)
    [ide] = [one["ide"] for one in map(tomllib.loads, blocks("toml")) if "ide" in one]
    assert msgspec.convert(ide, IdeSettings) == IdeSettings()


def test_names_and_codes_are_those_of_the_program():
    listed = {int(code) for code in re.findall(r"^\| `(-\d+)`", PAGE, re.MULTILINE)}
    assert listed == {INVALID_PARAMS, NOT_FOUND, AUTH_REQUIRED, INTERNAL_ERROR}
    for name in (CONTENT, FEEDBACK, *(f"`/{one}`" for one in OWN), *(f"`{m}`" for m in MODES)):
        assert name in PAGE
