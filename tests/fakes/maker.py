"""A gateway before a server whose answers are given byte for byte."""

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.fakes.simulated import BASES
from toolwire import providers
from toolwire.client.redact import Secret
from toolwire.config import Settings
from toolwire.gateway.host import ServeOptions, open_gateway
from toolwire.providers.custom import custom

MAKERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic-messages": "anthropic",
    "gemini": "google",
}


class Bytes(NamedTuple):
    """One answer: its pieces are sent apart; a function is called between them."""

    pieces: Sequence[bytes | Callable[[], object]]
    status: int = 200
    kind: str = "text/event-stream"
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    """Whether the connection breaks instead of an end."""


class Asked(NamedTuple):
    """One request that the server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class MakerGateway(ServedGateway):
    """`with MakerGateway("gemini", home=tmp_path) as served:` sends `served.answers` in turn."""

    def __init__(
        self, dialect: str, *, home: Path, faithful: bool = True, provider: Any = None, **more: Any
    ) -> None:
        """`provider` are more members of the provider's settings."""
        self.answers: list[Bytes] = []
        self.asked: list[Asked] = []
        self.left = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        table = {
            "extends": MAKERS[dialect],
            "dialect": dialect,
            "base_url": f"{self.address}{BASES[dialect]}",
            "key_env": "MAKER_KEY",
            "faithful": faithful,
            **(provider or {}),
        }
        maker = custom("maker", table, providers.get)
        settings = msgspec.structs.replace(Settings(), providers=(maker,))
        super().__init__(dialect, [], home=home, settings=settings, **more)
        self._environ["MAKER_KEY"] = "maker-key"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        maker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fields = {name.lower(): value for name, value in self.headers.items()}
                maker.asked.append(Asked(self.command, self.path, fields, body))
                answer = maker.answers.pop(0)
                try:
                    self._send(answer)
                except OSError:
                    maker.left.set()

            do_GET = do_POST = do_DELETE = do_PUT = _answer

            def _send(self, answer: Bytes) -> None:
                self.send_response(answer.status)
                self.send_header("content-type", answer.kind)
                self.send_header("transfer-encoding", "chunked")
                for name, value in answer.headers:
                    self.send_header(name, value)
                self.end_headers()
                for piece in answer.pieces:
                    if isinstance(piece, bytes):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    else:
                        piece()
                if answer.cut:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:
                """Prints nothing."""

        return Handler

    def __enter__(self) -> "MakerGateway":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._server.shutdown()
        self._server.server_close()

    async def _open(self) -> None:
        self.running = await self._stack.enter_async_context(
            open_gateway(
                self._settings,
                ServeOptions(model="maker/m", token=Secret(TOKEN)),
                environ=self._environ,
                notice=lambda text: None,
                readers=(self.records.append,),
            )
        )
