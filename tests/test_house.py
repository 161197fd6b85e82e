"""The tree stays as plain as it has become; `python -m tests.house` prints the figures."""

from tests.house import measures

MOST = {
    "source files without later rooms": 350,
    "modules with one importer": 90,
    "lines with the word told": 0,
    "class names shared by packages that import each other": 0,
    "modules loaded by agent.events": 8,
}


def test_the_tree_is_not_harder_to_read_than_before():
    found = measures()
    assert {name: found[name] for name in MOST if found[name] > MOST[name]} == {}
