"""A login in a base address stays out of everything that is written or printed."""

import base64
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.client.hostile import frame, hostile, once
from tests.fakes.simulated import Place
from toolwire.client.redact import Redactor, secrets_of

USER, PASSWORD = "wirebot", "p@ss/wörd-9:x"
LOGIN = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}"
PAIR = f"{USER}:{PASSWORD}"
BASIC = base64.b64encode(PAIR.encode()).decode()
QUERY = "q-secret-77"
FORMS = (
    PASSWORD,
    quote(PASSWORD, safe=""),
    quote(PASSWORD),
    re.sub("%..", lambda found: found[0].lower(), quote(PASSWORD, safe="")),
    BASIC,
    BASIC.rstrip("="),
    base64.urlsafe_b64encode(PAIR.encode()).decode(),
    json.dumps(PASSWORD)[1:-1],
    QUERY,
)
ECHO = " | ".join(FORMS)
URL = "http://{login}@{host}/v1?api_key={query}"


def text_answer() -> bytes:
    end = frame({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    return frame({"choices": [{"delta": {"content": ECHO}}]}) + end + b"data: [DONE]\n\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def found_in(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    return [form for form in FORMS if form in text]


@pytest.mark.parametrize("status", [200, 400, 401])
def test_a_login_is_in_no_session_record_or_error(place: Place, status: int) -> None:
    error = json.dumps({"error": {"message": f"bad login {ECHO}"}}).encode()
    attack = once(text_answer() if status == 200 else error, status=status)
    record = place.root / "record.jsonl"
    with hostile(attack) as origin:
        url = URL.format(login=LOGIN, host=origin.removeprefix("http://"), query=QUERY)
        args = ("run", "hi", "--upstream", f"openai-chat={url}", "--record", str(record))
        done = place.toolwire(*args)
        assert (done.code == 0) is (status == 200), done.err
        assert found_in(done.err.encode()) == []
        if status != 200:
            assert found_in(done.out.encode()) == []
    written = [record, *(one for one in place.home.rglob("*") if one.is_file())]
    assert len(written) > 1
    for file in written:
        assert found_in(file.read_bytes()) == [], file


def test_an_address_without_a_server_shows_no_login(place: Place) -> None:
    url = URL.format(login=LOGIN, host="127.0.0.1:9", query=QUERY)
    done = place.toolwire("run", "hi", "--upstream", f"openai-chat={url}", "--max-turns", "1")
    assert done.code == 1
    assert found_in((done.out + done.err).encode()) == []


def test_commands_show_addresses_without_a_login(place: Place) -> None:
    url = URL.format(login=LOGIN, host="127.0.0.1:9", query=QUERY)
    entry = f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{url}"\n'
    (place.home / "config.toml").write_text(f'default_model = "mine/m"\n{entry}')
    for args in (["providers", "mine"], ["providers", "--json"], ["doctor"], ["doctor", "--json"]):
        done = place.toolwire(*args)
        assert found_in((done.out + done.err).encode()) == [], args


@pytest.mark.parametrize("password", ["hunter2", "s3cret", "long-enough-password"])
def test_short_passwords_are_hidden_as_words_of_their_own(password: str) -> None:
    redactor = Redactor(secrets_of(f"https://me:{password}@host/", ()))
    assert password not in redactor.text(f"the password {password} of me:{password}@host")
    assert redactor.text("a hunter2000 and me") == "a hunter2000 and me"


def test_a_user_name_beside_a_password_is_an_ordinary_word() -> None:
    redactor = Redactor(secrets_of("https://developer:hunter-22@host/", ()))
    assert redactor.text("a developer writes") == "a developer writes"
    assert "token-alone-9" not in Redactor(secrets_of("https://token-alone-9@host/", ())).text(
        "token-alone-9"
    )
