"""Hook of the documentation site: adds the pages of the root folder, and drawings of diagrams."""

import re
from hashlib import sha256
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_CODE = re.compile(r"`[^`\n]*`")
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_DIAGRAM = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!\w+://)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the root folder."""
    root = Path(config.docs_dir).parent
    for source, target in PAGES.items():
        text = (root / source).read_text("utf-8")
        files.append(File.generated(config, target, content=_LINK.sub(_from_root, text)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links that leave `docs/` at those pages, and shows diagrams as drawings."""
    for source, target in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    markdown = _ROW.sub(_without_escapes, markdown)
    return _DIAGRAM.sub(lambda found: _drawing(found, files), markdown)


def _drawing(diagram: re.Match[str], files: Files) -> str:
    """The drawing of this source; the source itself if it was not drawn since its last change."""
    drawn = f"diagrams/{sha256(diagram[1].encode()).hexdigest()[:12]}.svg"
    return f"![Diagram]({drawn})" if files.get_file_from_path(drawn) else diagram[0]


def _without_escapes(row: re.Match[str]) -> str:
    """A row of a table without `\\|` in code, which code hosts need and MkDocs would show."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def _from_root(link: re.Match[str]) -> str:
    return PAGES.get(link[1], link[1].removeprefix("docs/"))
