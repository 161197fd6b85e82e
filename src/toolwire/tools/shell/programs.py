"""Programs that toolwire starts for itself: by absolute path, never one that a project brings."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolwire.tools.shell.environment import clean_environment

PYTHON = (sys.executable, "-P", "-E")
"""This Python, without the current folder on its path and without variables that change it."""
NEUTRAL = "/"
"""Where a program starts that has no folder to work on: no project can put a file there."""
_LOGINS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
# Hooks, monitors, pagers, helpers and remotes of a repository are programs of its own.
GIT_OPTIONS = (
    *("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "core.sshCommand=false"),
    *("-c", "core.askPass=", "-c", "credential.helper=", "-c", "diff.external="),
    *("-c", "submodule.recurse=false", "-c", "core.excludesFile=/dev/null"),
)
GIT_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # A missing object would be fetched from a remote, whose address may name a program.
    "GIT_ALLOW_PROTOCOL": "none",
}


def find_program(name: str, environ: Mapping[str, str], projects: Iterable[Path] = ()) -> str:
    """Its absolute path, outside of any project; empty if there is none."""
    folders = (environ.get("PATH") or os.environ.get("PATH") or os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(safe_folders(folders, projects))) or ""


def safe_folders(folders: Iterable[str], projects: Iterable[Path] = ()) -> list[str]:
    """The absolute ones that are not inside a project, in the same order."""
    roots = [os.path.realpath(root) for root in projects]
    return [
        folder
        for folder in folders
        if os.path.isabs(folder)
        and not any(_inside(os.path.realpath(folder), root) for root in roots)
    ]


def _inside(path: str, root: str) -> bool:
    return root != "/" and (path == root or path.startswith(f"{root}/"))


def helper_environment(environ: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """What a program of ours needs: no secrets but the logins of proxies and those named."""
    return clean_environment(environ, (), (*_LOGINS, *named))
