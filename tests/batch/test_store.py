import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.postgres import postgres_url
from toolwire.batch.results import Result, State, encode, read_lines
from toolwire.batch.sqlite import SqliteBatch
from toolwire.batch.store import BatchLost
from toolwire.batch.tasks import Task
from toolwire.errors import BadInput

if TYPE_CHECKING:
    from toolwire.batch.postgres import PostgresBatch

    AnyBatch: TypeAlias = SqliteBatch | PostgresBatch


class Batches(msgspec.Struct, frozen=True):
    """One batch in a store of either kind."""

    folder: Path
    url: str = ""

    def create(self) -> "AnyBatch":
        if not self.url:
            return SqliteBatch.create(self.folder)
        from toolwire.batch.postgres import PostgresBatch

        return PostgresBatch.create(self.url, "b1")

    def open(self) -> "AnyBatch":
        if not self.url:
            return SqliteBatch(self.folder)
        from toolwire.batch.postgres import PostgresBatch

        return PostgresBatch(self.url, "b1")


@pytest.fixture(params=["sqlite", "postgres"])
def batches(request: pytest.FixtureRequest, tmp_path: Path) -> Batches:
    return Batches(tmp_path, postgres_url() if request.param == "postgres" else "")


def made(batches: Batches, count: int = 3, attempts: int = 1) -> "AnyBatch":
    store = batches.create()
    store.add((Task(id=f"t{n}", prompt="x") for n in range(count)), ["m"], attempts)
    store.publish()
    store.take()
    return store


def test_attempts_wait_run_and_end_once(batches: Batches):
    store = made(batches, attempts=2)
    assert [(one.n, one.id, one.attempt) for one in store.waiting(0, 99)] == [
        (1, "t0", 1),
        (2, "t0", 2),
        (3, "t1", 1),
        (4, "t1", 2),
        (5, "t2", 1),
        (6, "t2", 2),
    ]
    claim = store.claim(3, "h")
    assert (claim.id, claim.attempt, claim.tries) == ("t1", 1, 1)
    assert store.holds(claim)
    assert 3 not in [one.n for one in store.waiting(0, 99)]
    result = Result(id="t1", state=State.PASSED, cost=2.5)
    assert store.finish(claim, result)
    assert not store.finish(claim, result)
    assert store.ended(3) == result
    assert (store.totals().states, store.totals().cost) == ({"waiting": 5, "passed": 1}, 2.5)
    assert list(store.results()) == [result]
    assert store.task("t1") == Task(id="t1", prompt="x")


def test_a_claim_that_was_given_back_cannot_finish(batches: Batches):
    store = made(batches)
    old = store.claim(1, "h")
    store.give_back(1)
    assert not store.holds(old)
    new = store.claim(1, "g")
    assert not store.finish(old, Result(id="t0", state=State.PASSED))
    assert store.finish(new, Result(id="t0", state=State.FAILED))


def test_attempts_of_a_driver_that_died_wait_again(batches: Batches):
    store = made(batches)
    claim = store.claim(2, "h")
    store.close()
    later = batches.open()
    assert not later.is_taken()
    assert later.take() == 2
    assert later.recover() == 1
    assert not later.finish(claim, Result(id="t1", state=State.PASSED))
    assert len(later.waiting(0, 9)) == 3
    # Its workspace stays, though its first try does not count.
    assert 2 in later.unfinished()


def test_a_second_driver_is_refused_and_the_first_is_named(tmp_path: Path):
    store = made(Batches(tmp_path))
    code = (
        "import sys; from pathlib import Path; from toolwire.batch.sqlite import SqliteBatch\n"
        f"store = SqliteBatch(Path({str(tmp_path)!r})); print(store.is_taken()); store.take()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True"
    assert "is being run by process" in done.stderr
    assert store.is_taken()


def test_a_driver_whose_epoch_is_over_changes_nothing(tmp_path: Path):
    store = made(Batches(tmp_path))
    other = SqliteBatch(tmp_path)
    other.set_meta("epoch", "9")
    for change in (lambda: store.claim(1, "h"), lambda: store.give_back(1), store.recover):
        with pytest.raises(BatchLost):
            change()


def test_a_folder_has_one_batch(tmp_path: Path):
    made(Batches(tmp_path)).close()
    with pytest.raises(BadInput, match="already has a batch"):
        SqliteBatch.create(tmp_path)
    with pytest.raises(BadInput, match="is not the folder of a batch"):
        SqliteBatch(tmp_path / "none")


def test_a_batch_that_was_killed_while_it_was_made_is_none(tmp_path: Path):
    draft = SqliteBatch.create(tmp_path)
    draft.add([Task(id="a", prompt="x")], [""], 1)
    with pytest.raises(BadInput, match="is not the folder of a batch"):
        SqliteBatch(tmp_path)
    again = SqliteBatch.create(tmp_path)
    again.add([Task(id="b", prompt="x")], [""], 1)
    again.publish()
    assert again.ids() == SqliteBatch(tmp_path).ids() == ["b"]


def test_tasks_are_added_as_a_whole(batches: Batches):
    store = batches.create()

    def broken():
        yield Task(id="a", prompt="x")
        raise BadInput("line 2")

    with pytest.raises(BadInput):
        store.add(broken(), [""], 1)
    assert store.totals().all == 0


def test_attempts_are_run_again_by_state_or_id(batches: Batches):
    store = made(batches, 4)
    for n, state in ((1, State.PASSED), (2, State.FAILED), (3, State.ERROR)):
        store.finish(store.claim(n, "h"), Result(id=f"t{n - 1}", state=state))
    assert [one.id for one in store.again(("error",))] == ["t2"]
    assert [one.id for one in store.again((), ("t0", "t3"))] == ["t0"]
    assert store.totals().states == {"waiting": 3, "failed": 1}


@given(st.integers(0, 400))
def test_lines_cut_by_a_crash_are_left_out(cut: int):
    import tempfile

    lines = [Result(id=str(at), state=State.PASSED) for at in range(2)]
    body = b"".join(encode(line) + b"\n" for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        path.write_bytes(body[:cut])
        assert list(read_lines(path)) == lines[: body[:cut].count(b"\n")]
