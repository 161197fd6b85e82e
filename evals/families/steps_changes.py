"""Changes that belong in two or more files."""

import json

from evals.checks import runs
from evals.draw import Draw
from evals.family import Group
from evals.layouts import mixed, other_settings, settings, settings_path, shown_key, surroundings
from evals.shapes import edits
from evals.task import Task

group = Group("multi-step")


@group
def version_in_two_files(draw: Draw) -> Task:
    old, new, name = f"0.{draw.version()}"[:5], f"1.{draw.version()}"[:5], draw.animal()
    manifest, text = draw.pick(
        ("package.json", json.dumps({"name": name, "version": old}, indent=2) + "\n"),
        ("pyproject.toml", f'[project]\nname = "{name}"\nversion = "{old}"\n'),
    )
    other, second = draw.pick(
        (f"{name}/__init__.py", f'"""{name}."""\n\n__version__ = "{old}"\n'),
        ("docs/install.md", f"# Install\n\nThe current release is {old}.\n"),
        ("VERSION", f"{old}\n"),
    )
    files = surroundings(draw) | {manifest: text, other: second}
    prompt = draw.request(
        "Change the version to {new} in {manifest} and {other}",
        "we're releasing {new}: update both {manifest} and {other} (now {old})",
        "bump the version from {old} to {new}, it's in {manifest} and in {other}",
        old=old,
        new=new,
        manifest=manifest,
        other=other,
    )
    changes = {manifest: text.replace(old, new), other: second.replace(old, new)}
    return edits(files, prompt, changes)


@group
def rename_python_function(draw: Draw) -> Task:
    thing, old, new = (
        draw.thing(),
        f"{draw.verb()}_{draw.product()}",
        f"{draw.verb()}_{draw.animal()}",
    )
    number = draw.number(3, 90)
    module, main = f"{thing}.py", draw.pick("main.py", "app.py", "run.py")
    texts = {
        module: f"def {old}(value):\n    return value + {number}\n",
        main: f"from {thing} import {old}\n\nprint({old}(1000))\n",
    }
    prompt = draw.request(
        "Rename the function {old} to {new} in {module} and wherever it is used.",
        "{old} should be called {new}. It's defined in {module} and used in {main}",
        "rename {old} -> {new} across the project",
        old=old,
        new=new,
        module=module,
        main=main,
    )
    changes = {path: text.replace(old, new) for path, text in texts.items()}
    check = runs("python3", main, prints=str(1000 + number))
    return edits(surroundings(draw) | texts, prompt, changes, check)


@group
def rename_js_function(draw: Draw) -> Task:
    thing, number = draw.thing(), draw.number(3, 90)
    old, new = f"{draw.verb()}{thing.title()}", f"{draw.verb()}{draw.animal().title()}"
    texts = {
        f"lib/{thing}.js": (
            f"function {old}(n) {{\n  return n + {number};\n}}\n\nmodule.exports = {{ {old} }};\n"
        ),
        "index.js": f"const {{ {old} }} = require('./lib/{thing}');\n\nconsole.log({old}(2000));\n",
    }
    prompt = draw.request(
        "Rename {old} to {new} everywhere (lib/{thing}.js and index.js).",
        "the function {old} in lib/{thing}.js needs the name {new}, fix index.js too",
        "please rename {old} to {new} in all js files",
        old=old,
        new=new,
        thing=thing,
    )
    changes = {path: text.replace(old, new) for path, text in texts.items()}
    check = runs("node", "index.js", prints=str(2000 + number))
    return edits(surroundings(draw) | texts, prompt, changes, check)


@group
def rename_setting(draw: Draw) -> Task:
    old, new, value = draw.key(), draw.key(), draw.number(2, 90)
    path, code = f"{draw.service()}.json", f"{draw.thing()}.py"
    texts = {
        path: json.dumps({old: value, "enabled": True}, indent=2) + "\n",
        code: f"import json\n\nwith open('{path}') as file:\n    print(json.load(file)['{old}'])\n",
    }
    prompt = draw.request(
        "The setting {old} must be called {new}, in {path} and in {code}.",
        "rename the key {old} to {new} in {path}, and {code} reads it so change that too",
        "{old} -> {new} in {path} and {code} please",
        old=old,
        new=new,
        path=path,
        code=code,
    )
    changes = {name: text.replace(old, new) for name, text in texts.items()}
    check = runs("python3", code, prints=str(value))
    return edits(surroundings(draw) | texts, prompt, changes, check)


@group
def setting_and_docs(draw: Draw) -> Task:
    form, key = draw.pick("json", "yaml", "toml", "ini"), draw.key()
    old, new = draw.number(1000, 1900), draw.number(2000, 2900)
    path, page = settings_path(draw, form, draw.service()), draw.pick("README.md", "docs/setup.md")
    text = settings(form, mixed(draw, {key: old, **other_settings(draw, 2)}))
    docs = f"# Setup\n\n{draw.sentence()}\n\nBy default `{key}` is {old}.\n"
    prompt = draw.request(
        "Change {key} from {old} to {new} in {path} and correct {page}",
        "set {key} to {new} in {path}, also update the docs in {page}",
        "{key} is {new} from now on. Adapt {path} and the text in {page}.",
        key=key,
        old=old,
        new=new,
        path=path,
        page=page,
    )
    changes = {path: text.replace(str(old), str(new)), page: docs.replace(str(old), str(new))}
    return edits(surroundings(draw) | {path: text, page: docs}, prompt, changes)


@group
def port_in_two_settings(draw: Draw) -> Task:
    old, new = draw.number(3000, 5000), draw.number(6000, 9000)
    first, second = settings_path(draw, "yaml", draw.service()), f"{draw.service()}.env"
    texts = {
        first: settings("yaml", {draw.key(): 12, "port": old, draw.flag(): True}),
        second: settings("env", {"port": old, "host": draw.host()}),
    }
    prompt = draw.request(
        "The port moves from {old} to {new}; change it in {first} and in {second}.",
        "change port {old} to {new} in both {first} and {second}",
        "new port is {new}. files: {first}, {second}",
        old=old,
        new=new,
        first=first,
        second=second,
    )
    changes = {path: text.replace(str(old), str(new)) for path, text in texts.items()}
    return edits(surroundings(draw) | texts, prompt, changes)


@group
def dependency_and_docs(draw: Draw) -> Task:
    name, version = draw.animal(), draw.version()
    texts = {
        "requirements.txt": "click==8.1.7\n",
        "INSTALL.md": "# Requirements\n\n- click\n",
    }
    prompt = draw.request(
        "Add {name}=={version} at the end of requirements.txt and a point {name} at the end of "
        "the list in INSTALL.md",
        "we now need {name}=={version}: append it to requirements.txt and list {name} in INSTALL.md"
        " below click",
        "put {name}=={version} as last line into requirements.txt, and - {name} as the last line "
        "of INSTALL.md",
        name=name,
        version=version,
    )
    changes = {
        "requirements.txt": f"click==8.1.7\n{name}=={version}\n",
        "INSTALL.md": f"# Requirements\n\n- click\n- {name}\n",
    }
    return edits(surroundings(draw) | texts, prompt, changes)


@group
def footer_on_all_pages(draw: Draw) -> Task:
    old, new = draw.number(2011, 2018), draw.number(2021, 2029)
    firm = f"{draw.city()} {draw.product().title()}s"
    pages = [f"{draw.thing()}.html" for _ in range(draw.pick(2, 3))]
    texts = {
        page: (
            f"<html>\n<body>\n<p>{draw.sentence()}</p>\n<footer>{firm} {old}</footer>\n"
            "</body>\n</html>\n"
        )
        for page in pages
    }
    prompt = draw.request(
        "Change the year in the footer of {pages} from {old} to {new}",
        "the footers of {pages} say {old}, make that {new}",
        "update the footer year to {new} in {pages}",
        pages=" and ".join(pages),
        old=old,
        new=new,
    )
    changes = {page: text.replace(str(old), str(new)) for page, text in texts.items()}
    return edits(surroundings(draw) | texts, prompt, changes)


@group
def path_in_two_scripts(draw: Draw) -> Task:
    old, new = f"/var/{draw.topic()}", f"/srv/{draw.topic()}"
    first, second = f"{draw.verb()}.sh", f"{draw.verb()}.sh"
    texts = {
        first: f'#!/bin/sh\nROOT={old}\nls "$ROOT"\n',
        second: f'#!/bin/sh\nset -e\nROOT={old}\ndu -s "$ROOT"\n',
    }
    prompt = draw.request(
        "In {first} and {second} replace {old} by {new}",
        "both scripts ({first}, {second}) use {old}; switch them to {new}",
        "ROOT should be {new} in {first} and in {second}",
        first=first,
        second=second,
        old=old,
        new=new,
    )
    changes = {path: text.replace(old, new) for path, text in texts.items()}
    return edits(surroundings(draw) | texts, prompt, changes)


@group
def flag_removed_twice(draw: Draw) -> Task:
    flag, path, page = draw.flag(), f"{draw.service()}.env", f"{draw.topic()}.md"
    keep = settings("env", {draw.key(): 4, "host": draw.host()})
    texts = {
        path: keep + f"{shown_key('env', flag)}=true\n",
        page: f"# Flags\n\n- HOST: the server\n- {flag.upper()}: no longer used\n",
    }
    prompt = draw.request(
        "Remove the line with {flag} from {path} and from {page}",
        "{flag} is dead. delete its line in {path} and in {page}",
        "please drop {flag} ({path}, {page})",
        flag=flag.upper(),
        path=path,
        page=page,
    )
    return edits(
        surroundings(draw) | texts, prompt, {path: keep, page: "# Flags\n\n- HOST: the server\n"}
    )


@group
def style_and_page(draw: Draw) -> Task:
    old, new = f"{draw.animal()}-box", f"{draw.animal()}-card"
    sheet, page = f"css/{draw.topic()}.css", f"{draw.thing()}.html"
    texts = {
        sheet: f".{old} {{\n  padding: {draw.number(2, 30)}px;\n}}\n",
        page: f'<html>\n<body>\n<div class="{old}">{draw.sentence()}</div>\n</body>\n</html>\n',
    }
    prompt = draw.request(
        "Rename the CSS class {old} to {new} in {sheet} and {page}",
        "class {old} should be {new}, in {sheet} as well as in {page}",
        "change class {old} to {new} everywhere",
        old=old,
        new=new,
        sheet=sheet,
        page=page,
    )
    changes = {path: text.replace(old, new) for path, text in texts.items()}
    return edits(surroundings(draw) | texts, prompt, changes)
