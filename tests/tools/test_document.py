from pathlib import Path

from toolwire.tools.document import page
from toolwire.tools.registry import builtins

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"


def test_the_page_about_the_tools_is_generated_from_the_tools() -> None:
    assert PAGE.read_text("utf-8") == page(builtins()), (
        "run: python -m toolwire.tools.document > docs/tools.md"
    )
