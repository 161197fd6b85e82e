"""The stand-in for the user: approves what stays in the task's folder, or nothing at all."""

import re
from pathlib import Path

import msgspec

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
_SUBSTITUTION = re.compile(r"(['\"])s([#|/,@]).*?\2.*?\2[gi]*\1")
"""Text for `sed` to exchange, which may look like a path."""
_ABSOLUTE = re.compile(r"(?<![\w.<>*/])/[\w.-]*")


def approver(folder: Path, *, denies: bool = False) -> Approver:
    """Answers once, or with no, to what leaves the folder and to all if it denies."""

    async def approve(question: Confirmation) -> UserAnswer:
        allowed = not denies and harmless(question, folder)
        return UserAnswer(choice=Choice.ONCE if allowed else Choice.CANCEL)

    return approve


def harmless(question: Confirmation, folder: Path) -> bool:
    """Whether the call can change nothing outside the folder, as far as its text tells."""
    details = question.details
    if question.call.name == "read_file":
        # A file that the policy asks about, such as one with secrets.
        path = str(msgspec.json.decode(question.call.arguments).get("absolute_path", ""))
        return Path(path).is_relative_to(folder) and ".." not in path
    if isinstance(details, EditDetails):
        return all(path.is_relative_to(folder) for path in details.paths)
    if not isinstance(details, ExecDetails):
        return False
    command = details.command.replace(f"{folder}/", "").replace(str(folder), ".")
    command = _SUBSTITUTION.sub("", command).replace("$?", "")
    return _FAR.search(command) is None and _ABSOLUTE.search(command) is None
