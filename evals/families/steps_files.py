"""Files created, moved, copied and cleaned up in several steps."""

import json
import re

from evals.checks import becomes, equals, gone, holds, runs, there
from evals.draw import Draw
from evals.family import Group
from evals.layouts import settings, surroundings
from evals.shapes import make
from evals.task import Task
from evals.words import ANIMALS, PRODUCTS

group = Group("multi-step")


@group
def module_and_test(draw: Draw) -> Task:
    name, module, number = draw.verb(), draw.animal(), draw.number(3, 60)
    prompt = draw.request(
        "Create {module}.py with a function {name}_it(n) that returns n plus {number}, and "
        "test_{module}.py that prints {name}_it(100)",
        "two files please: {module}.py ({name}_it(n) returns n + {number}) and test_{module}.py, "
        "which imports it and prints {name}_it(100)",
        "write {module}.py with {name}_it(n): n + {number}. then test_{module}.py printing the "
        "result of {name}_it(100)",
        module=module,
        name=name,
        number=number,
    )
    new: dict[str, str | None] = {
        f"{module}.py": f"def {name}_it(n):\n    return n + {number}\n",
        f"test_{module}.py": f"from {module} import {name}_it\n\nprint({name}_it(100))\n",
    }
    checks = (
        runs("python3", f"test_{module}.py", prints=str(100 + number)),
        runs(
            "python3",
            "-c",
            f"import {module}; print({module}.{name}_it(1))",
            prints=f"{number + 1}",
        ),
    )
    return make(surroundings(draw), prompt, new, *checks)


@group
def page_and_stylesheet(draw: Draw) -> Task:
    page, sheet = f"{draw.thing()}.html", f"{draw.topic()}.css"
    colour, title = draw.colour(), f"{draw.city()} {draw.product()}"
    prompt = draw.request(
        "Make {page} with the heading {title} and {sheet} that colours h1 {colour}; the page "
        "should link the stylesheet.",
        "create {sheet} (h1 color {colour}) and {page} (h1: {title}) using that stylesheet",
        "i want a page {page} with h1 {title}, and its style in {sheet}: h1 has color {colour}",
        page=page,
        sheet=sheet,
        colour=colour,
        title=title,
    )
    new: dict[str, str | None] = {
        page: (
            f'<html><head><link rel="stylesheet" href="{sheet}"></head>'
            f"<body><h1>{title}</h1></body></html>\n"
        ),
        sheet: f"h1 {{\n  color: {colour};\n}}\n",
    }
    checks = (
        holds(page, rf"(?i)<h1[^>]*>\s*{re.escape(title)}\s*</h1>", re.escape(sheet)),
        holds(sheet, rf"h1\s*\{{[^}}]*color:\s*{colour}"),
    )
    return make(surroundings(draw), prompt, new, *checks)


@group
def package_created(draw: Draw) -> Task:
    name, module, value = draw.topic(), draw.animal(), draw.number(3, 900)
    prompt = draw.request(
        "Create a Python package {name} with an empty __init__.py and a module {module}.py in "
        "which SIZE is {value}",
        "make the package {name}: {name}/__init__.py (empty) and {name}/{module}.py with SIZE = "
        "{value}",
        name=name,
        module=module,
        value=value,
    )
    new: dict[str, str | None] = {
        f"{name}/__init__.py": "",
        f"{name}/{module}.py": f"SIZE = {value}\n",
    }
    code = f"from {name}.{module} import SIZE; print(SIZE)"
    checks = (there(f"{name}/__init__.py"), runs("python3", "-c", code, prints=str(value)))
    return make(surroundings(draw), prompt, new, *checks)


@group
def logs_moved(draw: Draw) -> Task:
    ending, folder = draw.pick("log", "tmp", "bak"), draw.topic()
    names = [f"{name}.{ending}" for name in draw.some(ANIMALS, 3)]
    texts = {name: f"{draw.sentence()}\n" for name in names}
    prompt = draw.request(
        "Move all .{ending} files into a new folder {folder}",
        "create {folder} and put every *.{ending} file from here into it",
        "the .{ending} files at the top should go to {folder}/ (make it first)",
        ending=ending,
        folder=folder,
    )
    new: dict[str, str | None] = dict.fromkeys(names)
    new |= {f"{folder}/{name}": text for name, text in texts.items()}
    checks = [equals(f"{folder}/{name}", text) for name, text in texts.items()]
    return make(surroundings(draw) | texts, prompt, new, *checks, gone(*names))


@group
def temporary_files_removed(draw: Draw) -> Task:
    ending = draw.pick("tmp", "orig", "swp", "bak")
    names = [f"{draw.topic()}/{draw.animal()}.{ending}" for _ in range(2)]
    names.append(f"{draw.animal()}.{ending}")
    kept = [f"{name.removesuffix(ending)}txt" for name in names]
    files = surroundings(draw) | dict.fromkeys([*names, *kept], "x\n")
    prompt = draw.request(
        "Delete all .{ending} files, also those in subfolders.",
        "clean up: remove every *.{ending} in the project",
        "get rid of all the {ending} files everywhere (only those!)",
        ending=ending,
    )
    return make(files, prompt, dict.fromkeys(names), gone(*names), there(*kept))


@group
def template_filled(draw: Draw) -> Task:
    template, target = f"{draw.topic()}.template", f"{draw.animal()}.txt"
    person, city = draw.full_name(), draw.city()
    text = f"To: NAME\nPlace: CITY\n\n{draw.sentence()}\n"
    prompt = draw.request(
        "Copy {template} to {target} and fill in NAME with {person} and CITY with {city} there",
        "make {target} from {template}: NAME is {person}, CITY is {city}. leave the template alone",
        template=template,
        target=target,
        person=person,
        city=city,
    )
    filled = text.replace("NAME", person).replace("CITY", city)
    files = surroundings(draw) | {template: text}
    return make(files, prompt, {target: filled}, becomes(target, filled), equals(template, text))


@group
def lists_merged(draw: Draw) -> Task:
    names = draw.some(PRODUCTS, 4)
    first, second, target = (f"{draw.animal()}.txt" for _ in range(3))
    texts = {first: f"{names[0]}\n{names[1]}\n", second: f"{names[2]}\n{names[3]}\n"}
    prompt = draw.request(
        "Put the lines of {first} followed by those of {second} into {target}",
        "concatenate {first} and {second} into {target}",
        "join {first} and {second} (in that order), result in {target}",
        first=first,
        second=second,
        target=target,
    )
    text = "\n".join(names) + "\n"
    return make(surroundings(draw) | texts, prompt, {target: text}, equals(target, text))


@group
def settings_converted(draw: Draw) -> Task:
    service = draw.service()
    values: dict[str, str | int | bool] = {draw.key(): draw.number(2, 900) for _ in range(3)}
    source, target = draw.pick(
        (f"{service}.json", f"{service}.env"), (f"{service}.toml", f"{service}.json")
    )
    from_form, to_form = source.rpartition(".")[2], target.rpartition(".")[2]
    prompt = draw.request(
        "Convert {source} to {target}: the same keys and values{upper}",
        "write the settings of {source} as {target}{upper}",
        source=source,
        target=target,
        upper=", keys in upper case" if to_form == "env" else "",
    )
    text = settings(to_form, values)
    files = surroundings(draw) | {source: settings(from_form, values)}
    if to_form == "env":
        rows = [rf"^{key.upper()}=\"?{value}\"?\s*$" for key, value in values.items()]
        return make(files, prompt, {target: text}, holds(target, *rows))
    code = f"import json; print(json.load(open('{target}')) == {json.dumps(values)})"
    return make(files, prompt, {target: text}, runs("python3", "-c", code, prints="True"))


@group
def file_renamed_with_link(draw: Draw) -> Task:
    old, new = f"{draw.topic()}.md", f"{draw.topic()}.md"
    text = f"# Page\n\n{draw.sentence()}\n"
    index = f"# Index\n\n- [Details]({old})\n"
    prompt = draw.request(
        "Rename {old} to {new} and fix the link in index.md",
        "{old} should be called {new}; index.md links to it, so update that as well",
        old=old,
        new=new,
    )
    fixed = index.replace(old, new)
    files = surroundings(draw) | {old: text, "index.md": index}
    changes: dict[str, str | None] = {old: None, new: text, "index.md": fixed}
    checks = (gone(old), equals(new, text), becomes("index.md", fixed))
    return make(files, prompt, changes, *checks)


@group
def module_renamed_with_import(draw: Draw) -> Task:
    old, new, main = draw.animal(), draw.animal(), draw.pick("main.py", "start.py")
    value = draw.number(100, 900)
    texts = {f"{old}.py": f"LIMIT = {value}\n", main: f"from {old} import LIMIT\n\nprint(LIMIT)\n"}
    prompt = draw.request(
        "Rename {old}.py to {new}.py and adapt the import in {main}",
        "move {old}.py to {new}.py. {main} imports it, that has to keep working",
        old=old,
        new=new,
        main=main,
    )
    changes: dict[str, str | None] = {
        f"{old}.py": None,
        f"{new}.py": texts[f"{old}.py"],
        main: texts[main].replace(old, new),
    }
    checks = (gone(f"{old}.py"), there(f"{new}.py"), runs("python3", main, prints=str(value)))
    return make(surroundings(draw) | texts, prompt, changes, *checks)
