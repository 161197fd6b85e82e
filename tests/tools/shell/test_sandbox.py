import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from toolwire.tools.files.protection import Protection
from toolwire.tools.shell.sandbox import detect, session
from toolwire.tools.shell.sandbox.exposure import Exposure, repository_of_worktree
from toolwire.tools.shell.sandbox.plan import make_plan, paths_of
from toolwire.tools.shell.sandbox.session import Walls, explained
from toolwire.tools.spec import SandboxSpec, Workspace

KINDS = [one for one in ("namespaces", "landlock") if detect.kind({detect.VARIABLE: one}) == one]
USERS = ["root", "nobody"] if getattr(os, "geteuid", int)() == 0 else ["self"]
SYSTEM_PYTHON = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
BLOCKED = "blocked by the sandbox: "
ASK = "; ask the user"

AGENT = """
import asyncio, json, os, sys
from pathlib import Path
import msgspec
from toolwire.tools.builtin.run_shell_command import TOOL
from toolwire.tools.shell.shells import end_shells
from toolwire.tools.spec import Permit, SandboxSpec, ToolContext, Workspace

async def main():
    base, spec = Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=SandboxSpec)
    place = Workspace(roots=(base / "ws",), temp=base / "state/cache/p", home=base / "home")
    environ = {"PATH": os.environ["PATH"], "HOME": str(base / "home"),
               "TOOLWIRE_HOME": str(base / "state")}
    context = ToolContext(workspace=place, owner="one", environ=environ,
        permit=Permit(sandbox=spec), emit=lambda text: None)
    said = [(await TOOL.run({"command": command}, context)).text for command in sys.argv[3:]]
    await end_shells("one")
    print(json.dumps(said))

asyncio.run(main())
"""


def owned(path: Path, user: str) -> None:
    if user == "nobody":
        subprocess.run(["chown", "-R", "nobody", str(path)], check=True)


class Place:
    """A workspace, a home and the agent's state, as a user has them."""

    def __init__(self, base: Path, user: str, kind: str) -> None:
        self.base, self._user, self._kind = base, user, kind
        for folder in ("ws/sub", "home/.ssh", "home/work", "state/cache/p", "outside"):
            (base / folder).mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(base / "ws")], check=True)
        for name, text in (
            ("home/.ssh/id_rsa", "PRIVATE"),
            ("home/.netrc", "PRIVATE"),
            ("state/credentials.json", "PRIVATE"),
            ("ws/.env", "PRIVATE"),
            ("ws/sub/.env", "PRIVATE"),
            ("ws/plain.txt", "plain"),
            ("outside/readable", "readable"),
        ):
            (base / name).write_text(text)
        (base / "ws/link").symlink_to(base / "home/.ssh/id_rsa")
        (base / "ws/way-out").symlink_to(base / "outside")
        owned(base, user)

    def run(self, *commands: str, spec: SandboxSpec | None = None) -> list[str]:
        spec = spec or SandboxSpec(level="workspace-write")
        packages = os.pathsep.join(path for path in sys.path if path)
        python = SYSTEM_PYTHON if self._user == "nobody" else sys.executable
        words = [python, "-c", AGENT, str(self.base), msgspec.json.encode(spec).decode()]
        environ = {"PATH": "/usr/bin:/bin", "SECRET_OF_AGENT": "PRIVATE"}
        environ |= {"PYTHONPATH": packages, detect.VARIABLE: self._kind}
        user = "nobody" if self._user == "nobody" else None
        done = subprocess.run(
            [*words, *commands],
            env=environ,
            user=user,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return msgspec.json.decode(done.stdout, type=list[str])


@pytest.fixture(params=[(user, kind) for user in USERS for kind in KINDS], ids="-".join)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    user, kind = request.param
    if user == "nobody":
        if not Path(SYSTEM_PYTHON).exists():
            pytest.skip("no Python that another user may run")
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(0o755)
        probe = [SYSTEM_PYTHON, "-c", "import msgspec, toolwire"]
        packages = os.pathsep.join(path for path in sys.path if path)
        environ = {"PYTHONPATH": packages}
        if subprocess.run(probe, env=environ, user="nobody", cwd="/", check=False).returncode:
            pytest.skip("the packages cannot be read by another user")
    return Place(tmp_path, user, kind)


if not KINDS:
    pytest.skip("this system has no sandbox", allow_module_level=True)


def test_writes_stay_in_the_workspace(place: Place) -> None:
    home, outside = place.base / "home", place.base / "outside"
    texts = place.run(
        f"echo x > {outside}/new",
        f"echo x >> {outside}/readable",
        "echo x > way-out/through-a-link",
        f"rm {outside}/readable",
        f"mv {outside}/readable {outside}/moved",
        f"ln {outside}/readable sub/hard && echo x >> sub/hard",
        f"echo x > {home}/.bashrc",
        "mkdir -p .git/made && echo x > .git/made/inside && cat .git/made/inside",
    )
    assert sorted(path.name for path in outside.iterdir()) == ["readable"]
    assert (outside / "readable").read_text() == "readable"
    assert not (home / ".bashrc").exists()
    assert all(BLOCKED in text and ASK in text for text in texts[:-1])
    assert BLOCKED not in texts[-1]


def test_the_rest_of_the_disk_can_be_read(place: Place) -> None:
    (text,) = place.run(f"cat {place.base}/outside/readable /etc/passwd plain.txt && ls / /usr/bin")
    assert "readable" in text
    assert "Exit Code: 0" in text


@pytest.mark.parametrize("level", ["read-only", "workspace-write", "approved"])
def test_credentials_and_state_cannot_be_read(place: Place, level: str) -> None:
    base = place.base
    spec = msgspec.convert({"level": level}, SandboxSpec)
    texts = place.run(
        f"cat {base}/home/.ssh/id_rsa",
        f"cat {base}/home/.netrc",
        f"cat {base}/state/credentials.json",
        "cat .env",
        "cat sub/.env",
        "cat link",
        "cp -a .env copied; cat copied",
        "mv .env moved; cat moved; ln sub/.env hard; cat hard",
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline",
        f"grep -r PRIVATE {base}",
        "python3 -c \"print(open('.env').read())\"",
        spec=spec,
    )
    assert not [text for text in texts if "PRIVATE" in text.replace("grep -r PRIVATE", "")]
    assert BLOCKED + "read of a credential or of the agent's own files" + ASK in texts[3]
    assert (base / "ws/.env").read_text() == "PRIVATE"


def test_a_named_credential_can_be_read(place: Place) -> None:
    named = str(place.base / "ws/.env")
    spec = SandboxSpec(level="workspace-write", readable=(named,))
    texts = place.run("cat .env", "cat sub/.env", spec=spec)
    assert ["PRIVATE" in text for text in texts] == [True, False]


def test_a_forged_worktree_makes_no_folder_writable(place: Place) -> None:
    shutil.rmtree(place.base / "ws/.git")
    outside = place.base / "outside"
    place.run(
        "rm -f .env; mkdir fake && echo $PWD/.git > fake/gitdir && echo 'gitdir: fake' > .git && "
        f"echo {outside} > fake/commondir"
    )
    place.run(f"echo x > {outside}/new")
    assert not (outside / "new").exists()


def test_a_real_worktree_has_its_repository(tmp_path: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    git = ["git", "-C", str(tmp_path), *identity]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "other"], check=True)
    assert repository_of_worktree(str(tmp_path / "other")) == os.path.realpath(tmp_path / ".git")


def test_read_only_leaves_only_temporary_folders(place: Place) -> None:
    spec = SandboxSpec(level="read-only")
    texts = place.run("echo x > plain.txt", 'f=$(mktemp) && echo y > "$f" && cat "$f"', spec=spec)
    assert (place.base / "ws/plain.txt").read_text() == "plain"
    assert "Output: y" in texts[1]


def test_what_was_approved_may_write_outside(place: Place) -> None:
    spec = SandboxSpec(level="approved")
    place.run(f"echo x > {place.base}/outside/new; echo x > .git/config", spec=spec)
    assert (place.base / "outside/new").read_text() == "x\n"


def test_a_further_folder_can_be_made_writable(place: Place) -> None:
    named = str(place.base / "outside")
    spec = SandboxSpec(level="workspace-write", writable=(named,))
    place.run(f"echo x > {named}/new; echo x > {place.base}/home/work/new", spec=spec)
    assert (place.base / "outside/new").exists()
    assert not (place.base / "home/work/new").exists()


NETWORK = """python3 -c "
import socket, sys
kind, where = sys.argv[1:]
if kind == 'abstract':
    one = socket.socket(socket.AF_UNIX); one.connect(chr(0) + where)
elif kind == 'udp':
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.sendto(b'x', ('127.0.0.1', int(where)))
else:
    one = socket.create_connection(('127.0.0.1', int(where)))
print('REACHED')
" """


def test_no_socket_of_the_system_can_be_reached(place: Place) -> None:
    name = f"toolwire-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.2)
        abstract.bind(f"\0{name}")
        abstract.listen()
        texts = place.run(
            f"{NETWORK} tcp {tcp.getsockname()[1]}",
            f"{NETWORK} udp {udp.getsockname()[1]}",
            f"{NETWORK} abstract {name}",
            "curl -sS http://example.com/",
        )
        with pytest.raises(TimeoutError):
            udp.recv(1)
    assert not [text for text in (texts[0], texts[2]) if "Output: REACHED" in text]
    assert BLOCKED + "network" + ASK in texts[0]
    assert BLOCKED + "network" + ASK in texts[3]


def test_the_network_can_be_allowed(place: Place) -> None:
    spec = SandboxSpec(level="workspace-write", network=True)
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        (text,) = place.run(f"{NETWORK} tcp {tcp.getsockname()[1]}", spec=spec)
    assert "Output: REACHED" in text


@pytest.fixture
def whole(place: Place) -> Place:
    """With namespaces, which alone give every guarantee."""
    if place._kind != "namespaces":
        pytest.skip("needs namespaces")
    return place


def test_protected_files_of_the_workspace_cannot_be_written(whole: Place) -> None:
    (whole.base / "ws/.toolwire").mkdir()
    owned(whole.base / "ws/.toolwire", whole._user)
    texts = whole.run(
        "echo x > .git/config",
        "echo x > .git/hooks/pre-commit",
        "rm -rf .git/hooks; mv .git/hooks .git/other",
        "echo x > .toolwire/config.toml",
        "git config user.name x",
    )
    assert all(BLOCKED + "write to a protected file" + ASK in text for text in texts)
    assert "x" not in (whole.base / "ws/.git/config").read_text().split()


def test_a_credential_that_appears_later_is_covered(whole: Place) -> None:
    texts = whole.run(
        "mkdir deep && echo PRIVATE > deep/.env.local && cat deep/.env.local",
        "cat deep/.env.local",
        "echo PRIVATE > deep/key.pem",
        "cat deep/key.pem",
    )
    assert ["Output: PRIVATE" in text for text in texts] == [True, False, False, False]


def test_modes_outside_cannot_be_changed(whole: Place) -> None:
    (text,) = whole.run(f"chmod 777 {whole.base}/outside/readable")
    assert BLOCKED + "write outside the workspace" + ASK in text


def test_git_can_commit(whole: Place) -> None:
    identity = "-c user.name=a -c user.email=a@example.com"
    (text,) = whole.run(
        f"git add plain.txt && git {identity} commit -qm one && git checkout -qb two && git log"
    )
    assert "Exit Code: 0" in text


def test_the_temporary_folder_is_a_private_copy(whole: Place) -> None:
    name = f"/tmp/toolwire-{os.getpid()}-{whole._user}"
    texts = whole.run(f"echo here > {name} && cat {name}", f"cat {name}")
    assert ["here" in text.split("Output: ")[1] for text in texts] == [True, True]
    assert not Path(name).exists()


def test_a_server_inside_can_be_reached_inside(whole: Place) -> None:
    (text,) = whole.run(
        "python3 -m http.server 8123 >/dev/null 2>&1 & sleep 1.5; "
        "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/').status)\""
    )
    assert "Output: 200" in text


def test_processes_of_one_command_can_be_signalled_by_the_next(whole: Place) -> None:
    first, second = whole.run("sleep 1000 & echo $! > pid", "kill $(cat pid) && echo killed")
    assert "Background PIDs: (none)" not in first
    assert "Output: killed" in second


def test_others_are_out_of_sight(whole: Place) -> None:
    (text,) = whole.run(f"kill -0 {os.getpid()} || ls -d /proc/{os.getpid()}")
    assert "No such" in text


def test_a_socket_of_another_program_is_covered(whole: Place) -> None:
    path = f"/tmp/toolwire-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        try:
            Path(path).chmod(0o777)
            listening.listen()
            program = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}'); print('IN')"
            (text,) = whole.run(f'python3 -c "{program}"')
        finally:
            Path(path).unlink()
    assert "Output: IN" not in text


def test_privileges_cannot_be_gained(whole: Place) -> None:
    (text,) = whole.run(
        "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; mount -t tmpfs none /mnt || echo kept;"
        " mknod disk b 8 0 || echo no device; cat /proc/kcore | head -c 1 | wc -c"
    )
    assert "NoNewPrivs:\t1" in text
    assert "kept" in text
    assert "no device" in text


def test_limits_are_set(whole: Place) -> None:
    (text,) = whole.run("ulimit -c; ulimit -u; ulimit -d")
    core, processes, data = text.split("Output: ")[1].split("\n")[:3]
    assert (core, processes) == ("0", "2048")
    assert data.isdigit()


def test_a_denial_is_only_seen_where_there_may_be_one() -> None:
    walls = Walls(network=False, writes=False)
    assert explained("all is fine", failed=True, walls=walls) == ""
    assert explained("permission denied", failed=False, walls=walls) == ""
    assert explained("Read-only file system", failed=False, walls=walls).startswith(BLOCKED)


def test_the_disk_is_looked_through_again_where_it_changed(tmp_path: Path) -> None:
    workspace = Workspace(roots=(tmp_path,), temp=tmp_path / "temp", home=tmp_path / "home")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / ".git/hooks").mkdir(parents=True)
    exposure = Exposure(workspace, Protection(workspace))
    secret, config = tmp_path / "deep/er/.env", tmp_path / ".git/config"
    first = exposure.find()
    secret.write_text("a")
    config.write_text("")
    second = exposure.find()
    (tmp_path / "deep/er/new").write_text("b")
    (tmp_path / "deep/er/new").replace(secret)
    third = exposure.find()
    assert str(secret) not in first.hidden
    assert str(secret) in second.hidden
    assert str(config) in second.in_repositories
    assert third is not second  # the file is another, and not covered yet
    assert third.hidden == second.hidden


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, object]:
    place = Workspace(roots=(tmp_path / "ws",), temp=tmp_path / "temp", home=tmp_path)
    (tmp_path / "ws").mkdir()
    spec = SandboxSpec(level="workspace-write")
    environ = {"TOOLWIRE_HOME": str(tmp_path / "state")}
    return make_plan("seatbelt", spec, paths_of(spec, place, environ), ())


def test_the_profile_of_macos_forbids_and_then_allows(
    plan: dict[str, object], tmp_path: Path
) -> None:
    lines = detect.profile(plan, ("/h/.ssh",), ("/w/.git/hooks",)).splitlines()
    assert lines[:2] == ["(version 1)", "(allow default)"]
    assert lines.index("(deny file-write*)") < lines.index(
        f'(allow file-write* (subpath "{tmp_path}/ws"))'
    )
    assert lines[-1] == '(deny file-read* file-write* (subpath "/h/.ssh"))'


def test_bubblewrap_is_given_the_plan(plan: dict[str, object], tmp_path: Path) -> None:
    words = session.bubblewrap_arguments("bwrap", plan, ("/etc/shadow",), ("/w/.git/hooks",))
    joined = " ".join(words)
    assert "--unshare-net" in words
    assert "--ro-bind / /" in joined
    assert f"--bind {tmp_path}/ws {tmp_path}/ws" in joined
    assert "--ro-bind-try /w/.git/hooks /w/.git/hooks" in joined
    assert joined.endswith("--ro-bind-try /dev/null /etc/shadow --")


def test_nothing_is_loaded_without_a_sandbox() -> None:
    code = (
        "import sys, toolwire.tools.builtin.run_shell_command as r\n"
        "print([m for m in sys.modules if m.startswith('toolwire.tools.shell.sandbox')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_program_below_the_temporary_folder_is_seen_in_bubblewrap(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(session, "_PROGRAM", ("/usr", "/tmp/clone/.venv"))
    folders = {"scratch": ["/tmp"], "state": list[str](), "writable": list[str]()}
    plan = {"network": True, "open": False, **folders}
    arguments = session.bubblewrap_arguments("bwrap", plan, (), ())
    at = arguments.index("/tmp/clone/.venv")
    assert arguments[at - 1 : at + 2] == ["--ro-bind", "/tmp/clone/.venv", "/tmp/clone/.venv"]
    assert arguments.index("--tmpfs") < at
    assert "/usr" not in arguments
