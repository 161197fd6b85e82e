"""Settings: defaults, TOML files, the environment and flags, read into one value."""

from toolwire.config.layers import FILE, PROJECT_FILE, current_folder, load, resolve
from toolwire.config.merging import Resolved
from toolwire.config.settings import Sessions, Settings

__all__ = [
    "FILE",
    "PROJECT_FILE",
    "Resolved",
    "Sessions",
    "Settings",
    "current_folder",
    "load",
    "resolve",
]
