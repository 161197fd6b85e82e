"""Our own system prompt: which texts belong together in which situation."""

from collections.abc import Iterator
from functools import cache
from pkgutil import get_data

import msgspec

from toolwire.agent.rules import Mode

_SEARCHING = frozenset({"search_file_content", "glob"})
_EDITING = frozenset({"replace", "write_file", "apply_patch"})
_WEB = frozenset({"web_fetch", "google_web_search"})
_SHELL = "run_shell_command"


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the prompt depends on; the same facts give the same bytes."""

    tools: tuple[str, ...]
    """Names of the offered tools; their order does not matter."""
    git: bool = False
    sandbox: str = ""
    """What commands are kept in, in a word; empty for nothing."""
    interactive: bool = True
    mode: Mode = Mode.DEFAULT


def system_prompt(facts: PromptFacts) -> str:
    """The prompt for these facts."""
    prompt = ""
    for name in _chosen(facts):
        text = _words(name)
        # A section begins with its heading; single lines go on with the list above them.
        gap = "\n\n" if text.startswith("#") else "\n"
        prompt += (gap if prompt else "") + text
    return prompt.replace("{sandbox}", facts.sandbox)


def _chosen(facts: PromptFacts) -> Iterator[str]:
    tools, planning = frozenset(facts.tools), facts.mode is Mode.PLAN
    yield "role"
    if planning:
        yield from ("plan", "working.plan")
    else:
        yield "working"
    if tools:
        yield from _tool_sections(tools, facts)
    if not planning:
        yield "care"
        yield "git" if facts.git else "no_git"
    yield "interactive" if facts.interactive else "headless"
    yield "style"


def _tool_sections(tools: frozenset[str], facts: PromptFacts) -> Iterator[str]:
    planning = facts.mode is Mode.PLAN
    yield "tools"
    if tools & _SEARCHING:
        yield "tools.search"
    if tools & _EDITING and not planning:
        yield "tools.edit"
    if "todo" in tools:
        yield "tools.todo"
    if tools & _WEB:
        yield "tools.web"
    if "save_memory" in tools and not planning:
        yield "tools.save_memory"
    if "ask_user" in tools and facts.interactive:
        yield "tools.ask_user"
    if facts.interactive and not planning:
        yield f"approval.{facts.mode}"
    if _SHELL in tools and not planning:
        yield "commands"
        yield "sandbox" if facts.sandbox else "no_sandbox"


@cache
def _words(name: str) -> str:
    return (get_data("toolwire.agent.prompt", f"{name}.md") or b"").decode().strip()
