"""Results of attempts: states, and the lines of `results.jsonl`."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

LASTING_TYPES = (
    *("auth", "permission", "not_found", "bad_request", "quota", "model_missing", "bad_input"),
    *("unknown_name", "setup", "memory", "folder", "commit", "kind", "subfolder", "workspace_lost"),
)
"""Errors that another try would only repeat."""


class State(StrEnum):
    """Where an attempt is, or how it ended."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    """The check said no."""
    FINISHED = "finished"
    """Without a check."""
    LIMIT = "limit"
    REFUSED = "refused"
    ERROR = "error"
    """Ours or the machine's: never counted as a failure of the model."""
    STOPPED = "stopped"

    @property
    def is_final(self) -> bool:
        """Whether nothing more is done by itself."""
        return self not in (State.WAITING, State.RUNNING, State.STOPPED)


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the check ended."""

    code: int
    seconds: float


class PatchInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the attempt changed."""

    files: int
    added: int
    removed: int
    path: str
    """Relative to the batch's folder."""


class TokenCount(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of an attempt."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0


class Seconds(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of an attempt went."""

    total: float = 0.0
    model: float = 0.0
    tools: float = 0.0
    wait: float = 0.0
    """For shared limits and retries."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt is in the state `error`."""

    type: str
    message: str
    where: str
    """`workspace`, `setup`, `session`, `provider`, `sandbox`, `check`, `patch` or `host`."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `results.jsonl`."""

    id: str
    model: str = ""
    attempt: int = 1
    state: State
    stop: str = ""
    """How the agent's turn ended."""
    score: float | None = None
    check: CheckOutcome | None = None
    response: str = ""
    session: str = ""
    patch: PatchInfo | None = None
    usage: TokenCount = TokenCount()
    cost: float | None = None
    requests: int = 0
    calls: int = 0
    unknown: int = 0
    """Calls whose outcome is unknown because their host died."""
    seconds: Seconds = Seconds()
    tries: int = 1
    host: str = ""
    error: Failure | None = None
    tags: tuple[str, ...] = ()
    meta: Any = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies an attempt in a batch."""
        return self.id, self.model, self.attempt

    @property
    def is_graded(self) -> bool:
        """Whether it counts as passed or not."""
        return self.score is not None and self.state is not State.ERROR


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Result)


def encode(result: Result) -> bytes:
    """The line, without its newline."""
    return _encoder.encode(result)


def decode(line: bytes) -> Result:
    """The result of a line."""
    return _decoder.decode(line)


def latest(results: Iterable[Result]) -> list[Result]:
    """The last result of each attempt, in the order of their first."""
    found: dict[tuple[str, str, int], Result] = {}
    for result in results:
        found[result.key] = result
    return list(found.values())


def read_lines(path: Path) -> Iterator[Result]:
    """The results of a file; a last line that was cut by a crash is skipped."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                yield decode(line)
            except msgspec.MsgspecError:
                continue
