import json
from typing import Any

import pytest

from toolwire.dialects.gemini import DIALECT
from toolwire.errors import ErrorKind, ProviderError


def body(code: int, status: str, message: str = "no", **members: Any) -> bytes:
    return json.dumps(
        {"error": {"code": code, "message": message, "status": status, **members}}
    ).encode()


QUOTA = "You exceeded your current quota, please check your plan and billing details."
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12.5s"}


def failure(quota: str) -> dict[str, Any]:
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    return {"@type": kind, "violations": [{"quotaId": quota}]}


def info(reason: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}


@pytest.mark.parametrize(
    ("status", "data", "kind", "wait"),
    [
        (400, body(400, "INVALID_ARGUMENT"), ErrorKind.BAD_REQUEST, None),
        (
            400,
            body(400, "INVALID_ARGUMENT", "API key not valid.", details=[info("API_KEY_INVALID")]),
            ErrorKind.AUTH,
            None,
        ),
        (
            400,
            body(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum"),
            ErrorKind.CONTEXT_TOO_LONG,
            None,
        ),
        (403, body(403, "PERMISSION_DENIED"), ErrorKind.PERMISSION, None),
        (404, b"[" + body(404, "NOT_FOUND") + b"]", ErrorKind.NOT_FOUND, None),
        (
            429,
            body(429, "RESOURCE_EXHAUSTED", QUOTA, details=[failure("RequestsPerMinute"), RETRY]),
            ErrorKind.RATE_LIMIT,
            12.5,
        ),
        (
            429,
            body(429, "RESOURCE_EXHAUSTED", QUOTA, details=[failure("RequestsPerDay"), RETRY]),
            ErrorKind.QUOTA,
            12.5,
        ),
        (
            429,
            body(429, "RESOURCE_EXHAUSTED", details=[info("QUOTA_EXHAUSTED")]),
            ErrorKind.QUOTA,
            None,
        ),
        (503, body(503, "UNAVAILABLE"), ErrorKind.OVERLOADED, None),
        (500, b"<html>", ErrorKind.SERVER, None),
        (502, b"", ErrorKind.SERVER, None),
    ],
)
def test_an_error_has_its_kind(
    status: int, data: bytes, kind: ErrorKind, wait: float | None
) -> None:
    error = DIALECT.error(status, {}, data)
    assert (error.kind, error.status, error.retry_after) == (kind, status, wait)


def test_the_header_has_the_wait_where_the_body_does_not() -> None:
    error = DIALECT.error(429, {"Retry-After": "3"}, body(429, "RESOURCE_EXHAUSTED"))
    assert error.retry_after == 3


def test_an_error_is_written_as_google_would() -> None:
    error = ProviderError(ErrorKind.OVERLOADED, "busy", status=529, retry_after=2)
    status, data = DIALECT.encode_error(error)
    assert status == 529
    assert json.loads(data)["error"]["status"] == "INTERNAL"
    read = DIALECT.error(status, {}, data)
    assert (read.kind, str(read), read.retry_after) == (ErrorKind.OVERLOADED, "busy", 2)
