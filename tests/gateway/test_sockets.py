import asyncio
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.errors import BadInput, ToolwireError
from toolwire.gateway.sockets import TlsFiles, activated, adopted, bind, notify
from toolwire.http_server.exchange import Answering, Asked
from toolwire.http_server.listener import HttpLimits, HttpListener

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sockets of POSIX systems")


def test_sockets_of_workers_share_one_port():
    sockets = bind("127.0.0.1", 0, 3)
    assert len({one.getsockname() for one in sockets}) == 1
    for one in sockets:
        one.close()


def test_a_port_in_use_is_reported_by_name():
    [one] = bind("127.0.0.1", 0)
    port = one.getsockname()[1]
    with pytest.raises(ToolwireError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .+ port$"):
        bind("127.0.0.1", port)
    one.close()


def test_systemd_passes_its_sockets(tmp_path: Path):
    program = (
        "import os\n"
        "from toolwire.gateway.sockets import activated\n"
        "os.environ['LISTEN_PID'] = str(os.getpid())\n"
        "sockets = activated(os.environ)\n"
        "print([one.getsockname()[1] for one in sockets], 'LISTEN_FDS' in os.environ)\n"
    )
    [one] = bind("127.0.0.1", 0)

    def move() -> None:
        os.dup2(one.fileno(), 3)

    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LISTEN_FDS": "1"},
        preexec_fn=move,
        close_fds=False,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == f"[{one.getsockname()[1]}] False\n"
    one.close()


def test_sockets_for_another_process_are_left_alone():
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b", "HOME": "/"}
    assert activated(environ) == []
    assert environ == {"HOME": "/"}


def test_a_socket_that_does_not_listen_is_refused():
    one = socket.socket()
    with pytest.raises(ToolwireError, match="cannot be used"):
        adopted(os.dup(one.fileno()))
    one.close()


def test_systemd_learns_the_state(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(tmp_path / "n"))
        one.settimeout(5)
        notify({"NOTIFY_SOCKET": str(tmp_path / "n")}, "READY=1")
        assert one.recv(100) == b"READY=1"
    notify({"NOTIFY_SOCKET": str(tmp_path / "missing")}, "READY=1")
    notify({"NOTIFY_SOCKET": "relative"}, "READY=1")
    notify({}, "READY=1")


async def hello(asked: Asked, answering: Answering) -> None:
    await answering.whole(200, (), b"hello")


def test_tls_answers_and_takes_renewed_files(tmp_path: Path):
    pytest.importorskip("cryptography", reason="makes the certificates")
    from tests.client.http.test_certificates import make_certificate

    path = make_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    renewed = make_certificate(tmp_path / "other").read_bytes()
    files = TlsFiles(path, path)

    async def seen(port: int) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"hello")
        tls = writer.get_extra_info("ssl_object")
        assert tls.selected_alpn_protocol() == "http/1.1"
        writer.close()
        return tls.getpeercert(binary_form=True)

    async def work() -> None:
        listener = HttpListener(hello, HttpLimits(head_seconds=0.5))
        port = await listener.start("127.0.0.1", 0, tls=files.context)
        first = await seen(port)
        good = path.read_bytes()
        path.write_text("not a certificate")
        with pytest.raises(BadInput, match="PEM"):
            files.reload()
        assert await seen(port) == first
        path.write_bytes(renewed)
        files.reload()
        assert await seen(port) != first
        assert good != renewed
        # Plain text on the port ends the connection, and so does silence.
        for data in (b"GET / HTTP/1.1\r\n\r\n", b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            async with asyncio.timeout(10):
                assert await reader.read() in (b"", b"\x15\x03\x01\x00\x02\x02\x46")
            writer.close()
        await listener.aclose()

    asyncio.run(work())


def test_files_that_are_missing_are_named(tmp_path: Path):
    with pytest.raises(BadInput, match=r"cannot read .*missing.* No such file"):
        TlsFiles(tmp_path / "missing", tmp_path / "missing")
