"""Questions that need several files, and values carried from one file to another."""

import json
import re

import msgspec

from evals.checks import avoids, becomes, holds, ran, says
from evals.draw import Draw
from evals.family import Group
from evals.layouts import settings, surroundings, word
from evals.shapes import READ, look, make, shell
from evals.task import Task
from evals.words import PEOPLE, PRODUCTS, SERVICES

group = Group("multi-step")


@group
def differing_key(draw: Draw) -> Task:
    keys = [draw.key() for _ in range(4)]
    values = {key: draw.number(10, 99) for key in keys}
    changed = dict(values) | {keys[2]: draw.number(100, 900)}
    form = draw.pick("json", "yaml", "toml")
    first, second = f"config/dev.{form}", f"config/prod.{form}"
    prompt = draw.request(
        "Which setting differs between {first} and {second}?",
        "compare {first} with {second}: what is different",
        "What's not the same in {first} and {second}?",
        first=first,
        second=second,
    )
    files = surroundings(draw) | {first: settings(form, values), second: settings(form, changed)}
    reply = f"{keys[2]} differs."
    return look(files, prompt, "", reply, says(keys[2]), tools=READ)


@group
def followed_reference(draw: Draw) -> Task:
    path, port = f"deploy/{draw.service()}.conf", draw.port()
    files = surroundings(draw) | {
        "README.md": f"# {draw.topic()}\n\nThe server is configured in `{path}`.\n",
        path: f"host {draw.host()}\nport {port}\nuser {draw.animal()}\n",
    }
    prompt = draw.request(
        "On which port does the server run? The README tells where it is configured.",
        "whats the server port? look up in README.md where the config is",
        "Find out the port of our server (start with README.md).",
    )
    return look(files, prompt, "", f"Port {port}.", says(word(port)), tools=READ)


@group
def sum_of_two_files(draw: Draw) -> Task:
    service = draw.some(SERVICES, 2)
    counts = [draw.number(100, 400), draw.number(500, 900)]
    paths = [f"stats/{name}.txt" for name in service]
    bigger = service[1]
    files = surroundings(draw) | {
        path: f"day {draw.date()}\nrequests {count}\n"
        for path, count in zip(paths, counts, strict=True)
    }
    prompt = draw.request(
        "Which had more requests, {a} or {b}? See {first} and {second}",
        "compare the requests in {first} and {second}, who has more?",
        "{first} vs {second}: where are there more requests",
        a=service[0],
        b=service[1],
        first=paths[0],
        second=paths[1],
    )
    reply = f"The {bigger} had more: {counts[1]}."
    wrong = rf"{service[0]}\W+(had|has|have|received|got|shows|with)\W+(\w+ )?(more|higher|larger)"
    return look(files, prompt, "", reply, says(word(bigger)), avoids(wrong), tools=READ)


@group
def person_and_room(draw: Draw) -> Task:
    people, team = draw.some(PEOPLE, 3), draw.topic()
    rooms = [draw.number(100, 499) for _ in people]
    rows = [f"{name},{room}" for name, room in zip(people, rooms, strict=True)]
    files = surroundings(draw) | {
        "teams.txt": f"{draw.topic()}: {people[0]}\n{team}: {people[1]}\n",
        "rooms.csv": "name,room\n" + "\n".join(rows) + "\n",
    }
    prompt = draw.request(
        "In which room does the lead of the {team} team sit? teams.txt names the leads, rooms.csv "
        "the rooms.",
        "room number of whoever leads {team}? (teams.txt, rooms.csv)",
        "find the {team} lead in teams.txt, then tell me the room from rooms.csv",
        team=team,
    )
    reply = f"{people[1]} is in room {rooms[1]}."
    return look(files, prompt, "", reply, says(word(rooms[1])), tools=READ)


@group
def function_and_callers(draw: Draw) -> Task:
    name, thing, other = f"{draw.verb()}_{draw.product()}", draw.thing(), draw.thing()
    value = draw.number(11, 99)
    files = surroundings(draw) | {
        f"{thing}.py": f"def {name}(count, limit={value}):\n    return min(count, limit)\n",
        f"{other}.py": f"from {thing} import {name}\n\nprint({name}(3))\n",
    }
    prompt = draw.request(
        "What limit applies when {other}.py calls {name}?",
        "{other}.py calls {name} without a limit. Which one is used then?",
        "which limit does {name} use by default, and which file calls it",
        other=other,
        name=name,
    )
    reply = f"{other}.py calls it with the default limit {value}."
    return look(files, prompt, "", reply, says(word(value)), tools=READ)


@group
def value_carried_over(draw: Draw) -> Task:
    key, value, form = draw.key(), draw.number(100, 999), draw.pick("json", "toml", "ini")
    source, target = f"conf/{draw.service()}.{form}", f"{draw.animal()}.txt"
    source_text = settings(form, {draw.key(): 5, key: value, draw.key(): 77})
    prompt = draw.request(
        "Look up {key} in {source} and write its value into a new file {target}",
        "take the value of {key} from {source}, save only that number to {target}",
        "create {target} containing nothing but the {key} from {source}",
        key=key,
        source=source,
        target=target,
    )
    files = surroundings(draw) | {source: source_text}
    return make(files, prompt, {target: f"{value}\n"}, holds(target, rf"^\s*{value}\s*$"))


@group
def table_to_list(draw: Draw) -> Task:
    names, source, target = draw.some(PRODUCTS, 4), f"{draw.thing()}.csv", f"{draw.topic()}.txt"
    rows = [f"{name},{draw.number(2, 99)}" for name in names]
    prompt = draw.request(
        "Write all product names from {source} to {target}, one per line, without the numbers",
        "make {target} with just the names out of {source} (one a line)",
        "extract the name column of {source} into {target}",
        source=source,
        target=target,
    )
    text = "\n".join(names) + "\n"
    files = surroundings(draw) | {source: "name,amount\n" + "\n".join(rows) + "\n"}
    lines = [rf"^\s*{name}\s*$" for name in names]
    return make(files, prompt, {target: text}, holds(target, *lines))


@group
def address_into_settings(draw: Draw) -> Task:
    host, service = draw.host(), draw.service()
    path = f"{service}.json"
    before = {"name": service, "host": "changeme", "port": draw.port()}
    files = surroundings(draw) | {
        "hosts.txt": f"{draw.service()} {draw.host()}\n{service} {host}\n",
        path: json.dumps(before, indent=2) + "\n",
    }
    prompt = draw.request(
        "hosts.txt lists the host of the {service}. Put it into {path} as host.",
        "set host in {path} to the host that hosts.txt gives for {service}",
        "replace {old} in {path} with the {service} host from hosts.txt",
        service=service,
        old="changeme",
        path=path,
    )
    text = json.dumps(before | {"host": host}, indent=2) + "\n"
    task = make(files, prompt, {path: text}, becomes(path, text))
    return msgspec.structs.replace(task, tools=READ)


@group
def output_recorded(draw: Draw) -> Task:
    numbers, path = [draw.number(100, 900) for _ in range(4)], f"{draw.verb()}.py"
    target, answer = f"{draw.animal()}.txt", sum(n * 7 for n in numbers)
    prompt = draw.request(
        "Run {path} and save the output to {target}",
        "execute {path} and store what it prints in {target}",
        "i need the output of python3 {path} in a file {target}",
        path=path,
        target=target,
    )
    files = surroundings(draw) | {path: f"print(sum(n * 7 for n in {numbers}))\n"}
    check = holds(target, rf"^\s*{answer}\s*$")
    task = make(files, prompt, {target: f"{answer}\n"}, ran(re.escape(path)), check)
    assert task.solution is not None
    solution = msgspec.structs.replace(task.solution, calls=(shell(f"python3 {path}"),))
    return msgspec.structs.replace(task, solution=solution)


@group
def errors_recorded(draw: Draw) -> Task:
    source, target, count = f"{draw.topic()}.log", f"{draw.animal()}.txt", draw.number(3, 9)
    lines = [f"ERROR {draw.error()}" for _ in range(count)]
    lines += [f"INFO {draw.sentence()}" for _ in range(5)]
    draw.random.shuffle(lines)
    prompt = draw.request(
        "Count the ERROR lines of {source} and write the number to {target}",
        "how many ERROR lines has {source}? put just the number into {target}",
        "save the count of ERROR lines in {source} as {target}",
        source=source,
        target=target,
    )
    files = surroundings(draw) | {source: "\n".join(lines) + "\n"}
    return make(files, prompt, {target: f"{count}\n"}, holds(target, rf"^\D*{count}\D*$"))
