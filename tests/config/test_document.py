from pathlib import Path

from toolwire.config.document import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def test_the_page_about_the_settings_is_what_the_settings_say() -> None:
    assert PAGE.read_text("utf-8") == page(), (
        "run: python -m toolwire.config.document > docs/configuration.md"
    )
