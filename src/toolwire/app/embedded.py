"""Models on this machine: a running server, or the embedded model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.app.model_choice import Chosen
from toolwire.app.toolbox import workspace_of
from toolwire.client.http.transport import Transport
from toolwire.compaction.tokens import of_message
from toolwire.config import Settings
from toolwire.errors import ErrorKind, ProviderError
from toolwire.ids import new_id
from toolwire.messages import Message, Part, Text, ToolResult
from toolwire.model import Model
from toolwire.policy.rules import Mode
from toolwire.storage.paths import places

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent


async def choose_here(
    choose: Callable[[], Chosen],
    settings: Settings,
    environ: Mapping[str, str],
    transport: Transport,
    *,
    look: bool = True,
) -> Chosen:
    """Returns the configured model, else one of a running server, else the embedded one.

    `look` says whether to probe for servers.
    """
    try:
        return choose()
    except ProviderError as error:
        if error.kind != ErrorKind.AUTH:
            raise
    from toolwire.embedded.found import find  # noqa: PLC0415 - start-up time
    from toolwire.embedded.machine import fitting, machine  # noqa: PLC0415 - start-up time

    found = await find(transport, environ) if look else None
    if found is not None:
        reason = f"nothing is configured, and {found.title} runs on this machine"
        return Chosen(name=found.name, reason=reason, settings=settings)
    weights = fitting(machine())
    seen = "no model server runs on this machine" if look else "servers were not probed"
    reason = f"nothing is configured, and {seen}"
    return Chosen(name=f"local/{weights.model}", reason=reason, settings=settings)


async def embedded_transport(
    model: str,
    environ: Mapping[str, str],
    transport: Transport,
    consent: DownloadConsent | None,
    notice: Callable[[str], None],
) -> Transport:
    """Returns the embedded model, its file in place; loaded on the first request."""
    from toolwire.embedded import catalogue  # noqa: PLC0415 - start-up time
    from toolwire.embedded.engine import EmbeddedTransport  # noqa: PLC0415 - start-up time
    from toolwire.embedded.weights import DownloadConsent, WeightStore  # noqa: PLC0415 - start-up time

    store = WeightStore.of(
        places(environ), environ, transport, consent or DownloadConsent(), notice
    )
    way = EmbeddedTransport(catalogue.find(model), store, transport)
    await way.prepare()
    return way


def shown_small(ask: Model, cwd: Path, environ: Mapping[str, str]) -> Model:
    """Wraps the model: short tool forms, and the folder's files as choices."""
    from toolwire.embedded.small import style  # noqa: PLC0415 - start-up time
    from toolwire.embedded.small.style import known_files  # noqa: PLC0415 - start-up time

    workspace = workspace_of(cwd, environ)
    return style.wrap(ask, new_id, lambda: known_files(workspace, environ))


def tokens_shown_small(message: Message) -> int:
    """Returns a message's tokens for a small model, which gets only the ends of long results."""
    from toolwire.embedded.small.past import RESULT_LIMIT  # noqa: PLC0415 - start-up time

    def cut(part: Part) -> Part:
        if not isinstance(part, ToolResult) or len(part.text) <= RESULT_LIMIT:
            return part
        return msgspec.structs.replace(part, parts=(Text(part.text[:RESULT_LIMIT]),))

    return of_message(Message(role=message.role, parts=tuple(map(cut, message.parts))))


def cautious(mode: Mode, notice: Callable[[str], None]) -> Mode:
    """Returns the approval mode for a small model, which easily confuses files."""
    if mode in (Mode.DEFAULT, Mode.PLAN):
        return mode
    notice(
        f"the embedded model asks before every change, also in {mode} mode; what --allowed-tools "
        "names runs without asking"
    )
    return Mode.DEFAULT
