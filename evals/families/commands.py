"""Requests that one command answers: run a program, count, delete, rename, copy."""

import re
import shutil

import msgspec

from evals.checks import answers, avoids, equals, gone, ran, says, there, unchanged
from evals.draw import Draw
from evals.family import Group
from evals.layouts import surroundings, word
from evals.shapes import READ, RUN, make, shell
from evals.task import Solution, Task

group = Group("one-step")


_RUNNERS = {"py": "python3", "sh": "bash", "js": "node"}


def _program(path: str, *, answer: object, draw: Draw, files: dict[str, str]) -> Task:
    """A program to run whose output is the answer."""
    prompt = draw.request(
        "Run {path} and tell me what it prints.",
        "execute {path}, whats the output?",
        "What does {path} print when you run it?",
        "pls run {path} for me and give me the result",
        path=path,
    )
    return Task(
        files=surroundings(draw) | files,
        prompt=prompt,
        tools=RUN,
        arguments=re.escape(path.rpartition("/")[2]),
        done=(ran(re.escape(path.rpartition("/")[2])), says(word(answer)), unchanged),
        solution=Solution(
            reply=f"It prints {answer}.",
            calls=(shell(f"{_RUNNERS[path.rpartition('.')[2]]} {path}"),),
        ),
    )


@group
def run_python(draw: Draw) -> Task:
    numbers = [draw.number(100, 900) for _ in range(5)]
    path = draw.pick("", "tools/", "jobs/") + f"{draw.animal()}.py"
    code = f"numbers = {numbers}\nprint(sum(n * n for n in numbers) % 9973)\n"
    answer = sum(n * n for n in numbers) % 9973
    return _program(path, answer=answer, draw=draw, files={path: code})


@group
def run_script(draw: Draw) -> Task:
    first, second = draw.number(1000, 9000), draw.number(1000, 9000)
    path = draw.pick("", "bin/", "scripts/") + f"{draw.verb()}_{draw.thing()}.sh"
    code = f"#!/bin/bash\na={first}\nb={second}\necho $((a * 3 + b))\n"
    return _program(path, answer=first * 3 + second, draw=draw, files={path: code})


@group
def run_javascript(draw: Draw) -> Task:
    if shutil.which("node") is None:
        return run_script(draw)
    numbers = [draw.number(100, 900) for _ in range(4)]
    path = draw.pick("", "scripts/", "src/") + f"{draw.animal()}.js"
    code = f"const list = {numbers};\nconsole.log(list.reduce((a, b) => a + 2 * b, 0));\n"
    return _program(path, answer=2 * sum(numbers), draw=draw, files={path: code})


@group
def run_with_argument(draw: Draw) -> Task:
    path, factor, given = f"{draw.verb()}.py", draw.number(13, 97), draw.number(13, 97)
    code = f"import sys\n\nprint(int(sys.argv[1]) * {factor})\n"
    prompt = draw.request(
        "Run {path} with the argument {given}. What comes out?",
        "what does python3 {path} {given} print",
        "call {path} with {given} and tell me the number",
        path=path,
        given=given,
    )
    task = _program(path, answer=given * factor, draw=draw, files={path: code})
    solution = Solution(
        reply=f"It prints {given * factor}.", calls=(shell(f"python3 {path} {given}"),)
    )
    return msgspec.structs.replace(task, prompt=prompt, solution=solution)


@group
def tests_verdict(draw: Draw) -> Task:
    passes, thing = draw.pick(True, False), draw.thing()
    expected = 6 if passes else 7
    files = surroundings(draw) | {
        f"{thing}s.py": "def total(items):\n    return sum(items)\n",
        f"test_{thing}s.py": (
            f"import unittest\n\nfrom {thing}s import total\n\n\n"
            "class TotalTest(unittest.TestCase):\n    def test_total(self):\n"
            f"        self.assertEqual(total([1, 2, 3]), {expected})\n"
        ),
    }
    prompt = draw.request(
        "Run the tests. Do they pass?",
        "do the unit tests pass ({command})",
        "please run {command} and tell me if everything is ok",
        command="python3 -m unittest",
    )
    if passes:
        good, bad = r"\bpass|\bok\b|succe|\byes\b", r"not pass|n't pass|tests? fail|\bno,"
    else:
        good, bad = r"fail|not pass|n't pass|\bno\b|error", r"all .{0,12}pass|tests pass|\byes\b"
    reply = "Yes, the tests pass." if passes else "No, test_total fails: 6 is not 7."
    return Task(
        files=files,
        prompt=prompt,
        tools=RUN,
        arguments="test",
        done=(ran("unittest|pytest|test"), says(good), avoids(bad), unchanged),
        question=True,
        solution=Solution(reply=reply, calls=(shell("python3 -m unittest"),)),
    )


@group
def lines_counted(draw: Draw) -> Task:
    count = draw.number(14, 60)
    path = draw.pick("", "data/", "logs/") + f"{draw.thing()}.{draw.pick('txt', 'log', 'csv')}"
    text = "".join(
        f"{draw.random.randint(100, 999)} {draw.pick('a', 'b', 'c')}\n" for _ in range(count)
    )
    prompt = draw.request(
        "How many lines does {path} have?",
        "line count of {path}?",
        "wc -l {path}",
        "count the lines in {path} please",
        path=path,
    )
    return Task(
        files=surroundings(draw) | {path: text},
        prompt=prompt,
        tools=(*RUN, *READ),
        arguments=re.escape(path),
        done=(says(word(count)), unchanged),
        question=True,
        solution=Solution(reply=f"It has {count} lines."),
    )


@group
def exit_code(draw: Draw) -> Task:
    path, code = f"{draw.animal()}.sh", draw.number(3, 99)
    prompt = draw.request(
        "With which exit code does {path} end? Run it.",
        "run sh {path} and tell me the exit status",
        "what's the return code of {path} when run?",
        path=path,
    )
    text = f"#!/bin/sh\necho working\n[ -d /nonexistent ] || exit {code}\n"
    return Task(
        files=surroundings(draw) | {path: text},
        prompt=prompt,
        tools=RUN,
        arguments=re.escape(path),
        done=(ran(re.escape(path)), says(word(code)), unchanged),
        solution=Solution(reply=f"Exit code {code}.", calls=(shell(f"sh {path}"),)),
    )


@group
def delete_file(draw: Draw) -> Task:
    path = draw.pick("", "drafts/", "tmp/") + f"{draw.product()}.{draw.pick('txt', 'bak', 'md')}"
    kept = f"{path.rpartition('.')[0]}.keep"
    prompt = draw.request(
        "Delete {path}",
        "please remove {path}, it's not needed any more",
        "rm {path}",
        "get rid of the file {path}",
        path=path,
    )
    files = surroundings(draw) | {path: f"{draw.sentence()}\n", kept: "x\n"}
    task = make(files, prompt, {path: None}, gone(path), there(kept))
    return msgspec.structs.replace(task, tools=RUN)


@group
def rename_file(draw: Draw) -> Task:
    ending = draw.pick("txt", "md", "csv", "py")
    folder = draw.pick("", "notes/", "data/")
    old, new = f"{folder}{draw.animal()}.{ending}", f"{folder}{draw.animal()}.{ending}"
    text = f"# {draw.sentence()}\n"
    prompt = draw.request(
        "Rename {old} to {new}",
        "please call {old} {new} from now on",
        "mv {old} {new}",
        "the file {old} should be named {new}",
        old=old,
        new=new,
    )
    files = surroundings(draw) | {old: text}
    task = make(files, prompt, {old: None, new: text}, gone(old), equals(new, text))
    return msgspec.structs.replace(task, tools=RUN)


@group
def copy_file(draw: Draw) -> Task:
    name = f"{draw.thing()}.{draw.pick('ini', 'txt', 'md')}"
    new = f"{draw.topic()}/{name}" if draw.pick(True, False) else f"{draw.animal()}-{name}"
    text = f"[{draw.verb()}]\nwidth = {draw.number(2, 99)}\n"
    prompt = draw.request(
        "Copy {name} to {new}",
        "make a copy of {name} at {new}",
        "i need {name} a second time, as {new}",
        name=name,
        new=new,
    )
    files = surroundings(draw) | {name: text}
    task = make(files, prompt, {new: text}, equals(new, text), equals(name, text))
    return msgspec.structs.replace(task, tools=(*RUN, "read_file"))


@group
def make_folders(draw: Draw) -> Task:
    path = f"{draw.topic()}/{draw.animal()}"
    prompt = draw.request(
        "Create the folder {path}",
        "mkdir {path} please",
        "I need a new directory {path}.",
        path=path,
    )
    task = make(surroundings(draw), prompt, {f"{path}/": ""}, there(path))
    return msgspec.structs.replace(task, tools=RUN)


@group
def last_commit(draw: Draw) -> Task:
    prompt = draw.request(
        "What was the last commit message?",
        "show the git log",
        "what's the subject of the latest commit?",
    )
    return Task(
        files=surroundings(draw),
        prompt=prompt,
        tools=RUN,
        arguments="git (log|show)",
        done=(ran("git (log|show)"), says("Begin"), answers, unchanged),
        question=True,
        solution=Solution(reply='It was "Begin".', calls=(shell("git log -1"),)),
    )
