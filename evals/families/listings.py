"""Requests that a listing answers: what a folder contains, where a file is."""

import re

from evals.checks import answers, says, shows
from evals.draw import Draw
from evals.family import Group
from evals.layouts import surroundings, word
from evals.shapes import FIND, LIST, SEARCH, look
from evals.task import Task
from evals.words import ANIMALS, PRODUCTS, THINGS, TOPICS

group = Group("one-step")


@group
def folder_contents(draw: Draw) -> Task:
    folder = draw.pick("", "assets/", "var/") + draw.topic()
    names = [f"{name}{draw.pick('.txt', '.md', '.dat')}" for name in draw.some(ANIMALS, 3)]
    files = surroundings(draw) | {f"{folder}/{name}": f"{draw.sentence()}\n" for name in names}
    prompt = draw.request(
        "What's in {folder}?",
        "list {folder} for me please",
        "show me everything inside the {folder} directory",
        "Can you tell me which files {folder}/ has?",
        "dir {folder}",
        folder=folder,
    )
    patterns = [re.escape(name) for name in names]
    reply = f"{folder} contains {', '.join(names)}."
    return look(files, prompt, re.escape(folder), reply, shows(*patterns), answers, tools=LIST)


@group
def files_counted(draw: Draw) -> Task:
    folder, count = draw.topic(), draw.number(3, 7)
    ending = draw.pick("png", "sql", "txt", "csv")
    names = draw.some(PRODUCTS, count)
    files = surroundings(draw) | {f"{folder}/{name}.{ending}": "x\n" for name in names}
    prompt = draw.request(
        "How many .{ending} files are in {folder}?",
        "count the {ending} files under {folder}/",
        "how many {ending} files do we have in {folder}",
        "Number of {ending} files in the {folder} folder?",
        ending=ending,
        folder=folder,
    )
    words = ["", "", "", "three", "four", "five", "six", "seven"]
    pattern = rf"\b({count}|{words[count]})\b"
    reply = f"There are {count}."
    return look(files, prompt, re.escape(folder), reply, says(pattern), tools=LIST)


@group
def top_folders(draw: Draw) -> Task:
    names = draw.some(TOPICS, 3)
    files = {f"{name}/{draw.animal()}.txt": "text\n" for name in names} | {"README.md": "# It\n"}
    prompt = draw.request(
        "Which folders does this project have?",
        "what are the top level directories here",
        "list the subdirectories please",
        "Name all folders at the root of the repo.",
    )
    reply = f"{', '.join(names)}."
    return look(files, prompt, "", reply, shows(*map(word, names)), answers, tools=LIST)


@group
def hidden_files(draw: Draw) -> Task:
    names = draw.pick(
        (".editorconfig", ".npmrc"), (".flake8", ".dockerignore"), (".prettierrc", ".nvmrc")
    )
    files = surroundings(draw) | dict.fromkeys(names, "root = true\n")
    prompt = draw.request(
        "Which hidden files are in this directory?",
        "show the dotfiles here",
        "are there any files starting with a dot? which ones?",
        "list hidden files",
    )
    patterns = [re.escape(name) for name in names]
    return look(files, prompt, "", " and ".join(names), says(*patterns), tools=LIST)


@group
def biggest_file(draw: Draw) -> Task:
    folder = draw.topic()
    names = [f"{name}.log" for name in draw.some(ANIMALS, 4)]
    sizes = [30, 60, 90, 2400]
    draw.random.shuffle(sizes)
    files = {
        f"{folder}/{name}": "some words here\n" * size
        for name, size in zip(names, sizes, strict=True)
    }
    largest = names[sizes.index(2400)]
    prompt = draw.request(
        "Which file in {folder} is the biggest?",
        "whats the largest file in {folder}/",
        "I'm out of space. Which of the logs in {folder} takes the most room?",
        folder=folder,
    )
    return look(
        surroundings(draw) | files,
        prompt,
        re.escape(folder),
        f"{largest} is the biggest.",
        says(re.escape(largest)),
        tools=LIST,
    )


@group
def folder_is_empty(draw: Draw) -> Task:
    empty, full = draw.some(TOPICS, 2)
    files = surroundings(draw) | {f"{empty}/": "", f"{full}/{draw.animal()}.txt": "x\n"}
    prompt = draw.request(
        "Is the folder {empty} empty?",
        "does {empty}/ have anything in it",
        "Is there anything in {empty}?",
        empty=empty,
    )
    reply = f"{empty} is empty, there is nothing in it."
    pattern = r"empty|nothing|no files|not (have|contain)|does(n't| not)|\bno\b"
    return look(files, prompt, re.escape(empty), reply, says(pattern), tools=LIST)


@group
def find_by_ending(draw: Draw) -> Task:
    ending = draw.pick("sql", "toml", "svg", "ipynb", "proto", "tex")
    first, second = draw.some(THINGS, 2)
    paths = [f"{draw.topic()}/{first}.{ending}", f"{second}.{ending}"]
    files = surroundings(draw) | dict.fromkeys(paths, "\n")
    prompt = draw.request(
        "Find all .{ending} files.",
        "where are the {ending} files",
        "Give me a list of every *.{ending} in the project",
        "any {ending} files in here? list them with their path",
        ending=ending,
    )
    patterns = [re.escape(path) for path in paths]
    reply = f"{paths[0]} and {paths[1]}"
    return look(files, prompt, ending, reply, shows(*patterns), answers, tools=FIND)


@group
def find_by_name_part(draw: Draw) -> Task:
    part = draw.animal()
    paths = [f"{draw.topic()}/{part}_{draw.thing()}.txt", f"{draw.topic()}/old_{part}.md"]
    files = surroundings(draw) | dict.fromkeys(paths, f"{draw.sentence()}\n")
    prompt = draw.request(
        "Find the files that have {part} in their name.",
        "which files are called something with {part}?",
        "files with '{part}' in the filename pls",
        "look for filenames containing {part}",
        part=part,
    )
    patterns = [re.escape(path.rpartition("/")[2]) for path in paths]
    return look(files, prompt, part, " and ".join(paths), shows(*patterns), answers, tools=FIND)


@group
def find_misplaced(draw: Draw) -> Task:
    name = f"{draw.thing()}-{draw.product()}.{draw.pick('pdf', 'docx', 'txt', 'key')}"
    path = f"{draw.topic()}/{draw.topic()}/{name}"
    files = surroundings(draw) | {path: "text\n"}
    prompt = draw.request(
        "I can't find {name}, in which folder is it?",
        "where did I put {name}",
        "Where is {name}?",
        "locate {name} please",
        name=name,
    )
    folder = re.escape(path.rpartition("/")[0])
    return look(files, prompt, re.escape(name[:5]), f"It is {path}.", says(folder), tools=FIND)


@group
def find_absent_kind(draw: Draw) -> Task:
    name = draw.pick("Dockerfile", "Jenkinsfile", "Procfile", "Vagrantfile")
    prompt = draw.request(
        "Do we have a {name}?",
        "is there a {name} in this repo",
        "Does this project contain a {name}?",
        name=name,
    )
    reply = f"No, there is no {name}."
    pattern = r"\bno\b|\bnot\b|n't|none|\bno,"
    files = surroundings(draw)
    return look(files, prompt, name, reply, says(pattern), tools=(*FIND, *SEARCH))


@group
def find_test_of_module(draw: Draw) -> Task:
    thing = draw.thing()
    path = draw.pick(f"tests/test_{thing}.py", f"tests/unit/{thing}_test.py")
    files = surroundings(draw) | {
        f"app/{thing}.py": "def total(items):\n    return sum(items)\n",
        path: f"from app.{thing} import total\n\n\ndef test_total():\n    assert total([1]) == 1\n",
        f"tests/test_{draw.animal()}.py": "def test_nothing():\n    assert True\n",
    }
    prompt = draw.request(
        "Which file tests app/{thing}.py?",
        "where are the tests for {thing}.py",
        "Is there a test for the {thing} module? Where?",
        thing=thing,
    )
    file = re.escape(path.rpartition("/")[2])
    return look(
        files, prompt, thing, f"It is tested by {path}.", says(file), tools=(*FIND, *SEARCH)
    )


@group
def find_two_endings(draw: Draw) -> Task:
    first, second = draw.some(ANIMALS, 2)
    paths = [f"art/{first}.jpg", f"art/{draw.topic()}/{second}.png"]
    files = surroundings(draw) | dict.fromkeys(paths, "0\n")
    prompt = draw.request(
        "List all images (jpg and png) in the project.",
        "where are our pictures? jpg or png",
        "find every .jpg and .png",
    )
    patterns = [re.escape(path.rpartition("/")[2]) for path in paths]
    reply = " and ".join(paths)
    return look(files, prompt, "", reply, shows(*patterns), answers, tools=FIND)
