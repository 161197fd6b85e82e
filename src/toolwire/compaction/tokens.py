"""Token estimates of requests, calibrated by the vendor's last count."""

import operator
import re
from collections.abc import Callable
from itertools import takewhile

import msgspec

from toolwire.events import Usage
from toolwire.messages import (
    Kept,
    Media,
    MediaKind,
    Message,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import AnyTool, ModelRequest, ServerTool, ToolSpec

# Four ASCII characters, or 3.6 bytes of anything else, are about a token; in 36ths they stay whole.
_ASCII = 9
_OTHER = 10
_TOKEN = 36
_PER_MESSAGE = 4
_PER_PART = 3
_MEDIA = 1_500
"""An image of usual size, and the least that any other media cost."""
_BYTES_PER_TOKEN = {MediaKind.DOCUMENT: 25, MediaKind.AUDIO: 400, MediaKind.VIDEO: 400}
_SMALLEST_SCALE = 0.5
_LARGEST_SCALE = 3.0


def of_text(text: str) -> int:
    """Tokens of a text."""
    if text.isascii():
        return (_ASCII * len(text) + _TOKEN - 1) // _TOKEN
    ascii_count = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "surrogatepass")) - ascii_count
    return (_ASCII * ascii_count + _OTHER * other_bytes + _TOKEN - 1) // _TOKEN


def of_part(part: Part) -> int:
    """Tokens of one part, its vendor state included."""
    match part:
        case Text():
            tokens = of_text(part.text)
            if part.citations or part.seal is not None or part.kept is not None:
                tokens += sum(of_text(citation.data) for citation in part.citations)
                tokens += _carried(part.seal, part.kept)
        case Thinking() | Refusal():
            tokens = of_text(part.text) + _carried(part.seal, part.kept)
        case Media():
            tokens = _of_media(part) + _carried(part.seal, part.kept)
        case ToolCall():
            tokens = of_text(part.name) + of_text(part.id) + of_text(part.arguments)
            tokens += _carried(part.seal, part.kept)
        case ToolResult():
            tokens = of_text(part.name) + of_text(part.call_id) + _carried(None, part.kept)
            tokens += sum(map(of_part, part.parts))
        case ServerBlock():
            tokens = of_text(part.data)
    return tokens + _PER_PART


def of_message(message: Message) -> int:
    """Tokens of one message."""
    return _PER_MESSAGE + _carried(None, message.kept) + sum(map(of_part, message.parts))


def of_tools(tools: tuple[AnyTool, ...]) -> int:
    """Tokens of the tools a request offers."""
    return sum(of_text(_declared(tool)) + _PER_PART for tool in tools)


def _declared(tool: AnyTool) -> str:
    if isinstance(tool, ServerTool):
        return tool.data
    if isinstance(tool, ToolSpec):
        return tool.name + tool.description + msgspec.json.encode(tool.parameters).decode()
    return tool.name + tool.description + tool.grammar


def _carried(seal: Seal | None, kept: Kept | None) -> int:
    carried = 0 if seal is None else of_text(seal.data)
    return carried if kept is None or kept.fields == "{}" else carried + of_text(kept.fields)


def _of_media(media: Media) -> int:
    size = len(media.base64) * 3 // 4
    if media.mime.startswith("text/"):
        return size // 4
    per_token = _BYTES_PER_TOKEN.get(media.kind)
    return _MEDIA if per_token is None else max(_MEDIA, size // per_token)


class _Anchor(msgspec.Struct, frozen=True):
    """A request whose tokens the vendor counted."""

    messages: int
    estimate: int
    counted: int


class Tally:
    """Sizes of a conversation as it grows; each message is estimated once."""

    def __init__(self, weigh: Callable[[Message], int] = of_message) -> None:
        self._weigh = weigh
        self._messages: tuple[Message, ...] = ()
        self._sums: list[int] = [0]
        """Tokens of the first n messages."""
        self._head: tuple[tuple[Text, ...], tuple[AnyTool, ...]] = ((), ())
        self._head_size = 0
        self._anchor: _Anchor | None = None
        self.scale = 1.0
        """Counted tokens for each estimated one, within bounds: vendors add text of their own."""

    def size(self, request: ModelRequest) -> int:
        """Tokens of the request: the last count, and an estimate of what was added since."""
        estimate = self.estimate(request)
        anchor = self._anchor
        if anchor is None:
            return int(estimate * self.scale)
        return max(0, anchor.counted + int((estimate - anchor.estimate) * self.scale))

    def estimate(self, request: ModelRequest) -> int:
        """Tokens of the request by the estimate alone."""
        self._follow(request.messages)
        return self.head(request) + self._sums[-1]

    def head(self, request: ModelRequest) -> int:
        """Estimated tokens of what precedes the messages: instructions and tools."""
        system, tools = self._head
        if request.system is not system or request.tools is not tools:
            self._head = (request.system, request.tools)
            self._head_size = sum(map(of_part, request.system)) + of_tools(request.tools)
        return self._head_size

    def counted(self, request: ModelRequest, usage: Usage) -> None:
        """Record the vendor's count for a request; no count is ignored."""
        if usage.total_input > 0:
            self.anchor(request, usage.total_input)

    def anchor(self, request: ModelRequest, counted: int) -> None:
        """Take `counted` as the true size of the request."""
        estimate = self.estimate(request)
        self._anchor = _Anchor(len(request.messages), estimate, counted)
        self.scale = min(max(counted / max(estimate, 1), _SMALLEST_SCALE), _LARGEST_SCALE)

    def _follow(self, messages: tuple[Message, ...]) -> None:
        known = len(self._messages)
        # Equal tuples are compared by the identity of their members, which costs little.
        if messages[:known] != self._messages:
            same = map(operator.eq, self._messages, messages)
            known = sum(1 for _ in takewhile(bool, same))
            del self._sums[known + 1 :]
        if self._anchor is not None and self._anchor.messages > known:
            self._anchor = None
        for message in messages[known:]:
            self._sums.append(self._sums[-1] + self._weigh(message))
        self._messages = messages


_NUMBER = r"(\d[\d,_.]*\d|\d)"
_WINDOW = (
    rf"\d(?: tokens)? > {_NUMBER}",
    rf"maximum number of (?:input )?tokens allowed \(?{_NUMBER}",
    rf"(?:context|prompt) (?:length|window|size|limit)(?: is| of)? \(?{_NUMBER}",
    rf"with {_NUMBER} maximum context",
    rf'"n_ctx"\s*:\s*{_NUMBER}',
)
_REQUESTED = (
    rf"\({_NUMBER} in (?:the messages|your prompt)",
    rf"contains (?:at least )?{_NUMBER} (?:input )?tokens",
    rf"(?:too long|limit): {_NUMBER}(?: tokens)? [>+]",
    rf"input token count \(?{_NUMBER}\)? exceeds",
    rf"(?:resulted in|requested(?: about)?) {_NUMBER} tokens",
    rf"(?:prompt|requested) tokens \({_NUMBER}\) exceed",
    rf'"n_prompt_tokens"\s*:\s*{_NUMBER}',
)
_SMALLEST = 256
_LARGEST = 100_000_000


class RefusedSize(msgspec.Struct, frozen=True):
    """The figures in a refusal; 0 where it names none."""

    window: int = 0
    requested: int = 0


def read_refusal(words: str) -> RefusedSize:
    """The limit and the request size named in a refusal."""
    return RefusedSize(_first(_WINDOW, words), _first(_REQUESTED, words))


def _first(patterns: tuple[str, ...], words: str) -> int:
    for pattern in patterns:
        # Read when they are needed: few sessions ever meet such a refusal.
        for found in re.finditer(pattern, words, re.IGNORECASE):
            number = int(re.sub(r"\D", "", found.group(1)))
            if _SMALLEST <= number <= _LARGEST:
                return number
    return 0
