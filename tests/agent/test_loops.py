import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.agent.loops import Suspicion, TextLoops

HONEST = {
    "numbered tasks": "- [ ] Migrate module number {n} to the new interface and run its tests\n",
    "steps": "Step {n}: open the file, change the import at the top and run the linter again.\n",
    "log lines": "2026-01-01 INFO  worker {n} finished its task and returned to the pool\n",
    "a table without bars": "module_{n:03}    migrated to the new interface    tested    ok\n",
    "headings": "### Part {n} of the migration to the new interface of the library\n\nDone.\n\n",
}


def _read(text: str, size: int = 7) -> Suspicion | None:
    loops = TextLoops()
    for at in range(0, len(text), size):
        found = loops.add(text[at : at + size])
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("line", HONEST.values(), ids=list(HONEST))
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_list_whose_items_differ_is_read_to_its_end(line: str, size: int):
    assert _read("".join(line.format(n=n) for n in range(1, 200)), size) is None


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "I will read the file again to be sure that it is right. ",
        "Let me check. I will read the file once more now. Done. ",
        "我会再次读取该文件以确保它是正确的，然后继续下一步的工作。",
    ],
)
def test_text_that_repeats_is_a_loop(text: str, size: int):
    assert _read(text * 30, size) is not None


def test_two_sentences_in_turn_are_a_loop():
    first = "I will read the file again to be sure that it is right: a. "
    second = "I will read the file again to be sure that it is right: b. "
    assert _read((first + second) * 30) is not None


@given(st.text(alphabet="abc de", min_size=30, max_size=70), st.integers(1, 90))
def test_where_the_text_is_cut_makes_no_difference(text: str, size: int):
    whole = f"Before it begins, a sentence. {text} " * 20
    assert (_read(whole, size) is None) == (_read(whole, 1) is None)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_loop_after_a_long_word_is_found(size: int):
    word = "x" * 9_000
    assert _read(f"{word} and then", size) is None
    assert _read(f"{word} " + "I will read the file again to be sure that it is right. " * 30, size)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_rows_of_equal_values_in_json_are_not_a_loop(size: int):
    assert _read('{"rows": [' + '{"name": "unknown", "people": 0}, ' * 100, size) is None
    assert _read("See this: " + '{"name": "unknown", "people": 0}, ' * 100, size) is not None
