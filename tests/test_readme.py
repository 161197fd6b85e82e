import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
DOCS = Path(__file__).parents[1]


def test_the_library_example_runs_and_prints_what_it_says() -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code[1], "README.md", "exec"), {})
    printed = shown.getvalue().splitlines()
    assert printed == ["read tool_calls", "['seed']"]
    assert all(f"`{line}`" in README for line in printed)


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [link for link in links if "://" not in link and not (DOCS / link).exists()]
    assert missing == []
