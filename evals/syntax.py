"""Files that a run left in a state that can no longer be parsed."""

import ast
import configparser
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePosixPath

from evals.task import Outcome, snapshot


def unparsable(outcome: Outcome) -> list[str]:
    """Files that were made or changed and do not parse, unless they did not parse before."""
    after = snapshot(outcome.folder)
    return sorted(
        path
        for path in outcome.changed
        if path in after
        and not parses(path, after[path])
        and (path not in outcome.before or parses(path, outcome.before[path]))
    )


@lru_cache(maxsize=4096)
def parses(path: str, content: bytes) -> bool:
    """Whether the content can be read as what the file's name promises."""
    parser = _PARSERS.get(PurePosixPath(path).suffix)
    if parser is None:
        return True
    try:
        parser(content.decode("utf-8"))
    except (ValueError, SyntaxError, configparser.Error):
        return False
    return True


def _yaml(text: str) -> None:
    """Refuses what no YAML reader takes, without being one."""
    block = -1
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if not bare or bare.startswith("#") or (block >= 0 and indent > block):
            continue
        block = -1
        if "\t" in line[:indent]:
            raise ValueError(f"line {number}: tab in the indentation")
        value = re.sub(r"\s#.*$", "", bare)
        if re.search(r"[|>][+-]?\d?$", value):
            block = indent
        elif not re.match(r"(- |-$|---|\.\.\.$|[\]}\"'\[{])", value) and not re.search(
            r":(\s|$)", value
        ):
            raise ValueError(f"line {number}: neither a key nor an item")
        elif re.match(r"[\w.-]+:\s+[\w.-]+:(\s|$)", value):
            raise ValueError(f"line {number}: two keys")
        for quote in "\"'":
            if re.match(rf"(- )?[\w.-]+:\s+{quote}[^{quote}]*$", value):
                raise ValueError(f"line {number}: quote not closed")


def _ini(text: str) -> None:
    configparser.ConfigParser(interpolation=None, allow_no_value=True).read_string(text)


def _checked_by(*commands: tuple[str, ...]) -> Callable[[str], None]:
    """Passes what one of the commands accepts, and everything where they are missing."""

    def accepts(command: tuple[str, ...], text: str) -> bool:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=30, check=False
        )
        return done.returncode == 0

    def check(text: str) -> None:
        known = [command for command in commands if shutil.which(command[0])]
        if known and not any(accepts(command, text) for command in known):
            raise ValueError(f"{known[0][0]} cannot parse it")

    return check


_PARSERS: dict[str, Callable[[str], object]] = {
    ".py": ast.parse,
    ".json": json.loads,
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".ini": _ini,
    ".cfg": _ini,
    ".js": _checked_by(("node", "--check", "-"), ("node", "--check", "--input-type=module", "-")),
    ".sh": _checked_by(("bash", "-n")),
}
