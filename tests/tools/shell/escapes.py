"""Ways in which a command tries to outlive its end, made from combinations of real moves."""

import itertools

HIDE = {
    "plain": "{body} &",
    "setsid": "setsid -f {body}",
    "no environment": "env -i $(command -v setsid) -f {body}",
    "double fork": "( ( {body} & ) & )",
    "daemon": (
        "python3 -c 'import os,sys\n"
        "if os.fork(): sys.exit()\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        'os.chdir("/")\n'
        'os.execvp("bash",["bash","-c",sys.argv[1]])\' {quoted}'
    ),
    "nohup": "nohup {body} >/dev/null 2>&1 &",
    "other group": "set -m; {body} & set +m",
    "pid namespace": "unshare -Urpf {body} 2>/dev/null & unshare -pf {body} 2>/dev/null &",
    "other name": "exec -a '[kworker/0:9]' {body} &",
}
BODY = {
    "sleeps": "sleep {n}",
    "ignores signals": "bash -c 'trap \"\" TERM HUP INT QUIT USR1; sleep {n}; sleep {n}'",
    "stops itself": "bash -c 'kill -STOP $$; sleep {n}'",
    "forks on": "bash -c 'while :; do sleep 0.01 {n}; done'",
}
ATTACK = {
    "none": ":",
    "stops the watchdog": "kill -STOP $PPID",
    "kills the watchdog": "kill -KILL $PPID",
    "keeps stopping the watchdog": (
        "(for i in $(seq 300) {n}; do kill -STOP $PPID; sleep 0.01; done) &"
    ),
    "stops all of ours": "kill -STOP $PPID $(ps -o ppid= -p $PPID)",
}


def escapes() -> dict[str, str]:
    """Commands by what they do; `{n}` is a number that marks their processes."""
    found: dict[str, str] = {}
    for (hide, way), (body, what), (attack, first) in itertools.product(
        HIDE.items(), BODY.items(), ATTACK.items()
    ):
        inner = what.replace("\\", "")
        quoted = "'" + inner.replace("'", "'\\''") + "'"
        line = way.replace("{body}", inner).replace("{quoted}", quoted)
        # What hides must be under way before the watchdog is attacked.
        found[f"{hide}, {body}, {attack}"] = f"{line}\nsleep 0.1\n{first}\ntrue"
    return found
