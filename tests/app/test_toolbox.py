import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.agent.scheduler import Scheduler
from toolwire.app import Toolbox, open_toolbox
from toolwire.config import Settings
from toolwire.errors import BadInput
from toolwire.ids import new_id
from toolwire.messages import Message, ToolCall, ToolResult
from toolwire.policy import Mode
from toolwire.request import JsonObject
from toolwire.tools.registry import ADDED, ORIGINAL, Registry, builtin
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput, ToolSettings


class Bench:
    """Runs calls in a new toolbox each time, as separate runs of the program would."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.home = folder / "own"
        self.root.mkdir()
        self.environ = {"TOOLWIRE_HOME": str(self.home), "HOME": str(folder), "PATH": "/bin"}
        self.asked: list[Confirmation] = []
        self.notices: list[str] = []

    def run(
        self,
        *calls: ToolCall,
        choice: Choice | None = Choice.ONCE,
        settings: Mapping[str, object] = {},
        mode: Mode = Mode.DEFAULT,
        allowed: tuple[str, ...] = (),
        tools: tuple[Tool, ...] = (),
    ) -> list[ToolResult]:
        async def approve(question: Confirmation) -> UserAnswer:
            self.asked.append(question)
            assert choice is not None
            return UserAnswer(choice=choice)

        async def work() -> Message:
            async with open_toolbox(
                Settings(tools=msgspec.convert(settings, ToolSettings)),
                environ=self.environ,
                cwd=self.root,
                mode=mode,
                headless=choice is None,
                allowed=allowed,
                tools=tools,
                notice=self.notices.append,
            ) as shop:
                scheduler = shop.scheduler(approve if choice is not None else None)
                return await scheduler.run(calls)

        return list(asyncio.run(work()).results)

    def opened(self, *tools: Tool, **settings: object) -> Toolbox:
        async def work() -> Toolbox:
            async with open_toolbox(
                Settings(tools=msgspec.convert(settings, ToolSettings)),
                environ=self.environ,
                cwd=self.root,
                tools=tools,
            ) as shop:
                return shop

        return asyncio.run(work())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def shell(command: str) -> ToolCall:
    return called("run_shell_command", command=command)


def called(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id=new_id(), name=name, arguments=json.dumps(arguments))


def own_tool(name: str, text: str) -> Tool:
    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        del arguments, context
        return ToolOutput(text=text)

    return Tool(
        name=name, description="", parameters={"type": "object"}, effect=Effect.READ, run=run
    )


def test_an_answer_for_always_is_not_asked_again_by_a_second_run(bench: Bench) -> None:
    first = bench.run(shell("factor 11"), choice=Choice.ALWAYS)
    second = bench.run(shell("factor 11"), choice=None)
    assert [one.is_error for one in (*first, *second)] == [False, False]
    assert len(bench.asked) == 1
    assert bench.notices == []


def test_an_answer_for_the_session_is_asked_again_by_a_second_run(bench: Bench) -> None:
    bench.run(shell("factor 11"), shell("factor 11"), choice=Choice.SESSION)
    assert len(bench.asked) == 1
    assert bench.run(shell("factor 11"), choice=None)[0].is_error
    assert not (bench.home / "policy.toml").exists()


def test_what_people_wrote_in_the_rule_file_stays(bench: Bench) -> None:
    bench.home.mkdir()
    file = bench.home / "policy.toml"
    written = '# mine\ndeny = ["run_shell_command(rm)"] # never'
    file.write_text(written)
    bench.run(shell("factor 11"), choice=Choice.ALWAYS)
    assert file.read_text().startswith(f"{written}\n\n# answered: always\n[[rule]]\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert bench.run(shell("rm x"), choice=None)[0].is_error


def test_the_same_answer_is_written_once(bench: Bench) -> None:
    bench.run(shell("factor 11"), choice=Choice.ALWAYS)
    before = (bench.home / "policy.toml").read_text()
    bench.run(shell("factor 11"), choice=Choice.ALWAYS)
    assert (bench.home / "policy.toml").read_text() == before


def test_a_rule_file_that_takes_no_table_is_reported_and_left_alone(bench: Bench) -> None:
    bench.home.mkdir()
    file = bench.home / "policy.toml"
    file.write_text('rule = [{decision = "deny", command = "rm"}]\n')
    assert not bench.run(shell("factor 11"), choice=Choice.ALWAYS)[0].is_error
    assert file.read_text() == 'rule = [{decision = "deny", command = "rm"}]\n'
    assert "the answer applies to this session only" in bench.notices[0]
    assert "[[rule]] tables" in bench.notices[0]


def test_a_rule_file_that_cannot_be_read_is_an_error(bench: Bench) -> None:
    bench.home.mkdir()
    (bench.home / "policy.toml").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="is not UTF-8"):
        bench.run(shell("factor 11"))


def test_all_tools_are_offered_where_no_one_can_approve(bench: Bench) -> None:
    assert bench.opened().registry.names == (*ORIGINAL, *ADDED)
    refused = bench.run(shell("factor 11"), choice=None)[0]
    assert refused.is_error
    assert "--allowed-tools" in refused.text


def test_the_allowed_tools_of_a_flag_run(bench: Bench) -> None:
    done = bench.run(
        shell("factor 11"), shell("numfmt 1"), choice=None, allowed=("run_shell_command(factor)",)
    )
    assert [one.is_error for one in done] == [False, True]


def test_the_mode_rules(bench: Bench) -> None:
    assert not bench.run(shell("factor 11"), choice=None, mode=Mode.YOLO)[0].is_error
    assert "Plan mode" in bench.run(shell("factor 11"), mode=Mode.PLAN)[0].text


def test_own_tools_take_the_place_of_others(bench: Bench) -> None:
    tools = (own_tool("glob", "mine"), own_tool("weather", "sunny"))
    done = bench.run(called("glob"), called("weather"), tools=tools, settings={"core": ["glob"]})
    assert [one.text for one in done] == ["mine", "sunny"]
    assert bench.opened(*tools, exclude=["weather"], core=["ls"]).registry.names == ("glob",)


def test_commands_get_listed_and_named_variables_only(bench: Bench) -> None:
    bench.environ |= {"STRIPE_SK": "hunter22", "MYAPP_PORT": "80", "LC_ALL": "C"}
    assert "MYAPP_PORT" not in bench.run(shell("env"))[0].text
    text = bench.run(shell("env"), settings={"environment": ["MYAPP_*"]})[0].text
    assert "MYAPP_PORT=80" in text
    assert "LC_ALL=C" in text
    assert "STRIPE_SK" not in text


def test_what_a_command_left_running_ends_with_the_workshop(bench: Bench) -> None:
    text = bench.run(shell("sleep 1000 &"))[0].text
    pid = next(line for line in text.splitlines() if line.startswith("Background PIDs: "))
    assert not Path(f"/proc/{pid.removeprefix('Background PIDs: ')}").exists()


def test_a_session_neither_sees_nor_stops_what_another_left_running(bench: Bench) -> None:
    async def work() -> tuple[str, str, str]:
        async with AsyncExitStack() as opened:

            async def shop() -> Scheduler:
                one = open_toolbox(
                    Settings(), environ=bench.environ, cwd=bench.root, mode=Mode.YOLO
                )
                return (await opened.enter_async_context(one)).scheduler()

            first, second = await shop(), await shop()

            async def said(by: Scheduler, call: ToolCall) -> str:
                return (await by.run([call])).results[0].text

            text = await said(first, shell("sleep 1000 &"))
            pgid = int(text.partition("Process Group PGID: ")[2].split()[0])
            stop = called("background", action="stop", pgid=pgid)
            unseen = await said(second, called("background", action="list"))
            return unseen, await said(second, stop), await said(first, stop)

    unseen, refused, stopped = asyncio.run(work())
    assert unseen == "No background shells are running."
    assert "no background shell has PGID" in refused
    assert "was stopped with all it started" in stopped


def test_long_output_kept_in_our_own_home_may_be_read(bench: Bench) -> None:
    temp = bench.opened().context.workspace.temp
    assert temp.is_relative_to(bench.home)
    temp.mkdir(parents=True)
    (temp / "call.output").write_text("long\n")
    done = bench.run(called("read_file", absolute_path=str(temp / "call.output")), choice=None)
    assert (done[0].is_error, done[0].text) == (False, "long\n")


def test_a_file_changed_since_it_was_read_is_noticed_by_a_later_scheduler(bench: Bench) -> None:
    file = bench.root / "a.txt"
    file.write_text("old\n")
    path = str(file)

    async def work() -> list[ToolResult]:
        async with open_toolbox(
            Settings(), environ=bench.environ, cwd=bench.root, mode=Mode.YOLO
        ) as shop:
            await shop.scheduler().run([called("read_file", absolute_path=path)])
            file.write_text("changed by others\n")
            write = called("write_file", file_path=path, content="new\n")
            return list((await shop.scheduler().run([write])).results)

    done = asyncio.run(work())
    assert done[0].is_error
    assert file.read_text() == "changed by others\n"


def test_rulings_are_recorded_in_the_state_directory(bench: Bench) -> None:
    bench.run(shell("factor 15"), called("glob", pattern="*"))
    text = (bench.home / "audit.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(one["tool"], one["decision"], one.get("answer")) for one in lines] == [
        ("run_shell_command", "ask", "once"),
        ("glob", "allow", ""),
    ]
    assert "secretsecret" not in text


def test_without_rules_a_workshop_leaves_the_users_files_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.home.mkdir()
    (bench.home / "policy.toml").write_text('[[rule]]\ntool = "*"\ndecision = "deny"\n')
    before = (bench.home / "policy.toml").read_bytes()

    async def always(question: Confirmation) -> UserAnswer:
        return UserAnswer(choice=Choice.ALWAYS)

    async def work() -> Message:
        async with open_toolbox(
            Settings(),
            environ=bench.environ,
            cwd=bench.root,
            registry=Registry((builtin("write_file"),)),
            rules=False,
        ) as shop:
            assert shop.registry.names == ("write_file",)
            call = ToolCall(
                id="c1",
                name="write_file",
                arguments=json.dumps({"file_path": str(bench.root / "a"), "content": "x"}),
            )
            return await shop.scheduler(always).run([call])

    assert [result.is_error for result in asyncio.run(work()).results] == [False]
    assert (bench.home / "policy.toml").read_bytes() == before
    assert [path.name for path in bench.home.iterdir()] == ["policy.toml"]
