"""Counts that tests record are shown at the end of the run, whichever worker made them."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say how much was checked: `counted("1,302 equal")`."""
    return lambda line: record_property("counted", line)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = [
        str(line)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, line in getattr(report, "user_properties", ())
        if name == "counted" and getattr(report, "when", "") == "call"
    ]
    if lines:
        terminalreporter.section("what was counted")
        for line in sorted(set(lines)):
            terminalreporter.write_line(line)
