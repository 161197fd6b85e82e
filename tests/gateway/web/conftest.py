"""One browser for the tests of a file."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.gateway.web.chromium import chromium


# Playwright leaves its event loop running in the thread: a browser that outlived its file would
# break every later test of the worker that starts a loop.
@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as one:
        yield one
