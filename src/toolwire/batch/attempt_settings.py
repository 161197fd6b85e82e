"""What all attempts of a host have in common."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolwire.batch.commands import Commands
from toolwire.batch.spec import BatchSpec
from toolwire.batch.workspaces import Workplace, Workspaces
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.providers.custom import Upstream


class AttemptSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What all attempts of a host share."""

    out: Path
    spec: BatchSpec
    settings: Settings
    environ: Mapping[str, str]
    transport: Transport
    upstream: Upstream | None
    workspaces: Workspaces
    commands: Commands
    host: str
    hidden: tuple[Path, ...] = ()
    """What belongs to the batch and not to a task."""

    def environ_of(self, place: Workplace) -> Mapping[str, str]:
        """The environment of a workspace: a repository around the batch is not its own."""
        if self.spec.sandbox == "none":
            return self.environ
        return {**self.environ, "GIT_CEILING_DIRECTORIES": str(Path(place.root).parent)}
