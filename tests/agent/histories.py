"""Conversations as an agent holds them, of any length and any weight, whole and well paired."""

import json

from hypothesis import strategies as st

from toolwire.messages import (
    Media,
    MediaKind,
    Message,
    Origin,
    Part,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

MAKER = Origin("anthropic-messages", "anthropic", "claude")
SEAL = Seal(origin=MAKER, data='{"signature":"c2lnbmF0dXJl"}')
SURROUNDINGS = (
    Message(role="user", parts=(Text("This is toolwire. The folder is /project."),)),
    Message(role="assistant", parts=(Text("Got it. Thanks for the context!"),)),
)

words = st.builds(
    lambda word, times: (word * times)[:12_000],
    st.sampled_from(["word ", "größer ", "日本語", "😀", "a\n", "\x00", "{", "\ud800", ""]),
    st.sampled_from([0, 1, 3, 40, 400, 3_000]),
)
media = st.builds(
    Media, kind=st.sampled_from(MediaKind), mime=st.just("image/png"), base64=st.just("AAAA" * 50)
)


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=_parts(parts))


def model(*parts: Part | str) -> Message:
    return Message(role="assistant", parts=_parts(parts))


def _parts(parts: tuple[Part | str, ...]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)


def call(id: str, name: str = "read_file", **arguments: object) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments))


def result(id: str, text: str = "done", name: str = "read_file") -> ToolResult:
    return ToolResult(call_id=id, name=name, parts=(Text(text),))


@st.composite
def steps(draw: st.DrawFn, sealed: bool) -> list[Message]:
    """One step of the model: calls, and a message that answers them all."""
    count = draw(st.integers(1, 3))
    made: list[Part] = []
    if sealed and draw(st.booleans()):
        made.append(Thinking(draw(words), SEAL))
    if draw(st.booleans()):
        made.append(Text(draw(words)))
    # Servers number their calls anew in every reply.
    ids = [f"call_{number}" for number in range(count)]
    names = [draw(st.sampled_from(["read_file", "run_shell_command", "todo"])) for _ in ids]
    for id, name in zip(ids, names, strict=True):
        told = {
            "read_file": {"absolute_path": f"/project/{draw(words)[:30]}.py"},
            "run_shell_command": {"command": draw(words)},
            "todo": {"items": [{"text": draw(words)[:50], "status": "done"}]},
        }[name]
        arguments = draw(st.sampled_from([json.dumps(told), "", "not json", "[1]"]))
        made.append(ToolCall(id=id, name=name, arguments=arguments))
    answers: list[Part] = [
        ToolResult(
            call_id=id,
            name=name,
            parts=(Text(draw(words)), *draw(st.lists(media, max_size=1))),
            is_error=draw(st.booleans()),
        )
        for id, name in zip(ids, names, strict=True)
    ]
    answers += draw(st.lists(st.builds(Text, words) | media, max_size=1))
    return [
        Message(role="assistant", parts=tuple(made)),
        Message(role="user", parts=tuple(answers)),
    ]


@st.composite
def bodies(draw: st.DrawFn) -> list[Message]:
    """Turns one after the other; the last may be in the middle of its work."""
    said: list[Message] = []
    sealed = draw(st.booleans())
    turns = draw(st.integers(1, 4))
    for turn in range(turns):
        said.append(user(f"question {turn} {draw(words)}", *draw(st.lists(media, max_size=1))))
        for _ in range(draw(st.integers(0, 4))):
            said += draw(steps(sealed))
            if draw(st.integers(0, 5)) == 0:
                said.append(user(f"by the way {draw(words)}"))
        if turn + 1 < turns or draw(st.booleans()):
            parts: list[Part] = [Text(draw(words) or "done")]
            if draw(st.integers(0, 5)) == 0:
                parts.append(ServerBlock(origin=MAKER, kind="search", data='{"x":1}'))
            said.append(Message(role="assistant", parts=tuple(parts)))
    return said


def histories() -> st.SearchStrategy[tuple[Message, ...]]:
    """A whole conversation, its surroundings in front."""
    return bodies().map(lambda said: (*SURROUNDINGS, *said))


def unpaired(messages: tuple[Message, ...]) -> list[str]:
    """What a strict vendor refuses: calls without their results right behind them, and results
    without their calls right before them.
    """
    wrong: list[str] = []
    for place, message in enumerate(messages):
        wanted = [made.id for made in message.calls]
        following = messages[place + 1] if place + 1 < len(messages) else None
        if wanted and (following is None or [r.call_id for r in following.results] != wanted):
            wrong.append(f"messages[{place}]: calls without their results")
        before = messages[place - 1] if place else None
        if message.results and (before is None or not before.calls):
            wrong.append(f"messages[{place}]: results without their calls")
    return wrong
