import json

import pytest

from toolwire.dialects.anthropic import DIALECT
from toolwire.errors import ErrorKind, ProviderError


def error_body(kind: str, message: str) -> bytes:
    error = {"type": kind, "message": message}
    return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "invalid_request_error", "messages: required", ErrorKind.BAD_REQUEST),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", ErrorKind.CONTEXT_TOO_LONG),
        (400, "invalid_request_error", "Your credit balance is too low", ErrorKind.QUOTA),
        (401, "authentication_error", "invalid x-api-key", ErrorKind.AUTH),
        (402, "billing_error", "pay", ErrorKind.QUOTA),
        (403, "permission_error", "no", ErrorKind.PERMISSION),
        (404, "not_found_error", "model: x", ErrorKind.NOT_FOUND),
        (413, "request_too_large", "too big", ErrorKind.CONTEXT_TOO_LONG),
        (429, "rate_limit_error", "slow down", ErrorKind.RATE_LIMIT),
        (500, "api_error", "oops", ErrorKind.SERVER),
        (504, "timeout_error", "late", ErrorKind.TIMEOUT),
        (529, "overloaded_error", "Overloaded", ErrorKind.OVERLOADED),
    ],
)
def test_each_error_has_its_kind_and_goes_out_as_it_came(
    status: int, code: str, message: str, kind: ErrorKind
) -> None:
    body = error_body(code, message)
    error = DIALECT.error(status, {"retry-after": "3"}, body)
    assert (error.kind, error.status, error.code, str(error)) == (kind, status, code, message)
    assert error.retry_after == 3
    assert DIALECT.encode_error(error) == (status, body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"message":"no access"}', "no access"),
        (b'{"error":"bad"}', "bad"),
        (b"<html>Bad gateway</html>", "<html>Bad gateway</html>"),
        (b"", "HTTP status 502"),
        (b"[1]", "[1]"),
        (b"\xff", "\ufffd"),
    ],
)
def test_errors_of_another_shape_are_read_too(body: bytes, message: str) -> None:
    error = DIALECT.error(502, {}, body)
    assert (error.kind, str(error)) == (ErrorKind.SERVER, message)


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (ErrorKind.AUTH, 401, "authentication_error"),
        (ErrorKind.PERMISSION, 403, "permission_error"),
        (ErrorKind.QUOTA, 429, "billing_error"),
        (ErrorKind.RATE_LIMIT, 429, "rate_limit_error"),
        (ErrorKind.OVERLOADED, 529, "overloaded_error"),
        (ErrorKind.BAD_REQUEST, 400, "invalid_request_error"),
        (ErrorKind.MALFORMED_CALL, 400, "invalid_request_error"),
        (ErrorKind.CONTENT_FILTER, 400, "invalid_request_error"),
        (ErrorKind.NOT_FOUND, 404, "not_found_error"),
        (ErrorKind.TIMEOUT, 504, "timeout_error"),
        (ErrorKind.SERVER, 500, "api_error"),
    ],
)
def test_an_error_made_elsewhere_is_reported_in_this_vendors_words(
    kind: ErrorKind, status: int, code: str
) -> None:
    told_status, body = DIALECT.encode_error(ProviderError(kind, "words", code="elsewhere"))
    error = {"type": code, "message": "words"}
    assert (told_status, json.loads(body)) == (status, {"type": "error", "error": error})


def test_a_full_context_is_reported_in_the_words_clients_look_for() -> None:
    error = ProviderError(ErrorKind.CONTEXT_TOO_LONG, "maximum context length is 9")
    status, body = DIALECT.encode_error(error)
    message = json.loads(body)["error"]["message"]
    assert (status, message) == (400, "prompt is too long: maximum context length is 9")
