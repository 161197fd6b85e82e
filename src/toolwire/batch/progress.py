"""The line that shows how far a batch is. Pure."""

from collections.abc import Mapping

import msgspec

from toolwire.batch.report import wilson
from toolwire.batch.results import State

_ENDED = tuple(state for state in State if state.is_final)
_GRADED = (State.PASSED, State.FAILED, State.LIMIT, State.REFUSED)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A batch at a time."""

    states: Mapping[str, int]
    running: int = 0
    cost: float = 0.0
    budget: float = 0.0
    ended_here: int = 0
    """Attempts that ended since this driver started."""
    seconds: float = 0.0
    """Since then."""

    @property
    def all(self) -> int:
        """All attempts."""
        return sum(self.states.values())

    @property
    def ended(self) -> int:
        """Those that are done."""
        return sum(self.states.get(state, 0) for state in _ENDED)

    def line(self) -> str:
        """One line for people."""
        parts = [f"{self.ended:,}/{self.all:,}"]
        graded = sum(self.states.get(state, 0) for state in _GRADED)
        passed = self.states.get(State.PASSED, 0)
        if passed or self.states.get(State.FAILED, 0):
            share = wilson(passed, graded)
            half = (share.high - share.low) / 2
            parts.append(f"{share.share:.0%} passed ±{half * 100:.0f}".replace("%", " %"))
        parts.append(f"{self.running:,} running")
        errors = self.states.get(State.ERROR, 0)
        if errors:
            parts.append(f"{errors:,} error{'s' if errors > 1 else ''}")
        if self.cost or self.budget:
            of = f" of ${self.budget:,.2f}" if self.budget else ""
            parts.append(f"${self.cost:,.2f}{of}")
        if self.ended_here and self.seconds > 0:
            rate = self.ended_here / self.seconds * 60
            parts.append(f"{rate:.1f}/min" if rate < 100 else f"{rate:,.0f}/min")
            if left := self.all - self.ended:
                parts.append(f"{duration(left / rate * 60)} left")
        return " · ".join(parts)


def duration(seconds: float) -> str:
    """A length of time in its largest unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
