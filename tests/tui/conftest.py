from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes.simulated import Place
from tests.tui.apps import Apps


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def apps(place: Place) -> Generator[Apps]:
    found = Apps(place)
    yield found
    found.close()
