"""The check of an attempt, and the artefacts that are kept of it."""

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

from toolwire.batch.commands import Commands, CommandWorkspace
from toolwire.batch.failures import AttemptFailed
from toolwire.batch.results import CheckOutcome
from toolwire.batch.tasks import Check
from toolwire.batch.workspace_files import copy_in, safe_parent, write_files


async def run_check(
    check: Check, commands: Commands, within: CommandWorkspace, root: Path, log: Path
) -> tuple[CheckOutcome, float]:
    """Puts the files of a check in and runs it; returns how it ended, and the score."""
    write_files(root, check.files)
    if check.copy:
        await asyncio.to_thread(copy_in, root, check.copy)
    if check.reward:
        safe_parent(root, check.reward).unlink(missing_ok=True)
    ran = await commands.run(check.command, within, seconds=check.timeout, log=log)
    outcome = CheckOutcome(code=ran.code, seconds=round(ran.seconds, 3))
    if not check.reward:
        return outcome, 0.0 if ran.code else 1.0
    try:
        return outcome, float((root / check.reward).read_text().strip())
    except (OSError, ValueError) as error:
        words = f"no number in {check.reward}: {error}"
        raise AttemptFailed("reward", words, "check") from error


def keep_artefacts(root: Path, patterns: Iterable[str], target: Path) -> None:
    """Copies files of a workspace; links that lead out of it are left out."""
    for pattern in patterns:
        for path in root.glob(pattern):
            if path.is_symlink() or not path.resolve().is_relative_to(root.resolve()):
                continue
            kept = target / path.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, kept, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(path, kept)
