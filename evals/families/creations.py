"""Requests to write one new file."""

import json
import re

from evals.checks import equals, holds, runs
from evals.draw import Draw
from evals.family import Group
from evals.layouts import settings, surroundings, word
from evals.shapes import make
from evals.task import Task
from evals.words import PRODUCTS

group = Group("one-step")


@group
def new_text(draw: Draw) -> Task:
    path, line = f"{draw.animal()}.txt", draw.chore()
    prompt = draw.request(
        "Create {path} with the text: {line}",
        "make a file called {path} that contains the line {line}",
        "put '{line}' into a new file {path}",
        "write {path}: {line}",
        path=path,
        line=line,
    )
    return make(surroundings(draw), prompt, {path: f"{line}\n"}, holds(path, re.escape(line)))


@group
def new_json(draw: Draw) -> Task:
    path, key, value = f"{draw.service()}.json", draw.key(), draw.number(2, 900)
    flag = draw.flag()
    content = {key: value, flag: True}
    prompt = draw.request(
        "Create {path} with {key} set to {value} and {flag} set to true.",
        "new file {path}, json, {key} = {value}, {flag} = true",
        "I need a JSON file {path} holding {key}: {value} and {flag}: true",
        path=path,
        key=key,
        value=value,
        flag=flag,
    )
    code = f"import json; d = json.load(open('{path}')); print(d['{key}'] == {value}, d['{flag}'])"
    new = {path: json.dumps(content) + "\n"}
    return make(surroundings(draw), prompt, new, runs("python3", "-c", code, prints="True True"))


@group
def new_python_function(draw: Draw) -> Task:
    name, factor = f"{draw.verb()}_{draw.thing()}", draw.number(3, 19)
    path = f"{draw.animal()}.py"
    prompt = draw.request(
        "Create {path} with a function {name}(x) that returns x times {factor}.",
        "write a python file {path}; it has a function {name}(x) which multiplies x by {factor}",
        "add {path} containing {name}(x): return x * {factor}",
        path=path,
        name=name,
        factor=factor,
    )
    module = path.removesuffix(".py")
    code = f"from {module} import {name}; print({name}(7))"
    new = {path: f"def {name}(x):\n    return x * {factor}\n"}
    check = runs("python3", "-c", code, prints=str(7 * factor))
    return make(surroundings(draw), prompt, new, check)


@group
def new_js_function(draw: Draw) -> Task:
    name = f"{draw.verb()}{draw.thing().title()}"
    path = f"{draw.animal()}.js"
    prompt = draw.request(
        "Create {path} with a function {name}(a, b) that returns a minus b, exported with "
        "module.exports.",
        "write {path} (CommonJS): export a function {name}(a, b) returning a - b",
        "new node module {path} exporting {name}(a, b), it subtracts b from a",
        path=path,
        name=name,
    )
    text = f"function {name}(a, b) {{\n  return a - b;\n}}\n\nmodule.exports = {{ {name} }};\n"
    code = (
        f"const m = require('./{path}'); const f = typeof m === 'function' ? m : m.{name};"
        "console.log(f(90, 31))"
    )
    checks = (holds(path, name, r"a\s*-\s*b", "exports"), runs("node", "-e", code, prints="59"))
    return make(surroundings(draw), prompt, {path: text}, *checks)


@group
def new_shell_script(draw: Draw) -> Task:
    path, city = f"{draw.verb()}.sh", draw.city()
    prompt = draw.request(
        "Write a shell script {path} that prints Greetings from {city}",
        "create {path}, a bash script which echoes: Greetings from {city}",
        "make me a little script {path} that says Greetings from {city}",
        path=path,
        city=city,
    )
    new = {path: f"#!/bin/sh\necho 'Greetings from {city}'\n"}
    return make(
        surroundings(draw), prompt, new, runs("bash", path, prints=f"Greetings from {city}")
    )


@group
def new_page(draw: Draw) -> Task:
    path, title = f"{draw.thing()}.html", f"{draw.city()} {draw.product().title()}"
    prompt = draw.request(
        "Create {path}, an HTML page with the title {title}",
        "new html page {path}, title should be {title}",
        "Please make {path} with {title} as page title",
        path=path,
        title=title,
    )
    new = {path: f"<!doctype html>\n<html><head><title>{title}</title></head></html>\n"}
    return make(
        surroundings(draw), prompt, new, holds(path, rf"<title>\s*{re.escape(title)}\s*</title>")
    )


@group
def new_table(draw: Draw) -> Task:
    path, (first, second) = f"{draw.topic()}.csv", draw.some(PRODUCTS, 2)
    one, two = draw.number(2, 99), draw.number(2, 99)
    prompt = draw.request(
        "Create {path} with the header item,amount and the rows {first},{one} and {second},{two}",
        "write a csv {path}: columns item,amount. rows: {first},{one} / {second},{two}",
        "i need {path} (item,amount) with {first},{one} and {second},{two} in it",
        path=path,
        first=first,
        one=one,
        second=second,
        two=two,
    )
    text = f"item,amount\n{first},{one}\n{second},{two}\n"
    rows = (r"^item,\s*amount", rf"^{first},\s*{one}\s*$", rf"^{second},\s*{two}\s*$")
    return make(surroundings(draw), prompt, {path: text}, holds(path, *rows))


@group
def new_checklist(draw: Draw) -> Task:
    path, first, second = f"{draw.topic()}.md", draw.chore(), draw.chore()
    prompt = draw.request(
        "Write {path} with a bullet list of two points: {first}; {second}",
        "create a markdown list in {path}. items: {first}, {second}",
        "make {path}, a todo list in markdown with '{first}' and '{second}'",
        path=path,
        first=first,
        second=second,
    )
    text = f"- {first}\n- {second}\n"
    rows = [rf"(?i)^\s*([-*]|\d+\.)\s.*{re.escape(chore)}" for chore in (first, second)]
    return make(surroundings(draw), prompt, {path: text}, holds(path, *rows))


@group
def new_env(draw: Draw) -> Task:
    key, other = draw.key().upper(), draw.topic().upper()
    value, host = draw.number(2, 900), draw.host()
    path = draw.pick(".env.local", ".env.test", f"{draw.service()}.env")
    prompt = draw.request(
        "Create {path} containing {key}={value} and {other}_HOST={host}",
        "add a file {path} with two lines: {key}={value} and {other}_HOST={host}",
        "write {key}={value} and {other}_HOST={host} to {path}",
        path=path,
        key=key,
        value=value,
        other=other,
        host=host,
    )
    new = {path: f"{key}={value}\n{other}_HOST={host}\n"}
    rows = (rf"^{key}={value}\s*$", rf"^{other}_HOST={host}\s*$")
    return make(surroundings(draw), prompt, new, holds(path, *rows))


@group
def new_rule(draw: Draw) -> Task:
    path, name, colour = f"{draw.topic()}.css", draw.animal(), draw.colour()
    prompt = draw.request(
        "Create {path} with a class {name} whose text color is {colour}",
        "new stylesheet {path}: .{name} should have color {colour}",
        "make a css file {path}, one rule: .{name} has the color {colour}",
        path=path,
        name=name,
        colour=colour,
    )
    new = {path: f".{name} {{\n  color: {colour};\n}}\n"}
    pattern = rf"\.{name}\s*\{{[^}}]*(?<!-)color:\s*{colour}"
    return make(surroundings(draw), prompt, new, holds(path, pattern))


@group
def new_settings(draw: Draw) -> Task:
    form = draw.pick("yaml", "toml")
    key, value, text_value = draw.key(), draw.number(2, 900), draw.city().lower()
    path = f"{draw.service()}.{form}"
    prompt = draw.request(
        "Create {path} with {key} {value} and {region} {text_value}.",
        "write a {form} file {path}; keys: {key} ({value}) and {region} ({text_value})",
        "i want {path} with two settings, {key} is {value}, {region} is {text_value}",
        path=path,
        form=form,
        key=key,
        value=value,
        text_value=text_value,
        region="region",
    )
    new = {path: settings(form, {key: value, "region": text_value})}
    mark = "=" if form == "toml" else ":"
    rows = (
        rf"^\s*\"?{key}\"?\s*{mark}\s*\"?{value}\"?\s*$",
        rf"^\s*\"?region\"?\s*{mark}.*{word(text_value)}",
    )
    return make(surroundings(draw), prompt, new, holds(path, *rows))


@group
def new_exact_text(draw: Draw) -> Task:
    path, lines = f"{draw.topic()}/{draw.thing()}.txt", draw.some(PRODUCTS, 3)
    prompt = draw.request(
        "Write the three words {a}, {b} and {c} into {path}, one per line, nothing else.",
        "create {path} with exactly three lines: {a} / {b} / {c}",
        "save {a}, {b}, {c} to {path}, each on its own line and nothing more",
        path=path,
        a=lines[0],
        b=lines[1],
        c=lines[2],
    )
    text = "\n".join(lines) + "\n"
    return make(surroundings(draw), prompt, {path: text}, equals(path, text))
