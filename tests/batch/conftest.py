"""One cluster of Ray at a time, also where tests run in several processes."""

import fcntl
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture
def alone_on_ray() -> Generator[None]:
    """Waits for other tests on Ray: a cluster has a dozen processes, and two of them starve."""
    with (Path(tempfile.gettempdir()) / "toolwire-tests-on-ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
