"""Files of the console's pages, from a table that is made once."""

import gzip
import hashlib
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from toolwire.http_server.exchange import Answering, Asked

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"
)
SECURITY = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)
"""Headers of every answer of the console."""
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "png": "image/png",
    "ico": "image/x-icon",
    "txt": "text/plain; charset=utf-8",
}
_PLAIN = ("LICENSE", "VERSIONS")
_INDEX = "index.html"


class StaticFile(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    data: bytes
    type: str
    tag: str
    packed: bytes = b""
    """Compressed with gzip, where that is smaller."""


def load_files() -> dict[str, StaticFile]:
    """Every file of the pages by its path, such as `index.html` or `vendor/preact.js`."""
    found: dict[str, StaticFile] = {}
    _collect(resources.files("toolwire.gateway") / "web", "", found)
    return found


def _collect(folder: Traversable, before: str, found: dict[str, StaticFile]) -> None:
    if not folder.is_dir():
        return
    for one in folder.iterdir():
        name = f"{before}{one.name}"
        if one.is_dir():
            _collect(one, f"{name}/", found)
            continue
        kind = _TYPES.get(one.name.rpartition(".")[2])
        if kind is None and one.name.startswith(_PLAIN):
            kind = _TYPES["txt"]
        if kind is not None:
            data = one.read_bytes()
            tag = hashlib.sha256(data).hexdigest()[:32]
            packed = gzip.compress(data, 9, mtime=0)
            found[name] = StaticFile(
                data, kind, f'"{tag}"', packed if len(packed) < len(data) else b""
            )


def find_file(files: dict[str, StaticFile], name: str) -> StaticFile | None:
    """The file of a path below `/console/`; addresses of pages are the index."""
    found = files.get(name or _INDEX)
    if found is None and ".." not in name and "." not in name.rpartition("/")[2]:
        return files.get(_INDEX)
    return found


async def send_file(file: StaticFile, asked: Asked, out: Answering) -> None:
    """Answers with a file, or that the browser has it already."""
    fields = (
        *SECURITY,
        ("etag", file.tag),
        ("cache-control", "no-cache"),
        ("vary", "accept-encoding"),
    )
    tags = [tag.strip().removeprefix("W/") for tag in asked.field("if-none-match").split(",")]
    if file.tag in tags or "*" in tags:
        await out.whole(304, fields)
        return
    fields = (("content-type", file.type), *fields)
    if file.packed and "gzip" in asked.field("accept-encoding"):
        await out.whole(200, (*fields, ("content-encoding", "gzip")), file.packed)
        return
    await out.whole(200, fields, file.data)
