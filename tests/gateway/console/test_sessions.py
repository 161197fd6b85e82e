"""Sessions that the gateway runs, and those of other processes, through the console's API."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.console.browser import Browser, fetch
from toolwire.simulator import Call, Fault, reply


def write(home: Path) -> Call:
    path = str(home / "work" / "note.txt")
    return Call.of("write_file", file_path=path, content="model's words\n")


def gateway(home: Path, *script: Any, **more: Any) -> ServedGateway:
    home.joinpath("work").mkdir(exist_ok=True)
    return ServedGateway("openai-chat", script, home=home, model="served-model", **more)


def start(browser: Browser, home: Path, prompt: str = "write it") -> str:
    got = browser.post("/api/sessions", {"prompt": prompt, "project": str(home / "work")})
    assert got.status == 201, got.body
    return got.json["session"]["id"]


def question(browser: Browser) -> dict[str, Any]:
    return awaited(lambda: browser.get("/api/questions").json["questions"])[0]


def awaited(look: Any) -> Any:
    until = time.monotonic() + 40
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def settled(browser: Browser, session: str, state: str = "idle") -> dict[str, Any]:
    def look() -> Any:
        row = browser.get(f"/api/sessions/{session}").json["session"]
        return row if row["state"] == state else None

    return awaited(look)


def kinds(browser: Browser, session: str) -> list[str]:
    records = browser.get(f"/api/sessions/{session}/events").json["records"]
    assert [one["seq"] for one in records] == list(range(1, len(records) + 1))
    return [one["event"]["type"] for one in records]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_an_edit_is_approved_once_in_the_browser(home: Path):
    with gateway(home, reply(write(home)), reply("done")) as served:
        browser = Browser(served.origin, TOKEN)
        session = start(browser, home)
        asked = question(browser)
        assert (asked["session"], asked["here"], asked["again"]) == (session, True, False)
        assert asked["details"]["type"] == "edit"
        assert "+model's words" in asked["details"]["diff"]
        assert asked["content"] == "model's words\n"
        assert ("session" in asked["choices"]) == bool(asked["remembers"])
        assert {"once", "cancel"} <= set(asked["choices"])
        assert settled(browser, session, "waiting")["questions"] == 1
        path = f"/api/questions/{asked['id']}"
        token = {"authorization": f"Bearer {TOKEN}"}
        assert fetch(served.origin, "POST", path, {"choice": "once"}, token).status == 403
        assert browser.post(path, {"choice": "server"}).status == 400
        assert browser.post(path, {"choice": "never"}).status == 400
        assert browser.post(path, {"choice": "once"}).json == {"answered": True, "choice": "once"}
        again = browser.post(path, {"choice": "cancel"})
        assert (again.status, again.json["state"]) == (409, "answered")
        assert browser.post("/api/questions/q_none", {"choice": "once"}).status == 404
        row = settled(browser, session)
        assert (row["title"], row["turns"], row["here"]) == ("write it", 1, True)
        assert home.joinpath("work/note.txt").read_text() == "model's words\n"
        assert kinds(browser, session).count("tool_asked") == 1


def test_the_text_may_be_changed_and_a_denial_has_words(home: Path):
    script = [reply(write(home)), reply(write(home)), reply("ok")]
    with gateway(home, *script) as served:
        browser = Browser(served.origin, TOKEN)
        session = start(browser, home)
        path = f"/api/questions/{question(browser)['id']}"
        assert browser.post(path, {"choice": "once", "content": "user's words\n"}).status == 200
        file = home / "work" / "note.txt"
        awaited(file.exists)
        second = question(browser)
        assert file.read_text() == "user's words\n"
        denied = {"choice": "cancel", "feedback": "leave that file alone"}
        assert browser.post(f"/api/questions/{second['id']}", denied).status == 200
        settled(browser, session)
        assert "leave that file alone" in json.dumps(served.bodies[-1])


def test_a_question_before_a_restart_is_asked_again(home: Path):
    with gateway(home, reply(write(home))) as served:
        browser = Browser(served.origin, TOKEN)
        session = start(browser, home)
        old = question(browser)
    with gateway(home, reply("finished")) as served:
        browser = Browser(served.origin, cookie=browser.cookie, csrf=browser.csrf)
        new = question(browser)
        assert (new["session"], new["again"], new["call_id"]) == (session, True, old["call_id"])
        assert browser.post(f"/api/questions/{old['id']}", {"choice": "once"}).status == 404
        assert not home.joinpath("work/note.txt").exists()
        assert browser.post(f"/api/questions/{new['id']}", {"choice": "once"}).status == 200
        settled(browser, session)
        assert home.joinpath("work/note.txt").read_text() == "model's words\n"
        found = kinds(browser, session)
        assert found.count("tool_started") == 1
        assert found[-1] == "turn_ended"


def test_events_stream_with_their_numbers_and_pieces(home: Path):
    slow = reply("streamed words " * 8, fault=Fault(wait_each=0.15))
    with gateway(home, slow, reply("second")) as served:
        browser = Browser(served.origin, TOKEN)
        session = start(browser, home, "talk")
        text, seqs, partial = "", [], ""
        with browser.events(f"/api/sessions/{session}/events") as events:
            for event in events:
                if event.name == "records":
                    seqs += [one["seq"] for one in event.data["records"]]
                    assert event.id == str(seqs[-1])
                    if event.data["records"][-1]["event"]["type"] == "turn_ended":
                        break
                elif event.name == "partial":
                    text = partial = event.data["text"]
                elif event.name == "pieces":
                    text += "".join(one.get("text", "") for one in event.data["pieces"])
        assert text == "streamed words " * 8
        assert seqs == list(range(1, len(seqs) + 1))
        assert browser.post(f"/api/sessions/{session}/say", {"text": "more"}).status == 202
        with browser.events("/api/sessions/" + session + "/events?after=1") as events:
            first = events.until("records").data["records"][0]["seq"]
        assert (first, partial == "" or text.startswith(partial)) == (2, True)
        header = {"last_event_id": str(seqs[-1])}
        with browser.events(f"/api/sessions/{session}/events?after=1", **header) as events:
            assert events.until("records").data["records"][0]["seq"] == seqs[-1] + 1


def test_a_turn_is_stopped_and_its_question_withdrawn(home: Path):
    with gateway(home, reply(write(home)), reply("after")) as served:
        browser = Browser(served.origin, TOKEN)
        session = start(browser, home)
        asked = question(browser)
        assert browser.post(f"/api/sessions/{session}/stop").status == 202
        settled(browser, session)
        late = browser.post(f"/api/questions/{asked['id']}", {"choice": "once"})
        assert (late.status, late.json["state"]) == (409, "withdrawn")
        assert browser.post(f"/api/sessions/{session}/stop").status == 409
        assert browser.post(f"/api/sessions/{session}/mode", {"mode": "plan"}).status == 200
        assert browser.post(f"/api/sessions/{session}/say", {"text": "go on"}).status == 202
        awaited(lambda: kinds(browser, session).count("turn_ended") == 2)
        row = browser.get(f"/api/sessions/{session}").json["session"]
        assert (row["mode"], row["turns"]) == ("plan", 2)


def test_sessions_are_listed_forked_and_exported(home: Path):
    with gateway(home, reply("one"), reply("two")) as served:
        browser = Browser(served.origin, TOKEN)
        session = start(browser, home, "first words")
        settled(browser, session)
        detail = browser.get(f"/api/sessions/{session}").json
        upto = detail["turns"][0]["seq"]
        fork = browser.post(f"/api/sessions/{session}/fork", {"upto": upto}).json["session"]
        assert (fork["state"], fork["turns"]) == ("closed", 1)
        listed = browser.get("/api/sessions?limit=1").json
        assert (listed["total"], len(listed["sessions"])) == (2, 1)
        rest = browser.get(f"/api/sessions?before={listed['next']}").json["sessions"]
        assert {listed["sessions"][0]["id"], rest[0]["id"]} == {session, fork["id"]}
        assert browser.get("/api/sessions?q=nothing").json["sessions"] == []
        assert len(browser.get("/api/sessions?q=FIRST").json["sessions"]) == 2
        markdown = browser.get(f"/api/sessions/{session}/export?format=markdown")
        assert "first words" in markdown.body.decode()
        assert ".md" in markdown.fields["content-disposition"]
        assert browser.get(f"/api/sessions/{session}/export?format=odd").status == 400
        assert browser.get("/api/sessions/nothing").status == 404
        assert browser.get("/api/projects").json["projects"] == [str(home / "work")]
        assert browser.post("/api/sessions", {"prompt": "x", "project": "/nowhere"}).status == 400
        assert browser.post("/api/sessions", {"prompt": " "}).status == 400
        closed = browser.post(f"/api/sessions/{session}/close").json["session"]
        assert (closed["state"], closed["here"]) == ("closed", False)


_HOLD = """
import asyncio, sys
from toolwire.agent.events import MessageAdded, SessionOpened, TurnStarted
from toolwire.messages import Message, Text
from toolwire.sessions.sqlite import SqliteStore
from toolwire.storage.paths import state_paths
import os
async def main():
    journal = SqliteStore(state_paths(os.environ).sessions).create(os.getcwd())
    id = journal.session
    await journal.append(id, SessionOpened(session=id, model="a/b"))
    await journal.append(id, TurnStarted())
    await journal.append(id, MessageAdded(message=Message(role="user", parts=(Text("held"),))))
    print(id, flush=True)
    sys.stdin.readline()
    await journal.append(id, MessageAdded(message=Message(role="user", parts=(Text("later"),))))
    sys.stdin.readline()
    await journal.close()
asyncio.run(main())
"""


def test_sessions_of_other_processes_are_followed_and_say_who_holds_them(home: Path):
    with gateway(home, reply("hi")) as served:
        environ = {**os.environ, "TOOLWIRE_HOME": str(home), "HOME": str(home)}
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
            cwd=home / "work",
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            session = process.stdout.readline().strip()
            browser = Browser(served.origin, TOKEN)
            row = browser.get(f"/api/sessions/{session}").json["session"]
            assert (row["state"], row["held_by"]["pid"]) == ("held", process.pid)
            refused = browser.post(f"/api/sessions/{session}/say", {"text": "hello"})
            assert (refused.status, str(process.pid) in refused.error) == (409, True)
            assert browser.post(f"/api/sessions/{session}/stop").status == 409
            with browser.events(f"/api/sessions/{session}/events?after=3") as events:
                events.until("session")
                process.stdin.write("\n")
                process.stdin.flush()
                found = events.until("records").data["records"]
            assert [one["seq"] for one in found] == [4]
        finally:
            process.communicate("\n\n", timeout=40)
        assert browser.get(f"/api/sessions/{session}").json["session"]["state"] == "closed"


def test_live_streams_carry_questions(home: Path):
    with gateway(home, reply(write(home)), reply("done")) as served:
        browser = Browser(served.origin, TOKEN)
        with browser.events("/api/live?topics=questions") as events:
            assert events.until("questions").data["questions"] == []
            session = start(browser, home)
            found = events.until("questions").data["questions"]
            assert [one["session"] for one in found] == [session]
            browser.post(f"/api/questions/{found[0]['id']}", {"choice": "cancel"})
            assert events.until("questions").data["questions"] == []
