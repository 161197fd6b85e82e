"""The acceptance run: `python -m tests.gateway.acceptance` writes the console's table of clients.

Every SDK through the gateway to every upstream format, and with `--installed` the command-line
clients that are installed too (`python -m tests.gateway.clients install`).
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolwire import __version__
from toolwire.gateway.console import conformance
from toolwire.gateway.console.conformance import ClientRow, ClientTable

HERE = Path(__file__).parent
TABLE = Path(conformance.__file__).with_name(conformance.CLIENT_TABLE)
COLUMNS = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini",
}
TITLES = {
    "chat": "OpenAI SDK, chat",
    "chat-echo": "OpenAI SDK, chat, reasoning sent back",
    "responses": "OpenAI SDK, responses",
    "responses-by-id": "OpenAI SDK, responses by id",
    "anthropic": "Anthropic SDK",
    "gemini": "Google Gen AI SDK",
}


class Tally:
    """Counts the tests of each client and upstream; a pytest plugin."""

    def __init__(self) -> None:
        self.passed: Counter[tuple[str, str]] = Counter()
        self.run: Counter[tuple[str, str]] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        params = item.callspec.params if hasattr(item, "callspec") else {}
        client = params.get("client") or params.get("name", "")
        cell = (client, params.get("upstream", ""))
        if cell[1] in COLUMNS and not report.skipped and (report.when == "call" or report.failed):
            self.run[cell] += 1
            self.passed[cell] += report.passed
        return report

    def table(self) -> ClientTable:
        """The counts as the console shows them; clients that were skipped are left out."""
        clients = dict.fromkeys(client for client, _ in self.run)
        rows = [
            ClientRow(client=TITLES.get(one, one), cells=[self._cell(one, up) for up in COLUMNS])
            for one in clients
        ]
        columns = list(COLUMNS.values())
        return ClientTable(date=time.time(), version=__version__, columns=columns, rows=rows)

    def _cell(self, client: str, upstream: str) -> str:
        run, passed = self.run[client, upstream], self.passed[client, upstream]
        if not run:
            return "not run"
        return f"{'passed' if passed == run else 'failed'} {passed} of {run}"


def main() -> int:
    """Runs the clients and writes the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--installed", action="store_true", help="installed clients too")
    given = parser.parse_args()
    tally = Tally()
    files = [str(HERE / "test_matrix.py")]
    if given.installed:
        files.append(str(HERE / "test_clients.py"))
    status = pytest.main(["-q", "-m", "not sweep", "-p", "no:cacheprovider", *files], [tally])
    text = msgspec.json.format(msgspec.json.encode(tally.table()), indent=1)
    TABLE.write_bytes(text + b"\n")
    print(f"{sum(tally.passed.values())} of {sum(tally.run.values())} passed; wrote {TABLE.name}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
