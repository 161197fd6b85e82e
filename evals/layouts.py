"""Surroundings of a task: projects in several languages, and settings in several formats."""

import json
import re
from collections.abc import Mapping

from evals.draw import Draw

FORMATS = ("json", "yaml", "toml", "ini", "env")
Value = str | int | bool


def surroundings(draw: Draw) -> dict[str, str]:
    """A small project in which a task's own files are placed."""
    make = draw.pick(_python, _node, _site, _scripts, _notes)
    topic = draw.topic()
    files = {"README.md": f"# {topic.title()}\n\n{draw.sentence()}\n", **make(draw, topic)}
    if draw.random.random() < 0.5:
        files[".gitignore"] = draw.pick("*.pyc\n", "node_modules/\n", "build/\n.cache/\n")
    if draw.random.random() < 0.4:
        files["LICENSE"] = f"Apache License 2.0\n\nCopyright {draw.full_name()}\n"
    return files


def _python(draw: Draw, topic: str) -> dict[str, str]:
    thing, verb = draw.thing(), draw.verb()
    folder = draw.pick(f"{topic}/", f"src/{topic}/", "lib/", "")
    return {
        f"{folder}{thing}_store.py": (
            f'"""Keeps every {thing}."""\n\n\ndef load_{thing}s(path):\n'
            f"    with open(path) as file:\n        return file.read().splitlines()\n\n\n"
            f"def {verb}_{thing}s(items):\n    return sorted(set(items))\n"
        ),
        f"{folder}{thing}_view.py": (
            f"def show_{thing}(item):\n    print('{thing}:', item)\n\n\n"
            f"def title_of(item):\n    return item.strip().title()\n"
        ),
        "requirements.txt": "requests==2.31.0\nclick==8.1.7\n",
    }


def _node(draw: Draw, topic: str) -> dict[str, str]:
    thing = draw.thing()
    package = {"name": topic, "private": True, "scripts": {"lint": "eslint ."}}
    return {
        f"{topic}.package.json": json.dumps(package, indent=2) + "\n",
        f"src/{thing}Card.js": (
            f"function {thing}Card(item) {{\n  return '<b>' + item.name + '</b>';\n}}\n\n"
            f"module.exports = {{ {thing}Card }};\n"
        ),
        "src/dates.js": "exports.today = () => new Date().toISOString().slice(0, 10);\n",
    }


def _site(draw: Draw, topic: str) -> dict[str, str]:
    thing = draw.thing()
    return {
        f"pages/{thing}s.html": (
            f"<html>\n<body>\n<h1>Our {thing}s</h1>\n<p>{draw.sentence()}</p>\n</body>\n</html>\n"
        ),
        "styles/base.css": "body {\n  margin: 0;\n  font-family: sans-serif;\n}\n",
        f"content/{topic}.md": f"## {topic.title()}\n\n{draw.sentence()}\n",
    }


def _scripts(draw: Draw, topic: str) -> dict[str, str]:
    thing = draw.thing()
    return {
        f"bin/{topic}.sh": f"#!/bin/sh\nset -e\necho '{topic} ready'\n",
        f"etc/{thing}.conf": f"# {thing} service\nlisten on all\n",
        f"data/{thing}s.csv": f"id,{thing}\n1,first\n2,second\n",
    }


def _notes(draw: Draw, topic: str) -> dict[str, str]:
    return {
        f"{topic}/minutes.md": f"# Minutes\n\n- {draw.chore()}\n- {draw.chore()}\n",
        f"{topic}/glossary.md": f"# Glossary\n\n{draw.sentence()}\n",
        "people.txt": f"{draw.full_name()}\n{draw.full_name()}\n",
    }


def settings_path(draw: Draw, form: str, name: str) -> str:
    """A usual place for a settings file of this format."""
    if form == "env":
        return draw.pick(".env", f"{name}.env", f"config/{name}.env")
    return draw.pick("", "config/", "conf/", "settings/") + f"{name}.{form}"


def settings(form: str, values: Mapping[str, Value]) -> str:
    """The values written in the format."""
    if form == "json":
        return json.dumps(values, indent=2) + "\n"
    lines = [setting(form, key, value) for key, value in values.items()]
    head = ["[main]"] if form == "ini" else []
    return "\n".join([*head, *lines]) + "\n"


def setting(form: str, key: str, value: Value) -> str:
    """The line that sets one value."""
    quoted = json.dumps(value)
    match form:
        case "json":
            return f'"{key}": {quoted}'
        case "toml":
            return f"{key} = {quoted}"
        case "yaml":
            return f"{key}: {quoted if isinstance(value, bool) else value}"
        case "ini":
            return f"{key} = {str(value).lower() if isinstance(value, bool) else value}"
        case _:
            return f"{key.upper()}={str(value).lower() if isinstance(value, bool) else value}"


def shown_key(form: str, key: str) -> str:
    """The key as the format spells it."""
    return key.upper() if form == "env" else key


def other_settings(draw: Draw, count: int = 3) -> dict[str, Value]:
    """Settings beside the one a task is about."""
    values: dict[str, Value] = {draw.key(): draw.number(2, 900) for _ in range(count)}
    values[draw.flag()] = draw.pick(True, False)
    return values


def mixed(draw: Draw, values: dict[str, Value]) -> dict[str, Value]:
    """The settings in another order."""
    items = list(values.items())
    draw.random.shuffle(items)
    return dict(items)


def word(value: object) -> str:
    """A pattern for the value as a word of its own."""
    return rf"(?<![\w.]){re.escape(str(value))}(?![\w])"
