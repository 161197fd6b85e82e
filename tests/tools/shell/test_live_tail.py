from pathlib import Path

from toolwire.tools.shell.output import FLOOD, LiveTail, Spool


class Outputs:
    def __init__(self, folder: Path, memory: int = 10 * FLOOD) -> None:
        self.news = LiveTail()
        self._spools = {name: Spool(memory, folder / name) for name in ("out", "err")}

    def say(self, name: str, data: bytes) -> None:
        self._spools[name].add(data)
        self.news.note(self._spools[name], len(data))


def test_news_come_in_order_and_once(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path)
    outputs.say("out", b"a")
    outputs.say("err", b"b")
    outputs.say("out", b"c")
    assert (outputs.news.take(), outputs.news.take()) == (b"abc", b"")
    outputs.say("err", b"d")
    assert outputs.news.take() == b"d"


def test_only_the_end_of_much_is_reported(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path)
    pieces = [f"{number}\n".encode() for number in range(10_000)]
    for piece in pieces:
        outputs.say("out", piece)
    told = outputs.news.take()
    assert b"".join(pieces).endswith(told)
    assert FLOOD - 10 < len(told) <= FLOOD


def test_a_flood_leaves_the_other_output_its_words(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path, memory=FLOOD)
    outputs.say("out", b"before")
    outputs.say("err", b"warning")
    outputs.say("out", b"x" * 3 * FLOOD)
    outputs.say("err", b"error")
    outputs.say("out", b"last")
    end = (b"x" * FLOOD + b"last")[-(FLOOD - FLOOD // 5) :]
    assert outputs.news.take() == end + b"warningerror"


def test_a_spool_that_remembers_less_than_came_is_reported_as_far_as_it_goes(tmp_path: Path):
    news = LiveTail()
    spool = Spool(100, tmp_path / "out", file_limit=0)
    for number in range(100):
        data = f"{number:03}".encode() * 300
        spool.add(data)
        news.note(spool, len(data))
    assert news.take().endswith(b"099")
