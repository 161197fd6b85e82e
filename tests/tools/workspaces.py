"""A workspace in a test's own folder, and calls of tools in it."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from toolwire.tools.spec import Tool, ToolContext, ToolFailed, ToolOutput, Workspace


def context_in(folder: Path, **more: Any) -> ToolContext:
    """A context whose workspace is `folder/workspace`; outside of it lies `folder/outside`."""
    for name in ("workspace", "outside", "home", "temp"):
        (folder / name).mkdir(exist_ok=True)
    place = Workspace(roots=(folder / "workspace",), temp=folder / "temp", home=folder / "home")
    members: dict[str, Any] = {"workspace": place, **more}
    return ToolContext(**members)


def put(context: ToolContext, **files: str | bytes) -> Path:
    """Write files into the workspace (`a__b_py` is `a/b.py`); gives its root."""
    root = context.workspace.roots[0]
    for name, content in files.items():
        write(root / name.replace("__", "/").replace("_", "."), content)
    return root


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def git(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def call(tool: Tool, context: ToolContext, **arguments: Any) -> ToolOutput:
    """Run the tool as a scheduler does: its check first."""
    complaint = tool.check(arguments, context)
    if complaint:
        raise ToolFailed(complaint)

    async def run() -> ToolOutput:
        return await tool.run(arguments, context)

    return asyncio.run(run())


def refused(tool: Tool, context: ToolContext, **arguments: Any) -> str:
    """The words of a call that must fail."""
    try:
        output = call(tool, context, **arguments)
    except ToolFailed as error:
        return str(error)
    raise AssertionError(f"not refused: {output.text}")
