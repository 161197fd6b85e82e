"""How much of a result a model is sent."""

DEFAULT_LIMIT = 400_000
"""Characters of a result that are sent as they are."""
MOST_MEDIA = 20 * 1024 * 1024
"""Bytes of the pictures, documents and recordings in one result."""


def limit_of(setting: object) -> int:
    """The `output_limit` setting; 0 or less means no limit."""
    if isinstance(setting, int) and not isinstance(setting, bool):
        return setting
    return DEFAULT_LIMIT
