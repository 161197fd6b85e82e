"""Runners and interpreters: a rule allows them with known options and files, never with code."""

import re

import msgspec

from toolwire.policy.shell.effects import NEVER, Effects, Syntax, of_line, opaque, read_line, syntax
from toolwire.policy.shell.syntax import names

_PACKAGES = """-gDEOsSyfnw --silent --save --save-dev --save-exact --save-optional --global
    --production
    --if-present --ignore-scripts --legacy-peer-deps --force --no-audit --no-fund --no-save --yes
    --frozen-lockfile --prefer-offline --offline --workspaces --dry-run --json --long --all
    --recursive --parallel --stream --no-optional --prod --dev --exact --latest -r --watch
    --depth=T --omit=T --include=T --workspace=T -w=T --filter=T -F=T --prefix=W --cwd=W --dir=W
    -C=W --tag=T --loglevel=T | T*"""
_CHECKS = """-qvxsIlnhk -# --quiet --verbose --version --fix --check --diff --watch --exitfirst
    --strict
    --no-cache --cache --color?T --no-color --write --list-different --stat --statistics --silent
    --ci --coverage --bail?T --passWithNoTests --runInBand -i --updateSnapshot -u --noEmit
    --pretty --noErrorTruncation --incremental --no-header --no-summary --showlocals -l --lf
    --last-failed --ff --failed-first --sw --stepwise --co --collect-only --durations=T
    --maxfail=T --tb=T -k=T -m=T -n=T --numprocesses=T -r=T --cov?T --cov-report=T
    --cov-fail-under=T --timeout=T --randomly-seed=T --ext=T --format=T --max-warnings=T
    --line-length=T --select=T --ignore=T --extend-select=T --target-version=T --output-format=T
    --testNamePattern=T -t=T --testPathPattern=T --reporter=T --project=R -p=R --tsconfig=R
    --maxWorkers=T --shard=T --run --log-level=T --capture=T --ignore-path=R
    --deselect=T --junitxml=W --explicit-package-bases --ignore-missing-imports
    --show-error-codes --no-error-summary --python-version=T | R*"""
RUNNERS: dict[str, str] = {
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm"), _PACKAGES),
    **dict.fromkeys(
        ("pytest", "ruff", "mypy", "pyright", "black", "isort", "flake8", "pylint", "eslint"),
        _CHECKS,
    ),
    **dict.fromkeys(("prettier", "tsc", "jest", "vitest", "mocha", "tox", "nox"), _CHECKS),
    "go": """-v -race -short -cover -json -count=T -run=T -bench=T -timeout=T -tags=T -parallel=T
        -p=T -o=W -coverprofile=W -cpu=T -mod=T -u -d -w -l -s -x -n -a -i -benchmem -failfast
        -trimpath -m -e -f=T -fix | R*""",
    "cargo": """-vqrpFj --verbose --quiet --release --all --workspace --all-targets --all-features
        --no-default-features --lib --bins --tests --examples --benches --doc --locked --offline
        --frozen --no-run --no-fail-fast --keep-going --check --message-format=T --color=T
        --features=T -F=T --package=T -p=T --bin=T --test=T --example=T --bench=T -j=T --jobs=T
        --target=T --profile=T --exclude=T --manifest-path=R --target-dir=W --depth=T -e=T
        --edges=T -i=T --invert=T --all-features | R*""",
    **dict.fromkeys(
        ("make", "gmake"),
        """-kBsnitw --keep-going --always-make --silent --quiet --dry-run --just-print
        --ignore-errors --print-directory --no-print-directory --touch --question -q
        --warn-undefined-variables --trace --output-sync?T -O?T -j?T --jobs?T -l?T -C=R
        --directory=R -f=R --file=R --makefile=R | T*""",
    ),
    "sqlite3": "",
    "rsync": """-avzrnuPhcltpogDHLqmx --archive --verbose --compress --recursive --dry-run --update
        --progress --human-readable --checksum --delete --stats --partial --exclude=T --include=T
        | A* W""",
    "scp": "-rpqCv346 -P=T -l=T | A* W",
    "docker": "",
}
_MAKE_RUNS = re.compile(
    # Programs of the built-in rules; `x!=command`; values that leave the word they are put into.
    r"(?:SHELL|\.SHELLFLAGS|MAKE\w*|GNUMAKEFLAGS|CC|CXX|CPP|AR|AS|LD|FC|PC|M2C|CO|GET|LEX|YACC|LINT"
    r"|RM|INSTALL\w*|TEXI2DVI|TEX|WEAVE|CWEAVE|TANGLE|CTANGLE)\s*[:+?]*="
    r"|[^=]*!=|[^=]*=.*[^\w./:,+@%= -]",
    re.DOTALL,
)
_SQL_RUNS = re.compile(
    r"\s*\.|.*\n\s*\.|.*(?:attach|vacuum.*into|load_extension|(?:read|write)file|edit\s*\()",
    re.DOTALL | re.IGNORECASE,
)
_HANDS_ON = frozenset({"npm", "yarn", "pnpm", "cargo", "go"})
"""What follows `--` belongs to the program that they start."""


def effects(words: tuple[str, ...]) -> Effects:
    """Effects of a runner: more than its words show, but within what a rule for it allows."""
    name = words[0]
    if name == "sqlite3":
        return _sqlite(words)
    if name == "docker":
        return opaque("docker runs programs of an image", 2)
    own = words
    if name in _HANDS_ON and "--" in words:
        own = words[: words.index("--")]
    known = _single_dashes(RUNNERS[name]) if name == "go" else syntax(RUNNERS[name])
    line = read_line(own, known) if name != "go" else read_line(_doubled(own, known), known)
    if name in ("make", "gmake"):
        for operand, at in line.operands:
            if _MAKE_RUNS.match(operand):
                return opaque("make is given a program to run", at)
        for given in line.options:
            if given.name in ("-f", "--file", "--makefile") and given.value.startswith(
                ("-", "/dev")
            ):
                return opaque("make runs whatever comes on its input", given.at)
    found = of_line(name, line, known)
    if found.opaque:
        return found
    values = (text.partition("=")[2] for text, _ in line.operands if "=" in text)
    paths = tuple(value for value in values if value.startswith(("/", "..", "~")))
    found = msgspec.structs.replace(found, writes=(*found.writes, *paths))
    return msgspec.structs.replace(
        found, known=False, changes="it runs a program of the project or contacts a server"
    )


def _single_dashes(text: str) -> Syntax:
    """The syntax of a program whose long options have one dash, as if they had two."""
    options, _, operands = text.partition("|")
    doubled = " ".join(f"-{token}" for token in options.split())
    return syntax(f"{doubled} |{operands}")


def _doubled(words: tuple[str, ...], known: Syntax) -> tuple[str, ...]:
    """The words with every option written with two dashes."""
    del known
    return tuple(
        f"-{word}" if word.startswith("-") and not word.startswith("--") and len(word) > 1 else word
        for word in words
    )


def _sqlite(words: tuple[str, ...]) -> Effects:
    flags = frozenset(
        {"-csv", "-json", "-header", "-column", "-line", "-list", "-readonly", "-box"}
    )
    rest = [(word, at) for at, word in enumerate(words[1:], 1) if word not in flags]
    for word, at in rest:
        if word.startswith("-"):
            return opaque(f"the option {word[:40]} of sqlite3 is not known", at)
    if len(rest) < 2:
        return opaque("sqlite3 runs whatever comes on its input")
    for word, at in rest[1:]:
        if _SQL_RUNS.match(word):
            return opaque("the SQL may run or write something", at)
    return Effects(changes="it changes a database", writes=(rest[0][0],))


_NAME = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a program before the command that it starts."""

    flags: str = ""
    values: str = ""
    long_flags: tuple[str, ...] = ()
    long_values: tuple[str, ...] = ()
    operands: int = 0
    """Words between the options and the command."""
    assignments: bool = False
    numbers: bool = False


STARTERS = {
    "env": Starter(flags="i0", values="u", long_flags=("--ignore-environment",), assignments=True),
    "nice": Starter(values="n", long_values=("--adjustment",), numbers=True),
    "ionice": Starter(flags="t", values="cn"),
    "nohup": Starter(),
    "timeout": Starter(
        flags="v",
        values="ks",
        long_flags=("--foreground", "--preserve-status", "--verbose"),
        long_values=("--kill-after", "--signal"),
        operands=1,
    ),
    "stdbuf": Starter(values="ioe", long_values=("--input", "--output", "--error")),
    "setsid": Starter(flags="w", long_flags=("--wait",)),
    "command": Starter(flags="p"),
    "builtin": Starter(),
    "sudo": Starter(flags="EHnSk", values="ug"),
    "xargs": Starter(
        flags="0rtx",
        values="dEnLPs",
        long_flags=("--null", "--no-run-if-empty", "--verbose", "--exit"),
        long_values=("--delimiter", "--max-args", "--max-procs", "--max-lines", "--max-chars"),
    ),
}


class Inner(msgspec.Struct, frozen=True):
    """The command inside another one, and the variables set for it."""

    words: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    at: int = 0
    """The index of its first word."""


def inner(words: tuple[str, ...]) -> Inner | Effects:
    """The command that a starter starts, or why it is not known."""
    starter = STARTERS[words[0]]
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        step = _option(words, at, starter)
        if not step:
            return opaque(f"the option {words[at][:40]} of {words[0]} is not known", at)
        at += step
    assignments: list[tuple[str, str]] = []
    while starter.assignments and at < len(words) and (found := _NAME.match(words[at])):
        assignments.append((found[1], words[at][found.end() :]))
        at += 1
    at += starter.operands
    return Inner(words[at:], tuple(assignments), at)


def _option(words: tuple[str, ...], at: int, starter: Starter) -> int:
    """How many words an option takes; 0 if it is not known."""
    word = words[at]
    if word.startswith("--"):
        name, equals, _ = word.partition("=")
        if name in starter.long_values:
            return 1 if equals else _with_value(words, at)
        return 1 if name in starter.long_flags and not equals else 0
    if starter.numbers and word[1:].isdigit():
        return 1
    for index, letter in enumerate(word[1:], 1):
        if letter in starter.values:
            return 1 if word[index + 1 :] else _with_value(words, at)
        if letter not in starter.flags:
            return 0
    return 1


def _with_value(words: tuple[str, ...], at: int) -> int:
    """Two words for an option and its value; 0 if what follows looks like an option."""
    return 2 if at + 1 < len(words) and not words[at + 1].startswith("-") else 0


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


def interpreter_effects(words: tuple[str, ...]) -> Effects:
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
