"""Result of one prompt, and the error of a failed one."""

import msgspec

from toolwire.agent.events import AgentEvent, MessageAdded, ToolFinished, TurnEnd, TurnEnded
from toolwire.errors import ToolwireError
from toolwire.events import Usage
from toolwire.messages import Message


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How the work on one prompt ended."""

    text: str
    """The model's final text."""
    stop: TurnEnd
    detail: str = ""
    """Why it stopped, as text; empty when it is done."""
    calls: tuple[ToolFinished, ...] = ()
    """Every call that was made, with arguments, decision and result, in the order they ended."""
    messages: tuple[Message, ...] = ()
    """The whole conversation, as the next request sends it."""
    requests: int = 0
    usage: Usage = Usage()
    """Summed over all requests."""
    cost: float | None = None
    """US dollars; None where no price is known."""
    session: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model finished: no limit, refusal or cut."""
        return self.stop is TurnEnd.DONE


class TurnFailed(ToolwireError):
    """The work on a prompt failed: the vendor, the connection or the session. `result` contains
    everything up to then; the conversation can continue.
    """

    def __init__(self, ended: TurnEnded, result: Result) -> None:
        super().__init__(ended.detail)
        self.kind = ended.error or "turn_failed"
        self.result = result


class Gathering:
    """Builds the result of one turn from its events."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: list[ToolFinished] = []

    def add(self, event: AgentEvent) -> None:
        """Adds one event."""
        match event:
            # Acknowledgements on the model's behalf are context, not its answer.
            case MessageAdded(context=False) if event.message.role == "assistant":
                self._text = event.message.text
            case ToolFinished():
                self._calls.append(event)
            case _:
                pass

    def result(self, ended: TurnEnded, messages: tuple[Message, ...], session: str) -> Result:
        """Returns the result."""
        return Result(
            text=self._text,
            stop=ended.reason,
            detail=ended.detail,
            calls=tuple(self._calls),
            messages=messages,
            requests=ended.requests,
            usage=ended.usage,
            cost=ended.cost,
            session=session,
        )
