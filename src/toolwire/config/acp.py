"""The settings of editors."""

from typing import Annotated, Literal

import msgspec

from toolwire.setting import setting


class AcpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[acp]` table of the configuration."""

    client_terminal: Annotated[
        bool,
        setting("Run commands in the editor's terminals, without the sandbox: remote editors."),
    ] = False
    client_files: Annotated[
        bool, setting("Read unsaved text from the editor, and write files through it.")
    ] = True


class IdeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[ide]` table of the configuration."""

    enabled: Annotated[
        Literal["auto", "always", "never"],
        setting(
            "Show edits in the IDE whose terminal this is: `auto` if its companion is found, "
            "`always` reports why it is not."
        ),
    ] = "auto"
