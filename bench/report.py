"""Tables and goals: printed for people, kept as JSON for machines."""

import msgspec

Cell = str | float | int | None


class Table(msgspec.Struct, frozen=True):
    """Figures of one kind; each row begins with its name."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


class Goal(msgspec.Struct, frozen=True):
    """A limit, and the worst figure measured against it."""

    what: str
    limit: float
    measured: float
    where: str = ""
    at_least: bool = False
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether the worst figure keeps the limit."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


class Section(msgspec.Struct, frozen=True):
    """What one part of the benchmark found."""

    name: str
    tables: tuple[Table, ...]
    goals: tuple[Goal, ...] = ()


def render(table: Table) -> str:
    """The table in Markdown, columns aligned."""
    lines = [table.columns, *[tuple(map(_cell, row)) for row in table.rows]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.columns))]
    rule = "|".join("-" * (width + 1) + (":" if at else "-") for at, width in enumerate(widths))
    head, *body = [
        "| " + " | ".join(_pad(text, widths[at], at) for at, text in enumerate(line)) + " |"
        for line in lines
    ]
    note = f"\n{table.note}\n" if table.note else ""
    return "\n".join((f"### {table.title}", note, head, f"|{rule}|", *body, ""))


def render_goals(goals: tuple[Goal, ...]) -> str:
    """Every goal with its worst figure."""
    rows = tuple(
        (
            goal.what,
            f"{'≥' if goal.at_least else '≤'} {_cell(goal.limit)} {goal.unit}",
            f"{_cell(goal.measured)} {goal.unit}",
            goal.where,
            "yes" if goal.met else "NO",
        )
        for goal in goals
    )
    return render(Table("Goals", ("goal", "limit", "worst measured", "where", "met"), rows))


def as_json(environment: dict[str, str], sections: tuple[Section, ...]) -> bytes:
    """Everything measured, for later comparison."""
    value = {"environment": environment, "sections": sections}
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _cell(value: Cell) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        if abs(value) >= 100:
            return f"{value:.0f}"
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return str(value)


def _pad(text: str, width: int, column: int) -> str:
    return text.rjust(width) if column else text.ljust(width)
