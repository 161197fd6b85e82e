import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.samples import FOLDERS, HERE
from tests.simulator.asking import PATHS, STREAMS, Asker, asking, question
from toolwire import dialects
from toolwire.codec import read_answer
from toolwire.events import StopReason
from toolwire.messages import Media, MediaKind
from toolwire.simulator import Call, Fault, Reply, Show, Think, parse, refused, replies, reply

EACH = pytest.mark.parametrize("dialect", dialects.NAMES)
KINDS = {
    400: "bad_request",
    401: "auth",
    403: "permission",
    404: "not_found",
    429: "rate_limit",
    500: "server",
    503: "overloaded",
    529: "overloaded",
}
ALL = reply(Think("Hm."), "Hello.", Call.of("f", a=1), Call.of("g"))


def streaming(dialect: str) -> dict[str, Any]:
    if dialect in ("gemini", "code-assist"):
        return question(dialect)
    return question(dialect, stream=True)


@EACH
def test_every_wire_format_is_spoken_whole_and_streamed(dialect: str) -> None:
    async def scenario(asker: Asker) -> None:
        _, whole = await asker.post(PATHS[dialect], question(dialect))
        _, streamed = await asker.post(STREAMS[dialect], streaming(dialect))
        for answer in (
            read_answer(dialect, whole, whole=True),
            read_answer(dialect, streamed),
        ):
            assert answer.error is None
            message = answer.message
            assert (message.thinking, message.text) == ("Hm.", "Hello.")
            calls = [(call.name, json.loads(call.arguments or "{}")) for call in message.calls]
            assert calls == [("f", {"a": 1}), ("g", {})]
            assert answer.finished is not None
            assert answer.finished.reason is StopReason.TOOL_CALLS
        assert asker.sim.refusals == []

    asking([ALL, ALL], scenario)


def test_gemini_streams_a_list_to_those_who_do_not_ask_for_events() -> None:
    async def scenario(asker: Asker) -> None:
        path = "/v1/models/m:streamGenerateContent"
        _, body = await asker.post(path, question("gemini"))
        assert isinstance(json.loads(body), list)
        assert read_answer("gemini", body).message.text == "Hello."

    asking([ALL], scenario)


@EACH
@pytest.mark.parametrize(
    ("status", "kind"),
    list(KINDS.items()),
)
def test_an_error_has_the_status_and_the_shape_of_its_format(
    dialect: str, status: int, kind: str
) -> None:
    async def scenario(asker: Asker) -> None:
        found, body = await asker.post(PATHS[dialect], question(dialect))
        assert found == status
        error = dialects.get(dialect).error(found, {}, body)
        assert error.kind == kind
        assert isinstance(json.loads(body)["error"], dict)

    asking([reply(fault=refused(status))], scenario)


@EACH
def test_recorded_bytes_of_a_vendor_are_sent_as_they_are(dialect: str) -> None:
    folder = FOLDERS.get(dialect, "gemini")
    path = sorted((HERE / folder).glob("*.sse"))[0]
    script = parse(f'[[reply]]\nbody_file = "{path.name}"', path.parent)

    async def scenario(asker: Asker) -> None:
        _, body = await asker.post(STREAMS[dialect], streaming(dialect))
        assert body == path.read_bytes()

    asking(script, scenario)


@EACH
def test_an_error_may_come_in_the_middle_of_a_stream(dialect: str) -> None:
    fault = Fault(error_after=6, message="overloaded")

    async def scenario(asker: Asker) -> None:
        status, body = await asker.post(STREAMS[dialect], streaming(dialect))
        assert status == 200
        answer = read_answer(dialect, body)
        assert str(answer.error) == "overloaded"
        assert answer.message.text

    asking([reply("A long answer, cut by an error.", delta=4, fault=fault)], scenario)


@EACH
def test_noise_in_a_stream_is_noise_to_its_reader(dialect: str) -> None:
    async def scenario(asker: Asker) -> None:
        _, body = await asker.post(STREAMS[dialect], streaming(dialect))
        assert b"\xff\xfe" in body
        assert read_answer(dialect, body).error is not None

    asking([reply("Hello there.", delta=4, fault=Fault(noise_after=2))], scenario)


def test_a_cut_connection_is_an_error_and_a_cut_body_is_not() -> None:
    cut = [Fault(cut_bytes=90), Fault(cut_bytes=90, cut_how="body")]

    async def scenario(asker: Asker) -> None:
        with pytest.raises(aiohttp.ClientPayloadError):
            await asker.post(STREAMS["openai-chat"], streaming("openai-chat"))
        status, body = await asker.post(STREAMS["openai-chat"], streaming("openai-chat"))
        assert (status, len(body)) == (200, 90)
        assert [received.finished for received in asker.sim.requests] == [False, True]

    asking([reply("Hello.", fault=fault) for fault in cut], scenario)


@EACH
def test_an_answer_without_a_word_is_an_answer(dialect: str) -> None:
    async def scenario(asker: Asker) -> None:
        _, body = await asker.post(STREAMS[dialect], streaming(dialect))
        answer = read_answer(dialect, body)
        assert answer.error is None
        assert answer.message.text == ""

    asking([Reply()], scenario)


def test_gemini_reports_a_call_it_could_not_write() -> None:
    async def scenario(asker: Asker) -> None:
        _, body = await asker.post(STREAMS["gemini"], question("gemini"))
        finished = read_answer("gemini", body).finished
        assert finished is not None
        assert finished.reason is StopReason.MALFORMED_CALL
        assert b"MALFORMED_FUNCTION_CALL" in body

    asking([reply(stop=StopReason.MALFORMED_CALL)], scenario)


def test_an_image_is_shown_in_the_formats_that_have_images() -> None:
    image = Media.of_bytes(MediaKind.IMAGE, "image/png", b"pixels")

    async def scenario(asker: Asker) -> None:
        for dialect in ("gemini", "openai-responses", "openai-chat"):
            _, body = await asker.post(STREAMS[dialect], streaming(dialect))
            (shown,) = read_answer(dialect, body).message.parts
            assert isinstance(shown, Media)
            assert shown.data == b"pixels"

    asking(replies(reply(Show(image), default=True)), scenario)


def test_who_goes_silent_is_silent_until_the_client_leaves() -> None:
    fault = Fault(hang_after=3)

    async def scenario(asker: Asker) -> None:
        url = asker.sim.origin + STREAMS["openai-chat"]
        async with asker.session.post(url, json=streaming("openai-chat")) as response:
            assert await response.content.readany()
            (received,) = asker.sim.requests
            assert not received.left.is_set()
        await received.left.wait()
        assert not received.finished

    asking([reply("Hello there, silence.", delta=4, fault=fault)], scenario)


def test_delays_are_kept() -> None:
    fault = Fault(wait_first=0.02, wait_each=0.01)

    async def scenario(asker: Asker) -> None:
        clock = asyncio.get_running_loop()
        start = clock.time()
        await asker.post(STREAMS["openai-chat"], streaming("openai-chat"))
        assert clock.time() - start >= 0.05

    asking([reply("Hello.", delta=2, fault=fault)], scenario)


def test_requests_are_kept_with_their_headers_and_bodies() -> None:
    async def scenario(asker: Asker) -> None:
        body = question("openai-chat", "Grüße")
        await asker.post("/v1/chat/completions?x=1", body, Authorization="Bearer k")
        (received,) = asker.sim.requests
        assert received.json == body
        assert received.headers["authorization"] == "Bearer k"
        assert (received.path, received.query) == ("/v1/chat/completions", "x=1")
        assert (received.status, received.finished) == (200, True)

    asking(replies("Hi."), scenario)


@EACH
def test_a_wrong_key_is_refused_in_any_header(dialect: str) -> None:
    async def scenario(asker: Asker) -> None:
        body = question(dialect)
        status, data = await asker.post(PATHS[dialect], body)
        assert status == 401
        assert dialects.get(dialect).error(status, {}, data).kind == "auth"
        for name, value in (
            ("authorization", "Bearer k"),
            ("x-api-key", "k"),
            ("x-goog-api-key", "k"),
            ("api-key", "k"),
        ):
            status, _ = await asker.post(PATHS[dialect], body, **{name: value})
            assert status == 200

    asking(replies(reply("Hi.", default=True)), scenario, key="k")


def test_tokens_are_counted_and_models_are_listed() -> None:
    async def scenario(asker: Asker) -> None:
        path = "/v1/messages/count_tokens"
        _, body = await asker.post(path, question("anthropic-messages"))
        assert json.loads(body)["input_tokens"] > 0
        for path in ("/v1beta/models/m:countTokens", "/v1internal:countTokens"):
            _, body = await asker.post(path, question("gemini"))
            assert json.loads(body)["totalTokens"] > 0
        _, body = await asker.post("/v1internal:loadCodeAssist", {})
        assert json.loads(body)["cloudaicompanionProject"]
        _, body = await asker.post("/v1internal:onboardUser", {})
        assert json.loads(body)["done"] is True
        for path, status in (
            ("/v1/models", 200),
            ("/v1beta/models", 200),
            ("/healthz", 200),
            ("/", 200),
            ("/v1/responses", 426),
            ("/nowhere", 404),
        ):
            async with asker.session.get(asker.sim.origin + path) as response:
                assert response.status == status, path
        async with asker.session.head(asker.sim.origin) as response:
            assert response.status == 200
        assert (await asker.post("/nowhere", {}))[0] == 404

    asking(parse('model = "sim-1"\n[[reply]]\ntext = "x"'), scenario)


@EACH
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b"{}", b'{"model": 3}'])
def test_a_body_that_is_none_is_the_clients_mistake(dialect: str, body: bytes) -> None:
    async def scenario(asker: Asker) -> None:
        status, data = await asker.post(PATHS[dialect], body)
        assert status == 400
        assert "error" in json.loads(data)

    asking(replies("Hi."), scenario)


def test_the_end_of_the_script_is_reported_and_not_retried() -> None:
    async def scenario(asker: Asker) -> None:
        await asker.ask("openai-chat", question("openai-chat"))
        status, body = await asker.ask("openai-chat", question("openai-chat"))
        assert status == 400
        assert "no reply left" in body["error"]["message"]

    asking(replies("Hi."), scenario)


def test_the_command_serves_a_script_until_it_is_stopped(tmp_path: Path) -> None:
    script = tmp_path / "hello.toml"
    script.write_text('[[reply]]\ntext = "Hello from a file."\ndefault = true\n')
    code = "from toolwire.cli.simulate import simulate_command as run; run()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(script), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        origin = process.stdout.readline().strip()

        async def ask() -> Any:
            url = f"{origin}/v1/chat/completions"
            body = question("openai-chat")
            async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
                return await answer.json()

        answer = asyncio.run(ask())
        assert answer["choices"][0]["message"]["content"] == "Hello from a file."
        assert process.stderr is not None
        told = [process.stderr.readline().strip() for _ in range(4)]
        assert told[1] == f"anthropic {origin}"
        assert told[3] == "POST /v1/chat/completions 200"
    finally:
        process.kill()
        process.communicate()


def test_the_command_names_what_is_wrong_with_a_script(tmp_path: Path) -> None:
    code = "from toolwire.cli.simulate import simulate_command as run; run()"
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "none.toml")], capture_output=True, text=True
    )
    assert found.returncode == 1
    assert "cannot read" in found.stderr
