"""Commands that try to stay, to hang or to flood, and what is true of each."""

import msgspec

DAEMON = (
    'python3 -c "\nimport os, signal, time\n{prepare}\nif os.fork(): os._exit(0)\nos.setsid()\n'
    'if os.fork(): os._exit(0)\ntime.sleep({{n}})\n"'
)
FORKS = 'python3 -c "\nimport os, signal, time\n{prepare}\ntime.sleep({{n}})\n"'
STUBBORN = "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 15)]"


class Case(msgspec.Struct, frozen=True):
    """`{n}` in the command is a number that no other process of the machine carries."""

    command: str
    code: int | None = 0
    signal: int | None = None
    out: str | None = ""
    """The whole output; None for whatever it is."""
    left: int | None = 0
    """Processes in the background; None for a number that depends on the moment."""
    stops: str = ""
    """`idle` or `wall`: the limit that has to end it."""


def left(command: str, number: int | None = 1, out: str | None = "", code: int = 0) -> Case:
    return Case(command, code, None, out, number)


def stops(command: str, signal: int | None = 15, limit: str = "idle", out: str = "") -> Case:
    # A shell that outlives the first signal may say that its child did not.
    return Case(command, None, signal, out if signal == 15 else None, 0, limit)


def ends(command: str, out: str | None = "", code: int | None = 0) -> Case:
    return Case(command, code, None, out)


def killed(command: str, signal: int, out: str | None = "") -> Case:
    return Case(command, None, signal, out)


STAYING = (
    left("sleep {n} &"),
    left("sleep {n} & sleep {n} &", 2),
    left("nohup sleep {n} >/dev/null 2>&1 &"),
    left("nohup setsid sleep {n} >/dev/null 2>&1 &"),
    left("setsid sleep {n} &"),
    left("setsid -f sleep {n}"),
    left("setsid -f setsid -f sleep {n}"),
    left("(sleep {n} &)"),
    left("( (sleep {n} &) & )", None),
    left("(setsid sleep {n} &); echo out", 1, "out"),
    left("sleep {n} & disown"),
    left("sleep {n} & disown -a; exit 3", 1, "", 3),
    left("bash -c 'sleep {n} & exit 0'"),
    left("sh -c '(setsid sleep {n} &)'"),
    left("env -i sleep {n} &"),
    left("env -i setsid sleep {n} &"),
    left("exec sleep {n} &"),
    left("trap '' TERM; sleep {n} &"),
    left("trap '' TERM HUP INT; (setsid sleep {n} &)"),
    left("(trap '' TERM; while :; do sleep 0.1; done; : {n}) &", None),
    left("coproc sleep {n}"),
    left("sleep {n} | cat &", 2),
    left("yes {n} > /dev/null &"),
    left("yes {n} &", 1, None),
    left("yes {n} >&2 &", 1, None),
    left("while :; do echo {n}; done &", 1, None),
    left("nice -n 5 sleep {n} &"),
    left("timeout 1000 sleep {n} &", None),
    left("sleep {n} <&- >&- 2>&- &"),
    left("exec >&- 2>&-; sleep {n} &"),
    left("sleep {n} & kill -STOP $!"),
    left("(kill -STOP $BASHPID; sleep {n}) &"),
    left("set -m; sleep {n} &"),
    left("set -m; (set -m; sleep {n} &) &", None),
    left("(true & exec sleep {n}) &", None),
    left("cd / && setsid sleep {n} &", None),
    left(DAEMON.format(prepare=""), None),
    left(DAEMON.format(prepare=STUBBORN), None),
    left(DAEMON.format(prepare="os.closerange(0, 256)"), None),
    left(DAEMON.format(prepare="os.setpgid(0, 0)"), None),
    left(FORKS.format(prepare="[os._exit(0) for _ in range(9) if os.fork()]"), None),
    left("for i in $(seq 20); do sleep {n} & done", 20),
    left("for i in $(seq 10); do setsid sleep {n} & done", 10),
    left("for i in 1 2 3; do (for j in 1 2 3; do sleep {n} & done) & done; wait", 9),
    left("f() { if [ $1 -gt 0 ]; then (f $(($1-1))) & else sleep {n}; fi; }; f 30", None),
    left("(while :; do setsid sleep {n} & sleep 0.02; done) &", None),
    left("(trap 'setsid sleep {n} &' TERM EXIT; while :; do sleep 0.1; done) &", None),
    left("sleep {n} & echo hi", 1, "hi"),
    left("sleep {n} & echo hi >&2; exit 7", 1, "hi", 7),
    left("(sleep {n}; echo late) & echo now", None, "now"),
    left("sleep {n} > >(cat) &", None),
)

HANGING = (
    stops("sleep {n}"),
    stops("echo before; sleep {n}", out="before"),
    stops("sleep {n} & wait"),
    stops("sleep {n}; echo never"),
    stops("trap '' TERM; sleep {n}", 9),
    stops("trap '' TERM HUP INT QUIT; while :; do sleep 0.05; done; : {n}", 9),
    stops("trap 'setsid sleep {n} &' TERM; sleep {n} & wait; wait; sleep {n}", None),
    stops("trap 'while :; do :; done' TERM; while :; do sleep 0.05; done; : {n}", 9),
    stops("trap 'sleep {n}' EXIT; exit 0", None),
    stops("while :; do :; done; : {n}"),
    stops("cat /dev/zero > /dev/null; : {n}"),
    stops("tail -f /dev/null; : {n}"),
    stops("setsid -w sleep {n}"),
    stops("bash -c \"trap '' TERM INT HUP; sleep {n}\"", None),
    stops("sleep {n} | cat | cat | cat", None),
    stops("{ sleep {n} & } 2>&1 | cat", None),
    stops("mkfifo f && cat f; : {n}"),
    stops("mkfifo g && echo {n} > g"),
    stops("read x < <(sleep {n})"),
    stops("x=$(sleep {n})"),
    stops("x=$(sleep {n} & echo a)", None),
    stops("kill -STOP $$; sleep {n}"),
    stops("kill -STOP $PPID; sleep {n}"),
    stops("set -m; sleep {n} & fg", None),
    stops(
        "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & wait; else sleep {n}; fi; }; f 4"
    ),
    stops(FORKS.format(prepare=STUBBORN), None),
    stops(FORKS.format(prepare="[os.fork() == 0 and os._exit(0) for _ in range(50)]"), None),
    stops(FORKS.format(prepare=f"{STUBBORN}\n[os.fork() or os.setsid() for _ in range(4)]"), None),
    stops("yes {n}", None, "wall"),
    stops("yes {n} >&2", None, "wall"),
    stops("cat /dev/zero; : {n}", None, "wall"),
    stops("cat /dev/urandom; : {n}", None, "wall"),
    stops("yes {n} | tee /dev/stderr", None, "wall"),
    stops("while :; do echo {n}; sleep 0.05; done", None, "wall"),
)

READING = (
    ends("cat"),
    ends("cat -"),
    ends('read x; echo "[$x] $?"', "[] 1"),
    ends("read -p 'Password: ' x", "", 1),
    ends("read -s -t 100 x", "", 1),
    ends("read x < /dev/tty", None, 1),
    ends("sort"),
    ends("wc -c", "0"),
    ends("bash"),
    ends("sh -s"),
    ends("head -1"),
    ends("tee /dev/null"),
    ends("xargs -r echo"),
    ends("dd status=none"),
    ends("python3 -"),
    ends("python3 -c 'input()'", None, 1),
    ends("python3 -c 'import getpass; getpass.getpass()'", None, 1),
    ends("while read line; do echo $line; done"),
    ends("select x in a b; do echo $x; done", None, 1),
    ends("mapfile x; echo ${#x[@]}", "0"),
    ends("cat <&0 | cat"),
    ends("stty", None, 1),
)

FLOODING = (
    ends("yes | head -c 3000000", None),
    ends("head -c 3000000 /dev/zero", None),
    ends("head -c 3000000 /dev/urandom", None),
    ends("head -c 3000000 /dev/urandom >&2", None),
    ends("seq 1 500000", None),
    ends("seq 1 300000 & seq 1 300000 >&2; wait", None),
    ends("head -c 2000000 /dev/zero | tr '\\0' x", None),
    ends("for i in $(seq 2000); do printf '\\033[31m\\033[0m'; done"),
    ends("for i in $(seq 3000); do echo; done"),
    ends("printf '\\377\\376\\200'", "\ufffd\ufffd\ufffd"),
)

PIPING = (
    ends(f"seq 1000 {'| cat ' * 30}| tail -1", "1000"),
    ends("yes | head -1", "y"),
    ends("yes | sed 5q | wc -l", "5"),
    ends("false | true"),
    ends("set -o pipefail; yes | head -1 > /dev/null", "", 141),
    ends("echo a | tee >(cat > /dev/null) | cat", "a"),
    ends("cat <(echo a) <(echo b)", "a\nb"),
    ends("echo x > >(cat)", "x"),
    ends("yes | true"),
    ends("for i in $(seq 50); do echo $i | cat; done | tail -1", "50"),
)

ENDING = (
    ends("exit 255", "", 255),
    ends("exec true"),
    ends("exec sleep 0.01"),
    ends("exec /nonexistent", None, 127),
    ends("no_such_command_here", None, 127),
    ends("exec 1>&-; echo x", None, 1),
    ends("exec >&- 2>&-; exit 4", "", 4),
    ends("set -e; false; echo no", "", 1),
    ends("sleep 0.01 & wait; echo ok", "ok"),
    ends("sleep {n} & kill -9 $!"),
    ends("sleep {n} & kill $!; wait $!", None, 143),
    ends("for i in $(seq 100); do true & done; exec sleep 0.1"),
    ends('python3 -c "import os; [os._exit(0) for _ in range(50) if os.fork() == 0]"'),
    ends('python3 -c "import os; os.kill(os.getpid(), 9)"', None, 137),
    ends("cat <<END\na\nEND", "a"),
    ends("cat <<END\na", None),
    ends("echo a \\", "a"),
    ends("echo a # }; exit 9", "a"),
    ends("suspend", None, 1),
    ends("fg", None, 1),
    ends("ulimit -u 1; sleep 0 & wait", None, None),
    ends("ulimit -f 0; echo x > file", None, None),
    ends("kill $PPID; echo on", "on"),
    ends("kill -INT $PPID; kill -HUP $PPID; kill -QUIT $PPID; echo on", "on"),
    killed("kill -9 $$", 9),
    killed("printf x; kill -9 $$", 9, "x"),
    killed("kill $$; sleep {n}", 15),
    killed("kill -- -$$; sleep {n}", 15),
    killed("kill -9 0", 9),
    killed("sleep {n} & kill -9 0", 9),
    killed("ulimit -c 0; kill -SEGV $$", 11),
    killed("exec python3 -c 'import os; os.kill(os.getpid(), 15)'", 15),
)

UNWATCHED = (
    "kill -9 $PPID; sleep {n}",
    "sleep {n} & kill -9 $PPID; sleep {n}",
    "setsid sleep {n} & kill -9 $PPID; sleep {n}",
    "trap '' TERM; (setsid sleep {n} &); sleep 0.05; kill -9 $PPID; sleep {n}",
)

CANCELLED = (
    "echo said; echo > ready; sleep {n}",
    "echo said; trap '' TERM; echo > ready; sleep {n}",
    "echo said; setsid sleep {n} & nohup sleep {n} & echo > ready; wait",
    "echo said; for i in 1 2 3; do (trap '' TERM; setsid sleep {n}) & done; echo > ready; wait",
    "echo said; env -i setsid -f sleep {n}; echo > ready; sleep {n}",
    "echo said; trap 'setsid sleep {n} &' TERM; echo > ready; while :; do sleep 0.05; done",
    "echo said; sleep {n} | cat | cat & echo > ready; wait",
    "echo said; kill -STOP $PPID; echo > ready; sleep {n}",
)
