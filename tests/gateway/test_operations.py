"""Operation of a real gateway: health, metrics, log, signals, workers, TLS."""

import http.client
import json
import signal
import socket
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.fakes.serving import KEY, ServeProcess
from tests.fakes.simulated import Simulated
from toolwire.simulator import Fault, Reply, replies, reply

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
BODY = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}


def asked(
    origin: str,
    method: str = "GET",
    path: str = "/",
    body: Any = None,
    key: str = "",
    tls: ssl.SSLContext | None = None,
    **headers: Any,
) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own."""
    host = origin.partition("://")[2]
    connection = (
        http.client.HTTPSConnection(host, timeout=60, context=tls)
        if tls
        else http.client.HTTPConnection(host, timeout=60)
    )
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if key:
        fields["x-api-key"] = key
    if body is not None:
        fields["content-type"] = "application/json"
    data = None if body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, data, fields)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_health_needs_no_key_and_tells_nothing(tmp_path: Path):
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path) as served:
        for path in ("/healthz", "/readyz"):
            status, fields, body = asked(served.origin, path=path)
            assert (status, body) == (200, b"")
            assert "server" not in fields
        served.running.life.stop()
        assert asked(served.origin, path="/readyz")[::2] == (503, b"draining\n")
        assert asked(served.origin, path="/healthz")[0] == 200
        assert served.records == []


def test_metrics_need_a_key_unless_they_are_open_on_loopback(tmp_path: Path):
    with ServedGateway("gemini", replies("hi"), home=tmp_path) as served:
        assert asked(served.origin, path="/metrics")[0] == 401
        assert asked(served.origin, path="/metrics", key="wrong")[0] == 401
        assert asked(served.origin, "POST", "/metrics", {}, TOKEN)[0] == 405
        assert asked(served.origin, "POST", "/v1/messages", BODY, TOKEN)[0] == 200
        status, fields, body = asked(served.origin, path="/metrics", key=TOKEN)
        assert (status, fields["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        text = body.decode()
        assert 'client="anthropic-messages",upstream="gemini"' in text
        assert "toolwire_loop_lag_seconds" in text
        assert "process_resident_memory_bytes" in text
        assert TOKEN not in text
    with ServedGateway("gemini", replies("hi"), home=tmp_path, metrics_open=True) as served:
        assert asked(served.origin, path="/metrics")[0] == 200


def test_pages_of_configured_origins_may_send_requests(tmp_path: Path):
    page = "https://app.example.com"
    with ServedGateway("gemini", replies("hi", "hi"), home=tmp_path, cors=[page]) as served:
        wanted: dict[str, Any] = {"Origin": page, "Access_Control_Request_Method": "POST"}
        status, fields, _ = asked(served.origin, "OPTIONS", "/v1/messages", **wanted)
        assert (status, fields["access-control-allow-origin"]) == (204, page)
        other: dict[str, Any] = {**wanted, "Origin": "https://evil.com"}
        status, fields, _ = asked(served.origin, "OPTIONS", "/v1/messages", **other)
        assert "access-control-allow-origin" not in fields
        for origin, allowed in ((page, page), ("https://evil.com", None), ("null", None)):
            status, fields, _ = asked(
                served.origin, "POST", "/v1/messages", BODY, TOKEN, Origin=origin
            )
            assert (status, fields.get("access-control-allow-origin")) == (200, allowed)
            if origin == "https://evil.com":
                break


class Stream:
    """A streamed answer that is read in a thread."""

    def __init__(self, origin: str, path: str = "/v1/messages", body: Any = None) -> None:
        self.text = b""
        self.status = 0
        self.cut = False
        self.begun = threading.Event()
        data = json.dumps({**(body or BODY), "stream": True}).encode()
        host, port = origin.partition("://")[2].split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nx-api-key: {KEY}\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while piece := self._socket.recv(65536):
            self.text += piece
            self.begun.set()
            if self.text.endswith(b"0\r\n\r\n"):
                break
        self.begun.set()
        self._socket.close()

    def ended(self) -> bytes:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.text


SLOW = Fault(wait_each=0.15)
HUNG = Fault(hang_after=2)


@posix
@pytest.mark.slow
def test_a_signal_lets_streams_end_and_refuses_those_that_wait(tmp_path: Path):
    script = [
        reply("one two three four five six seven", fault=SLOW),
        reply("never", fault=Fault(wait_first=60)),
    ]
    with (
        Simulated(script) as sim,
        ServeProcess(tmp_path, sim.upstream("openai-chat"), "--log", "json") as served,
    ):
        streaming = Stream(served.origin)
        streaming.begun.wait(60)
        held = Stream(served.origin)
        while len(sim.bodies) < 2:
            threading.Event().wait(0.02)
        served.stop()
        assert held.ended().startswith(b"HTTP/1.1 529")
        assert b"overloaded_error" in held.ended()
        assert streaming.ended().endswith(b"0\r\n\r\n")
        assert b"message_stop" in streaming.ended()
        assert served.ended() == 0
        lines = [json.loads(line) for line in served.errors.splitlines() if line.startswith("{")]
        assert [line["status"] for line in lines] == [529, 200]
        assert KEY not in served.errors


@posix
@pytest.mark.slow
def test_a_second_signal_fails_the_open_streams(tmp_path: Path):
    with (
        Simulated([reply("one two three four", fault=HUNG)]) as sim,
        ServeProcess(tmp_path, sim.upstream("openai-chat")) as served,
    ):
        streaming = Stream(served.origin)
        streaming.begun.wait(60)
        served.stop(signal.SIGINT)
        until(lambda: not is_served(served.origin))
        assert served.process.poll() is None
        served.stop(signal.SIGINT)
        text = streaming.ended()
        assert b"event: error" in text
        assert not text.endswith(b"0\r\n\r\n")
        assert b"message_stop" not in text
        assert served.ended() == 0


@posix
@pytest.mark.slow
def test_several_workers_serve_one_port(tmp_path: Path):
    with (
        Simulated([Reply(pieces=reply("hi").pieces)] * 30) as sim,
        ServeProcess(tmp_path, sim.upstream("openai-chat"), "--workers", "2") as served,
    ):
        for _ in range(10):
            assert asked(served.origin, "POST", "/v1/messages", BODY, KEY)[0] == 200
        assert served.output.count("toolwire serve:") == 1
        served.stop()
        assert served.ended() == 0


@posix
@pytest.mark.slow
def test_tls_and_log_are_read_again_on_sighup(tmp_path: Path):
    pytest.importorskip("cryptography", reason="makes the certificates")
    from tests.client.http.test_certificates import make_certificate

    pem = make_certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(pem))
    flags = ("--tls-cert", str(pem), "--tls-key", str(pem), "--log", "json")
    (tmp_path / "other").mkdir()
    with (
        Simulated(replies("hi", "hi", "hi")) as sim,
        ServeProcess(tmp_path, sim.upstream("openai-chat"), *flags) as served,
    ):
        assert served.origin.startswith("https://127.0.0.1:")
        assert asked(served.origin, "POST", "/v1/messages", BODY, KEY, tls=context)[0] == 200
        pem.write_bytes(b"broken")
        served.stop(signal.SIGHUP)
        until(lambda: "not reloaded" in served.errors)
        assert asked(served.origin, "POST", "/v1/messages", BODY, KEY, tls=context)[0] == 200
        pem.write_bytes(make_certificate(tmp_path / "other").read_bytes())
        renewed = ssl.create_default_context(cafile=str(pem))
        served.stop(signal.SIGHUP)

        def takes() -> bool:
            try:
                return asked(served.origin, path="/healthz", tls=renewed)[0] == 200
            except ssl.SSLError:
                return False

        until(takes)


def is_served(origin: str) -> bool:
    try:
        return asked(origin, path="/healthz")[0] == 200
    except OSError:
        return False


def until(done: Any) -> None:
    for _ in range(1500):
        if done():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (("--tls-cert", "a.pem"), "--tls-key is missing"),
        (("--tls-key", "a.pem"), "--tls-cert is missing"),
        (("--tls-cert", "a.pem", "--tls-key", "b.pem"), "No such file"),
        (("--host", "0.0.0.0", "--no-token"), "--no-token would let every machine"),
        (("--token", "a b"), "--token is empty"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    flags: tuple[str, ...], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from click.testing import CliRunner

    from toolwire.cli.serve import serve_command

    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    upstream = "openai-chat=http://127.0.0.1:9/v1,key=k"
    found = CliRunner().invoke(serve_command, ["--port", "0", "--upstream", upstream, *flags])
    assert found.exit_code != 0
    assert wanted in found.output
    assert "Traceback" not in found.output
