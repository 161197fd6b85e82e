"""`toolwire sessions show --follow`: what is stored of a session, as it is stored."""

import time
from datetime import datetime

import click

from toolwire.agent.events import AgentEvent, MessageAdded, ToolFinished, ToolStarted, TurnEnded
from toolwire.sessions.store import SessionStore
from toolwire.terminal_text import one_line, terminal_text

_EVERY = 0.25
_WORDS = 200


def follow_session(store: SessionStore, name: str) -> None:
    """Prints a line for each message and call, whichever machine stores it, until Ctrl-C."""
    session, seen = store.find(name), 0
    try:
        while True:
            for record in store.read(session, after=seen).records:
                seen = max(seen, record.seq)
                if line := _line(record.event):
                    at = datetime.fromtimestamp(record.at).strftime("%H:%M:%S")
                    click.echo(f"{at}  {one_line(terminal_text(line))[:_WORDS]}")
            time.sleep(_EVERY)
    except KeyboardInterrupt:
        return


def _line(event: AgentEvent) -> str:
    """What a person reads of an event; empty for most."""
    match event:
        case MessageAdded(context=False, message=message) if message.text:
            return f"{message.role}: {message.text}"
        case ToolStarted():
            return f"{event.name} {event.arguments}"
        case ToolFinished():
            return f"{event.name}: {event.outcome}"
        case TurnEnded():
            return f"turn ended: {event.reason}"
        case _:
            return ""
