"""Questions that one file answers: settings, code, scripts, pages."""

import json
import re

from evals.checks import avoids, says
from evals.draw import Draw
from evals.family import Group
from evals.layouts import (
    FORMATS,
    mixed,
    other_settings,
    settings,
    settings_path,
    shown_key,
    surroundings,
    word,
)
from evals.shapes import look
from evals.task import Task

group = Group("one-step")


@group
def setting_number(draw: Draw) -> Task:
    form, key, value = draw.pick(*FORMATS), draw.key(), draw.number(11, 980)
    path = settings_path(draw, form, draw.service())
    values = mixed(draw, {key: value, **other_settings(draw)})
    prompt = draw.request(
        "What is {key} set to in {path}?",
        "whats the value of {key} ({path})",
        "Look up {key} in {path}",
        "In {path}, how much is {key}?",
        key=shown_key(form, key),
        path=path,
    )
    files = surroundings(draw) | {path: settings(form, values)}
    pattern = rf"{re.escape(path)}|{key}"
    return look(files, prompt, f"(?i){pattern}", f"It is {value}.", says(word(value)))


@group
def setting_flag(draw: Draw) -> Task:
    form, flag, on = draw.pick(*FORMATS), draw.flag(), draw.pick(True, False)
    path = settings_path(draw, form, draw.service())
    values = mixed(draw, {draw.key(): draw.number(2, 99), flag: on, draw.key(): 7})
    prompt = draw.request(
        "Is {flag} on or off in {path}?",
        "is {flag} enabled? it's in {path}",
        "Check {path}: is {flag} switched on?",
        flag=shown_key(form, flag),
        path=path,
    )
    files = surroundings(draw) | {path: settings(form, values)}
    good = r"\bon\b|\byes\b|enabled|\btrue\b" if on else r"\boff\b|\bno\b|disabled|false|not "
    reply = "Yes, it is on." if on else "No, it is off."
    bad = r"\boff\b|disabled|\bfalse\b" if on else r"\bis (on|enabled)\b|\btrue\b|\byes\b"
    pattern = f"(?i){re.escape(path)}|{flag}"
    return look(files, prompt, pattern, reply, says(good), avoids(bad))


@group
def nested_json(draw: Draw) -> Task:
    service, host, port = draw.service(), draw.host(), draw.port()
    path = draw.pick("", "deploy/", "infra/") + f"{draw.topic()}.json"
    tree = {
        draw.service(): {"host": draw.host(), "port": draw.port()},
        service: {"host": host, "port": port},
        draw.service(): {"host": draw.host(), "port": draw.port()},
    }
    host_wanted = draw.pick(True, False)
    member, value = ("host", host) if host_wanted else ("port", port)
    prompt = draw.request(
        "Which {member} does the {service} use according to {path}?",
        "{path}: what {member} is {service} on",
        "what's the {member} of {service}? see {path}",
        member=member,
        service=service,
        path=path,
    )
    files = surroundings(draw) | {path: json.dumps(tree, indent=draw.pick(2, 4)) + "\n"}
    return look(files, prompt, f"{re.escape(path)}|{service}", f"{value}", says(word(value)))


@group
def install_command(draw: Draw) -> Task:
    tool = draw.animal()
    command = draw.pick(f"pipx install {tool}", f"brew install {tool}", f"npm i -g {tool}")
    files = surroundings(draw) | {
        "README.md": (
            f"# {tool}\n\n{draw.sentence()}\n\n## Install\n\n    {command}\n\n"
            f"## Start\n\n    {tool} --port {draw.port()}\n"
        )
    }
    prompt = draw.request(
        "How do I install this? It should be in the README.",
        "what does the readme say about installing",
        "Read README.md and give me the install command.",
    )
    return look(files, prompt, "(?i)readme|install", f"Run {command}", says(re.escape(command)))


@group
def changelog_entry(draw: Draw) -> Task:
    thing, version, other = draw.thing(), draw.version(), f"1{draw.version()}"
    path = draw.pick("CHANGELOG.md", "docs/changes.md", "HISTORY.md")
    files = surroundings(draw) | {
        path: (
            f"# Changes\n\n## {other}\n\n- Faster start\n- New {draw.colour()} theme\n\n"
            f"## {version}\n\n- Fixed the crash on an empty {thing}\n- {draw.sentence()}\n"
        )
    }
    prompt = draw.request(
        "In which version was the crash on an empty {thing} fixed? See {path}",
        "{path}: which release fixed the empty {thing} crash",
        "Since when is the crash with an empty {thing} gone? The changelog is {path}.",
        thing=thing,
        path=path,
    )
    pattern = f"{re.escape(path)}|{thing}|crash"
    return look(files, prompt, pattern, f"In {version}.", says(word(version)))


@group
def package_script(draw: Draw) -> Task:
    name, target = draw.pick("build", "serve", "watch", "release"), draw.topic()
    command = draw.pick(f"webpack --env {target}", f"vite {target}", f"node tools/{target}.js")
    scripts = {"lint": "eslint src", name: command, "format": "prettier -w ."}
    package = {"name": draw.product(), "version": draw.version(), "scripts": scripts}
    files = surroundings(draw) | {"package.json": json.dumps(package, indent=2) + "\n"}
    prompt = draw.request(
        "What does npm run {name} do here?",
        "which command is behind the {name} script in package.json",
        "Look in package.json: what is the {name} script?",
        name=name,
    )
    return look(files, prompt, f"package|{name}", f"It runs {command}.", says(re.escape(command)))


@group
def dependency_version(draw: Draw) -> Task:
    name, version = draw.animal(), draw.version()
    path, line = draw.pick(
        ("requirements.txt", f"{name}=={version}"),
        ("Gemfile.lock", f"    {name} ({version})"),
        ("deps/pins.txt", f"{name} @ {version}"),
    )
    rows = [line, *(line.replace(name, draw.animal()).replace(version, "0.1") for _ in range(3))]
    draw.random.shuffle(rows)
    files = surroundings(draw) | {path: "\n".join(rows) + "\n"}
    prompt = draw.request(
        "Which version of {name} do we pin in {path}?",
        "{name} version in {path}?",
        "What version of the {name} package is listed in {path}?",
        name=name,
        path=path,
    )
    pattern = f"{re.escape(path)}|{name}"
    return look(files, prompt, pattern, f"{name} {version}", says(re.escape(version)))


@group
def python_constant(draw: Draw) -> Task:
    name, value = draw.key().upper(), draw.number(3, 4000)
    path = draw.pick("", "src/", f"{draw.topic()}/") + f"{draw.thing()}_rules.py"
    text = (
        f"{draw.key().upper()} = {draw.number(3, 4000)}\n{name} = {value}\n\n\n"
        f"def allowed(count):\n    return count < {name}\n"
    )
    prompt = draw.request(
        "What value does {name} have in {path}?",
        "how big is {name} ({path})",
        "Open {path} and tell me {name}",
        name=name,
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|{name}"
    return look(files, prompt, pattern, f"{name} is {value}.", says(word(value)))


@group
def default_argument(draw: Draw) -> Task:
    verb, thing, value = draw.verb(), draw.thing(), draw.number(2, 90)
    path = f"{draw.topic()}/{thing}.py"
    text = (
        f"def read_{thing}(path, encoding='utf-8'):\n    return open(path).read()\n\n\n"
        f"def {verb}_{thing}(items, width={value}, strict=False):\n    return items[:width]\n"
    )
    prompt = draw.request(
        "What is the default width of {name} in {path}?",
        "{path}: default for the width parameter of {name}?",
        "If I call {name} without width, what's used? It's in {path}.",
        name=f"{verb}_{thing}",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|{verb}_{thing}"
    return look(files, prompt, pattern, f"The default is {value}.", says(word(value)))


@group
def js_constant(draw: Draw) -> Task:
    thing, value = draw.thing(), draw.number(100, 9000)
    path = draw.pick("src/", "lib/", "web/js/") + f"{thing}Service.js"
    name = f"{thing.upper()}_TIMEOUT"
    text = (
        f"const {name} = {value};\nconst LIMIT = {draw.number(2, 90)};\n\n"
        f"function load() {{\n  return fetch('/{thing}', {{ timeout: {name} }});\n}}\n\n"
        "module.exports = { load };\n"
    )
    prompt = draw.request(
        "What's {name} in {path}?",
        "Which timeout does {path} use?",
        "how many ms is {name} in {path}",
        name=name,
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|TIMEOUT"
    return look(files, prompt, pattern, f"{value} ms", says(word(value)))


@group
def script_target(draw: Draw) -> Task:
    folder = f"/srv/{draw.topic()}/{draw.animal()}"
    path = draw.pick("bin/", "scripts/", "") + f"{draw.verb()}-{draw.thing()}s.sh"
    text = (
        f'#!/bin/bash\nset -eu\nTARGET="{folder}"\nSTAMP=$(date +%F)\n'
        'tar czf "$TARGET/$STAMP.tgz" data\n'
    )
    prompt = draw.request(
        "Where does {path} put its archives?",
        "which directory does {path} write to",
        "what is TARGET in {path}?",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|TARGET"
    return look(files, prompt, pattern, f"Into {folder}.", says(re.escape(folder)))


@group
def css_value(draw: Draw) -> Task:
    element, colour = draw.pick("footer", "nav", "aside", "blockquote"), draw.colour()
    path = draw.pick("css/", "styles/", "static/") + f"{draw.topic()}.css"
    text = (
        f"body {{\n  color: {draw.colour()};\n}}\n\n{element} {{\n  background: {colour};\n"
        f"  padding: {draw.number(1, 9)}px;\n}}\n\nh2 {{\n  color: {draw.colour()};\n}}\n"
    )
    prompt = draw.request(
        "What background colour has the {element} in {path}?",
        "{element} background in {path}?",
        "Which color is used behind the {element}? look at {path}",
        element=element,
        path=path,
    )
    files = surroundings(draw) | {path: text}
    return look(files, prompt, f"{re.escape(path)}|{element}", colour, says(word(colour)))


@group
def page_contact(draw: Draw) -> Task:
    mail = f"{draw.animal()}@{draw.topic()}.example"
    path = draw.pick("contact.html", "pages/about.html", "public/imprint.html")
    text = (
        f"<html>\n<body>\n<h1>{draw.city()} office</h1>\n<p>{draw.sentence()}</p>\n"
        f'<a href="mailto:{mail}">Write to us</a>\n</body>\n</html>\n'
    )
    prompt = draw.request(
        "Which mail address is on {path}?",
        "what's the contact email in {path}",
        "Find out our email address from {path}, please.",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    return look(files, prompt, f"{re.escape(path)}|mail", mail, says(re.escape(mail)))
