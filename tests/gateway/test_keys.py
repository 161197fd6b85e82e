import re

import pytest

from toolwire.errors import ToolwireError
from toolwire.gateway.keys import (
    ROTATION_SECONDS,
    digest_of,
    may_use,
    new_key,
    opens,
    read_budget,
    read_expiry,
    read_scopes,
    rotated,
    split_key,
)
from toolwire.gateway.store import Budget, KeyRules, VirtualKey


def made(**members: float) -> tuple[VirtualKey, str]:
    key, text = new_key("ci", KeyRules(), now=0.0, **members)
    split = split_key(text)
    assert split is not None
    assert split[0] == key.id
    return key, split[1]


def test_a_key_is_shown_once_and_stored_as_a_digest() -> None:
    key, text = new_key("ci", KeyRules(), now=0.0)
    assert re.fullmatch(r"tw-[0-9a-z]{8}-[A-Za-z0-9_-]{43}", text)
    secret = text[12:]
    assert key.digest == digest_of(secret)
    assert secret not in repr(key)


def test_a_secret_opens_its_own_valid_key_only() -> None:
    key, secret = made(expires=100.0)
    other, _ = made()
    assert opens(key, secret, 99.0)
    assert not opens(key, secret, 100.0)
    assert not opens(other, secret, 0.0)
    assert not opens(key, secret[:-1], 0.0)
    assert not opens(None, secret, 0.0)
    assert not opens(None, "no key has this digest", 0.0)
    assert not opens(VirtualKey(id="a", name="a", digest=b""), "no key has this digest", 0.0)


def test_a_rotated_key_has_two_secrets_for_a_day() -> None:
    key, old = made()
    changed, text = rotated(key, 1000.0)
    new = text.removeprefix(f"tw-{key.id}-")
    assert opens(changed, new, 1001.0)
    assert opens(changed, old, 1000.0 + ROTATION_SECONDS - 1)
    assert not opens(changed, old, 1000.0 + ROTATION_SECONDS)
    assert opens(changed, new, 1000.0 + ROTATION_SECONDS)


@pytest.mark.parametrize("text", ["", "tw-", "tw-abc", "sk-123", "tw-ABCDEFGH-" + "a" * 43])
def test_another_text_is_not_a_key(text: str) -> None:
    assert split_key(text) is None


@pytest.mark.parametrize("name", ["", "a b", "admin", "anonymous", "-x", "x" * 65, "a/b", "é"])
def test_a_name_is_plain(name: str) -> None:
    with pytest.raises(ToolwireError, match="cannot be the name of a key"):
        new_key(name, KeyRules(), now=0.0)


def test_a_key_is_limited_to_routes_and_models() -> None:
    rules = KeyRules(models=("anthropic/*", "groq/qwen-3"), routes=("claude-*",))
    assert may_use(rules, "claude-sonnet-5", "anthropic/claude-sonnet-5")
    assert not may_use(rules, "fast", "anthropic/claude-sonnet-5")
    assert not may_use(rules, "claude-sonnet-5", "openai/gpt-5.6")
    assert may_use(KeyRules(), "anything", "any/model")


def test_a_budget_is_dollars_and_a_window() -> None:
    assert read_budget("20/month") == Budget(20.0, "month")
    assert read_budget("$0.5/hour") == Budget(0.5, "hour")
    assert read_budget("7") == Budget(7.0, "total")
    assert [Budget(20.0, "month").text, Budget(0.5).text] == ["20/month", "0.5"]
    with pytest.raises(ToolwireError, match='window of a budget "mnth"; did you mean "month"'):
        read_budget("20/mnth")
    for text in ("", "x", "-1/day", "0", "nan/day", "inf"):
        with pytest.raises(ToolwireError, match="is not a budget"):
            read_budget(text)


def test_an_expiry_is_a_date_or_a_duration() -> None:
    assert read_expiry("1970-01-02", 0.0) == 2 * 86_400
    assert read_expiry("1970-01-02T06:00", 0.0) == 86_400 + 6 * 3600
    assert read_expiry("1970-01-02T06:00+02:00", 0.0) == 86_400 + 4 * 3600
    assert read_expiry("30d", 5.0) == 5 + 30 * 86_400
    with pytest.raises(ToolwireError, match="is not a date"):
        read_expiry("tomorrow", 0.0)


def test_scopes_are_known_words() -> None:
    assert read_scopes("raw, console:read,raw:openai") == ("raw", "console:read", "raw:openai")
    with pytest.raises(ToolwireError, match='unknown scope "row"; did you mean "raw"'):
        read_scopes("row")
