"""Skills: folders with a SKILL.md, read in three steps: description, instructions, files."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from toolwire.agent.hooks import Ask, HookedCall, HookedResult, Hooks
from toolwire.context.surroundings import folder_tree
from toolwire.errors import BadInput, UnknownName
from toolwire.extensions.front_matter import Value, split_front, text_of
from toolwire.request import JsonObject
from toolwire.storage.private_files import ApprovalStore
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput, Workspace

FILE = "SKILL.md"
TOOL = "activate_skill"
SHARE = 0.02
"""Part of the model's window that descriptions may take."""
_USUAL_WINDOW = 128_000
_CHARACTERS = 4
"""Of a token, about."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_ABOUT = 64, 1024
_LARGEST = 1 << 20
_MOST = 500
"""Skills of one folder that are read."""


class SkillFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder whose folders are skills."""

    path: Path
    origin: str
    project: bool = False


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a skill before it is activated."""

    name: str
    description: str
    folder: Path
    origin: str
    project: bool = False
    allowed_tools: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = {}

    @property
    def file(self) -> Path:
        """Its instructions."""
        return self.folder / FILE

    @property
    def digest(self) -> str:
        """What an approval is bound to: the content of its SKILL.md."""
        return hashlib.sha256(_content(self.folder)).hexdigest()

    @property
    def key(self) -> str:
        """Under which its approval is stored."""
        return f"skill:{self.name}"

    def body(self) -> str:
        """The instructions, as they are now."""
        return split_front(_decoded(_content(self.folder)))[1].strip()


def read_skills(
    folders: Iterable[SkillFolder], exclude: Iterable[str] = ()
) -> tuple[dict[str, Skill], list[str]]:
    """The skills by name, and a line about each that is not used or not as it should be.

    The first of a name wins.
    """
    found: dict[str, Skill] = {}
    problems: list[str] = []
    left_out = set(exclude)
    for folder in folders:
        for path in _entries(folder):
            try:
                skill, warnings = _read(path, folder)
            except (OSError, ValueError) as error:
                problems.append(f"the skill {path} is not used: {error}")
                continue
            problems += [f"the skill {path}: {words}" for words in warnings]
            if skill.name in left_out:
                continue
            if skill.name in found:
                other = found[skill.name].folder
                problems.append(f"the skill {path} is not used: {other} has the same name")
                continue
            found[skill.name] = skill
    return found, problems


def _entries(folder: SkillFolder) -> list[Path]:
    """Folders with a SKILL.md; those of a project only if no link leads out of it."""
    try:
        listed = sorted(path for path in folder.path.iterdir() if path.is_dir())[:_MOST]
    except OSError:
        return []
    found = [path for path in listed if (path / FILE).exists() or (path / FILE).is_symlink()]
    if not folder.project:
        return found
    inside = folder.path.resolve()
    return [path for path in found if path.resolve().is_relative_to(inside)]


def _read(path: Path, folder: SkillFolder) -> tuple[Skill, list[str]]:
    members, _ = split_front(_decoded(_content(path)))
    if members is None:
        raise ValueError(f"{FILE} has no front matter with name and description")
    name, about = text_of(members, "name"), " ".join(text_of(members, "description").split())
    if not about:
        raise ValueError("its front matter has no description")
    warnings: list[str] = []
    name = name or path.name
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ValueError("its name must be 1 to 64 of a-z, 0-9 and single hyphens")
    if name != path.name:
        warnings.append(f"its name is {name}, not that of its folder")
    if len(about) > _LONGEST_ABOUT:
        warnings.append(f"its description has more than {_LONGEST_ABOUT:,} characters and is cut")
    return (
        Skill(
            name=name,
            description=about[:_LONGEST_ABOUT],
            folder=path.resolve(),
            origin=folder.origin,
            project=folder.project,
            allowed_tools=text_of(members, "allowed-tools"),
            license=text_of(members, "license"),
            compatibility=text_of(members, "compatibility"),
            metadata=_table(members.get("metadata")),
        ),
        warnings,
    )


def _table(value: Value | None) -> dict[str, str]:
    return value if isinstance(value, dict) else {}


def _content(folder: Path) -> bytes:
    """The bytes of SKILL.md; ValueError if a link leads out of its folder."""
    path, base = os.path.realpath(folder / FILE), os.path.realpath(folder)
    if not path.startswith(base + os.sep):
        raise ValueError(f"its {FILE} is a link that leads out of its folder")
    with open(path, "rb") as file:  # noqa: PTH123 - a name
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"its {FILE} has more than 1 MB")
    return data


def _decoded(data: bytes) -> str:
    return data.decode("utf-8-sig")


_HEAD = """\
# Available Agent Skills

You have access to the following specialized skills. To activate a skill and receive its detailed \
instructions, you can call the `activate_skill` tool with the skill's name.

<available_skills>
"""


_TAIL = "</available_skills>"


def prompt_section(skills: Sequence[Skill], window: int) -> str:
    """What the system prompt says of skills; names alone if descriptions take too much of it."""
    if not skills:
        return ""
    room = int((window or _USUAL_WINDOW) * SHARE) * _CHARACTERS - len(_HEAD) - len(_TAIL)
    full = [
        f"  <skill>\n    <name>{one.name}</name>\n"
        f"    <description>{_escaped(one.description)}</description>\n  </skill>\n"
        for one in skills
    ]
    names = [f"  <skill><name>{one.name}</name></skill>\n" for one in skills]
    shown = full if sum(map(len, full)) <= room else names
    while len(shown) > 1 and sum(map(len, shown)) > room:
        shown.pop()
    return f"{_HEAD}{''.join(shown)}{_TAIL}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def activated(skill: Skill) -> str:
    """The instructions and the files of a skill, as gemini-cli gives them to the model."""
    workspace = Workspace(roots=(skill.folder,), temp=skill.folder, home=skill.folder)
    tree = folder_tree(skill.folder, workspace, git=False)
    return (
        f'<activated_skill name="{skill.name}">\n  <instructions>\n    {skill.body()}\n'
        f"  </instructions>\n\n  <available_resources>\n    {tree}\n"
        "  </available_resources>\n</activated_skill>"
    )


class SessionSkills:
    """The skills of one session."""

    def __init__(self, skills: Mapping[str, Skill]) -> None:
        self.skills = dict(skills)
        self._prompt: str | None = None

    def prompt(self, window: int) -> str:
        """The section of the system prompt, computed once: its bytes must not change."""
        if self._prompt is None:
            self._prompt = prompt_section(list(self.skills.values()), window)
        return self._prompt

    def activate(self, name: str, context: ToolContext) -> str:
        """The text of a skill; its folder may be read from now on."""
        skill = self.skills.get(name)
        if skill is None:
            raise UnknownName("skill", name, tuple(self.skills))
        try:
            text = activated(skill)
        except (OSError, ValueError) as error:
            raise BadInput(f"the skill {name} cannot be read: {error}") from error
        context.workspace.readable.add(skill.folder)
        return text

    def tool(self) -> Tool:
        """The tool by which the model activates a skill."""
        names = list(self.skills)

        async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
            name = str(arguments.get("name", ""))
            try:
                text = self.activate(name, context)
            except (BadInput, UnknownName) as error:
                raise ToolFailed(str(error), type="invalid_tool_params") from error
            skill = self.skills[name]
            return ToolOutput(text=text, display=f"skill {name}: {skill.folder}")

        listed = ", ".join(f"'{name}'" for name in names)
        return Tool(
            name=TOOL,
            title="Activate Skill",
            description=(
                f"Activates a specialized agent skill by name (Available: {listed}). Returns the "
                "skill's instructions wrapped in `<activated_skill>` tags. These provide "
                "specialized guidance for the current task. Use this when you identify a task that "
                "matches a skill's description. ONLY use names exactly as they appear in the "
                "`<available_skills>` section."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "name": {
                        "type": "string",
                        "enum": names,
                        "description": "The name of the skill to activate.",
                    }
                },
                "required": ["name"],
                "additionalProperties": False,
            },
            effect=Effect.READ,
            run=run,
        )


class SkillApproval(Hooks):
    """Asks about a project's skill the first time, and again after its SKILL.md changed."""

    def __init__(
        self, skills: SessionSkills, store: ApprovalStore, cwd: Path, allowed: Callable[[], bool]
    ) -> None:
        self._skills = skills.skills
        self._store = store
        self._cwd = cwd
        self._allowed = allowed
        """Whether everything runs without a question now."""
        self._asked: dict[str, str] = {}
        """Digests by call, of skills that the user was asked about."""

    async def before_call(self, call: HookedCall) -> Ask | None:
        """Requires approval of an activation."""
        skill = self._skills.get(str(call.arguments.get("name", "")))
        if call.name != TOOL or skill is None or not skill.project or self._allowed():
            return None
        try:
            digest = skill.digest
        except (OSError, ValueError):
            return None
        if self._store.answer(self._cwd, skill.key, digest) is True:
            return None
        self._asked[call.id] = digest
        return Ask(f"this project brings the skill {skill.name}: {skill.folder}")

    async def after_call(self, result: HookedResult) -> None:
        """Stores the approval of a skill that was activated."""
        digest = self._asked.pop(result.call.id, "")
        if digest and not result.error:
            skill = self._skills[str(result.call.arguments["name"])]
            self._store.keep(self._cwd, skill.key, digest, allowed=True)


NEW = """\
---
name: {name}
description: What it helps with, and when to use it: the model sees only this until it is activated.
---

# {title}

What to do, step by step. Name files of this folder where they are needed, such as
`references/details.md` or `scripts/check.sh`; they are read on demand.
"""


def create_skill(folder: Path, name: str) -> Path:
    """Writes a new skill; returns its file."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise BadInput(f'"{name}": a name has 1 to 64 of a-z, 0-9 and single hyphens')
    file = folder / name / FILE
    if file.exists():
        raise BadInput(f"{file} exists")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NEW.format(name=name, title=name.replace("-", " ").capitalize()), "utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from error
    return file
