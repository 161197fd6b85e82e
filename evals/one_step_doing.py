"""Requests that one act answers, or a word: writing, running, changing, talking."""

from evals.task import Task, answers, gone, holds, lacks, says, shows, there, untouched

_RUN = ("run_shell_command",)
_EDIT = ("replace", "run_shell_command", "write_file", "read_file", "apply_patch")

WRITING = (
    Task(
        id="write-gitignore",
        project="tool",
        prompt="Create a .gitignore that ignores __pycache__",
        tools=("write_file", "run_shell_command"),
        arguments="gitignore",
        done=(holds(".gitignore", "__pycache__"),),
    ),
    Task(
        id="write-todo",
        project="site",
        prompt="Write a file todo.md with the line: renew the certificate",
        tools=("write_file", "run_shell_command"),
        arguments="todo.md",
        done=(holds("todo.md", "renew the certificate"),),
    ),
    Task(
        id="write-greet",
        project="tool",
        prompt="Make greet.py with a function greet(name) that returns 'Hello, ' plus the name.",
        tools=("write_file",),
        arguments="greet.py",
        done=(holds("greet.py", r"def greet\(name", "return", "Hello, "),),
    ),
    Task(
        id="write-env",
        project="data",
        prompt="Add a new file .env containing MODE=test",
        tools=("write_file", "run_shell_command"),
        arguments=r"\.env",
        done=(holds(".env", "^MODE=test"),),
    ),
    Task(
        id="write-contact",
        project="site",
        prompt="Create contact.html with a heading that says Contact",
        tools=("write_file",),
        arguments="contact.html",
        done=(holds("contact.html", r"<h[1-6][^>]*>\s*Contact"),),
    ),
    Task(
        id="write-json",
        project="data",
        prompt='Save {"debug": true} to debug.json',
        tools=("write_file", "run_shell_command"),
        arguments="debug.json",
        done=(holds("debug.json", r'"debug":\s*true'),),
    ),
    Task(
        id="write-square",
        project="shop",
        prompt="Create shop/maths.py with a function square(x).",
        tools=("write_file",),
        arguments="shop/maths.py",
        done=(holds("shop/maths.py", r"def square\(x", r"x \* x|x \*\* 2|x\*x|x\*\*2|pow"),),
    ),
    Task(
        id="write-authors",
        project="shop",
        prompt="I need a file AUTHORS with the names Kim and Lee in it.",
        tools=("write_file", "run_shell_command"),
        arguments="AUTHORS",
        done=(holds("AUTHORS", "Kim", "Lee"),),
    ),
)
RUNNING = (
    Task(
        id="run-total",
        project="data",
        prompt="Run scripts/total.py and tell me the number.",
        tools=_RUN,
        arguments=r"total",
        done=(says("446"),),
    ),
    Task(
        id="run-tests",
        project="shop",
        prompt="Run the unit tests.",
        tools=_RUN,
        arguments=r"unittest|pytest|test",
        done=(answers, shows(r"\bOK\b|passed")),
    ),
    Task(
        id="run-status",
        project="site",
        prompt="Show the git status.",
        tools=_RUN,
        arguments="git status",
        done=(answers, shows("clean|nothing to commit|master|main")),
    ),
    Task(
        id="run-branch",
        project="site",
        prompt="On which git branch am I?",
        tools=_RUN,
        arguments="git (branch|status|rev-parse|symbolic-ref)",
        done=(says(r"\b(master|main)\b"),),
    ),
    Task(
        id="run-lines",
        project="data",
        prompt="Count the lines of sales.csv.",
        tools=(*_RUN, "read_file"),
        arguments=r"sales\.csv",
        done=(says(r"\b(5|five)\b"),),
    ),
    Task(
        id="run-delete",
        project="site",
        prompt="Delete notes.txt.",
        tools=_RUN,
        arguments=r"rm .*notes\.txt",
        done=(gone("notes.txt"), there("index.html")),
    ),
    Task(
        id="run-rename",
        project="tool",
        prompt="Rename sample.txt to example.txt",
        tools=_RUN,
        arguments=r"mv .*sample\.txt .*example\.txt",
        done=(gone("sample.txt"), holds("example.txt", "quick brown fox")),
    ),
    Task(
        id="run-folder",
        project="shop",
        prompt="Make an empty folder named backup.",
        tools=_RUN,
        arguments="mkdir .*backup",
        done=(there("backup"),),
    ),
)
CHANGING = (
    Task(
        id="change-version",
        project="shop",
        prompt="Change the version in VERSION from 2.4.1 to 2.5.0",
        tools=_EDIT,
        arguments="VERSION",
        done=(holds("VERSION", r"^2\.5\.0"), lacks("VERSION", r"2\.4\.1")),
    ),
    Task(
        id="change-colour",
        project="site",
        prompt="In css/print.css replace gray with black",
        tools=_EDIT,
        arguments=r"css/print\.css",
        done=(holds("css/print.css", "color: black"), lacks("css/print.css", "gray")),
    ),
    Task(
        id="change-retries",
        project="data",
        prompt="Set retries to 5 in config.yaml; it is 3 now.",
        tools=_EDIT,
        arguments=r"config\.yaml",
        done=(holds("config.yaml", r"^retries: 5", "port: 5432"),),
    ),
    Task(
        id="change-timeout",
        project="tool",
        prompt="In limits.py change TIMEOUT = 30 to TIMEOUT = 60",
        tools=_EDIT,
        arguments=r"limits\.py",
        done=(holds("limits.py", "^TIMEOUT = 60", "^MAX_WORDS = 1000"),),
    ),
)
TALKING = (
    Task(id="talk-hi", project="shop", prompt="hi there", done=(untouched, answers)),
    Task(
        id="talk-thanks",
        project="site",
        prompt="thank you, that was helpful",
        done=(untouched, answers),
    ),
    Task(
        id="talk-http",
        project="data",
        prompt="What does HTTP stand for?",
        done=(untouched, says("hypertext transfer protocol")),
    ),
    Task(
        id="talk-sum",
        project="tool",
        prompt="What is 12 plus 30?",
        done=(untouched, says(r"\b42\b")),
    ),
)

TASKS = (*WRITING, *RUNNING, *CHANGING, *TALKING)
