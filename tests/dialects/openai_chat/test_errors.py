import json

import pytest

from toolwire.dialects.openai_chat import DIALECT
from toolwire.errors import ErrorKind, ProviderError

CASES = [
    (401, '{"error":{"message":"bad key","code":"invalid_api_key"}}', ErrorKind.AUTH, "bad key"),
    (
        400,
        '{"error":{"message":"too big","type":"invalid_request_error",'
        '"code":"context_length_exceeded","param":"messages"}}',
        ErrorKind.CONTEXT_TOO_LONG,
        "too big",
    ),
    (
        429,
        '{"error":{"code":429,"message":"Provider returned error",'
        '"metadata":{"raw":"upstream is busy","provider_name":"Google"}}}',
        ErrorKind.RATE_LIMIT,
        "Provider returned error: upstream is busy",
    ),
    (
        400,
        '{"error":{"message":"m","code":"tool_use_failed","failed_generation":"{"}}',
        ErrorKind.MALFORMED_CALL,
        "m",
    ),
    (401, '{"detail":"Invalid API Key"}', ErrorKind.AUTH, "Invalid API Key"),
    (
        422,
        '{"detail":[{"loc":["body"],"msg":"field required"}]}',
        ErrorKind.BAD_REQUEST,
        '[{"loc":["body"],"msg":"field required"}]',
    ),
    (400, '[{"error":{"code":400,"message":"in a list"}}]', ErrorKind.BAD_REQUEST, "in a list"),
    (400, '{"object":"error","message":"old vllm"}', ErrorKind.BAD_REQUEST, "old vllm"),
    (404, '{"error":"model not found"}', ErrorKind.NOT_FOUND, "model not found"),
    (503, "upstream connect error", ErrorKind.OVERLOADED, "upstream connect error"),
    (500, "", ErrorKind.SERVER, "the server gave no reason"),
    (500, "null", ErrorKind.SERVER, "null"),
]


@pytest.mark.parametrize(("status", "body", "kind", "message"), CASES)
def test_errors_of_every_shape_are_typed(status: int, body: str, kind: ErrorKind, message: str):
    error = DIALECT.error(status, {"Retry-After": "7"}, body.encode())
    assert (error.kind, str(error), error.status) == (kind, message, status)
    assert (error.body, error.retry_after) == (body, 7.0)


def test_code_and_param_are_the_vendors_words():
    body = b'{"error":{"message":"m","type":"t","code":null,"param":"tools[0]"}}'
    error = DIALECT.error(400, {}, body)
    assert (error.code, error.param) == ("t", "tools[0]")


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_an_error_written_reads_as_the_same_kind(kind: ErrorKind):
    status, body = DIALECT.encode_error(ProviderError(kind, "what happened"))
    error = DIALECT.error(status, {}, body)
    assert (error.kind, str(error)) == (kind, "what happened")


def test_a_failure_in_the_middle_of_a_stream_is_one_frame():
    encoder = DIALECT.encoder("m", lambda: "x")
    (frame,) = encoder.fail(ProviderError(ErrorKind.OVERLOADED, "busy", code="c", param="p"))
    wanted = {"message": "busy", "type": "server_error", "param": "p", "code": "c"}
    assert json.loads(frame.data) == {"error": wanted}
    assert encoder.close() == ()
