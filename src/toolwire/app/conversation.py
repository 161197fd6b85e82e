"""A conversation in progress: what the user says goes in, and turns come of it."""

import asyncio
import time

import msgspec

from toolwire.agent.compressing import Compressor
from toolwire.agent.confirmations import Approver, Editor
from toolwire.agent.events import AgentEvent, HistoryReplaced, Noticed, TurnEnd, TurnEnded
from toolwire.agent.limits import Limits
from toolwire.agent.reply import Asking
from toolwire.agent.turn import Turn
from toolwire.app.models import Opened
from toolwire.app.telling import Telling
from toolwire.app.workshop import Workshop
from toolwire.errors import SessionError
from toolwire.messages import Message
from toolwire.model import Model
from toolwire.request import ModelRequest


class AgentSession:
    """A conversation in progress, one turn at a time. `request` holds all that was said."""

    def __init__(
        self,
        id: str,
        request: ModelRequest,
        *,
        opened: Opened,
        model: Model,
        workshop: Workshop,
        telling: Telling,
        limits: Limits,
        shorten: Compressor,
        approver: Approver | None = None,
        editor: Editor | None = None,
    ) -> None:
        self.id = id
        self.request = request
        self.opened = opened
        self.workshop = workshop
        self._model = model
        self._telling = telling
        self._limits = limits
        self._shorten = shorten
        self._scheduler = workshop.scheduler(approver, editor, telling)
        self._inbox: list[Message] = []
        self._ended: TurnEnded | None = None

    async def send(self, message: Message) -> TurnEnded:
        """Work on what the user says; returns how the turn ended, raises if it is cancelled."""
        self._inbox.append(message)
        self._ended = None
        asking = Asking(
            self._model,
            emit=self._hear,
            price=self.opened.price,
            clock=time.monotonic,
            sleep=asyncio.sleep,
        )
        turn = Turn(
            self.request,
            asking=asking,
            scheduler=self._scheduler,
            emit=self._hear,
            shorten=self._shorten,
        )
        try:
            await turn.run(self._limits, self._take, time.monotonic)
        except SessionError as error:
            # It can no longer be kept: stop, and say so to whoever listens.
            self._ended = TurnEnded(reason=TurnEnd.FAILED, detail=str(error), error=error.kind)
            await self._telling.show(self._ended)
        finally:
            self.request = turn.request
        if self._ended is None:
            raise AssertionError("a turn ends with TurnEnded")
        return self._ended

    def say(self, message: Message) -> None:
        """Words for a turn that is under way: it hears them at its next step."""
        self._inbox.append(message)

    async def compress(self) -> HistoryReplaced | None:
        """Make the conversation shorter now; None if it can not be."""
        replaced = await self._shorten(self.request, force=True)
        if replaced is not None:
            self.request = msgspec.structs.replace(self.request, messages=replaced.messages)
            await self._telling(replaced)
        return replaced

    async def note(self, kind: str, message: str) -> None:
        """Tell whoever listens something about the session."""
        await self._telling(Noticed(kind=kind, message=message))

    def _take(self) -> list[Message]:
        taken, self._inbox = self._inbox, []
        return taken

    async def _hear(self, event: AgentEvent) -> None:
        if isinstance(event, TurnEnded):
            self._ended = event
        await self._telling(event)
