"""A proxy before PostgreSQL that cuts connections after a number of bytes, or goes silent."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict, make_conninfo

Way = Literal["asked", "answered"]


class CuttingProxy:
    """Passes everything on until it is armed; then cuts or silences the connection in use."""

    def __init__(self, url: str, folder: Path) -> None:
        known = conninfo_to_dict(url)
        self._host, self._port = str(known.get("host", "")), int(str(known.get("port", "5432")))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self.url = make_conninfo(url, host=str(folder), port="5432")
        who = f"{known.get('user', '')}:{known.get('password', '')}"
        more = urlencode(
            {"host": str(folder), "port": 5432, "options": known.get("options", "")},
            quote_via=quote,
        )
        self.address = f"postgresql://{who}@/{known.get('dbname', '')}?{more}"
        """The same for settings."""
        self._left: dict[Way, int] | None = None
        self._hush: dict[Way, int] = {}
        self.silent = False
        self.cuts = 0
        self.passed: dict[Way, int] = {"asked": 0, "answered": 0}
        threading.Thread(target=self._serve, daemon=True).start()

    def cut_after(self, way: Way, count: int) -> None:
        """Cuts the connection once so many more bytes have passed in this direction."""
        self._left = {way: count}

    def hush_after(self, way: Way, count: int) -> None:
        """Goes silent once so many more bytes have passed in this direction."""
        self._hush = {way: count}

    def count(self) -> dict[Way, int]:
        """Returns the bytes since the last count."""
        counted = self.passed
        self.passed = {"asked": 0, "answered": 0}
        return counted

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            try:
                server = self._upstream()
            except OSError:
                client.close()
                continue
            for way, source, target in (
                ("asked", client, server),
                ("answered", server, client),
            ):
                threading.Thread(target=self._pass, args=(way, source, target), daemon=True).start()

    def _upstream(self) -> socket.socket:
        if self._host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{self._host}/.s.PGSQL.{self._port}")
            return server
        return socket.create_connection((self._host, self._port))

    def _pass(self, way: Way, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if way in self._hush:
                    self._hush[way] -= len(data)
                    if self._hush[way] < 0:
                        self._hush, self.silent = {}, True
                if self.silent:
                    continue
                self.passed[way] += len(data)
                left = self._left
                if left is not None and way in left:
                    if len(data) >= left[way]:
                        self._left = None
                        self.cuts += 1
                        target.sendall(data[: left[way]])
                        break
                    left[way] -= len(data)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
