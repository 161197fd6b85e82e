"""A stdio server that ends, or ends its client, at a chosen point: `SETTINGS` is a JSON object.

`point` and `how` say where and in which way; `once` is a file that lets only the first life crash.
Each call is written to the file `record` before it is answered. Every life starts two processes of
its own, one in a session of its own, whose command lines contain `token`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = json.loads(sys.argv[1]) if __name__ == "__main__" else {}
POINTS = (
    "start",
    "noise",
    "initialize received",
    "initialize half answered",
    "initialize answered",
    "initialized",
    "list received",
    "list half answered",
    "list answered",
    "call received",
    "call done",
    "call progress",
    "call half answered",
    "call answered",
    "end of input",
)
WAYS = ("kill", "exit 0", "exit 3", "abort", "close output", "stop", "kill client")


def at(point: str) -> None:
    """Ends here if this is the point."""
    once = SETTINGS.get("once")
    if SETTINGS["point"] != point or (once and Path(once).exists()):
        return
    if once:
        Path(once).touch()
    match SETTINGS["how"]:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit 0":
            os._exit(0)
        case "exit 3":
            os._exit(3)
        case "abort":
            os.abort()
        case "close output":
            os.close(1)
            time.sleep(1000)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            os.kill(SETTINGS["client"], signal.SIGKILL)
            time.sleep(1000)


def write(data: bytes) -> None:
    os.write(1, data)


def answer(name: str, number: Any, result: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"
    write(line[: len(line) // 2])
    at(f"{name} half answered")
    write(line[len(line) // 2 :])
    at(f"{name} answered")


def serve(message: dict[str, Any]) -> None:
    match message.get("method"):
        case "initialize":
            at("initialize received")
            about = {"name": "crashing", "version": "1"}
            found = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            answer("initialize", message["id"], {**found, "serverInfo": about})
        case "notifications/initialized":
            at("initialized")
        case "tools/list":
            at("list received")
            tool = {"name": "do", "inputSchema": {"type": "object"}}
            answer("list", message["id"], {"tools": [tool]})
        case "tools/call":
            call(message)
        case _:
            return


def call(message: dict[str, Any]) -> None:
    at("call received")
    number = message["params"]["arguments"]["number"]
    with Path(SETTINGS["record"]).open("a") as record:
        record.write(f"{number}\n")
    at("call done")
    token = message["params"].get("_meta", {}).get("progressToken")
    params = {"progressToken": token, "progress": 1}
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    write(json.dumps(note).encode() + b"\n")
    at("call progress")
    answer("call", message["id"], {"content": [{"type": "text", "text": str(number)}]})


def main() -> None:
    sleeping = ["sleep", f"1000.0{SETTINGS['token']}"]
    # With the output of the server, which would otherwise not end with it.
    quiet: dict[str, Any] = (
        {"stdout": subprocess.DEVNULL} if SETTINGS["how"] == "close output" else {}
    )
    subprocess.Popen(sleeping, **quiet)
    subprocess.Popen(sleeping, start_new_session=True, **quiet)
    at("start")
    write(b"starting ...\n")
    at("noise")
    for line in sys.stdin:
        serve(json.loads(line))
    at("end of input")
    if SETTINGS["how"] == "stop":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)


if __name__ == "__main__":
    main()
