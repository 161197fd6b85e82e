import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.examples import ROOT

pytest.importorskip("mkdocs")
_LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+rel=["']?(?:stylesheet|preconnect|icon)["']?[^>]+href=["']?(?:https?:)?//"""
)

_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_diagram_is_drawn_as_it_is_now() -> None:
    docs = ROOT / "docs"
    sources = [
        one for page in docs.rglob("*.md") for one in _DIAGRAM.findall(page.read_text("utf-8"))
    ]
    drawn = {f"{sha256(source.encode()).hexdigest()[:12]}.svg" for source in sources}
    found = {path.name for path in (docs / "diagrams").glob("*.svg")}
    assert found == drawn, "draw the diagrams again: CONTRIBUTING.md, Change a diagram"


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
