"""A capture of gemini-cli played to our own agent: its folders, its settings, its model's answers.

played = play(captures.load("0.5.5", "read_file_text"), tmp_path)
assert played.tail(1) == capture.expected
"""

import asyncio
import io
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests import captures
from tests.captures import Capture, Json, Stage
from tests.fakes.simulated import LONGEST, Simulated, command
from toolwire import config
from toolwire.agent.events import reader_of
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.toolbox import workspace_of
from toolwire.cli import output as exits
from toolwire.cli.text_output import TextOutput
from toolwire.context.mentions import user_message
from toolwire.request import ToolSpec
from toolwire.simulator import Reply, Simulator
from toolwire.simulator.script import Question, refused
from toolwire.simulator.vendor_rules import Seals, call_content

MODEL = "google/gemini-2.5-pro"
PIPED = "piped text\n"
"""What the capture `stdin_prompt` does not hold: its first request shows it."""
DONE = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "Done."}]},
            "index": 0,
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
}
"""What the original was answered when its script was over."""
SIGNATURE = "thoughtSignature"
_TOOLS = {
    "truncateToolOutputThreshold": "output_characters",
    "truncateToolOutputLines": "output_lines",
    "core": "core",
    "exclude": "exclude",
}
"""Ours for the original's. Cutting long outputs and a shell with a terminal need no switch."""
_NEEDLESS = ("enableToolOutputTruncation", "shell")


class Vendor:
    """The scripted model: the capture's answers in order, then `Done.`"""

    def __init__(self, capture: Capture, stage: Stage) -> None:
        self._capture = capture
        self._turns = stage.fill(capture.turns)
        self._recorded: dict[str, str] = {}

    def known_to(self, seals: Seals) -> None:
        """The server takes the capture's calls for its own; its seals stand in for recorded ones,
        which nobody could verify.
        """
        for part in _call_parts(self._turns):
            call = part["functionCall"]
            if "id" in call:
                seals.remember(call["id"], (), "")
            if SIGNATURE in part:
                content = call_content(call["name"], call["args"])
                token = seals.issue("gemini", MODEL.partition("/")[2], content)
                self._recorded[token] = part[SIGNATURE]
                part[SIGNATURE] = token

    def as_recorded(self, bodies: Json) -> Json:
        """Requests with the capture's seals in place of the server's."""
        text = json.dumps(bodies)
        for token, recorded in self._recorded.items():
            text = text.replace(token, recorded)
        return json.loads(text)

    def __call__(self, question: Question) -> Reply:
        if not any(isinstance(tool, ToolSpec) for tool in question.request.tools):
            return self._beside()
        turn = self._turns.pop(0) if self._turns else [DONE]
        if isinstance(turn, dict):
            return _refusal(turn["status"], turn["body"])
        return Reply(body=_stream(turn))

    def _beside(self) -> Reply:
        """A question beside the conversation: what the result of the capture tells of it."""
        result = self._capture.expected[-1]["parts"][0]["functionResponse"]
        if not result["name"].startswith(("web_", "google_")):
            return Reply(body=_stream([DONE]))
        if "error" in result["response"]:
            said = result["response"]["error"].partition("gemini-2.5-flash: ")[2]
            return _refusal(400, json.loads(said))
        return Reply(body=_stream([_grounded(result["name"] == "google_web_search")]))


def _call_parts(turns: list[Json]) -> Iterator[Json]:
    for turn in turns:
        for chunk in turn if isinstance(turn, list) else ():
            for candidate in chunk["candidates"]:
                parts = candidate.get("content", {}).get("parts", ())
                yield from (part for part in parts if "functionCall" in part)


def _refusal(status: int, body: Json) -> Reply:
    return Reply(body=json.dumps(body).encode(), fault=refused(status))


def _stream(chunks: list[Json]) -> bytes:
    return b"".join(f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in chunks)


def _grounded(searching: bool) -> Json:
    pages = [
        {"web": {"uri": f"https://{letter}.example/{number}", "title": f"{letter.upper()} {word}"}}
        for letter, number, word in (("a", 1, "One"), ("b", 2, "Two"))
    ]
    ends = ((11, [0]), (22, [0, 1])) if searching else ((13, [0]),)
    text = "Alpha fact. Beta fact." if searching else "Page summary."
    candidate = {
        "content": {"role": "model", "parts": [{"text": text}]},
        "finishReason": "STOP",
        "groundingMetadata": {
            "groundingChunks": pages if searching else pages[:1],
            "groundingSupports": [
                {"segment": {"endIndex": end}, "groundingChunkIndices": which}
                for end, which in ends
            ],
        },
    }
    return {"candidates": [candidate]}


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What one run sent, printed and left behind."""

    stage: Stage
    bodies: list[Json]
    """Every request, placeholders in place of our paths."""
    refusals: list[str]
    out: str
    err: str
    code: int

    @property
    def main(self) -> list[Json]:
        """The contents of the conversation's own requests."""
        return [body["contents"] for body in self.bodies if _is_main(body)]

    @property
    def beside(self) -> list[Json]:
        """Requests beside the conversation."""
        return [body for body in self.bodies if not _is_main(body)]

    def tail(self, number: int) -> Json:
        """What a request added to the first one, which it must begin with."""
        first, later = self.main[0], self.main[number]
        assert later[: len(first)] == first
        return later[len(first) :]


def _is_main(body: Json) -> bool:
    return any("functionDeclarations" in group for group in body.get("tools", ()))


def environ(stage: Stage, origin: str) -> dict[str, str]:
    """A user whose key and address are gemini-cli's."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": str(stage.home),
        "TMPDIR": str(stage.root),
        "TOOLWIRE_HOME": str(stage.root / "toolwire"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GEMINI_API_KEY": "a-key-of-no-worth",
        "GOOGLE_GEMINI_BASE_URL": origin,
    }


def settings_of(capture: Capture) -> dict[str, dict[str, Any]]:
    """Our settings for the capture's, by table; one that means nothing here is an error."""
    given = dict(capture.data["settings"])
    # Their file of notes, which we else only read.
    tools: dict[str, Any] = {"memory_file": ".gemini/GEMINI.md"}
    if given.pop("useSmartEdit", True) is False:
        tools["plain_edit"] = True
    for name, value in given.pop("tools", {}).items():
        if name not in _NEEDLESS:
            tools[_TOOLS[name]] = value
    if any("responseMimeType" in one["body"]["generationConfig"] for one in _beside(capture)):
        tools["edit_correction"] = True
    limits: dict[str, Any] = {}
    for name, value in given.pop("model", {}).items():
        limits[{"maxSessionTurns": "turns"}[name]] = value
    servers = {
        f"mcp_servers.{name}": {key: table[key] for key in ("command", "args", "trust")}
        for name, table in given.pop("mcpServers", {}).items()
    }
    assert not given, given
    return {"tools": tools, "limits": limits, **servers}


def _beside(capture: Capture) -> list[Json]:
    return capture.data.get("side_requests") or []


def prepare(capture: Capture, folder: Path) -> Stage:
    """The capture's folders, and its settings in the user's own file."""
    stage = captures.build(capture, folder)
    home = stage.root / "toolwire"
    home.mkdir()
    tables = [
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in members.items())
        for table, members in stage.fill(settings_of(capture)).items()
    ]
    (home / "config.toml").write_text("\n".join(tables), "utf-8")
    return stage


def play(capture: Capture, folder: Path) -> Played:
    """The capture's run in this process, over real HTTP."""
    stage = prepare(capture, folder)
    return asyncio.run(_play(capture, stage))


def piped_to(capture: Capture) -> str:
    """What comes in through a pipe."""
    return PIPED if capture.name == "stdin_prompt" else ""


async def _play(capture: Capture, stage: Stage) -> Played:
    out, err = io.StringIO(), io.StringIO()
    output = TextOutput(out, err)
    vendor = Vendor(capture, stage)
    async with Simulator(vendor) as sim:
        vendor.known_to(sim.seals)
        env = environ(stage, sim.origin)
        flags = {"approval_mode": "yolo" if "--yolo" in capture.data["cli_args"] else None}
        settings = config.load(env, stage.workspace, flags=flags)
        async with open_session(
            SessionOptions(model=MODEL),
            settings=settings,
            environ=env,
            cwd=stage.workspace,
            readers=(reader_of(output.receive),),
        ) as session:
            said = user_message(
                capture.data["prompt"], session.toolbox.context, piped=piped_to(capture)
            )
            ended = await session.send(said.message)
        output.end("", ended)
        bodies = [one.json for one in sim.requests]
    return Played(
        stage=stage,
        bodies=blanked(vendor.as_recorded(bodies), stage, env),
        refusals=sim.refusals,
        out=out.getvalue(),
        err=err.getvalue(),
        code=exits.code_of(ended),
    )


def play_process(capture: Capture, folder: Path, *more: str) -> Played:
    """The capture's run as a command of its own."""
    stage = prepare(capture, folder)
    args = ("run", capture.data["prompt"], "--model", MODEL, *capture.data["cli_args"], *more)
    vendor = Vendor(capture, stage)
    with Simulated(vendor) as sim:
        vendor.known_to(sim.seals)
        env = environ(stage, sim.upstream("gemini").partition("=")[2])
        done = subprocess.run(
            command(args),
            input=piped_to(capture),
            text=True,
            capture_output=True,
            cwd=stage.workspace,
            env=env,
            timeout=LONGEST,
            check=False,
        )
    return Played(
        stage=stage,
        bodies=blanked(vendor.as_recorded(sim.bodies), stage, env),
        refusals=sim.refusals,
        out=done.stdout,
        err=done.stderr,
        code=done.returncode,
    )


def blanked(value: Json, stage: Stage, env: Mapping[str, str]) -> Json:
    """The value with placeholders for our paths; our place for long outputs is theirs."""
    ours = workspace_of(stage.workspace, env).temp
    text = json.dumps(value).replace(str(ours), str(stage.temp))
    return stage.blank(json.loads(text))
