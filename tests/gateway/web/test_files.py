import gzip
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from toolwire.gateway.console.static import load_files

WEB = Path(__file__).parents[3] / "src" / "toolwire" / "gateway" / "web"
OWN = sorted(path for path in WEB.rglob("*.js") if path.parent.name != "vendor")
_ANY_IMPORT = re.compile(r"""^\s*(?:import|export)\b[^;]*?from\s*["']([^"']+)["']""", re.MULTILINE)
_DYNAMIC = re.compile(r"""\bimport\(["']([^"']+)["']\)""")
MARKDOWN = {"markdown.js", "vendor/marked.js", "vendor/purify.js"}
LIMIT = 60 * 1024


def reached(start: str, *, dynamic: bool = False) -> set[str]:
    """Files that a module loads, with those that its imports load."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        text = (WEB / name).read_text()
        text = re.sub(r"/\*\*.*?\*/", "", text, flags=re.DOTALL)
        names = _ANY_IMPORT.findall(text) + re.findall(r'from"(\./[^"]+)"', text)
        names += _DYNAMIC.findall(text) if dynamic else []
        for one in names:
            waiting.append(((WEB / name).parent / one).resolve().relative_to(WEB).as_posix())
    return found


def sent(names: set[str]) -> int:
    return sum(len(gzip.compress((WEB / name).read_bytes(), 9)) for name in names - MARKDOWN)


def test_vendored_files_are_those_of_the_table():
    rows = [
        line.split(" | ")
        for line in (WEB / "vendor" / "VERSIONS").read_text().splitlines()
        if not line.startswith("#")
    ]
    table = {row[0]: row[4] for row in rows}
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (WEB / "vendor").glob("*.js")
    }
    assert table == files
    for row in rows:
        package = row[1].removesuffix("/hooks").rpartition("/")[2]
        assert (WEB / "vendor" / f"LICENSE-{package}").is_file(), row


def test_every_import_is_relative_and_served():
    files = load_files()
    everything = reached("main.js", dynamic=True) | {"worker.js"}
    assert everything <= set(files)
    assert {path.relative_to(WEB).as_posix() for path in OWN} <= everything | {"worker.js"}


def test_nothing_is_loaded_from_elsewhere():
    for path in (*OWN, WEB / "index.html", WEB / "style.css"):
        text = path.read_text()
        assert not re.search(r"https?://|//cdn|@import|url\(", text), path.name
        assert "style=" not in text or path.suffix == ".js"
    page = (WEB / "index.html").read_text()
    assert "<style" not in page
    assert "onclick" not in page
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == [""]


def test_only_the_markdown_module_writes_markup():
    pattern = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\("
    )
    writers = {path.name for path in OWN if pattern.search(path.read_text())}
    assert writers == {"markdown.js"}


@pytest.mark.parametrize("page", sorted(path.name for path in (WEB / "pages").glob("*.js")))
def test_a_page_needs_at_most_sixty_kilobytes_of_script(page: str):
    assert sent(reached("main.js") | reached(f"pages/{page}")) <= LIMIT


def test_types_in_comments_hold(tmp_path: Path):
    tsc = shutil.which("tsc")
    local = Path(__file__).parents[3] / "build" / "node_modules" / ".bin" / "tsc"
    if tsc is None and local.exists():
        tsc = str(local)
    if tsc is None or shutil.which("node") is None:
        pytest.skip("no TypeScript: npm install --prefix build typescript")
    done = subprocess.run(
        [tsc, "-p", str(Path(__file__).parent / "tsconfig.json")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
