"""Requests that are forwarded as they are."""

import http.client
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN
from tests.fakes.maker import Bytes, MakerGateway
from tests.gateway.test_accounts import added
from tests.gateway.test_answering import post
from toolwire.gateway.parts import GatewayRefusal
from toolwire.gateway.raw import checked_path, usage_in
from toolwire.gateway.store import Budget

JSON = "application/json"
ANSWER = b'{ "data":[{"embedding":[0.1,  2]}],\n"usage":{"prompt_tokens":7,"total_tokens":7}}'
SENTINEL = "maker-key"


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Generator[MakerGateway]:
    home = tmp_path_factory.mktemp("home")
    with MakerGateway("openai-chat", home=home, raw=["maker"]) as served:
        yield served


def ask(
    served: MakerGateway,
    method: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(served.origin.removeprefix("http://"), timeout=60)
    connection.request(method, path, body or None, {"x-api-key": TOKEN} | (headers or {}))
    answer = connection.getresponse()
    found = answer.read()
    fields = {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    return answer.status, fields, found


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/embeddings", "/embeddings", "/v1/images/generations", "/v1/audio/speech"),
        *("/v1/moderations", "/v1/rerank", "/v1/completions"),
    ],
)
def test_other_operations_pass_byte_for_byte(maker: MakerGateway, path: str):
    body = b'{"model":"m",  "input": ["a", 1e3], "new":{"x":null}}'
    maker.answers.append(Bytes([ANSWER[:9], ANSWER[9:]], kind=JSON))
    status, fields, answer = post(maker, path, body, {"openai-organization": "o", "cookie": "c=1"})
    assert (status, answer) == (200, ANSWER)
    assert fields["content-type"] == JSON
    asked = maker.asked[-1]
    assert (asked.path, asked.body) == (f"/v1{path.removeprefix('/v1')}", body)
    assert asked.headers["authorization"] == f"Bearer {SENTINEL}"
    assert not {"openai-organization", "cookie", "x-api-key"} & asked.headers.keys()
    assert TOKEN not in str(asked)
    record = maker.records[-1]
    assert (record.usage.input, record.status, record.key) == (7, 200, "admin")


def test_only_the_name_of_the_model_is_changed(maker: MakerGateway):
    maker.answers += [Bytes([ANSWER], kind=JSON)] * 2
    body = b'{"input": [1.50, 2], "model": "alias", "z": {"b":  1}}'
    assert post(maker, "/v1/embeddings", body)[0] == 200
    assert maker.asked[-1].body == b'{"input":[1.50, 2],"model":"m","z":{"b":  1}}'
    form = (
        b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nalias\r\n'
        b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
        b"\0alias\r\n--x--\r\n"
    )
    kind = {"content-type": "multipart/form-data; boundary=x"}
    assert post(maker, "/v1/audio/transcriptions", form, kind)[0] == 200
    assert maker.asked[-1].body == form.replace(b"\r\nalias\r\n", b"\r\nm\r\n", 1)
    assert maker.asked[-1].headers["content-type"] == kind["content-type"]


def test_a_stream_of_completions_passes(maker: MakerGateway):
    pieces = [b'data: {"choices":[{"text":"a"}]}\n\n', b'data: {"usage":{"prompt_tokens":3,']
    pieces += [b'"completion_tokens":4}}\n\n', b"data: [DONE]\n\n"]
    maker.answers.append(Bytes(pieces))
    status, _, answer = post(
        maker, "/v1/completions", {"model": "m", "prompt": "x", "stream": True}
    )
    assert (status, answer) == (200, b"".join(pieces))
    assert (maker.records[-1].usage.input, maker.records[-1].usage.output) == (3, 4)


def test_errors_pass_without_secrets_and_a_refused_key_is_not_the_clients(maker: MakerGateway):
    refused = json.dumps({"error": {"message": f"bad input for {SENTINEL}"}}).encode()
    maker.answers += [Bytes([refused], 422, JSON), Bytes([b"{}"], 401, JSON)]
    status, _, answer = post(maker, "/v1/embeddings", {"model": "m"})
    assert status == 422
    assert b"bad input" in answer
    assert SENTINEL.encode() not in answer
    status, fields, answer = post(maker, "/v1/embeddings", {"model": "m"})
    assert (status, fields["x-should-retry"]) == (502, "false")
    assert b"the gateway's key" in answer
    assert SENTINEL not in str(maker.records[-1])


def test_a_cut_answer_stays_cut(maker: MakerGateway):
    maker.answers.append(Bytes([ANSWER], kind=JSON, cut=True))
    with pytest.raises(http.client.IncompleteRead):
        post(maker, "/v1/embeddings", {"model": "m"})
    assert maker.records[-1].error


@pytest.mark.parametrize(
    ("body", "said"), [(b"{", b"cannot be read"), (b"[]", b"cannot be read"), (b"{}", b"no model")]
)
def test_bad_bodies_are_refused(maker: MakerGateway, body: bytes, said: bytes):
    status, _, answer = post(maker, "/v1/embeddings", body)
    assert status == 400
    assert said in answer


def test_a_key_needs_the_scope(maker: MakerGateway):
    _, plain = added(maker.home, "plain")
    _, raw = added(maker.home, "raw", scopes=("raw",))
    _, other = added(maker.home, "other", scopes=("raw:other",))
    _, own = added(maker.home, "own", scopes=("raw:maker",))
    for key, forwarded, passed in ((plain, 403, 403), (raw, 200, 403), (other, 403, 403)):
        bearer = {"authorization": f"Bearer {key}"}
        maker.answers = [Bytes([ANSWER], kind=JSON)]
        assert post(maker, "/v1/embeddings", {"model": "m"}, bearer)[0] == forwarded
        assert ask(maker, "GET", "/raw/maker/files", headers={"x-api-key": key})[0] == passed
    maker.answers = [Bytes([b"[]"], kind=JSON)]
    assert ask(maker, "GET", "/raw/maker/files", headers={"x-api-key": own})[0] == 200


def test_a_budget_closes_raw_unless_the_key_says_otherwise(maker: MakerGateway):
    budget: dict[str, Any] = {"budgets": (Budget(5.0),), "scopes": ("raw:maker",)}
    _, metered = added(maker.home, "metered", **budget)
    _, free = added(maker.home, "free", raw_unmetered=True, **budget)
    maker.answers = [Bytes([b"[]"], kind=JSON)]
    status, _, answer = ask(maker, "GET", "/raw/maker/files", headers={"x-api-key": metered})
    assert status == 403
    assert b"has a budget" in answer
    assert ask(maker, "GET", "/raw/maker/files", headers={"x-api-key": free})[0] == 200


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_any_request_reaches_an_open_provider(maker: MakerGateway, method: str):
    sent = b"\0\1 any bytes" if method in ("POST", "PUT") else b""
    maker.answers.append(
        Bytes([b"\xff\0", b"x"], kind="application/octet-stream", headers=(("set-cookie", "s"),))
    )
    path = f"/raw/maker/files/a%20b?limit=2&key={TOKEN}"
    status, fields, answer = ask(maker, method, path, sent, {"content-type": "text/x"})
    assert (status, answer, fields["content-type"]) == (200, b"\xff\0x", "application/octet-stream")
    assert "set-cookie" not in fields
    asked = maker.asked[-1]
    assert (asked.method, asked.path, asked.body) == (method, "/v1/files/a%20b?limit=2", sent)
    assert TOKEN not in str(asked)


@pytest.mark.parametrize(
    "path",
    [
        *("/../x", "/a/../../x", "/%2e%2e/x", "/a/%2E%2E/x", "/%252e%252e/x", "/..%2fx", "/..%5cx"),
        *(
            "//evil.com/x",
            "/http://evil.com",
            "/http:%2f%2fevil.com",
            "/a\\b",
            "/a%00b",
            "/a%0d%0ab",
        ),
    ],
)
def test_a_path_cannot_leave_the_provider(maker: MakerGateway, path: str):
    with pytest.raises(GatewayRefusal):
        checked_path(path)
    before = len(maker.asked)
    assert ask(maker, "GET", f"/raw/maker{path}")[0] in (400, 404)
    assert len(maker.asked) == before


def test_a_provider_that_is_not_open_is_not_there(maker: MakerGateway):
    status, _, answer = ask(maker, "GET", "/raw/openai/files")
    assert status == 404
    assert b"gateway.raw" in answer


def test_another_format_has_no_such_operations(tmp_path: Path):
    with MakerGateway("anthropic-messages", home=tmp_path) as served:
        status, _, answer = post(served, "/v1/embeddings", {"model": "m"})
        assert status == 404
        assert b"does not speak" in answer


@pytest.mark.parametrize(
    ("tail", "counts"),
    [
        (b'{"usage":{"prompt_tokens":3,"total_tokens":5}}', (3, 0)),
        (b'{"usage":{"total_tokens":5}}', (5, 0)),
        (b'{"usage": {"input_tokens":1,"output_tokens":2,"x":{"y":1}}}', (1, 2)),
        (b'{"usage":{"prompt_tokens":"many"}}', None),
        (b'{"usage":{"prompt_tokens":3', None),
        (b'{"usage":null}', None),
        (b"", None),
    ],
)
def test_counts_are_read_from_the_end(tail: bytes, counts: tuple[int, int] | None):
    found = usage_in(tail)
    assert (None if found is None else (found.input, found.output)) == counts
