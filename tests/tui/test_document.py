"""Every key, mark and colour is in a table of the documentation."""

from pathlib import Path

from toolwire.tui.document import TABLES, written

PAGE = Path(__file__).parents[2] / "docs" / "terminal.md"


def test_the_tables_of_the_page_are_those_of_the_program():
    page = PAGE.read_text("utf-8")
    assert written(page) == page
    for table in TABLES.values():
        assert table() in page
