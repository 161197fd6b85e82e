"""Interpreters and runners: a rule allows a file or a known module, never code in a word."""

import re

from toolwire.policy.shell.effects import NEVER, Effects, opaque
from toolwire.policy.shell.syntax import names

_FLAGS = {
    "python": "-BEIOPSbdiqsuvxOO",
    "node": "",
    "perl": "-w -T -t -W -X",
    "ruby": "-w -W",
    "php": "-n -q",
    "lua": "",
    "bash": "-e -u -x",
    "sh": "-e -u -x",
}
_MODULES = names("""
    pytest unittest json.tool venv compileall py_compile mypy ruff black isort flake8 pylint
    pyright coverage tox nox build pip doctest http.server zipfile tarfile pydoc platform
    site sysconfig calendar this uvicorn gunicorn flask django""")
"""Modules that run the project's own code or none: `timeit` and the like run a word as code."""
FAMILIES = names("python node perl ruby php lua bash sh pypy")
CODE = names("""
    vi vim nvim view gvim vimdiff ex ed emacs emacsclient nano joe m4 dc psql mysql mariadb mongosh
    gnuplot octave irb ghci ftp lftp fzf ssh mosh telnet nc ncat socat parallel entr at batch
    crontab systemd-run strace ltrace gdb lldb valgrind perf unshare nsenter setpriv setarch chrt
    taskset prlimit bwrap firejail dbus-run-session xvfb-run expect tmux screen ld.so
    ssh-agent start-stop-daemon sg capsh su doas runuser pkexec script zsh fish dash ksh csh
    tcsh rbash busybox watch flock chroot eval source . exec trap alias unalias shopt enable hash
    bind complete compopt compgen let mapfile readarray getopts fc history coproc caller dirs popd
    pushd suspend logout disown typeset declare local readonly export unset read wait set return
    break continue shift builtin osascript deno bun julia elixir scala groovy ghc tclsh wish guile
    racket sbcl clojure Rscript R swift kotlin jshell openssl gpg man info apropos""")
"""Programs and builtins that run code from their words, their input or elsewhere."""


def family(name: str) -> str:
    """The interpreter without its version: `python3.12` is python."""
    return re.sub(r"[0-9.]+\Z", "", name)


def effects(words: tuple[str, ...]) -> Effects:
    """What an interpreter runs: the project's own file or module, or code that is not known."""
    kind = family(words[0])
    flags = _FLAGS.get(kind, "")
    at = 1
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        word = words[at]
        if kind == "python" and word == "-m" and at + 1 < len(words):
            return _module(words, at)
        if word == "--":
            return opaque(f"{words[0]} is used with --", at)
        if not all(f"-{letter}" in flags or letter in flags for letter in word[1:]) or word[
            1:2
        ] in ("-", "i", "v"):
            return opaque(f"{words[0]} is given code, or an option that is not known", at)
        at += 1
    if at == len(words) or words[at] == "-" or words[at].startswith(("/dev/", "/proc/")):
        return opaque(f"{words[0]} runs whatever comes on its input")
    return Effects(known=False, reads=(words[at],), changes="it runs a program of the project")


def _module(words: tuple[str, ...], at: int) -> Effects:
    name = words[at + 1].partition(".")[0] if words[at + 1] not in _MODULES else words[at + 1]
    if name not in _MODULES:
        return opaque(f"python -m {words[at + 1][:40]} may run code", at + 1)
    return Effects(known=False, changes="it runs a program of the project")


def code(words: tuple[str, ...]) -> Effects:
    """A program that runs code; a rule that names more words than its name may allow it."""
    plain = words[0] in ("ssh", ".", "source", "doas", "man", "openssl", "gpg", "info")
    return opaque(f"{words[0]} runs other commands or code", 1 if plain else _covered(words))


def _covered(words: tuple[str, ...]) -> int:
    builtin = names("eval exec trap alias shopt enable set read wait declare typeset local export")
    return NEVER if words[0] in builtin else 1
