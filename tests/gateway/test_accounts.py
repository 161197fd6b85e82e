"""Keys, budgets, routes and the ledger through a real gateway."""

import asyncio
import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import TOKEN, ServedGateway
from tests.fakes.serving import KEY, ServeProcess
from tests.fakes.simulated import Simulated
from tests.gateway.test_answering import REQUESTS, post
from tests.gateway.test_operations import BODY, asked
from toolwire.events import TextDelta
from toolwire.gateway.accounts import ledger_file
from toolwire.gateway.answer_cache import AnswerCache
from toolwire.gateway.keys import new_key
from toolwire.gateway.ledger import SqliteLedger
from toolwire.gateway.store import Budget, KeyRules, VirtualKey
from toolwire.simulator import Call, Fault, Reply, Say, Think

HELLO = Reply(pieces=(Say("Hello"),), times=1000)


def added(home: Path, name: str, **rules: Any) -> tuple[VirtualKey, str]:
    key, text = new_key(name, KeyRules(**rules), now=time.time())

    async def work(store: SqliteLedger) -> None:
        await store.add_key(key)

    in_store(home, work)
    return key, text


def in_store(home: Path, work: Callable[[SqliteLedger], Any]) -> Any:
    store = SqliteLedger(ledger_file({"TOOLWIRE_HOME": str(home)}))
    try:
        return asyncio.run(work(store))
    finally:
        store.close()


def rows(home: Path) -> list[dict[str, Any]]:
    return in_store(home, lambda store: store.requests(limit=10_000))


def error_of(body: bytes) -> dict[str, Any]:
    return json.loads(body)["error"]


EXPECTED: dict[str, dict[str, tuple[int, str, str]]] = {
    "unknown key": {
        "openai-chat": (401, "code", "invalid_api_key"),
        "openai-responses": (401, "code", "invalid_api_key"),
        "anthropic-messages": (401, "type", "authentication_error"),
        "gemini": (401, "status", "UNAUTHENTICATED"),
        "code-assist": (401, "status", "UNAUTHENTICATED"),
    },
    "route not allowed": {
        "openai-chat": (403, "", ""),
        "openai-responses": (403, "", ""),
        "anthropic-messages": (403, "type", "permission_error"),
        "gemini": (403, "status", "PERMISSION_DENIED"),
        "code-assist": (403, "status", "PERMISSION_DENIED"),
    },
    "rate": {
        "openai-chat": (429, "code", "rate_limit_exceeded"),
        "openai-responses": (429, "code", "rate_limit_exceeded"),
        "anthropic-messages": (429, "type", "rate_limit_error"),
        "gemini": (429, "status", "RESOURCE_EXHAUSTED"),
        "code-assist": (429, "status", "RESOURCE_EXHAUSTED"),
    },
    "budget": {
        "openai-chat": (429, "code", "insufficient_quota"),
        "openai-responses": (429, "code", "insufficient_quota"),
        "anthropic-messages": (429, "type", "billing_error"),
        "gemini": (429, "status", "RESOURCE_EXHAUSTED"),
        "code-assist": (429, "status", "RESOURCE_EXHAUSTED"),
    },
}
RULES: dict[str, dict[str, Any]] = {
    "route not allowed": {"routes": ("other",)},
    "rate": {"tpm": 1},
    "budget": {"budgets": (Budget(0.000001),), "hard": True},
}
PRICED = """
[providers.one]
dialect = "openai-chat"
base_url = "{origin}/v1"
key_env = "ONE_KEY"
[providers.two]
extends = "one"
[models."one/m"]
output = 100
prices = {{ input = 1.0, output = 1.0 }}
"""


@pytest.mark.parametrize("refusal", EXPECTED)
def test_every_refusal_is_in_the_format_of_the_client(refusal: str, tmp_path: Path) -> None:
    key = "tw-00000000-" + "x" * 43
    with Simulated([HELLO]) as upstream:
        settings = PRICED.format(origin=upstream.origin)
        settings += '[gateway.routes.m]\nto = ["one/m"]\n'
        with SettingsGateway(tmp_path, settings) as served:
            for dialect, (path, body) in REQUESTS.items():
                if refusal in RULES:
                    _, key = added(tmp_path, f"k-{dialect}", **RULES[refusal])
                if refusal == "rate":
                    assert post(served, path, body, {"authorization": f"Bearer {key}"})[0] == 200
                status, fields, answer = post(
                    served, path, body, {"authorization": f"Bearer {key}"}
                )
                wanted, member, word = EXPECTED[refusal][dialect]
                assert status == wanted, answer
                error = error_of(answer)
                assert not member or error[member] == word
                if refusal == "rate":
                    assert int(fields["retry-after"]) >= 1
                else:
                    assert fields["x-should-retry"] == "false"


class SettingsGateway(ServedGateway):
    """A gateway whose models are those of a settings file."""

    def __init__(self, home: Path, settings: str, **gateway: Any) -> None:
        from toolwire.config import load

        (home / "config.toml").write_text(settings, "utf-8")
        (home / "system.toml").write_text("", "utf-8")
        environ = {"TOOLWIRE_HOME": str(home), "HOME": str(home), "ONE_KEY": "k"}
        environ["TOOLWIRE_SYSTEM_CONFIG"] = str(home / "system.toml")
        found = load(environ, home)
        gateway["routes"] = found.gateway.routes
        super().__init__("openai-chat", [], home=home, settings=found, **gateway)
        self._environ = environ

    async def _open(self) -> None:
        from toolwire.client.redact import Secret
        from toolwire.gateway.host import ServeOptions, open_gateway

        self.running = await self._stack.enter_async_context(
            open_gateway(
                self._settings,
                ServeOptions(token=Secret(self._token or "")),
                environ=self._environ,
                notice=lambda text: None,
                readers=(self.records.append,),
            )
        )


def test_another_deployment_answers_before_the_first_event_only(tmp_path: Path) -> None:
    broken = [Reply(fault=Fault(status=500), times=1000)]
    cut = [Reply(pieces=(Say("Hello there"),), delta=1, fault=Fault(cut_events=4), times=9)]
    with Simulated(broken) as first, Simulated([HELLO]) as second, Simulated(cut) as third:
        settings = "".join(
            f'[providers.{name}]\ndialect = "openai-chat"\nbase_url = "{one.origin}/v1"\n'
            'key_env = "ONE_KEY"\n'
            for name, one in (("a", first), ("b", second), ("c", third))
        )
        settings += '[gateway.routes.r]\nto = ["a/m", "b/m"]\n'
        settings += '[gateway.routes.cut]\nto = ["c/m", "b/m"]\n'
        with SettingsGateway(tmp_path, settings) as served:
            path, body = REQUESTS["anthropic-messages"]
            status, fields, answer = post(served, path, body | {"model": "r"})
            assert (status, fields["toolwire-route"]) == (200, "b/m"), answer
            assert served.records[-1].fallback
            for _ in range(3):
                assert post(served, path, body | {"model": "r"})[0] == 200
            # Three faults within a minute: the first one cools down and is not asked again.
            assert (len(first.requests), len(second.requests)) == (9, 4)
            with pytest.raises(http.client.IncompleteRead) as broken_off:
                post(served, path, body | {"model": "cut", "stream": True})
            assert b"message_stop" not in broken_off.value.partial
            assert len(second.requests) == 4
    found = rows(tmp_path)
    assert [(row["deployment"], row["key"], row["error"]) for row in reversed(found)] == [
        *[("b/m", "admin", "")] * 4,
        ("c/m", "admin", "incomplete_stream"),
    ]


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.parametrize("hard", [True, False])
def test_after_a_kill_of_the_gateway_all_that_ended_is_booked_and_nothing_reserved(
    tmp_path: Path, hard: bool
) -> None:
    slow = Reply(when="slow", pieces=(Say("a" * 400),), delta=1, fault=Fault(wait_each=0.05))
    with Simulated([slow, Reply(pieces=(Say("Hello"),), default=True)]) as upstream:
        (tmp_path / "config.toml").write_text(PRICED.format(origin=upstream.origin), "utf-8")
        key, text = added(tmp_path, "ci", budgets=(Budget(10.0),), hard=hard)
        ended: list[int] = []
        with ServeProcess(tmp_path, "", ONE_KEY="k") as served:

            def ask(words: str) -> None:
                message = [{"role": "user", "content": words}]
                body = BODY | {"model": "one/m", "messages": message, "stream": True}
                try:
                    answer = asked(served.origin, "POST", "/v1/messages", body, text)
                except (OSError, http.client.HTTPException):
                    return
                if b"message_stop" in answer[2]:
                    ended.append(answer[0])

            quick = [threading.Thread(target=ask, args=("quick",)) for _ in range(10)]
            held = [threading.Thread(target=ask, args=("slow",), daemon=True) for _ in range(5)]
            for one in (*held, *quick):
                one.start()
            for one in quick:
                one.join(60)
            in_flight = in_store(tmp_path, lambda store: store.spending(key, time.time()))[0]
            served.stop(signal.SIGKILL)
            served.ended()
        assert in_flight.reserved > 0
        assert ended == [200] * 10
        with ServeProcess(tmp_path, "", ONE_KEY="k"):
            after = in_store(tmp_path, lambda store: store.spending(key, time.time()))[0]
        found = rows(tmp_path)
        assert after.reserved == 0
        assert sum(row["status"] == 200 for row in found) == 10
        assert sum(row["error"] == "interrupted" for row in found) == 5
        assert (after.spent >= in_flight.spent + in_flight.reserved) is hard
        assert KEY not in json.dumps(found)


def test_equal_requests_of_a_cached_route_are_answered_once(tmp_path: Path) -> None:
    with Simulated([HELLO]) as upstream:
        settings = PRICED.format(origin=upstream.origin)
        settings += '[gateway.routes.m]\nto = ["one/m"]\ncache = "1h"\n'
        with SettingsGateway(tmp_path, settings) as served:
            for dialect in ("openai-chat", "anthropic-messages", "gemini"):
                path, body = REQUESTS[dialect]
                body = {name: value for name, value in body.items() if name != "max_tokens"}
                if dialect == "anthropic-messages":
                    body["max_tokens"] = 99
                for _ in range(2):
                    status, _, answer = post(served, path, body)
                    assert (status, b"Hello" in answer) == (200, True)
            # Anthropic's requests have a limit, which makes them different ones.
            assert len(upstream.requests) == 2
            path, body = REQUESTS["openai-chat"]
            for more in ({"temperature": 1}, {"temperature": 1}, {"seed": 5}):
                assert post(served, path, body | more)[0] == 200
            assert len(upstream.requests) == 5
    costs = [row["cost"] for row in reversed(rows(tmp_path))]
    assert [bool(cost) for cost in costs] == [True, False, True, False, False, False] + [True] * 3


def test_the_cache_forgets_what_is_old_or_unused() -> None:
    now = [0.0]
    cache = AnswerCache(1000, lambda: now[0])
    events = (TextDelta("x" * 80),)
    for number in range(50):
        cache.put(bytes([number]), events, 60)
        assert cache.get(b"\0") == events
        assert cache.size <= 1000
    assert cache.get(b"\1") is None
    cache.put(b"large", (TextDelta("x" * 500),), 60)
    assert cache.get(b"large") is None
    now[0] = 60.0
    assert cache.get(b"\0") is None


def test_metrics_show_the_memory_and_what_is_left_of_budgets(tmp_path: Path) -> None:
    call = Reply(pieces=(Think("hm"), Call(name="look", arguments="{}")))
    with ServedGateway("anthropic-messages", [call, HELLO], home=tmp_path) as served:
        added(tmp_path, "ada", budgets=(Budget(20.0), Budget(5.0, "day")))
        added(tmp_path, "without")
        path, body = REQUESTS["openai-chat"]
        _, _, answer = post(served, path, body)
        made = json.loads(answer)["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "x"}
        messages = [*body["messages"], {**made, "content": None}, result]
        assert post(served, path, {**body, "messages": messages})[0] == 200
        metrics = asked(served.origin, path="/metrics", key=TOKEN)[2].decode()
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line[0] != "#")
    assert lines["toolwire_memory_entries"] == lines["toolwire_memory_hits_total"] == "1"
    assert lines["toolwire_memory_edited_total"] == lines["toolwire_memory_misses_total"] == "0"
    assert int(lines["toolwire_memory_bytes"]) > 1000
    assert lines['toolwire_budget_left_dollars{key="ada"}'] == "5"
    assert not any("without" in name for name in lines)
