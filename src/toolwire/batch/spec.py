"""The options of a batch as they are stored: never with a secret."""

import hashlib
import re
from pathlib import Path

import msgspec

from toolwire.batch.tasks import Selection, folder_name
from toolwire.batch.workspaces import SandboxKind
from toolwire.errors import BadInput
from toolwire.policy import Mode

FILE = "batch.json"
RESULTS = "results.jsonl"
TASKS = "tasks"


class BatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a batch is run; resumed with the same."""

    id: str
    """Labels everything that belongs to the batch."""
    tasks: str
    """The file of the tasks."""
    digest: str = ""
    """Of its contents."""
    folder: str = ""
    """Where it was started: whose settings apply."""
    selection: Selection = Selection()
    models: tuple[str, ...] = ("",)
    upstream: str = ""
    """Without its key."""
    keyed: bool = False
    """Whether the upstream had a key, which has to be given again."""
    attempts: int = 1
    jobs: int = 0
    """Sessions at once, in all; 0 for eight a core."""
    executor: str = "local"
    shared: bool = False
    """Whether the batch and its sessions are on the server of `sessions.store`."""
    budget: float = 0.0
    budget_tokens: int = 0
    budget_hard: bool = False
    max_turns: int = 0
    timeout: float = 0.0
    """Seconds of one attempt; 0 sets no limit."""
    sandbox: SandboxKind = ""
    image: str = ""
    approval_mode: Mode | None = None
    check: str = ""
    """Command for tasks without a check of their own."""
    retries: int = 3
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    keep: bool = False
    """Whether workspaces stay after the end."""
    about: dict[str, str] = {}
    """Versions and the commit of the folder."""

    def folder_of(self, out: Path, id: str, model: str, attempt: int) -> Path:
        """The folder of an attempt's results."""
        name = folder_name(id)
        if len(self.models) > 1:
            name += f"~{re.sub(r'[^A-Za-z0-9.-]', '_', model)}"
        if self.attempts > 1:
            name += f"~{attempt}"
        return out / TASKS / name


def digest_of(path: Path) -> str:
    """The digest of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def read_spec(out: Path) -> BatchSpec:
    """The options of the batch in this folder."""
    path = out / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=BatchSpec)
    except FileNotFoundError as error:
        raise BadInput(
            f"{out} is not the folder of a batch; start one with toolwire batch run"
        ) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error


def write_spec(out: Path, spec: BatchSpec) -> None:
    """Stores the options."""
    text = msgspec.json.format(msgspec.json.encode(spec), indent=2)
    draft = out / f"{FILE}.draft"
    draft.write_bytes(text + b"\n")
    draft.replace(out / FILE)
