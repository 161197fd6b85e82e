"""Twenty requests that need several calls, each with an outcome in files or in the answer."""

from evals.checks import gone, holds, lacks, runs, says, there, unchanged
from evals.former.fixed import FixedTask

TASKS = (
    FixedTask(
        id="fix-longest",
        project="tool",
        prompt="check.py fails because longest in counting.py is wrong. Find the bug and fix it.",
        done=(runs("python3", "check.py", prints="all good"), lacks("counting.py", "< len")),
    ),
    FixedTask(
        id="fix-count",
        project="tool",
        prompt="count_words in counting.py must split at all whitespace, not only spaces. Fix it.",
        done=(runs("python3", "wordy.py", "sample.txt", prints="8"),),
    ),
    FixedTask(
        id="guard-average",
        project="tool",
        prompt="average_length in counting.py crashes for an empty list. Make it return 0 then.",
        done=(
            runs("python3", "-c", "import counting; print(counting.average_length([]))"),
            runs(
                "python3",
                "-c",
                "import counting; print(counting.average_length(['ab']))",
                prints="2",
            ),
        ),
    ),
    FixedTask(
        id="answer-large",
        project="shop",
        prompt="From which total on is an order large? Find the function is_large.",
        done=(says("500"), unchanged),
    ),
    FixedTask(
        id="answer-tax",
        project="shop",
        prompt="Which tax rate does gross use, and in which file is it set?",
        done=(says(r"0?\.19|19 ?%", r"prices\.py"), unchanged),
    ),
    FixedTask(
        id="answer-errors",
        project="data",
        prompt="How many ERROR lines does logs/app.log have, and what went wrong first?",
        done=(says(r"\b(2|two)\b", "disk"), unchanged),
    ),
    FixedTask(
        id="answer-files",
        project="tool",
        prompt="Which Python files are here and what does wordy.py do?",
        done=(says(r"counting\.py", "count"), unchanged),
    ),
    FixedTask(
        id="answer-best-month",
        project="data",
        prompt="Which month sold the most units according to sales.csv?",
        done=(says(r"\bmar"), unchanged),
    ),
    FixedTask(
        id="rename-function",
        project="site",
        prompt="In js/menu.js rename the function openMenu to showMenu.",
        done=(holds("js/menu.js", r"function showMenu\("), lacks("js/menu.js", "openMenu")),
    ),
    FixedTask(
        id="change-title",
        project="site",
        prompt="Change the page title in index.html to Green Lake Hotel.",
        done=(
            holds("index.html", "<title>Green Lake Hotel</title>", "<h1>Welcome</h1>"),
            lacks("index.html", "Blue Lake"),
        ),
    ),
    FixedTask(
        id="change-port",
        project="data",
        prompt="Our database moved to port 6432. Change it where it is configured.",
        done=(holds("config.yaml", r"^  port: 6432", "^retries: 3"),),
    ),
    FixedTask(
        id="change-page-size",
        project="shop",
        prompt="Find the setting page_size and double it.",
        done=(holds("config/settings.json", r'"page_size": 50', '"currency": "EUR"'),),
    ),
    FixedTask(
        id="add-plum",
        project="shop",
        prompt="Set the stock of plum to 7 in the file where the stock is kept.",
        done=(
            runs("python3", "-c", "from shop.stock import STOCK; print(STOCK)", prints="'plum': 7"),
            holds("shop/stock.py", "'apple': 30"),
        ),
    ),
    FixedTask(
        id="add-function",
        project="shop",
        prompt="Add a function net(gross_price) to shop/prices.py that takes the tax off again.",
        done=(
            runs(
                "python3", "-c", "from shop.prices import net; print(round(net(119)))", prints="100"
            ),
            runs("python3", "-m", "unittest", "-q"),
        ),
    ),
    FixedTask(
        id="remove-todo",
        project="shop",
        prompt="Find the TODO comment in the code and delete that line.",
        done=(lacks("shop/prices.py", "TODO"), runs("python3", "-m", "unittest", "-q")),
    ),
    FixedTask(
        id="remove-old",
        project="site",
        prompt="Look into the old folder, then delete it with everything in it.",
        done=(gone("old"), there("index.html"), there("css/main.css")),
    ),
    FixedTask(
        id="copy-value",
        project="site",
        prompt="Read the port in docs/deploy.md and write it alone into a new file port.txt.",
        done=(holds("port.txt", r"^\s*8443\s*$"),),
    ),
    FixedTask(
        id="summary-file",
        project="data",
        prompt="Write the names of the people in people.json into names.txt, one a line.",
        done=(holds("names.txt", r"^Iris\s*$", r"^Noah\s*$"),),
    ),
    FixedTask(
        id="move-log",
        project="data",
        prompt="Make a folder archive and move logs/web.log into it.",
        done=(holds("archive/web.log", "GET /admin 403"), gone("logs/web.log")),
    ),
    FixedTask(
        id="run-and-save",
        project="data",
        prompt="Run scripts/total.py and save its output in total.txt.",
        done=(holds("total.txt", r"^446\s*$"),),
    ),
)
