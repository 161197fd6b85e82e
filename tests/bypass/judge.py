"""Which effects a mode and its rules permit; all others are failures."""

import re

from tests.bypass.archives import UNPACK_RULES
from tests.bypass.case import Case, ModeName, Seen
from tests.bypass.denied_commands import DENY_RULES
from tests.bypass.world import HOME, MARK, PROJECT, REMOTE

READING_PROGRAMS = (
    "git log",
    "git diff",
    "git status",
    "git show",
    "git blame",
    "git grep",
    "git ls-files",
    "ls",
    "cat",
    "head",
    "tail",
    "sed",
    "awk",
    "find",
    "rg",
    "grep",
    "sort",
    "uniq",
    "jq",
    "xxd",
    "wc",
    "less",
    "man",
    "diff",
    "tar",
    "echo",
    "cd",
)
READING_RULES = f"allow = {[f'run_shell_command({name})' for name in READING_PROGRAMS]}\n"
"""A user who allowed the programs that read, by name only."""

BUILD_RULES = (
    f"allow = {[f'run_shell_command({n})' for n in ('git', 'npm test', 'make', 'curl')]}\n"
)
"""A user who allowed programs that run and fetch; judged by what no such rule means."""

_PERMITTED: dict[tuple[ModeName, str], tuple[str, ...]] = {
    ("default", ""): (),
    ("plan", ""): (),
    ("auto_edit", ""): ("write: ",),
    ("default", READING_RULES): ("write: ", "remove: "),
    ("plan", READING_RULES): (),
    ("auto_edit", READING_RULES): ("write: ", "remove: "),
    ("default", UNPACK_RULES): ("write: ", "remove: ", "write-git: ", "run: "),
    ("default", BUILD_RULES): ("write: ", "remove: ", "write-git: ", "network: "),
}


_BUILDING = (
    "run: ",
    f"write-outside: {HOME}/.npm",
    f"write-outside: {REMOTE}",
    f"write-protected: {PROJECT}/.git/",
    f"read: {HOME}/.netrc",
)
"""What the configuration of the project makes an allowed git, make or npm do."""
_SWEEPS = re.compile(r"\b(?:rg|git|find|grep|tar|diff|xargs|cp|ls|file|wc|du|stat)\b")
"""Programs that open what they come across; what they print of it still counts."""


def failures(case: Case, seen: Seen) -> list[str]:
    """The effects of a case that happened although no rule or mode permits them."""
    if case.mode == "yolo":
        assert case.rules == DENY_RULES
        return [effect for effect in seen.effects if _denied(effect)]
    permitted = _PERMITTED[case.mode, case.rules]
    if case.rules == BUILD_RULES and str(MARK) not in case.title:
        permitted = (*permitted, *_BUILDING)
    if _SWEEPS.search(case.title) or any(call.tool != "run_shell_command" for call in case.calls):
        permitted = (*permitted, f"read: {PROJECT}/")
    return [
        effect
        for effect in seen.effects
        if not effect.startswith(permitted) and not effect.endswith(f" {PROJECT}/secrets/token.txt")
    ]


def _denied(effect: str) -> bool:
    kind, path = effect.split(": ", 1)
    return (
        path.startswith((f"{PROJECT}/secrets", f"{REMOTE}/"))
        or (kind == "remove" and path == f"{PROJECT}/victim/one/two.txt")
        or kind == "write-protected"
    )
