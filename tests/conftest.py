"""What every test shares: counts shown at the end of the run, and steady random examples."""

import gc
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

# The same examples in every run: a red suite then means a change, not luck. To look for new ones:
# EXPLORE=1 make test
# No deadline per example: on a loaded machine any one of them may take seconds.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "steady")

# Shells start background jobs with SIGINT ignored, and children inherit that: tests that press
# Ctrl-C would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say how much was checked: `counted("1,302 equal")`."""
    return lambda line: record_property("counted", line)


def pytest_collection_finish() -> None:
    """Sixteen thousand tests stay until the end: no later collection has to look at them."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """A third of the time tests wait for processes and clocks: half as many workers more."""
    cores = os.cpu_count() or 1
    return cores + (cores + 1) // 2


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
