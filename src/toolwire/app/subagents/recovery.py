"""Calls of subagents that a crash left open, answered from the sessions of their subagents."""

import msgspec

from toolwire.agent.events import (
    AgentEnded,
    AgentStarted,
    AnswersGiven,
    Emit,
    ToolFinished,
    TurnEnd,
    TurnEnded,
)
from toolwire.app.subagents.catalog import RUN_AGENT
from toolwire.errors import SessionError
from toolwire.messages import Outcome, Text, ToolResult
from toolwire.sessions.replay import OpenCall, Session, replay, resolve_open_calls
from toolwire.sessions.store import SessionStore

NOT_AGAIN = "interrupted: the session ended while {agent} worked; it is not run again"


async def settle_agents(past: Session, store: SessionStore, sink: Emit) -> Session:
    """The past in which calls that ran subagents are answered from their sessions."""
    agents = {one.call_id: one for one in past.agents}
    settled: list[OpenCall] = []
    for one in past.open:
        started = agents.get(one.call.id)
        if started is None or one.started is None or one.finished is not None:
            settled.append(one)
            continue
        done, text = await _settled_child(store, started.session)
        event = _answered(one, started, done, text)
        reason = TurnEnd.DONE if done else TurnEnd.CANCELLED
        await sink(
            AgentEnded(
                call_id=one.call.id, session=started.session, agent=started.agent, reason=reason
            )
        )
        await sink(event)
        settled.append(msgspec.structs.replace(one, finished=event))
    return msgspec.structs.replace(past, open=tuple(settled))


async def _settled_child(store: SessionStore, session: str) -> tuple[bool, str]:
    """Whether a subagent was done, and its last reply; its own open calls are answered first."""
    try:
        journal = store.open(session)
    except SessionError:
        return False, ""
    try:
        past = replay(await journal.read(session))
        if past.open:
            plan = resolve_open_calls(past.open, run_again=False)
            for event in plan.finished:
                await journal.append(session, event)
            await journal.append(session, AnswersGiven(call_ids=plan.call_ids))
        if past.ended is None:
            await journal.append(session, TurnEnded(reason=TurnEnd.CANCELLED))
    finally:
        await journal.close()
    replies = [one.text for one in past.messages if one.role == "assistant" and one.text.strip()]
    done = past.ended is not None and past.ended.reason is TurnEnd.DONE
    return done, replies[-1].strip() if replies and len(past.messages) > past.context else ""


def _answered(one: OpenCall, started: AgentStarted, done: bool, text: str) -> ToolFinished:
    call = one.call
    if not done:
        last = f"\nIts last words: {text}" if text else ""
        text = f"{NOT_AGAIN.format(agent=started.agent)}; check what it did.{last}"
    outcome = Outcome.DONE if done else Outcome.INTERRUPTED
    result = ToolResult(
        call_id=call.id,
        name=call.name,
        parts=(Text(text or f"{started.agent} ended without an answer"),),
        is_error=not done,
        outcome=outcome,
        kind=call.kind,
    )
    return ToolFinished(
        call_id=call.id,
        name=RUN_AGENT,
        arguments=call.arguments if one.started is None else one.started.arguments,
        outcome=outcome,
        success=done,
        duration=0.0,
        error_type="" if done else outcome.value,
        display=result.text,
        result=result,
    )
