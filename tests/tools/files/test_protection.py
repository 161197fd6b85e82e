import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.tools.workspaces import context_in, write
from toolwire.storage.paths import state_paths
from toolwire.tools.files.protection import (
    CREDENTIALS,
    HIDDEN_IN_HOME,
    HOME_FILES,
    PROGRAMS,
    STARTUP,
    Protection,
)
from toolwire.tools.spec import ToolContext, Workspace


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


def root(context: ToolContext) -> Path:
    return context.workspace.roots[0]


def protected(path: str | Path, workspace: Workspace, environ: Mapping[str, str] = {}) -> str:
    return Protection(workspace, environ).why_followed(path)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".git/config", "git's own files"),
        ("sub/.git/hooks/pre-commit", "git's own files"),
        (".GIT/config", "git's own files"),
        (".toolwire/config.toml", "configuration of the agent"),
        (".gemini/settings.json", "configuration of the agent"),
        (".env", "credentials"),
        ("sub/.env.production", "credentials"),
        ("server.pem", "credentials"),
        (".npmrc", "credentials"),
        ("id_ed25519", "credentials"),
        *((name, STARTUP) for name in (".vscode/tasks.json", "a/.idea/x.xml", ".husky/pre-commit")),
        *((name, STARTUP) for name in (".yarnrc.yml", ".pnpmfile.cjs", ".mvn/jvm.config")),
        *((name, STARTUP) for name in ("src/sitecustomize.py", "lib/a.pth", ".dir-locals.el")),
        *((name, STARTUP) for name in (".cargo/config.toml", ".yarn/releases/y.cjs", ".gdbinit")),
        *((name, STARTUP) for name in (".claude/settings.json", ".mcp.json", "a.code-workspace")),
        *((name, STARTUP) for name in ("dotfiles/.bashrc", "x/.config/autostart/a.desktop")),
        (".envrc", "credentials"),
        *((name, "") for name in ("conftest.py", "Makefile", "package.json", "pyproject.toml")),
        *((name, "") for name in (".pre-commit-config.yaml", ".cargo/registry", ".editorconfig")),
        (".env.example", ""),
        (".gitignore", ""),
        (".github/workflows/ci.yml", ""),
        ("src/environment.py", ""),
        ("keys.py", ""),
    ],
)
def test_protected_files_are_reported_by_name(name: str, why: str, context: ToolContext) -> None:
    assert protected(root(context) / name, context.workspace) == why
    assert protected(name, context.workspace) == why


def test_files_of_the_home_and_our_own_places_are_protected(
    context: ToolContext, tmp_path: Path
) -> None:
    home = context.workspace.home
    assert protected(home / ".ssh" / "config", context.workspace) == "credentials"
    assert protected(home / ".bashrc", context.workspace).startswith("files that a shell")
    own = {"TOOLWIRE_HOME": str(tmp_path / "own")}
    why = protected(tmp_path / "own" / "config.toml", context.workspace, own)
    assert why == "configuration of the agent"


def test_our_own_places_are_protected_by_their_real_path_too(
    context: ToolContext, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "own").symlink_to(tmp_path / "real")
    own = {"TOOLWIRE_HOME": str(tmp_path / "own")}
    why = protected(tmp_path / "real" / "policy.toml", context.workspace, own)
    assert why == "configuration of the agent"


def test_the_records_of_the_agent_are_protected(
    context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    own = state_paths({})
    for path in (own.sessions / "a.db", own.state / "audit.jsonl"):
        assert protected(path, context.workspace, {}) == "records of the agent"


def test_the_temp_directory_is_not_protected_where_it_is_in_our_home(
    context: ToolContext, tmp_path: Path
) -> None:
    own = {"TOOLWIRE_HOME": str(tmp_path / "own")}
    temp = tmp_path / "own" / "cache" / "projects" / "x"
    workspace = msgspec.structs.replace(context.workspace, temp=temp)
    assert protected(temp / "call.output", workspace, own) == ""
    assert protected(temp / ".." / "y", workspace, own) == "configuration of the agent"


def test_a_link_to_a_protected_file_is_protected(context: ToolContext) -> None:
    write(root(context) / ".git" / "config", "")
    (root(context) / "harmless.txt").symlink_to(".git/config")
    found = protected(root(context) / "harmless.txt", context.workspace)
    assert found == "git's own files"


def in_home(home: Path, *roots: Path, path: str = "") -> Protection:
    workspace = Workspace(roots=roots or (home,), temp=home / ".cache/toolwire/p", home=home)
    return Protection(workspace, {"TOOLWIRE_HOME": "/nowhere", "PATH": path})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, HOME_FILES) for name in (".bashrc", ".bash_aliases", ".zlogin", ".xprofile")),
        *((name, HOME_FILES) for name in (".config/environment.d/a.conf", ".config/fish/x.fish")),
        (".config/autostart/a.desktop", HOME_FILES),
        (".BASHRC", HOME_FILES),
        (".ba\u200bshrc", HOME_FILES),
        (".ssh/authorized_keys", CREDENTIALS),
        (".local/share/keyrings/login.keyring", CREDENTIALS),
        (".netrc", CREDENTIALS),
        (".vscode/tasks.json", STARTUP),
        *((name, HIDDEN_IN_HOME) for name in (".config/nvim/init.lua", ".local/bin/ls", ".x")),
        *((name, HIDDEN_IN_HOME) for name in (".config/mimeapps.list", ".oh-my-zsh/x.zsh")),
        *((name, HIDDEN_IN_HOME) for name in (".bash_history", ".nvm/nvm.sh", ".cargo/env")),
        *((name, PROGRAMS) for name in ("bin/ls", "Library/LaunchAgents/a.plist", "go/bin/x")),
        ("Desktop/a.desktop", PROGRAMS),
        ("AppData/Roaming/x", PROGRAMS),
        *((name, "") for name in ("notes.txt", "code/a.py", "code/.hidden", "binary", "go/a.go")),
        (".cache/toolwire/p/call.output", ""),
        (".local/share/Trash/files/a", ""),
        *((name, "") for name in (".gitignore", ".editorconfig", ".github/workflows/ci.yml")),
        (".gitignore_global", HIDDEN_IN_HOME),
    ],
)
@pytest.mark.parametrize("above", [".", ".."])
def test_a_home_folder_as_workspace_is_protected_by_kind(
    name: str, why: str, above: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    protection = in_home(home, (home / above).resolve(), path=f"/usr/bin:{home}/go/bin:relative")
    assert protection.why(home / name) == why


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/profile.d/x.sh", PROGRAMS),
        ("/usr/bin/ls", PROGRAMS),
        ("/var/spool/cron/crontabs/root", PROGRAMS),
        ("/root/.bashrc", STARTUP),
        ("/root/.x", HIDDEN_IN_HOME),
        ("/home/other/.config/a", HIDDEN_IN_HOME),
        ("/Users/other/Library/x", PROGRAMS),
        ("/home/other/a.txt", ""),
        ("/srv/app/main.py", ""),
        ("/home", ""),
    ],
)
def test_the_whole_disk_as_workspace_protects_the_system_and_every_home(
    path: str, why: str
) -> None:
    assert in_home(Path("/home/me"), Path("/")).why(path) == why


def test_what_only_runs_by_itself_may_be_read(tmp_path: Path) -> None:
    protection = in_home(tmp_path)
    free = (".vscode/settings.json", "a/sitecustomize.py", "bin/tool", "a/.git/config")
    hidden = (".bashrc", ".config/a", ".env", ".ssh/config")
    assert [bool(protection.hides(tmp_path / name)) for name in free] == [False] * len(free)
    assert [bool(protection.hides(tmp_path / name)) for name in hidden] == [True] * len(hidden)


def test_a_workspace_inside_a_hidden_folder_is_a_workspace_like_any_other(tmp_path: Path) -> None:
    root = tmp_path / ".claude" / "worktrees" / "x"
    root.mkdir(parents=True)
    protection = in_home(tmp_path, root)
    assert protection.why(root / "src" / "a.py") == ""
    assert protection.why(root / ".claude" / "settings.json") == STARTUP
    assert protection.why(tmp_path / ".other") == HIDDEN_IN_HOME
    assert protection.why(tmp_path / "bin" / "ls") == PROGRAMS


@pytest.mark.parametrize("path", ["/usr/src/app/a.py", "/opt/app/a.py", "/root/work/a.py"])
def test_a_project_in_a_folder_of_the_system_is_not_protected(path: str) -> None:
    root = Path(path).parent
    assert in_home(Path("/root"), root, path=os.environ["PATH"]).why(path) == ""


def test_a_home_behind_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    protection = in_home(tmp_path / "link")
    for name in ("link", "real"):
        assert protection.why(tmp_path / name / ".zlogin") == HOME_FILES


@pytest.mark.parametrize("root", ["/", "/home/me", "/home/me/work", "/home/me/.own/x", "/srv/own"])
def test_files_of_a_folder_are_protected_as_each_of_them_is(root: str) -> None:
    workspace = Workspace(
        roots=(Path(root),), temp=Path("/home/me/.own/temp"), home=Path("/home/me")
    )
    protection = Protection(workspace, {"TOOLWIRE_HOME": "/srv/own", "PATH": "/home/me/go/bin"})
    names = [
        *("a.py", "README", "id_rsa", "ID_RSA", "a.pem", "A.Key", "credentials.json", "config"),
        *(".env", ".env.example", ".bashrc", ".x", ".git", ".toolwire", "pip.conf", "a.pth"),
        *("\u212aeys.txt", "server.\u212aey", ".ba\u200bshrc", "temp", "own", "me", "home", "srv"),
        *("credentials", "sessions", "state", "config.toml", "keychains", "fish", "bin", "library"),
        *("releases", "authorized_keys", "a.desktop", "x y", "a\nb.pem"),
    ]
    folders = [
        *("/", "/home", "/home/me", "/home/me/work", "/home/me/work/src", "/home/me/.own"),
        *("/home/me/.own/temp", "/home/me/.own/x", "/home/me/.ssh", "/home/me/.config"),
        *("/home/me/.cargo", "/home/me/library", "/home/you", "/home/you/.x", "/srv", "/srv/own"),
        *("/home/me/work/.git", "/home/me/work/.vscode", "/home/me/work/.Gemini", "/root", "/etc"),
    ]
    for folder in folders:
        each = [name for name in names if protection.hides(os.path.join(folder, name))]  # noqa: PTH118
        assert protection.hidden_among(folder, names) == each, folder
        for name in names:
            assert protection.hidden_among(folder, [name]) == [one for one in each if one == name]
    assert protection.hidden_among("/srv", []) == []
