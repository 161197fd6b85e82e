"""Over loopback: clients in processes of their own, taking turns stream by stream."""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import TracebackType

import msgspec

from bench import streams
from bench.client import Ask, Cost
from bench.measure import Samples, worst
from bench.report import Cell, Goal, Section, Table
from bench.sdks import NAMES as SDKS

_READERS = ("bytes", "floor", "ours")
_ON_AIOHTTP = ("aiohttp bytes", "aiohttp floor", "aiohttp ours")
_SAME_STREAM = (*_READERS, *_ON_AIOHTTP)
"""What is compared piece by piece: three readers on our own HTTP, and the same on aiohttp."""
_NO_FLOOR_ON_AIOHTTP = (*_READERS, "aiohttp bytes", "aiohttp ours")
# Short runs are repeated within a turn, so that each figure rests on some 50 ms.
_TIMES = dict.fromkeys(_SAME_STREAM, 4) | {"bytes": 6, "aiohttp bytes": 6}
_BRIEF_TIMES = 20
_SHARED = "ours"
"""Whose process reads paced streams and first events for all of these, in turns:
twenty requests in a row would find a small reader's code in the cache, which none in life does.
"""
# Waking up and waiting are noisy: those that are cheap take turns more often.
_MORE_TURNS = {"burst": 3, "paced": 3, "brief": 12}
_LESS_THAN = {"openai": 20.0, "anthropic": 6.0, "google-genai": 25.0, "litellm": 60.0}
_LITELLM_WIRES = ("chat", "anthropic", "gemini")
LITELLM_PYTHON = "LITELLM_PYTHON"
"""An interpreter that has litellm (and msgspec): its pins do not go with the SDKs measured here."""
_FIRST = {"anthropic": "anthropic-text", "google-genai": "gemini-text"}
Figures = dict[str, Samples]
_PACED = ("chat-text", "anthropic-text")
"""The goal names no stream; it was drawn from measurements of these."""
_QUICK = ("chat-text", "responses-tools", "anthropic-tools", "gemini-text")


class Clients:
    """The provider and one client process per peer."""

    def __init__(self, peers: tuple[str, ...]) -> None:
        self._upstream = _python("bench.upstream")
        assert self._upstream.stdout is not None
        self._port = self._upstream.stdout.readline().strip()
        self._clients = {
            peer: _python("bench.client", peer, self._port, executable=_executable(peer))
            for peer in peers
        }
        # All of them import their libraries at once, before anything is measured.
        for peer in peers:
            self._send(peer, Ask(_FIRST.get(peer, "chat-text"), "brief", 1))
        for peer in peers:
            self._receive(peer)

    def __enter__(self) -> "Clients":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in (*self._clients.values(), self._upstream):
            self._end(process)

    def renew_shared(self) -> None:
        """The shared process anew: where memory happens to lie moves its ratios by a tenth."""
        self._end(self._clients[_SHARED])
        self._clients[_SHARED] = _python("bench.client", _SHARED, self._port)

    def ask(self, peer: str, stream: str, pace: str, times: int) -> Cost:
        """Have one peer read one stream."""
        self._send(peer, Ask(stream, pace, times))
        return self._receive(peer)

    def ask_once(self, peer: str, stream: str, pace: str) -> Cost:
        """The same, once, in the one process that all without an SDK share."""
        self._send(_SHARED, Ask(stream, pace, 1, peer))
        return self._receive(_SHARED)

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def _send(self, peer: str, ask: Ask) -> None:
        pipe = self._clients[peer].stdin
        assert pipe is not None
        pipe.write(msgspec.json.encode(ask).decode() + "\n")
        pipe.flush()

    def _receive(self, peer: str) -> Cost:
        pipe = self._clients[peer].stdout
        assert pipe is not None
        cost = msgspec.json.decode(pipe.readline() or "{}", type=Cost)
        if cost.error or not cost.items:
            raise RuntimeError(f"{peer} could not read its stream: {cost.error or 'it died'}")
        return cost


def _executable(peer: str) -> str:
    return os.environ.get(LITELLM_PYTHON, sys.executable) if peer == "litellm" else sys.executable


def _has_litellm() -> bool:
    return LITELLM_PYTHON in os.environ or find_spec("litellm") is not None


def _python(
    module: str, *arguments: str, executable: str = sys.executable
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def measure(rounds: int, *, quick: bool = False) -> Section:
    """Burst, paced, and the wait for the first event."""
    names = _QUICK if quick else streams.NAMES
    agents = () if quick else ("pydantic-ai", *(("litellm",) if _has_litellm() else ()))
    with Clients((*_SAME_STREAM, *sorted(set(SDKS.values())), *agents)) as clients:
        burst = _turns(clients, names, "burst", rounds, agents)
        paced = _turns(clients, names, "paced", rounds)
        first = _turns(clients, names, "brief", rounds)
    tables = (
        _burst_table(burst),
        _aiohttp_table(burst),
        _paced_table(paced),
        _first_table(first),
    )
    return Section("loopback", tables, (*_burst_goals(burst), *_paced_goals(paced, first)))


def _turns(
    clients: Clients,
    names: tuple[str, ...],
    pace: str,
    rounds: int,
    agents: tuple[str, ...] = (),
) -> Figures:
    """For each stream, the figure of each peer: µs of CPU per frame, or to the first item."""
    samples = {name: Samples() for name in names}
    for turn in range(rounds * _MORE_TURNS[pace]):
        if pace != "burst" and turn % _MORE_TURNS[pace] == 0:
            clients.renew_shared()
        for stream, taken in samples.items():
            peers = [*(_SAME_STREAM if pace == "burst" else _NO_FLOOR_ON_AIOHTTP)]
            if turn < rounds:
                wire = stream.partition("-")[0]
                peers.append(SDKS[wire])
                peers += (one for one in agents if one != "litellm" or wire in _LITELLM_WIRES)
            # Nobody always comes after the same one, which leaves caches full or empty.
            first = turn % len(peers)
            for peer in peers[first:] + peers[:first]:
                if pace != "burst" and peer in _SAME_STREAM:
                    cost = clients.ask_once(peer, stream, pace)
                else:
                    times = {"burst": _TIMES.get(peer, 1), "paced": 1, "brief": _BRIEF_TIMES}
                    cost = clients.ask(peer, stream, pace, times[pace])
                taken.add(peer, cost.first_cpu_us if pace == "brief" else cost.cpu_us)
                taken.add(_wall(peer), cost.first_ms)
    return samples


def _burst_table(cost: Figures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for stream, found in cost.items():
        name = SDKS[stream.partition("-")[0]]
        same = (found["bytes"], found["floor"], found["ours"], found.ratio("ours", "floor"))
        sdk = (name, found[name], found.ratio(name, "ours"))
        agents: list[Cell] = []
        for agent in ("pydantic-ai", "litellm"):
            there = agent in found
            agents += (found[agent], found.ratio(agent, "ours")) if there else (None, None)
        rows.append((stream, *same, *sdk, *agents))
    columns = ("stream", "bytes µs", "floor µs", "ours µs", "ours ÷ floor", "SDK")
    more = ("SDK µs", "SDK ÷ ours", "pydantic-ai µs", "pydantic-ai ÷ ours")
    more += ("litellm µs", "litellm ÷ ours")
    note = "All of HTTP included; bytes, floor and ours on our own HTTP, `async for` on events."
    return Table("Loopback, burst: CPU µs per frame", columns + more, tuple(rows), note)


def _aiohttp_table(cost: Figures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for stream, found in cost.items():
        figures = (found[reader] for reader in _ON_AIOHTTP)
        beyond = found.ratio("aiohttp ours", "aiohttp floor")
        rows.append((stream, *figures, beyond, found.ratio("aiohttp bytes", "bytes")))
    columns = (
        "stream",
        "bytes µs",
        "floor µs",
        "ours µs",
        "ours ÷ floor",
        "bytes: aiohttp ÷ our HTTP",
    )
    note = "The same three readers on aiohttp; last, what aiohttp costs beside our own HTTP."
    return Table("Loopback, burst, on aiohttp: CPU µs per frame", columns, tuple(rows), note)


def _wall(peer: str) -> str:
    return f"{peer}, wall"


def _paced_table(cost: Figures) -> Table:
    note = "One frame per TCP segment, 1 ms apart: mostly kernel and event loop."
    rows = tuple((stream, *_beside_bytes(stream, found)) for stream, found in cost.items())
    return Table("Loopback, paced: CPU µs per frame", _BESIDE_BYTES, rows, note)


def _first_table(cost: Figures) -> Table:
    note = "From the call to the first byte or event of a short answer; connections kept alive."
    rows: list[tuple[Cell, ...]] = []
    for stream, found in cost.items():
        wall = (found[_wall("ours")], found.ratio(_wall("ours"), _wall("bytes")))
        rows.append((stream, *_beside_bytes(stream, found), *wall))
    columns = (*_BESIDE_BYTES, "ours, wall ms", "wall: ours ÷ bytes")
    return Table("Loopback: CPU µs to the first event", columns, tuple(rows), note)


_BESIDE_BYTES = (
    "stream",
    "bytes µs",
    "floor µs",
    "ours µs",
    "ours ÷ bytes",
    "aiohttp bytes µs",
    "ours ÷ aiohttp bytes",
    "both on aiohttp",
    "SDK µs",
    "SDK ÷ ours",
)


def _beside_bytes(stream: str, found: Samples) -> tuple[Cell, ...]:
    name = SDKS[stream.partition("-")[0]]
    same = (found["bytes"], found["floor"], found["ours"], found.ratio("ours", "bytes"))
    other = (found["aiohttp bytes"], found.ratio("ours", "aiohttp bytes"))
    on_aiohttp = found.ratio("aiohttp ours", "aiohttp bytes")
    return (*same, *other, on_aiohttp, found[name], found.ratio(name, "ours"))


def _ratios(figures: Figures, over: str, under: str) -> dict[str, float]:
    return {stream: found.ratio(over, under) for stream, found in figures.items() if over in found}


def _burst_goals(cost: Figures) -> list[Goal]:
    where, value = worst(_ratios(cost, "ours", "floor"))
    goals = [Goal("loopback burst: ours ÷ floor, both on our HTTP", 1.5, value, where)]
    where, value = worst(_ratios(cost, "aiohttp ours", "aiohttp floor"))
    goals.append(Goal("loopback burst: ours ÷ floor, both on aiohttp", 1.5, value, where))
    for sdk, limit in _LESS_THAN.items():
        ratios = _ratios(cost, sdk, "ours")
        if not ratios:
            continue
        where, value = worst(ratios, low=True)
        goals.append(Goal(f"loopback burst: {sdk} ÷ ours", limit, value, where, at_least=True))
    return goals


def _paced_goals(cost: Figures, wait: Figures) -> list[Goal]:
    ratios = _ratios(cost, "ours", "aiohttp bytes")
    where, value = worst({name: ratios[name] for name in ratios if name in _PACED})
    goals = [Goal("loopback paced, text: ours ÷ aiohttp bytes only", 1.25, value, where)]
    where, value = worst(ratios)
    goals.append(Goal("the same, the worst of all streams", 1.25, value, where))
    # On the same transport: the cheaper it is, the more weighs what we add.
    for transport, over, under in (
        ("our HTTP", "ours", "bytes"),
        ("aiohttp", "aiohttp ours", "aiohttp bytes"),
    ):
        where, value = worst(_ratios(wait, over, under))
        what = f"CPU to the first event: ours ÷ bytes only, both on {transport}"
        goals.append(Goal(what, 1.5, value, where))
    return goals
