import os
import re
import time

import pytest

from toolwire.ids import new_id, time_of


def test_an_id_is_one_word_that_every_reader_takes():
    assert re.fullmatch(r"call_[0-9a-z]{24}", new_id())


def test_an_id_begins_as_requested():
    assert re.fullmatch(r"msg_[0-9a-z]{24}", new_id("msg_"))


def test_ids_differ():
    assert len({new_id() for _ in range(1000)}) == 1000


def test_an_id_tells_when_it_was_made():
    before = time.time()
    made = time_of(new_id("req_"), "req_")
    assert made is not None
    assert before - 0.001 <= made <= time.time()


@pytest.mark.parametrize("other", ["", "req_", "req_zzzzzzzzzzzz", "call_é"])
def test_an_id_of_others_tells_no_time(other: str):
    assert time_of(other, "req_") is None


def test_ids_sort_by_time():
    moments = [new_id()[:14] for _ in range(100)]
    assert moments == sorted(moments)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_makes_ids_of_its_own():
    new_id()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, "".join(new_id()[16:] for _ in range(10)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as told:
        theirs = told.read()
    ours = {new_id()[16:] for _ in range(10)}
    assert not ours & {theirs[at : at + 13] for at in range(0, len(theirs), 13)}
