"""Context of a conversation: system prompt, memory files, mentioned files, cache marks."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from toolwire.setting import Count, setting

NAMES = ("AGENTS.md", "GEMINI.md", "CLAUDE.md")
ImportFormat: TypeAlias = Literal["tree", "flat"]
FileName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!\.{1,2}$)[^/\\]+$", extra={"expected": "a file name without folders"}
    ),
]
NotePath: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?![/~])(?!(.*/)?\.\.(/|$))(?!.*\*\*)[^\\]+$",
        extra={"expected": "a path or pattern below the project, without ** and .."},
    ),
]


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for memory files."""

    files: Annotated[tuple[FileName, ...], setting("File names of memory files.", project=True)] = (
        NAMES
    )
    """All that a folder has are read, in this order."""
    include: Annotated[
        tuple[NotePath, ...],
        setting("Paths below the project of further memory files; * matches names.", project=True),
    ] = ()
    max_dirs: Annotated[
        Count, setting("Maximum number of folders searched for memory files.", project=True)
    ] = 200
    respect_git_ignore: Annotated[bool, setting("Skip files that git ignores.", project=True)] = (
        True
    )
    """Skips folders; memory files are read even if git ignores them."""
    import_format: Annotated[
        ImportFormat, setting("How imported files are inserted.", project=True)
    ] = "tree"
    outer_files: tuple[str, ...] = ()
    """Names outside of the project, where a project's settings do not apply; empty: the same."""
