from pathlib import Path

from toolwire.cli.document import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


def test_the_reference_is_what_the_commands_print() -> None:
    assert PAGE.read_text("utf-8") == page(), (
        "run: python -m toolwire.cli.document > docs/reference.md"
    )
