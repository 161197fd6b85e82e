"""How a call's commands are confined: by its ruling, or else by the settings."""

import asyncio
from typing import TYPE_CHECKING

from toolwire.tools.spec import ToolContext, ToolFailed

if TYPE_CHECKING:
    from toolwire.tools.shell.processes import Confined


async def confined_by(context: ToolContext) -> "Confined | None":
    """The confinement of a command; None if it runs in the open."""
    spec = context.permit.sandbox if context.permit is not None else context.sandbox
    if spec.level == "off":
        return None
    from toolwire.tools.shell.sandbox.session import sandbox_of  # noqa: PLC0415 - only when it is on

    sandbox = sandbox_of(context.owner)
    try:
        return await asyncio.to_thread(sandbox.confined, spec, context.workspace, context.environ)
    except OSError as error:
        raise ToolFailed(
            f"the sandbox cannot be made: {error}; the user may turn it off with --sandbox off",
            type="shell_execute_error",
        ) from error
