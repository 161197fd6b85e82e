"""Requests to change one value or line in one file."""

import json

from evals.draw import Draw
from evals.family import Group
from evals.layouts import (
    FORMATS,
    mixed,
    other_settings,
    setting,
    settings,
    settings_path,
    shown_key,
    surroundings,
)
from evals.shapes import edit
from evals.task import Task
from evals.words import CHORES, PRODUCTS

group = Group("one-step")


@group
def set_number(draw: Draw) -> Task:
    form, key = draw.pick(*FORMATS), draw.key()
    old, new = draw.number(1000, 1900), draw.number(2000, 2900)
    path = settings_path(draw, form, draw.service())
    values = mixed(draw, {key: old, **other_settings(draw)})
    prompt = draw.request(
        "Set {key} to {new} in {path}",
        "change {key} in {path} from {old} to {new}",
        "{key} in {path} has to be {new} please",
        "In {path}, make {key} {new} instead of {old}.",
        key=shown_key(form, key),
        path=path,
        old=old,
        new=new,
    )
    files = surroundings(draw) | {path: settings(form, values)}
    return edit(files, prompt, path, str(old), str(new))


@group
def toggle_flag(draw: Draw) -> Task:
    form, flag, on = draw.pick(*FORMATS), draw.flag(), draw.pick(True, False)
    path = settings_path(draw, form, draw.service())
    values = mixed(draw, {draw.key(): draw.number(2, 99), flag: not on, draw.key(): 7})
    prompt = draw.request(
        "Turn {flag} {state} in {path}",
        "switch {flag} {state} ({path})",
        "please set {flag} to {value} in {path}",
        flag=shown_key(form, flag),
        path=path,
        state="on" if on else "off",
        value=str(on).lower(),
    )
    files = surroundings(draw) | {path: settings(form, values)}
    return edit(files, prompt, path, setting(form, flag, not on), setting(form, flag, on))


@group
def set_python_constant(draw: Draw) -> Task:
    name, old, new = draw.key().upper(), draw.number(10, 90), draw.number(100, 900)
    path = draw.pick("", "src/", f"{draw.topic()}/") + f"{draw.thing()}.py"
    text = (
        f'"""Rules."""\n\n{draw.flag().upper()} = True\n{name} = {old}\n\n\n'
        f"def too_many(count):\n    return count > {name}\n"
    )
    prompt = draw.request(
        "Change {name} in {path} to {new}",
        "{path}: {name} should be {new}, not {old}",
        "raise {name} to {new} in {path} pls",
        name=name,
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, f"= {old}", f"= {new}")


@group
def set_js_constant(draw: Draw) -> Task:
    thing, old, new = draw.thing(), draw.number(10, 90), draw.number(100, 900)
    path, name = draw.pick("src/", "web/", "") + f"{thing}s.js", f"max{thing.title()}s"
    text = (
        f"const {name} = {old};\nconst label = '{draw.city()}';\n\n"
        f"module.exports = {{ {name}, label }};\n"
    )
    prompt = draw.request(
        "In {path} set {name} to {new}",
        "{name} in {path} must become {new}",
        "can you change {name} from {old} to {new}? file is {path}",
        name=name,
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, f"= {old}", f"= {new}")


@group
def set_script_variable(draw: Draw) -> Task:
    old, new = f"/data/{draw.topic()}", f"/mnt/{draw.topic()}"
    path = draw.pick("", "bin/", "ops/") + f"{draw.verb()}.sh"
    text = f'#!/bin/sh\nset -e\nSOURCE={old}\nKEEP={draw.number(2, 30)}\nls "$SOURCE"\n'
    prompt = draw.request(
        "In {path} SOURCE should point to {new}",
        "change SOURCE to {new} in {path}",
        "{path} still uses {old}, make it {new}",
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, old, new)


@group
def set_colour(draw: Draw) -> Task:
    old, new, other = draw.colour(), draw.colour(), draw.colour()
    element = draw.pick("header", "button", "table", "h3")
    path = draw.pick("css/", "styles/", "") + f"{draw.topic()}.css"
    text = f"a {{\n  color: {other};\n}}\n\n{element} {{\n  color: {old};\n  margin: 2px;\n}}\n"
    prompt = draw.request(
        "Make the {element} {new} instead of {old} in {path}",
        "in {path} the {element} color must be {new}",
        "change the color of {element} from {old} to {new} ({path})",
        element=element,
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, f"color: {old}", f"color: {new}")


@group
def set_heading(draw: Draw) -> Task:
    old, new = f"{draw.city()} {draw.product()}s", f"{draw.city()} {draw.animal()}s"
    path = draw.pick("", "pages/", "public/") + f"{draw.thing()}.html"
    text = (
        f"<html>\n<head><title>{draw.topic()}</title></head>\n<body>\n<h1>{old}</h1>\n"
        f"<p>{draw.sentence()}</p>\n</body>\n</html>\n"
    )
    prompt = draw.request(
        "Change the heading of {path} to {new}",
        "the h1 in {path} should read {new}",
        "in {path}, replace the heading '{old}' with '{new}'",
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, old, new)


@group
def correct_spelling(draw: Draw) -> Task:
    wrong, right = draw.pick(
        ("recieve", "receive"), ("seperate", "separate"), ("occured", "occurred"),
        ("adress", "address"), ("definately", "definitely"), ("untill", "until"),
    )  # fmt: skip
    path = draw.pick("", "docs/", "content/") + f"{draw.topic()}.md"
    text = (
        f"# {draw.city()}\n\n{draw.sentence()}\nPlease note the {wrong} form.\n{draw.sentence()}\n"
    )
    prompt = draw.request(
        "Fix the typo in {path}: {wrong} should be {right}",
        "{path} says {wrong}, correct it to {right}",
        "there's a spelling mistake in {path} ({wrong} -> {right})",
        path=path,
        wrong=wrong,
        right=right,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, wrong, right)


@group
def set_cell(draw: Draw) -> Task:
    names = draw.some(PRODUCTS, 4)
    amounts = [draw.number(100, 400) for _ in names]
    path, new = draw.pick("", "data/") + f"{draw.thing()}.csv", draw.number(500, 900)
    rows = [f"{name},{amount}" for name, amount in zip(names, amounts, strict=True)]
    text = "item,stock\n" + "\n".join(rows) + "\n"
    prompt = draw.request(
        "Set the stock of {name} to {new} in {path}",
        "in {path} the {name} stock is now {new}",
        "update {path}: we have {new} of {name}",
        name=names[2],
        path=path,
        new=new,
    )
    row = f"{names[2]},{new}"
    return edit(surroundings(draw) | {path: text}, prompt, path, rows[2], row)


@group
def append_item(draw: Draw) -> Task:
    items = draw.some(CHORES, 3)
    path = draw.pick("todo.txt", "notes/todo.md", "TODO")
    mark = draw.pick("- ", "* ", "")
    text = "".join(f"{mark}{item}\n" for item in items[:2])
    prompt = draw.request(
        "Add '{item}' to the end of {path}",
        "append {item} to {path}",
        "please put another line at the bottom of {path}: {item}",
        item=f"{mark}{items[2]}",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    return edit(files, prompt, path, f"{items[1]}\n", f"{items[1]}\n{mark}{items[2]}\n")


@group
def bump_version(draw: Draw) -> Task:
    old, new = f"0.{draw.version()}"[:5], f"1.{draw.version()}"[:5]
    package = {"name": draw.product(), "version": old, "private": True}
    path, text = draw.pick(
        ("package.json", json.dumps(package, indent=2) + "\n"),
        ("pyproject.toml", f'[project]\nname = "{draw.animal()}"\nversion = "{old}"\n'),
        ("setup.cfg", f"[metadata]\nname = {draw.animal()}\nversion = {old}\n"),
    )
    prompt = draw.request(
        "Bump the version in {path} to {new}",
        "set version {new} in {path}",
        "we release {new}, please update {path} (currently {old})",
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, old, new)


@group
def drop_line(draw: Draw) -> Task:
    names = draw.some(PRODUCTS, 4)
    path = draw.pick("requirements.txt", "packages.list", "config/allow.txt")
    text = "".join(f"{name}\n" for name in names)
    prompt = draw.request(
        "Remove {name} from {path}",
        "take {name} out of {path}, leave the rest",
        "delete the line {name} in {path}",
        name=names[1],
        path=path,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, f"{names[1]}\n", "")


@group
def set_message(draw: Draw) -> Task:
    old, new = draw.sentence(), draw.sentence()
    path = draw.pick("", "src/") + f"{draw.thing()}.py"
    text = f'def greet():\n    print("{old}")\n\n\nif __name__ == "__main__":\n    greet()\n'
    prompt = draw.request(
        'Make {path} print "{new}" instead of "{old}"',
        'in {path} replace the text "{old}" by "{new}"',
        'change the message in {path} to "{new}"',
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, old, new)


@group
def set_link(draw: Draw) -> Task:
    old = f"https://{draw.topic()}.example/{draw.animal()}"
    new = f"https://{draw.topic()}.example/{draw.animal()}"
    path = draw.pick("README.md", "docs/links.md", "CONTRIBUTING.md")
    text = f"# Links\n\n- [Guide]({old})\n- [Chat](https://chat.example/{draw.verb()})\n"
    prompt = draw.request(
        "The guide moved to {new}. Update the link in {path}.",
        "{path}: point the Guide link to {new}",
        "replace {old} with {new} in {path}",
        path=path,
        old=old,
        new=new,
    )
    return edit(surroundings(draw) | {path: text}, prompt, path, old, new)
