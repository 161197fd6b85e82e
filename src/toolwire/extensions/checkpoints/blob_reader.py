"""Contents of files from git, by their object id."""

import subprocess
from typing import BinaryIO

from toolwire.errors import SessionError

_PIECE = 1 << 20


class BlobReader:
    """Contents by their object id."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def copy(self, digest: str, target: BinaryIO) -> None:
        """Write the contents to a file; SessionError if they are missing."""
        put, out = self._process.stdin, self._process.stdout
        if put is None or out is None:
            raise SessionError("git has no pipe")
        put.write(f"{digest}\n".encode())
        put.flush()
        head = out.readline().split()
        if len(head) != 3:
            raise SessionError(f"contents {digest[:12]} of the checkpoint are missing")
        left = int(head[2])
        while left:
            piece = out.read(min(left, _PIECE))
            if not piece:
                raise SessionError(f"contents {digest[:12]} of the checkpoint cannot be read")
            target.write(piece)
            left -= len(piece)
        out.read(1)
