import asyncio
import traceback
from pathlib import Path

import pytest

from tests.client.stand_in import Answer, Clock, StandIn, stand_in
from toolwire.auth import copilot
from toolwire.auth.copilot import CopilotCredential, CopilotSettings, login
from toolwire.auth.credentials import credential_for
from toolwire.auth.store import Store, StoredLogin
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError, ToolwireError
from toolwire.providers import OAuth, Provider

GITHUB_TOKEN = "gho_planted_github_token"
CHAT_TOKEN = "tid=planted;exp=1;sku=planted_chat"
CODE = "/login/device/code"
TOKEN = "/login/oauth/access_token"
EXCHANGE = "/copilot_internal/v2/token"
GIVEN = (200, {"access_token": GITHUB_TOKEN, "token_type": "bearer"})
PENDING = (200, {"error": "authorization_pending"})
IDENTITY = {"Editor-Version": "toolwire/1"}


def settings(vendor: StandIn) -> CopilotSettings:
    return CopilotSettings(client_id="client-of-mine", github=vendor.url, api=vendor.url)


def device_code(**changed: object) -> Answer:
    body = {
        "device_code": "planted-device-code",
        "user_code": "ABCD-1234",
        "verification_uri": "https://github.example/device",
        "expires_in": 900,
        "interval": 5,
    }
    return 200, {**body, **changed}


def log_in(vendor: StandIn, clock: Clock) -> tuple[Secret, list[copilot.DeviceCode]]:
    shown: list[copilot.DeviceCode] = []
    token = asyncio.run(login(settings(vendor), shown.append, sleep=clock.sleep, now=clock.now))
    return token, shown


def failure(vendor: StandIn, clock: Clock) -> ToolwireError:
    with pytest.raises(ToolwireError) as caught:
        log_in(vendor, clock)
    assert "planted" not in "".join(traceback.format_exception(caught.value))
    return caught.value


def test_the_device_flow_shows_a_code_and_waits_at_the_servers_pace() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(CODE, device_code())
        vendor.on(TOKEN, PENDING, (200, {"error": "slow_down", "interval": 10}), PENDING, GIVEN)
        token, shown = log_in(vendor, clock)
    assert token.reveal() == GITHUB_TOKEN
    assert [(code.user_code, code.verification_uri) for code in shown] == [
        ("ABCD-1234", "https://github.example/device")
    ]
    assert "planted" not in repr(shown)
    assert clock.slept == [5, 5, 10, 10]
    assert vendor.to(CODE)[0].form == {"client_id": "client-of-mine", "scope": "read:user"}
    assert vendor.to(CODE)[0].headers["accept"] == "application/json"
    assert vendor.to(TOKEN)[0].form == {
        "client_id": "client-of-mine",
        "device_code": "planted-device-code",
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
    }


def test_slow_down_adds_five_seconds_even_when_the_server_names_none() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(CODE, device_code(interval=2))
        vendor.on(TOKEN, (200, {"error": "slow_down"}), (200, {"error": "slow_down"}), GIVEN)
        log_in(vendor, clock)
    assert clock.slept == [2, 7, 12]


def test_a_server_in_trouble_is_asked_again_more_slowly() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(CODE, device_code())
        vendor.on(TOKEN, (503, b"<html>"), (429, {}), GIVEN)
        log_in(vendor, clock)
    assert clock.slept == [5, 10, 15]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {"error": "expired_token"}), "the code ran out"),
        ((200, {"error": "access_denied"}), "refused in the browser"),
        ((200, {"error": "incorrect_client_credentials"}), "incorrect_client_credentials"),
        ((401, {"error": f"bad {GITHUB_TOKEN} planted-device-code"}), "bad [hidden] [hidden]"),
    ],
)
def test_the_flow_ends_when_the_server_says_so(answer: Answer, words: str) -> None:
    Secret(GITHUB_TOKEN)
    with stand_in() as vendor:
        vendor.on(CODE, device_code())
        vendor.on(TOKEN, PENDING, answer)
        error = failure(vendor, Clock())
    assert error.kind is ErrorKind.AUTH
    assert words in str(error)
    assert len(vendor.to(TOKEN)) == 2


def test_the_flow_ends_when_the_code_has_run_out() -> None:
    with stand_in() as vendor:
        vendor.on(CODE, device_code(expires_in=12))
        vendor.on(TOKEN, PENDING)
        assert "the code ran out" in str(failure(vendor, Clock()))
    assert len(vendor.to(TOKEN)) == 2


def test_without_a_client_id_nothing_is_asked() -> None:
    with stand_in() as vendor, pytest.raises(ProviderError, match="set TOOLWIRE_COPILOT_CLIENT_ID"):
        asyncio.run(
            login(CopilotSettings(github=vendor.url), print, sleep=Clock().sleep, now=Clock().now)
        )
    assert vendor.asked == []


def test_an_unknown_client_id_is_an_error_of_the_settings() -> None:
    with stand_in() as vendor:
        vendor.on(CODE, (404, {"error": "Not Found"}))
        assert "check the client id" in str(failure(vendor, Clock()))


def test_secrets_are_sent_to_no_plain_http_elsewhere() -> None:
    elsewhere = CopilotSettings(client_id="x", github="http://github.example")
    with pytest.raises(BadInput, match="use https"):
        asyncio.run(login(elsewhere, print, sleep=Clock().sleep, now=Clock().now))


def credential(vendor: StandIn, clock: Clock) -> CopilotCredential:
    return CopilotCredential(
        Secret(GITHUB_TOKEN),
        settings(vendor),
        identity=IDENTITY,
        origin="from a test",
        now=clock.now,
    )


def exchanged(
    clock: Clock, token: str = CHAT_TOKEN, seconds: float = 1500, **more: object
) -> Answer:
    return 200, {"token": token, "expires_at": int(clock.time + seconds), **more}


def test_the_github_token_is_traded_and_the_chat_address_follows() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(EXCHANGE, exchanged(clock, endpoints={"api": "https://api.business.example/"}))

        async def ask() -> tuple[object, str]:
            asked = credential(vendor, clock)
            return await asked(False), await asked.base_url()

        assert asyncio.run(ask()) == (
            (("authorization", f"Bearer {CHAT_TOKEN}"),),
            "https://api.business.example",
        )
    (asked,) = vendor.to(EXCHANGE)
    assert asked.headers["authorization"] == f"token {GITHUB_TOKEN}"
    assert asked.headers["editor-version"] == "toolwire/1"


def test_an_address_without_encryption_is_not_followed() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(EXCHANGE, exchanged(clock, endpoints={"api": "http://elsewhere.example"}))
        assert asyncio.run(credential(vendor, clock).base_url()) == ""


def test_a_token_is_renewed_five_minutes_before_its_end() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(EXCHANGE, exchanged(clock), exchanged(clock, "second-planted", 9000))

        async def ask() -> list[str]:
            asked, seen = credential(vendor, clock), []
            for wait in (0, 1199, 2):
                clock.time += wait
                seen.append((await asked(False))[0][1])
            return seen

        assert asyncio.run(ask()) == [f"Bearer {CHAT_TOKEN}"] * 2 + ["Bearer second-planted"]


def test_many_refused_requests_cause_one_exchange() -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(EXCHANGE, exchanged(clock), exchanged(clock, "second-planted"))

        async def ask() -> set[str]:
            asked = credential(vendor, clock)
            await asyncio.gather(*(asked(False) for _ in range(5)))
            clock.time += 60
            given = await asyncio.gather(*(asked(True) for _ in range(5)))
            return {headers[0][1] for headers in given}

        assert asyncio.run(ask()) == {"Bearer second-planted"}
    assert len(vendor.to(EXCHANGE)) == 2


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ((401, {"message": "Bad credentials"}), ErrorKind.AUTH, "toolwire login copilot"),
        ((403, {"message": "no seat"}), ErrorKind.PERMISSION, "does this account have Copilot?"),
        ((404, {"message": f"x {GITHUB_TOKEN}"}), ErrorKind.NOT_FOUND, "[hidden]"),
        ((500, b"oops"), ErrorKind.SERVER, "status 500"),
    ],
)
def test_a_refused_exchange_says_what_to_do(answer: Answer, kind: ErrorKind, words: str) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(EXCHANGE, answer)
        asked = credential(vendor, clock)
        with pytest.raises(ProviderError) as caught:
            asyncio.run(asked.base_url())
    assert caught.value.kind is kind
    assert words in str(caught.value)
    assert "planted" not in "".join(traceback.format_exception(caught.value)) + repr(asked)


def test_a_stored_login_is_found_by_the_provider(tmp_path: Path) -> None:
    provider = Provider(
        name="copilot",
        title="GitHub Copilot",
        dialect="openai-chat",
        base_url="https://api.githubcopilot.com",
        auth=OAuth(flow="copilot", env=("GITHUB_COPILOT_TOKEN",)),
        headers=tuple(IDENTITY.items()),
    )
    store, clock = Store(tmp_path / "credentials.json"), Clock()
    with pytest.raises(ProviderError, match="set GITHUB_COPILOT_TOKEN, or run"):
        credential_for(provider, environ={}, store=store)
    store.write("copilot", StoredLogin(token=Secret(GITHUB_TOKEN)))
    with stand_in() as vendor:
        vendor.on(EXCHANGE, exchanged(clock))
        environ = {"TOOLWIRE_COPILOT_API_URL": vendor.url}
        asked = credential_for(provider, environ=environ, store=store, now=clock.now)
        assert asyncio.run(asked.base_url()) == ""
    assert vendor.to(EXCHANGE)[0].headers["editor-version"] == "toolwire/1"
    assert CHAT_TOKEN not in store.file.read_text()
