import re
from collections.abc import Iterator, Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.history import HistoryRules, Repaired, repair
from toolwire.messages import (
    CallKind,
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

ANTHROPIC = Origin("anthropic-messages", "anthropic", "claude")
GEMINI = Origin("gemini", "google", "gemini-3")
ORIGINS = (
    ANTHROPIC,
    GEMINI,
    Origin("anthropic-messages", "anthropic", "claude-older"),
    Origin("openai-responses"),
    Origin("openai-chat", "mistral", "large"),
)
RULES = (
    HistoryRules(),
    HistoryRules(id_characters="a-zA-Z0-9_-", id_limit=64, alternate=True, thinking_leads=True),
    HistoryRules(id_characters="a-zA-Z0-9", id_length=9, alternate=True, user_first=True),
    HistoryRules(id_limit=12, user_first=True, thinking_leads=True),
    HistoryRules(alternate=True, user_first=True, results_first=False),
    HistoryRules(results_first=False),
)
# Few ids, so that they meet; some that no strict reader takes.
IDS = st.sampled_from(["call_0", "functions.add:0", "a", "", "abcDEF123", "x" * 70, "toolu_ü", "b"])
NAMES = st.sampled_from(["add", "read_file", ""])
WORDS = st.text("abc é\n", max_size=6)

origins = st.sampled_from(ORIGINS)
seals = st.none() | st.builds(
    Seal, origin=origins, data=st.sampled_from(['{"signature":"c2ln"}', '{"id":"rs_1"}'])
)
kepts = st.none() | st.builds(
    Kept,
    dialect=st.sampled_from(["anthropic-messages", "openai-chat"]),
    fields=st.sampled_from(["{}", '{"x":1}']),
)
blocks = st.builds(ServerBlock, origin=origins, kind=st.just("search"), data=st.just("{}"))
texts = st.builds(Text, WORDS, seal=seals, kept=kepts)
media = st.builds(
    Media,
    kind=st.just(MediaKind.IMAGE),
    base64=st.sampled_from(["AAAA", "BBBB"]),
    seal=seals,
)
calls = st.builds(
    ToolCall,
    id=IDS,
    name=NAMES,
    arguments=st.sampled_from(["", "{}", '{"a":1', "not json"]),
    kind=st.sampled_from(CallKind),
    complete=st.booleans(),
    seal=seals,
)
results = st.builds(
    ToolResult,
    call_id=IDS,
    name=NAMES,
    parts=st.lists(texts | media | blocks, max_size=2).map(tuple),
    is_error=st.booleans(),
    kept=kepts,
)
any_part = st.one_of(
    texts,
    st.builds(Thinking, WORDS, seals, kepts),
    st.builds(Refusal, WORDS, seals, kepts),
    media,
    calls,
    calls,
    results,
    results,
    blocks,
)
any_messages = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "assistant", "user", "system"]),
        parts=st.lists(any_part, max_size=5).map(tuple),
        kept=kepts,
    ),
    max_size=8,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A sane history: questions, answers with thinking and calls, and their results."""
    said: list[Message] = []
    maker = draw(origins)
    for turn in range(draw(st.integers(1, 4))):
        said.append(Message(role="user", parts=(Text(f"question {turn}"),)))
        for step in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 3))
            made = [
                ToolCall(id=f"call_{number}", name="add", arguments="{}") for number in range(count)
            ]
            seal = Seal(origin=maker, data=f'{{"signature":"{turn}.{step}"}}')
            said.append(Message(role="assistant", parts=(Thinking("hm", seal), *made)))
            answers: list[Part] = []
            for call in made:
                words = (Text(f"result {turn}.{step}.{call.id}"),)
                answers.append(ToolResult(call_id=call.id, name="add", parts=words))
                for beside in range(draw(st.integers(0, 2))):
                    answers.append(Text(f"beside {turn}.{step}.{call.id}.{beside}"))
            said.append(Message(role="user", parts=tuple(answers)))
        said.append(Message(role="assistant", parts=(Text(f"answer {turn}"),)))
    return said


@st.composite
def edited_conversations(draw: st.DrawFn) -> list[Message]:
    """A history after what people and crashes do to it."""
    said = draw(conversations())
    for _ in range(draw(st.integers(0, 3))):
        if not said:
            break
        at = draw(st.integers(0, len(said) - 1))
        match draw(
            st.sampled_from(["head", "tail", "lose", "double", "ask", "swap", "cut", "fork"])
        ):
            case "head":
                said = said[at:]
            case "tail":
                said = said[: at + 1]
            case "lose":
                del said[at]
            case "double":
                said.insert(at, said[at])
            case "ask":
                said.insert(at, Message(role="user", parts=(Text("never mind"),)))
            case "swap":
                said[at] = _with_parts(said[at], draw(st.permutations(said[at].parts)))
            case "cut":
                said = [*said[:at], *map(_cut, said[at : at + 1])]
            case _:
                said = [*said[: at + 1], *draw(conversations())]
    return said


def _with_parts(message: Message, parts: Sequence[Part]) -> Message:
    return msgspec.structs.replace(message, parts=tuple(parts))


def _cut(message: Message) -> Message:
    return _with_parts(
        message,
        [
            msgspec.structs.replace(part, complete=False, arguments='{"a":')
            if isinstance(part, ToolCall)
            else part
            for part in message.parts
        ],
    )


histories = any_messages | edited_conversations()
targets = origins | st.sampled_from([Origin("anthropic-messages"), Origin("gemini")])
rules = st.sampled_from(RULES)


def assert_balanced(messages: Sequence[Message], rules: HistoryRules) -> None:
    """Written against the rules of the wire, not against the repair."""
    seen: set[str] = set()
    for number, message in enumerate(messages):
        assert message.parts
        called = [call.id for call in message.calls]
        following = messages[number + 1] if number + 1 < len(messages) else None
        if called:
            assert message.role == "assistant"
            assert following is not None
            assert following.role == "user"
            answers = following.parts[: len(called)] if rules.results_first else following.parts
            assert isinstance(following.parts[0], ToolResult)
            assert [part.call_id for part in answers if isinstance(part, ToolResult)] == called
        asked = len(messages[number - 1].calls) if number else 0
        assert len(message.results) == asked
        for call_id in called:
            assert call_id not in seen
            assert call_id
            seen.add(call_id)
            assert len(call_id) <= (rules.id_limit or len(call_id))
            assert len(call_id) == (rules.id_length or len(call_id))
            assert re.fullmatch(
                f"[{rules.id_characters}]*" if rules.id_characters else "(?s).*", call_id
            )
        if rules.alternate and number and message.role != "system":
            assert messages[number - 1].role != message.role
    spoken = [message.role for message in messages if message.role != "system"]
    assert not (rules.user_first and spoken) or spoken[0] == "user"


@given(histories, targets, rules)
def test_every_history_comes_out_balanced(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    assert_balanced(repair(messages, target, rules).messages, rules)


@given(histories, targets, rules)
def test_a_repaired_history_needs_no_repair(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    repaired = repair(messages, target, rules).messages
    assert repair(repaired, target, rules) == Repaired(repaired)


@given(histories, targets, rules)
def test_changes_are_reported_exactly_when_there_are_some(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    repaired = repair(messages, target, rules)
    assert (repaired.messages == tuple(messages)) == (repaired.changes == ())


@given(conversations(), st.data())
def test_what_stands_beside_a_result_stays_behind_it_for_a_reader_that_lets_it(
    messages: list[Message], data: st.DataObject
) -> None:
    mixed = [_groups_mixed(message, data) for message in messages]
    rules = HistoryRules(alternate=True, user_first=True, results_first=False)
    after = repair(mixed, Origin("gemini"), rules).messages
    assert [[_seen(part) for part in message.parts] for message in after] == [
        [_seen(part) for part in _expected(message, shuffled)]
        for message, shuffled in zip(messages, mixed, strict=True)
    ]


def _expected(message: Message, mixed: Message) -> list[Part]:
    """The groups in order; parts that follow only the last of the shuffled results come last."""
    at = [isinstance(part, ToolResult) for part in mixed.parts]
    if sum(at) < 2 or not all(at[: sum(at)]):
        return list(message.parts)
    return sorted(message.parts, key=lambda part: not isinstance(part, ToolResult))


def _groups_mixed(message: Message, data: st.DataObject) -> Message:
    """The results in any order, each with what follows it."""
    if not message.results:
        return message
    groups: list[list[Part]] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            groups.append([])
        groups[-1].append(part)
    mixed = data.draw(st.permutations(groups))
    return _with_parts(message, [part for group in mixed for part in group])


def _seen(part: Part) -> str:
    # Ids are made unique across turns; here only what is said counts.
    return part.text if isinstance(part, Text | ToolResult | Thinking) else "call"


@given(histories, targets, rules)
def test_a_repair_gives_the_same_each_time_and_leaves_its_input_alone(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    before = msgspec.msgpack.encode(messages)
    assert repair(messages, target, rules) == repair(tuple(messages), target, rules)
    assert msgspec.msgpack.encode(messages) == before


def all_parts(messages: Sequence[Message]) -> Iterator[Part]:
    for message in messages:
        for part in message.parts:
            yield part
            if isinstance(part, ToolResult):
                yield from part.parts


def words(messages: Sequence[Message]) -> str:
    return "\n".join(
        part.text for part in all_parts(messages) if isinstance(part, Text | Thinking | Refusal)
    )


@given(histories, targets, rules)
def test_no_text_is_lost_but_that_of_a_result_that_stands_there_twice(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    after = words(repair(messages, target, rules).messages)
    for part in all_parts(messages):
        if isinstance(part, Text | Thinking | Refusal):
            assert part.text in after


@given(histories, targets)
def test_own_seals_survive_byte_for_byte_and_no_other_does(
    messages: list[Message], target: Origin
) -> None:
    def own(said: Sequence[Message]) -> list[Seal]:
        return [
            part.seal
            for part in all_parts(said)
            if not isinstance(part, ToolResult | ServerBlock)
            and part.seal is not None
            and target.reads(part.seal.origin)
        ]

    # Text and media of results without a call lose theirs with their place: left out here.
    messages = [
        _with_parts(m, [p for p in m.parts if not isinstance(p, ToolResult)]) for m in messages
    ]
    messages = [
        _with_parts(m, m.parts if m.role == "assistant" else _no_calls(m)) for m in messages
    ]
    messages = [
        _with_parts(m, [p for p in m.parts if not isinstance(p, ServerBlock)]) for m in messages
    ]
    repaired = repair(messages, target).messages
    assert own(repaired) == own(messages)
    assert all(
        target.reads(part.seal.origin)
        for part in all_parts(repaired)
        if not isinstance(part, ToolResult | ServerBlock) and part.seal is not None
    )


def _no_calls(message: Message) -> list[Part]:
    return [part for part in message.parts if not isinstance(part, ToolCall)]


@given(histories, targets, rules)
def test_a_foreign_seal_or_block_never_comes_out(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    for part in all_parts(repair(messages, target, rules).messages):
        if isinstance(part, ServerBlock):
            assert target.reads(part.origin)
        elif not isinstance(part, ToolResult) and part.seal is not None:
            assert target.reads(part.seal.origin)


@given(histories, histories, targets, rules)
def test_what_is_appended_never_changes_the_ids_before_it(
    messages: list[Message], more: list[Message], target: Origin, rules: HistoryRules
) -> None:
    def ids(said: Sequence[Message]) -> list[str]:
        return [call.id for message in said for call in message.calls]

    short = ids(repair(messages, target, rules).messages)
    assert ids(repair([*messages, *more], target, rules).messages)[: len(short)] == short


@given(conversations(), conversations(), targets)
def test_a_balanced_beginning_comes_out_the_same_whatever_follows(
    messages: list[Message], more: list[Message], target: Origin
) -> None:
    short = repair(messages, target).messages
    assert repair([*messages, *more], target).messages[: len(short)] == short


@given(histories, targets, rules)
def test_ids_that_fit_and_are_unique_stay(
    messages: list[Message], target: Origin, rules: HistoryRules
) -> None:
    before = [
        call.id for message in messages if message.role == "assistant" for call in message.calls
    ]
    after = [
        call.id for message in repair(messages, target, rules).messages for call in message.calls
    ]
    assert len(before) == len(after)
    for was, now in zip(before, after, strict=True):
        fits = was and len(was) <= (rules.id_limit or len(was))
        fits = fits and len(was) == (rules.id_length or len(was))
        fits = fits and re.fullmatch(f"[{rules.id_characters or 'a-zA-Z0-9_.:ü-'}]*", was)
        if fits and before.count(was) == 1:
            assert now == was


@given(histories, targets)
@settings(max_examples=50)
def test_a_real_result_is_never_replaced_by_a_made_up_one(
    messages: list[Message], target: Origin
) -> None:
    messages = [message for message in messages if message.role == "user" or not message.results]
    repaired = repair(messages, target)
    made_up = sum(change.why == "it had no result" for change in repaired.changes)
    unused = sum(
        change.what in ("made the result text", "dropped an empty result", "dropped a result")
        for change in repaired.changes
    )
    before = sum(len(message.results) for message in messages)
    after = sum(len(message.results) for message in repaired.messages)
    assert after - made_up == before - unused
