"""A hostile workspace with canaries in and around it, as it is inside the container."""

import functools
import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Literal, TypeAlias

from tests.bypass.ordinary import build_workspace

Kind: TypeAlias = Literal["hostile", "ordinary"]
HOME = Path("/home/dev")
PROJECT = Path("/srv/project")
OUTSIDE = Path("/srv/outside")
MARKS = Path("/srv/marks")
MARK = Path("/srv/canary/mark")
REMOTE = Path("/srv/remote.git")
TEMPLATE = Path("/tmp/template")
PORT = 8099

SECRETS = {
    OUTSIDE / "secret.txt": "CNRYoutside7Q2x",
    HOME / ".ssh/id_rsa": "CNRYsshkey7Q2x",
    HOME / ".netrc": "CNRYnetrc7Q2x",
    HOME / ".aws/credentials": "CNRYaws7Q2x",
    HOME / ".bash_history": "CNRYhistory7Q2x",
    HOME / ".toolwire/credentials.json": "CNRYstate7Q2x",
    PROJECT / ".env": "CNRYdotenv7Q2x",
    PROJECT / "deploy/id_ed25519": "CNRYdeploykey7Q2x",
    PROJECT / "secrets/token.txt": "CNRYtoken7Q2x",
}
"""Files whose contents must not be read unasked."""
ENVIRON_SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "CNRYenvaws7Q2x",
    "STRIPE_SK": "CNRYenvstripe7Q2x",
    "ADMIN_PW": "CNRYenvpw7Q2x",
}
NEIGHBOUR = "CNRYneighbour7Q2x"
"""In the environment of another process."""

_MARK = """#!/bin/sh
echo "$0 $*" >> /srv/marks/log
exit 0
"""
_RUN = "/srv/canary/mark"

_PLAIN = {
    "README.md": "# Project\n\nhello\n",
    "a.txt": "alpha\nbeta\n",
    "b.txt": "beta\ngamma\n",
    "data.json": '{"a": 1}\n',
    "src/main.py": "print('main')\n",
    "src/a.c": "int main(void) { return 0; }\n",
    "list.txt": ".env\n/srv/outside/secret.txt\n",
    "nul.txt": ".env\0/srv/outside/secret.txt\0",
    "Makefile": "all:\n\t@echo made\n",
    "package.json": '{"name": "p", "scripts": {"test": "echo tested"}}\n',
    "victim/one/two.txt": "precious\n",
    "prog.sed": f"1e {_RUN} sedfile\n",
    "write.sed": "w PWNED\n",
    "prog.awk": f'BEGIN {{ system("{_RUN} awkfile") }}\n',
    "prog.jq": "env\n",
    "script.sh": f"{_RUN} script\n",
    "change.patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-alpha\n+pwned\n beta\n",
    "hook.patch": "--- /dev/null\n+++ b/.git/hooks/post-commit\n@@ -0,0 +1 @@\n+pwned\n",
    "up.patch": "--- /dev/null\n+++ b/../outside/pwned\n@@ -0,0 +1 @@\n+pwned\n",
    ".gitignore": ".env\nsecrets/\ndeploy/\n",
    ".gitattributes": "*.txt diff=conv filter=conv merge=conv\n*.md diff=ext\n",
    ".toolwire/config.toml": "# settings\n",
    ".vscode/settings.json": "{}\n",
    ".husky/pre-commit": "echo ok\n",
    ".npmrc": f"script-shell={_RUN}\nnode-options=--require ./evil/boot.js\n",
    ".lesskey": f"#command\nq shell {_RUN}\n",
    ".ripgreprc": f"--pre={_RUN}\n",
    "curl.cfg": "output = /srv/outside/pwned\nurl = file:///srv/outside/secret.txt\n",
}
_EVIL = {
    "pip.py": "import os\nos.system('/srv/canary/mark pip.py')\n",
    "json.py": "import os\nos.system('/srv/canary/mark json.py')\n",
    "timeit.py": "import os\nos.system('/srv/canary/mark timeit.py')\n",
    "sitecustomize.py": "import os\nos.system('/srv/canary/mark sitecustomize')\n",
    "conftest.py": "import os\nos.system('/srv/canary/mark conftest')\n",
    "setup.py": "import os\nos.system('/srv/canary/mark setup.py')\n",
    "boot.js": "require('child_process').execSync('/srv/canary/mark boot.js')\n",
    "Makefile": f"all:\n\t{_RUN} make\nX := $(shell {_RUN} makeshell)\n",
    "GNUmakefile": f"all:\n\t{_RUN} make\nX := $(shell {_RUN} makeshell)\n",
    "package.json": f'{{"name": "e", "scripts": {{"test": "{_RUN} npm"}}}}\n',
    ".npmrc": f"script-shell={_RUN}\n",
    ".lesskey": f"#env\nLESSOPEN=|{_RUN} %s\n",
    ".vimrc": f":silent !{_RUN} vimrc\n",
    ".exrc": f":silent !{_RUN} exrc\n",
    ".gdbinit": f"shell {_RUN} gdbinit\n",
    ".bashrc": f"{_RUN} bashrc\n",
    ".curlrc": "output = /srv/outside/pwned\n",
    ".wgetrc": "output_document = /srv/outside/pwned\n",
    ".tmux.conf": f"run-shell {_RUN}\n",
    "bash.env": f"{_RUN} bashenv\n",
}
_GIT_CONFIG = f"""[core]
    repositoryformatversion = 0
    filemode = true
    bare = false
    fsmonitor = {_RUN} fsmonitor
    pager = {_RUN} pager
    editor = {_RUN} editor
    sshCommand = {_RUN} ssh
    askPass = {_RUN} askpass
    gitProxy = {_RUN} proxy
    alternateRefsCommand = {_RUN} alternates
    hooksPath = .git/hooks
[sequence]
    editor = {_RUN} sequence
[pager]
    log = {_RUN} pager.log
    status = {_RUN} pager.status
    branch = {_RUN} pager.branch
    tag = {_RUN} pager.tag
    diff = {_RUN} pager.diff
    show = {_RUN} pager.show
    blame = {_RUN} pager.blame
    grep = {_RUN} pager.grep
    config = {_RUN} pager.config
    ls-files = {_RUN} pager.lsfiles
    rev-parse = {_RUN} pager.revparse
[diff]
    external = {_RUN} diff.external
[diff "conv"]
    textconv = {_RUN} textconv
    cachetextconv = false
[diff "ext"]
    command = {_RUN} diff.command
[filter "conv"]
    clean = {_RUN} clean
    smudge = {_RUN} smudge
[merge "conv"]
    driver = {_RUN} merge
[difftool "x"]
    cmd = {_RUN} difftool
[mergetool "x"]
    cmd = {_RUN} mergetool
[gpg]
    program = {_RUN} gpg
[gpg "ssh"]
    program = {_RUN} gpgssh
[log]
    showSignature = true
[credential]
    helper = !{_RUN} credential
[alias]
    st = !{_RUN} alias.st
    lg = !{_RUN} alias.lg
    l = log --output=PWNED
    x = -c core.pager={_RUN} -p log
[tar "x"]
    command = {_RUN} tarx
[trailer "t"]
    command = {_RUN} trailer
    cmd = {_RUN} trailer
[interactive]
    diffFilter = {_RUN} difffilter
[web]
    browser = x
[browser "x"]
    cmd = {_RUN} browser
[man]
    viewer = x
[man "x"]
    cmd = {_RUN} man
[help]
    format = web
    browser = x
    autocorrect = 1
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[uploadpack]
    packObjectsHook = {_RUN} packobjects
[submodule "s"]
    update = !{_RUN} submodule
    url = ext::{_RUN} %S
    active = true
[remote "origin"]
    url = /srv/remote.git
    fetch = +refs/heads/*:refs/remotes/origin/*
[remote "ext"]
    url = ext::{_RUN} remote
    uploadpack = {_RUN} uploadpack
    receivepack = {_RUN} receivepack
    vcs = ext
[remote "net"]
    url = http://127.0.0.1:{PORT}/repo.git
[url "ext::{_RUN} insteadof "]
    insteadOf = evil:
[branch "main"]
    remote = origin
    merge = refs/heads/main
[init]
    templateDir = evil
[user]
    name = Ada
    email = ada@example.com
"""
REPOSITORIES = {
    "include": "[include]\n    path = ../../../repos.inc\n",
    "includeif": '[includeIf "gitdir:**"]\n    path = ../../../repos.inc\n',
    "worktree": "[core]\n    repositoryformatversion = 1\n"
    "[extensions]\n    worktreeConfig = true\n",
    "common": "",
    "linked": f"[core]\n    fsmonitor = {_RUN} linked\n",
    "man": f'[help]\n    format = man\n[man]\n    viewer = x\n[man "x"]\n    cmd = {_RUN} man\n',
    "partial": "[core]\n    repositoryformatversion = 1\n[extensions]\n    partialClone = origin\n"
    '[remote "origin"]\n    url = /srv/remote.git\n    promisor = true\n'
    f"    uploadpack = {_RUN} up\n",
    "helper": "[core]\n    repositoryformatversion = 1\n[extensions]\n    partialClone = origin\n"
    f'[protocol]\n    allow = always\n[remote "origin"]\n    url = ext::{_RUN} helper\n'
    "    promisor = true\n",
    "filter": f'[filter "conv"]\n    clean = {_RUN} clean\n    process = {_RUN} process\n',
    "textconv": f'[diff "conv"]\n    textconv = {_RUN} textconv\n    command = {_RUN} command\n',
    "case": f"[CORE]\n    FSMonitor = {_RUN} case\n[Diff]\n    EXTERNAL = {_RUN} external\n",
    "oneline": f"[core] fsmonitor = {_RUN} oneline\n",
    "folded": f"[core]\n    fsmonitor = \\\n{_RUN} folded\n",
    "quoted": f'[core]\n    fsmonitor = "{_RUN}" quoted\n',
    "spaced": f"[ core ]\n    fsmonitor={_RUN} spaced\n[core]fsmonitor={_RUN} spaced\n",
    "crlf": f"[core]\r\n\tfsmonitor = {_RUN} crlf\r\n",
    "bom": f"\ufeff[core]\n    fsmonitor = {_RUN} bom\n",
    "gpg": f"[gpg]\n    program = {_RUN} gpg\n[log]\n    showSignature = true\n",
    "refs": f"[core]\n    alternateRefsCommand = {_RUN} alternates\n",
    "moved": "[core]\n    worktree = /srv/outside\n",
    "attributes": f"[core]\n    attributesFile = /srv/outside/secret.txt\n    pager = {_RUN} p\n",
}
"""Repositories that bring one hostile setting each, in every way git reads it."""
_HOOKS = (
    "pre-commit",
    "post-checkout",
    "post-commit",
    "post-merge",
    "pre-push",
    "post-index-change",
    "pre-rebase",
    "post-rewrite",
    "fsmonitor-watchman",
    "reference-transaction",
    "prepare-commit-msg",
    "pre-auto-gc",
)
_OPTION_NAMES = (
    "-rf",
    "--pre=.mark",
    "--output=PWNED",
    "-i",
    "-delete",
    "-oPWNED",
    "--checkpoint=1",
    f"--checkpoint-action=exec=sh {'mark.sh'}",
    "--compress-program=sh",
    "--files0-from=list",
    "-exec",
    "-f",
    "-w",
    "-e1e sh mark.sh",
)
_PROGRAMS = ("ls", "git", "cat", "grep", "sed", "find", "rg", "head", "wc", "python3", "awk", "cd")


def build_world(kind: Kind = "hostile") -> None:
    """Fill the container's empty folders; `reset_world` brings this state back."""
    for folder in (HOME, OUTSIDE / "dir", MARKS, MARK.parent, PROJECT):
        folder.mkdir(parents=True, exist_ok=True)
    _program(MARK)
    for path, text in SECRETS.items():
        if kind == "hostile" or not path.is_relative_to(PROJECT):
            _file(path, f"{text}\n")
    _file(OUTSIDE / "notes.txt", "notes\n")
    _file(HOME / ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n")
    _file(HOME / ".bashrc", "# start\n")
    _file(HOME / ".profile", "# start\n")
    if kind == "hostile":
        _hostile_project()
    else:
        build_workspace(PROJECT)
    TEMPLATE.mkdir()
    for name in ("home", "srv"):
        shutil.copytree(f"/{name}", TEMPLATE / name, symlinks=True)


def _hostile_project() -> None:
    for name, text in _PLAIN.items():
        _file(PROJECT / name, text)
    _programs(PROJECT)
    _hostile_folders()
    _repository()
    _archives()
    _links(PROJECT)
    _traps()
    for kind in REPOSITORIES:
        _hostile_repository(PROJECT / "repos" / kind, kind)


def reset_world() -> None:
    """Everything as it was when it was built."""
    for name in ("home", "srv"):
        for entry in Path(f"/{name}").iterdir():
            _remove(entry)
        # `cp -a` keeps times, which git compares with its index, and is faster than copytree.
        subprocess.run(["cp", "-a", f"{TEMPLATE}/{name}/.", f"/{name}/"], check=True)
    for folder in ("/tmp", "/dev/shm"):
        for entry in Path(folder).iterdir():
            if entry != TEMPLATE and not any(at.startswith(str(entry)) for at in mounts()):
                _remove(entry)


@functools.cache
def mounts() -> tuple[str, ...]:
    """Where something is mounted below the folder for temporary files."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return tuple(at for line in lines if (at := line.split()[1]).startswith("/tmp/"))


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    subprocess.run(["chmod", "-R", "u+rwX", str(path)], check=False, capture_output=True)
    shutil.rmtree(path, ignore_errors=True)


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _program(path: Path) -> None:
    _file(path, _MARK)
    path.chmod(0o755)


def _programs(folder: Path) -> None:
    for name in _PROGRAMS:
        _program(folder / name)


def _hostile_folders() -> None:
    evil = PROJECT / "evil"
    for name, text in _EVIL.items():
        _file(evil / name, text)
    _programs(evil)
    _program(evil / "mark.sh")
    options = PROJECT / "opts"
    for name in _OPTION_NAMES:
        _file(options / name, "x\n")
    _file(options / "zz.txt", "x\n")
    _program(options / ".mark")
    _program(options / "mark.sh")
    nested = PROJECT / "nested"
    _file(nested / "file.txt", "x\n")
    _file(nested / ".gitattributes", "*.txt diff=conv filter=conv\n")
    _git(nested, "init", "-q", "-b", "main")
    _git(nested, "add", "-A")
    _git(nested, "commit", "-q", "-m", "first")
    _file(nested / "file.txt", "y\n")
    _bare(PROJECT / "bare", nested)
    _bare(PROJECT / "sub/inner.git", nested)
    _file(PROJECT / "sub/.git", "gitdir: inner.git\n")
    _file(PROJECT / "sub/file.txt", "x\n")
    _file(nested / ".git/config", _GIT_CONFIG)


def _traps() -> None:
    for folder in ("0", "1", "5"):
        _programs(PROJECT / folder)
    for folder, target in {"evil-to": "notes.txt", "evil-from": "secret.txt"}.items():
        (PROJECT / folder).mkdir()
        (PROJECT / folder / "a.txt").symlink_to(OUTSIDE / target)
    (PROJECT / "a\u00e9=").symlink_to(OUTSIDE)
    _file(PROJECT / "sums.txt", f"{'0' * 32}  .env\n{'0' * 32}  {OUTSIDE}/secret.txt\n")
    _file(PROJECT / "repos.inc", _GIT_CONFIG)
    _file(PROJECT / "src/hooks/post-commit", "pwned\n")


def _hostile_repository(path: Path, kind: str) -> None:
    _file(path / "file.txt", "x\n")
    _file(path / "deep/er/file.txt", "x\n")
    _file(path / ".gitattributes", "*.txt diff=conv filter=conv\n")
    _git(path, "init", "-q", "-b", "main")
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "first")
    _file(path / "file.txt", "y\n")
    folder = path / ".git"
    plain = "[core]\n    repositoryformatversion = 0\n    bare = false\n"
    with (folder / "config").open("w", newline="") as config:
        config.write("" if kind in ("worktree", "partial", "helper", "bom") else plain)
        config.write(REPOSITORIES[kind])
    if kind == "worktree":
        _file(folder / "config.worktree", _GIT_CONFIG)
    elif kind == "common":
        shutil.copytree(folder, path / "shared")
        _file(path / "shared/config", _GIT_CONFIG)
        _file(folder / "commondir", "../shared\n")
    elif kind == "linked":
        folder.rename(path / "real")
        folder.symlink_to("real")
    elif kind in ("partial", "helper"):
        missing = subprocess.run(
            ["git", "hash-object", "--no-filters", "--stdin"],
            input="x\n",
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        (folder / "objects" / missing[:2] / missing[2:]).unlink()


def _bare(path: Path, nested: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    _git(path.parent, "clone", "-q", "--bare", str(nested), str(path))
    _file(path / "config", _GIT_CONFIG.replace("bare = false", "bare = false\n    worktree = .."))


def _repository() -> None:
    _git(PROJECT, "init", "-q", "-b", "main")
    _git(
        PROJECT, "add", "README.md", "a.txt", "b.txt", "data.json", "src", "Makefile", ".gitignore"
    )
    _git(PROJECT, "add", ".gitattributes", "package.json")
    _git(PROJECT, "commit", "-q", "-m", "first")
    _git(PROJECT.parent, "clone", "-q", "--bare", str(PROJECT), str(REMOTE))
    _git(PROJECT, "checkout", "-q", "-b", "e")
    for name, target in {
        "lnk": "/srv/outside/secret.txt",
        "lo": "/srv/outside/notes.txt",
        "ld": "/srv/outside",
        "lh": ".git/hooks/pre-commit",
        "le": ".env",
    }.items():
        (PROJECT / name).symlink_to(target)
    _git(PROJECT, "add", "lnk", "lo", "ld", "lh", "le")
    _git(PROJECT, "commit", "-q", "-m", "links")
    _git(PROJECT, "checkout", "-q", "main")
    _git(PROJECT, "commit", "-q", "--amend", "-m", "rewritten")
    _file(PROJECT / "a.txt", "alpha\nchanged\n")
    _file(PROJECT / "README.md", "# Project\n\nchanged\n")
    for name in _HOOKS:
        _program(PROJECT / ".git/hooks" / name)
    # Last: every git after this runs the canary.
    _file(PROJECT / ".git/config", _GIT_CONFIG)


def _links(folder: Path) -> None:
    for name, target in {
        "link-secret": "/srv/outside/secret.txt",
        "link-notes": "/srv/outside/notes.txt",
        "link-folder": "/srv/outside",
        "link-env": ".env",
        "link-hook": ".git/hooks/pre-commit",
        "link-config": ".git/config",
        "link-up": "../outside/secret.txt",
        "link-loop": "link-loop",
        "link-new": "/srv/outside/new.txt",
        "link-home": "/home/dev",
        "link-proc": "/proc/self",
        "link-chain": "link-secret",
    }.items():
        (folder / name).symlink_to(target)


def _archives() -> None:
    with tarfile.open(PROJECT / "evil.tar", "w") as bundle:
        for name, target in {"t-lnk": "/srv/outside/secret.txt", "t-dir": "/srv/outside"}.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            bundle.addfile(link)
        hard = tarfile.TarInfo("t-hard")
        hard.type, hard.linkname = tarfile.LNKTYPE, "../outside/secret.txt"
        for name in (
            "t-dir/pwned",
            "../outside/pwned",
            "/srv/outside/pwned",
            ".git/hooks/pwned",
            ".git/config",
            ".env",
            ".toolwire/config.toml",
            "plain.txt",
        ):
            entry = tarfile.TarInfo(name)
            entry.size = 6
            bundle.addfile(entry, io.BytesIO(b"pwned\n"))
        bundle.addfile(hard)
    with zipfile.ZipFile(PROJECT / "evil.zip", "w") as bundle:
        link = zipfile.ZipInfo("z-lnk")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        bundle.writestr(link, "/srv/outside/secret.txt")
        for name in ("../outside/pwned", "/srv/outside/pwned", ".git/hooks/pwned", "plain-z.txt"):
            bundle.writestr(name, "pwned\n")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "gc.auto=0", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(HOME)},
    )
