"""The four projects of the former tasks."""

from pathlib import Path

from evals.task import commit_files, write_files

SHOP = {
    "README.md": (
        "# Shop\n\nPrices and orders for a small shop.\n\n"
        "Run the checks with `python3 -m unittest`.\n"
    ),
    "VERSION": "2.4.1\n",
    "LICENSE": "MIT License\n\nCopyright 2024 The Shop\n",
    "shop/__init__.py": "",
    "shop/prices.py": (
        "TAX = 0.19\n\n\ndef gross(net):\n    return round(net * (1 + TAX), 2)\n\n\n"
        "def discount(price, percent):\n    # TODO: refuse negative percentages\n"
        "    return price - price * percent / 100\n"
    ),
    "shop/orders.py": (
        "from shop.prices import gross\n\n\nclass Order:\n    def __init__(self, items):\n"
        "        self.items = items\n\n    def total(self):\n"
        "        return sum(gross(price) for price in self.items)\n\n\n"
        "def is_large(order):\n    return order.total() > 500\n"
    ),
    "shop/stock.py": (
        "STOCK = {'apple': 30, 'pear': 12, 'plum': 0}\n\n\ndef available(name):\n"
        "    return STOCK.get(name, 0) > 0\n"
    ),
    "tests/test_prices.py": (
        "import unittest\n\nfrom shop.prices import discount, gross\n\n\n"
        "class Prices(unittest.TestCase):\n    def test_gross(self):\n"
        "        self.assertEqual(gross(100), 119.0)\n\n    def test_discount(self):\n"
        "        self.assertEqual(discount(200, 10), 180)\n"
    ),
    "tests/__init__.py": "",
    "config/settings.json": '{\n  "currency": "EUR",\n  "page_size": 25,\n  "beta": false\n}\n',
}
SITE = {
    "index.html": (
        "<html>\n<head><title>Blue Lake Hotel</title>\n"
        '<link rel="stylesheet" href="css/main.css"></head>\n'
        "<body>\n<h1>Welcome</h1>\n<p>Call us: 555-0142</p>\n</body>\n</html>\n"
    ),
    "about.html": (
        "<html><body><h1>About us</h1>\n<p>Founded in 1987 by Ada Berg.</p></body></html>\n"
    ),
    "css/main.css": "body { color: black; }\nh1 { color: navy; }\n",
    "css/print.css": "body { color: gray; }\n",
    "js/menu.js": (
        "function openMenu() {\n  console.log('menu open');\n}\n\n"
        "function closeMenu() {\n  document.body.classList.remove('menu');\n}\n"
    ),
    "js/forms.js": "function validate(form) {\n  return form.email.includes('@');\n}\n",
    "docs/deploy.md": "# Deploy\n\nCopy the files to web01 with rsync.\nThe port is 8443.\n",
    "notes.txt": "buy new photos\nask Tom about the menu\n",
    "old/banner.html": "<div>Summer 2019</div>\n",
}
DATA = {
    "sales.csv": "month,units\njan,120\nfeb,95\nmar,143\napr,88\n",
    "people.json": (
        '[\n  {"name": "Iris", "city": "Oslo"},\n  {"name": "Noah", "city": "Rome"}\n]\n'
    ),
    "logs/app.log": (
        "10:00 INFO start\n10:02 ERROR disk full on node7\n10:03 INFO retry\n"
        "10:05 ERROR timeout after 30s\n10:09 INFO stop\n"
    ),
    "logs/web.log": "GET / 200\nGET /admin 403\nGET /login 200\n",
    "scripts/total.py": (
        "import csv\n\nwith open('sales.csv') as file:\n"
        "    print(sum(int(row['units']) for row in csv.DictReader(file)))\n"
    ),
    "scripts/clean.sh": "#!/bin/sh\nrm -f logs/*.old\n",
    "config.yaml": "database:\n  host: db.internal\n  port: 5432\nretries: 3\n",
    "Makefile": "total:\n\tpython3 scripts/total.py\n",
    "tmp/cache.bin": "0000\n",
}
TOOL = {
    "README.md": "# Wordy\n\nCounts words.\n\nUsage: python3 wordy.py FILE\n",
    "wordy.py": (
        "import sys\n\nfrom counting import count_words\n\n\ndef main():\n"
        "    with open(sys.argv[1]) as file:\n        print(count_words(file.read()))\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    ),
    "counting.py": (
        "def count_words(text):\n    return len(text.split(' '))\n\n\n"
        "def longest(words):\n    best = ''\n    for word in words:\n"
        "        if len(word) < len(best):\n            best = word\n    return best\n\n\n"
        "def average_length(words):\n    return sum(len(word) for word in words) / len(words)\n"
    ),
    "check.py": (
        "from counting import count_words, longest\n\nassert count_words('a b') == 2\n"
        "assert longest(['ab', 'abcd', 'c']) == 'abcd', 'longest is wrong'\nprint('all good')\n"
    ),
    "sample.txt": "the quick brown fox\njumps over the dog\n",
    "limits.py": "MAX_WORDS = 1000\nMIN_WORDS = 1\nTIMEOUT = 30\n",
}
PROJECTS = {"shop": SHOP, "site": SITE, "data": DATA, "tool": TOOL}


def build(name: str, folder: Path) -> None:
    """Write the project into an empty folder, as a repository with one commit."""
    write_files(PROJECTS[name], folder)
    commit_files(folder)
