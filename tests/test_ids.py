import re

from toolwire.ids import new_id


def test_an_id_is_one_word_that_every_reader_takes():
    assert re.fullmatch(r"call_[0-9a-z]{24}", new_id())


def test_an_id_begins_as_it_is_told():
    assert re.fullmatch(r"msg_[0-9a-z]{24}", new_id("msg_"))


def test_ids_differ():
    assert len({new_id() for _ in range(1000)}) == 1000


def test_ids_sort_by_time():
    moments = [new_id()[:14] for _ in range(100)]
    assert moments == sorted(moments)
