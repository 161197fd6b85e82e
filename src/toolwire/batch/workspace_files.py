"""Files of workspaces: written, copied, compared, removed."""

import os
import shutil
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Writes texts below a folder; nothing that is there is followed out of it."""
    for name, text in files.items():
        path = safe_parent(root, name)
        if path.is_symlink() or path.is_file():
            path.unlink()
        path.write_bytes(text.encode("utf-8", "replace"))


def make_folder(root: Path, files: Mapping[str, str]) -> None:
    """Makes a folder of these files; it appears only once all of them are written."""
    if not files:
        root.mkdir()
        return
    draft = root.with_suffix(".draft")
    draft.mkdir()
    write_files(draft, files)
    draft.rename(root)


def safe_parent(root: Path, name: str) -> Path:
    """The path below a folder, its parents made; links on the way are replaced by folders."""
    folder = root
    *parents, last = Path(name).parts
    for part in parents:
        folder = folder / part
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
        folder.mkdir(exist_ok=True)
    return folder / last


def copy_in(root: Path, copies: Mapping[str, str]) -> None:
    """Copies files and folders below a folder, in place of what is there."""
    for name, source in copies.items():
        target = safe_parent(root, name)
        if target.is_symlink() or target.is_file():
            target.unlink()
        if Path(source).is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)


def clone(source: Path, target: Path) -> bool:
    """Copies with shared blocks where the file system can; False if that is not possible here."""
    flags = {"linux": ("-a", "--reflink=auto"), "darwin": ("-a", "-c")}.get(sys.platform)
    program = shutil.which("cp")
    if flags is None or program is None:
        return False
    import subprocess  # noqa: PLC0415 - start-up time

    done = subprocess.run(  # noqa: S603 - our own arguments
        [program, *flags, "--", f"{source}/.", str(target)]
        if sys.platform == "linux"
        else [program, *flags, f"{source}/.", str(target)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        remove_tree(target)
    return done.returncode == 0


def has_only(root: Path, files: Mapping[str, str]) -> bool:
    """Whether a folder contains these files and nothing else."""
    left = {os.path.normpath(name): text for name, text in files.items()}
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_symlink():
                    return False
                if entry.is_dir():
                    folders.append(f"{name}/")
                elif not _is_text(entry, left.pop(name, None)):
                    return False
    return not left


def _is_text(entry: "os.DirEntry[str]", text: str | None) -> bool:
    """Whether a file is a plain one with this text."""
    if text is None or not entry.is_file() or entry.stat().st_mode & 0o111:
        return False
    return Path(entry.path).read_bytes() == text.encode("utf-8", "replace")


def remove_empty(*folders: Path) -> bool:
    """Removes folders that contain nothing; False at the first that does."""
    try:
        for folder in folders:
            folder.rmdir()
    except OSError:
        return False
    return True


def remove_tree(folder: Path) -> None:
    """Removes a folder, also where a program took its own permissions away."""

    def forced(function: object, path: str, error: object) -> None:
        del function, error
        with suppress(OSError):
            parent = os.path.dirname(path)  # noqa: PTH120 - a text
            os.chmod(parent, stat.S_IRWXU)  # noqa: PTH101 - a text
            if not os.path.islink(path):  # noqa: PTH114 - a text
                os.chmod(path, stat.S_IRWXU)  # noqa: PTH101 - a text
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114 - a text
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)  # noqa: PTH108 - a text

    if folder.exists():
        shutil.rmtree(folder, onerror=forced)
