import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from aiohttp import web

from tests.tools.one_call import done
from toolwire import dialects
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import Finished, ModelEvent, StopReason, TextDelta
from toolwire.messages import Kept
from toolwire.model import Model
from toolwire.request import ModelRequest, ServerTool
from toolwire.tools.builtin import google_web_search, web_fetch
from toolwire.tools.builtin.web_fetch import urls_in
from toolwire.tools.spec import ToolContext, ToolFailed, ToolSettings, Workspace
from toolwire.tools.web.fetch import (
    Fetched,
    Fetching,
    fetch,
    is_private,
    is_public_name,
    raw_address,
)
from toolwire.tools.web.grounding import cited
from toolwire.tools.web.page_text import own_text

PLACE = Workspace(roots=(Path("/w"),), temp=Path("/t"), home=Path("/h"))


class Said:
    """A model that gives its answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: tuple[str, dict[str, Any]] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[ModelRequest] = []

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        text, metadata = answer
        yield TextDelta(text)
        kept = Kept(dialect="gemini", fields=json.dumps(metadata)) if metadata else None
        yield Finished(reason=StopReason.END, kept=kept)


def context(model: Model | None = None, dialect: str = "gemini", **settings: Any) -> ToolContext:
    return ToolContext(
        workspace=PLACE, model=model, model_dialect=dialect, settings=ToolSettings(**settings)
    )


def grounding(*supports: tuple[int, list[int]]) -> dict[str, Any]:
    return {
        "groundingMetadata": {
            "groundingChunks": [
                {"web": {"uri": "https://a.example/1", "title": "A One"}},
                {"web": {"uri": "https://b.example/2"}},
            ],
            "groundingSupports": [
                {"segment": {"startIndex": 0, "endIndex": end}, "groundingChunkIndices": which}
                for end, which in supports
            ],
        }
    }


def test_a_search_is_one_question_with_googles_search() -> None:
    model = Said(("x", {}))
    done(google_web_search.TOOL, {"query": "alpha"}, context(model))
    body = json.loads(dialects.get("gemini").encode_request(model.asked[0]).http.body)
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": "alpha"}]}],
        "tools": [{"googleSearch": {}}],
        "generationConfig": {"temperature": 0, "topP": 1},
    }


def test_citations_stand_at_byte_positions_of_a_search() -> None:
    text = "Größe. Über €."
    first, second = len("Größe.".encode()), len(text.encode())
    model = Said((text, grounding((first, [0]), (second, [0, 1]))))
    output = done(google_web_search.TOOL, {"query": "q"}, context(model))
    assert output.text == (
        'Web search results for "q":\n\nGröße.[1] Über €.[1][2]\n\n'
        "Sources:\n[1] A One (https://a.example/1)\n[2] Untitled (https://b.example/2)"
    )


@pytest.mark.parametrize(
    ("text", "encoding", "end", "result"),
    [
        ("ab", "utf-8", 99, "ab[1]"),
        ("😀b", "utf-16-le", 2, "😀[1]b"),
        ("😀b", "utf-8", 4, "😀[1]b"),
        ("", "utf-8", 0, "[1]"),
    ],
)
def test_marks_are_put_at_units_of_the_encoding(
    text: str, encoding: str, end: int, result: str
) -> None:
    metadata = grounding((end, [0]))["groundingMetadata"]
    assert cited(text, metadata, encoding) == result


def test_a_search_that_finds_nothing_says_so() -> None:
    output = done(google_web_search.TOOL, {"query": "q"}, context(Said(("  ", {}))))
    assert output.text == 'No search results or information found for query: "q"'


def test_a_search_needs_a_model_that_can() -> None:
    for one in (context(None), context(Said(), "openai-chat")):
        with pytest.raises(ToolFailed, match="no model is set up that can search"):
            done(google_web_search.TOOL, {"query": "q"}, one)


def test_the_vendors_error_is_reported_whole() -> None:
    error = ProviderError(ErrorKind.BAD_REQUEST, "bad", body='{"error": {"code": 400}}')
    with pytest.raises(ToolFailed) as failure:
        done(google_web_search.TOOL, {"query": "q"}, context(Said(error)))
    assert str(failure.value) == (
        'Error during web search for query "q": '
        'Failed to generate content with model gemini-2.5-flash: {"error":{"code":400}}'
    )


@pytest.mark.parametrize(
    ("prompt", "urls"),
    [
        (
            "see (https://a.example/x) and https://b.example.",
            ["https://a.example/x", "https://b.example"],
        ),
        ("https://en.example/wiki/A_(b)", ["https://en.example/wiki/A_(b)"]),
        ("<https://a.example> https://a.example", ["https://a.example"]),
        ("http:// https://", []),
    ],
)
def test_addresses_are_found_without_the_punctuation_around_them(
    prompt: str, urls: list[str]
) -> None:
    assert urls_in(prompt) == urls


def test_more_than_twenty_addresses_are_refused() -> None:
    prompt = " ".join(f"https://a.example/{number}" for number in range(21))
    assert "at most 20" in web_fetch.TOOL.check({"prompt": prompt}, context())
    assert web_fetch.TOOL.check({"prompt": " "}, context()).startswith("The 'prompt' parameter")


def test_the_vendor_fetches_where_it_can() -> None:
    metadata = {
        **grounding((4, [0])),
        "urlContextMetadata": {
            "urlMetadata": [{"urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}]
        },
    }
    model = Said(("Sum.", metadata))
    output = done(web_fetch.TOOL, {"prompt": "sum https://a.example/1"}, context(model))
    assert output.text.startswith("Sum.[1]\n\nSources:\n[1] A One (https://a.example/1)\n")
    data = '{"urlContext":{}}'
    assert model.asked[0].tools == (ServerTool(dialect="gemini", kind="urlContext", data=data),)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("192.168.1.1", True),
        ("169.254.169.254", True),
        ("100.64.0.1", True),
        ("0.0.0.0", True),
        ("224.0.0.1", True),
        ("255.255.255.255", True),
        ("::1", True),
        ("::", True),
        ("fe80::1%eth0", True),
        ("fd00::1", True),
        ("::ffff:127.0.0.1", True),
        ("64:ff9b::7f00:1", True),
        ("2002:7f00:1::", True),
        ("8.8.8.8", False),
        ("2606:4700:4700::1111", False),
        ("64:ff9b::808:808", False),
    ],
)
def test_private_addresses_are_known_in_every_form(address: str, private: bool) -> None:
    assert is_private(address) is private


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://a.example/x", True),
        ("http://localhost:80", False),
        ("http://a.localhost", False),
        ("http://printer.local", False),
        ("http://intranet/", False),
        ("http://127.1/", False),
        ("http://0x7f000001/", False),
        ("http://2130706433/", False),
        ("http://[::1]/", False),
        ("http://[bad", False),
        ("http://8.8.8.8/", True),
    ],
)
def test_names_that_look_local_are_not_given_to_the_vendor(url: str, public: bool) -> None:
    assert is_public_name(url) is public


def test_a_files_page_on_github_becomes_the_file() -> None:
    assert raw_address("https://github.com/o/r/blob/main/a/blob/b.py?x=1#L3") == (
        "https://raw.githubusercontent.com/o/r/main/a/blob/b.py"
    )
    assert raw_address("https://github.com/o/r") == "https://github.com/o/r"
    assert raw_address("https://evil.example/github.com/blob/x") == (
        "https://evil.example/github.com/blob/x"
    )


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PAGE = (
    "<html><head><title>T</title><style>p{}</style></head><body><h1>Head</h1>"
    "<p>One <b>two</b>\n three.</p><script>alert(1)</script>"
    "<ul><li>a</li><li><a href='https://x.example/'>b</a></li></ul>"
    "<ol><li>c</li><li>d</li></ol><pre>x\n  y</pre>"
    "<table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>"
)
TEXT = (
    "# Head\n\nOne **two** three.\n\n- a\n- [b](https://x.example/)\n\n1. c\n2. d\n\n"
    "```\nx\n  y\n```\n\nk | v\n1 | 2"
)


async def _page(request: web.Request) -> web.StreamResponse:
    match request.path:
        case "/page":
            return web.Response(text=PAGE, content_type="text/html")
        case "/plain":
            return web.Response(text="plain €", content_type="text/plain", charset="utf-8")
        case "/latin":
            body = "<meta charset='latin-1'><p>caf\xe9</p>".encode("latin-1")
            return web.Response(body=body, headers={"Content-Type": "text/html"})
        case "/image":
            return web.Response(body=b"\x89PNG", content_type="image/png")
        case "/loop":
            raise web.HTTPFound("/loop")
        case "/away":
            raise web.HTTPFound("file:///etc/passwd")
        case "/moved":
            raise web.HTTPFound("/plain")
        case "/big":
            return web.Response(text="x" * 5000, content_type="text/plain")
        case "/slow":
            await asyncio.Event().wait()
        case _:
            pass
    raise web.HTTPNotFound()


def served(work: Callable[[str], Awaitable[Any]]) -> Any:
    """What the work gives, with the address of a server on this machine."""

    async def scenario() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", _page)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            return await work(f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    return asyncio.run(scenario())


def fetched(path: str, **rules: Any) -> Fetched:
    async def work(base: str) -> Fetched:
        return await fetch(f"{base}{path}", Fetching(private=rules.pop("private", True), **rules))

    return served(work)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/page", TEXT),
        ("/plain", "plain €"),
        ("/moved", "plain €"),
        ("/latin", "café"),
        ("/image", "(not text: image/png, 4 bytes)"),
    ],
)
def test_pages_come_back_as_text(path: str, text: str) -> None:
    assert fetched(path) == Fetched(url=ANY, text=text)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/nowhere", "Request failed with status code 404 Not Found"),
        ("/loop", "more than 10 redirects"),
        ("/away", "not an http address: file:///etc/passwd"),
    ],
)
def test_what_cannot_be_fetched_is_reported(path: str, error: str) -> None:
    assert fetched(path).error == error


def test_size_and_time_are_limited() -> None:
    assert fetched("/big", bytes=100).text == "x" * 100
    assert fetched("/slow", seconds=0.2).error == "Request timed out after 0.2 s"


def test_this_machine_is_refused_unless_it_is_allowed() -> None:
    assert "is a private or local address" in fetched("/plain", private=False).error


def test_a_name_that_leads_to_this_machine_is_refused_after_dns() -> None:
    async def work(base: str) -> Fetched:
        port = base.rpartition(":")[2]
        return await fetch(f"http://localhost:{port}/plain", Fetching())

    assert served(work).error.startswith("localhost is a private or local address")


def test_a_page_fetched_here_is_worked_on_by_the_model() -> None:
    model = Said(("short", {}))

    async def work(base: str) -> str:
        one = context(model, "openai-chat", allow_private_addresses=True)
        prompt = f"sum {base}/plain and {base}/nowhere"
        return (await web_fetch.TOOL.run({"prompt": prompt}, one)).text

    assert served(work) == "short"
    asked = model.asked[0].messages[0].text
    assert "/plain ---\nplain €" in asked
    assert "(not fetched: Request failed with status code 404 Not Found)" in asked
    assert model.asked[0].tools == ()


def test_without_a_model_the_text_itself_comes_back() -> None:
    async def work(base: str) -> str:
        one = context(None, allow_private_addresses=True)
        return (await web_fetch.TOOL.run({"prompt": f"get {base}/plain"}, one)).text

    assert served(work) == "plain €"


def test_a_page_that_cannot_be_fetched_is_an_error_that_names_it() -> None:
    with pytest.raises(ToolFailed, match=r"fallback fetch for http://127\.0\.0\.1:1/x: "):
        done(web_fetch.TOOL, {"prompt": "get http://127.0.0.1:1/x"}, context(None))


def test_a_page_without_an_end_of_its_head_keeps_its_body() -> None:
    assert own_text("<head><title>x</title><body><p>hello") == "hello"
