"""The settings of checkpoints and subagents."""

from typing import Annotated, Literal

import msgspec

from toolwire.setting import Count, setting


class CheckpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[checkpoints]` table of the configuration."""

    enabled: Annotated[bool, setting("Record the files before they are changed.")] = True
    tree: Annotated[
        Literal["auto", "always", "never"],
        setting(
            "Snapshots of the whole folder before a turn changes it, which include what commands "
            "do: `auto` where git is installed, up to 100,000 files and 2 GB."
        ),
    ] = "auto"
    keep_days: Annotated[
        Count, setting("Days that checkpoints of an unused session are kept; 0 means forever.")
    ] = 30
    max_mb: Annotated[
        Count,
        setting("Megabytes of a folder's checkpoints; the oldest are removed. 0 means no limit."),
    ] = 2000


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[agents]` table of the configuration."""

    enabled: Annotated[bool, setting("Offer subagents to the model.", project=True)] = True
    max_parallel: Annotated[
        int, msgspec.Meta(ge=1, le=16), setting("Subagents that run at the same time.")
    ] = 4
    exclude: Annotated[
        tuple[str, ...],
        setting("Subagents that are not offered; a project may add.", project=True, joins=True),
    ] = ()
    explore_model: Annotated[
        str, setting("Model of `explore`, such as a cheaper one; if not set, the session's.")
    ] = ""
