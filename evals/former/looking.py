"""Requests that one look answers: listing, reading, searching, finding."""

import msgspec

from evals.checks import answers, says, shows, unchanged
from evals.former.fixed import FixedTask

_READ = ("read_file", "run_shell_command", "read_many_files")
_LIST = ("list_directory", "run_shell_command", "glob")
_SEARCH = ("search_file_content", "run_shell_command")
_FIND = ("glob", "run_shell_command", "list_directory")


LISTING = (
    FixedTask(
        id="list-root",
        project="shop",
        prompt="What is in this directory?",
        tools=_LIST,
        arguments=r'"path": "\.?"|ls|\*',
        done=(shows("README.md", "VERSION"), answers),
    ),
    FixedTask(
        id="list-css",
        project="site",
        prompt="List the contents of the css folder.",
        tools=_LIST,
        arguments="css",
        done=(shows("main.css", "print.css"), answers),
    ),
    FixedTask(
        id="list-logs",
        project="data",
        prompt="Which logs do we keep in logs/?",
        tools=_LIST,
        arguments="logs",
        done=(says(r"app\.log", r"web\.log"),),
    ),
    FixedTask(
        id="list-scripts",
        project="data",
        prompt="ls scripts",
        tools=_LIST,
        arguments="scripts",
        done=(shows("total.py", "clean.sh"), answers),
    ),
    FixedTask(
        id="list-tests",
        project="shop",
        prompt="Show me what's inside tests",
        tools=_LIST,
        arguments="tests",
        done=(shows("test_prices.py"), answers),
    ),
    FixedTask(
        id="list-js",
        project="site",
        prompt="How many JavaScript files does the js folder have?",
        tools=_LIST,
        arguments="js",
        done=(says(r"\b(2|two)\b"),),
    ),
)
READING = (
    FixedTask(
        id="read-version",
        project="shop",
        prompt="Which version is this? It is in the VERSION file.",
        tools=_READ,
        arguments="VERSION",
        done=(says(r"2\.4\.1"),),
    ),
    FixedTask(
        id="read-readme",
        project="tool",
        prompt="Read README.md and tell me what this program is for.",
        tools=_READ,
        arguments=r"README\.md",
        done=(says("count"),),
    ),
    FixedTask(
        id="read-config",
        project="data",
        prompt="What port does the database in config.yaml use?",
        tools=(*_READ, *_SEARCH),
        arguments=r"config\.yaml|port",
        done=(says("5432"),),
    ),
    FixedTask(
        id="read-settings",
        project="shop",
        prompt="What is the currency in config/settings.json?",
        tools=(*_READ, *_SEARCH),
        arguments=r"config/settings\.json|currency",
        done=(says("EUR"),),
    ),
    FixedTask(
        id="read-about",
        project="site",
        prompt="Who founded the hotel according to about.html?",
        tools=(*_READ, *_SEARCH),
        arguments=r"about\.html|[Ff]ound",
        done=(says("Ada Berg"),),
    ),
    FixedTask(
        id="read-license",
        project="shop",
        prompt="Under which licence is this project? Look into LICENSE.",
        tools=_READ,
        arguments="LICENSE",
        done=(says("MIT"),),
    ),
    FixedTask(
        id="read-deploy",
        project="site",
        prompt="To which host do we deploy? docs/deploy.md says so.",
        tools=_READ,
        arguments=r"docs/deploy\.md",
        done=(says("web01"),),
    ),
    FixedTask(
        id="read-makefile",
        project="data",
        prompt="Show the Makefile.",
        tools=_READ,
        arguments="Makefile",
        done=(shows(r"scripts/total\.py"), answers),
    ),
    FixedTask(
        id="read-people",
        project="data",
        prompt="In which city does Noah live? See people.json.",
        tools=(*_READ, *_SEARCH),
        arguments=r"people\.json|Noah",
        done=(says("Rome"),),
    ),
    FixedTask(
        id="read-limits",
        project="tool",
        prompt="What is the timeout set in limits.py?",
        tools=(*_READ, *_SEARCH),
        arguments=r"limits\.py|TIMEOUT",
        done=(says(r"\b30\b"),),
    ),
    FixedTask(
        id="read-stock",
        project="shop",
        prompt="Open shop/stock.py: how many pears are in stock?",
        tools=_READ,
        arguments=r"shop/stock\.py",
        done=(says(r"\b12\b"),),
    ),
    FixedTask(
        id="read-notes",
        project="site",
        prompt="Whom should I ask about the menu? I wrote it into notes.txt.",
        tools=(*_READ, *_SEARCH),
        arguments=r"notes\.txt|menu",
        done=(says("Tom"),),
    ),
)
SEARCHING = (
    FixedTask(
        id="search-todo",
        project="shop",
        prompt="Find all TODO comments.",
        tools=_SEARCH,
        arguments="TODO",
        done=(says(r"prices\.py"),),
    ),
    FixedTask(
        id="search-gross",
        project="shop",
        prompt="In which files is gross used?",
        tools=_SEARCH,
        arguments="gross",
        done=(says(r"orders\.py"),),
    ),
    FixedTask(
        id="search-class",
        project="shop",
        prompt="Where is the class Order defined?",
        tools=_SEARCH,
        arguments="Order",
        done=(says(r"orders\.py"),),
    ),
    FixedTask(
        id="search-error",
        project="data",
        prompt="Search the logs for ERROR.",
        tools=_SEARCH,
        arguments="ERROR",
        done=(shows("disk full", "timeout after 30s"), answers),
    ),
    FixedTask(
        id="search-phone",
        project="site",
        prompt="Which page mentions the phone number 555-0142?",
        tools=_SEARCH,
        arguments="555-0142",
        done=(says(r"index\.html"),),
    ),
    FixedTask(
        id="search-console",
        project="site",
        prompt="grep for console.log",
        tools=_SEARCH,
        arguments=r"console",
        done=(says(r"menu\.js"),),
    ),
    FixedTask(
        id="search-navy",
        project="site",
        prompt="Where do we use the colour navy?",
        tools=_SEARCH,
        arguments="navy",
        done=(says(r"main\.css"),),
    ),
    FixedTask(
        id="search-403",
        project="data",
        prompt="Which request got status 403?",
        tools=(*_SEARCH, *_READ),
        arguments=r"403|web\.log",
        done=(says("/admin"),),
    ),
    FixedTask(
        id="search-import",
        project="tool",
        prompt="Which files import from counting?",
        tools=_SEARCH,
        arguments="counting",
        done=(says(r"wordy\.py", r"check\.py"),),
    ),
    FixedTask(
        id="search-max",
        project="tool",
        prompt="Find where MAX_WORDS is set.",
        tools=_SEARCH,
        arguments="MAX_WORDS",
        done=(says(r"limits\.py"),),
    ),
)
FINDING = (
    FixedTask(
        id="find-python",
        project="tool",
        prompt="Which Python files are there?",
        tools=_FIND,
        arguments=r"\.py|ls|\"\.\"",
        done=(shows("wordy.py", "counting.py", "check.py"), answers),
    ),
    FixedTask(
        id="find-html",
        project="site",
        prompt="Find all HTML files, also in subfolders.",
        tools=_FIND,
        arguments=r"html",
        done=(shows(r"index\.html", r"old/banner\.html"), answers),
    ),
    FixedTask(
        id="find-json",
        project="shop",
        prompt="Is there a JSON file somewhere?",
        tools=_FIND,
        arguments="json",
        done=(says(r"settings\.json"),),
    ),
    FixedTask(
        id="find-logs",
        project="data",
        prompt="Find every file that ends in .log",
        tools=_FIND,
        arguments=r"\.log|logs",
        done=(shows(r"app\.log", r"web\.log"), answers),
    ),
    FixedTask(
        id="find-shell",
        project="data",
        prompt="Do we have any shell scripts?",
        tools=_FIND,
        arguments=r"\.sh|scripts",
        done=(says(r"clean\.sh"),),
    ),
    FixedTask(
        id="find-markdown",
        project="site",
        prompt="Where is our Markdown documentation?",
        tools=(*_FIND, *_SEARCH),
        arguments=r"md|docs|Markdown",
        done=(says(r"deploy\.md|docs"),),
    ),
    FixedTask(
        id="find-tests",
        project="shop",
        prompt="Find the files whose names begin with test_",
        tools=_FIND,
        arguments="test",
        done=(says(r"test_prices"),),
    ),
    FixedTask(
        id="find-csv",
        project="data",
        prompt="What CSV files exist here?",
        tools=_FIND,
        arguments=r"csv|ls|\"\.\"",
        done=(says(r"sales\.csv"),),
    ),
)

# A look leaves everything as it is.
TASKS = tuple(
    msgspec.structs.replace(task, done=(*task.done, unchanged))
    for task in (*LISTING, *READING, *SEARCHING, *FINDING)
)
