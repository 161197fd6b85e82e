"""What the terminal app is started with."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.app.options import SessionOptions
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.tui.early_prompt import EarlyPrompt

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What the app is started with."""

    options: SessionOptions
    settings: Settings
    cwd: Path
    environ: Mapping[str, str]
    transport: Callable[[AsyncExitStack], Transport]
    consent: "Callable[[Callable[[str], Awaitable[bool]]], DownloadConsent]"
    prompt: str = ""
    attached: tuple[Path, ...] = ()
    """Files for the first message."""
    chooses: bool = False
    """Whether the user chooses a session of the folder first."""
    verbose: bool = False
    version: str = ""
    early: EarlyPrompt | None = None
    """The prompt that is on the terminal already."""
