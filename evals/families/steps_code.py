"""Bugs to fix and functions to add, judged by running the programs."""

import msgspec

from evals.checks import equals, holds, only, runs
from evals.draw import Draw
from evals.family import Group
from evals.layouts import surroundings
from evals.shapes import EDIT, make
from evals.task import Check, Task

group = Group("multi-step")


def _code(
    draw: Draw, texts: dict[str, str], prompt: str, changes: dict[str, str], *checks: Check
) -> Task:
    task = make(surroundings(draw) | texts, prompt, changes, *checks, only(*changes))
    return msgspec.structs.replace(task, tools=(*EDIT, "search_file_content", "list_directory"))


@group
def failing_test_fixed(draw: Draw) -> Task:
    module, name = f"{draw.thing()}s", f"{draw.verb()}_values"
    number = draw.number(4, 40)
    wrong, right, expression = draw.pick(
        (f"return max(values) - {number}", f"return max(values) + {number}", 9 + number),
        ("return sum(values[1:])", "return sum(values)", 17),
        (f"return len(values) * {number + 1}", f"return len(values) * {number}", 3 * number),
        ("return values[1]", "return values[0]", 5),
    )
    code, test = f"{module}.py", f"test_{module}.py"
    texts = {
        code: f"def {name}(values):\n    {wrong}\n",
        test: (
            f"import unittest\n\nfrom {module} import {name}\n\n\nclass Test(unittest.TestCase):\n"
            f"    def test_{name}(self):\n"
            f"        self.assertEqual({name}([5, 3, 9]), {expression})\n"
            "\n\nif __name__ == '__main__':\n    unittest.main()\n"
        ),
    }
    prompt = draw.request(
        "{test} fails. Fix {code} so that it passes.",
        "the test in {test} is red, please repair {code} (not the test)",
        "python3 {test} fails, find out why and fix the bug in {code}",
        test=test,
        code=code,
    )
    changes = {code: texts[code].replace(wrong, right)}
    return _code(draw, texts, prompt, changes, runs("python3", test), equals(test, texts[test]))


@group
def javascript_bug_fixed(draw: Draw) -> Task:
    name, thing = f"{draw.verb()}Total", draw.thing()
    wrong, right = draw.pick(
        ("sum -= item.count", "sum += item.count"),
        ("sum = item.count", "sum += item.count"),
        ("sum += item.size", "sum += item.count"),
    )
    code, check = f"{thing}.js", f"{thing}.check.js"
    texts = {
        code: (
            f"function {name}(items) {{\n  let sum = 0;\n  for (const item of items) {{\n"
            f"    {wrong};\n  }}\n  return sum;\n}}\n\nmodule.exports = {{ {name} }};\n"
        ),
        check: (
            f"const assert = require('assert');\nconst {{ {name} }} = require('./{code}');\n\n"
            f"assert.strictEqual({name}([{{ count: 4, size: 9 }}, {{ count: 7, size: 2 }}]), 11);\n"
            "console.log('fine');\n"
        ),
    }
    prompt = draw.request(
        "node {check} fails: {name} in {code} does not add up the counts. Fix it.",
        "{name} in {code} should return the sum of all counts but doesn't ({check} fails)",
        code=code,
        check=check,
        name=name,
    )
    changes = {code: texts[code].replace(wrong, right)}
    checks = (
        holds(code, r"sum (\+=|= sum \+) item\.count|reduce"),
        runs("node", check, prints="fine"),
        equals(check, texts[check]),
    )
    return _code(draw, texts, prompt, changes, *checks)


@group
def empty_case_guarded(draw: Draw) -> Task:
    name, code = f"{draw.verb()}_average", f"{draw.thing()}.py"
    texts = {code: f"def {name}(numbers):\n    return sum(numbers) / len(numbers)\n"}
    prompt = draw.request(
        "{name} in {code} divides by zero for an empty list. It should return 0 in that case.",
        "make {name}([]) return 0 instead of crashing, file {code}",
        "{code}: {name} must return 0 when the list is empty",
        name=name,
        code=code,
    )
    module = code.removesuffix(".py")
    checks = (
        runs(
            "python3",
            "-c",
            f"from {module} import {name}; print('got', {name}([]))",
            prints="got 0",
        ),
        runs("python3", "-c", f"from {module} import {name}; print({name}([2, 9]))", prints="5.5"),
    )
    changes = {
        code: (
            f"def {name}(numbers):\n    if not numbers:\n        return 0\n"
            "    return sum(numbers) / len(numbers)\n"
        )
    }
    return _code(draw, texts, prompt, changes, *checks)


@group
def function_added_and_used(draw: Draw) -> Task:
    module, name, number = draw.thing(), f"{draw.verb()}_price", draw.number(3, 60)
    main = draw.pick("main.py", "report.py", "show.py")
    texts = {
        f"{module}.py": "def load():\n    return 1000\n",
        main: f"from {module} import load\n\nprint(load())\n",
    }
    prompt = draw.request(
        "Add a function {name}(value) to {module}.py that returns value minus {number}, and make "
        "{main} print {name}(load()) instead of load().",
        "in {module}.py add {name}(value) returning value - {number}; then {main} should print "
        "{name}(load())",
        name=name,
        module=module,
        main=main,
        number=number,
    )
    changes = {
        f"{module}.py": (
            f"def load():\n    return 1000\n\n\ndef {name}(value):\n    return value - {number}\n"
        ),
        main: f"from {module} import {name}, load\n\nprint({name}(load()))\n",
    }
    checks = (
        holds(f"{module}.py", rf"def {name}\("),
        runs("python3", main, prints=f"{1000 - number}"),
    )
    return _code(draw, texts, prompt, changes, *checks)


@group
def script_function_fixed(draw: Draw) -> Task:
    code, name, city = f"{draw.verb()}.sh", draw.animal(), draw.city()
    texts = {code: f'#!/bin/bash\n{name}() {{\n  echo "from $2"\n}}\n\n{name} {city}\n'}
    prompt = draw.request(
        "{code} should print 'from {city}' but {name} uses the wrong argument. Fix it.",
        "running {code} prints only 'from', it should say from {city}: {name} reads the wrong "
        "argument",
        code=code,
        name=name,
        city=city,
    )
    changes = {code: texts[code].replace("$2", "$1")}
    return _code(
        draw, texts, prompt, changes, runs("bash", code, prints=f"from {city}"), holds(code, r"\$")
    )


@group
def option_added(draw: Draw) -> Task:
    code, name, default = f"{draw.thing()}.py", f"{draw.verb()}_text", draw.pick("*", "#", "+")
    texts = {
        code: f"def {name}(text):\n    return text.upper()\n\n\nprint({name}('abc'))\n",
    }
    prompt = draw.request(
        "Give {name} in {code} a second parameter mark with default '{default}' that is put in "
        "front of the result.",
        "{code}: {name}(text, mark='{default}') should return mark followed by the upper case text",
        code=code,
        name=name,
        default=default,
    )
    module = code.removesuffix(".py")
    changes = {
        code: (
            f"def {name}(text, mark='{default}'):\n    return mark + text.upper()\n\n\n"
            f"print({name}('abc'))\n"
        )
    }
    checks = (
        runs("python3", code, prints=f"{default}ABC"),
        runs("python3", "-c", f"from {module} import {name}; print({name}('x', '%'))", prints="%X"),
    )
    return _code(draw, texts, prompt, changes, *checks)
