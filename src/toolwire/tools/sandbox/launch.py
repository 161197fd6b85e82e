"""Starts confined commands from the process that watches over them; standard library only."""

import json
import os
import signal
import socket
import struct
from typing import Any, NoReturn

from toolwire.tools.sandbox import system
from toolwire.tools.sandbox.confinement import Confinement
from toolwire.tools.sandbox.surroundings import Surroundings

_SIZE = struct.Struct("!I")
_ERROR = struct.Struct("i")


class Launcher:
    """One plan, prepared once; starts any number of commands under it.

    A process that has given up everything already waits for the next command.
    """

    def __init__(
        self, plan: dict[str, Any], around: Surroundings, defaults: tuple[int, ...]
    ) -> None:
        """Commands start with the default action of the signals in `defaults`."""
        self._defaults = defaults
        self._waiting: tuple[int, socket.socket] | None = None
        self._view = None
        if around.contained and plan["kind"] == "namespaces":
            from toolwire.tools.sandbox.view import View  # noqa: PLC0415 - not for every kind

            self._view = View(plan, around.copies, around.store)
        own_network = plan["kind"] == "bubblewrap"
        if around.network >= 0 and not plan["network"]:
            system.enter_namespace(around.network, system.NEW_NETWORK)
            own_network = True
        self._confinement = Confinement(
            plan, own_network=own_network, own_processes=around.contained
        )

    def prepare(self) -> None:
        """Have a process wait for the next command."""
        if self._waiting is None:
            self._waiting = self._forked()

    def start(self, order: dict[str, Any], program: str, outputs: list[int]) -> int:
        """Start a command in its own session; OSError if it cannot be done."""
        if self._view is not None:
            self._view.cover(order.get("hidden", ()), order.get("frozen", ()))
        words = {"program": program} | {
            name: order[name] for name in ("command", "environ", "directory")
        }
        text = json.dumps(words).encode()
        message = _SIZE.pack(len(text)) + text
        child, line = self._taken()
        with line:
            if not _sent(line, message, outputs):
                os.waitpid(child, 0)
                child, again = self._forked()
                with again:
                    _sent(again, message, outputs)
                    return _result(child, again)
            return _result(child, line)

    def _taken(self) -> tuple[int, socket.socket]:
        """The waiting process, if it still does, or a new one."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            child, line = waiting
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                os.kill(child, signal.SIGCONT)
                return waiting
            line.close()
        return self._forked()

    def _forked(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            ours.close()
            self._be(theirs)
        theirs.close()
        return child, ours

    def _be(self, line: socket.socket) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            for number in self._defaults:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            self._confinement.enforce()
            order, outputs = _order(line)
            os.chdir(order["directory"])
            for number, output in zip((1, 2, 0), outputs, strict=False):
                os.dup2(output, number)
            os.execve(order["program"], order["command"], order["environ"])  # noqa: S606 - it
        except OSError as error:
            line.sendall(_ERROR.pack(error.errno or 5))
        finally:
            os._exit(127)


def _order(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    start, outputs, _, _ = socket.recv_fds(line, _SIZE.size, 8)
    if len(start) < _SIZE.size:
        os._exit(0)
    for output in outputs:
        os.set_inheritable(output, False)
    (size,) = _SIZE.unpack(start)
    text = b""
    while len(text) < size:
        piece = line.recv(size - len(text))
        if not piece:
            os._exit(0)
        text += piece
    return json.loads(text), outputs


def _sent(line: socket.socket, message: bytes, outputs: list[int]) -> bool:
    """False if the process at the other end is gone."""
    try:
        sent = socket.send_fds(line, [message], outputs)
        line.sendall(message[sent:])
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _result(child: int, line: socket.socket) -> int:
    """The process, once it has become the command: that closes its end."""
    try:
        failed = line.recv(_ERROR.size)
    except ConnectionResetError:
        failed = b""
    if failed:
        os.waitpid(child, 0)
        (number,) = _ERROR.unpack(failed)
        raise OSError(number, os.strerror(number))
    return child
