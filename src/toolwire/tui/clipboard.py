"""The clipboard: copying through the terminal, and pictures from the system's own programs."""

import asyncio
import base64
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from toolwire.errors import BadInput
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import write_private
from toolwire.tools.files.contents import mime_of, signed_mime
from toolwire.tools.files.text import LARGEST

_MOST = 700_000
"""Bytes that are sent through the terminal: what tmux takes at most, less the encoding."""
_PATIENCE = 5.0
_POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms,System.Drawing;"
    "$i=[System.Windows.Forms.Clipboard]::GetImage();"
    "if($i){$s=New-Object IO.MemoryStream;"
    "$i.Save($s,[System.Drawing.Imaging.ImageFormat]::Png);"
    "[Console]::OpenStandardOutput().Write($s.ToArray(),0,$s.Length)}"
)
_POWERSHELL_CALL = ("-NoProfile", "-NonInteractive", "-STA", "-Command", _POWERSHELL)
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Types that every model with eyes takes."""


def copied(text: str) -> str:
    """The sequence that puts a text on the terminal's clipboard; empty if it is too long."""
    source = text.encode("utf-8", "replace")
    data = base64.b64encode(source).decode("ascii")
    return f"\x1b]52;c;{data}\x07" if len(source) <= _MOST else ""


def writer(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The program that puts its input on this machine's clipboard; empty if there is none.

    In a remote session the clipboard is elsewhere: only the terminal reaches it.
    """
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return ()
    listed: list[tuple[str, ...]] = [("pbcopy",)] if sys.platform == "darwin" else []
    if environ.get("WAYLAND_DISPLAY"):
        listed.append(("wl-copy",))
    if environ.get("DISPLAY"):
        listed += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    path = environ.get("PATH", os.defpath)
    return next((call for call in listed if shutil.which(call[0], path=path)), ())


async def write_clipboard(call: tuple[str, ...], text: str, environ: Mapping[str, str]) -> None:
    """Runs the program of `writer`; the terminal has the text too if it fails."""
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *call,
            env=dict(environ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_PATIENCE):
                await process.communicate(text.encode("utf-8", "replace"))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def readers(environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The programs that write the clipboard's picture to standard output, the best first."""
    found: list[tuple[str, ...]] = []
    if sys.platform == "darwin":
        found.append(("pngpaste", "-"))
    elif sys.platform == "win32":
        found.append(("powershell", *_POWERSHELL_CALL))
    else:
        if environ.get("WAYLAND_DISPLAY"):
            found.append(("wl-paste", "--no-newline", "--type", "image/png"))
        if environ.get("DISPLAY"):
            found.append(("xclip", "-selection", "clipboard", "-t", "image/png", "-o"))
        if environ.get("WSL_DISTRO_NAME"):
            found.append(("powershell.exe", *_POWERSHELL_CALL))
    return found


async def clipboard_image(environ: Mapping[str, str]) -> Path:
    """Stores the clipboard's picture in a private file; BadInput says what is missing."""
    listed = readers(environ)
    path = environ.get("PATH", os.defpath)
    present = [call for call in listed if shutil.which(call[0], path=path)]
    if not present:
        names = " or ".join(call[0] for call in listed)
        raise BadInput(
            f"no picture can be read from the clipboard: install {names}"
            if names
            else "no picture can be read from the clipboard here; type or drop its path instead"
        )
    for call in present:
        data = await _output(call, environ)
        mime = signed_mime(data)
        if mime in _PICTURES:
            name = hashlib.sha256(data).hexdigest()[:16]
            file = state_paths(environ).cache / "pasted" / f"{name}.{mime.partition('/')[2]}"
            await asyncio.to_thread(write_private, file, data)
            return file
    raise BadInput("the clipboard holds no picture")


def image_problem(path: Path, model: str, takes: bool | None) -> str:
    """Why a model cannot get a picture; empty if it can. `takes` is None if that is not known."""
    if takes is False:
        return f"{model} takes no pictures; /model chooses another model"
    mime = mime_of(path)
    if mime not in _PICTURES:
        return f"{path.name} is {mime or 'no picture'}; models take PNG, JPEG, GIF and WebP"
    try:
        size = path.stat().st_size
    except OSError:
        return f"{path.name} cannot be read"
    if size > LARGEST:
        return f"{path.name} has {size / (1 << 20):.1f} MB; at most {LARGEST >> 20} MB can be sent"
    return ""


async def _output(call: tuple[str, ...], environ: Mapping[str, str]) -> bytes:
    """What a program prints; empty if it fails, hangs, or prints too much."""
    try:
        process = await asyncio.create_subprocess_exec(
            *call,
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return b""
    data = bytearray()
    out = process.stdout
    ended = False
    try:
        async with asyncio.timeout(_PATIENCE):
            while out and len(data) <= LARGEST and (piece := await out.read(1 << 16)):
                data += piece
            ended = len(data) <= LARGEST and await process.wait() == 0
    except TimeoutError:
        data.clear()
    finally:
        # A signal to a process that has ended takes its exit code from the event loop.
        if not ended and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return bytes(data) if ended else b""
