"""A scripted session of thirty calls whose every effect can be seen in the file system."""

import re
from pathlib import Path

import msgspec

from toolwire.messages import Message, Outcome, ToolCall, ToolResult
from toolwire.request import ModelRequest
from toolwire.simulator import Question, Reply
from toolwire.simulator.script import Call, Say

STEPS = (
    ("list",),
    ("read", "read", "read", "list"),
    ("write",),
    ("shell",),
    ("shell", "write", "read"),
    ("replace",),
    ("read", "list"),
    ("shell",),
    ("write", "write"),
    ("background",),
    ("shell", "shell"),
    ("replace", "read"),
    ("write",),
    ("shell", "read", "read"),
    ("replace", "write"),
    ("shell",),
    ("write", "shell"),
)
KINDS = tuple(kind for step in STEPS for kind in step)
EFFECTFUL = ("write", "shell", "background", "replace")
LOG, ITEMS = "log.txt", "items.txt"
NOT_RUN = "not run:"
DONE = "all is done"
_WORK = re.compile(r"work in (\S+)")
_TOKEN = re.compile(r"\be(\d+)a(\d+)\b")
_INPUT = re.compile(r"\bin-(\d+)\b")


def prepare(work: Path) -> None:
    """What the calls need to be there."""
    for number, kind in enumerate(KINDS):
        if kind == "read":
            (work / f"in-{number}").write_text(f"this is in-{number}\n")
        elif kind == "list":
            (work / f"in-{number}").mkdir()
    (work / ITEMS).write_text("".join(f"<{number}: open>\n" for number in range(len(KINDS))))


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was made, and the answer it has."""

    number: int
    call: ToolCall
    result: ToolResult | None

    @property
    def token(self) -> str:
        """What only this call writes."""
        found = _TOKEN.search(self.call.arguments)
        return found[0] if found else ""

    @property
    def to_make_again(self) -> bool:
        return self.result is not None and self.result.text.startswith(NOT_RUN)


def made_in(messages: tuple[Message, ...]) -> list[Made]:
    """All calls of a conversation in order; the answer of each stands directly behind it."""
    made: list[Made] = []
    for message, following in zip(messages, (*messages[1:], None), strict=True):
        answers = {} if following is None else {one.call_id: one for one in following.results}
        for call in message.calls:
            found = _TOKEN.search(call.arguments) or _INPUT.search(call.arguments)
            assert found, call.arguments
            made.append(Made(number=int(found[1]), call=call, result=answers.get(call.id)))
    return made


class Chores:
    """The model: goes on where the conversation stands, and makes again only what did not run."""

    def __init__(self) -> None:
        self.last: dict[str, ModelRequest] = {}
        """The last request of each workspace whose chores are all done."""

    def __call__(self, question: Question) -> Reply:
        messages = question.request.messages
        work = next(found[1] for one in messages if (found := _WORK.search(one.text)))
        made = made_in(messages)
        number = 0
        for step in STEPS:
            numbers = range(number, number + len(step))
            number += len(step)
            calls = tuple(_call(Path(work), one, made) for one in numbers if _is_due(one, made))
            if calls:
                return Reply(pieces=(Say(f"now {numbers[0]} at {len(made)}"), *calls))
        self.last[work] = question.request
        return Reply(pieces=(Say(DONE),))


def _is_due(number: int, made: list[Made]) -> bool:
    before = [one for one in made if one.number == number]
    return not before or before[-1].to_make_again


def _call(work: Path, number: int, made: list[Made]) -> Call:
    token = f"e{number}a{sum(one.number == number for one in made) + 1}"
    match KINDS[number]:
        case "read":
            return Call.of("read_file", absolute_path=str(work / f"in-{number}"))
        case "list":
            return Call.of("list_directory", path=str(work / f"in-{number}"))
        case "write":
            file = str(work / f"{token}.txt")
            return Call.of("write_file", file_path=file, content=f"{token} " * 50)
        case "replace":
            return Call.of(
                "replace",
                file_path=str(work / ITEMS),
                instruction="say that it is done",
                old_string=f"<{number}: open>",
                new_string=f"<{number}: done {token}>",
            )
        case "background":
            command = f"sleep 600 & echo {token} >> {LOG}"
            return Call.of("run_shell_command", command=command)
        case _:
            return Call.of("run_shell_command", command=f"echo {token} >> {LOG}")


def times_seen(work: Path, made: Made) -> int:
    """How often the effect of a call is there."""
    match KINDS[made.number]:
        case "write":
            file = work / f"{made.token}.txt"
            whole = file.exists() and file.read_text() == f"{made.token} " * 50
            assert whole or not file.exists()
            return int(whole)
        case "replace":
            return (work / ITEMS).read_text().count(f"<{made.number}: done {made.token}>")
        case _:
            log = work / LOG
            return log.read_text().split().count(made.token) if log.exists() else 0


def assert_truthful(work: Path, made: list[Made]) -> dict[str, int]:
    """What every answer says is what the file system shows; counts the answers."""
    counts: dict[str, int] = {}
    for one in made:
        assert one.result is not None, f"no answer: {one.call}"
        outcome = one.result.outcome
        counts[outcome] = counts.get(outcome, 0) + 1
        assert outcome in (Outcome.DONE, Outcome.NOT_RUN, Outcome.INTERRUPTED), one.result
        assert one.to_make_again == (outcome is Outcome.NOT_RUN), one.result
        if KINDS[one.number] not in EFFECTFUL:
            # What only reads is run again: its outcome is never unknown.
            assert outcome is not Outcome.INTERRUPTED, one.result
            assert outcome is not Outcome.DONE or f"in-{one.number}" in one.result.text
            continue
        seen = times_seen(work, one)
        if outcome is Outcome.INTERRUPTED:
            assert seen <= 1, f"ran twice: {one.call}"
        else:
            assert seen == (outcome is Outcome.DONE), f"{outcome}, seen {seen} times: {one.call}"
    for number, kind in enumerate(KINDS):
        if kind in EFFECTFUL:
            tries = [one for one in made if one.number == number]
            assert sum(times_seen(work, one) for one in tries) <= 1, f"chore {number} ran twice"
    return counts
