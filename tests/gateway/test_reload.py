import asyncio
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fakes.gateway import ServedGateway
from tests.fakes.serving import KEY, ServeProcess
from tests.fakes.simulated import Simulated
from tests.gateway.test_answering import REQUESTS, post
from tests.gateway.test_operations import BODY, asked
from toolwire.config import Settings
from toolwire.config.gateway import GatewaySettings
from toolwire.errors import BadInput
from toolwire.gateway.reload import NEED_RESTART, Reloader, restart_needed
from toolwire.simulator import Reply, Say


class Desk:
    """A reloader whose settings are a number in a file."""

    def __init__(self, tmp_path: Path) -> None:
        self.file = tmp_path / "config.toml"
        self.file.write_text("5")
        self.applied: list[float] = []
        self.notices: list[str] = []
        self.tidied = 0
        self.gateway = GatewaySettings()
        self.reloader = Reloader(
            Settings(),
            [self.file, tmp_path / "missing.toml"],
            load=self.load,
            apply=self.apply,
            notice=self.notices.append,
            tidy=self.tidy,
            interval=0.01,
        )

    def load(self) -> Settings:
        text = self.file.read_text()
        if not text.isdigit():
            raise BadInput(f"not a number: {text}")
        return Settings(gateway=GatewaySettings(hold_seconds=int(text), port=int(text)))

    async def apply(self, settings: Settings) -> None:
        if settings.gateway.hold_seconds == 13:
            raise BadInput("a route cannot work")
        self.applied.append(settings.gateway.hold_seconds)
        self.gateway = settings.gateway

    async def tidy(self) -> None:
        self.tidied += 1


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - a file is changed, not an event
            await asyncio.sleep(0.01)


def test_a_changed_file_is_applied_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        desk = Desk(tmp_path)
        watching = asyncio.create_task(desk.reloader.watch())
        await asyncio.sleep(0.05)
        assert desk.applied == []
        desk.file.write_text("77")
        await until(lambda: desk.applied == [77])
        for bad, words in (("oops", "not a number: oops"), ("13", "a route cannot work")):
            desk.file.write_text(bad)
            await until(lambda words=words: desk.reloader.problem == words)
            assert desk.notices[-1] == f"the settings are not reloaded: {words}"
            assert desk.applied == [77]
        desk.file.write_text("8")
        await until(lambda: desk.applied == [77, 8])
        assert desk.reloader.problem == ""
        desk.reloader.soon()
        await until(lambda: desk.applied == [77, 8, 8])
        watching.cancel()

    asyncio.run(work())


def test_settings_that_need_a_restart_are_named_and_not_applied(tmp_path: Path) -> None:
    async def work() -> None:
        desk = Desk(tmp_path)
        assert await desk.reloader.reload()
        assert desk.gateway == GatewaySettings(hold_seconds=5, port=8787)
        assert desk.notices[-1] == "restart the gateway to apply gateway.port"

    asyncio.run(work())


def test_only_known_settings_need_a_restart() -> None:
    assert set(NEED_RESTART) < set(GatewaySettings.__struct_fields__)
    old = GatewaySettings()
    assert restart_needed(old, GatewaySettings(port=1, queue=5, workers=2)) == ["port", "workers"]


def test_requests_under_way_are_answered_while_settings_change(tmp_path: Path) -> None:
    said = [Reply(pieces=(Say("Hello"),), times=40)]
    with ServedGateway("openai-chat", said, home=tmp_path) as served:
        running = served.running
        before = running.gateway.parts
        path, body = REQUESTS["openai-chat"]
        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(post, served, path, body) for _ in range(40)]
            for number in range(1, 6):
                own = GatewaySettings(port=0, queue_seconds=float(number))
                served.do(running.reloader._apply(Settings(gateway=own)))
            statuses = [answer.result()[0] for answer in answers]
        assert statuses == [200] * 40
        assert running.gateway.parts is not before
        assert running.gateway.parts.settings.queue_seconds == 5.0


@pytest.mark.skipif(sys.platform == "win32", reason="SIGHUP")
def test_a_running_gateway_takes_new_routes_and_keeps_the_old_after_an_error(
    tmp_path: Path,
) -> None:
    with Simulated([Reply(pieces=(Say("Hello"),), times=9)]) as upstream:
        provider = (
            f'[providers.one]\ndialect = "openai-chat"\nbase_url = "{upstream.origin}/v1"\n'
            'key_env = "ONE_KEY"\n'
        )
        file = tmp_path / "config.toml"
        file.write_text(provider)
        with ServeProcess(tmp_path, "", ONE_KEY="k") as served:
            assert _status(served) == 404
            route = '[gateway.routes.fast]\nto = ["one/m"]\n'
            file.write_text(provider + route)
            served.wait_for("the settings are reloaded")
            assert _status(served) == 200
            file.write_text(provider + route.replace("one/m", "onne/m"))
            served.wait_for('unknown provider "onne"; did you mean "one"?')
            assert _status(served) == 200
            file.write_text(provider + route + "[gateway]\nbody_limit = 5\n")
            served.stop(signal.SIGHUP)
            served.wait_for("restart the gateway to apply gateway.body_limit")


def _status(served: ServeProcess) -> int:
    body = BODY | {"model": "fast"}
    return asked(served.origin, "POST", "/v1/messages", body, KEY)[0]
