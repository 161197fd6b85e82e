from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.batch import tasks
from toolwire.batch.tasks import (
    Check,
    Selection,
    Task,
    TaskWorkspace,
    folder_name,
    parse_lines,
    read_tasks,
)
from toolwire.errors import BadInput

HERE = Path("/project")


def parse(*lines: str) -> list[Task]:
    return list(parse_lines([line.encode() + b"\n" for line in lines], "t.jsonl", HERE))


def test_a_task_has_its_line_number_as_id_and_absolute_paths():
    found = parse(
        "",
        '{"prompt": "a", "workspace": {"folder": "x"}, "attachments": ["b.png"]}',
        '{"id": "two", "prompt_file": "p.md", "workspace": {"git": "../r", "commit": "main"},'
        ' "check": {"command": "make", "copy": {"tests": "hidden"}}}',
        '{"id": "c", "prompt": "x", "workspace": {"image": "i:1", "folder": "/app"}}',
        '{"id": "d", "prompt": "x", "workspace": {"git": "git@host:a/b.git"}}',
    )
    assert found == [
        Task(
            id="2",
            prompt="a",
            workspace=TaskWorkspace(folder="/project/x"),
            attachments=("/project/b.png",),
        ),
        Task(
            id="two",
            prompt_file="/project/p.md",
            workspace=TaskWorkspace(git="/r", commit="main"),
            check=Check(command="make", copy={"tests": "/project/hidden"}),
        ),
        Task(id="c", prompt="x", workspace=TaskWorkspace(image="i:1", folder="/app")),
        Task(id="d", prompt="x", workspace=TaskWorkspace(git="git@host:a/b.git")),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"promt": "a"}', 't.jsonl:1: unknown member "promt"; did you mean "prompt"?'),
        (
            '{"prompt": "a", "check": {"comand": "x"}}',
            't.jsonl:1: unknown member "comand" in check; did you mean "command"?',
        ),
        ('{"prompt": "a", "limits": {"zz": 1}}', 'unknown member "zz" in limits; known: turns'),
        ('{"prompt": 1}', "t.jsonl:1: Expected `str`, got `int` - at `$.prompt`"),
        ("{", "t.jsonl:1: not JSON"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "not JSON"),
        ("[" * 100_000, "t.jsonl:1: "),
        ('{"id": "a"}', "t.jsonl:1: give either prompt or prompt_file"),
        ('{"prompt": "a", "prompt_file": "b"}', "give either prompt or prompt_file"),
        ('{"prompt": "a", "workspace": {"commit": "x"}}', "commit and subfolder need git"),
        ('{"prompt": "a", "workspace": {"git": "x", "folder": "y"}}', "exclude each other"),
        ('{"prompt": "a", "workspace": {"files": {"../x": "y"}}}', "relative path"),
        ('{"prompt": "a", "workspace": {"files": {".git/config": "y"}}}', "is inside .git"),
        ('{"prompt": "a", "workspace": {"git": "-x"}}', "cannot begin with a dash"),
        ('{"prompt": "a", "workspace": {"git": "x", "subfolder": "/etc"}}', "relative path"),
        ('{"prompt": "a", "check": {"command": " "}}', "check.command is empty"),
        ('{"prompt": "a", "id": "x\\ny"}', "none of them a control"),
        ('{"prompt": "a", "limits": {"turns": -1}}', "`int` >= 0"),
        ("", "contains no task"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, words: str):
    with pytest.raises(BadInput) as caught:
        parse(line)
    assert words in str(caught.value)


def test_two_tasks_with_one_id_name_both_lines():
    with pytest.raises(BadInput, match=r't\.jsonl:3: id "a" is used on line 1 too'):
        parse('{"id": "a", "prompt": "x"}', "", '{"id": "a", "prompt": "y"}')
    with pytest.raises(BadInput, match="would share a folder"):
        parse('{"id": "a", "prompt": "x"}', '{"id": "A", "prompt": "y"}')


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BadInput, match=r"cannot read .*none\.jsonl: No such file"):
        list(read_tasks(tmp_path / "none.jsonl"))


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_are_tasks_or_bad_input(lines: list[bytes]):
    try:
        found = list(parse_lines(lines, "t", HERE))
    except BadInput:
        return
    assert found


@settings(max_examples=25)
@given(st.text(min_size=1, max_size=300))
def test_a_folder_name_is_one_safe_name(id: str):
    name = folder_name(id)
    assert Path(name).name == name
    assert name not in ("", ".", "..")
    assert len(name.encode("utf-8", "surrogatepass")) <= 4 * 110
    assert not name.startswith(".")


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=30))
def test_different_ids_have_different_folders(ids: list[str]):
    assert len({folder_name(id) for id in ids}) == len(ids)


def made(count: int) -> list[Task]:
    return [
        Task(id=f"t{at}", prompt="x", tags=("even",) if at % 2 == 0 else ()) for at in range(count)
    ]


def test_a_selection_filters_samples_and_limits():
    all_ = made(100)
    assert [one.id for one in Selection(filter=("t1?",), limit=3).of(all_)] == ["t10", "t11", "t12"]
    assert len(list(Selection(filter=("even",)).of(all_))) == 50
    first = [one.id for one in Selection(sample=7, seed=1).of(all_)]
    assert len(first) == 7
    assert first == sorted(first, key=lambda id: int(id[1:]))
    assert first == [one.id for one in Selection(sample=7, seed=1).of(made(100))]
    assert first != [one.id for one in Selection(sample=7, seed=2).of(all_)]


@given(st.permutations(range(40)), st.integers(1, 40), st.integers(0, 3))
def test_a_sample_does_not_depend_on_the_order(order: list[int], count: int, seed: int):
    all_ = made(40)
    given_ = Selection(sample=count, seed=seed)
    shuffled = [all_[at] for at in order]
    assert {one.id for one in given_.of(all_)} == {one.id for one in given_.of(shuffled)}


def test_a_task_reads_back_as_it_was_written():
    task = parse('{"prompt": "a", "meta": {"k": [1, null]}, "tags": ["x"], "effort": "low"}')[0]
    assert tasks.decode(tasks.encode(task)) == task
    changed = msgspec.structs.replace(task, prompt="b")
    assert task.digest == tasks.decode(tasks.encode(task)).digest != changed.digest
