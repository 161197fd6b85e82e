"""A report as JSON, Markdown or HTML. Pure."""

from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from toolwire.batch.progress import duration
from toolwire.batch.report import Named, Report, Share, Spread
from toolwire.terminal_text import one_line

_STYLE = """
:root { color-scheme: light dark; } body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  font: 16px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border: 1px solid #8886; padding: .25rem .6rem; text-align: left; }
td:not(:first-child) { font-variant-numeric: tabular-nums; } h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; }
"""


class _Table(msgspec.Struct, frozen=True):
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def to_json(report: Report) -> bytes:
    """All figures."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def share_text(share: Share) -> str:
    """`12 of 40 (30 %, 18–45 %)`."""
    low, high = round(share.low * 100), round(share.high * 100)
    return f"{share.passed:,} of {share.n:,} ({share.share * 100:.0f} %, {low}–{high} %)"


def headline(report: Report) -> str:
    """The report in one line."""
    if report.passed is not None:
        parts = [f"passed {share_text(report.passed)}"]
    else:
        done = report.states.get("finished", 0) + report.states.get("limit", 0)
        parts = [f"finished {done:,} of {report.attempts:,}"]
    errors = report.states.get("error", 0)
    parts += [f"{errors:,} errors"] if errors else []
    left = sum(report.states.get(state, 0) for state in ("waiting", "running", "stopped"))
    parts += [f"{left:,} not run"] if left else []
    if report.cost is not None:
        parts.append(f"${report.cost.total:,.2f}")
    return " · ".join(parts)


def to_markdown(report: Report) -> str:
    """Tables for a page or a terminal."""
    lines = ["# Batch report", "", headline(report), ""]
    for table in _tables(report):
        lines += [f"## {table.title}", "", _row(table.head), _row("---" for _ in table.head)]
        lines += [*(_row(map(_cell, row)) for row in table.rows), ""]
    return "\n".join(lines).rstrip() + "\n"


def to_html(report: Report) -> str:
    """One page without anything from elsewhere."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Batch report</title>',
        f"<style>{_STYLE}</style><h1>Batch report</h1><p>{escape(headline(report))}</p>",
    ]
    for table in _tables(report):
        head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(one_line(cell))}</td>' for cell in row)}</tr>"
            for row in table.rows
        )
        parts.append(f"<h2>{escape(table.title)}</h2><table><tr>{head}</tr>{rows}</table>")
    return "\n".join(parts) + "</html>\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _tables(report: Report) -> list[_Table]:
    found = [
        _Table("States", ("state", "attempts"), _counts(report.states.items())),
        _Table("Shares", ("", "passed (95 % interval)"), _shares(report)),
        _Table("pass@k", ("k", "estimate"), _pass_at(report)),
        _Table("Amounts", ("", "total", "median", "p90", "attempts"), _amounts(report)),
        _Table("Limits", ("limit", "attempts"), _counts(report.limits.items())),
        _Table("Errors", ("error", "attempts"), _counts(report.errors.items())),
        _Table("Slowest", ("task", "model", "attempt", "time"), _named(report.slowest, "s")),
        _Table("Most expensive", ("task", "model", "attempt", "cost"), _named(report.dearest, "$")),
        _Table("Comparison", ("", ""), _comparison(report)),
        _Table("About", ("", ""), tuple(report.about.items())),
    ]
    return [table for table in found if table.rows]


def _counts(counts: Iterable[tuple[str, int]]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, f"{count:,}") for name, count in counts)


def _shares(report: Report) -> tuple[tuple[str, ...], ...]:
    if report.passed is None:
        return ()
    rows = [("all", share_text(report.passed))]
    if len(report.by_model) > 1:
        rows += [(f"model {line.name}", share_text(line.passed)) for line in report.by_model]
    rows += [(f"tag {line.name}", share_text(line.passed)) for line in report.by_tag]
    if report.mean_score is not None and report.mean_score != report.passed.share:
        rows.append(("mean score", f"{report.mean_score:.3f}"))
    return tuple(rows)


def _pass_at(report: Report) -> tuple[tuple[str, ...], ...]:
    return tuple((str(k), f"{share * 100:.1f} %") for k, share in report.pass_at.items())


def _amounts(report: Report) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for name, spread, form in (
        ("cost", report.cost, "${:,.4f}"),
        ("tokens", report.tokens, "{:,.0f}"),
        ("requests", report.requests, "{:,.0f}"),
        ("calls", report.calls, "{:,.0f}"),
        ("seconds", report.seconds, "{:,.1f}"),
    ):
        if spread is not None:
            rows.append((name, *_spread(spread, form)))
    if report.unpriced:
        rows.append(("attempts without a known cost", f"{report.unpriced:,}", "", "", ""))
    if report.unknown_calls:
        rows.append(("calls with unknown outcome", f"{report.unknown_calls:,}", "", "", ""))
    return tuple(rows)


def _spread(spread: Spread, form: str) -> tuple[str, ...]:
    values = (spread.total, spread.median, spread.p90)
    return (*(form.format(value) for value in values), f"{spread.n:,}")


def _named(listed: Sequence[Named], unit: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            one.id,
            one.model or "-",
            str(one.attempt),
            f"${one.value:,.4f}" if unit == "$" else duration(one.value),
        )
        for one in listed
    )


def _comparison(report: Report) -> tuple[tuple[str, ...], ...]:
    found = report.against
    if found is None:
        return ()
    return (
        ("against", found.other),
        ("tasks in both", f"{found.shared:,}"),
        ("passed in both", f"{found.both:,}"),
        ("passed in neither", f"{found.neither:,}"),
        ("passed only here", _ids(found.won)),
        ("passed only there", _ids(found.lost)),
        ("McNemar test", f"p = {found.p:.4f}"),
    )


def _ids(ids: Sequence[str]) -> str:
    return f"{len(ids):,}{': ' if ids else ''}{', '.join(ids)}"
