"""A dozen requests to a real server that show how it differs from its wire format."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from toolwire.collect import Collector
from toolwire.errors import ErrorKind, ProviderError, ToolwireError
from toolwire.events import Notice, StopReason
from toolwire.gateway.capture import Capture, capture_here
from toolwire.gateway.console.stages import redactor_of
from toolwire.ids import new_id
from toolwire.messages import Message, Text, ToolResult
from toolwire.model import reading
from toolwire.request import ModelRequest, OutputFormat, ToolChoice, ToolSpec

if TYPE_CHECKING:
    from toolwire.app.model_stack import Opened

_SECONDS = 90.0
_SHOWN = 20_000
WEATHER = ToolSpec(
    name="get_weather",
    description="Returns the weather in a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
_NESTED = ToolSpec(
    name="plan_trip",
    description="Plans a trip.",
    parameters={
        "type": "object",
        "properties": {
            "stops": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string"},
                        "by": {"type": "string", "enum": ["train", "car"]},
                        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    },
                    "required": ["city"],
                },
            }
        },
        "required": ["stops"],
    },
)
Result = Literal["ok", "differs", "failed", "skipped"]


class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What one request showed, with its bytes."""

    check: str
    title: str
    result: Result
    text: str
    sent: str = ""
    received: str = ""
    seconds: float = 0.0


class Probe(msgspec.Struct, kw_only=True):
    """The requests of one probe, as far as they were made."""

    id: str
    model: str
    state: str = "running"
    started: float = 0.0
    ended: float | None = None
    requests: int = 0
    of: int = 0
    findings: list[ProbeFinding] = []
    quirks: str = ""
    cost: float | None = None
    error: str = ""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    message: Message | None = None
    stop: StopReason | None = None
    usage: bool = False
    error: ToolwireError | None = None
    notices: tuple[str, ...] = ()


class _Check(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    request: Callable[[Message | None], ModelRequest | None]
    """The request; the last message with a call is given, for those that return its result."""
    judge: Callable[[_Answer], tuple[Result, str]]
    quirk: str = ""
    """What to set if the server refuses the request."""


def _asking(text: str, *tools: ToolSpec, **more: object) -> ModelRequest:
    fields = {"max_output_tokens": 512, "stream": True, **more}
    return msgspec.structs.replace(
        ModelRequest(model="", messages=(Message(role="user", parts=(Text(text),)),), tools=tools),
        **fields,
    )


def _text(answer: _Answer) -> tuple[Result, str]:
    words = answer.message.text.strip() if answer.message else ""
    return ("ok", f"answered {words[:80]!r}") if words else ("differs", "the answer has no text")


def _usage(answer: _Answer) -> tuple[Result, str]:
    if answer.usage:
        return "ok", "token counts are reported"
    return "differs", "no token counts are reported"


def _one_call(answer: _Answer) -> tuple[Result, str]:
    calls = answer.message.calls if answer.message else ()
    if not calls:
        return "differs", "the tool was not called"
    bad = [call for call in calls if not _is_json(call.arguments)]
    if bad:
        return "differs", f"the arguments are not JSON: {bad[0].arguments[:200]}"
    return "ok", f"called {calls[0].name} with {calls[0].arguments[:200]}"


def _parallel(answer: _Answer) -> tuple[Result, str]:
    count = len(answer.message.calls) if answer.message else 0
    words = f"{count} calls in one answer"
    return ("ok" if count > 1 else "differs"), words


def _ids(answer: _Answer) -> tuple[Result, str]:
    calls = answer.message.calls if answer.message else ()
    if not calls:
        return "skipped", "the tool was not called"
    if any(call.made_id for call in calls):
        return "differs", "the server gives its calls no ids"
    unique = len({call.id for call in calls}) == len(calls)
    return ("ok", f"ids such as {calls[0].id}") if unique else ("differs", "an id is used twice")


def _cut(answer: _Answer) -> tuple[Result, str]:
    if answer.stop is StopReason.LENGTH:
        return "ok", "an answer cut by its limit says so"
    return "differs", f"the answer ended with {answer.stop}"


def _no_call(answer: _Answer) -> tuple[Result, str]:
    if answer.message is not None and answer.message.calls:
        return "differs", "a tool was called although that was forbidden"
    return "ok", "no tool was called"


def _json_answer(answer: _Answer) -> tuple[Result, str]:
    words = answer.message.text.strip() if answer.message else ""
    if _is_json(words):
        return "ok", f"answered {words[:120]}"
    return "differs", f"the answer is not JSON: {words[:120]!r}"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return False
    return True


_TWO = "What is the weather in Paris and in Rome? Call the tool for both cities at once."


def _with_result(before: Message | None) -> ModelRequest | None:
    """The conversation with the results of the model's own calls, its signatures returned."""
    if before is None:
        return None
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(Text("sunny, 20 °C"),))
        for call in before.calls
    )
    messages = (
        Message(role="user", parts=(Text(_TWO),)),
        before,
        Message(role="user", parts=results),
    )
    return msgspec.structs.replace(_asking("", WEATHER), messages=messages)


CHECKS = (
    _Check(
        name="stream",
        title="Streamed answer",
        request=lambda _: _asking("Answer with the word ok."),
        judge=_text,
    ),
    _Check(
        name="whole",
        title="Answer in one body",
        request=lambda _: _asking("Answer with the word ok.", stream=False),
        judge=_text,
    ),
    _Check(
        name="usage",
        title="Token counts in a stream",
        request=lambda _: _asking("Answer with the word yes."),
        judge=_usage,
        quirk="stream_usage = false",
    ),
    _Check(
        name="forced_call",
        title="A call that is required",
        request=lambda _: _asking(
            "What is the weather in Paris?", WEATHER, tool_choice=ToolChoice(mode="required")
        ),
        judge=_one_call,
        quirk='tool_choices = ["auto", "none"]',
    ),
    _Check(
        name="parallel_calls",
        title="Parallel calls",
        request=lambda _: _asking(_TWO, WEATHER),
        judge=_parallel,
    ),
    _Check(
        name="call_ids",
        title="Ids of calls",
        request=lambda _: _asking(_TWO, WEATHER),
        judge=_ids,
    ),
    _Check(
        name="signature_return",
        title="Results with the signatures of the calls",
        request=_with_result,
        judge=_text,
    ),
    _Check(
        name="schema",
        title="Nested schema with enum and anyOf",
        request=lambda _: _asking("Plan a trip to Rome by train. Call the tool.", _NESTED),
        judge=_one_call,
    ),
    _Check(
        name="one_call_only",
        title="Parallel calls switched off",
        request=lambda _: _asking(_TWO, WEATHER, parallel_calls=False),
        judge=lambda answer: _one_call(answer),
        quirk="parallel_flag = false",
    ),
    _Check(
        name="no_call",
        title="Calls forbidden",
        request=lambda _: _asking(
            "What is the weather in Paris?", WEATHER, tool_choice=ToolChoice(mode="none")
        ),
        judge=_no_call,
        quirk='tool_choices = ["auto", "required"]',
    ),
    _Check(
        name="length",
        title="Cut by length",
        request=lambda _: _asking("Count from 1 to 500 in words.", max_output_tokens=16),
        judge=_cut,
    ),
    _Check(
        name="output_schema",
        title="Answer held to a schema",
        request=lambda _: _asking(
            "Name a city as JSON.",
            output=OutputFormat(
                kind="json_schema",
                name="city",
                schema=WEATHER.parameters,
            ),
        ),
        judge=_json_answer,
    ),
    _Check(
        name="sampling",
        title="Temperature and top_p",
        request=lambda _: _asking("Answer with the word ok.", temperature=0.2, top_p=0.9),
        judge=_text,
        quirk="sampling = false",
    ),
)


async def run_probe(probe: Probe, opened: Opened, clock: Callable[[], float]) -> None:
    """Makes the requests one after the other, and adds what each showed."""
    quirks: list[str] = []
    before: Message | None = None
    try:
        for check in CHECKS:
            finding, answer = await _made(check, opened, before)
            probe.requests += finding.result != "skipped"
            probe.findings.append(finding)
            if check.name == "parallel_calls" and answer is not None and answer.message is not None:
                before = answer.message if answer.message.calls else None
            if check.quirk and _refused(finding, answer):
                quirks.append(f"{check.quirk}  # {finding.text}")
        probe.state = "done"
    except asyncio.CancelledError:
        probe.state, probe.error = "failed", "the probe was stopped"
        raise
    finally:
        probe.ended = clock()
        if quirks:
            lines = "\n".join(line.replace("\n", " ")[:300] for line in quirks)
            probe.quirks = f"[providers.{opened.provider.name}.quirks]\n{lines}\n"


def _refused(finding: ProbeFinding, answer: _Answer | None) -> bool:
    if finding.check == "usage":
        return finding.result == "differs"
    error = answer.error if answer is not None else None
    return isinstance(error, ProviderError) and error.kind == ErrorKind.BAD_REQUEST


async def _made(
    check: _Check, opened: Opened, before: Message | None
) -> tuple[ProbeFinding, _Answer | None]:
    request = check.request(before)
    if request is None:
        words = "there was no call whose result could be returned"
        return ProbeFinding(check=check.name, title=check.title, result="skipped", text=words), None
    request = msgspec.structs.replace(request, model=opened.model)
    began = time.perf_counter()
    capture = Capture("full", began)
    with capture_here(capture):
        answer = await _answered(opened, request)
    if answer.error is not None:
        result, words = "failed", str(answer.error)
    else:
        result, words = check.judge(answer)
    finding = ProbeFinding(
        check=check.name,
        title=check.title,
        result=result,
        text=words,
        seconds=time.perf_counter() - began,
        **_bytes(capture),
    )
    return finding, answer


def _bytes(capture: Capture) -> dict[str, str]:
    if not capture.attempts:
        return {}
    redactor, last = redactor_of(capture), capture.attempts[-1]
    sent = redactor.body(last.outgoing.body)[:_SHOWN].decode("utf-8", "replace")
    received = redactor.body(last.answer.data)[:_SHOWN].decode("utf-8", "replace")
    return {"sent": sent, "received": received}


async def _answered(opened: Opened, request: ModelRequest) -> _Answer:
    collector = Collector()
    notices: list[str] = []
    try:
        async with asyncio.timeout(_SECONDS), reading(opened.client(request)) as events:
            async for event in events:
                if isinstance(event, Notice):
                    notices.append(event.message)
                else:
                    collector.add(event)
    except TimeoutError:
        late = ProviderError(ErrorKind.TIMEOUT, f"no complete answer within {_SECONDS:.0f} s")
        return _Answer(error=late)
    except ToolwireError as error:
        return _Answer(error=error, notices=tuple(notices))
    finished = collector.finished
    counted = finished is not None and bool(finished.usage.input or finished.usage.output)
    return _Answer(
        message=collector.message(),
        stop=finished.reason if finished is not None else None,
        usage=counted,
        notices=tuple(notices),
    )


def new_probe(model: str, now: float) -> Probe:
    """A probe that has not begun."""
    return Probe(id=new_id("probe_"), model=model, started=now, of=len(CHECKS), findings=[])
