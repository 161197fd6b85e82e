"""A scripted model inside the process: answers in a vendor's wire format, without sockets."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from toolwire import dialects
from toolwire.client.http.transport import Incoming, Outgoing
from toolwire.compaction.summary import QUESTION
from toolwire.events import Usage
from toolwire.ids import new_id
from toolwire.simulator.answers import Shape, Voice, written
from toolwire.simulator.script import Call, Reply, Say, reply
from toolwire.simulator.vendor_rules import Seals

MODEL = "scripted"
SNAPSHOT = (
    "<scratchpad>Notes were read, one after another.</scratchpad>\n<state_snapshot>\n"
    "<overall_goal>Keep reading the notes.</overall_goal>\n"
    "<key_knowledge>The notes say that the answer is 42.</key_knowledge>\n</state_snapshot>"
)


class ScriptedTransport:
    """Every turn calls a tool and then answers; a question for a summary gets one."""

    def __init__(self, dialect: str, call: Call, heard: Callable[[bytes], None]) -> None:
        self._dialect = dialect
        self._call = reply("I will look at the notes.", call)
        self._answer = reply(Say("The notes say, as before, that the answer is 42. " * 4))
        self._heard = heard
        self._called = False
        family = dialects.get(dialect).family
        self._voice = Voice(family=family, model=MODEL, seals=Seals(), new_id=new_id)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """The next answer of the script."""
        self._heard(request.body)
        chosen = self._chosen(request.body)
        usage = Usage(input=len(request.body) // 4, output=60)
        answer = written(chosen, self._dialect, self._voice, usage, Shape.STREAM)
        yield Incoming(
            status=200, headers={"content-type": answer.kind}, chunks=_sent(answer.pieces)
        )

    def _chosen(self, body: bytes) -> Reply:
        if QUESTION.encode() in body:
            return reply(Say(SNAPSHOT))
        self._called = not self._called
        return self._call if self._called else self._answer


async def _sent(pieces: tuple[bytes, ...]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
