"""The page about the tools, made from the tools: `python -m toolwire.tools.document`."""

import sys
from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.tools.registry import ADDED, Registry, builtins
from toolwire.tools.spec import Tool

_HEAD = """# Tools

Made by `python -m toolwire.tools.document > docs/tools.md`; do not edit by hand.

The first tools below are those of gemini-cli, with its names, parameters and result texts; the
rest are toolwire's own. `toolwire tools list` shows what is offered here and now, and
`toolwire tools call NAME JSON` runs one. The policy rules on a tool's *effect*.
"""
_ENVIRONMENT = """## Variables that commands get
Every program that toolwire starts (shell commands, discovered tools, searches) gets an allowlist
of your variables: `PATH`, `HOME`, the locale, the terminal, proxies and certificates, folders and
versions of toolchains (`VIRTUAL_ENV`, `NVM_DIR`, `JAVA_HOME`, `GOPATH`, `CARGO_HOME`, …), git's
author and committer, the flags of CI services. Nothing else is inherited, whatever its name: not
`STRIPE_SK`, not `DATABASE_URL`. Neither are variables that make a program run their value
(`BASH_ENV`, `LD_PRELOAD`, `GIT_CONFIG_*`, `NODE_OPTIONS`, `PYTHONPATH`, `EDITOR`), nor
`SSH_AUTH_SOCK` and `DBUS_SESSION_BUS_ADDRESS`. An allowlisted variable is left out if its value
holds or looks like a secret, such as a proxy with a password.

Name what your commands need in your own `config.toml`; a project's settings cannot:

```toml
[tools]
environment = ["PYTHONPATH", "SSH_AUTH_SOCK", "MYAPP_*"]
```

An exact name is passed on even if its value looks like a secret, but never with a credential that
toolwire uses itself; of a prefix, values that look like secrets are left out.
"""
_LIMITS = """## Limits

- **Patterns.** Globs, ignore files and path rules are matched at a cost of pattern times path. All
  globs of a call together have at most 65,536 letters with their braces spelled out; one with
  groups such as `!(a|b)` has at most 1,024 letters, 64 groups and 4 negations. An ignore file above
  256 KB has no rules, and a line in one above 4,096 letters fits nothing.
- **Searches.** A pattern has at most 10,000 letters, a search takes at most 60 seconds. Where
  neither ripgrep nor git can search, a pattern with quantifiers or groups is tried in a process of
  its own, which is ended at that time or when the call is cancelled.
- **Pages.** `web_fetch` takes 10 seconds, 5 MB (unpacked) and 10 redirects for a page. Each address
  that it connects to is checked at that moment; proxies of the environment are not used. Only
  encodings that browsers read and `gzip` or `deflate` are understood.
- **Cancelling.** Ctrl-C ends `toolwire run` within a second, in the middle of any call; a second
  Ctrl-C ends it at once.
"""


_OWN = """## Tools of your own

- **In Python**: a typed function, made a tool by `toolwire.tool` (see [library](library.md)), and
  named by an entry point of the group `toolwire.tools` (one tool, or a list of them).
- **In any language**: in your own `config.toml`, `discovery_command` under `[tools]` prints a JSON
  list of declarations, and `call_command` is run with the tool's name, the arguments as JSON on
  standard input.
- **Lists** under `[tools]`: `core` names all tools that are offered, `exclude` those that are not,
  `allowed` those that need no approval. An entry is a name, or `run_shell_command(git status)` for
  commands that begin so. A project's `.toolwire/config.toml` may only exclude.
"""
SETTINGS = {
    "core": ("[]", "All tools that are offered; an empty list offers every one."),
    "exclude": ("[]", "Tools that are not offered. A project may add to the list."),
    "allowed": ("[]", "Tools that need no approval."),
    "discovery_command": ('""', "Command that prints the declarations of tools, see below."),
    "call_command": ('""', "Command that runs a tool so declared."),
    "output_limit": (
        "400000",
        "Characters of a result that a model is sent whole; of a longer one it gets both ends and "
        "the name of a file with all of it. 0 is no limit. A project may set it.",
    ),
    "output_characters": ("400000", "Characters of a command's output that are held in memory."),
    "output_lines": ("0", "Lines of a command's output that a model is sent; 0 is all."),
    "shell_seconds": ("3600.0", "Seconds a command may take before it is ended; 0 is no limit."),
    "shell_idle_seconds": ("300.0", "Seconds a command may print nothing; 0 is no limit."),
    "plain_edit": (
        "false",
        "Offers `replace` with `expected_replacements` and without `instruction`.",
    ),
    "edit_correction": (
        "false",
        "Asks the model once what an edit meant whose text is not in the file.",
    ),
    "search_with": (
        "not set",
        "`rg`, `git` or `own`: how `search_file_content` searches. Not set, the first that works.",
    ),
    "allow_private_addresses": (
        "false",
        "Lets `web_fetch` read from loopback and private networks.",
    ),
    "sandbox": (
        '"auto"',
        "How commands are confined: `auto`, `workspace-write`, `read-only`, `off` (`none` is the "
        "same), see [sandbox](sandbox.md). A project may only tighten it.",
    ),
    "sandbox_network": (
        "false",
        "Lets confined commands use the network. A project may only forbid it.",
    ),
    "sandbox_writable": ("[]", "Further folders that confined commands may write to."),
    "side_model": ('""', "Name of the model in the errors of searches and fetches."),
    "memory_file": ('""', "File of `save_memory`, from your home folder."),
    "environment": ("[]", "Further variables that commands get, see below."),
}
"""The `[tools]` table: the default of each setting, and what it does."""


def page(registry: Registry) -> str:
    """The whole page."""
    sections = (_section(tool) for tool in registry)
    parts = [_HEAD, _table(registry), *sections, _settings(), _ENVIRONMENT, _LIMITS, _OWN]
    return "\n".join(parts)


def _table(registry: Registry) -> str:
    rows = (
        f"| [`{one.name}`](#{one.name}) | {one.effect} | {_first_sentence(one.description)} |"
        for one in registry
    )
    return "\n".join(("| tool | effect | what it does |", "|---|---|---|", *rows, ""))


def _settings() -> str:
    rows = (f"| `{name}` | {value} | {text} |" for name, (value, text) in SETTINGS.items())
    head = ("## Settings", "Under `[tools]` in `config.toml`; those a project may not make are")
    more = ("read from your own file only.", "", "| setting | default | meaning |", "|---|---|---|")
    return "\n".join((*head, *more, *rows, ""))


def _first_sentence(text: str) -> str:
    line = text.strip().partition("\n")[0]
    sentence, stop, _ = line.partition(". ")
    return _cell(sentence + stop.strip())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _section(tool: Tool) -> str:
    own = " Toolwire's own." if tool.name in ADDED else ""
    also = (
        f" Also called {', '.join(f'`{name}`' for name in tool.aliases)}." if tool.aliases else ""
    )
    lines = [f"## {tool.name}", f"Effect: {tool.effect}.{own}{also}", "", *_parameters(tool), ""]
    return "\n".join(lines)


def _parameters(tool: Tool) -> list[str]:
    properties = cast(dict[str, JsonObject], tool.parameters.get("properties", {}))
    required = cast(list[str], tool.parameters.get("required", []))
    if not properties:
        return ["It takes no arguments."]
    rows = [
        f"| `{name}`{' *' if name in required else ''} | {_type(schema)} | "
        f"{_cell(str(schema.get('description', '')))} |"
        for name, schema in properties.items()
    ]
    return ["| argument (* required) | type | meaning |", "|---|---|---|", *rows]


def _type(schema: JsonObject) -> str:
    kind: Any = schema.get("type", "object" if "$ref" in schema else "any")
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(kind)


if __name__ == "__main__":
    sys.stdout.write(page(builtins()))
