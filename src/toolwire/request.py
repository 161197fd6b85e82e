"""Model requests: messages, tools and options, and losses of a conversion."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from toolwire.errors import BadInput, UnknownName
from toolwire.messages import CacheMark, Kept, Message, Text
from toolwire.messages import Loss as Loss  # a conversion reports them beside the request
from toolwire.setting import setting

if TYPE_CHECKING:
    from toolwire.events import Usage

JsonObject: TypeAlias = dict[str, Any]
"""A decoded JSON object. Schemas have this type because programs build and read them."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, tag="json_tool"):
    """A tool whose arguments are a JSON object."""

    name: str
    description: str = ""
    parameters: JsonObject = {}
    """JSON Schema of the arguments; `{}` means none are taken."""
    strict: bool | None = None
    namespace: str = ""
    cache: CacheMark | None = None
    kept: Kept | None = None


class FreeformTool(msgspec.Struct, frozen=True, kw_only=True, tag="freeform_tool"):
    """A tool whose argument is plain text, optionally bound by a grammar."""

    name: str
    description: str = ""
    syntax: Literal["", "lark", "regex"] = ""
    grammar: str = ""
    namespace: str = ""
    kept: Kept | None = None


class ServerTool(msgspec.Struct, frozen=True, kw_only=True, tag="server_tool"):
    """A tool the vendor runs itself; known only to its own wire format."""

    dialect: str
    kind: str
    data: str
    """The vendor's JSON object, whole."""


AnyTool: TypeAlias = ToolSpec | FreeformTool | ServerTool


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Whether and which tools may be called. One name with `required` forces that tool."""

    mode: Literal["auto", "required", "none"] = "auto"
    names: tuple[str, ...] = ()
    """Only these tools; empty for all."""
    kept: Kept | None = None


class Effort(StrEnum):
    """Reasoning effort."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


_BUDGETS = {
    Effort.NONE: 0,
    Effort.MINIMAL: 1024,
    Effort.LOW: 2048,
    Effort.MEDIUM: 8192,
    Effort.HIGH: 16384,
    Effort.XHIGH: 32768,
    Effort.MAX: 65536,
}


def budget_of(effort: Effort) -> int:
    """Thinking tokens of an effort."""
    return _BUDGETS[effort]


def effort_of(budget: int) -> Effort:
    """The smallest effort whose budget is at least this one."""
    return next((effort for effort, tokens in _BUDGETS.items() if tokens >= budget), Effort.MAX)


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning options."""

    enabled: bool | None = None
    """True or False switches it; None leaves it to the model."""
    effort: Annotated[Effort | None, setting("Reasoning effort.", project=True)] = None
    budget: Annotated[
        Annotated[int, msgspec.Meta(ge=-1)] | None,
        setting("Maximum number of thinking tokens; -1 lets the model decide.", project=True),
    ] = None
    visible: Annotated[bool | None, setting("Request the thoughts as text.", project=True)] = None
    """Thoughts, or their summary."""
    kept: Kept | None = None


EffortName: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of requests to a model; those that are not set are left to it.

    What a provider does not accept is left out of the request and reported as a loss.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    max_tokens: int | None = None
    """Most tokens of one answer."""
    effort: Effort | EffortName | None = None
    """How much the model reasons."""
    tool_choice: str | ToolChoice | None = None
    """`auto`, `none`, `required`, or the name of a tool; a forced call is forced once."""
    parallel_calls: bool | None = None
    """Whether one reply may contain several calls."""
    stop: str | tuple[str, ...] = ()
    """Texts that end an answer."""
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None

    def __post_init__(self) -> None:
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                limit = f"from {least} to {most:g}" if most < _ANY else f"at least {least}"
                raise BadInput(f"{name} is {value}; it must be {limit}")
        if self.effort is not None and self.effort not in tuple(Effort):
            raise UnknownName("effort", self.effort, tuple(Effort))

    def over(self, other: "ModelSettings") -> "ModelSettings":
        """These settings, and where they set nothing, the other ones."""
        return msgspec.structs.replace(other, **self._given())

    def applied(self, request: "ModelRequest") -> "ModelRequest":
        """The request with these settings; what they do not set stays."""
        given = self._given()
        if "effort" in given:
            reasoning = request.reasoning or Reasoning()
            effort = Effort(given.pop("effort"))
            given["reasoning"] = msgspec.structs.replace(reasoning, effort=effort)
        if "max_tokens" in given:
            given["max_output_tokens"] = given.pop("max_tokens")
        if isinstance(self.stop, str):
            given["stop"] = (self.stop,) if self.stop else ()
        if isinstance(self.tool_choice, str):
            given["tool_choice"] = _choice(self.tool_choice, request)
        return msgspec.structs.replace(request, **given)

    def _given(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None and value != ()}


_ANY = float("inf")
_RANGES = (
    ("temperature", 0, _ANY),
    ("top_p", 0, 1),
    ("top_k", 0, _ANY),
    ("max_tokens", 1, _ANY),
    ("frequency_penalty", -2, 2),
    ("presence_penalty", -2, 2),
)


def _choice(words: str, request: "ModelRequest") -> ToolChoice:
    match words:
        case "auto" | "none" | "required":
            return ToolChoice(mode=words)
        case name:
            known = tuple(one.name for one in request.tools if not isinstance(one, ServerTool))
            if name not in known:
                raise UnknownName("tool", name, known)
            return ToolChoice(mode="required", names=(name,))


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The required format of an answer."""

    kind: Literal["text", "json", "json_schema"] = "text"
    schema: JsonObject | None = None
    name: str = ""
    strict: bool | None = None
    kept: Kept | None = None


class Source:
    """The wire objects that the values of a decoded request came from, found by identity.

    Values are frozen and shared: one that is still the same object is unchanged, and its own
    format may write back what it read.
    """

    __slots__ = ("_decoded", "_wires", "body", "dialect")

    def __init__(self, dialect: str = "", body: JsonObject | None = None) -> None:
        self.dialect = dialect
        self.body: JsonObject = {} if body is None else body
        self._decoded: ModelRequest | None = None
        # The value is stored too: its id is unique only while it is alive.
        self._wires: dict[int, tuple[object, Any]] = {}

    def add(self, value: object, wire: Any) -> None:
        """Records what `value` was decoded from."""
        self._wires[id(value)] = (value, wire)

    def wire(self, value: object) -> Any:
        """What `value` was decoded from, or None for a value from elsewhere."""
        found = self._wires.get(id(value))
        return None if found is None else found[1]

    def add_all(self, other: "Source") -> None:
        """Records everything that `other` has."""
        self._wires.update(other._wires)

    def without(self, names: frozenset[str]) -> "Source":
        """The same without these members of the body."""
        body = {key: value for key, value in self.body.items() if key not in names}
        found = Source(self.dialect, body)
        found._decoded, found._wires = self._decoded, self._wires
        return found

    def record(self, request: "ModelRequest") -> None:
        """Records the members of the request as they were decoded."""
        # Without itself: a cycle would keep every decoded body until the next garbage collection.
        self._decoded = msgspec.structs.replace(request, source=NO_SOURCE)

    def unchanged(self, request: "ModelRequest", *names: str) -> bool:
        """Whether these members of the request are still the ones that were decoded."""
        known = self._decoded
        if known is None:
            return False
        for name in names:  # noqa: SIM110 - called for each member: a generator costs as much
            if getattr(known, name) is not getattr(request, name):
                return False
        return True

    def __eq__(self, other: object) -> bool:
        """Always equal: the source of a request is not part of its value."""
        return isinstance(other, Source)

    __hash__ = None  # type: ignore[assignment]


NO_SOURCE = Source()
"""The source of a request that was built, not decoded."""


class AttemptMeter:
    """Collects what the failed attempts at a request used, and which model answers."""

    __slots__ = ("failed", "model", "price", "reading")

    def __init__(self) -> None:
        self.failed: list[Usage | None] = []
        """For each attempt that failed or whose answer was not usable: what it used, if known."""
        self.reading: Callable[[], Usage | None] | None = None
        """Returns what the attempt in progress has used, as far as it is known."""

        self.model = ""
        """The model that the request went to, if it is not the one that it names."""
        self.price: Callable[[Usage], float | None] | None = None
        """US dollars of that model's answers."""

    def add(self, usage: "Usage | None") -> None:
        """Count the attempt in progress as failed."""
        self.failed.append(usage)
        self.reading = None

    def __eq__(self, other: object) -> bool:
        """Always equal: where a request is counted is not part of its value."""
        return other is None or isinstance(other, AttemptMeter)

    __hash__ = None  # type: ignore[assignment]


class AnswerTap:
    """Collects the bytes of an answer as its server sends them, beside its events."""

    __slots__ = ("decoded", "ending", "headers", "joined", "pending", "renamed", "stopped")

    def __init__(self) -> None:
        self.decoded: Callable[[], None] | None = None
        """Called after bytes without an event were read."""
        self.renamed = False
        """Whether tools have other names in the answer than the caller gave them."""
        self.stopped = False
        self.headers: Mapping[str, str] = {}
        """Of the answer; names in lower case."""
        self.pending: list[bytes] = []
        self.ending = False
        """Whether what is pending contains the end of the answer."""
        self.joined = 0
        """Text events that were joined to the ones before them."""

    def begin(self, headers: Mapping[str, str]) -> None:
        """Starts a new attempt; what a failed one sent is dropped."""
        self.headers = headers
        self.pending = []
        self.ending = False

    def add(self, data: bytes) -> None:
        """Takes a piece of the answer."""
        if not self.stopped:
            self.pending.append(data)

    def stop(self) -> None:
        """Collects nothing more."""
        self.stopped, self.decoded = True, None
        self.pending.clear()

    def take(self) -> bytes:
        """What has arrived since the last call."""
        data = b"".join(self.pending)
        self.pending.clear()
        return data

    def __eq__(self, other: object) -> bool:
        """Always equal: who reads along is not part of a request's value."""
        return other is None or isinstance(other, AnswerTap)

    __hash__ = None  # type: ignore[assignment]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A complete request to a model."""

    model: str
    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    """Instructions outside the conversation. Formats that keep them in the list use system
    messages.
    """
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    reasoning: Reasoning | None = None
    output: OutputFormat | None = None
    stream: bool | None = None
    previous_response_id: str = ""
    betas: tuple[str, ...] = ()
    """Anthropic: features that the client requested in the header `anthropic-beta`."""
    traceparent: str = ""
    """The position in a trace, sent as a header; empty to send none."""
    kept: Kept | None = None
    """Members of the body that no field carries; set on every decoded request."""
    source: Source = NO_SOURCE
    meter: AttemptMeter | None = None
    tap: AnswerTap | None = None


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request without address and credentials."""

    path: str
    """Relative to the provider's base address."""
    body: bytes
    method: str = "POST"
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
