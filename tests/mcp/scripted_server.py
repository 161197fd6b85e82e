"""A stdio MCP server that answers as a JSON script says: `python scripted_server.py SCRIPT`.

Script: method → list of lines to write, each text with `$ID` for the request's id; a method that is
not in it gets an ordinary answer. `"exit"` ends the process, `"sleep"` never answers. What it
receives is appended to the file `log`.
"""

import json
import os
import sys
import time

GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "scripted", "version": "1"},
}
ECHO = {"name": "echo", "description": "echoes", "inputSchema": {"type": "object"}}
USUAL = {
    "initialize": {"result": GREETING},
    "tools/list": {"result": {"tools": [ECHO]}},
    "tools/call": {"result": {"content": [{"type": "text", "text": "hello"}]}},
    "ping": {"result": {}},
}


def main() -> None:
    script = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    known = {*USUAL, *script}
    out = sys.stdout.buffer
    for line in script.get("start", []):
        out.write(line.encode("latin-1"))
        out.flush()
    for line in sys.stdin:
        if script.get("log"):
            with open(script["log"], "a") as log:  # noqa: PTH123 - no more modules to load
                log.write(line)
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        number, method = json.dumps(message["id"]), message["method"]
        if script.get("unknown") == "exit" and method not in known:
            os._exit(3)
        for answer in script.get(method, [usual(method)]):
            if answer == "exit":
                os._exit(3)
            if answer == "sleep":
                time.sleep(1000)
            out.write(answer.replace("$ID", number).encode("latin-1") + b"\n")
            out.flush()


def usual(method: str) -> str:
    """The line with an ordinary answer."""
    body = USUAL.get(method, {"error": {"code": -32601, "message": "Method not found"}})
    return json.dumps({"jsonrpc": "2.0", "id": 0, **body}).replace('"id": 0', '"id": $ID', 1)


if __name__ == "__main__":
    main()
