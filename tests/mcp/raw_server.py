"""A stdio server whose answer to one method is a piece of Python: `raw_server.py PROGRAM [METHOD]`.

The piece has `out(bytes)`, `answer(result)` and `number`, the id of the request. What is received
is written to the file `received`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from scripted_server import usual  # pyright: ignore[reportMissingImports]


def out(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    program = sys.argv[1]
    method = sys.argv[2] if len(sys.argv) > 2 else "tools/call"
    for line in sys.stdin.buffer:
        with Path("received").open("ab") as file:
            file.write(line[:1000] + b"\n")
        message = json.loads(line)
        if "method" not in message or "id" not in message:
            continue
        number = message["id"]

        def answer(result: Any = None, number: Any = number) -> None:
            body = {"jsonrpc": "2.0", "id": number, "result": result or {}}
            out(json.dumps(body).encode() + b"\n")

        if message["method"] == method:
            exec(program, {"out": out, "answer": answer, "number": number})
        else:
            out(usual(message["method"]).replace("$ID", json.dumps(number)).encode() + b"\n")


if __name__ == "__main__":
    main()
