import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import ROOT

pytest.importorskip("mkdocs")
_LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+rel=["']?(?:stylesheet|preconnect|icon)["']?[^>]+href=["']?(?:https?:)?//"""
)


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    assert [str(page) for page in pages if _LOADED.search(page.read_text("utf-8"))] == []
