"""Prompting of a small model: few tools, short texts, constrained JSON, changes by plan."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from time import monotonic

import msgspec

from toolwire.embedded.small import evidence
from toolwire.embedded.small.about import (
    MOST_READ,
    asks_files,
    first_looks,
    further,
    instruction,
    kind_of,
    lists,
    mentions,
    search_word,
    searches,
)
from toolwire.embedded.small.figures import marked_names
from toolwire.embedded.small.fitting import fit
from toolwire.embedded.small.honesty import Honesty, not_allowed
from toolwire.embedded.small.past import (
    KINDS,
    QUESTION,
    Question,
    Ran,
    RequestKind,
    found_nothing,
    listed,
    read_kind,
    since_request,
    with_words,
)
from toolwire.embedded.small.tools import (
    LEFT_OUT,
    TOOLS,
    KnownFiles,
    to_real,
)
from toolwire.embedded.small.wording import forbidden
from toolwire.embedded.small.work import Calls, Change, Closing, Query
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.prompted import json as json_style
from toolwire.request import JsonObject, ModelRequest, ToolSpec
from toolwire.wire.json_access import dump, object_in

_LONGEST_REPLY = 400
"""Characters of a reply, after which it ends with the current sentence."""
_MOST_REFUSED = 2
"""Commands that the request does not allow, before the model must reply."""
BUDGET = 110.0
"""Seconds of the model's work for one request, after which nothing new is begun."""
LIMIT = 150.0
"""Seconds of the model's work for one request, after which an answer is cut off."""
_OUT_OF_TIME = "I stopped here: the time for one request is used up."
_sentence_end = re.compile(r"[.!?](?=\s)").search


def wrap(
    model: Model,
    new_id: Callable[[], str],
    project: Callable[[], KnownFiles],
    clock: Callable[[], float] = monotonic,
) -> Model:
    """The model with tools in short form; `project` is called for every request."""
    conversation = _Conversation(model, new_id, clock)

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        plain = json_style.wrap(model, new_id)
        answer = conversation.ask(request, project()) if request.tools else plain(request)
        async with reading(answer) as events:
            async for event in events:
                yield event

    return ask


class _Conversation:
    """One conversation: its first file list, the kinds of its requests, and the current change."""

    def __init__(self, model: Model, new_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._model = model
        self._new_id = new_id
        self._clock = clock
        self._listed: KnownFiles | None = None
        self._kinds: dict[str, RequestKind | None] = {}
        self._change: Change | None = None
        self._request = ("", 0)
        """The newest request, and the number of messages up to it."""
        self._spent = 0.0
        self._began = 0.0
        self._written = 0
        self._input: int | None = None
        """Tokens of the last prompt; the tools as the agent knows them would be many more."""

    async def ask(self, request: ModelRequest, project: KnownFiles) -> AsyncIterator[ModelEvent]:
        self._began = self._clock()
        try:
            async with reading(self._answer(request, project)) as events:
                async for event in events:
                    yield self._counted(event) if isinstance(event, Finished) else event
        finally:
            self._spent += self._clock() - self._began

    def _counted(self, event: Finished) -> Finished:
        """Adds the questions to the output tokens; the input is that of the last prompt."""
        usage = event.usage
        self._input = usage.input or self._input
        output = (usage.output or 0) + self._written
        self._written = 0
        usage = msgspec.structs.replace(usage, input=self._input, output=output)
        return msgspec.structs.replace(event, usage=usage)

    async def _answer(
        self, request: ModelRequest, project: KnownFiles
    ) -> AsyncIterator[ModelEvent]:
        if self._listed is None:
            self._listed = project
        words, upto = _newest(request.messages)
        if (words, upto) != self._request:
            self._request = (words, upto)
            self._spent, self._began, self._change = 0.0, self._clock(), None
            wish = instruction(words)
            if wish != words and not mentions(wish, project)[0]:
                # Text in a pipe and what to make of it.
                self._kinds[words] = RequestKind.TALK
            else:
                prepared = self._prepared(request, project, upto)
                kind = Question(self._model, prepared, QUESTION, KINDS, "kind", self._expired)
                async with reading(self._questions(kind)) as events:
                    async for event in events:
                        yield event
                self._kinds[words] = kind_of(wish, read_kind(kind.answer), project)
            if self._kinds[words] is RequestKind.CHANGE:
                self._change = Change(instruction(words), other=_has_others(request))
        steps = self._looks(request, project)
        if self._change is not None:
            steps = self._steps(request, project, self._change)
        async with reading(steps) as events:
            async for event in events:
                yield event

    async def _steps(
        self, request: ModelRequest, project: KnownFiles, change: Change
    ) -> AsyncIterator[ModelEvent]:
        """The next call of a change, or its closing words."""
        while True:
            ran = since_request(request.messages)
            match change.next(ran, project, late=self._late):
                case Calls() as found:
                    for event in self._called(found):
                        yield event
                    return
                case Closing() as found:
                    yield TextDelta(found.words)
                    yield Finished(reason=StopReason.END)
                    return
                case Query() as found:
                    prepared = self._prepared(request, project, len(request.messages))
                    query = Question(
                        self._model, prepared, found.words, found.schema, found.name, self._expired
                    )
                    async with reading(self._questions(query)) as events:
                        async for event in events:
                            yield event
                    change.answer(query.answer, project)
            if change.elsewhere:
                self._change = None
                self._kinds[self._request[0]] = RequestKind.COMMAND
                async with reading(self._looks(request, project)) as events:
                    async for event in events:
                        yield event
                return

    async def _looks(self, request: ModelRequest, project: KnownFiles) -> AsyncIterator[ModelEvent]:
        """The next look or command that the model chooses, or its reply."""
        kind = self._kinds.get(self._request[0])
        words = instruction(self._request[0])
        ran = since_request(request.messages)
        if denied := [it for it in ran if it.refused]:
            yield TextDelta(not_allowed(denied))
            yield Finished(reason=StopReason.END)
            return
        if kind is RequestKind.QUESTION:
            fixed = self._fixed_look(request, ran, words, project)
            if fixed is not None:
                for event in fixed:
                    yield event
                return
        enough = kind is RequestKind.QUESTION and _enough(words, ran, project)
        refused: list[str] = []
        while True:
            done = len(refused) >= _MOST_REFUSED or self._late or enough
            fitted = fit(
                request,
                project,
                listed=self._listed or project,
                kinds=self._kinds,
                closing=done,
                without=refused,
            )
            for notice in fitted.notices:
                yield notice
            honesty = Honesty(ran, kind)
            reader = _Answer(project, words, honesty, ran, kind)
            inner = json_style.wrap(self._model, self._new_id, instructions=fitted.instructions)
            shown = fitted.request
            if kind is RequestKind.QUESTION and (lines := evidence.pointers(words, ran, project)):
                *before, last = shown.messages
                messages = (*before, with_words(last, f"\n\n{lines}"))
                shown = msgspec.structs.replace(shown, messages=messages)
            async with reading(inner(shown)) as events:
                async for event in events:
                    for out in reader.read(event):
                        yield out
                    if reader.complete:
                        break
                    if self._expired():
                        yield TextDelta(_OUT_OF_TIME)
                        yield Finished(reason=StopReason.END)
                        return
            self._written += reader.usage.output or 0
            if not reader.refused:
                return
            refused.append(reader.refused)

    def _fixed_look(
        self, request: ModelRequest, ran: Sequence[Ran], words: str, project: KnownFiles
    ) -> Sequence[ModelEvent] | None:
        """What follows from the question and the files alone: looks, or that a name is absent."""
        looks: list[tuple[str, JsonObject]] = []
        if _offers(request, "read_file") and not ran:
            looks = first_looks(words, project)
        elif _offers(request, "read_file") and all(it.call.name == "read_file" for it in ran):
            files = evidence.referred(words, ran, project)
            looks = [("read_file", {"path": it}) for it in files]
            looks = looks if len(ran) < MOST_READ else []
        if looks:
            made = ((name, to_real(name, given, project)) for name, given in looks)
            return self._called(Calls(tuple(made)))
        if word := _other_search(ran, words, project):
            return self._called(Calls((("search_file_content", {"pattern": word}),)))
        if not ran:
            return None
        reply = evidence.absent(words, _named_files(words, project), project)
        if names := _absent_names(words, project):
            reply = f"{listed(names)} does not occur in any file of the project."
        return (TextDelta(reply), Finished(reason=StopReason.END)) if reply else None

    @property
    def _late(self) -> bool:
        return self._used > BUDGET

    @property
    def _used(self) -> float:
        return self._spent + self._clock() - self._began

    def _expired(self) -> bool:
        return self._used > LIMIT

    async def _questions(self, question: Question) -> AsyncIterator[ModelEvent]:
        async with reading(question.events()) as events:
            async for event in events:
                yield event
        self._written += question.usage.output or 0
        self._input = question.usage.input or self._input

    def _called(self, found: Calls) -> Sequence[ModelEvent]:
        out: list[ModelEvent] = []
        for name, arguments in found.calls:
            id = self._new_id()
            out += [
                ToolCallStarted(id, name, made_id=True),
                ToolCallDelta(id, dump(arguments)),
                ToolCallEnded(id),
            ]
        return (*out, Finished(reason=StopReason.TOOL_CALLS))

    def _prepared(self, request: ModelRequest, project: KnownFiles, upto: int) -> ModelRequest:
        """The conversation as it is sent, without an answer's form."""
        before = msgspec.structs.replace(request, messages=request.messages[:upto])
        fitted = fit(before, project, listed=self._listed or project, kinds=self._kinds)
        prepared = json_style.prepare(fitted.request, instructions=fitted.instructions)
        return prepared.request if prepared is not None else fitted.request


def _enough(words: str, ran: Sequence[Ran], project: KnownFiles) -> bool:
    """Whether a question can be answered: further looks would only lead away from it."""
    if not ran:
        return False
    last = ran[-1]
    found = last.succeeded and not found_nothing(last.result.text)
    if searches(words) and not further(words) and last.call.name in ("search_file_content", "glob"):
        return found
    if lists(words):
        return found and last.call.name in ("list_directory", "glob")
    if asks_files(words):
        return False
    return evidence.covered(words, _named_files(words, project), ran, project)


def _named_files(words: str, project: KnownFiles) -> list[str]:
    return [it.path for it in mentions(words, project)[0] if it.path in project.files]


def _absent_names(words: str, project: KnownFiles) -> list[str]:
    """The identifiers that a question names, if none of them is in the project."""
    names = marked_names(words)
    if project.more or any(name in path for name in names for path in project.files):
        return []
    texts = [project.text(path) for path in project.files]
    found = any(evidence.contains(name, text) for name in names for text in texts if text)
    return [] if found else names


def _other_search(ran: Sequence[Ran], words: str, project: KnownFiles) -> str:
    """A word to search for after a search that found nothing; empty if it is not needed."""
    searched = [it for it in ran if it.call.name == "search_file_content"]
    if not searched or ran[-1] != searched[-1] or not found_nothing(searched[-1].result.text):
        return ""
    return search_word(words, project, " ".join(it.call.arguments for it in searched).split('"'))


def _offers(request: ModelRequest, name: str) -> bool:
    return any(isinstance(it, ToolSpec) and it.name == name for it in request.tools)


def _has_others(request: ModelRequest) -> bool:
    return any(
        isinstance(it, ToolSpec) and it.name not in TOOLS and it.name not in LEFT_OUT
        for it in request.tools
    )


def _newest(messages: Sequence[Message]) -> tuple[str, int]:
    """The text of the newest request, and the number of messages up to it."""
    for at in range(len(messages), 0, -1):
        message = messages[at - 1]
        words = [part.text for part in message.parts if isinstance(part, Text)]
        if message.role == "user" and words:
            return words[-1], at
    return "", 0


class _Answer:
    """Translates the short calls of one answer to real ones, and keeps its reply to the facts."""

    def __init__(
        self,
        project: KnownFiles,
        words: str,
        honesty: Honesty,
        ran: Sequence[Ran],
        kind: RequestKind | None,
    ) -> None:
        self._project = project
        self._ran = ran
        self._kind = kind
        self._made = {(it.call.name, it.call.arguments) for it in ran}
        self._words = words
        self._honesty = honesty
        self._open: dict[str, tuple[ToolCallStarted, list[str]]] = {}
        self.refused = ""
        """The tool of a call that is not made: the request does not allow it, or it was made."""
        self.usage = Usage()
        self._reply = ""
        self.complete = False

    def read(self, event: ModelEvent) -> Sequence[ModelEvent]:
        match event:
            case ToolCallStarted() if event.name in TOOLS:
                self._open[event.id] = (event, [])
                return ()
            case ToolCallDelta() if event.id in self._open:
                self._open[event.id][1].append(event.arguments)
                return ()
            case ToolCallEnded() if event.id in self._open:
                return self._call(event)
            case TextDelta():
                return self._text_event(event.text)
            case Finished() if self.refused:
                self.usage = event.usage
                return ()
            case Finished():
                closing = self._closing() if event.reason is not StopReason.TOOL_CALLS else ()
                return (*closing, event)
            case _:
                return (event,)

    def _text_event(self, text: str) -> Sequence[ModelEvent]:
        """The complete sentences of the reply, up to the one that exceeds the limit."""
        before = self._reply
        self._reply += text
        end = _sentence_end(self._reply, _LONGEST_REPLY)
        if end is not None:
            text = self._reply[len(before) : end.end()]
        words = self._honesty.feed(text)
        if end is None:
            return (TextDelta(words),) if words else ()
        self.complete = True
        notice = Notice("reply_cut", "the small model's reply was too long and was cut off")
        said = (TextDelta(words),) if words else ()
        return (*said, *self._closing(), notice, Finished(reason=StopReason.END))

    def _closing(self) -> Sequence[TextDelta]:
        """The end of the reply, and the facts that it is about."""
        words = self._honesty.close()
        said = self._reply + words
        facts = evidence.closing(said, self._words, self._ran, self._kind, self._project)
        return tuple(TextDelta(it) for it in (words, facts) if it)

    def _call(self, event: ToolCallEnded) -> Sequence[ModelEvent]:
        started, pieces = self._open.pop(event.id)
        text = "".join(pieces)
        arguments = object_in(text) if event.complete else None
        if arguments is not None:
            text = dump(to_real(started.name, arguments, self._project))
            command = str(arguments.get("command", ""))
            shell = started.name == "run_shell_command"
            if shell and forbidden(command, self._words, self._project):
                self.refused = started.name
            if (started.name, text) in self._made:
                self.refused = started.name
            if self.refused:
                return ()
        return (started, ToolCallDelta(event.id, text), event)
