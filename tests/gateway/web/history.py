"""A ledger with many requests of the past, as a gateway that ran for weeks has it."""

import random
import sqlite3
import time
from pathlib import Path

from toolwire.events import Usage
from toolwire.gateway.accounts import ledger_file
from toolwire.gateway.booking import book_entries
from toolwire.gateway.ledger import SqliteLedger
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import Entry

CLIENTS = ("claude-code", "codex", "gemini-cli", "opencode", "aider")
MODELS = (
    ("anthropic", "claude-sonnet-5", "anthropic-messages", 0.021),
    ("google", "gemini-3-pro", "gemini", 0.012),
    ("openai", "gpt-5.6", "openai-responses", 0.016),
    ("deepseek", "deepseek-v4", "openai-chat", 0.001),
)
FORMATS = ("anthropic-messages", "openai-responses", "gemini", "openai-chat")
KEYS = ("admin", "ci", "ada")


def fill(home: Path, count: int, *, days: float = 30.0, seed: int = 1) -> None:
    """Books that many requests of the last days, the newest a minute ago."""
    path = ledger_file({"TOOLWIRE_HOME": str(home)})
    path.parent.mkdir(parents=True, exist_ok=True)
    SqliteLedger(path).close()
    chance = random.Random(seed)
    now = time.time() - 60
    step = days * 86_400 / count
    with sqlite3.connect(path, isolation_level=None) as base:
        base.execute("BEGIN")
        for number in range(count):
            record = _record(number, now - (count - number) * step, chance)
            book_entries(base, (Entry(record, record.key_id),))
        base.execute("COMMIT")


def _record(number: int, at: float, chance: random.Random) -> RequestRecord:
    provider, model, dialect, price = MODELS[chance.choice((0, 0, 0, 1, 1, 2, 3))]
    failed = chance.random() < 0.02
    seconds = chance.lognormvariate(0.8, 0.6)
    key = chance.choice(KEYS)
    output = 0 if failed else chance.randint(20, 1800)
    read = chance.randint(800, 60_000)
    return RequestRecord(
        id=f"req_past{number:08x}",
        time=at,
        path="/v1/messages",
        key=key,
        key_id=key,
        client=chance.choice(CLIENTS),
        conversation=f"c{number // 9}",
        client_format=chance.choice(FORMATS),
        upstream_format=dialect,
        requested_model=model,
        route=model,
        provider=provider,
        model=model,
        deployment=f"{provider}/{model}",
        status=429 if failed else 200,
        stop_reason="" if failed else chance.choice(("end", "tool_calls")),
        usage=Usage(input=read, output=output, cached=int(read * chance.random() * 0.8)),
        cost=None if failed else price * read / 9000,
        cost_source="none" if failed else "table",
        first_event=seconds / 3,
        duration=seconds,
        overhead=0.0008,
        losses=chance.choice((0, 0, 0, 0, 1, 2)),
        bytes_in=read * 4,
        bytes_out=output * 4,
        streamed=True,
        error="rate_limit" if failed else "",
    )
