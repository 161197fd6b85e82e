"""Session exports: complete JSON, or a Markdown or HTML transcript."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

import msgspec

from toolwire.sessions import records
from toolwire.sessions.replay import replay
from toolwire.sessions.store import Contents
from toolwire.sessions.transcript import (
    Block,
    Called,
    Note,
    TextBlock,
    Thoughts,
    Transcript,
    TurnBegan,
    transcript,
    when,
)

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #59636e; --line: #d1d9e0;
  --box: #f6f8fa; --you: #0969da; --bad: #cf222e; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --soft: #9198a1;
  --line: #3d444d; --box: #151b23; --you: #4493f8; --bad: #f85149; --good: #3fb950; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--back);
  color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; color: var(--soft); margin-top: 2.5rem;
  border-top: 1px solid var(--line); padding-top: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 1rem 0; }
.you { border-left: 3px solid var(--you); padding-left: .8rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0;
  padding: .3rem .7rem; }
summary { cursor: pointer; overflow-wrap: anywhere; } .state { color: var(--soft); }
.failed .state { color: var(--bad); }
pre { background: var(--box); padding: .6rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; }
ins { color: var(--good); text-decoration: none; } del { color: var(--bad); text-decoration: none; }
.note { color: var(--soft); font-style: italic; }
"""


def to_json(contents: Contents) -> str:
    """All records in full, and the session they replay to."""
    past = replay(contents.events)
    head = {
        "id": contents.id,
        "project": contents.project,
        "title": past.title,
        "model": past.model,
        "cwd": past.cwd,
        "forked_from": past.forked_from,
        "turns": past.turns,
        "totals": past.totals,
        "damage": contents.salvaged.message if contents.salvaged else None,
        "skipped": contents.skipped.message if contents.skipped else None,
        "records": [
            {
                "seq": record.seq,
                "at": _iso(record.at),
                "event": msgspec.Raw(records.encode(record.event)),
            }
            for record in contents.records
        ],
    }
    return msgspec.json.encode(head).decode() + "\n"


def to_markdown(contents: Contents) -> str:
    """Transcript in Markdown, with calls in collapsed details blocks."""
    shown = _transcript(contents)
    facts = "\n".join(f"- {name}: {_inline(value)}" for name, value in shown.facts)
    blocks = "\n\n".join(_markdown(block) for block in shown.blocks)
    return f"# {_inline(shown.title)}\n\n{facts}\n\n{blocks}\n"


def to_html(contents: Contents) -> str:
    """Transcript as one self-contained HTML file without scripts."""
    shown = _transcript(contents)
    facts = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in shown.facts
    )
    blocks = "\n".join(_html(block) for block in shown.blocks)
    title = escape(shown.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n<dl>{facts}</dl>\n{blocks}\n</body>\n</html>\n"
    )


FORMATS = {"json": to_json, "markdown": to_markdown, "html": to_html}


def _transcript(contents: Contents) -> Transcript:
    return transcript(contents.id, contents.records, "; ".join(contents.notices))


def _iso(at: float) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return None


def _markdown(block: Block) -> str:
    match block:
        case TurnBegan():
            return f"## Turn {block.number} · {when(block.at)}"
        case TextBlock(who="you"):
            return f"**You**\n\n{_fenced(block.text)}"
        case TextBlock(who="context"):
            return _folded("context", _fenced(block.text))
        case TextBlock():
            return f"**Model**\n\n{block.text}"
        case Thoughts():
            return _folded("thinking", _fenced(block.text))
        case Called():
            return _folded(f"<b>{escape(block.name)}</b>: {escape(block.state)}", _work(block))
        case Note():
            return f"> {_inline(block.text)}"


def _work(block: Called) -> str:
    parts = [_fenced(block.arguments, "json")]
    if block.diff:
        parts.append(_fenced(block.diff, "diff"))
    if block.result:
        parts.append(_fenced(block.result))
    return "\n\n".join(parts)


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _fenced(text: str, language: str = "text") -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _inline(text: str) -> str:
    """The text on one line, Markdown escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def _html(block: Block) -> str:
    match block:
        case TurnBegan():
            return f"<h2>Turn {block.number} · {when(block.at)}</h2>"
        case TextBlock(who="context"):
            return _details("context", f"<pre>{escape(block.text)}</pre>")
        case TextBlock():
            return f'<div class="text {block.who}">{escape(block.text)}</div>'
        case Thoughts():
            return _details("thinking", f"<pre>{escape(block.text)}</pre>")
        case Called():
            state = f'<span class="state">{escape(block.state)}</span>'
            body = f"<pre>{escape(block.arguments)}</pre>"
            if block.diff:
                body += f"<pre>{''.join(_diff_lines(block.diff))}</pre>"
            if block.result:
                body += f"<pre>{escape(block.result)}</pre>"
            summary = f"<b>{escape(block.name)}</b> {state}"
            return _details(summary, body, "" if block.success else "failed")
        case Note():
            return f'<p class="note">{escape(block.text)}</p>'


def _details(summary: str, body: str, style: str = "") -> str:
    return f'<details class="{style}"><summary>{summary}</summary>{body}</details>'


def _diff_lines(diff: str) -> Iterator[str]:
    for line in diff.splitlines():
        tag = {"+": "ins", "-": "del"}.get(line[:1])
        yield f"<{tag}>{escape(line)}</{tag}>\n" if tag else f"{escape(line)}\n"
