import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.mcp.auth_server import Agent, AuthServer, auth_server, parameters
from toolwire.errors import ProviderError, ToolwireError
from toolwire.mcp.connection import State
from toolwire.mcp.oauth import Challenge, check_address

Part = Callable[[AuthServer, Agent], Awaitable[Any]]


def play(folder: Path, part: Part) -> Any:
    """Runs a test's part against a new authorization server."""

    async def run() -> Any:
        async with auth_server() as server:
            return await part(server, Agent(folder, server))

    return asyncio.run(run())


def test_one_login_serves_all_later_runs(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        for _ in range(3):
            assert await agent.call() == "hello"
        assert (server.times("register"), server.times("authorize")) == (1, 1)
        asked = parameters(agent.shown[0])
        assert asked["resource"] == f"{server.address}/mcp"
        assert asked["code_challenge_method"] == "S256"
        assert asked["scope"] == "read"

    play(tmp_path, part)


def test_a_registration_outlives_its_tokens(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        server.access.clear()
        server.refreshes.clear()
        assert await agent.call() == "hello"
        assert (server.times("register"), server.times("authorize")) == (1, 2)

    play(tmp_path, part)


def test_a_redirect_port_that_is_taken_costs_a_new_registration_not_the_login(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        [client] = server.clients.values()
        port = int(client["redirect_uris"][0].rpartition(":")[2].partition("/")[0])
        server.access.clear()
        server.refreshes.clear()
        with socket.create_server(("127.0.0.1", port)):
            assert await agent.call() == "hello"
        assert server.times("register") == 2

    play(tmp_path, part)


def test_an_expired_token_is_renewed_with_the_resource(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.lifetime = -1
        with pytest.raises(ToolwireError):
            await agent.call()
        server.lifetime = 3600
        assert await agent.call(headless=True) == "hello"
        renewals = [fields for name, fields in server.asked if name == "token refresh_token"]
        assert renewals[-1]["resource"] == f"{server.address}/mcp"
        assert server.times("authorize") <= 4

    play(tmp_path, part)


def test_a_token_of_a_minute_is_not_renewed_at_each_request(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.lifetime = 60
        for _ in range(2):
            await agent.call()
        assert server.times("token refresh_token") == 0

    play(tmp_path, part)


def test_a_failure_of_the_authorization_server_costs_nothing(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        server.access.clear()
        server.broken["token refresh_token"] = (503, {"error": "temporarily_unavailable"})
        login = agent.login(headless=True)
        assert "authorization" in await login.headers()
        with pytest.raises(ProviderError, match="cannot renew the login now"):
            await login._renewed()
        server.broken.clear()
        assert await agent.call(headless=True) == "hello"
        assert (server.times("register"), server.times("authorize")) == (1, 1)

    play(tmp_path, part)


def test_a_token_that_is_still_valid_is_used_while_renewing_fails(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.lifetime = 20
        await agent.call()
        server.broken["token refresh_token"] = (500, {})
        store = agent.store()
        url = f"{server.address}/mcp"
        kept = store.read(url)
        replace = msgspec.structs.replace
        aged = {issuer: replace(each, renew_at=1.0) for issuer, each in kept.tokens.items()}
        store.write(url, replace(kept, tokens=aged))
        assert await agent.call(headless=True) == "hello"
        assert server.times("token refresh_token") >= 1

    play(tmp_path, part)


def test_only_an_unknown_client_is_registered_anew(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        server.access.clear()
        server.clients.clear()
        assert await agent.call() == "hello"
        assert server.times("register") == 2

    play(tmp_path, part)


def test_a_registration_that_the_token_endpoint_does_not_know_is_replaced(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        server.access.clear()
        server.refreshes.clear()
        first = dict(server.clients)

        class Forgetful(dict[str, Any]):
            def __contains__(self, key: object) -> bool:
                return key not in first and super().__contains__(key)

        server.clients = Forgetful(first)
        assert await agent.call() == "hello"
        assert server.times("register") == 2

    play(tmp_path, part)


def test_a_dead_refresh_token_costs_a_login_not_the_registration(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        server.access.clear()
        server.refreshes.clear()
        async with agent.run(headless=True) as connection:
            with pytest.raises(ToolwireError, match="toolwire mcp login test"):
                await connection.ready()
            assert connection.state is State.NEEDS_LOGIN
        kept = agent.store().read(f"{server.address}/mcp")
        assert list(kept.clients) == [server.address]
        assert [each.refresh for each in kept.tokens.values()] == [""]

    play(tmp_path, part)


def test_without_a_user_nothing_is_opened(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        async with agent.run(headless=True) as connection:
            with pytest.raises(ToolwireError, match="needs a login; run: toolwire mcp login test"):
                await connection.ready()
            assert connection.state is State.NEEDS_LOGIN
        assert server.asked == []

    play(tmp_path, part)


def test_further_scopes_join_those_that_were_granted(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        async with agent.run() as connection:
            await connection.ready()
            server.needs = {"read", "write"}
            assert (await connection.call("echo", {}, None))["content"]
        assert [set(parameters(url)["scope"].split()) for url in agent.shown] == [
            {"read"},
            {"read", "write"},
        ]

    play(tmp_path, part)


def test_scopes_that_are_never_granted_end_after_three_tries(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        async with agent.run() as connection:
            await connection.ready()
            server.needs = {"never"}
            server.codes = _Reading(server.codes)
            for _ in range(3):
                with pytest.raises(ToolwireError):
                    await connection.call("echo", {}, None)
        assert len(agent.shown) <= 4

    play(tmp_path, part)


class _Reading(dict[str, Any]):
    """Codes that grant reading alone."""

    def pop(self, key: str, default: Any = None) -> Any:
        found = super().pop(key, default)
        return found and {**found, "scope": "read"}


def test_a_configured_client_is_used_as_it_is(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server.clients["mine"] = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
        server.secret = "configured-secret"
        server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        agent.environ["SECRET"] = "configured-secret"
        own: dict[str, Any] = {
            "client_id": "mine",
            "client_secret_env": "SECRET",
            "redirect_port": port,
        }
        assert await agent.call(**own) == "hello"
        assert server.times("register") == 0
        server.metadata |= {"issuer": f"{server.address}/", "token_endpoint": "https://x.test/t"}
        server.protected["authorization_servers"] = [f"{server.address}/"]
        server.access.clear()
        server.refreshes.clear()
        with pytest.raises(ToolwireError, match="toolwire mcp logout test"):
            await agent.login(**own).log_in(Challenge(), agent.shown.append)

    play(tmp_path, part)


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        ({"iss": "https://other.test"}, "the answer came from https://other.test"),
        ({"iss": ""}, "the answer came from an unnamed server"),
        ({"code": "", "error": "access_denied"}, "refused in the browser"),
        ({"code": "made up"}, "gave no token"),
    ],
    ids=str,
)
def test_an_answer_of_the_browser_that_is_not_right_is_refused(
    tmp_path: Path, callback: dict[str, str], words: str
):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.callback = callback
        with pytest.raises(ToolwireError, match=words):
            await agent.login().log_in(Challenge(), agent.login()._show or print)

    play(tmp_path, part)


def test_a_refused_login_is_not_asked_for_again(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.callback = {"code": "", "error": "access_denied"}
        async with agent.run() as connection:
            with pytest.raises(ToolwireError, match="refused in the browser"):
                await connection.ready()
            assert connection.state is State.NEEDS_LOGIN
        assert len(agent.shown) == 1

    play(tmp_path, part)


def test_a_code_of_another_login_is_not_taken(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.callback = {"state": "of-another-login"}
        login = agent.login()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await login.log_in(Challenge(), login._show or print)
        assert server.times("token authorization_code") == 0

    play(tmp_path, part)


@pytest.mark.parametrize(
    ("metadata", "protected", "words"),
    [
        ({"authorization_endpoint": "javascript:alert(1)"}, {}, "which is not safe"),
        ({"authorization_endpoint": "file:///etc/passwd"}, {}, "which is not safe"),
        ({"authorization_endpoint": "http://other.test/a"}, {}, "which is not safe"),
        ({"authorization_endpoint": "https://a@b.test/"}, {}, "which is not safe"),
        ({"authorization_endpoint": "https://b.test/\x1b[2J"}, {}, "which is not safe"),
        ({"token_endpoint": "http://192.168.1.1/token"}, {}, "which is not safe"),
        ({"registration_endpoint": "ftp://b.test"}, {}, "which is not safe"),
        ({"issuer": "https://other.test"}, {}, "names the issuer"),
        ({"code_challenge_methods_supported": ["plain"]}, {}, "PKCE"),
        ({}, {"resource": "https://other.test/mcp"}, "not about"),
        ({}, {"authorization_servers": ["http://10.0.0.1"]}, "which is not safe"),
    ],
    ids=str,
)
def test_metadata_that_leads_elsewhere_is_refused(
    tmp_path: Path, metadata: dict[str, Any], protected: dict[str, Any], words: str
):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.metadata, server.protected = metadata, protected
        with pytest.raises(ToolwireError, match=words) as caught:
            await agent.login().log_in(Challenge(), agent.shown.append)
        assert "\x1b" not in str(caught.value)
        assert agent.shown == []
        assert server.asked == []

    play(tmp_path, part)


@pytest.mark.parametrize(
    "found",
    [
        "https://10.0.0.1/token",
        "https://127.0.0.1/token",
        "http://127.0.0.1:8080/token",
        "https://[::1]/token",
        "https://169.254.169.254/latest",
        "https://localhost/token",
        "https://0x7f000001/token",
        "https://metadata.internal/token",
    ],
)
def test_a_public_server_cannot_reach_into_a_private_network(found: str):
    with pytest.raises(ProviderError, match="private network"):
        check_address(found, "https://mcp.example.com/mcp")
    check_address("https://login.example.org/token", "https://mcp.example.com/mcp")


def test_metadata_on_another_host_must_be_about_this_server(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        async with auth_server() as other:
            other.protected = {"resource": ""}
            known = f"{other.address}/.well-known/oauth-protected-resource/mcp"
            with pytest.raises(ToolwireError, match="is about nothing"):
                await agent.login().log_in(Challenge(metadata=known), agent.shown.append)
            assert agent.shown == []

    play(tmp_path, part)


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize(
    "endpoint", ["register", "token authorization_code", "token refresh_token"]
)
def test_no_secret_follows_a_redirect_of_the_authorization_server(
    tmp_path: Path, endpoint: str, status: int
):
    async def part(server: AuthServer, agent: Agent) -> None:
        async with auth_server() as other:
            path = endpoint.partition(" ")[0]
            if endpoint == "token refresh_token":
                await agent.call()
                server.access.clear()
            server.broken[endpoint] = (status, {"location": f"{other.address}/{path}"})
            with pytest.raises(ToolwireError):
                await agent.call(headless=endpoint == "token refresh_token")
            assert server.times(endpoint) >= 1
            assert other.asked == []

    play(tmp_path, part)


def test_no_token_is_in_an_error(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        await agent.call()
        url = f"{server.address}/mcp"
        [tokens] = agent.store().read(url).tokens.values()
        server.access.clear()
        server.broken["token refresh_token"] = (
            400,
            {"error": "invalid_request", "error_description": f"no {tokens.refresh}"},
        )
        server.broken["authorize"] = (400, {})
        texts: list[str] = []
        async with agent.run(headless=True) as connection:
            with pytest.raises(ToolwireError) as caught:
                await connection.ready()
            texts += [str(caught.value), connection.error, repr(caught.value)]
        login = agent.login(headless=True)
        server.broken["token refresh_token"] = (500, {"error_description": tokens.refresh})
        await login.headers()
        with pytest.raises(ToolwireError) as caught:
            await login._renewed()
        texts.append(str(caught.value))
        assert not any(tokens.refresh in text or tokens.access in text for text in texts)

    play(tmp_path, part)


_REFRESH = """
import asyncio, sys
from pathlib import Path
from tests.mcp.auth_server import Agent, AuthServer
server = AuthServer()
server.address = sys.argv[2]
async def main():
    login = Agent(Path(sys.argv[1]), server).login(headless=True)
    print((await login.headers())["authorization"])
asyncio.run(main())
"""


def test_of_many_processes_one_renews_and_all_go_on(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.lifetime = 0.5
        await agent.login().log_in(Challenge(), agent.login()._show or print)
        await asyncio.sleep(0.6)
        server.lifetime = 3600
        server.refresh_seconds = 0.5
        words = (sys.executable, "-c", _REFRESH, str(tmp_path), server.address)
        root = Path(__file__).parents[2]
        runs = [
            await asyncio.create_subprocess_exec(*words, cwd=root, stdout=asyncio.subprocess.PIPE)
            for _ in range(3)
        ]
        printed = [(await run.communicate())[0] for run in runs]
        # Two logins of one process must not block each other either.
        both = await asyncio.gather(*(agent.login(headless=True).headers() for _ in range(2)))
        assert len({*printed}) == 1
        assert {each["authorization"] for each in both} == {printed[0].decode().strip()}
        assert server.times("token refresh_token") == 1

    play(tmp_path, part)


def test_two_logins_of_one_process_renew_without_blocking_each_other(tmp_path: Path):
    async def part(server: AuthServer, agent: Agent) -> None:
        server.lifetime = 0.5
        await agent.login().log_in(Challenge(), agent.login()._show or print)
        await asyncio.sleep(0.6)
        server.lifetime = 3600
        async with asyncio.timeout(20):
            both = await asyncio.gather(*(agent.login(headless=True).headers() for _ in range(2)))
        assert both[0] == both[1]
        assert server.times("token refresh_token") == 1

    play(tmp_path, part)
