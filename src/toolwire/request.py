"""Model requests: messages, tools and options, and losses of a conversion."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

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

    __slots__ = ("_values", "_wires", "body", "dialect")

    def __init__(self, dialect: str = "", body: JsonObject | None = None) -> None:
        self.dialect = dialect
        self.body: JsonObject = {} if body is None else body
        self._values: dict[str, object] = {}
        # The value is stored too: its id is unique only while it is alive.
        self._wires: dict[int, tuple[object, Any]] = {}

    def add(self, value: object, wire: Any) -> None:
        """Records what `value` was decoded from."""
        self._wires[id(value)] = (value, wire)

    def wire(self, value: object) -> Any:
        """What `value` was decoded from, or None for a value from elsewhere."""
        found = self._wires.get(id(value))
        return None if found is None else found[1]

    def record(self, request: "ModelRequest") -> None:
        """Records the members of the request as they were decoded."""
        self._values = {name: getattr(request, name) for name in request.__struct_fields__}

    def unchanged(self, request: "ModelRequest", *names: str) -> bool:
        """Whether these members of the request are still the ones that were decoded."""
        return all(self._values.get(name, self) is getattr(request, name) for name in names)

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
    kept: Kept | None = None
    """Members of the body that no field carries; set on every decoded request."""
    source: Source = NO_SOURCE
    meter: AttemptMeter | None = None


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request without address and credentials."""

    path: str
    """Relative to the provider's base address."""
    body: bytes
    method: str = "POST"
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
