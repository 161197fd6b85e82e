"""Who says yes in an evaluation: to what stays in the task's own folder, and to nothing else."""

import re
from pathlib import Path

from toolwire.agent.questions import (
    Approver,
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    UserAnswer,
)

_FAR = re.compile(
    r"\.\.|~|\$|`|\b(sudo|curl|wget|ssh|scp|pip|npm|apt|kill|pkill|shutdown|dd|mkfs|chown)\b"
)
_ABSOLUTE = re.compile(r"(?<![\w.<>*/])/[\w.-]*")


def approver(folder: Path) -> Approver:
    """A stand-in for a person who watches one folder."""

    async def approve(question: Confirmation) -> UserAnswer:
        choice = Choice.ONCE if harmless(question, folder) else Choice.CANCEL
        return UserAnswer(choice=choice)

    return approve


def harmless(question: Confirmation, folder: Path) -> bool:
    """Whether the call can change nothing outside the folder, as far as its text tells."""
    details = question.details
    if isinstance(details, EditDetails):
        return all(path.is_relative_to(folder) for path in details.paths)
    if not isinstance(details, ExecDetails):
        return False
    command = details.command.replace(f"{folder}/", "").replace(str(folder), ".")
    return _FAR.search(command) is None and _ABSOLUTE.search(command) is None
