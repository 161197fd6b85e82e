"""One client process: reads asked-for streams over loopback and tells what they cost it.

Run as `python -m bench.client PEER PORT`; each line on stdin is an `Ask`, each on stdout a `Cost`.
Imports and connections are paid once, so that peers can take turns stream by stream.
"""

import asyncio
import gc
import os
import sys
import time
from functools import cache
from statistics import median

import msgspec

from bench import peers, streams
from bench.upstream import EVENTS, model_name


class Ask(msgspec.Struct, frozen=True):
    """Read this stream so many times."""

    stream: str
    pace: str
    times: int
    peer: str = ""
    """Another way to read than the one the process was started for."""


class Cost(msgspec.Struct, frozen=True):
    """What it took: CPU of this process per frame and up to the first item, and the wait for it."""

    cpu_us: float = 0.0
    first_cpu_us: float = 0.0
    first_ms: float = 0.0
    items: int = 0
    error: str = ""


async def _read(open_stream: peers.Open, model: str) -> tuple[float, float, int]:
    """CPU and wall time to the first item, and how many there were."""
    begun, spent = time.perf_counter(), time.process_time()
    first_cpu = first = 0.0
    count = 0
    async for _ in open_stream(model):
        if not count:
            first_cpu = time.process_time() - spent
            first = time.perf_counter() - begun
        count += 1
    return first_cpu, first, count


@cache
def _frames(stream: str, pace: str) -> int:
    return len(streams.build(stream, EVENTS[pace]).frames)


async def _cost(open_stream: peers.Open, ask: Ask) -> Cost:
    frames = _frames(ask.stream, ask.pace)
    model = model_name(ask.stream, ask.pace)
    begun = time.process_time()
    firsts_cpu: list[float] = []
    firsts: list[float] = []
    count = 0
    for _ in range(ask.times):
        first_cpu, first, count = await _read(open_stream, model)
        firsts_cpu.append(first_cpu)
        firsts.append(first)
    # What the peer left for the event loop to do belongs to its bill.
    await asyncio.sleep(0.01)
    spent = time.process_time() - begun
    per_frame = spent / ask.times / frames * 1e6
    return Cost(per_frame, median(firsts_cpu) * 1e6, median(firsts) * 1e3, count)


async def _serve(peer: str, port: int) -> None:
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    opened: dict[tuple[str, str], peers.Open] = {}
    for line in sys.stdin:
        ask = msgspec.json.decode(line, type=Ask)
        reader, key = ask.peer or peer, (ask.peer or peer, ask.stream)
        try:
            if key not in opened:
                opened[key] = peers.PEERS[reader](f"http://127.0.0.1:{port}", ask.stream)
                for pace in ("brief", "burst"):
                    warm_up = _read(opened[key], model_name(ask.stream, pace))
                    await asyncio.wait_for(warm_up, 60)
                gc.collect()
                gc.freeze()
            cost = await asyncio.wait_for(_cost(opened[key], ask), 120)
        except Exception as error:
            cost = Cost(error=f"{type(error).__name__}: {error}"[:300])
        answers.write(msgspec.json.encode(cost) + b"\n")


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
    # Sessions of peers are not worth closing one by one.
    os._exit(0)
