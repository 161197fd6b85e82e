"""When and what to summarise: where a conversation may be cut, and how it is put together again."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated

import msgspec

from toolwire.compaction.tokens import of_message
from toolwire.messages import Message, Text, ToolResult
from toolwire.setting import Share, setting

CONTEXT = 2
"""Messages in front that are never summarised: the surroundings and their acknowledgement."""
THRESHOLD = 0.7
KEEP = 0.3
ACKNOWLEDGED = "Got it. Thanks for the additional context!"


class CompressionRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a conversation is shortened, and how much of it stays."""

    enabled: Annotated[
        bool, setting("Summarise long conversations automatically.", project=True)
    ] = True
    """On demand, and after a request that was too long, it is always done."""
    threshold: Annotated[
        Share, setting("Share of the model's context that triggers it.", project=True)
    ] = THRESHOLD
    keep: Annotated[
        Share, setting("Share of the conversation that is kept verbatim.", project=True)
    ] = KEEP
    outputs: int = 50_000
    """Tokens of tool outputs, the newest, that are never cut to files."""
    context: int = CONTEXT
    """Messages in front that are not part of the conversation: surroundings and their answer."""


_SNAPSHOT = re.compile(r"<state_snapshot>(.*)</state_snapshot>", re.DOTALL)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in three parts: head, summarised part, unchanged tail."""

    front: tuple[Message, ...]
    old: tuple[Message, ...]
    prompts: tuple[Message, ...] = ()
    """The user's request before the tail, if the tail begins within a turn."""
    tail: tuple[Message, ...]

    def joined(self, words: str) -> tuple[Message, ...]:
        """The conversation with `words` instead of its old part."""
        return (*self.front, *with_note(words, self.prompts, self.tail))


def with_note(
    words: str, prompts: Sequence[Message], tail: Sequence[Message]
) -> tuple[Message, ...]:
    """A note on what is left out, the model's acknowledgement, and the tail."""
    opening = Message(role="user", parts=(Text(words),))
    behind = (*prompts, *tail)
    if not behind or behind[0].role != "user":
        # Two messages of the model would be adjacent.
        return (opening, *behind)
    return (opening, Message(role="assistant", parts=(Text(ACKNOWLEDGED),)), *behind)


def plan(
    messages: Sequence[Message],
    *,
    size: int,
    window: int,
    threshold: float = THRESHOLD,
    keep: float = KEEP,
    context: int = CONTEXT,
) -> Plan | None:
    """What to summarise; None below the threshold, and where nothing may be cut.

    `size` is the tokens of the whole request. A threshold of 0 asks for a plan in any case.
    """
    if size < threshold * window:
        return None
    front = front_of(messages, context)
    cut = _cut(messages, front, keep)
    if cut is None:
        return None
    return Plan(
        front=tuple(messages[:front]),
        old=tuple(messages[front:cut]),
        prompts=() if is_prompt(messages[cut]) else prompts_before(messages, front, cut),
        tail=tuple(messages[cut:]),
    )


def snapshot(text: str) -> str | None:
    """The snapshot in a model's answer, in its tags; None where there is none, or an empty one."""
    found = _SNAPSHOT.search(text)
    return found.group() if found and found.group(1).strip() else None


def front_of(messages: Sequence[Message], context: int) -> int:
    """Number of messages in front: context, and instructions in the list."""
    front = 0
    while front < len(messages) and messages[front].role == "system":
        front += 1
    for message in messages[front : front + context]:
        if message.calls or message.results:
            break
        front += 1
    return front


def is_prompt(message: Message) -> bool:
    """Whether a message is user input: it has no results of calls."""
    return message.role == "user" and not any(
        isinstance(part, ToolResult) for part in message.parts
    )


def cuts(messages: Sequence[Message], front: int) -> list[int]:
    """Where the conversation may be cut: before a message of the user, and in a turn before a step
    of the model.

    Never between a call and its result, and never before a step that leans on the seals of an
    earlier one: a vendor refuses sealed thinking that was begun and is no longer there.
    """
    bound = _bound(messages)
    found: list[int] = []
    sealed = False
    for position, message in enumerate(messages):
        if position < front:
            continue
        if is_prompt(message):
            sealed = False
            if not bound[position]:
                found.append(position)
        elif message.role == "assistant":
            leans = sealed and not _is_sealed(message)
            goes_on = position > 0 and messages[position - 1].role == "assistant"
            if not bound[position] and not leans and not goes_on:
                found.append(position)
            sealed = sealed or _is_sealed(message)
    return found


def prompts_before(messages: Sequence[Message], front: int, cut: int) -> tuple[Message, ...]:
    """The user messages that the step at `cut` answers: all since the model's last answer."""
    prompts: list[Message] = []
    for message in reversed(messages[front:cut]):
        if is_prompt(message):
            prompts.append(message)
        elif prompts and message.role == "assistant" and not message.calls:
            break
    return tuple(reversed(prompts))


def _cut(messages: Sequence[Message], front: int, keep: float) -> int | None:
    candidates = [position for position in cuts(messages, front) if position > front]
    if not candidates:
        return None
    sums = [0, *accumulate(map(of_message, messages[front:]))]
    least = (1 - keep) * sums[-1]
    late = [position for position in candidates if sums[position - front] >= least]
    at_prompt = next((position for position in late if is_prompt(messages[position])), None)
    if at_prompt is not None:
        return at_prompt
    return late[0] if late else candidates[-1]


def _bound(messages: Sequence[Message]) -> list[bool]:
    """For each index, whether a call before it is answered at it or later."""
    open_calls: dict[str, list[int]] = {}
    steps = [0] * (len(messages) + 2)
    for position, message in enumerate(messages):
        for result in message.results:
            # Ids repeat from reply to reply: the nearest open call is meant.
            waiting = open_calls.get(result.call_id)
            if waiting:
                steps[waiting.pop() + 1] += 1
                steps[position + 1] -= 1
        for call in message.calls:
            open_calls.setdefault(call.id, []).append(position)
    return [depth > 0 for depth in accumulate(steps)][: len(messages)]


def _is_sealed(message: Message) -> bool:
    return any(getattr(part, "seal", None) is not None for part in message.parts)
