"""The steps of a plan: their kinds, the form in which a model writes them, their commands."""

from enum import StrEnum
from shlex import quote
from typing import Any

import msgspec

from toolwire.embedded.small.tools import KnownFiles
from toolwire.prompted.json import closed_object
from toolwire.request import JsonObject

LONGEST_WHAT = 160


class StepKind(StrEnum):
    """What a step does."""

    SUBSTITUTE = "substitute"
    EDIT = "edit"
    CREATE = "create"
    DELETE = "delete"
    MOVE = "move"
    COPY = "copy"
    FOLDER = "folder"
    RUN = "run"
    LOOK = "look"
    READ = "read"
    OTHER = "other"
    """Something that only a tool from elsewhere can do."""


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a plan."""

    do: StepKind
    path: str = ""
    to: str = ""
    old: str = ""
    new: str = ""
    what: str = ""
    command: str = ""


class _Plan(msgspec.Struct):
    steps: list[PlanStep]


read_plan = msgspec.json.Decoder(_Plan).decode


def plan_schema(project: KnownFiles, *, look: bool, other: bool) -> JsonObject:
    """The form of a plan: files that exist are choices."""
    file: JsonObject = {"type": "string", "maxLength": 120}
    if project.files and not project.more:
        file = {"type": "string", "enum": list(project.files)}
    path: JsonObject = {"type": "string", "maxLength": 120}
    words: JsonObject = {"type": "string", "maxLength": LONGEST_WHAT}
    forms: list[JsonObject] = [
        _form(StepKind.CREATE, path=path, what=words),
        _form(StepKind.FOLDER, path=path),
        _form(StepKind.RUN, command=words),
    ]
    if project.files:
        forms += [
            _form(StepKind.READ, path=file),
            _form(StepKind.SUBSTITUTE, old=words, new=words, path=file),
            _form(StepKind.EDIT, path=file, what=words),
            _form(StepKind.DELETE, path=path),
            _form(StepKind.MOVE, path=path, to=path),
            _form(StepKind.COPY, path=path, to=path),
        ]
        if look:
            forms.append(_form(StepKind.LOOK, what=words))
    if other:
        forms.append(_form(StepKind.OTHER, what=words))
    steps: JsonObject = {"type": "array", "items": {"anyOf": forms}, "minItems": 1, "maxItems": 6}
    return closed_object({"steps": steps})


def _form(kind: StepKind, **members: Any) -> JsonObject:
    return closed_object({"do": {"const": kind.value}, **members})


def command_for(step: PlanStep) -> str:
    """The shell command of a step; never one that overwrites."""
    path, to = quote(step.path), quote(step.to)
    folder = step.to.rpartition("/")[0]
    made = f"mkdir -p {quote(folder)} && " if folder else ""
    match step.do:
        case StepKind.DELETE:
            return f"rm -r -- {path}"
        case StepKind.MOVE:
            return f"{made}mv -n -- {path} {to}"
        case StepKind.COPY:
            return f"{made}cp -n -r -- {path} {to}"
        case StepKind.FOLDER:
            return f"mkdir -p -- {path}"
        case _:
            return step.command
