"""Perfect outcomes of the former tasks, to test their checks."""

from evals.former.projects import PROJECTS
from evals.task import Solution

_REPLIES = {
    "list-root": "README.md, VERSION, LICENSE, shop, tests and config.",
    "list-css": "main.css and print.css",
    "list-logs": "app.log and web.log",
    "list-scripts": "total.py and clean.sh",
    "list-tests": "test_prices.py and __init__.py",
    "list-js": "It has 2 files.",
    "read-version": "It is 2.4.1.",
    "read-readme": "It counts words.",
    "read-config": "Port 5432.",
    "read-settings": "EUR",
    "read-about": "Ada Berg",
    "read-license": "The MIT license.",
    "read-deploy": "web01",
    "read-makefile": "total:\n\tpython3 scripts/total.py",
    "read-people": "In Rome.",
    "read-limits": "It is 30.",
    "read-stock": "There are 12.",
    "read-notes": "Ask Tom.",
    "search-todo": "There is one in shop/prices.py.",
    "search-gross": "In shop/orders.py and in the tests.",
    "search-class": "In shop/orders.py.",
    "search-error": "10:02 ERROR disk full on node7, 10:05 ERROR timeout after 30s",
    "search-phone": "index.html",
    "search-console": "js/menu.js",
    "search-navy": "css/main.css",
    "search-403": "GET /admin",
    "search-import": "wordy.py and check.py",
    "search-max": "In limits.py.",
    "find-python": "wordy.py, counting.py, check.py, limits.py",
    "find-html": "index.html, about.html, old/banner.html",
    "find-json": "Yes, config/settings.json.",
    "find-logs": "logs/app.log, logs/web.log",
    "find-shell": "Yes, scripts/clean.sh.",
    "find-markdown": "docs/deploy.md",
    "find-tests": "tests/test_prices.py",
    "find-csv": "sales.csv",
    "run-total": "It prints 446.",
    "run-tests": "Ran 2 tests: OK",
    "run-status": "On branch main, nothing to commit.",
    "run-branch": "On main.",
    "run-lines": "It has 5 lines.",
    "talk-hi": "Hello!",
    "talk-thanks": "You are welcome.",
    "talk-http": "Hypertext Transfer Protocol",
    "talk-sum": "42",
    "answer-large": "Above 500.",
    "answer-tax": "19 %, set in shop/prices.py.",
    "answer-errors": "2; the first was: disk full on node7.",
    "answer-files": "wordy.py, counting.py, check.py and limits.py; wordy.py counts words.",
    "answer-best-month": "March, mar: 143.",
}
_NEW_FILES: dict[str, dict[str, str | None]] = {
    "write-gitignore": {".gitignore": "__pycache__/\n"},
    "write-todo": {"todo.md": "renew the certificate\n"},
    "write-greet": {"greet.py": "def greet(name):\n    return 'Hello, ' + name\n"},
    "write-env": {".env": "MODE=test\n"},
    "write-contact": {"contact.html": "<h1>Contact</h1>\n"},
    "write-json": {"debug.json": '{"debug": true}\n'},
    "write-square": {"shop/maths.py": "def square(x):\n    return x * x\n"},
    "write-authors": {"AUTHORS": "Kim\nLee\n"},
    "run-delete": {"notes.txt": None},
    "run-rename": {"sample.txt": None, "example.txt": PROJECTS["tool"]["sample.txt"]},
    "run-folder": {"backup/": ""},
    "remove-old": {"old": None},
    "copy-value": {"port.txt": "8443\n"},
    "summary-file": {"names.txt": "Iris\nNoah\n"},
    "move-log": {"logs/web.log": None, "archive/web.log": PROJECTS["data"]["logs/web.log"]},
    "run-and-save": {"total.txt": "446\n"},
}
_EDITS: dict[str, tuple[str, str, str]] = {
    "change-version": ("VERSION", "2.4.1", "2.5.0"),
    "change-colour": ("css/print.css", "gray", "black"),
    "change-retries": ("config.yaml", "retries: 3", "retries: 5"),
    "change-timeout": ("limits.py", "TIMEOUT = 30", "TIMEOUT = 60"),
    "fix-longest": ("counting.py", "< len", "> len"),
    "fix-count": ("counting.py", "split(' ')", "split()"),
    "guard-average": ("counting.py", "/ len(words)", "/ len(words) if words else 0"),
    "rename-function": ("js/menu.js", "openMenu", "showMenu"),
    "change-title": ("index.html", "Blue Lake", "Green Lake"),
    "change-port": ("config.yaml", "5432", "6432"),
    "change-page-size": ("config/settings.json", "25", "50"),
    "add-plum": ("shop/stock.py", "'plum': 0", "'plum': 7"),
    "add-function": (
        "shop/prices.py",
        "def discount",
        "def net(gross_price):\n    return gross_price / (1 + TAX)\n\n\ndef discount",
    ),
    "remove-todo": ("shop/prices.py", "    # TODO: refuse negative percentages\n", ""),
}


def solution(name: str, project: str) -> Solution:
    """What a perfect run of the task leaves behind."""
    if name in _EDITS:
        path, old, new = _EDITS[name]
        text = PROJECTS[project][path]
        return Solution(files={path: text.replace(old, new)}, reply=f"I updated {path}.")
    if name in _NEW_FILES:
        return Solution(files=_NEW_FILES[name], reply="It is done.")
    return Solution(reply=_REPLIES[name])
