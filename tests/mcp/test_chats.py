"""Servers in a chat on a real terminal: `/mcp`, questions, prompts, elicitation, logins."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import Terminal
from tests.mcp.auth_server import auth_server
from tests.mcp.servers import in_settings as scripted
from tests.mcp.test_runs import SCRIPT, configure, says
from toolwire.mcp.elicitation import accepting, asking
from toolwire.simulator import Reply
from toolwire.simulator.script import Call


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def chat(place: Place, sim: Simulated) -> Terminal:
    options = ["chat", "--plain", "--upstream", sim.upstream()]
    return Terminal(options, cwd=place.work, env=place.environ(TERM="dumb"))


def test_servers_are_shown_changed_and_asked_about_in_a_chat(place: Place):
    configure(place, one=scripted(SCRIPT))
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": scripted({})}}))
    echo = Reply(pieces=(Call.of("echo"),))
    with Simulated([echo, says("first done"), echo, says("second done"), says("greeted")]) as sim:
        terminal = chat(place, sim)
        terminal.wait_for("> ")
        terminal.type("/mcp restart one")
        terminal.wait_for("one: connected")
        terminal.type("/mcp")
        terminal.wait_for("theirs: waits for approval")
        terminal.type("go")
        terminal.wait_for("every tool of the MCP server one (m)")
        terminal.type("m")
        terminal.wait_for("first done")
        terminal.type("again")
        terminal.wait_for("second done")
        terminal.type("/greet ann")
        terminal.wait_for("greeted")
        terminal.type("/mcp approve theirs")
        terminal.wait_for("theirs: connected")
        terminal.type("/mcp disable one")
        terminal.wait_for("one is disabled in this session")
        terminal.type("/mcp one")
        terminal.wait_for("/mcp enable one")
        assert terminal.leave() == 0
        terminal.close()
    assert sim.bodies[-1]["messages"][-1]["content"] == "Hi @x!"


FORM = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name"},
            "age": {"type": "integer", "default": 7},
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "sure": {"type": "boolean"},
            "api_token": {"type": "string"},
        },
        "required": ["name"],
    },
}


def answered(answers: list[str], params: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    questions: list[str] = []

    async def ask(question: str, choices: tuple[str, ...]) -> str:
        del choices
        questions.append(question)
        return answers.pop(0)

    async def elicit() -> dict[str, Any]:
        return await asking(ask)("shop")(params)

    return asyncio.run(elicit()), questions


def test_a_form_is_asked_field_by_field():
    result, questions = answered(["answer", "Ann", "", "green", "red", "yes", "s3cret"], FORM)
    assert result == {
        "action": "accept",
        "content": {"name": "Ann", "age": 7, "colour": "red", "sure": True, "api_token": "s3cret"},
    }
    assert questions[0] == "The MCP server shop asks: Who are you?"
    assert "looks like a secret" in questions[-1]


@pytest.mark.parametrize(
    ("answers", "action"), [(["decline"], "decline"), (["answer", ""], "cancel")], ids=str
)
def test_a_form_may_be_declined_and_a_needed_field_left_empty_cancels(
    answers: list[str], action: str
):
    assert answered(answers, FORM)[0] == {"action": action}


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "http://h/x"])
def test_only_safe_addresses_are_offered_to_be_opened(url: str):
    result, questions = answered([], {"mode": "url", "message": "m", "url": url})
    assert (result, questions) == ({"action": "decline"}, [])


def test_accepting_fills_in_defaults_and_true():
    assert asyncio.run(accepting(FORM)) == {
        "action": "accept",
        "content": {"age": 7, "sure": True},
    }


def test_a_login_with_the_browser_is_stored_and_forgotten(place: Place):
    browser = place.root / "browser"
    browser.write_text(
        f"#!{sys.executable}\nimport sys, urllib.request\n"
        "urllib.request.urlopen(sys.argv[1], timeout=20).read()\n"
    )
    browser.chmod(0o755)
    env = {"BROWSER": str(browser)}

    async def steps() -> None:
        async with auth_server() as server:
            configure(place, far={"url": f"{server.address}/mcp"})
            refused = await asyncio.to_thread(place.toolwire, "mcp", "call", "far", "echo", "{}")
            assert refused.code == 1
            assert "toolwire mcp login far" in refused.err
            done = await asyncio.to_thread(place.toolwire, "mcp", "login", "far", env=env)
            assert done.code == 0, done.err
            assert server.address in done.err
            called = await asyncio.to_thread(place.toolwire, "mcp", "call", "far", "echo", "{}")
            assert (called.code, called.out) == (0, "hello\n"), called.err
            gone = await asyncio.to_thread(place.toolwire, "mcp", "logout", "far")
            assert gone.code == 0
            again = await asyncio.to_thread(place.toolwire, "mcp", "list", "--json")
            assert json.loads(again.out)[0]["status"] == "needs_login"

    asyncio.run(steps())
