import asyncio
import json
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from tests.client.stand_in import Clock, StandIn, stand_in
from toolwire.auth.credentials import Credential, credential_for
from toolwire.auth.store import Store
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.providers import GoogleLogin, Provider

PROVIDER = Provider(
    name="vertex",
    title="Vertex AI",
    dialect="gemini",
    base_url="https://{location}-aiplatform.googleapis.com",
    auth=GoogleLogin(),
)
USER = {
    "type": "authorized_user",
    "client_id": "client-of-mine",
    "client_secret": "planted-client-secret",
    "refresh_token": "planted-refresh-token",
    "quota_project_id": "billed",
}


def written(folder: Path, account: Any, name: str = "adc.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(account if isinstance(account, str) else json.dumps(account))
    return path


def credential(
    folder: Path, clock: Clock, vendor: StandIn | None = None, flag: str = "", /, **environ: str
) -> Credential:
    if vendor is not None:
        environ["TOOLWIRE_GOOGLE_TOKEN_URL"] = f"{vendor.url}/token"
    store = Store(folder / "credentials.json")
    return credential_for(PROVIDER, flag=flag, environ=environ, store=store, now=clock.now)


async def ask(asked: Credential, *refresh: bool) -> list[tuple[tuple[str, str], ...]]:
    return [await asked(each) for each in refresh]


def test_a_users_own_credentials_are_renewed_by_us(tmp_path: Path) -> None:
    clock, path = Clock(), written(tmp_path, USER)
    with stand_in() as vendor:
        vendor.on("/token", (200, {"access_token": "planted-access", "expires_in": 3600}))
        asked = credential(tmp_path, clock, vendor, GOOGLE_APPLICATION_CREDENTIALS=str(path))
        wanted = (("authorization", "Bearer planted-access"), ("x-goog-user-project", "billed"))
        assert asyncio.run(ask(asked, False, False, True)) == [wanted] * 3
        assert asked.origin == f"application default credentials from {path}"
        assert len(vendor.to("/token")) == 1
        clock.time += 3301
        asyncio.run(ask(asked, False))
        clock.time += 60
        asyncio.run(ask(asked, True))
    assert len(vendor.to("/token")) == 3
    assert vendor.to("/token")[0].form == {
        "grant_type": "refresh_token",
        "refresh_token": "planted-refresh-token",
        "client_id": "client-of-mine",
        "client_secret": "planted-client-secret",
    }


def test_gclouds_own_file_is_found(tmp_path: Path) -> None:
    name = ".config/gcloud/application_default_credentials.json"
    path = written(tmp_path, USER, name)
    assert str(path) in credential(tmp_path, Clock(), HOME=str(tmp_path)).origin
    path = written(tmp_path, USER, "sdk/application_default_credentials.json")
    found = credential(tmp_path, Clock(), HOME=str(tmp_path), CLOUDSDK_CONFIG=str(path.parent))
    assert str(path) in found.origin


def test_a_key_is_for_express_mode_and_has_its_own_address(tmp_path: Path) -> None:
    asked = credential(tmp_path, Clock(), GOOGLE_API_KEY="planted-key")
    assert asyncio.run(ask(asked, False)) == [(("x-goog-api-key", "planted-key"),)]
    assert asyncio.run(asked.base_url()) == "https://aiplatform.googleapis.com/v1beta1"


def test_a_named_project_means_its_account_before_a_key_in_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, USER)
    environ = {
        "GOOGLE_APPLICATION_CREDENTIALS": str(path),
        "GOOGLE_CLOUD_PROJECT": "mine",
        "GOOGLE_API_KEY": "planted-key",
    }
    assert str(path) in credential(tmp_path, Clock(), **environ).origin
    flagged = credential(tmp_path, Clock(), None, "planted-flag", **environ)
    assert flagged.origin == "from the command line"
    del environ["GOOGLE_APPLICATION_CREDENTIALS"]
    assert credential(tmp_path, Clock(), **environ).origin == "from GOOGLE_API_KEY"


def test_a_withdrawn_login_says_how_to_renew_it(tmp_path: Path) -> None:
    path = written(tmp_path, USER)
    with stand_in() as vendor:
        vendor.on("/token", (400, {"error": "invalid_grant", "error_description": "revoked"}))
        asked = credential(tmp_path, Clock(), vendor, GOOGLE_APPLICATION_CREDENTIALS=str(path))
        with pytest.raises(ProviderError) as caught:
            asyncio.run(ask(asked, False))
    assert caught.value.kind is ErrorKind.AUTH
    assert "gcloud auth application-default login" in str(caught.value)
    assert "planted" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("content", ["planted not json", "[]", '{"type": "authorized_user"}'])
def test_a_file_that_cannot_be_used_is_named_and_not_quoted(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, content)
    asked = credential(tmp_path, Clock(), GOOGLE_APPLICATION_CREDENTIALS=str(path))
    with pytest.raises((BadInput, ProviderError)) as caught:
        asyncio.run(ask(asked, False))
    assert str(path) in str(caught.value)
    assert "planted" not in "".join(traceback.format_exception(caught.value))


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="which is not a file"):
        credential(tmp_path, Clock(), GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "none"))


def private_key() -> str:
    pytest.importorskip("google.auth")
    rsa: Any = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def service_account(vendor: StandIn, key: str) -> dict[str, str]:
    return {
        "type": "service_account",
        "client_email": "robot@mine.example",
        "private_key_id": "1",
        "private_key": key,
        "token_uri": f"{vendor.url}/token",
    }


def test_a_service_account_goes_through_google_auth(tmp_path: Path) -> None:
    key = private_key()
    with stand_in() as vendor:
        vendor.on("/token", (200, {"access_token": "planted-robot", "expires_in": 3600}))
        path = written(tmp_path, service_account(vendor, key))
        asked = credential(tmp_path, Clock(), GOOGLE_APPLICATION_CREDENTIALS=str(path))
        assert asyncio.run(ask(asked, False)) == [(("authorization", "Bearer planted-robot"),)]
    grant = vendor.to("/token")[0].form["grant_type"]
    assert grant == "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.mark.parametrize("broken", [True, False])
def test_a_service_account_that_is_refused_reports_no_secret(tmp_path: Path, broken: bool) -> None:
    key = private_key()
    with stand_in() as vendor:
        vendor.on("/token", (401, {"error": "invalid_grant", "error_description": "planted words"}))
        account = service_account(vendor, "planted broken key" if broken else key)
        path = written(tmp_path, account)
        asked = credential(tmp_path, Clock(), GOOGLE_APPLICATION_CREDENTIALS=str(path))
        with pytest.raises(ProviderError) as caught:
            asyncio.run(ask(asked, False))
    assert caught.value.kind is ErrorKind.AUTH
    assert "planted" not in "".join(traceback.format_exception(caught.value))


def test_without_google_auth_the_extra_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"type": "service_account"})
    code = (
        "import sys; sys.modules['google.auth'] = None; sys.modules['google'] = None\n"
        "import asyncio; from pathlib import Path\n"
        "from toolwire.auth.google import AdcCredential\n"
        "asked = AdcCredential(Path(sys.argv[1]), scope='s', now=lambda: 0.0)\n"
        "try: asyncio.run(asked.__call__(False))\n"
        "except Exception as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "pip install toolwire[vertex]" in done.stdout
