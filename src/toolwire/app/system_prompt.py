"""The coding agent's system prompt: text for its tools and mode, then the project's notes."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from toolwire.app.options import SessionOptions
from toolwire.app.toolbox import Toolbox
from toolwire.config import Settings
from toolwire.context import NAMES
from toolwire.context.memory import Memory, load_memory, with_memory
from toolwire.context.prompt import PromptFacts, chosen_prompt
from toolwire.policy import Mode
from toolwire.tools.builtin.save_memory import memory_file
from toolwire.tools.files.protection import Visibility
from toolwire.tools.search.ignore import repository_of

SayNotice = Callable[[str], None]
_MOST_NAMED = 10
MODE_CHANGED = {
    mode: f"The user changed the approval mode to {mode}: {meaning} Go on with the task."
    for mode, meaning in {
        Mode.DEFAULT: "changes and commands are confirmed by the user.",
        Mode.AUTO_EDIT: "edits of files in the workspace run without confirmation.",
        Mode.PLAN: "only reading is allowed; do not change files and run nothing that does.",
        Mode.YOLO: "every call runs without confirmation.",
    }.items()
}
"""What the model is given when the mode changes in a session."""


def system_text(
    options: SessionOptions,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    toolbox: Toolbox,
    mode: Mode,
    notice: SayNotice,
) -> str:
    """Returns the system prompt followed by the memory files.

    Notes are text: those of a folder that is neither trusted nor distrusted are read, and listed
    to the user; its system prompt is not.
    """
    workspace = toolbox.context.workspace
    cwd = workspace.roots[0]
    facts = PromptFacts(
        tools=toolbox.registry.names,
        git=repository_of(cwd, workspace.ceilings) is not None,
        interactive=options.interactive,
        mode=mode,
    )
    own = options.system
    file = Path(settings.system_prompt) if settings.system_prompt else None
    prompt = chosen_prompt(
        facts,
        environ=environ,
        folder=cwd,
        home=workspace.home,
        text=own if isinstance(own, str) else None,
        file=own if isinstance(own, Path) else file,
        source="--system" if options.system else "system_prompt",
        trusted=bool(settings.trusted),
    )
    memory = notes_in_use(settings, toolbox)
    for words in (*memory.notices, *_read_notes(memory)):
        notice(words)
    return with_memory(prompt.text, memory.text)


def notes_in_use(settings: Settings, toolbox: Toolbox) -> Memory:
    """Returns the notes for agents that the system prompt contains, with their files."""
    context = settings.context
    if "context.files" in settings.set_by_project:
        context = msgspec.structs.replace(context, outer_files=NAMES)
    return load_memory(
        toolbox.context.workspace,
        global_file=memory_file(toolbox.context),
        trusted=settings.trusted is not False,
        hides=Visibility(toolbox.context, "read_file").hides,
        settings=context,
    )


def _read_notes(memory: Memory) -> tuple[str, ...]:
    """Returns one line that lists the project's notes; empty without any."""
    notes = [file for file in memory.files if not file.outer]
    if not notes:
        return ()
    shown = ", ".join(file.shown for file in notes[:_MOST_NAMED])
    more = f" and {len(notes) - _MOST_NAMED} more" if len(notes) > _MOST_NAMED else ""
    size = sum(file.size for file in notes)
    return (f"project notes given to the model: {shown}{more} ({size:,} bytes)",)
