"""Thinking effort and thinking budget: two settings for one thing."""

from toolwire.request import Effort

BUDGETS = {
    Effort.NONE: 0,
    Effort.MINIMAL: 1024,
    Effort.LOW: 2048,
    Effort.MEDIUM: 8192,
    Effort.HIGH: 16384,
    Effort.XHIGH: 32768,
    Effort.MAX: 65536,
}


def budget_of(effort: Effort) -> int:
    """Thinking tokens of an effort."""
    return BUDGETS[effort]


def effort_of(budget: int) -> Effort:
    """The smallest effort whose budget is at least this one."""
    return next((effort for effort, tokens in BUDGETS.items() if tokens >= budget), Effort.MAX)
