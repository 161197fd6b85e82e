"""Requests that one act answers, or a word: writing, running, changing, talking."""

from evals.checks import answers, gone, holds, lacks, says, shows, there, untouched
from evals.former.fixed import FixedTask

_RUN = ("run_shell_command",)
_EDIT = ("replace", "run_shell_command", "write_file", "read_file", "apply_patch")

WRITING = (
    FixedTask(
        id="write-gitignore",
        project="tool",
        prompt="Create a .gitignore that ignores __pycache__",
        tools=("write_file", "run_shell_command"),
        arguments="gitignore",
        done=(holds(".gitignore", "__pycache__"),),
    ),
    FixedTask(
        id="write-todo",
        project="site",
        prompt="Write a file todo.md with the line: renew the certificate",
        tools=("write_file", "run_shell_command"),
        arguments="todo.md",
        done=(holds("todo.md", "renew the certificate"),),
    ),
    FixedTask(
        id="write-greet",
        project="tool",
        prompt="Make greet.py with a function greet(name) that returns 'Hello, ' plus the name.",
        tools=("write_file",),
        arguments="greet.py",
        done=(holds("greet.py", r"def greet\(name", "return", "Hello, "),),
    ),
    FixedTask(
        id="write-env",
        project="data",
        prompt="Add a new file .env containing MODE=test",
        tools=("write_file", "run_shell_command"),
        arguments=r"\.env",
        done=(holds(".env", "^MODE=test"),),
    ),
    FixedTask(
        id="write-contact",
        project="site",
        prompt="Create contact.html with a heading that says Contact",
        tools=("write_file",),
        arguments="contact.html",
        done=(holds("contact.html", r"<h[1-6][^>]*>\s*Contact"),),
    ),
    FixedTask(
        id="write-json",
        project="data",
        prompt='Save {"debug": true} to debug.json',
        tools=("write_file", "run_shell_command"),
        arguments="debug.json",
        done=(holds("debug.json", r'"debug":\s*true'),),
    ),
    FixedTask(
        id="write-square",
        project="shop",
        prompt="Create shop/maths.py with a function square(x).",
        tools=("write_file",),
        arguments="shop/maths.py",
        done=(holds("shop/maths.py", r"def square\(x", r"x \* x|x \*\* 2|x\*x|x\*\*2|pow"),),
    ),
    FixedTask(
        id="write-authors",
        project="shop",
        prompt="I need a file AUTHORS with the names Kim and Lee in it.",
        tools=("write_file", "run_shell_command"),
        arguments="AUTHORS",
        done=(holds("AUTHORS", "Kim", "Lee"),),
    ),
)
RUNNING = (
    FixedTask(
        id="run-total",
        project="data",
        prompt="Run scripts/total.py and tell me the number.",
        tools=_RUN,
        arguments=r"total",
        done=(says("446"),),
    ),
    FixedTask(
        id="run-tests",
        project="shop",
        prompt="Run the unit tests.",
        tools=_RUN,
        arguments=r"unittest|pytest|test",
        done=(answers, shows(r"\bOK\b|passed")),
    ),
    FixedTask(
        id="run-status",
        project="site",
        prompt="Show the git status.",
        tools=_RUN,
        arguments="git status",
        done=(answers, shows("clean|nothing to commit|master|main")),
    ),
    FixedTask(
        id="run-branch",
        project="site",
        prompt="On which git branch am I?",
        tools=_RUN,
        arguments="git (branch|status|rev-parse|symbolic-ref)",
        done=(says(r"\b(master|main)\b"),),
    ),
    FixedTask(
        id="run-lines",
        project="data",
        prompt="Count the lines of sales.csv.",
        tools=(*_RUN, "read_file"),
        arguments=r"sales\.csv",
        done=(says(r"\b(5|five)\b"),),
    ),
    FixedTask(
        id="run-delete",
        project="site",
        prompt="Delete notes.txt.",
        tools=_RUN,
        arguments=r"rm .*notes\.txt",
        done=(gone("notes.txt"), there("index.html")),
    ),
    FixedTask(
        id="run-rename",
        project="tool",
        prompt="Rename sample.txt to example.txt",
        tools=_RUN,
        arguments=r"mv .*sample\.txt .*example\.txt",
        done=(gone("sample.txt"), holds("example.txt", "quick brown fox")),
    ),
    FixedTask(
        id="run-folder",
        project="shop",
        prompt="Make an empty folder named backup.",
        tools=_RUN,
        arguments="mkdir .*backup",
        done=(there("backup"),),
    ),
)
CHANGING = (
    FixedTask(
        id="change-version",
        project="shop",
        prompt="Change the version in VERSION from 2.4.1 to 2.5.0",
        tools=_EDIT,
        arguments="VERSION",
        done=(holds("VERSION", r"^2\.5\.0"), lacks("VERSION", r"2\.4\.1")),
    ),
    FixedTask(
        id="change-colour",
        project="site",
        prompt="In css/print.css replace gray with black",
        tools=_EDIT,
        arguments=r"css/print\.css",
        done=(holds("css/print.css", "color: black"), lacks("css/print.css", "gray")),
    ),
    FixedTask(
        id="change-retries",
        project="data",
        prompt="Set retries to 5 in config.yaml; it is 3 now.",
        tools=_EDIT,
        arguments=r"config\.yaml",
        done=(holds("config.yaml", r"^retries: 5", "port: 5432"),),
    ),
    FixedTask(
        id="change-timeout",
        project="tool",
        prompt="In limits.py change TIMEOUT = 30 to TIMEOUT = 60",
        tools=_EDIT,
        arguments=r"limits\.py",
        done=(holds("limits.py", "^TIMEOUT = 60", "^MAX_WORDS = 1000"),),
    ),
)
TALKING = (
    FixedTask(id="talk-hi", project="shop", prompt="hi there", done=(untouched, answers)),
    FixedTask(
        id="talk-thanks",
        project="site",
        prompt="thank you, that was helpful",
        done=(untouched, answers),
    ),
    FixedTask(
        id="talk-http",
        project="data",
        prompt="What does HTTP stand for?",
        done=(untouched, says("hypertext transfer protocol")),
    ),
    FixedTask(
        id="talk-sum",
        project="tool",
        prompt="What is 12 plus 30?",
        done=(untouched, says(r"\b42\b")),
    ),
)

TASKS = (*WRITING, *RUNNING, *CHANGING, *TALKING)
