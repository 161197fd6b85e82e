import asyncio
import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from toolwire.cli.commands import toolwire
from toolwire.events import Usage
from toolwire.gateway.accounts import ledger_file
from toolwire.gateway.keys import opens, split_key
from toolwire.gateway.ledger import SqliteLedger
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import Entry, VirtualKey

KEY = re.compile(r"tw-[0-9a-z]{8}-[A-Za-z0-9_-]{43}\n")


class Home:
    """A home folder with keys in it."""

    def __init__(self, path: Path) -> None:
        self.environ = {"TOOLWIRE_HOME": str(path), "HOME": str(path)}

    def run(self, *words: str, code: int = 0) -> Result:
        found = CliRunner().invoke(toolwire, list(words), env=self.environ)
        assert found.exit_code == code, found.output
        return found

    def json(self, *words: str) -> object:
        return json.loads(self.run(*words, "--json").stdout)

    def stored(self, key_id: str) -> VirtualKey | None:
        store = SqliteLedger(ledger_file(self.environ))
        try:
            return asyncio.run(store.key(key_id))
        finally:
            store.close()

    def book(self, *records: RequestRecord) -> None:
        async def work() -> None:
            store = SqliteLedger(ledger_file(self.environ))
            for record in records:
                await store.book(Entry(record, record.key_id))
            store.close()

        asyncio.run(work())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_key_is_created_shown_listed_and_revoked(home: Home) -> None:
    words = ["--models", "groq/*", "--routes", "fast", "--budget", "20/month", "--rpm", "60"]
    made = home.run("keys", "create", "ci", *words, "--expires", "2099-01-31", "--scope", "raw")
    assert KEY.fullmatch(made.stdout)
    assert "not shown again" in made.stderr
    secret = made.stdout.strip()
    listed = home.run("keys", "list").stdout
    assert "ci" in listed
    assert "$0.00 of 20/month" in listed
    assert "60 rpm, fast, groq/*" in listed
    shown = home.json("keys", "show", "ci")
    assert isinstance(shown, dict)
    assert (shown["state"], shown["budgets"], shown["scopes"]) == ("active", ["20/month"], ["raw"])
    assert shown["expires"] == "2099-02-01T00:00:00+00:00"
    for output in (listed, json.dumps(shown), home.run("keys", "show", "ci").stdout):
        assert secret[12:] not in output
        assert "digest" not in output
    home.run("keys", "revoke", "ci")
    assert home.json("keys", "list") == []
    assert [one["state"] for one in home.json("keys", "list", "--all")] == ["revoked"]  # pyright: ignore[reportGeneralTypeIssues, reportIndexIssue, reportCallIssue, reportArgumentType]


def test_a_rotated_key_has_a_new_secret_and_the_old_one_for_a_day(home: Home) -> None:
    old = split_key(home.run("keys", "create", "ci").stdout.strip())
    new = split_key(home.run("keys", "rotate", "ci").stdout.strip())
    assert old is not None
    assert new is not None
    assert old[0] == new[0]
    stored = home.stored(old[0])
    assert stored is not None
    assert opens(stored, new[1], stored.created + 5)
    assert opens(stored, old[1], stored.created + 5)
    assert not opens(stored, old[1], stored.old_until)
    home.run("keys", "revoke", old[0])
    failed = home.run("keys", "rotate", "ci", code=1)
    assert failed.stderr == 'toolwire: the key "ci" is revoked or expired; create a new one\n'


WRONG = [
    (("create", "a b"), 'toolwire: "a b" cannot be the name of a key'),
    (("create", "ci", "--budget", "much"), 'toolwire: "much" is not a budget'),
    (("create", "ci", "--expires", "2000-01-01"), "would have expired already"),
    (("create", "ci", "--scope", "rwa"), 'unknown scope "rwa"; did you mean "raw"?'),
    (("show", "nope"), 'toolwire: unknown key "nope"'),
    (("revoke", "nope"), 'toolwire: unknown key "nope"; known: none'),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_a_wrong_word_is_one_line_and_no_key(
    home: Home, words: tuple[str, ...], message: str
) -> None:
    failed = home.run("keys", *words, code=1)
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert home.json("keys", "list", "--all") == []


def test_a_name_is_used_once(home: Home) -> None:
    home.run("keys", "create", "ci")
    assert 'there is a key named "ci"' in home.run("keys", "create", "ci", code=1).stderr
    home.run("keys", "revoke", "ci")
    home.run("keys", "create", "ci")


def test_usage_is_summed_by_key_model_and_day(home: Home) -> None:
    assert "no requests" in home.run("usage").stderr
    base = {"time": 1_794_839_400.0, "provider": "groq", "route": "fast"}
    home.book(
        RequestRecord(id="1", key="ci", key_id="a", model="m", cost=0.5, **base),  # pyright: ignore[reportArgumentType]
        RequestRecord(id="2", key="ci", key_id="a", model="n", usage=Usage(input=9), **base),  # pyright: ignore[reportArgumentType]
        RequestRecord(id="3", key="b", key_id="b", model="m", cost=0.25, error="server", **base),  # pyright: ignore[reportArgumentType]
    )
    by_key = home.json("usage")
    assert isinstance(by_key, list)
    assert [(one["key"], one["requests"], one["cost"]) for one in by_key] == [
        ("ci", 2, 0.5),
        ("b", 1, 0.25),
    ]
    by_model = home.run("usage", "--by", "model", "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(by_model)))
    assert [(row["model"], row["cost"], row["unpriced"]) for row in rows] == [
        ("groq/m", "0.75", "0"),
        ("groq/n", "0.0", "1"),
    ]
    assert "2026-11-16  3         1" in home.run("usage", "--by", "day").stdout
    assert home.json("usage", "--since", "2026-11-17") == []
    home.run("usage", "--since", "yesterday", code=2)
    home.run("usage", "--csv", "--json", code=2)
