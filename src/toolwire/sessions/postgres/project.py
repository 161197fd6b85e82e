"""The name of a project that is the same on every machine: the address of its repository."""

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

_SECTION = re.compile(r'^\s*\[\s*remote\s+"origin"\s*\]\s*$')
_URL = re.compile(r"^\s*url\s*=\s*(.+?)\s*$")
_LARGEST = 200_000


def project_name(folder: str) -> str:
    """Returns the repository's address and the folder in it; the path without a repository."""
    path = Path(folder).resolve()
    for root in (path, *path.parents):
        if (root / ".git").exists():
            address = _origin(root / ".git")
            inside = path.relative_to(root).as_posix()
            if address:
                return address if inside == "." else f"{address}#{inside}"
            break
    return str(path)


def _origin(git: Path) -> str:
    """Returns the address of the remote `origin` without a login; empty without one."""
    with suppress(OSError, ValueError):
        if git.is_file():
            # A worktree or a submodule: the file names the folder.
            git = (git.parent / git.read_text(encoding="utf-8").partition(":")[2].strip()).resolve()
            shared = git / "commondir"
            if shared.is_file():
                git = (git / shared.read_text(encoding="utf-8").strip()).resolve()
        with (git / "config").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_LARGEST).splitlines()
        inside = False
        for line in lines:
            if line.lstrip().startswith("["):
                inside = bool(_SECTION.match(line))
            elif inside and (found := _URL.match(line)):
                return shared_address(found.group(1).strip('"'))
    return ""


def shared_address(url: str) -> str:
    """Returns one name for the addresses of a repository by https and by ssh."""
    if "://" in url:
        parts = urlsplit(url)
        if not parts.hostname:
            return url
        port = f":{parts.port}" if parts.port not in (None, 22, 80, 443) else ""
        name = f"{parts.hostname}{port}/{parts.path.strip('/')}"
    elif re.match(r"^[^/]+:(?!\\)", url):
        host, _, path = url.partition(":")
        name = f"{host.rpartition('@')[2].lower()}/{path.strip('/')}"
    else:
        return url
    return name.removesuffix(".git")
