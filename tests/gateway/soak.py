"""Streams through the gateway for as long as you like: `python -m tests.gateway.soak --seconds N`.

One client in ten leaves in the middle, one upstream answer in twenty is cut, some clients read
slowly. Every other stream must arrive whole; memory, open files and threads of the gateway must
stay flat, and the upstream must see every client that left.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tests.gateway.served import Served, served
from toolwire.simulator import Fault, Question, Reply, Say

FORMATS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
_ENDS = {
    "openai-chat": b"data: [DONE]",
    "openai-responses": b"response.completed",
    "anthropic-messages": b"message_stop",
    "gemini": b'"finishReason"',
}
_LAST = b"0\r\n\r\n"
_TEXT = "A stream of events is read once. " * 12
CUT, SLOW = "cut it", "take your time"


class Step(msgspec.Struct, frozen=True):
    """What the gateway holds at one moment."""

    seconds: float
    streams: int
    memory: float
    """MB"""
    files: int
    threads: int


class Report(msgspec.Struct, kw_only=True):
    """What happened to every stream."""

    whole: int = 0
    left: int = 0
    cut: int = 0
    wrong: list[str] = []
    steps: list[Step] = []

    @property
    def streams(self) -> int:
        """Returns how many streams were asked."""
        return self.whole + self.left + self.cut + len(self.wrong)


def answering(question: Question) -> Reply:
    """The upstream: long text, cut or slow where the prompt says so."""
    words = question.last_user_text
    fault = Fault()
    if CUT in words:
        fault = Fault(cut_events=12)
    elif SLOW in words:
        fault = Fault(wait_each=0.01)
    return Reply(pieces=(Say(_TEXT),), fault=fault, delta=8)


def _body(form: str, words: str) -> bytes:
    message = {"role": "user", "content": words}
    match form:
        case "openai-chat":
            value: object = {"model": "m", "messages": [message], "stream": True}
        case "openai-responses":
            value = {"model": "m", "input": [message], "stream": True, "store": False}
        case "anthropic-messages":
            value = {"model": "m", "max_tokens": 999, "messages": [message], "stream": True}
        case _:
            value = {"contents": [{"role": "user", "parts": [{"text": words}]}]}
    return msgspec.json.encode(value)


async def _one(origin: str, chance: random.Random, report: Report) -> None:
    form = chance.choice(FORMATS)
    leaves, cut, slow = chance.random() < 0.1, chance.random() < 0.05, chance.random() < 0.1
    words = f"{chance.randrange(10**9)} {CUT if cut else SLOW if slow or leaves else ''}"
    body = _body(form, words)
    place = urlsplit(origin)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        head = (
            f"POST {_PATHS[form]} HTTP/1.1\r\nhost: {place.netloc}\r\nanthropic-version: 2023-06-01"
            f"\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        got = b""
        while data := await reader.read(512 if slow else 65536):
            got += data
            if leaves:
                report.left += 1
                writer.transport.abort()
                return
            if slow:
                await asyncio.sleep(0.005)
            if got.endswith(_LAST):
                break
        _judge(form, got, cut, report)
    finally:
        writer.close()


def _judge(form: str, got: bytes, cut: bool, report: Report) -> None:
    ended = _ENDS[form] in got and got.endswith(_LAST)
    if cut and not ended:
        report.cut += 1
    elif ended and not cut:
        report.whole += 1
    else:
        report.wrong.append(f"{form}, {'cut' if cut else 'whole'} expected: {got[-300:]!r}")


def held(pid: int) -> tuple[float, int, int]:
    """Returns memory in MB, open files and threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return memory, len(os.listdir(f"/proc/{pid}/fd")), int(fields[17])  # noqa: PTH208 - quicker


async def soak(gateway: Served, seconds: float, at_once: int, seed: int = 1) -> Report:
    """Keeps that many streams open for that long; looks at the gateway when all have ended."""
    report = Report()
    chance = random.Random(seed)
    begun = time.monotonic()
    for _ in range(8):
        until = time.monotonic() + seconds / 8
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(_worker(gateway.origin, until, chance, report))
        await _settled(gateway)
        memory, files, threads = held(gateway.process.pid)
        step = Step(time.monotonic() - begun, report.streams, memory, files, threads)
        report.steps.append(step)
    return report


async def _worker(origin: str, until: float, chance: random.Random, report: Report) -> None:
    while time.monotonic() < until:
        await _one(origin, chance, report)


async def _settled(gateway: Served) -> None:
    """Waits until the upstream knows that each of its clients is done or gone."""
    until = time.monotonic() + 60
    while not all(one.left.is_set() for one in list(gateway.upstream.requests)):
        if time.monotonic() > until:
            raise AssertionError("the upstream waits for clients that left")
        await asyncio.sleep(0.02)
    # Bodies of a long run are the test's own memory, not the gateway's.
    gateway.upstream.requests.clear()


def problems(report: Report) -> list[str]:
    """Returns what is wrong; the first two steps are the warm-up."""
    found = report.wrong[:5]
    early, late = report.steps[1], report.steps[-1]
    if late.memory > early.memory * 1.15 + 4:
        found.append(f"memory grew from {early.memory:.1f} to {late.memory:.1f} MB")
    if late.files > early.files + 8:
        found.append(f"open files grew from {early.files} to {late.files}")
    if late.threads > early.threads + 2:
        found.append(f"threads grew from {early.threads} to {late.threads}")
    return found


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--upstream", default="chat")
    chosen = parser.parse_args()
    with served(chosen.upstream, answering) as gateway:
        report = asyncio.run(soak(gateway, chosen.seconds, chosen.at_once))
    for step in report.steps:
        print(
            f"{step.seconds:7.0f} s {step.streams:8} streams {step.memory:6.1f} MB "
            f"{step.files:4} files {step.threads:3} threads"
        )
    print(f"{report.whole} whole, {report.left} left, {report.cut} cut, {len(report.wrong)} wrong")
    found = problems(report)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
