import ast
import base64
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST, Done, Place, Simulated
from tests.house import SOURCE, modules
from tests.platform.hidden_posix import POSIX_MODULES
from toolwire.policy import Mode
from toolwire.policy.engine import rule
from toolwire.policy.locations import Locations
from toolwire.policy.rules import Verdict
from toolwire.policy.ruling import Terms
from toolwire.simulator import Call, Reply, Say
from toolwire.tools.builtin.run_shell_command import TOOL, for_powershell
from toolwire.tools.shell.environment import is_powershell, shell_words, windows_shells
from toolwire.tools.spec import Effect

HERE = Path(__file__).parent
ONLY_POSIX = {
    "toolwire.platform.posix",
    *(f"toolwire.tools.shell.{name}" for name in ("cgroups", "fork_server", "processes")),
    *(f"toolwire.tools.shell.{name}" for name in ("protocol", "watchdogs")),
    *(f"toolwire.tools.shell.sandbox.{name}" for name in ("container", "launch", "session")),
    "toolwire.tools.shell.sandbox.system",
}
"""Fork servers, watchdogs and sandboxes; Windows has job objects."""
STANDALONE = {"toolwire.tools.worker"}
"""Runs by its file name and imports nothing of the package."""
_COMMAND = "import sys; sys.argv[0] = 'toolwire'; from toolwire.cli import main; main()"
_EVERY = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error)
"""


def as_windows(place: Place, code: str, *args: str) -> Done:
    script = place.root / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "hidden_posix.py"), str(script), *args],
        cwd=place.work,
        env=place.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LONGEST,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_no_module_outside_the_platform_package_imports_what_windows_lacks() -> None:
    found: list[str] = []
    for name, path in modules().items():
        if name.startswith("toolwire.platform.") or name in STANDALONE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{name}: {each}" for each in names if each in POSIX_MODULES]
    assert found == []


@pytest.mark.slow
def test_every_module_is_imported_on_windows_or_refuses_in_one_line(place: Place) -> None:
    names = [name for name in modules() if not name.endswith("__main__")]
    done = as_windows(place, _EVERY, *names)
    assert done.err == ""
    refused = dict(line.split(" ", 1) for line in done.out.splitlines())
    assert refused == dict.fromkeys(ONLY_POSIX, "this module needs Linux or macOS")


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_command_starts_on_windows(argument: str, place: Place) -> None:
    done = place.toolwire(argument)
    usual = Done(done.code, done.out.replace("python -m toolwire", "toolwire"), done.err)
    assert as_windows(place, _COMMAND, argument) == usual


def test_file_tools_work_on_windows(place: Place) -> None:
    work = place.work
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "link").symlink_to("/etc")
    note, made = str(work / "a.txt"), str(work / "deep" / "er" / "b.txt")
    change = {"file_path": note, "old_string": "two", "new_string": "2", "instruction": "x"}
    replies = [
        _calls(
            Call.of("read_file", absolute_path=note),
            Call.of("list_directory", path=str(work)),
            Call.of("glob", pattern="**/*.txt"),
            Call.of("search_file_content", pattern="tw."),
        ),
        _calls(Call.of("replace", **change)),
        _calls(Call.of("replace", **{**change, "old_string": "one", "new_string": "1"})),
        _calls(Call.of("write_file", file_path=made, content="new\n")),
        Reply(pieces=(Say("done"),)),
    ]
    with Simulated(replies) as sim:
        options = ("--approval-mode", "auto_edit", "--upstream", sim.upstream())
        done = as_windows(place, _COMMAND, "run", *options, "go")
        assert (done.code, done.out) == (0, "done\n"), done.err
        results = [m["content"] for m in sim.bodies[1]["messages"] if m["role"] == "tool"]
    assert results[0] == "one\ntwo\n"
    assert [result for result in results[1:] if "a.txt" not in result] == []
    assert (work / "a.txt").read_text() == "1\n2\n"
    assert Path(made).read_text() == "new\n"


def test_a_link_that_leads_out_is_refused_on_windows(place: Place) -> None:
    (place.work / "link").symlink_to("/etc")
    (place.work / "plain").write_text("x")
    code = """
import os
from toolwire.platform import FILE, FOLDER, open_at
work = open_at(os.getcwd(), FOLDER)
os.close(open_at("plain", os.O_RDONLY | FILE, dir_fd=work))
for name in ("link", "plain:stream", "..", "link/passwd", "link\\\\passwd", "", "missing"):
    for flags in (os.O_RDONLY | FILE, FOLDER | FILE):
        try:
            open_at(name, flags, dir_fd=work)
        except OSError as error:
            print(name or "-", type(error).__name__, end=";")
        else:
            print(name, "WAS OPENED")
"""
    done = as_windows(place, code)
    assert done.err == ""
    assert "WAS OPENED" not in done.out
    assert done.out.count(";") == 14


def test_a_command_is_refused_in_one_line_without_a_shell_or_a_job(place: Place) -> None:
    replies = [_calls(Call.of("run_shell_command", command="echo hi")), Reply(pieces=(Say("ok"),))]
    with Simulated(replies) as sim:
        options = ("--approval-mode", "yolo", "--upstream", sim.upstream())
        done = as_windows(place, _COMMAND, "run", *options, "go")
        assert done.code == 0, done.err
        result = next(m["content"] for m in sim.bodies[1]["messages"] if m["role"] == "tool")
    assert "no shell was found; the user may install Git for Windows or PowerShell" in result


def _calls(*calls: Call) -> Reply:
    return Reply(pieces=calls)


def test_git_bash_is_preferred_and_the_bash_of_the_linux_subsystem_never_taken() -> None:
    environ = {"PROGRAMFILES": r"C:\Program Files", "SYSTEMROOT": r"C:\Windows"}
    shells = windows_shells(environ, r"D:\tools\Git\cmd\git.exe")
    assert shells == (
        r"D:\tools\Git\bin\bash.exe",
        r"C:\Program Files\Git\bin\bash.exe",
        r"C:\Program Files\PowerShell\7\pwsh.exe",
        r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe",
    )
    assert windows_shells({}, "")[-1].endswith("powershell.exe")
    assert not [one for one in shells if one.lower().endswith(r"system32\bash.exe")]


@pytest.mark.parametrize("command", ["echo \"a 'b'\"", "dir | select -First 1\nexit 3", "é $x `n"])
def test_powershell_gets_the_command_encoded_and_unchanged(command: str) -> None:
    program = r"C:\Program Files\PowerShell\7\pwsh.exe"
    words = shell_words(program, command)
    assert words[0] == program
    assert words[1:-1] == ("-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand")
    script = base64.b64decode(words[-1]).decode("utf-16-le")
    assert f"\n{command}\n" in script
    assert is_powershell(program)


def test_the_description_names_the_shell_that_reads_commands() -> None:
    tool = for_powershell(TOOL)
    assert "powershell -NoProfile -Command <command>" in tool.description
    assert "bash" not in tool.description + str(tool.parameters)
    assert "kill --" not in tool.description
    assert "Exit Code" in tool.description


def test_git_bash_gets_the_command_as_one_word() -> None:
    program = r"C:\Program Files\Git\bin\bash.exe"
    assert shell_words(program, "a | b") == (program, "-c", "a | b\n\n")
    assert not is_powershell(program)


@pytest.mark.parametrize(
    ("mode", "headless", "verdict"),
    [
        (Mode.DEFAULT, False, Verdict.ASK),
        (Mode.DEFAULT, True, Verdict.DENY),
        (Mode.PLAN, False, Verdict.DENY),
        (Mode.YOLO, True, Verdict.ALLOW),
    ],
)
def test_where_no_text_is_proven_even_ls_is_asked(
    mode: Mode, headless: bool, verdict: Verdict
) -> None:
    def ruled(**more: Any) -> Verdict:
        terms = Terms(locations=Locations(roots=("/w",)), mode=mode, headless=headless, **more)
        arguments = {"command": "ls"}
        return rule("run_shell_command", Effect.EXECUTE, (), arguments, terms).decision

    assert ruled() is Verdict.ALLOW
    assert ruled(unproven="commands are not analysed here") is verdict


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("WINDOWS_PYTHON"),
    reason="WINDOWS_PYTHON names no Python for Windows, such as `wine python.exe`",
)
def test_a_real_python_for_windows_agrees(tmp_path: Path) -> None:
    words = shlex.split(os.environ["WINDOWS_PYTHON"])
    done = subprocess.run(
        [*words, str(HERE / "on_windows.py"), str(SOURCE.parent)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.decode().splitlines()[-1:] == ["all of it holds"], done.stderr.decode()
