"""`toolwire acp` as a real process, with the official SDK's client as the editor."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema
from acp.exceptions import RequestError

from tests.fakes.simulated import LONGEST, Place, command
from toolwire.simulator import Call, Question, Reply, Say, Think

FULL: dict[str, Any] = {"fs": {"readTextFile": True, "writeTextFile": True}}
LINE = 64 * 1024 * 1024


class Model:
    """A scripted model whose next replies each test sets."""

    def __init__(self) -> None:
        self._replies: list[Reply | str] = []
        self._prompt = ""
        self._lock = threading.Lock()

    def say(self, *replies: Reply | str, to: str = "") -> None:
        """Sets the next replies; with `to`, only to requests whose last prompt contains it.

        The request of a cancelled turn can reach the model after the next replies are set.
        """
        with self._lock:
            self._replies, self._prompt = list(replies), to

    def __call__(self, question: Question) -> Reply:
        with self._lock:
            if self._prompt not in question.last_user_text:
                return Reply(pieces=(Say("too late"),))
            found = self._replies.pop(0) if self._replies else "nothing is scripted"
        return Reply(pieces=(Say(found),)) if isinstance(found, str) else found


def calls(*wanted: Call, say: str = "", think: str = "") -> Reply:
    before = (*((Think(think),) if think else ()), *((Say(say),) if say else ()))
    return Reply(pieces=(*before, *wanted))


Decide = Callable[[dict[str, Any]], dict[str, Any]]


def choosing(option: str, **meta: Any) -> Decide:
    """An answer to every permission request."""
    outcome = {"outcome": "selected", "optionId": option}
    return lambda params: {"outcome": outcome, **({"_meta": meta} if meta else {})}


class Editor:
    """The user's editor, an `acp.Client`: buffers, answers and terminals."""

    def __init__(self) -> None:
        self.buffers: dict[str, str] = {}
        self.written: list[str] = []
        self.refused: dict[str, int] = {}
        self.decide: Decide = choosing("once")
        self.wait: asyncio.Event | None = None
        self.forms: list[dict[str, Any]] = []
        self.form_answer: Any = {"action": "accept", "content": {"answer": "blue"}}
        self.terminals: dict[str, Any] = {}
        self.killed: list[str] = []

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """The observer has it."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **more: Any
    ) -> Any:
        if self.wait is not None:
            await self.wait.wait()
        params = {
            "toolCall": tool_call.model_dump(by_alias=True, exclude_none=True),
            "options": [one.model_dump(by_alias=True) for one in options],
        }
        return schema.RequestPermissionResponse.model_validate(self.decide(params))

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> Any:
        if path in self.refused:
            raise RequestError(self.refused[path], "refused")
        if path in self.buffers:
            return schema.ReadTextFileResponse(content=self.buffers[path])
        found = _on_disk(path)
        if found is None:
            raise RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=found)

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> Any:
        self.written.append(path)
        if path in self.buffers:
            self.buffers[path] = content
        _write(path, content)

    async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
        process = await asyncio.create_subprocess_exec(
            command,
            *(more.get("args") or []),
            cwd=more.get("cwd"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        name = f"term-{len(self.terminals) + 1}"
        self.terminals[name] = {"process": process, "more": more, "output": "", "released": False}
        return schema.CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        terminal = self.terminals[terminal_id]
        out, _ = await terminal["process"].communicate()
        terminal["output"] += out.decode()
        return schema.WaitForTerminalExitResponse(exit_code=max(terminal["process"].returncode, 0))

    async def terminal_output(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        return schema.TerminalOutputResponse(
            output=self.terminals[terminal_id]["output"], truncated=False
        )

    async def release_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.terminals[terminal_id]["released"] = True

    async def kill_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.killed.append(terminal_id)
        with suppress(ProcessLookupError):
            self.terminals[terminal_id]["process"].kill()

    async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
        self.forms.append({"message": message, "mode": mode.model_dump(by_alias=True), **more})
        kinds = {"accept": schema.AcceptElicitationResponse}
        kind = kinds.get(self.form_answer["action"], schema.DeclineElicitationResponse)
        return kind.model_validate(self.form_answer)


def _on_disk(path: str) -> str | None:
    return Path(path).read_text() if Path(path).is_file() else None


def _write(path: str, content: str) -> None:
    Path(path).write_text(content)


class Loop:
    """An event loop in a thread, for a whole module."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Any], seconds: float = LONGEST) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def event(self) -> asyncio.Event:
        async def made() -> asyncio.Event:
            return asyncio.Event()

        return self.do(made())

    def call(self, work: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(work)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Agent:
    """The agent's process, an editor connected to it, and every message that passed."""

    def __init__(
        self,
        place: Place,
        *args: str,
        offers: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.place = place
        self.loop = Loop()
        self.editor = Editor()
        self.messages: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.args = args
        self.env = env or {}
        self.greeting = self.loop.do(self._start(offers if offers is not None else FULL))

    async def _start(self, offers: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        self.process = await asyncio.create_subprocess_exec(
            *command(("acp", *self.args)),
            cwd=self.place.work,
            env=self.place.environ(**self.env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.connection = acp.connect_to_agent(
            cast(Any, self.editor),
            self.process.stdin,
            self.process.stdout,
            use_unstable_protocol=True,
            observers=[self._observe],
        )
        answer = await self.request(
            "initialize", protocolVersion=1, clientCapabilities=offers, clientInfo=None
        )
        self.seconds = time.monotonic() - begun
        return answer

    def _observe(self, event: Any) -> None:
        incoming = event.direction.value == "incoming"
        (self.messages if incoming else self.sent).append(event.message)

    async def request(self, method: str, **params: Any) -> Any:
        """A raw request: answers are not models yet."""
        given = {name: value for name, value in params.items() if value is not None}
        return await self.connection._conn.send_request(method, given)

    def ask(self, method: str, **params: Any) -> Any:
        return self.loop.do(self.request(method, **params))

    def fails(self, method: str, **params: Any) -> RequestError:
        """The error that answers a request."""
        try:
            self.ask(method, **params)
        except RequestError as error:
            return error
        raise AssertionError(f"{method} succeeded")

    def offer(self, offers: dict[str, Any]) -> None:
        """Makes the handshake again: later sessions have an editor with these features."""
        self.ask("initialize", protocolVersion=1, clientCapabilities=offers)

    def open(self, cwd: Path | None = None, **more: Any) -> str:
        """A new session."""
        more.setdefault("mcpServers", [])
        return self.ask("session/new", cwd=str(cwd or self.place.work), **more)["sessionId"]

    def prompting(self, session: str, *blocks: Any) -> Any:
        """A prompt under way."""
        prompt = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        return self.loop.start(self.request("session/prompt", sessionId=session, prompt=prompt))

    def prompt(self, session: str, *blocks: Any) -> str:
        return self.prompting(session, *blocks).result(LONGEST)["stopReason"]

    def cancel(self, session: str) -> None:
        self.loop.do(
            self.connection._conn.send_notification("session/cancel", {"sessionId": session})
        )

    def updates(self, session: str, *kinds: str) -> list[dict[str, Any]]:
        """The updates of a session, in the order of the wire."""
        found = [
            one["params"]["update"]
            for one in self.messages
            if one.get("method") == "session/update" and one["params"]["sessionId"] == session
        ]
        return [one for one in found if not kinds or one["sessionUpdate"] in kinds]

    def requests(self, method: str) -> list[dict[str, Any]]:
        return [one["params"] for one in self.messages if one.get("method") == method]

    def text(self, session: str, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"].get("text", "") for one in self.updates(session, kind))

    def call(self, session: str, at: int = -1) -> dict[str, Any]:
        """A call as the editor has it after all updates."""
        shown: dict[str, dict[str, Any]] = {}
        for one in self.updates(session, "tool_call", "tool_call_update"):
            now = shown.setdefault(one["toolCallId"], {"states": []})
            meta = {**now.get("_meta", {}), **one.get("_meta", {})}
            states = [*now["states"], *([one["status"]] if "status" in one else [])]
            now |= {**one, "_meta": meta, "states": states}
        return list(shown.values())[at]

    def until(self, what: Callable[[], Any], seconds: float = LONGEST) -> Any:
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            found = what()
            if found:
                return found
            time.sleep(0.01)
        raise AssertionError(f"it did not happen: {self.messages[-5:]}")

    def close(self) -> tuple[int, float]:
        """Closes the agent's input: its exit code, and how long it took."""

        async def end() -> tuple[int, float]:
            begun = time.monotonic()
            if self.process.returncode is None:
                assert self.process.stdin
                self.process.stdin.close()
                await self.process.wait()
            took = time.monotonic() - begun
            with suppress(Exception):
                await self.connection.close()
            return self.process.returncode or 0, took

        found = self.loop.do(end())
        self.loop.close()
        return found


def validate(messages: Iterable[dict[str, Any]]) -> int:
    """Checks every message of the agent against the models of version 1."""
    count = 0
    for one in messages:
        count += 1
        method, params = one.get("method"), one.get("params")
        if method == "session/update":
            schema.SessionNotification.model_validate(params)
        elif method is not None:
            _REQUESTS[method].model_validate(params)
        elif "error" in one:
            schema.Error.model_validate(one["error"])
    return count


_REQUESTS: dict[str, Any] = {
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "terminal/create": schema.CreateTerminalRequest,
    "terminal/output": schema.TerminalOutputRequest,
    "terminal/wait_for_exit": schema.WaitForTerminalExitRequest,
    "terminal/kill": schema.KillTerminalRequest,
    "terminal/release": schema.ReleaseTerminalRequest,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
}
_ANSWERS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "authenticate": schema.AuthenticateResponse,
}


def validate_answers(agent: Agent) -> set[str]:
    """Checks every answer; returns the methods that were answered."""
    asked = {one["id"]: one["method"] for one in agent.sent if "method" in one and "id" in one}
    seen: set[str] = set()
    for one in agent.messages:
        if "result" in one:
            method = asked[one["id"]]
            _ANSWERS[method].model_validate(one["result"])
            seen.add(method)
    return seen
