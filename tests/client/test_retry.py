import pytest

from toolwire.client.retry import GiveUp, Learned, RetryPolicy, Wait, decide, droppable, without
from toolwire.dialects.quirks import Quirks
from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)

POLICY = RetryPolicy()


def vendor(kind: ErrorKind, status: int | None, retry_after: float | None = None) -> ProviderError:
    return ProviderError(kind, "words", status=status, retry_after=retry_after)


@pytest.mark.parametrize(
    "error",
    [
        vendor(ErrorKind.TIMEOUT, 408),
        vendor(ErrorKind.BAD_REQUEST, 409),
        vendor(ErrorKind.RATE_LIMIT, 429),
        vendor(ErrorKind.SERVER, 500),
        vendor(ErrorKind.SERVER, 502),
        vendor(ErrorKind.OVERLOADED, 503),
        vendor(ErrorKind.OVERLOADED, 529),
        vendor(ErrorKind.OVERLOADED, None),
        vendor(ErrorKind.RATE_LIMIT, None),
        ConnectionFailed("refused"),
        ConnectionFailed("slow", timed_out=True),
        IncompleteStream("cut"),
    ],
)
def test_what_passes_is_tried_again(error: ToolwireError) -> None:
    assert decide(error, 1, POLICY, 0.0) == Wait(0.5)


@pytest.mark.parametrize(
    "error",
    [
        vendor(ErrorKind.BAD_REQUEST, 400),
        vendor(ErrorKind.AUTH, 401),
        vendor(ErrorKind.QUOTA, 402),
        vendor(ErrorKind.QUOTA, 429),
        vendor(ErrorKind.PERMISSION, 403),
        vendor(ErrorKind.NOT_FOUND, 404),
        vendor(ErrorKind.CONTEXT_TOO_LONG, 500),
        vendor(ErrorKind.CONTENT_FILTER, None),
        ConnectionFailed("certificate", lasting=True),
        MalformedStream("html"),
        BadInput("address"),
    ],
)
def test_what_stays_is_not_tried_again(error: ToolwireError) -> None:
    assert decide(error, 1, POLICY, 0.0) == GiveUp()


def test_the_server_s_own_word_wins() -> None:
    yes = decide(vendor(ErrorKind.BAD_REQUEST, 400), 1, POLICY, 0.0, should_retry=True)
    no = decide(vendor(ErrorKind.SERVER, 500), 1, POLICY, 0.0, should_retry=False)
    assert (yes, no) == (Wait(0.5), GiveUp())


@pytest.mark.parametrize("kind", [ErrorKind.QUOTA, ErrorKind.AUTH])
def test_no_word_helps_against_an_empty_account_or_a_bad_key(kind: ErrorKind) -> None:
    assert decide(vendor(kind, 429), 1, POLICY, 0.0, should_retry=True) == GiveUp()


def test_waits_double_up_to_a_cap_and_then_end() -> None:
    policy = RetryPolicy(attempts=8)
    decisions = [decide(ConnectionFailed("x"), number, policy, 0.0) for number in range(1, 9)]
    waits = [Wait(0.5), Wait(1), Wait(2), Wait(4), Wait(8), Wait(8), Wait(8)]
    assert decisions == [*waits, GiveUp("gave up after 8 attempts")]


def test_chance_takes_off_a_quarter_at_most() -> None:
    assert decide(ConnectionFailed("x"), 3, POLICY, 1.0) == Wait(1.5)


def test_a_wait_the_server_asks_for_is_kept_to_the_letter() -> None:
    error = vendor(ErrorKind.RATE_LIMIT, 429, retry_after=17.5)
    assert decide(error, 1, POLICY, 1.0) == Wait(17.5)


def test_a_wait_of_nothing_is_not_a_reason_to_hammer() -> None:
    error = vendor(ErrorKind.RATE_LIMIT, 429, retry_after=0.0)
    assert decide(error, 1, POLICY, 0.0) == Wait(0.5)


def test_a_wait_too_long_is_refused_and_named() -> None:
    error = vendor(ErrorKind.RATE_LIMIT, 429, retry_after=3600)
    reason = "the server asks to wait 3600 s, more than the 120 s allowed"
    assert decide(error, 1, POLICY, 0.0) == GiveUp(reason)


@pytest.mark.parametrize(
    ("message", "param", "code", "member"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
            "max_tokens",
        ),
        ("Unknown parameter: 'max_completion_tokens'", "", "", "max_completion_tokens"),
        (
            "Unrecognized request argument supplied: parallel_tool_calls",
            "",
            "",
            "parallel_tool_calls",
        ),
        ('[{"type":"extra_forbidden","loc":["body","stream_options"]}]', "", "", "stream_options"),
        (
            "Unknown parameter: 'tools[0].function.strict'.",
            "tools[0].function.strict",
            "",
            "strict",
        ),
        ("tool_choice 'required' is incompatible with thinking enabled", "", "", "tool_choice"),
        ("Thinking may not be enabled when tool_choice forces tool use.", "", "", "tool_choice"),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. "
            "Only the default (1) value is supported.",
            "temperature",
            "unsupported_value",
            "temperature",
        ),
        ("`temperature` and `top_p` cannot both be specified", "", "", "temperature"),
        ("max_tokens is too large: 9. This model supports at most 5", "max_tokens", "", None),
        ("temperature must be between 0 and 2", "temperature", "invalid_value", None),
        ("unknown parameter: 'logit_bias'", "logit_bias", "", None),
        ("messages: unexpected role", "messages", "", None),
    ],
)
def test_only_a_refused_member_is_dropped(
    message: str, param: str, code: str, member: str | None
) -> None:
    error = ProviderError(ErrorKind.BAD_REQUEST, message, status=400, param=param, code=code)
    assert droppable(error) == member


def test_a_router_without_such_an_endpoint_refuses_too() -> None:
    words = "No endpoints found that support the provided 'tool_choice' value."
    assert droppable(ProviderError(ErrorKind.NOT_FOUND, words, status=404)) == "tool_choice"


def test_other_failures_drop_nothing() -> None:
    words = "unsupported temperature"
    assert droppable(ProviderError(ErrorKind.SERVER, words, status=500)) is None
    assert droppable(ConnectionFailed(words)) is None


def test_what_is_learned_is_known_per_provider_and_model() -> None:
    learned = Learned([("acme", "m", "strict")])
    learned.add("acme", "m", "tool_choice")
    learned.add("acme", "m", "tool_choice")
    learned.add("acme", "m", "no_such_member")
    assert learned.refused("acme", "m") == ("strict", "tool_choice")
    assert learned.refused("acme", "other") == ()
    assert learned.entries() == (("acme", "m", "strict"), ("acme", "m", "tool_choice"))


def test_a_refused_member_is_a_quirk() -> None:
    quirks = without(Quirks(strict_tools=True), ("strict", "max_tokens", "top_p"))
    assert quirks == Quirks(max_tokens_field="max_completion_tokens", sampling=False)
