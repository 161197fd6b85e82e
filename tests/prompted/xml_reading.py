"""Tools and shortcuts for the tests of the XML style."""

from collections.abc import Iterable
from itertools import count

import msgspec

from toolwire.collect import Collector
from toolwire.events import ModelEvent, Notice, TextDelta, ThinkingDelta, ToolCallDelta
from toolwire.messages import Message
from toolwire.prompted.xml.parser import XmlLimits, XmlParser
from toolwire.request import AnyTool, ToolSpec


def tool(name: str, required: Iterable[str] = (), **properties: object) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, parameters=schema)


STRING = {"type": "string"}
READ = tool("read_file", ["path"], path=STRING, lines={"type": "array", "items": STRING})
WRITE = tool(
    "write_to_file",
    ["path", "content"],
    path=STRING,
    content=STRING,
    line_count={"type": "integer"},
)
RUN = tool("execute_command", ["command"], command=STRING, cwd=STRING)
EDIT = tool("edit", path=STRING, old_string=STRING, new_string=STRING)
TOOLS = (READ, WRITE, RUN, EDIT)


class Read(msgspec.Struct):
    events: list[ModelEvent]
    message: Message
    notices: list[Notice]

    @property
    def said(self) -> list[object]:
        """Text and thinking as they are, calls as name and arguments."""
        found: list[object] = []
        for part in self.message.parts:
            call = getattr(part, "arguments", None)
            if call is None:
                found.append(getattr(part, "text", None))
            else:
                found.append((getattr(part, "name", ""), arguments(call)))
        return found


def arguments(text: str) -> object:
    return msgspec.json.decode(text)


def read(
    text: str | Iterable[str],
    tools: Iterable[AnyTool] = TOOLS,
    *,
    cut: bool = False,
    only: Iterable[str] | None = None,
    single: bool = False,
    limits: XmlLimits | None = None,
) -> Read:
    numbers = count(1)
    parser = XmlParser(tools, lambda: f"c{next(numbers)}", only=only, single=single, limits=limits)
    events: list[ModelEvent] = []
    for piece in [text] if isinstance(text, str) else text:
        events += parser.feed(piece)
    events += parser.close(cut=cut)
    collector = Collector()
    collector.add_all(events)
    return Read(joined(events), collector.message(), collector.notices)


def joined(events: Iterable[ModelEvent]) -> list[ModelEvent]:
    """Neighbouring deltas as one."""
    out: list[ModelEvent] = []
    for event in events:
        last = out[-1] if out else None
        match last, event:
            case (TextDelta(a), TextDelta(b)):
                out[-1] = TextDelta(a + b)
            case (ThinkingDelta(a), ThinkingDelta(b)):
                out[-1] = ThinkingDelta(a + b)
            case (ToolCallDelta(one, a), ToolCallDelta(two, b)) if one == two:
                out[-1] = ToolCallDelta(one, a + b)
            case _:
                out.append(event)
    return out
