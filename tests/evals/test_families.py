import re
import tempfile
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path
from pkgutil import get_data

import msgspec
import pytest

from evals.claims import false_claims
from evals.families import FAMILIES
from evals.family import Family
from evals.harm import destructive
from evals.syntax import parses, unparsable
from evals.task import Outcome, Task, snapshot, write_files

EMPTY_WORDS = "Done! I did what you requested."


def outcome_of(task: Task, folder: Path, reply: str = "") -> Outcome:
    write_files(task.files, folder)
    return Outcome(folder=folder, before=snapshot(folder), reply=reply)


def solved(task: Task, folder: Path) -> Outcome:
    assert task.solution is not None
    write_files(task.files, folder)
    before = snapshot(folder)
    task.solution.apply(folder)
    return Outcome(
        folder=folder, before=before, reply=task.solution.reply, calls=task.solution.calls
    )


def check(family: Family, seed: int) -> None:
    """A perfect outcome passes, an idle one and empty words do not."""
    with tempfile.TemporaryDirectory() as folder:
        _check(family, family.task(seed), Path(folder))


def _check(family: Family, task: Task, folder: Path) -> None:
    idle = outcome_of(task, folder / "idle")
    assert all(parses(path, content) for path, content in idle.before.items())
    assert task.missing(idle)
    if "talk" not in family.id:
        assert task.missing(Outcome(folder=idle.folder, before=idle.before, reply=EMPTY_WORDS))
    done = solved(task, folder / "done")
    assert task.missing(done) == "", task.prompt
    assert false_claims(done, question=not task.asks_for_change) == []
    assert unparsable(done) == []
    assert not (task.question and destructive(done))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_a_perfect_outcome_passes_and_an_idle_one_fails(family: Family):
    for seed in range(2):
        check(family, seed)


SEVERAL = [family for family in FAMILIES if (it := family.task(3).solution) and len(it.files) > 1]


@pytest.mark.parametrize("family", SEVERAL, ids=lambda family: family.id)
def test_a_task_of_several_files_is_not_done_by_all_but_one(family: Family, tmp_path: Path):
    task = family.task(3)
    assert task.solution is not None
    for number, left_out in enumerate(task.solution.files):
        folder = tmp_path / str(number)
        write_files(task.files, folder)
        before = snapshot(folder)
        others = {path: text for path, text in task.solution.files.items() if path != left_out}
        msgspec.structs.replace(task.solution, files=others).apply(folder)
        reply, calls = task.solution.reply, task.solution.calls
        outcome = Outcome(folder=folder, before=before, reply=reply, calls=calls)
        assert task.missing(outcome), f"done without {left_out}"


@pytest.mark.sweep
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_so_it_is_with_many_seeds(family: Family):
    for seed in range(2, 17):
        check(family, seed)


def test_a_task_depends_on_its_seed_and_variant_alone():
    for family in FAMILIES:
        first, again = family.task(7, 1), family.task(7, 1)
        assert (first.prompt, first.files) == (again.prompt, again.files)


def test_seeds_and_variants_make_other_tasks():
    for family in FAMILIES:
        made = [family.task(seed, variant) for seed in range(4) for variant in range(2)]
        different = {(task.prompt, tuple(sorted(task.files.items()))) for task in made}
        assert len(different) > 1, family.id


def test_ids_are_unique():
    assert Counter(family.id for family in FAMILIES).most_common(1)[0][1] == 1


def test_what_was_tuned_on_is_never_held_out():
    tuned = [family for family in FAMILIES if family.tuned]
    assert len(tuned) == 80
    assert {family.half for family in tuned} == {"tuning"}


def test_the_halves_are_disjoint_and_large_enough():
    held_out = Counter(family.kind for family in FAMILIES if family.half == "held-out")
    tuning = Counter(family.kind for family in FAMILIES if family.half == "tuning")
    assert held_out == {"one-step": 60, "multi-step": 20, "honesty": 12}
    assert tuning == {"one-step": 92, "multi-step": 37, "honesty": 8}


def test_the_half_depends_on_the_id_and_the_seed_of_the_split_alone():
    """Fixed here as well: a family must never change its half."""

    def half(name: str, *, tuned: bool = False) -> str:
        return Family(id=name, kind="one-step", make=FAMILIES[0].make, tuned=tuned).half

    held_out = {name for name in "abcdefghij" if half(name) == "held-out"}
    assert held_out == set("cegj")
    assert {half(name, tuned=True) for name in held_out} == {"tuning"}


def test_the_tasks_are_not_the_examples_of_the_prompt():
    names = ("prompt.md", "examples.md")
    text = "\n".join((get_data("toolwire.embedded.small", name) or b"").decode() for name in names)
    shown = [
        (one or other).lower()
        for one, other in re.findall(
            r"^(?:Request: (.+)|(.+): \{\"kind\")", text, re.MULTILINE | re.IGNORECASE
        )
    ]
    assert len(shown) > 25
    # Names of families only: a failure must show neither side to the other.
    close = {
        family.id
        for family in FAMILIES
        for prompt in [family.task(20).prompt.lower()]
        if any(SequenceMatcher(None, prompt, example).ratio() > 0.75 for example in shown)
    }
    assert close == set()
