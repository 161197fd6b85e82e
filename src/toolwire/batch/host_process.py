"""`python -m toolwire.batch.host_process OUT FD`: a host of the local executor.

Lines of JSON on the descriptor: orders in, ends of attempts out. Its end is the driver's end: the
host then stops at once.
"""

import asyncio
import os
import socket
import sys
import threading
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec

from toolwire.batch.host import Host, open_host, settled
from toolwire.batch.host_line import AttemptEnded, Cancel, Greet, Order, Start, StopAll, orders
from toolwire.batch.store import Claim

_LONGEST_LINE = 1 << 20
_EXIT_WITHIN = 5.0


async def serve(out: Path, line: socket.socket) -> None:
    """Takes orders until the line ends."""
    reader, writer = await asyncio.open_connection(sock=line, limit=_LONGEST_LINE)
    first = await reader.readline()
    greeting = orders.decode(first) if first.endswith(b"\n") else None
    if not isinstance(greeting, Greet):
        # The driver ended before it said anything.
        return

    def report(claim: Claim) -> None:
        if not writer.is_closing():
            writer.write(msgspec.json.encode(AttemptEnded(claim.n)) + b"\n")

    async with AsyncExitStack() as stack:
        host = await open_host(
            stack,
            out,
            name=greeting.name,
            environ=os.environ,
            upstream=greeting.upstream,
            done=report,
        )
        writer.write(msgspec.json.encode(AttemptEnded(0)) + b"\n")
        with suppress(OSError):
            while text := await reader.readline():
                _obey(host, orders.decode(text))
        await settled(host, 0.0)
        with suppress(OSError):
            writer.close()


def _obey(host: Host, order: Order) -> None:
    match order:
        case Start():
            host.start(order.claim)
        case Cancel():
            host.cancel(order.n)
        case StopAll():
            host.stop(hard=order.hard)
        case Greet():
            pass


def main() -> None:
    """Runs the host of this process's arguments."""
    out, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    asyncio.run(serve(out, socket.socket(fileno=descriptor)))
    # Threads of a tool that hangs must not keep a host alive.
    timer = threading.Timer(_EXIT_WITHIN, os._exit, (0,))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
