"""Logging in to the console of a real gateway, and who may call its API."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.gateway.console.browser import Browser, fetch
from toolwire.gateway.console.auth import ConsoleLogins
from toolwire.gateway.host import console_link
from toolwire.simulator import replies


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGateway]:
    home = tmp_path_factory.mktemp("home")
    with ServedGateway("openai-chat", replies(*["hi"] * 20), home=home) as one:
        yield one


def code_of(served: ServedGateway) -> str:
    return console_link(served.origin, served.running.logins).partition("#login=")[2]


def test_a_link_logs_in_once_with_a_strict_cookie(served: ServedGateway):
    code = code_of(served)
    got = fetch(served.origin, "POST", "/api/login", {"code": code})
    assert got.status == 200
    flags = got.fields["set-cookie"].split("; ")
    assert flags[0].startswith("tw_session=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags)
    browser = Browser(served.origin, cookie=flags[0], csrf=got.json["csrf"])
    state = browser.get("/api/login").json
    assert (state["logged_in"], state["csrf"]) == (True, browser.csrf)
    again = fetch(served.origin, "POST", "/api/login", {"code": code})
    assert (again.status, again.error) == (401, "this link was used before or is too old")
    assert again.json["error"]["hint"]


def test_the_token_logs_in_and_a_wrong_one_does_not(served: ServedGateway):
    assert Browser(served.origin, TOKEN).get("/api/login").json["logged_in"]
    assert fetch(served.origin, "POST", "/api/login", {"token": "wrong"}).status == 401
    assert fetch(served.origin, "POST", "/api/login", {}).status == 400
    assert fetch(served.origin, "POST", "/api/login", b"[").status == 400
    outside = fetch(served.origin, "GET", "/api/login").json
    assert (outside["logged_in"], outside["csrf"], outside["version"]) == (False, None, "")


def test_changes_need_the_csrf_header_a_json_body_and_the_own_origin(served: ServedGateway):
    browser = Browser(served.origin, TOKEN)
    no_csrf = {"cookie": browser.cookie}
    wrong = {**browser.headers, "x-toolwire-csrf": "0" * 64}
    foreign = {**browser.headers, "origin": "https://evil.example"}
    cross = {**browser.headers, "sec-fetch-site": "cross-site"}
    plain = {**browser.headers, "content-type": "text/plain"}
    for headers, status in ((no_csrf, 403), (wrong, 403), (foreign, 403), (cross, 403)):
        assert fetch(served.origin, "POST", "/api/logout", {}, headers).status == status
    assert fetch(served.origin, "POST", "/api/logout", b"{}", plain).status == 415
    assert browser.get("/api/login").json["logged_in"]
    out = browser.post("/api/logout")
    assert (out.status, "Max-Age=0" in out.fields["set-cookie"]) == (204, True)
    assert not browser.get("/api/login").json["logged_in"]
    assert browser.post("/api/logout").status == 401


def test_every_answer_has_the_headers_against_injection(served: ServedGateway):
    for path in ("/api/login", "/api/nowhere", "/console/nowhere.js", "/console/"):
        fields = fetch(served.origin, "GET", path).fields
        assert "require-trusted-types-for 'script'" in fields["content-security-policy"]
        assert "default-src 'none'" in fields["content-security-policy"]
        assert fields["x-content-type-options"] == "nosniff"
        assert fields["referrer-policy"] == "no-referrer"
        assert fields["cross-origin-opener-policy"] == "same-origin"


def test_a_browser_at_the_root_is_sent_to_the_console_and_programs_are_not(served: ServedGateway):
    page = fetch(served.origin, "GET", "/", headers={"accept": "text/html,*/*"})
    assert (page.status, page.fields["location"]) == (302, "./console/")
    assert "toolwire" in fetch(served.origin, "GET", "/").json
    assert fetch(served.origin, "GET", "/console").fields["location"] == "console/"
    assert fetch(served.origin, "POST", "/console/", {}).status == 405


def test_an_unknown_address_or_method_is_named(served: ServedGateway):
    missing = fetch(served.origin, "GET", "/api/nowhere")
    assert (missing.status, missing.error) == (404, "no such address: /api/nowhere")
    assert fetch(served.origin, "POST", "/api/nowhere", {}).status == 404
    assert fetch(served.origin, "GET", "/api/logout").status == 405


def test_a_page_that_is_logged_in_may_ask_models_and_no_other_page(served: ServedGateway):
    browser = Browser(served.origin, TOKEN)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert browser.post("/v1/chat/completions", body).status == 200
    assert served.records[-1].key == "console"
    without = {"cookie": browser.cookie}
    assert fetch(served.origin, "POST", "/v1/chat/completions", body, without).status == 401
    browser.post("/api/logout")
    assert browser.post("/v1/chat/completions", body).status == 401


def test_guesses_of_codes_are_counted(tmp_path: Path):
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path) as served:
        found = [
            fetch(served.origin, "POST", "/api/login", {"code": str(number)}).status
            for number in range(21)
        ]
    assert (found[0], found[-1]) == (401, 429)


def test_without_a_token_a_page_logs_in_by_itself_and_a_foreign_one_cannot(tmp_path: Path):
    with ServedGateway("openai-chat", replies("hi"), home=tmp_path, token=None) as served:
        assert fetch(served.origin, "GET", "/api/login").json["open"]
        assert Browser(served.origin).get("/api/login").json["logged_in"]
        foreign = {"origin": "https://evil.example"}
        assert fetch(served.origin, "POST", "/api/login", {}, foreign).status == 403


def test_sessions_outlive_a_restart_but_not_a_new_token(tmp_path: Path):
    file, now = tmp_path / "console.json", [1000.0]
    first = ConsoleLogins(file, "token", lambda: now[0])
    cookie = first.start()
    assert ConsoleLogins(file, "token", lambda: now[0]).expires(cookie) is not None
    assert ConsoleLogins(file, "other", lambda: now[0]).expires(cookie) is None
    now[0] += 11 * 3600
    assert first.expires(cookie) == now[0] + 12 * 3600
    now[0] += 13 * 3600
    assert first.expires(cookie) is None
    assert cookie not in file.read_text()


def test_a_code_is_good_for_a_minute(tmp_path: Path):
    now = [time.time()]
    logins = ConsoleLogins(tmp_path / "console.json", "token", lambda: now[0])
    code = logins.new_code()
    now[0] += 61
    assert logins.redeem(code) is None
    assert logins.redeem("") is None
