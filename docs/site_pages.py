"""Hook of the documentation site: the files beside `docs/` become pages too, with their links."""

import re
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
_LINK = re.compile(r"(?<=\]\()(?!\w+://)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the root folder."""
    root = Path(config.docs_dir).parent
    for source, target in PAGES.items():
        text = (root / source).read_text("utf-8")
        files.append(File.generated(config, target, content=_LINK.sub(_from_root, text)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links that leave `docs/` at the pages made above."""
    for source, target in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    return markdown


def _from_root(link: re.Match[str]) -> str:
    return PAGES.get(link[1], link[1].removeprefix("docs/"))
