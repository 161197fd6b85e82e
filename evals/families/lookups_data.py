"""Questions that one file answers: tables, logs, notes, build files."""

import re

from evals.checks import says
from evals.draw import Draw
from evals.family import Group
from evals.layouts import surroundings, word
from evals.shapes import look
from evals.task import Task
from evals.words import PRODUCTS

group = Group("one-step")


def _path(draw: Draw, ending: str) -> str:
    return draw.pick("", "data/", f"{draw.topic()}/") + f"{draw.thing()}s.{ending}"


@group
def table_cell(draw: Draw) -> Task:
    path, names = _path(draw, "csv"), draw.some(PRODUCTS, 5)
    amounts = [draw.number(3, 990) for _ in names]
    rows = [f"{name},{draw.city()},{amount}" for name, amount in zip(names, amounts, strict=True)]
    at = draw.random.randrange(5)
    prompt = draw.request(
        "How many pieces of the {name} do we have, according to {path}?",
        "{path}: count for {name}?",
        "what does {path} say about the {name}, how many pieces",
        name=names[at],
        path=path,
    )
    files = surroundings(draw) | {path: "name,place,pieces\n" + "\n".join(rows) + "\n"}
    pattern = f"{re.escape(path)}|{names[at]}"
    return look(files, prompt, pattern, f"{amounts[at]} pieces.", says(word(amounts[at])))


@group
def table_maximum(draw: Draw) -> Task:
    path, names = _path(draw, "csv"), draw.some(PRODUCTS, 5)
    values = [*draw.random.sample(range(10, 80), 4), draw.number(120, 400)]
    draw.random.shuffle(values)
    best = names[values.index(max(values))]
    rows = [f"{name},{value}" for name, value in zip(names, values, strict=True)]
    prompt = draw.request(
        "Which product in {path} costs the most?",
        "whats the most expensive thing in {path}",
        "Look at {path}. Which product has the highest price?",
        path=path,
    )
    files = surroundings(draw) | {path: "product,price\n" + "\n".join(rows) + "\n"}
    return look(files, prompt, re.escape(path), f"The {best}.", says(word(best)))


@group
def last_error(draw: Draw) -> Task:
    path, error, first = _path(draw, "log"), draw.error(), draw.error()
    text = (
        f"08:10:02 INFO boot\n08:11:40 ERROR {first}\n08:15:00 INFO back to normal\n"
        f"09:{draw.number(10, 50)}:33 ERROR {error}\n09:59:00 INFO idle\n"
    )
    prompt = draw.request(
        "What is the last error in {path}?",
        "most recent ERROR in {path}?",
        "check {path}, what went wrong last",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|ERROR|error"
    return look(files, prompt, pattern, f"It was: {error}.", says(re.escape(error)))


@group
def warnings_counted(draw: Draw) -> Task:
    path, count = _path(draw, "log"), draw.number(2, 6)
    lines = [f"{hour:02}:00 WARN {draw.error()}" for hour in range(count)]
    lines += [f"1{hour}:00 INFO {draw.sentence()}" for hour in range(4)]
    draw.random.shuffle(lines)
    prompt = draw.request(
        "How many WARN lines are in {path}?",
        "count the warnings in {path}",
        "number of WARN entries in {path} please",
        path=path,
    )
    words = ("zero", "one", "two", "three", "four", "five", "six")
    files = surroundings(draw) | {path: "\n".join(lines) + "\n"}
    pattern = f"{re.escape(path)}|WARN"
    return look(files, prompt, pattern, f"{count}", says(rf"\b({count}|{words[count]})\b"))


@group
def action_owner(draw: Draw) -> Task:
    path, person, chore = _path(draw, "md"), draw.person(), draw.chore()
    text = (
        f"# Meeting {draw.date()}\n\n{draw.sentence()}\n\n"
        f"- {draw.person()}: {draw.chore()}\n- {person}: {chore}\n"
        f"- {draw.person()}: {draw.chore()}\n"
    )
    prompt = draw.request(
        "Who has to {chore}? See {path}",
        "according to {path}, whose job is it to {chore}",
        "In {path} someone took on to {chore}. Who was that?",
        chore=chore,
        path=path,
    )
    pattern = f"{re.escape(path)}|{re.escape(chore.split()[0])}"
    return look(
        surroundings(draw) | {path: text}, prompt, pattern, f"{person}.", says(word(person))
    )


@group
def meeting_date(draw: Draw) -> Task:
    path, date, city = _path(draw, "txt"), draw.date(), draw.city()
    text = (
        f"trip planning\n\n{draw.sentence()}\ntrain to {city}: {date}\nhotel: {draw.full_name()}\n"
    )
    prompt = draw.request(
        "When is the train to {city}? It's in {path}.",
        "date of the {city} train ({path})",
        "look in {path} when we go to {city}",
        city=city,
        path=path,
    )
    pattern = f"{re.escape(path)}|{city}"
    files = surroundings(draw) | {path: text}
    return look(files, prompt, pattern, f"On {date}.", says(re.escape(date)))


@group
def base_image(draw: Draw) -> Task:
    image = draw.pick("debian", "alpine", "node", "python") + f":{draw.number(3, 22)}-slim"
    path = draw.pick("Dockerfile", "docker/Dockerfile", "deploy/Containerfile")
    text = f"FROM {image}\nWORKDIR /app\nCOPY . .\nEXPOSE {draw.port()}\nCMD ./start\n"
    prompt = draw.request(
        "Which base image does {path} start from?",
        "{path} base image?",
        "What image is our container built on? ({path})",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    return look(files, prompt, f"{re.escape(path)}|FROM", image, says(re.escape(image)))


@group
def workflow_version(draw: Draw) -> Task:
    minor = draw.number(8, 14)
    name = draw.pick("ci", "checks", "build")
    path = f".github/workflows/{name}.yml"
    text = (
        f"name: {name}\non: push\njobs:\n  test:\n    runs-on: ubuntu-22.04\n    steps:\n"
        "      - uses: actions/setup-python\n        with:\n"
        f'          python-version: "3.{minor}"\n'
    )
    prompt = draw.request(
        "Which Python version does {path} use?",
        "python version in CI? see {path}",
        "Tell me which python our workflow {path} sets up.",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    return look(files, prompt, rf"{re.escape(path)}|python", f"3.{minor}", says(rf"3\.{minor}\b"))


@group
def make_target(draw: Draw) -> Task:
    target, tool = draw.verb(), draw.animal()
    command = f"./{tool} --{draw.colour()} {draw.topic()}"
    text = f".PHONY: {target} clean\n\n{target}:\n\t{command}\n\nclean:\n\t@echo clean\n"
    prompt = draw.request(
        "What does make {target} run?",
        "which command is behind the {target} target in the Makefile",
        "Makefile: whats {target} doing?",
        target=target,
    )
    files = surroundings(draw) | {"Makefile": text}
    return look(files, prompt, f"Makefile|{target}", f"It runs {command}", says(re.escape(command)))


@group
def docstring_purpose(draw: Draw) -> Task:
    thing, verb, city = draw.thing(), draw.verb(), draw.city()
    path = f"{draw.topic()}/{verb}ing.py"
    text = (
        f"def {verb}_{thing}(raw):\n"
        f'    """Turn a {thing} from the {city} office into rows."""\n    return raw.split(";")\n'
        "\n\n"
        f'def other(raw):\n    """Drop blanks."""\n    return raw.strip()\n'
    )
    prompt = draw.request(
        "From which office does {name} in {path} take its input?",
        "{name} in {path}: what is it for?",
        "what does the docstring of {name} say? file: {path}",
        name=f"{verb}_{thing}",
        path=path,
    )
    pattern = f"{re.escape(path)}|{verb}_{thing}"
    reply = f"It turns a {thing} from the {city} office into rows."
    return look(surroundings(draw) | {path: text}, prompt, pattern, reply, says(city))


@group
def sql_column(draw: Draw) -> Task:
    thing, size = draw.thing(), draw.number(12, 250)
    path = draw.pick("", "db/", "migrations/") + f"{draw.number(100, 999)}_{thing}.sql"
    text = (
        f"CREATE TABLE {thing}s (\n  id INTEGER PRIMARY KEY,\n  label VARCHAR({size}) NOT NULL,\n"
        f"  made DATE\n);\n"
    )
    prompt = draw.request(
        "How long may a label be in the table of {path}?",
        "whats the max length of label in {path}",
        "{path}: size of the label column?",
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|label"
    return look(files, prompt, pattern, f"{size} characters", says(word(size)))


@group
def cron_time(draw: Draw) -> Task:
    script, hour, minute = f"{draw.verb()}.sh", draw.number(1, 9), draw.number(11, 59)
    path = draw.pick("crontab.txt", "ops/crontab", "etc/jobs.cron")
    text = f"# m h dom mon dow\n{minute} {hour} * * * /opt/{script}\n0 12 * * 1 /opt/weekly.sh\n"
    prompt = draw.request(
        "At what time does {script} run every day? ({path})",
        "when is {script} started according to {path}",
        "{path}: time of {script}?",
        script=script,
        path=path,
    )
    files = surroundings(draw) | {path: text}
    pattern = f"{re.escape(path)}|{re.escape(script)}"
    checks = says(rf"\b0?{hour}:{minute}\b|{minute} minutes? (past|after) 0?{hour}")
    return look(files, prompt, pattern, f"At {hour:02}:{minute}.", checks)
