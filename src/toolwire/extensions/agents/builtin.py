"""What a subagent is, and the two that are built in."""

from pathlib import Path
from typing import TypeAlias

import msgspec

READING = (
    *("list_directory", "read_file", "search_file_content", "glob", "read_many_files"),
    *("web_fetch", "google_web_search"),
)
MOST_TURNS = 30
MOST_SECONDS = 600.0
Names: TypeAlias = tuple[str, ...]


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A subagent: what it is for, its prompt, and its tools."""

    name: str
    description: str
    prompt: str
    tools: Names = ()
    """Patterns of tool names; empty for all of the session's."""
    without: Names = ()
    """Patterns of tools that it does not get."""
    reads: bool = False
    """Whether it gets only tools that read."""
    model: str = ""
    """`provider/model`; empty for the session's."""
    turns: int = MOST_TURNS
    seconds: float = MOST_SECONDS
    temperature: float | None = None
    origin: str = "built-in"
    """`built-in`, `project`, `user`, or the program whose file defines it."""
    file: Path | None = None
    project: bool = False
    """Whether the project brings it."""
    digest: str = ""
    """Of the whole definition, for the user's approval."""


_REPORT = (
    "You work for another agent, which sees only your last message: put everything there that it "
    "asked for, with absolute paths and line numbers, and what you could not find out. Be brief. "
    "You cannot ask anyone; decide by yourself, and state what you assumed."
)
EXPLORE = AgentDefinition(
    name="explore",
    description=(
        "Searches and reads the project, and reports what it found; it changes nothing. For "
        "questions that need many files, so that their contents do not fill this conversation."
    ),
    prompt=(
        "You explore a software project and answer a question about it. You can only read. Search "
        "broadly first, then read what matters; run independent searches in one reply.\n\n"
        f"{_REPORT}"
    ),
    tools=READING,
)
GENERAL = AgentDefinition(
    name="general",
    description=(
        "Does a task of several steps with all tools, and reports the result. For parts of a task "
        "that are independent of each other; several run at the same time."
    ),
    prompt=(
        "You are a coding agent that does one task in a software project. Follow the conventions "
        "of the code around you, change only what the task needs, and verify what you did with "
        f"the project's own tests or tools where there are any.\n\n{_REPORT}"
    ),
)
BUILT_IN = (EXPLORE, GENERAL)
