"""Programs that run code, write files or open places by their options and operands."""

import re

import msgspec

from toolwire.agent.commands import git, text_programs
from toolwire.agent.commands.inside import Inside, hiding
from toolwire.agent.commands.values import Access, Command, Redirect, Word, names


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a program's options may do beyond its plain work."""

    runs: tuple[str, ...] = ()
    """Options that make it run a command or code."""
    runs_by: str = ""
    """Pattern of other words that make it run something."""
    writes: tuple[str, ...] = ()
    """Options whose value is a file to write."""
    reads: tuple[str, ...] = ()
    """Options whose value is a file to read, where its operands are none."""
    operands: Access | None = None
    """Its operands are files, which it reads or writes."""
    known_only: bool = False
    """Operands known only when it runs are no files it would not look at anyway."""
    hands_on: bool = False
    """What follows `--` belongs to the program that it starts."""
    skip: int = 0
    """Operands before the files: the pattern of `grep`."""
    skip_unless: tuple[str, ...] = ()
    """Options that take the place of the skipped operands."""


_PATTERN_FIRST = Program(
    operands=Access.READ,
    skip=1,
    skip_unless=("-e", "-f", "--regexp", "--file"),
    runs=("--pre", "--hostname-bin"),
)
_FILTERS = ("-f", "--from-file")
_PACKAGES = Program(
    runs=(
        "--script-shell",
        "--shell",
        "--node-options",
        "--userconfig",
        "--globalconfig",
        "--editor",
        "--viewer",
        "--git",
        "--call",
        "-c",
    ),
    reads=("--prefix", "--cwd", "--dir", "-C"),
    hands_on=True,
)
_MAKE_RUNS = (
    # Programs of the built-in rules; `x!=command`; values that leave the word they are put into.
    r"(?:SHELL|\.SHELLFLAGS|MAKE\w*|GNUMAKEFLAGS|CC|CXX|CPP|AR|AS|LD|FC|PC|M2C|CO|GET|LEX|YACC|LINT"
    r"|RM|INSTALL\w*|TEXI2DVI|TEX|WEAVE|CWEAVE|TANGLE|CTANGLE)\s*[:+?]*="
    r"|[^=]*!=|[^=]*=.*[^\w./:,+@%= -]"
)
_SQL_RUNS = r"\s*\.|.*\n\s*\.|.*(?:attach|vacuum.*into|load_extension|(?:read|write)file|edit\s*\()"
_SENT = re.compile(r"(?:^(?:-[dF])?|=)[@<]([^;]+)|@([/~.][^;]*)|file:(?://[^/]*)?(/.*)")
"""Files whose contents go out: `-d @file`, `-F x=@file`, `name@/file`, `file:///file`."""
PROGRAMS = {
    "tar": Program(
        runs=(
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "-F",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
            "-P",
            "--absolute-names",
        ),
        operands=Access.WRITE,
    ),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm"), _PACKAGES),
    "rsync": Program(runs=("-e", "--rsh", "--rsync-path"), operands=Access.WRITE),
    "scp": Program(runs=("-S", "-o", "-F"), operands=Access.WRITE),
    "sftp": Program(runs=("-S", "-o", "-F", "-b", "-D")),
    "sort": Program(runs=("--compress-program",), writes=("-o", "--output"), operands=Access.READ),
    "split": Program(runs=("--filter",), operands=Access.WRITE),
    "fd": Program(runs=("-x", "-X", "--exec", "--exec-batch")),
    "fdfind": Program(runs=("-x", "-X", "--exec", "--exec-batch")),
    "man": Program(runs=("-P", "--pager", "-H", "--html")),
    "zip": Program(runs=("-TT", "--unzip-command"), operands=Access.WRITE),
    **dict.fromkeys(
        ("make", "gmake"),
        Program(runs=("--eval", "-E"), runs_by=_MAKE_RUNS, operands=Access.READ),
    ),
    "go": Program(
        runs=("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"),
        operands=Access.READ,
    ),
    "cargo": Program(runs=("--config",), operands=Access.READ, hands_on=True),
    "sqlite3": Program(
        runs=("-cmd", "--cmd", "-init", "--init"), runs_by=_SQL_RUNS, operands=Access.WRITE
    ),
    "date": Program(runs_by="-s|--se", operands=Access.READ, known_only=True),
    "shuf": Program(writes=("-o", "--output"), operands=Access.READ),
    "iconv": Program(writes=("-o", "--output"), operands=Access.READ),
    "openssl": Program(
        runs=("-engine", "-provider"), writes=("-out", "-keyout"), operands=Access.READ
    ),
    **dict.fromkeys(("jq", "yq"), Program(operands=Access.READ, skip=1, skip_unless=_FILTERS)),
    "curl": Program(
        runs=("-K", "--config"),
        writes=(
            "-o",
            "--output",
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--output-dir",
            "-O",
            "--remote-name",
        ),
        reads=("-T", "--upload-file", "-E", "--cert", "--key", "--netrc-file", "-b", "--cookie"),
    ),
    "wget": Program(
        runs=("-e", "--execute", "--use-askpass", "--config"),
        writes=(
            "-O",
            "--output-document",
            "-o",
            "--output-file",
            "-a",
            "--append-output",
            "-P",
            "--directory-prefix",
        ),
        reads=("--post-file", "--body-file", "-i", "--input-file", "--load-cookies"),
    ),
    "script": Program(runs=("-c", "--command"), operands=Access.WRITE),
    "su": Program(runs=("-c", "--command", "--session-command")),
    "runuser": Program(runs=("-c", "--command")),
    "ld": Program(),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag", "ack"), _PATTERN_FIRST),
    **dict.fromkeys(
        names("""
    cat head tail less more wc uniq cut nl tac rev od xxd hexdump strings file stat du ls tree
        diff cmp comm md5sum sha1sum sha256sum sha512sum base64 readlink realpath bat paste join
        column fold fmt expand unexpand pr tsort cksum b2sum base32 zcat bzcat xzcat zless bc"""),
        Program(operands=Access.READ),
    ),
    **dict.fromkeys(
        names("pytest ruff mypy pyright black eslint prettier tsc jest vitest mocha"),
        Program(operands=Access.READ, known_only=True),
    ),
    **dict.fromkeys(
        names("""
    rm rmdir mv cp ln mkdir touch tee truncate dd install shred unlink patch gzip gunzip
        bzip2 xz zstd unzip mkfifo mknod csplit"""),
        Program(operands=Access.WRITE),
    ),
    **dict.fromkeys(
        ("chmod", "chown", "chgrp"),
        Program(operands=Access.WRITE, skip=1, skip_unless=("--reference",)),
    ),
}
_ALWAYS_HIDDEN = {
    **dict.fromkeys(
        names("""
    vi vim nvim view gvim vimdiff ex ed emacs emacsclient nano joe m4 dc psql mysql mariadb mongosh
        gnuplot octave irb ghci ftp lftp"""),
        "it runs whatever comes on its input",
    ),
    "fzf": "it runs other commands",
    "ssh": "it runs on another machine",
    "mosh": "it runs on another machine",
    "telnet": "it talks to another machine",
    "nc": "it talks to another machine",
    "ncat": "it talks to another machine",
    "socat": "it talks to another machine",
    "parallel": "parallel runs other commands",
    "entr": "entr runs other commands",
    "at": "it runs commands later",
    "batch": "it runs commands later",
    "crontab": "it runs commands later",
    "systemd-run": "it runs other commands",
    "strace": "it runs other commands",
    "ltrace": "it runs other commands",
    "gdb": "it runs other commands",
    "lldb": "it runs other commands",
    "valgrind": "it runs other commands",
    "perf": "it runs other commands",
    "unshare": "it runs other commands",
    "nsenter": "it runs other commands",
    "setpriv": "it runs other commands",
    "setarch": "it runs other commands",
    "chrt": "it runs other commands",
    "taskset": "it runs other commands",
    "prlimit": "it runs other commands",
    "bwrap": "it runs other commands",
    "firejail": "it runs other commands",
    "dbus-run-session": "it runs other commands",
    "xvfb-run": "it runs other commands",
    "expect": "it runs other commands",
    "tmux": "it runs other commands",
    "screen": "it runs other commands",
    "ld.so": "it runs other commands",
    "ld-linux-x86-64.so.2": "it runs other commands",
}


def look(command: Command) -> Inside | None:
    """What a known program's words do; None for any other command."""
    name = command.root
    if name in _ALWAYS_HIDDEN:
        return hiding(command, _ALWAYS_HIDDEN[name], 1)
    if name == "git":
        return git.look(command)
    if name in text_programs.NAMES:
        return text_programs.look(command)
    program = PROGRAMS.get(name)
    if program is None:
        return None
    if name == "sqlite3" and sum(not word.text.startswith("-") for word in command.words) < 3:
        return hiding(command, "it runs whatever comes on its input")
    for at, word in enumerate(command.words[1:], 1):
        if program.hands_on and word.plain and word.text == "--":
            break
        if word.static and _told_to_run(word.text, program):
            return hiding(command, f"{name} is told to run something", at)
        if name == "tar" and at == 1 and re.match(r"[A-Za-z]*[IFP]", word.text):
            return hiding(command, "tar is told to run something", at)
        if not word.plain and program.runs and not word.glob and not word.tilde:
            return hiding(command, f"{name} is given what is known only when it runs", at)
    return Inside(
        command=command,
        redirects=_of_options(command, program.writes, Access.WRITE),
        named=(
            *_operands(command, program),
            *_of_options(command, program.reads, Access.READ),
            *(_sent(command) if name in ("curl", "wget") else ()),
        ),
    )


def _told_to_run(text: str, program: Program) -> bool:
    if is_option(text, program.runs):
        return True
    by = program.runs_by
    return bool(by) and re.match(by, text, re.DOTALL | re.IGNORECASE) is not None


def is_option(text: str, options: tuple[str, ...]) -> bool:
    """Whether a word is one of the options: also shortened, bundled or with its value attached."""
    if not text.startswith(("-", "+")) or text in ("-", "--"):
        return False
    if text.startswith("--"):
        name = text.partition("=")[0]
        return len(name) > 3 and any(option.startswith(name) for option in options)
    if text.startswith("+"):
        return "+" in options
    short = {option[1] for option in options if len(option) == 2 and option[0] == "-"}
    return bool(short & set(text[1:])) or text.startswith(
        tuple(option for option in options if len(option) > 2 and not option.startswith("--"))
    )


def _sent(command: Command) -> tuple[Redirect, ...]:
    """Files that a program for the web is told to send, or to read as an address."""
    found = (_SENT.search(word.text) for word in command.words[1:])
    paths = (next(path for path in each.groups() if path) for each in found if each)
    return tuple(
        Redirect(Access.READ, Word(path, tilde=path.startswith("~")), command.source)
        for path in paths
        if path != "-"
    )


def _of_options(command: Command, options: tuple[str, ...], access: Access) -> tuple[Redirect, ...]:
    """The files that some options name."""
    found: list[Redirect] = []
    words = command.words
    for at, word in enumerate(words[1:], 1):
        if not is_option(word.text, options):
            continue
        _, equals, value = word.text.partition("=")
        if word.text.startswith("--") and equals:
            target = Word(value, tilde=value.startswith("~"))
        elif not word.text.startswith("--") and len(word.text) > 2:
            # `-ofile`, or letters in a bundle: not told apart.
            target = Word(word.text, static=False)
        else:
            target = words[at + 1] if at + 1 < len(words) else Word("", static=False)
        found.append(Redirect(access, target, command.source))
    return tuple(found)


def _operands(command: Command, program: Program) -> tuple[Redirect, ...]:
    access = program.operands
    if access is None:
        return ()
    skip = program.skip
    if any(is_option(word.text, program.skip_unless) for word in command.words[1:]):
        skip = 0
    targets: list[Word] = []
    options_ended = False
    for word in command.words[1:]:
        if word.plain and word.text == "--" and not options_ended:
            options_ended = True
        elif word.static and word.text.startswith("-") and not options_ended:
            targets += path_in_option(word)
        elif skip:
            skip -= 1
        else:
            targets.append(word)
            targets += path_in_option(word)
    return tuple(
        Redirect(access, target, command.source)
        for target in targets
        if target.text != "-"
        and not target.pipe
        and (not program.known_only or (target.static and not target.glob))
    )


def path_in_option(word: Word) -> list[Word]:
    """A path that is part of a word: `--file=/x`, `-t/x`, `of=~/x`."""
    name, equals, value = word.text.partition("=")
    if equals and not name.startswith(("/", "~", ".")):
        return [Word(value, static=word.static, glob=word.glob, tilde=value.startswith("~"))]
    if not re.match(r"-[^-].", word.text):
        return []
    # `-tfolder`: which letters are options and which the value is not known.
    found = [Word(word.text[2:], static=word.static, glob=word.glob)]
    slash = word.text.find("/")
    return [*found, Word(word.text[slash:], static=word.static)] if slash > 1 else found
