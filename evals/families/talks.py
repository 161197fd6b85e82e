"""Talk that needs no tool."""

from evals.checks import answers, says, untouched
from evals.draw import Draw
from evals.family import Group
from evals.layouts import surroundings, word
from evals.task import Solution, Task

group = Group("one-step")


def _talk(draw: Draw, prompt: str, reply: str, *patterns: str) -> Task:
    check = says(*patterns) if patterns else answers
    return Task(
        files=surroundings(draw),
        prompt=prompt,
        done=(untouched, check),
        question=True,
        solution=Solution(reply=reply),
    )


@group
def talk_greeting(draw: Draw) -> Task:
    prompt = draw.request(
        "Good morning, {name} here, just starting my day",
        "hey {name} here, how are you doing?",
        "Hello, it's {name} again!",
        "Nice to meet you, my name is {name}.",
        name=draw.person(),
    )
    return _talk(draw, prompt, "Hello!")


@group
def talk_farewell(draw: Draw) -> Task:
    prompt = draw.request(
        "that's all for today, bye", "Great work, see you tomorrow.", "ok thx", "perfect, thanks!"
    )
    return _talk(draw, prompt, "See you!")


@group
def talk_acronym(draw: Draw) -> Task:
    short, long = draw.pick(
        ("CSS", "cascading style sheets"),
        ("SQL", "structured query language"),
        ("CPU", "central processing unit"),
        ("RAM", "random[- ]access memory"),
        ("URL", "uniform resource locator"),
        ("API", "application programming interface"),
    )
    prompt = draw.request(
        "What does {short} stand for?",
        "{short} is short for what?",
        "what do the letters {short} mean",
        short=short,
    )
    return _talk(draw, prompt, long.replace("[- ]", " "), long)


@group
def talk_arithmetic(draw: Draw) -> Task:
    first, second = draw.number(11, 49), draw.number(3, 9)
    prompt = draw.request(
        "A box holds {first} cups. How many cups are in {second} boxes?",
        "quick math: {second} shelves with {first} books each, how many books is that",
        "If one ticket costs {first} dollars, what do {second} tickets cost?",
        first=first,
        second=second,
    )
    return _talk(draw, prompt, f"{first * second}", word(first * second))


@group
def talk_capital(draw: Draw) -> Task:
    country, capital = draw.pick(
        ("Portugal", "Lisbon"), ("Norway", "Oslo"), ("Poland", "Warsaw"), ("Japan", "Tokyo"),
        ("Peru", "Lima"), ("Kenya", "Nairobi"), ("Greece", "Athens"), ("Egypt", "Cairo"),
    )  # fmt: skip
    prompt = draw.request(
        "What is the capital of {country}?",
        "capital city of {country}?",
        "which city is the capital of {country}",
        country=country,
    )
    return _talk(draw, prompt, f"{capital}.", capital)


@group
def talk_language(draw: Draw) -> Task:
    question, reply, pattern = draw.pick(
        ("Are Python tuples mutable?", "No, they are immutable.", r"\bno\b|immutable|not|n't"),
        ("Which keyword defines a function in Python?", "def", r"\bdef\b"),
        ("What does len([]) return in Python?", "It returns 0.", r"\b(0|zero)\b"),
        ("Which HTML tag makes a link?", "The a tag.", r"<a\b|\ba\b.*tag|anchor"),
        ("Which HTTP status code means not found?", "404", r"\b404\b"),
    )
    return _talk(draw, draw.request(question), reply, pattern)
