"""A host of one file on loopback, and an index of packages: they cut, refuse and lie as told."""

import base64
import hashlib
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import msgspec


class FileHost:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.url = ""
        self.ranges: list[str] = []
        """What each request asked for; empty for the whole file."""
        self.cuts: list[int] = []
        """Bytes after which the next answers break off."""
        self.statuses: list[int] = []
        """What the next answers say instead of the file."""
        self.knows_ranges = True
        self.redirect = ""
        self.archives: dict[str, bytes] = {}
        """Wheels of the index by file name."""
        self.gate: threading.Event | None = None
        """Answers wait for it."""

    def index(self, package: str) -> bytes:
        stem = package.replace("-", "_")
        names = [name for name in self.archives if name.startswith(f"{stem}-")]
        return "".join(f'<a href="/wheels/{name}">{name}</a>' for name in names).encode()


def wheel(package: str, version: str, member: str, content: bytes) -> tuple[str, bytes]:
    stem = f"{package.replace('-', '_')}-{version}"
    about = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    kind = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        member: content,
        f"{stem}.dist-info/METADATA": about.encode(),
        f"{stem}.dist-info/WHEEL": kind.encode(),
    }
    digest = {
        name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        for name, data in files.items()
    }
    record = "".join(f"{name},sha256={digest[name]},{len(files[name])}\n" for name in files)
    files[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n".encode()
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return f"{stem}-py3-none-any.whl", out.getvalue()


@contextmanager
def file_host(content: bytes) -> Generator[FileHost]:
    host = FileHost(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if host.gate is not None:
                host.gate.wait(30)
            if self.path.startswith("/simple/"):
                self._say(200, host.index(self.path.split("/")[2]), {"content-type": "text/html"})
            elif self.path.startswith("/wheels/"):
                self._say(200, host.archives[self.path.split("/")[2]], {})
            elif self.path == "/file" and host.redirect:
                self._say(302, b"", {"location": host.redirect})
            else:
                self._file()

        def _file(self) -> None:
            wanted = self.headers.get("range", "")
            host.ranges.append(wanted)
            if host.statuses:
                self._say(host.statuses.pop(0), b"not now", {})
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            if not wanted or not host.knows_ranges:
                self._say(200, host.content, {})
                return
            last = len(host.content) - 1
            said = f"bytes {start}-{last}/{len(host.content)}"
            self._say(206, host.content[start:], {"content-range": said})

        def _say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if status in (200, 206) and host.cuts and "text/html" not in headers.values():
                self.wfile.write(body[: host.cuts.pop(0)])
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(2)
                return
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Told(msgspec.Struct):
    """What a fetch told of itself."""

    notices: list[str] = msgspec.field(default_factory=list)
    progress: list[Any] = msgspec.field(default_factory=list)
    asked: list[str] = msgspec.field(default_factory=list)
