"""Errors that end an attempt in the state `error`, and what a result says of them."""

from toolwire.batch.commands import SandboxDied
from toolwire.batch.results import Failure
from toolwire.batch.workspaces import WorkspaceFailed
from toolwire.client.redact import without_secrets
from toolwire.errors import BadInput, ModelMissing, ToolwireError, UnknownName

_LONGEST = 2000


class AttemptFailed(ToolwireError):
    """An attempt that ends in the state `error`."""

    def __init__(self, type: str, message: str, where: str) -> None:
        super().__init__(message)
        self.kind = type
        self.where = where


def failure_of(error: Exception) -> Failure:
    """What the result of an attempt says of an error, without secrets."""
    kind = error.kind if isinstance(error, ToolwireError) else type(error).__name__
    message = without_secrets(str(error))[:_LONGEST]
    return Failure(type=kind, message=message, where=_where(error))


def _where(error: Exception) -> str:
    match error:
        case AttemptFailed():
            return error.where
        case WorkspaceFailed():
            return "workspace"
        case SandboxDied():
            return "sandbox"
        case BadInput() | UnknownName() | ModelMissing():
            return "provider"
        case ToolwireError():
            return "session"
        case _:
            return "host"
