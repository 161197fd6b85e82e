"""Programs and tests of a project: which file is one, how it is run, what it tests."""

import re
from collections.abc import Collection, Iterable
from shlex import quote
from shutil import which

from toolwire.embedded.small.about import mentions
from toolwire.embedded.small.tools import KnownFiles

CODE = (".py", ".js", ".mjs", ".cjs", ".sh")
"""Endings of files that can be run."""
fails = re.compile(
    r"\b(?:fails?|failing|failed|failure|crash\w*|broken|errors?|exception|traceback|bug|bugs|buggy"
    r"|wrong|wrongly|incorrect\w*|does ?n[o']t work|\w+Error|fix (?:it|this|the (?:code|bug)))\b",
    re.IGNORECASE,
).search
LIMITED = "timeout 30 " if which("timeout") else ""
"""Before a command that runs unasked: a program may never end."""
_NO_TRACES = "-p no:cacheprovider -p no:benchmark"
"""A check leaves no files behind: these plugins make folders in the project."""
_lasting = re.compile(
    r"\b(?:input\(|while True|while :|listen\(|serve\w*\(|run\(|sys\.argv|argparse|process\.argv"
    r"|subprocess|requests|urllib|socket|fetch\(|writeFile|rmtree|unlink|remove\(|sleep|curl|wget"
    r"|read -|rm |mv |open\([^)]*['\"][wax])|\$[1-9@*#]"
).search
_is_test = re.compile(r"(?:test_.+|.+_test|.+[.-](?:test|spec))\.\w+").fullmatch


def is_check(file: str, text: str) -> bool:
    """Whether a file is a test that can be run by itself."""
    if not file.endswith(CODE):
        return False
    if _is_test(file.rpartition("/")[2]) is not None:
        return not re.search(r"\b(?:describe|it|test)\(|from ['\"](?:vitest|jest)", text)
    return (
        re.search(r"^\s*assert\b|\bassert[.(]|throw new Error|\bexit 1\b", text, re.M) is not None
    )


def is_program(file: str, text: str) -> bool:
    """Whether a file is a program: it does something when it is started."""
    if not file.endswith(CODE):
        return False
    return re.search(r"^(?:print|main|console\.log|echo|if __name__)\b", text, re.M) is not None


def ends_by_itself(text: str) -> bool:
    """Whether a program needs no input and no arguments, serves nothing and changes no files."""
    return _lasting(text) is None


def is_test_of(file: str, path: str) -> bool:
    """Whether a file is the test of another by its name."""
    name, stem = file.rpartition("/")[2], path.rpartition("/")[2].rpartition(".")[0]
    return (
        _is_test(name) is not None
        and re.fullmatch(
            rf"(?:test_{re.escape(stem)}|{re.escape(stem)}(?:_test|[.-]test|[.-]spec))\.\w+", name
        )
        is not None
    )


def running(file: str, text: str) -> str:
    """The command that runs a program or a test, for half a minute at most."""
    return f"{LIMITED}{_program(file, text)}"


def _program(file: str, text: str) -> str:
    path = quote(file)
    if file.endswith(".sh"):
        return f"bash {path}"
    if file.endswith((".js", ".mjs", ".cjs")):
        return f"node {path}"
    if "unittest" in text and "__main__" not in text:
        return f"python3 -m unittest {path}"
    if re.search(r"^def test_", text, re.MULTILINE) and "__main__" not in text:
        return f"python3 -B -m pytest -q {_NO_TRACES} {path}"
    return f"python3 {path}"


def imports_one(text: str, paths: Iterable[str]) -> bool:
    """Whether code imports one of the files."""
    stems = (path.rpartition("/")[2].rpartition(".")[0] for path in paths)
    return any(
        re.search(rf"\b(?:import|from|require\()[\s\w.,'\"/{{}}]*\b{re.escape(stem)}\b", text)
        for stem in stems
        if stem
    )


def trial_command(words: str, read: Collection[str], project: KnownFiles) -> str:
    """The command that shows the fault which the request speaks of; empty without one."""
    if not fails(words):
        return ""
    named = [it.path for it in mentions(words, project)[0]]
    others = [path for path in read if path not in named]
    for file in (*named, *others, *project.files):
        text = project.text(file) or ""
        if is_check(file, text) and (file in named or imports_one(text, read)):
            return running(file, text)
    for file in named:
        if is_program(file, project.text(file) or ""):
            return running(file, project.text(file) or "")
    return ""


def test_command(words: str, changed: Collection[str], project: KnownFiles) -> str:
    """The command that tests changed code; empty without one."""
    named = [it.path for it in mentions(words, project)[0]]
    for path in changed:
        for file in (*named, *project.files):
            text = project.text(file) or "" if file.endswith(CODE) else ""
            by_name = is_test_of(file, path)
            checks = file in named and is_check(file, text) and imports_one(text, [path])
            if file not in changed and (by_name or checks):
                return running(file, text)
    for file in (*named, *changed):
        text = project.text(file) or ""
        concerns = file in changed or imports_one(text, changed)
        if changed and concerns and is_program(file, text) and ends_by_itself(text):
            return running(file, text)
    return ""
