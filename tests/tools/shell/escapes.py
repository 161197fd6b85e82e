"""Ways in which a command tries to outlive its end, made from combinations of real moves."""

import itertools
import shlex

_DAEMON = """import os, sys
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
os.execvp("bash", ["bash", "-c", sys.argv[1]])"""
_FORKS_ON = """import os, time
while True:
    if os.fork(): os._exit(0)
    os.setsid()
    time.sleep(0.005)"""
_TRACED = """import ctypes, os, sys, time
if os.fork() == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.execvp("sleep", ["sleep", sys.argv[1]])
time.sleep(1000)"""
_RENAMED = """import ctypes, time
ctypes.CDLL(None).prctl(15, b"systemd", 0, 0, 0)
time.sleep(1000)"""

HIDE = {
    "plain": "{body} &",
    "setsid": "setsid -f {body}",
    "no environment": "env -i $(command -v setsid) -f {body}",
    "double fork": "( ( {body} & ) & )",
    "daemon": f"python3 -c {shlex.quote(_DAEMON)} {{quoted}}",
    "nohup": "nohup {body} >/dev/null 2>&1 &",
    "other group": "set -m; {body} & set +m",
    "other descriptors": "{body} 7>&1 8>&2 >/dev/null 2>&1 </dev/null &",
    "pid namespace": "unshare -Urpf {body} 2>/dev/null & unshare -pf {body} 2>/dev/null &",
    "daemon in namespaces": (
        "( ( setsid -f unshare -Urpf {body} 2>/dev/null & ) & )\n"
        "( ( setsid -f unshare -mpf {body} 2>/dev/null & ) & )"
    ),
    "chroot": "chroot / {body} & unshare -Ur chroot / {body} 2>/dev/null &",
    "other name": "exec -a '[kworker/0:9]' {body} &",
}
BODY = {
    "sleeps": "sleep {n}",
    "ignores signals": "bash -c 'trap \"\" TERM HUP INT QUIT USR1; sleep {n}; sleep {n}'",
    "stops itself": "bash -c 'kill -STOP $$; sleep {n}'",
    "forks on": f"python3 -c {shlex.quote(_FORKS_ON)} {{n}}",
    "is traced": f"python3 -c {shlex.quote(_TRACED)} {{n}}",
    "renames itself": f"python3 -c {shlex.quote(_RENAMED)} {{n}}",
}
_SERVER = "$(ps -o ppid= -p $PPID)"
ATTACK = {
    "none": ":",
    "stops the watchdog": "kill -STOP $PPID",
    "kills the watchdog": "kill -KILL $PPID",
    "keeps stopping the watchdog": "(while :; do kill -STOP $PPID; sleep 0.01 {n}; done) &",
    "stops the fork server": f"kill -STOP {_SERVER}",
    "kills the fork server": f"kill -KILL {_SERVER}",
    "stops all of ours": f"kill -STOP $PPID {_SERVER}",
    "kills both of ours": f"kill -KILL {_SERVER} $PPID",
}
_KILLS_ALL = '[ "$(readlink /proc/self/ns/pid)" != "{pids}" ] && kill -KILL -1'
"""Only where this is another namespace than that of the tests."""
_ATTACKS_EACH = 3


def escapes() -> dict[str, str]:
    """Commands by what they do; `{n}` is a number that marks their processes."""
    found: dict[str, str] = {}
    attacks = itertools.cycle(ATTACK.items())
    for (hide, way), (body, what) in itertools.product(HIDE.items(), BODY.items()):
        for attack, first in itertools.islice(attacks, _ATTACKS_EACH):
            found[f"{hide}, {body}, {attack}"] = _command(way, what, first)
    return found


def killing_all() -> dict[str, str]:
    """Commands that kill every process they can; for a process namespace of their own."""
    return {
        f"{hide}, {body}, kills all": _command(way, what, _KILLS_ALL)
        for (hide, way), (body, what) in zip(HIDE.items(), itertools.cycle(BODY.items()))
    }


def _command(way: str, body: str, attack: str) -> str:
    line = way.replace("{body}", body).replace("{quoted}", shlex.quote(body))
    # What hides must be under way before the watchdog is attacked.
    return f"{line}\nsleep 0.3\n{attack}\ntrue"
