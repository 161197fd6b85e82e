"""Starts confined commands from the process that watches over them; standard library only."""

import os
import signal
import struct
from typing import Any, NoReturn

from toolwire.tools.shell.sandbox import system
from toolwire.tools.shell.sandbox.confinement import Confinement, become
from toolwire.tools.shell.sandbox.surroundings import Surroundings


class Launcher:
    """One plan, prepared once; starts any number of commands under it."""

    def __init__(self, plan: dict[str, Any], around: Surroundings) -> None:
        self._view = None
        if around.contained and plan["kind"] == "namespaces":
            from toolwire.tools.shell.sandbox.view import View  # noqa: PLC0415 - not for every kind

            self._view = View(plan, around.copies, around.store)
        own_network = plan["kind"] == "bubblewrap"
        if around.network >= 0 and not plan["network"]:
            system.enter_namespace(around.network, system.NEW_NETWORK)
            own_network = True
        self._confinement = Confinement(
            plan, own_network=own_network, own_processes=around.contained
        )

    def start(
        self, order: dict[str, Any], program: str, outputs: list[int], defaults: tuple[int, ...]
    ) -> int:
        """Start a command in its own session; OSError if it cannot be done."""
        if self._view is not None:
            self._view.cover(order.get("hidden", ()), order.get("frozen", ()))
        os.chdir(order["directory"])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._be(order, program, outputs, defaults, writing)
        os.close(writing)
        with open(reading, "rb") as failures:
            failed = failures.read()
        if failed:
            os.waitpid(child, 0)
            (number,) = struct.unpack("i", failed)
            raise OSError(number, os.strerror(number))
        return child

    def _be(
        self,
        order: dict[str, Any],
        program: str,
        outputs: list[int],
        defaults: tuple[int, ...],
        failures: int,
    ) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            for number, output in zip((1, 2, 0), outputs, strict=False):
                os.dup2(output, number)
            for number in defaults:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            become(self._confinement, program, order["command"], order["environ"])
        except OSError as error:
            os.write(failures, struct.pack("i", error.errno or 5))
        finally:
            os._exit(127)
