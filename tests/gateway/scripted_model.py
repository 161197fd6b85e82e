"""A scripted model that plays the scenario named in the user's first words, at any upstream."""

from collections import Counter

from toolwire.errors import BadInput
from toolwire.messages import Text, ToolCall
from toolwire.request import ModelRequest
from toolwire.simulator import Call, Fault, Question, Reply, Think, refused, reply
from toolwire.wire.json_access import parse_object

SCENARIOS = ("one-call", "parallel", "signed", "limited", "cut")
TOOL = "read_file"
FOLLOW_UP = "Thanks. Once more?"
FILES = {
    "src/package/a_file_with_a_long_name.py": "content of a",
    "src/package/b.py": "content of b",
}
_A, _B = FILES
_CUT_EVENTS = 20
"""Inside the arguments of the call."""
_CUT_BYTES = {"gemini": 300}
"""Gemini's calls are whole and its address says whether it streams: the text is cut."""
_CUT_WHOLE = 200
_DELTA = 3


class ScriptedModel:
    """One per simulator. A prompt is `SCENARIO NAME`; its name keeps runs apart."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def __call__(self, question: Question) -> Reply:
        prompt = first_words(question.request)
        scenario = prompt.partition(" ")[0]
        self._asked[prompt] += 1
        if self._asked[prompt] == 1 and scenario == "limited":
            return Reply(fault=refused(429, retry_after="0.1"))
        said = _said(question.request)
        if question.last_user_text == FOLLOW_UP:
            return reply(Think("Once more."), f"Again: {said}", delta=_DELTA)
        step = sum(len(message.results) for message in question.request.messages)
        pieces = _step(scenario, step, said)
        fault = Fault()
        if self._asked[prompt] == 1 and scenario == "cut":
            fault = _cut(question)
        return reply(*pieces, delta=_DELTA, fault=fault)


def _step(scenario: str, step: int, said: str) -> tuple[str | Think | Call, ...]:
    match scenario, step:
        case "parallel", 0:
            return ("Let me look.", Call.of(TOOL, path=_A), Call.of(TOOL, path=_B))
        case "signed", 0:
            return (Think("First a."), Call.of(TOOL, path=_A))
        case "signed", 1:
            return (Think("Then b."), Call.of(TOOL, path=_B))
        case "signed", _:
            return (Think("That is all."), said)
        case _, 0:
            return ("Let me look.", Call.of(TOOL, path=_A))
        case _:
            return (said,)


def expected(scenario: str) -> str:
    """Returns the last text of a scenario that was not broken."""
    files = FILES.values() if scenario in ("parallel", "signed") else (FILES[_A],)
    return f"Found {', '.join(files)}."


def first_words(request: ModelRequest) -> str:
    """Returns the user's first text."""
    for message in request.messages:
        if message.role == "user":
            for part in message.parts:
                if isinstance(part, Text) and part.text.strip():
                    return part.text
    return ""


def _said(request: ModelRequest) -> str:
    """Returns the answer by the results so far; each must be the content of its call's file."""
    calls = {
        part.id: part
        for message in request.messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    found: list[str] = []
    for message in request.messages:
        for result in message.results:
            call = calls.get(result.call_id)
            if call is None:
                raise BadInput(f"a result without its call: {result.call_id}")
            path = str(parse_object(call.arguments, "arguments").get("path"))
            if FILES.get(path, "no such file") not in result.text:
                raise BadInput(f"the result of {path} is another's: {result.text}")
            found.append(FILES[path])
    return f"Found {', '.join(found)}."


def _cut(question: Question) -> Fault:
    if question.dialect in _CUT_BYTES:
        return Fault(cut_bytes=_CUT_BYTES[question.dialect])
    if question.request.stream:
        return Fault(cut_events=_CUT_EVENTS)
    return Fault(cut_bytes=_CUT_WHOLE)
