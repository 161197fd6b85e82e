"""Exit codes, as scripts rely on them."""

from toolwire.agent.events import TurnEnd, TurnEnded
from toolwire.errors import BadInput, ErrorKind, ModelMissing, ToolwireError, UnknownName

DONE = 0
FAILED = 1
USAGE = 2
CREDENTIALS = 41
INPUT = 42
LIMIT = 53
LOOP = 54
CANCELLED = 130

_OF_END = {
    TurnEnd.DONE: DONE,
    TurnEnd.TURN_LIMIT: LIMIT,
    TurnEnd.TOKEN_LIMIT: LIMIT,
    TurnEnd.COST_LIMIT: LIMIT,
    TurnEnd.TIME_LIMIT: LIMIT,
    TurnEnd.LOOP: LOOP,
    TurnEnd.CANCELLED: CANCELLED,
}


def code_of(ended: TurnEnded) -> int:
    """The code for a turn's end."""
    if ended.reason is TurnEnd.FAILED and ended.error == ErrorKind.AUTH:
        return CREDENTIALS
    return _OF_END.get(ended.reason, FAILED)


def code_of_error(error: ToolwireError) -> int:
    """The code for an error before or outside a turn."""
    if error.kind == ErrorKind.AUTH or isinstance(error, ModelMissing):
        return CREDENTIALS
    return INPUT if isinstance(error, BadInput | UnknownName) else FAILED
