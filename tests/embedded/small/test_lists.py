import pytest

from toolwire.embedded.small.figures import by_folder

HEAD = 'Found 3 file(s) matching "**/*" within /home/me/app, sorted by time:'


def told(paths: list[str], files: dict[str, str] | None = None, limit: int = 1600) -> list[str]:
    head, *lines = by_folder("\n".join([HEAD, *paths]), (files or {}).get, limit).splitlines()
    assert head == 'Found 3 file(s) matching "**/*", by folder:'
    return lines


def test_the_folder_with_most_files_comes_first():
    assert told(["a.py", "web/b.py", "web/c.py"]) == [
        "web/ (2): such as b.py, c.py",
        "the top folder (1): such as a.py",
    ]


def test_folders_are_opened_as_long_as_there_are_few():
    wide = [f"tests/t{n}/test.py" for n in range(30)]
    deep = ["src/app/main.py", "src/app/web/page.py", "src/app/web/site.py"]
    assert told([*wide, *deep]) == [
        "tests/ (30): such as t0/test.py, t1/test.py, t10/test.py",
        "src/app/web/ (2): such as page.py, site.py",
        "src/app/ (1): such as main.py",
    ]


@pytest.mark.parametrize(
    ("name", "text", "about"),
    [
        ("__init__.py", '"""Pages and styles."""\n\nimport os\n', "Pages and styles."),
        ("__init__.py", "# -*- coding: utf-8 -*-\nimport os\n", ""),
        ("__init__.py", "import os\n", ""),
        ("__init__.py", "", ""),
        ("__init__.py", "#!/usr/bin/env python\n", ""),
        ("__init__.py", "'''\nPages.\n'''\n", "Pages."),
        ("README.md", "# The web part\n\nMore.\n", "The web part"),
        ("README.md", "<!-- The web part -->\n", "The web part"),
        ("lib.rs", "//! Pages\n", "Pages"),
        ("index.ts", "/**\n * Pages\n */\n", "Pages"),
        ("index.js", "/* Copyright 2020 */\n", ""),
        ("doc.go", f"// {'word ' * 20}\n", f"{'word ' * 12}…"),
    ],
)
def test_a_folder_is_listed_with_its_own_description(name: str, text: str, about: str):
    found = told(["web/b.py", "web/c.py"], {f"web/{name}": text})
    assert found == [f"web/ (2): {about or 'such as b.py, c.py'}"]


@pytest.mark.parametrize(("limit", "shown"), [(1600, 8), (150, 3)])
def test_no_more_is_reported_than_fits(limit: int, shown: int):
    paths = [f"folder{n:02}/a.py" for n in range(20)]
    *lines, last = told(paths, limit=limit)
    assert lines == [f"folder{n:02}/ (1): such as a.py" for n in range(shown)]
    assert last == f"and {20 - shown} other folders"
