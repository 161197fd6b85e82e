"""Result of one prompt, and the error of a failed one."""

from typing import TYPE_CHECKING, Generic, TypeVar, cast

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    Noticed,
    ToolFinished,
    TurnEnd,
    TurnEnded,
)
from toolwire.errors import ToolwireError
from toolwire.events import Usage
from toolwire.messages import Loss, Message

if TYPE_CHECKING:
    # Python 3.11 has neither at run time: a bare `Agent` has text as its output.
    from typing_extensions import TypeForm as TypeForm
    from typing_extensions import TypeVar as DefaultTypeVar

    Output = DefaultTypeVar("Output", default=str)
else:
    Output = TypeVar("Output")
    TypeForm = type


class NoOutput(ToolwireError):
    """The run ended before the model gave its output; `stop` of the result says why."""

    kind = "no_output"


class Result(msgspec.Struct, Generic[Output], frozen=True, kw_only=True):
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
    losses: tuple[Loss, ...] = ()
    """What the provider cannot take of the conversation and the model settings."""
    outputs: tuple[Output, ...] = ()
    """The output, if there is one: empty when the run ended early."""

    @property
    def ok(self) -> bool:
        """Whether the model finished: no limit, refusal or cut."""
        return self.stop is TurnEnd.DONE

    @property
    def output(self) -> Output:
        """The validated object, or the text without a type; NoOutput if the run ended early."""
        if not self.outputs:
            raise NoOutput(
                f"the run ended without an output ({self.stop}): {self.detail or 'check ok first'}"
            )
        return self.outputs[0]


class TurnFailed(ToolwireError):
    """The work on a prompt failed: the vendor, the connection or the session. `result` contains
    everything up to then; the conversation can continue.
    """

    def __init__(self, ended: TurnEnded, result: Result[object]) -> None:
        super().__init__(ended.detail)
        self.kind = ended.error or "turn_failed"
        self.result = result


class Gathering:
    """Builds the result of one turn from its events."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: list[ToolFinished] = []
        self._losses: list[Loss] = []

    def add(self, event: AgentEvent) -> None:
        """Adds one event."""
        match event:
            # Acknowledgements on the model's behalf are context, not its answer.
            case MessageAdded(context=False) if event.message.role == "assistant":
                self._text = event.message.text
            case ToolFinished():
                self._calls.append(event)
            case Noticed(loss=Loss() as loss):
                self._losses.append(loss)
            case _:
                pass

    def result(
        self, ended: TurnEnded, messages: tuple[Message, ...], session: str
    ) -> Result[object]:
        """Returns the result."""
        done = ended.reason is TurnEnd.DONE
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
            losses=tuple(self._losses),
            outputs=cast(tuple[object, ...], (self._text,)) if done else (),
        )
