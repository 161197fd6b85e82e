"""The conversation made to fit without a model: old exchanges go, a list of facts stays."""

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from toolwire.agent.compress import CONTEXT, cuts, front_of, is_prompt, prompts_before, told
from toolwire.agent.facts import facts
from toolwire.agent.shorten import as_text, shorter
from toolwire.agent.tokens import of_message
from toolwire.messages import Message

SMALLEST = 400
"""Tokens that a conversation can always be brought down to."""
_SMALLEST_PART = 24
_THANKS = 24
"""What the model's thanks for the facts take, and some room."""


def floor(
    messages: Sequence[Message], *, target: int, context: int = CONTEXT
) -> tuple[Message, ...]:
    """The conversation in at most `target` tokens (`SMALLEST` if that is more).

    Whole exchanges are dropped, oldest first, and told of in a list of facts. The user's last words
    stay as they are unless they fill half of the target by themselves.
    """
    messages = tuple(messages)
    target = max(target, SMALLEST)
    if weight(messages) <= target:
        return messages
    front = front_of(messages, context)
    cap = target // 4
    while cap >= _SMALLEST_PART:
        fitting = _dropped(messages, front, cap, target)
        if fitting is not None:
            return fitting
        cap //= 2
    return _told_only(messages, front, target)


def weight(messages: Sequence[Message]) -> int:
    """Tokens of messages, estimated."""
    return sum(map(of_message, messages))


def _dropped(
    messages: tuple[Message, ...], front: int, cap: int, target: int
) -> tuple[Message, ...] | None:
    """The most that fits when no part is above `cap` tokens; None where even the last step does
    not.
    """
    spared = {id(message) for message in _last_words(messages, front, target)}
    cut_down = tuple(
        message if id(message) in spared or place < front else shorter(message, cap)
        for place, message in enumerate(messages)
    )
    sums = [0, *accumulate(map(of_message, cut_down))]
    if sums[-1] <= target:
        return cut_down
    room = target - sums[front] - _facts_size(target) - _THANKS
    for place in cuts(messages, front):
        if place == front or sums[-1] - sums[place] > room:
            continue
        prompts = ()
        if not is_prompt(messages[place]):
            prompts = _affordable(prompts_before(cut_down, front, place), target)
        if sums[-1] - sums[place] + weight(prompts) <= room:
            words = facts(messages[front:place], _facts_size(target))
            return (*cut_down[:front], *told(words, prompts, cut_down[place:]))
    return None


def _told_only(messages: tuple[Message, ...], front: int, target: int) -> tuple[Message, ...]:
    """Nothing but the front, the facts and the user's last words."""
    share = target // 4 // max(front, 1)
    kept = tuple(as_text(message, share) for message in messages[:front])
    if front > 8:
        kept = (as_text(_merged(kept), target // 4),)
    prompts = _last_words(messages, front, target)
    words = facts(messages[front:], _facts_size(target), latest=True)
    return (*kept, *told(words, prompts, ()))


def _last_words(messages: tuple[Message, ...], front: int, target: int) -> tuple[Message, ...]:
    return _affordable(prompts_before(messages, front, len(messages)), target)


def _affordable(prompts: tuple[Message, ...], target: int) -> tuple[Message, ...]:
    """All of the user's words if they fill no more than half, else the last of them."""
    if not prompts or weight(prompts) <= target // 2:
        return prompts
    return (as_text(prompts[-1], target // 2),)


def _merged(messages: tuple[Message, ...]) -> Message:
    parts = tuple(part for message in messages for part in message.parts)
    return msgspec.structs.replace(messages[0], parts=parts)


def _facts_size(target: int) -> int:
    return target // 8
