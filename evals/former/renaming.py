"""Other names and values for the former tasks, the same in files, request, checks and solution."""

import re
from collections.abc import Mapping

import msgspec

from evals.draw import Draw, casual
from evals.task import Check, Solution, Task

_NUMBERS = ("17", "41", "64", "77", "83")
_POOLS: dict[str, dict[str, tuple[str, ...]]] = {
    "shop": {
        "apple": ("walnut", "carrot", "almond"),
        "pear": ("turnip", "lemon", "melon"),
        "plum": ("leek", "quince", "radish"),
        "discount": ("rebate", "markdown", "reduction"),
        "gross": ("taxed", "billed", "charged"),
        "is_large": ("is_big", "is_bulk", "is_huge"),
        "orders": ("invoices", "estimates", "offers"),
        "prices": ("tariffs", "rates", "costs"),
        "stock": ("supply", "goods", "pantry"),
        "page_size": ("row_limit", "batch_rows", "window_rows"),
        "2.4.1": ("3.0.7", "1.9.2", "4.6.3"),
        "2.5.0": ("5.1.0", "6.0.0", "7.2.1"),
        "500": ("650", "820", "940"),
        "12": _NUMBERS,
        "EUR": ("CHF", "NOK", "SEK"),
        "Kim": ("Ravi", "Lena", "Otto"),
        "Lee": ("Mina", "Pavel", "Ruth"),
        "backup": ("spare", "export", "outbox"),
        "square": ("cube_side", "squared", "area_of"),
        "MIT": ("ISC", "BSD", "MIT"),
    },
    "site": {
        "Blue Lake": ("Old Mill", "Red Barn", "High Fell"),
        "Green Lake": ("New Mill", "Grey Barn", "Low Fell"),
        "555-0142": ("555-0177", "555-0119", "555-0163"),
        "1987": ("1974", "1992", "1969"),
        "Ada Berg": ("Nils Voss", "Eva Lund", "Ola Dahl"),
        "navy": ("maroon", "olive", "teal"),
        "gray": ("silver", "beige", "tan"),
        "openMenu": ("openPanel", "unfoldMenu", "startMenu"),
        "showMenu": ("revealMenu", "displayMenu", "raiseMenu"),
        "web01": ("edge04", "static2", "front09"),
        "8443": ("9443", "7443", "8843"),
        "Tom": ("Ivy", "Gus", "Max"),
        "menu": ("panel", "drawer", "sidebar"),
        "notes": ("remarks", "memo", "jottings"),
        "renew the certificate": ("pay the hosting bill", "check the links", "resize the photos"),
    },
    "data": {
        "Iris": ("Lotte", "Mirja", "Petra"),
        "Oslo": ("Riga", "Bern", "Gent"),
        "Noah": ("Emil", "Joris", "Sven"),
        "Rome": ("Cork", "Nice", "Brno"),
        "disk": ("volume", "drive", "share"),
        "5432": ("5433", "5499", "5521"),
        "6432": ("6543", "6777", "6901"),
        "/admin": ("/metrics", "/private", "/internal"),
        "MODE": ("STAGE", "PROFILE", "LEVEL"),
        "debug": ("trace", "verbose", "dryrun"),
        "archive": ("attic", "cold", "bygone"),
        "retries": ("attempts", "workers", "replicas"),
        "sales": ("orders", "visits", "rentals"),
        "people": ("members", "guests", "staff"),
        "total": ("addup", "summed", "overall"),
    },
    "tool": {
        "wordy": ("lexi", "texty", "scribe"),
        "counting": ("measure", "tally", "figures"),
        "longest": ("widest", "biggest", "lengthiest"),
        "average_length": ("mean_length", "typical_length", "middle_length"),
        "MAX_WORDS": ("MAX_TOKENS", "WORD_LIMIT", "MOST_WORDS"),
        "limits": ("bounds", "settings", "caps"),
        "sample": ("input", "fixture", "story"),
        "example": ("specimen", "demo", "excerpt"),
        "greet": ("welcome", "salute", "hail"),
        "TIMEOUT": ("PATIENCE", "DEADLINE", "WAIT_LIMIT"),
        "check": ("verify", "selftest", "proof"),
    },
}


def rename(task: Task, project: str, files: Mapping[str, str], draw: Draw) -> Task:
    """The task with the names and values that were drawn."""
    chosen = {word: draw.word(pool) for word, pool in _POOLS[project].items()}
    table = dict(chosen)
    for word, other in chosen.items():
        table[re.escape(word)] = re.escape(other)
        if word.islower() and word.isalpha():
            table[f"{word}s"] = f"{other}s"
    words = "|".join(sorted(map(re.escape, table), key=len, reverse=True))
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")

    def new(text: str) -> str:
        # `\b12\b` in a check: the boundary's letter is not part of the word.
        text = text.replace(r"\b", "\0")
        return pattern.sub(lambda found: table[found[0]], text).replace("\0", r"\b")

    solution = task.solution or Solution()
    return Task(
        files={new(path): new(text) for path, text in files.items()},
        prompt=_worded(new(task.prompt), draw),
        tools=task.tools,
        arguments=new(task.arguments),
        done=tuple(Check(check.judge, tuple(map(new, check.words))) for check in task.done),
        question=task.question,
        solution=msgspec.structs.replace(
            solution,
            reply=new(solution.reply),
            files={
                new(path): None if text is None else new(text)
                for path, text in solution.files.items()
            },
        ),
    )


def _worded(prompt: str, draw: Draw) -> str:
    """Without typing errors: any word may be a name."""
    if draw.random.random() < 0.2:
        prompt = prompt.rstrip(".?") + draw.pick(", please", " pls", ", thanks")
    if draw.random.random() < 0.3:
        prompt = casual([prompt])[0]
    return prompt
