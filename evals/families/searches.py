"""Questions that a search through the project answers."""

import re

from evals.checks import says
from evals.draw import Draw
from evals.family import Group
from evals.layouts import settings, surroundings, word
from evals.shapes import READ, SEARCH, look
from evals.task import Task
from evals.words import ANIMALS, SERVICES, THINGS, TOPICS

group = Group("one-step")


@group
def function_place(draw: Draw) -> Task:
    things, name = draw.some(THINGS, 3), f"{draw.verb()}_{draw.product()}"
    folder = draw.pick("src/", "", "core/")
    paths = [f"{folder}{thing}.py" for thing in things]
    files = surroundings(draw)
    for index, path in enumerate(paths):
        inner = name if index == 1 else f"{draw.verb()}_all"
        files[path] = f"import os\n\n\ndef {inner}(items):\n    return list(items)\n"
    files[paths[2]] += f"\n\ndef go():\n    from {things[1]} import {name}\n    {name}([])\n"
    prompt = draw.request(
        "Where is {name} defined?",
        "which file defines {name}",
        "find the definition of {name}()",
        "in what file do I find the function {name}?",
        name=name,
    )
    reply = f"In {paths[1]}."
    return look(files, prompt, name, reply, says(re.escape(f"{things[1]}.py")), tools=SEARCH)


@group
def js_class_place(draw: Draw) -> Task:
    first, second = draw.some(THINGS, 2)
    name = f"{first.title()}{draw.service().title()}"
    path = draw.pick("src/models/", "app/", "lib/") + f"{second}.js"
    files = surroundings(draw) | {
        path: f"class {name} {{\n  constructor(id) {{\n    this.id = id;\n  }}\n}}\n",
        "src/start.js": "console.log('start');\n",
    }
    prompt = draw.request(
        "In which file is the class {name}?",
        "where's {name} declared",
        "search for class {name}",
        name=name,
    )
    return look(files, prompt, name, path, says(re.escape(f"{second}.js")), tools=SEARCH)


@group
def document_mention(draw: Draw) -> Task:
    person = draw.full_name()
    names = [f"{topic}.md" for topic in draw.some(TOPICS, 4)]
    files = surroundings(draw) | {
        f"docs/{name}": f"# Page\n\n{draw.sentence()}\n" for name in names
    }
    chosen = names[draw.random.randrange(4)]
    files[f"docs/{chosen}"] += f"\nQuestions go to {person}.\n"
    prompt = draw.request(
        "Which document mentions {person}?",
        "where in the docs is {person} mentioned",
        "search docs for {person}, which page is it",
        person=person,
    )
    pattern = person.split()[0]
    return look(files, prompt, pattern, f"docs/{chosen}", says(re.escape(chosen)), tools=SEARCH)


@group
def variable_readers(draw: Draw) -> Task:
    variable = f"{draw.topic()}_{draw.pick('TOKEN', 'URL', 'DIR', 'REGION')}".upper()
    first, second, third = draw.some(THINGS, 3)
    files = surroundings(draw) | {
        f"{first}.py": f"import os\n\nvalue = os.environ['{variable}']\n",
        f"tools/{second}.sh": f'#!/bin/sh\necho "${variable}"\n',
        f"{third}.py": "import os\n\nhome = os.environ['HOME']\n",
    }
    prompt = draw.request(
        "Which files use the environment variable {variable}?",
        "where do we read {variable}",
        "grep for {variable} and list the files",
        variable=variable,
    )
    patterns = (re.escape(f"{first}.py"), re.escape(f"{second}.sh"))
    reply = f"{first}.py and tools/{second}.sh"
    return look(files, prompt, variable, reply, says(*patterns), tools=SEARCH)


@group
def fixme_place(draw: Draw) -> Task:
    mark, chore = draw.pick("FIXME", "HACK", "XXX"), draw.chore()
    names = [f"{animal}.py" for animal in draw.some(ANIMALS, 3)]
    files = surroundings(draw) | dict.fromkeys(names, "def run():\n    return None\n")
    files[names[2]] = f"def run():\n    # {mark}: {chore}\n    return 1\n"
    prompt = draw.request(
        "Are there any {mark} comments in the code? Where?",
        "find {mark}",
        "which file has a {mark} comment",
        mark=mark,
    )
    return look(files, prompt, mark, f"In {names[2]}.", says(re.escape(names[2])), tools=SEARCH)


@group
def class_users(draw: Draw) -> Task:
    name = f"{draw.colour()}-{draw.pick('box', 'card', 'badge', 'panel')}"
    pages = [f"{thing}.html" for thing in draw.some(THINGS, 3)]
    files = surroundings(draw) | {"css/site.css": f".{name} {{\n  padding: 4px;\n}}\n"}
    for page in pages:
        files[f"web/{page}"] = f"<html><body>\n<p>{draw.sentence()}</p>\n</body></html>\n"
    files[f"web/{pages[0]}"] = f'<html><body>\n<div class="{name}">x</div>\n</body></html>\n'
    prompt = draw.request(
        "Which page uses the CSS class {name}?",
        "where is the class {name} used in the html",
        "what html file has class {name}?",
        name=name,
    )
    return look(files, prompt, name, f"web/{pages[0]}", says(re.escape(pages[0])), tools=SEARCH)


@group
def message_source(draw: Draw) -> Task:
    message = draw.error()
    names = [f"{thing}.js" for thing in draw.some(THINGS, 3)]
    files = surroundings(draw)
    for index, name in enumerate(names):
        text = message if index == 2 else draw.error()
        files[f"lib/{name}"] = f"exports.fail = () => {{\n  throw new Error('{text}');\n}};\n"
    prompt = draw.request(
        'Users see "{message}". Which file throws that?',
        'where does the error "{message}" come from',
        "find the code that says '{message}'",
        message=message,
    )
    pattern = message.split()[1]
    return look(files, prompt, pattern, f"lib/{names[2]}", says(re.escape(names[2])), tools=SEARCH)


@group
def address_place(draw: Draw) -> Task:
    address = f"10.{draw.number(2, 250)}.{draw.number(2, 250)}.{draw.number(2, 250)}"
    names = [f"{service}.conf" for service in draw.some(SERVICES, 4)]
    files = surroundings(draw)
    for name in names:
        files[f"conf.d/{name}"] = f"server {draw.host()}\nport {draw.port()}\n"
    chosen = draw.pick(*names)
    files[f"conf.d/{chosen}"] += f"allow {address}\n"
    prompt = draw.request(
        "In which file is the address {address} hard-coded?",
        "who is using {address}? find the file",
        "search for {address}",
        address=address,
    )
    pattern = re.escape(address).replace("\\", ".?.?")
    return look(files, prompt, pattern, f"conf.d/{chosen}", says(re.escape(chosen)), tools=SEARCH)


@group
def log_with_user(draw: Draw) -> Task:
    user = f"{draw.animal()}{draw.number(100, 999)}"
    days = [f"day{number}.log" for number in (1, 2, 3, 4)]
    files = surroundings(draw) | {f"logs/{day}": f"login {draw.animal()}\nlogout\n" for day in days}
    chosen = draw.pick(*days)
    files[f"logs/{chosen}"] += f"login {user}\n"
    prompt = draw.request(
        "In which log does the user {user} show up?",
        "which of the logs has {user}",
        "find {user} in logs/",
        user=user,
    )
    return look(files, prompt, user, f"logs/{chosen}", says(re.escape(chosen)), tools=SEARCH)


@group
def key_place(draw: Draw) -> Task:
    key, value = draw.key(), draw.number(12, 900)
    paths = [f"config/{service}.yaml" for service in draw.some(SERVICES, 3)]
    files = surroundings(draw)
    for path in paths:
        files[path] = settings("yaml", {draw.key(): 4, "enabled": True})
    files[paths[1]] = settings("yaml", {draw.key(): 9, key: value})
    prompt = draw.request(
        "Which config file sets {key}, and to what?",
        "where is {key} configured and whats the value",
        "find {key}: file and value please",
        key=key,
    )
    name = re.escape(paths[1].rpartition("/")[2])
    reply = f"{paths[1]} sets it to {value}."
    return look(files, prompt, key, reply, says(name, word(value)), tools=(*SEARCH, *READ))


@group
def importers(draw: Draw) -> Task:
    module = draw.animal()
    first, second, third = draw.some(THINGS, 3)
    files = surroundings(draw) | {
        f"{module}.py": "def ready():\n    return True\n",
        f"{first}.py": f"import {module}\n\nprint({module}.ready())\n",
        f"{second}.py": f"from {module} import ready\n\nprint(ready())\n",
        f"{third}.py": "import json\n\nprint(json.dumps([]))\n",
    }
    prompt = draw.request(
        "Which files import the module {module}?",
        "who imports {module}",
        "what would break if {module}.py moved? I mean: which files import it",
        module=module,
    )
    patterns = (re.escape(f"{first}.py"), re.escape(f"{second}.py"))
    reply = f"{first}.py and {second}.py import it."
    return look(files, prompt, module, reply, says(*patterns), tools=SEARCH)
