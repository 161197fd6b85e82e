"""A turn as a stream of its events, at the reader's pace."""

import asyncio
from collections.abc import AsyncGenerator

from toolwire.agent.events import AgentEvent
from toolwire.library.conversation import Conversation
from toolwire.messages import Message


async def streamed(
    conversation: Conversation, message: Message
) -> AsyncGenerator[AgentEvent, None]:
    """Every event; whoever leaves before the last one has the turn cancelled."""
    pipe: asyncio.Queue[AgentEvent | None] = asyncio.Queue(1)
    left = False

    async def pass_on(event: AgentEvent | None) -> None:
        if not left:
            await pipe.put(event)

    async def work() -> None:
        try:
            await conversation.run(message, pass_on)
        finally:
            await pass_on(None)

    turn = asyncio.ensure_future(work())
    try:
        while (event := await pipe.get()) is not None:
            yield event
        await turn
    finally:
        left = True
        turn.cancel()
        await asyncio.wait((turn,))
        if not turn.cancelled():
            # Seen: a turn that was left early has nobody to tell its failure to.
            turn.exception()
