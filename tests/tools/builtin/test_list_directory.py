from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspaces import call, context_in, put, refused, write
from toolwire.tools.builtin import list_directory
from toolwire.tools.search.walk import collation_key, in_collation_order


def test_names_are_in_the_order_people_expect() -> None:
    names = ["Zed", "a", "B", "é", "e", "f", "_x", "-x", ".x", "10", "9", "A", "a b", "ab", "$"]
    assert sorted(names, key=collation_key) == [
        *("_x", "-x", ".x", "$", "10", "9", "a", "A", "a b", "ab", "B", "e", "é", "f", "Zed")
    ]


PLAIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=6)


@given(names=st.lists(st.one_of(PLAIN, PLAIN, st.text(max_size=4)), max_size=12))
def test_many_names_are_ordered_as_by_their_keys(names: list[str]) -> None:
    names += [name.upper() for name in names]
    assert in_collation_order(names) == sorted(names, key=collation_key)


def test_ignored_patterns_go_by_the_name(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, a_txt="", b_txt="", a_md="", c1_log="")
    text = call(list_directory.TOOL, context, path=str(root), ignore=["a.*", "c?.log"]).text
    assert text == f"Directory listing for {root}:\nb.txt"


def test_a_link_to_a_directory_is_one_and_a_broken_one_is_not(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, a_txt="")
    write(tmp_path / "outside" / "secret", "")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "broken").symlink_to("nowhere")
    text = call(list_directory.TOOL, context, path=str(root)).text
    assert text == f"Directory listing for {root}:\n[DIR] out\na.txt\nbroken"


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    path = put(context, a_txt="") / "a.txt"
    said = refused(list_directory.TOOL, context, path=str(path))
    assert said == f"Error: Path is not a directory: {path}"
