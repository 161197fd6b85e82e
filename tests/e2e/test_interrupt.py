"""Ctrl-C in the middle of calls that are made to hang: the process ends at once, with code 130."""

import http.server
import signal
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Fault, Say

pytestmark = pytest.mark.slow
LIMIT = 6.0
"""Seconds; a watchdog for a loaded machine. The exit takes a fraction of one."""
NESTED = "(a+)+$"
EVIL_LINE = "a" * 60 + "b\n"
PAGES = {
    "/attributes": "<a b='" * 700_000,
    "/lists": "<ul><li>" * 500_000,
    "/signs": "<" * 4_000_000,
}


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES[self.path].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture(scope="module")
def pages() -> Generator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    for number in range(20):
        (place.work / f"d{number}").mkdir()
        for name in range(20):
            (place.work / f"d{number}" / f"{'a' * 100}{name}.txt").write_text(EVIL_LINE * 50)
    (place.work / ".gitignore").write_text("\n".join(["*a" * 60 + "b", "**/a*/" * 50 + "b"] * 50))
    (place.work / ".geminiignore").write_text("*a" * 60 + "b\n" + "[[:" * 1000)
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    return place


def configured(place: Place, **tools: str) -> None:
    lines = [f"{name} = {value}" for name, value in tools.items()]
    (place.home / "config.toml").write_text("\n".join(["[tools]", *lines]))


def interrupted(place: Place, call: Call) -> tuple[int, float]:
    """The exit code, and the seconds from Ctrl-C to the end of the process."""
    talk = Reply(pieces=(Say(" ".join(map(str, range(4000)))),), fault=Fault(wait_each=0.02))
    with Simulated([Reply(pieces=(call,)), talk]) as sim:
        process = place.start(
            *("run", "--upstream", sim.upstream(), "--yolo", "--output-format", "stream-json", "go")
        )
        for line in process.stdout:
            if b'"tool_use"' in line:
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()
        threading.Thread(target=process.stderr.read, daemon=True).start()
        time.sleep(0.8)
        assert process.poll() is None
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(LIMIT)
        finally:
            process.kill()
        elapsed = time.monotonic() - start
        print(f"ended after {elapsed:.2f} s")
        return code, elapsed


SEARCHES = [
    NESTED,
    "(a|a)*$",
    "(a|aa)+$",
    "(.*a){20}$",
    r"(\w+\s?)+$",
    "(?=(a+)+$)",
    r"((a+)+)\2$",
    "a?" * 40 + "a" * 60,
]


@pytest.mark.parametrize("way", ["own", "git", "rg"])
@pytest.mark.parametrize("pattern", SEARCHES[:3] + SEARCHES[5:7])
@pytest.mark.sweep
def test_a_search(way: str, pattern: str, place: Place) -> None:
    configured(place, search_with=f'"{way}"')
    code, _ = interrupted(place, Call.of("search_file_content", pattern=pattern))
    assert code == 130


@pytest.mark.parametrize(
    "call",
    [
        Call.of("glob", pattern="**/" + "*a" * 60 + "b"),
        Call.of("glob", pattern="**/" + "!(*(a|aa)b)" * 3 + "*(a|aa)b"),
        Call.of("glob", pattern="{a,b}" * 2000),
        Call.of("read_many_files", paths=["**/" + "*a" * 60 + "b", "**/*"]),
        Call.of("search_file_content", pattern="a+b", include="**/" + "*a" * 60 + "b"),
    ],
    ids=["stars", "groups", "braces", "many files", "include"],
)
@pytest.mark.sweep
def test_a_glob(call: Call, place: Place) -> None:
    assert interrupted(place, call)[0] == 130


def test_a_listing(place: Place) -> None:
    path = str(place.work / "d0")
    call = Call.of("list_directory", path=path, ignore=["*a" * 60 + "b"])
    assert interrupted(place, call)[0] == 130


@pytest.mark.parametrize("page", PAGES)
def test_a_page(page: str, pages: str, place: Place) -> None:
    configured(place, allow_private_addresses="true")
    call = Call.of("web_fetch", prompt=f"read {pages}{page}")
    assert interrupted(place, call)[0] == 130


@pytest.mark.sweep
def test_an_ignore_file_of_twenty_thousand_rules(place: Place) -> None:
    (place.work / ".gitignore").write_text("\n".join(f"a*b{number}" for number in range(20_000)))
    assert interrupted(place, Call.of("glob", pattern="**/*"))[0] == 130


def test_a_prompt_that_mentions_patterns(place: Place) -> None:
    (place.work / ".gitignore").write_text("\n".join(f"a*b{number}" for number in range(20_000)))
    with Simulated([Reply(pieces=(Say("never"),))]) as sim:
        process = place.start("run", "--upstream", sim.upstream(), "read @**/*a*a*b @d0 @d1/*x")
        time.sleep(1.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            # On a loaded machine it may still be loading modules, and ends by the signal itself.
            assert process.wait(LIMIT) in (130, -signal.SIGINT), process.stderr.read()
        finally:
            process.kill()
