"""The part of a tool's arguments that says which ignore rules count."""

import msgspec

from toolwire.request import JsonObject


class Filtering(msgspec.Struct, frozen=True):
    """Which ignore rules count; `.toolwireignore` goes with `.geminiignore`."""

    respect_git_ignore: bool = True
    respect_gemini_ignore: bool = True


def filtering_schema(description: str) -> JsonObject:
    """The schema of that part, as the original declares it."""
    return {
        "description": description,
        "type": "object",
        "properties": {
            "respect_git_ignore": {
                "description": "Optional: Whether to respect .gitignore patterns when listing "
                "files. Only available in git repositories. Defaults to true.",
                "type": "boolean",
            },
            "respect_gemini_ignore": {
                "description": "Optional: Whether to respect .geminiignore patterns when listing "
                "files. Defaults to true.",
                "type": "boolean",
            },
        },
    }
