"""Starts the terminal app on a real terminal, with the simulator as its model."""

from typing import Any

from tests.fakes.screen import ScreenTerminal
from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def shell(command: str) -> Reply:
    return Reply(pieces=(Call.of("run_shell_command", command=command),))


def replaces(place: Place, name: str = "app.py", old: str = "price = 1", new: str = "price = 2"):
    """A reply that edits a file, which is made first."""
    target = place.work / name
    if not target.exists():
        target.write_text(f"{old}\n")
    call = Call.of(
        "replace", file_path=str(target), instruction="x", old_string=old, new_string=new
    )
    return Reply(pieces=(Say("I change it."), call))


def answered(app: ScreenTerminal, *words: str) -> list[str]:
    """Waits until the words are there and the turn has ended."""
    app.wait(*words)
    return app.wait_gone("esc stops")


class Apps:
    """Starts apps, and ends them with the test."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._open: list[ScreenTerminal] = []

    def start(
        self,
        sim: Simulated,
        *args: str,
        columns: int = 80,
        rows: int = 24,
        dialect: str = "openai-chat",
        **environ: str,
    ) -> ScreenTerminal:
        options = ["chat", "--upstream", sim.upstream(dialect), *args]
        env = self.place.environ(**{"TERM": "xterm-256color", **environ})
        app = ScreenTerminal(options, cwd=self.place.work, env=env, columns=columns, rows=rows)
        self._open.append(app)
        app.wait("›", "default")
        return app

    def close(self) -> None:
        for app in self._open:
            app.close()
