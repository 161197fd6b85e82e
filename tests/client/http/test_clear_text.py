"""Where credentials may go unencrypted: to this machine, and where the user allows it."""

import asyncio
import socket
import threading

import pytest

from tests.fakes.simulated import Place
from toolwire.client.http.pool import is_this_machine
from toolwire.client.http.transport import HttpLimits, HttpTransport, Outgoing
from toolwire.errors import BadInput, ConnectionFailed

KEY = (("authorization", "Bearer sk-secret-of-mine"),)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
REFUSED = "refusing to send a credential to"


def own_address() -> str:
    """An address of this machine that others can reach; empty if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        found: str = probe.getsockname()[0]
    return "" if found.startswith("127.") else found


class Listener:
    """Takes connections on every address, and keeps what was sent."""

    def __init__(self, host: str) -> None:
        self._socket = socket.create_server((host, 0))
        self.port: int = self._socket.getsockname()[1]
        self.heard = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
                connection.settimeout(2)
                self.heard += connection.recv(65536)
                connection.sendall(OK)
                connection.close()
            except OSError:
                if self._socket.fileno() < 0:
                    return

    def close(self) -> None:
        self._socket.close()


def get(url: str, **more: object) -> bytes:
    async def work() -> bytes:
        transport = HttpTransport(HttpLimits(connect=3.0, read=3.0))
        request = Outgoing(method="GET", url=url, **more)  # type: ignore[arg-type] - its members
        try:
            async with transport.open(request) as answer:
                return b"".join([chunk async for chunk in answer.chunks])
        finally:
            await transport.aclose()

    return asyncio.run(work())


CARRYING = {
    "bearer": {"headers": KEY},
    "x-api-key": {"headers": (("x-api-key", "secret-of-mine"),)},
    "cookie": {"headers": (("cookie", "session=secret-of-mine"),)},
}
ELSEWHERE = (
    *("192.0.2.1", "10.255.255.1", "[2001:db8::1]", "127.0.0.1.nip.invalid", "localhost.invalid"),
    *("loopback.invalid", "xn--localhost-.invalid", "[::ffff:192.0.2.1]", "[fe80::1]"),
)


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.parametrize("members", CARRYING.values(), ids=CARRYING.keys())
def test_a_credential_does_not_go_elsewhere_over_http(host: str, members: dict) -> None:
    with pytest.raises(BadInput, match=REFUSED):
        get(f"http://{host}:9/v1", **members)


@pytest.mark.parametrize(
    "url", ["http://me:secret@192.0.2.1/", "http://192.0.2.1/?api_key=secret99"]
)
def test_neither_does_one_in_the_address(url: str) -> None:
    with pytest.raises(BadInput, match=REFUSED) as caught:
        get(url)
    assert "secret" not in str(caught.value)


def test_a_proxy_is_elsewhere_too(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener("127.0.0.1")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{listener.port}")
    with pytest.raises(BadInput, match=REFUSED):
        get("http://192.0.2.1/v1", headers=KEY)
    assert listener.heard == b""
    get("http://192.0.2.1/v1", headers=KEY, insecure=True)
    assert b"sk-secret-of-mine" in listener.heard
    listener.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost", "0.0.0.0", "2130706433"])
def test_this_machine_is_reached_by_any_of_its_names(host: str) -> None:
    listener = Listener("127.0.0.1")
    assert get(f"http://{host}:{listener.port}/", headers=KEY) == b"ok"
    assert b"sk-secret-of-mine" in listener.heard
    listener.close()


def test_nothing_is_sent_to_an_address_that_others_reach() -> None:
    host = own_address()
    if not host:
        pytest.skip("this machine has no other address")
    listener = Listener("0.0.0.0")
    with pytest.raises(BadInput, match=REFUSED):
        get(f"http://{host}:{listener.port}/", headers=KEY)
    assert listener.heard == b""
    assert get(f"http://{host}:{listener.port}/") == b"ok"
    assert get(f"http://{host}:{listener.port}/", headers=KEY, insecure=True) == b"ok"
    listener.close()


def test_without_a_credential_any_server_is_reached() -> None:
    with pytest.raises(ConnectionFailed):
        get("http://localhost.invalid/")


@pytest.mark.parametrize(
    ("number", "local"),
    [
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("fe80::1%lo", False),
        ("192.168.0.1", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_numbers_decide(number: str, local: bool) -> None:
    assert is_this_machine(number) is local


WAYS = {
    "upstream": (["--upstream", "openai-chat=http://192.0.2.1/v1,key=sk-secret-of-mine"], {}),
    "a login in an upstream": (["--upstream", "openai-chat=http://me:secret99@192.0.2.1/v1"], {}),
    "base url": (
        ["--model", "openai/gpt-5.6", "--base-url", "http://192.0.2.1/v1"],
        {"OPENAI_API_KEY": "sk-secret-of-mine"},
    ),
    "variable": (
        ["--model", "anthropic/claude-sonnet-5"],
        {"ANTHROPIC_API_KEY": "sk-secret-of-mine", "ANTHROPIC_BASE_URL": "http://192.0.2.1"},
    ),
    "own variable": (
        ["--model", "google/gemini-3.5-flash"],
        {"GEMINI_API_KEY": "sk-secret-of-mine", "TOOLWIRE_GOOGLE_BASE_URL": "http://192.0.2.1/v1"},
    ),
}


@pytest.mark.parametrize(("args", "environ"), WAYS.values(), ids=WAYS.keys())
def test_every_way_to_an_address_is_refused(tmp_path, args: list[str], environ: dict) -> None:
    done = Place(tmp_path).toolwire("run", "hi", *args, env=environ)
    assert done.code != 0
    assert REFUSED in done.err
    assert "allow_insecure_http" in done.err
    assert "secret" not in done.err


@pytest.mark.sweep
def test_the_user_can_allow_it(tmp_path) -> None:
    host = own_address()
    if not host:
        pytest.skip("this machine has no other address")
    place = Place(tmp_path)
    listener = Listener("0.0.0.0")
    upstream = f"openai-chat=http://{host}:{listener.port}/v1,key=sk-secret-of-mine"
    place.toolwire("run", "hi", "--upstream", upstream)
    assert listener.heard == b""
    env = {"TOOLWIRE_ALLOW_INSECURE_HTTP": "1"}
    place.toolwire("run", "hi", "--upstream", upstream, "--max-turns", "1", env=env)
    assert b"sk-secret-of-mine" in listener.heard
    listener.heard = b""
    (place.home / "config.toml").write_text(
        f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "http://{host}:{listener.port}/v1"\n'
        'key_env = "MINE"\nallow_insecure_http = true\n'
    )
    place.toolwire("run", "hi", "--model", "mine/m", env={"MINE": "sk-secret-of-mine"})
    assert b"sk-secret-of-mine" in listener.heard
    listener.close()


def test_a_project_cannot_allow_it(tmp_path) -> None:
    place = Place(tmp_path)
    (place.work / ".toolwire").mkdir()
    (place.work / ".toolwire" / "config.toml").write_text("allow_insecure_http = true\n")
    upstream = "openai-chat=http://192.0.2.1/v1,key=sk-secret-of-mine"
    for trusted in ("0", "1"):
        env = {"TOOLWIRE_TRUST_WORKSPACE": trusted}
        done = place.toolwire("run", "hi", "--upstream", upstream, env=env)
        assert REFUSED in done.err or "a project may not set this" in done.err
