"""Measures of the source tree; `python -m tests.house` prints them."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "toolwire"
LATER = (
    *("toolwire.mcp.", "toolwire.mcp_server.", "toolwire.wire.jsonrpc."),
    *("toolwire.http_server.", "toolwire.wire.http1.", "toolwire.cli.mcp"),
    *("toolwire.app.servers.", "toolwire.app.user_input.", "toolwire.auth.loopback."),
    *("toolwire.app.system_prompt.", "toolwire.app.stored_sessions.", "toolwire.agent.hook_chain."),
    *("toolwire.app.event_sink.", "toolwire.app.equipment.", "toolwire.app.session_parts."),
    *("toolwire.sessions.summaries.", "toolwire.sessions.sqlite_journal."),
    *("toolwire.sessions.ordered_writes.", "toolwire.library.loop_thread."),
    *("toolwire.cli.session_follow.", "toolwire.wire.nesting.", "toolwire.context.imports."),
    *("toolwire.platform.", "toolwire.tools.shell.job_processes.", "toolwire.tools.shell.limits."),
    *("toolwire.config.merging.", "toolwire.history.pairing."),
    *("toolwire.cli.completion", "toolwire.settings_import.", "toolwire.cli.import_settings."),
    "toolwire.extensions.",
    *("toolwire.tui.", "toolwire.gateway.", "toolwire.cli.serve.", "toolwire.cli.keys."),
    "toolwire.dialects.paths.",
    *("toolwire.config.gateway.", "toolwire.cli.usage."),
    *(f"toolwire.embedded.small.{name}." for name in ("about", "evidence", "figures", "fitting")),
    *(f"toolwire.embedded.small.{name}." for name in ("honesty", "parsing", "programs", "project")),
    *(f"toolwire.embedded.small.{name}." for name in ("report", "steps", "values", "wording")),
    *("toolwire.telemetry.", "toolwire.config.telemetry."),
    *("toolwire.acp.", "toolwire.cli.acp.", "toolwire.config.acp.", "toolwire.ide."),
    *("toolwire.batch.", "toolwire.cli.batch", "toolwire.sessions.postgres"),
    # Containers are those of batches, and only the gateway passes bytes.
    *("toolwire.tools.shell.docker.", "toolwire.client.text_runs."),
    *("toolwire.cli.hooks.", "toolwire.cli.skills.", "toolwire.cli.custom_commands."),
    *("toolwire.cli.agents.", "toolwire.cli.checkpoints.", "toolwire.config.extensions."),
    *("toolwire.app.extensions.", "toolwire.app.subagents.", "toolwire.app.checkpoints."),
)
"""Rooms built after the move: the limits on files are for the tree that was moved."""
_EVENTS = "import sys, toolwire.agent.events; print(*(m for m in sys.modules if 'toolwire' in m))"


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def importers() -> dict[str, set[str]]:
    """The modules that import each module."""
    known = modules()
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        for imported in _imported(ast.parse(path.read_text(encoding="utf-8")), known):
            found[imported].add(name)
    return found


def _imported(tree: ast.Module, known: dict[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & known.keys()
            if inner - known.keys() and node.module in known:
                found.add(node.module)
    return found


def public_classes() -> dict[str, list[str]]:
    """The modules that define each public class name."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def shared_names() -> list[str]:
    """Public classes of one name in two packages of which one imports the other."""
    pairs = {
        (_package(user), _package(used)) for used, users in importers().items() for user in users
    }
    found: list[str] = []
    for name, homes in public_classes().items():
        packages = sorted({_package(home) for home in homes})
        if any((a, b) in pairs for a in packages for b in packages if a != b):
            found.append(f"{name}: {', '.join(homes)}")
    return found


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def measures() -> dict[str, int]:
    """The figures that show how easily the tree is read."""
    files = modules().values()
    texts = [path.read_text(encoding="utf-8") for path in files]
    counts = importers()
    moved = [name for name in modules() if not f"{name}.".startswith(LATER)]
    loaded = subprocess.run(
        [sys.executable, "-c", _EVENTS], capture_output=True, text=True, check=True
    )
    return {
        "source files": len(texts),
        "source files without later rooms": len(moved),
        "source lines": sum(text.count("\n") for text in texts),
        "modules with one importer": sum(len(counts[name]) == 1 for name in moved),
        "lines with the word told": sum(len(re.findall(r"(?m)^.*\btold\b", t)) for t in texts),
        "class names shared by packages that import each other": len(shared_names()),
        "modules loaded by agent.events": len(loaded.stdout.split()),
    }


if __name__ == "__main__":
    for what, figure in measures().items():
        print(f"{figure:7,} {what}")
    print(*shared_names(), sep="\n")
