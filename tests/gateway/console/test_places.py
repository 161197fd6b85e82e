"""Where the console is: its files, a path prefix, and one of several workers."""

import re
import sys
import time
from pathlib import Path

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.fakes.serving import KEY, ServeProcess
from tests.fakes.simulated import Simulated
from tests.gateway.console.browser import Browser, fetch
from toolwire.gateway.console.static import load_files
from toolwire.simulator import reply

posix = pytest.mark.skipif(sys.platform == "win32", reason="several workers need POSIX")


def test_files_come_from_the_package_with_tags(tmp_path: Path):
    with ServedGateway("openai-chat", [reply("ok", default=True)], home=tmp_path) as served:
        page = fetch(served.origin, "GET", "/console/")
        assert (page.status, page.fields["content-type"]) == (200, "text/html; charset=utf-8")
        tag = {"if-none-match": page.fields["etag"]}
        again = fetch(served.origin, "GET", "/console/", None, tag)
        assert (again.status, again.body) == (304, b"")
        assert fetch(served.origin, "GET", "/console/sessions/some").body == page.body
        for name, file in load_files().items():
            got = fetch(served.origin, "GET", f"/console/{name}")
            assert (got.status, got.body, got.fields["etag"]) == (200, file.data, file.tag)
        for name in ("../host.py", "%2e%2e/host.py", "..%2fhost.py", "vendor/../../host.py"):
            assert fetch(served.origin, "GET", f"/console/{name}").status == 404
        assert b"<script>" not in page.body


def test_a_prefix_may_stay_in_all_addresses(tmp_path: Path):
    script = [reply("ok", default=True)]
    with ServedGateway("openai-chat", script, home=tmp_path, prefix="/tw/x") as served:
        page = fetch(served.origin, "GET", "/tw/x", None, {"accept": "text/html"})
        assert (page.status, page.fields["location"]) == (302, "/tw/x/console/")
        assert fetch(served.origin, "GET", "/tw/x/console").fields["location"] == "/tw/x/console/"
        assert fetch(served.origin, "GET", "/tw/x/console/").status == 200
        assert fetch(served.origin, "GET", "/tw/x/healthz").status == 200
        got = fetch(served.origin, "POST", "/tw/x/api/login", {"token": TOKEN})
        assert got.status == 200, got.body
        cookie = got.fields["set-cookie"].partition(";")[0]
        browser = Browser(served.origin, cookie=cookie, csrf=got.json["csrf"])
        asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        assert browser.post("/tw/x/v1/chat/completions", asked).status == 200
        assert (
            browser.get("/tw/x/api/requests").json["requests"][0]["path"] == "/v1/chat/completions"
        )
        assert fetch(served.origin, "GET", "/tw/xy/healthz").status == 404


@posix
def test_with_several_workers_one_has_the_console(tmp_path: Path):
    with (
        Simulated([reply("ok", default=True)]) as sim,
        ServeProcess(tmp_path, sim.upstream("openai-chat"), "--workers", "2") as process,
    ):
        found = re.search(r"(http\S+)/console/#login=(\S+)", awaited_output(process))
        assert found is not None
        console, code = found.groups()
        assert console != process.origin
        moved = fetch(process.origin, "GET", "/console/")
        assert (moved.status, moved.fields["location"]) == (307, f"{console}/console/")
        got = fetch(console, "POST", "/api/login", {"code": code})
        cookie = got.fields["set-cookie"].partition(";")[0]
        browser = Browser(console, cookie=cookie, csrf=got.json["csrf"])
        headers = {"x-api-key": KEY}
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        for _ in range(6):
            assert fetch(process.origin, "POST", "/v1/messages", asked, headers).status == 200
        until = time.monotonic() + 30
        rows: list[dict[str, object]] = []
        while time.monotonic() < until and len(rows) < 6:
            rows = browser.get("/api/requests").json["requests"]
        assert len(rows) == 6


def awaited_output(process: ServeProcess) -> str:
    """What it has printed, once the link is there."""
    until = time.monotonic() + 30
    while "use the token)" not in process.output and time.monotonic() < until:
        time.sleep(0.02)
    return process.output
