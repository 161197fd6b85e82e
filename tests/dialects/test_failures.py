"""The kind of a vendor's error: by status, then code and type, then words of the message."""

import json

import pytest

from toolwire import dialects
from toolwire.client.retry import USUAL, GiveUp, Wait, decide
from toolwire.dialects.failures import kind_of
from toolwire.errors import ErrorKind, ProviderError

QUOTED = [
    "get_billing_info",
    "rate_limit_status",
    "unauthorized_users",
    "check_authentication",
    "content_filter_rules",
    "calls_perday",
    "overloaded_units",
]
"""Names of tools and members that servers repeat in the message of a 400."""


def chat(status: int, **error: object) -> ProviderError:
    body = json.dumps({"error": error}).encode()
    return dialects.get("openai-chat").error(status, {}, body)


def gemini(status: int, code: str, message: str) -> ProviderError:
    body = json.dumps({"error": {"code": status, "message": message, "status": code}}).encode()
    return dialects.get("gemini").error(status, {}, body)


@pytest.mark.parametrize("name", QUOTED)
@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_a_name_that_a_400_quotes_does_not_decide(dialect: str, name: str) -> None:
    message = f"Invalid schema for function '{name}': schema must have type 'object'"
    error = {"type": "invalid_request_error", "message": message}
    body = json.dumps({"type": "error", "error": error}).encode()
    assert dialects.get(dialect).error(400, {}, body).kind is ErrorKind.BAD_REQUEST


@pytest.mark.parametrize("name", QUOTED)
def test_a_name_that_google_quotes_does_not_decide(name: str) -> None:
    message = f"Invalid function name {name}: must start with a letter"
    assert gemini(400, "INVALID_ARGUMENT", message).kind is ErrorKind.BAD_REQUEST


def test_a_code_that_names_a_member_is_preferred_to_words() -> None:
    message = "Invalid schema for function 'f': the description exceeds the maximum length"
    error = chat(400, message=message, type="invalid_request_error", code="invalid_function_schema")
    assert error.kind is ErrorKind.BAD_REQUEST


def test_googles_cancelled_is_a_timeout_and_is_retried() -> None:
    error = gemini(499, "CANCELLED", "The operation was cancelled.")
    assert (error.kind, error.status) == (ErrorKind.TIMEOUT, 499)
    assert isinstance(decide(error, 1, USUAL, 0.0), Wait)


def test_googles_cancelled_for_a_quota_is_a_quota() -> None:
    body = {
        "code": 499,
        "message": "The operation was cancelled.",
        "status": "CANCELLED",
        "details": [{"reason": "QUOTA_EXHAUSTED"}],
    }
    error = dialects.get("gemini").error(499, {}, json.dumps({"error": body}).encode())
    assert error.kind is ErrorKind.QUOTA
    assert isinstance(decide(error, 1, USUAL, 0.0), GiveUp)


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "", "Billing hard limit has been reached", ErrorKind.QUOTA),
        (400, "billing_hard_limit_reached", "", ErrorKind.QUOTA),
        (400, "insufficient_quota", "You exceeded your current quota", ErrorKind.QUOTA),
        (400, "", "Incorrect API key provided", ErrorKind.AUTH),
        (400, "content_filter", "", ErrorKind.CONTENT_FILTER),
        (400, "BadRequestError", "maximum context length is 9 tokens", ErrorKind.CONTEXT_TOO_LONG),
        (400, "exceed_context_size_error", "", ErrorKind.CONTEXT_TOO_LONG),
        (400, "", "the image exceeds the maximum size of 5 MB", ErrorKind.BAD_REQUEST),
        (400, "", "rate limit of 5 is out of range", ErrorKind.BAD_REQUEST),
        (401, "insufficient_quota", "context length", ErrorKind.AUTH),
        (402, "", "fewer tokens, or more credits", ErrorKind.QUOTA),
        (403, "", "rate limit", ErrorKind.PERMISSION),
        (403, "insufficient_quota", "", ErrorKind.QUOTA),
        (404, "", "model unavailable", ErrorKind.NOT_FOUND),
        (413, "rate_limit_exceeded", "tokens per minute", ErrorKind.RATE_LIMIT),
        (413, "", "too big", ErrorKind.CONTEXT_TOO_LONG),
        (429, "", "check your plan and billing details", ErrorKind.QUOTA),
        (429, "", "context window", ErrorKind.RATE_LIMIT),
        (429, "engine_overloaded_error", "", ErrorKind.OVERLOADED),
        (500, "", "the engine is overloaded", ErrorKind.OVERLOADED),
        (500, "", "get_billing_info failed", ErrorKind.SERVER),
        (503, "", "rate limit", ErrorKind.OVERLOADED),
        (504, "", "unavailable", ErrorKind.TIMEOUT),
        (None, "", "get_billing_info", ErrorKind.SERVER),
        (None, "not_found_error", "", ErrorKind.NOT_FOUND),
        (None, "invalid_request_error", "no such member", ErrorKind.BAD_REQUEST),
        (None, "", "rate limit exceeded", ErrorKind.RATE_LIMIT),
    ],
)
def test_kinds(status: int | None, code: str, message: str, kind: ErrorKind) -> None:
    assert kind_of(status, code, message) is kind
