"""Statistics of a run: counts requests, tokens, calls and lines from the events."""

from collections.abc import Mapping

from toolwire.agent.events import AgentEvent, ApprovalOutcome, Noticed, ToolFinished, UsageCounted
from toolwire.events import Usage
from toolwire.request import JsonObject


class _Model:
    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.seconds = 0.0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.thoughts = 0
        self.cost: float | None = None

    def add(self, counted: UsageCounted) -> None:
        usage: Usage = counted.usage
        self.requests += 1
        self.errors += counted.failed
        self.seconds += counted.seconds
        self.input += usage.total_input
        self.output += usage.total_output
        self.cached += usage.cached or 0
        self.thoughts += usage.reasoning or 0
        if counted.cost is not None:
            self.cost = (self.cost or 0.0) + counted.cost

    def body(self) -> JsonObject:
        return {
            "api": {
                "totalRequests": self.requests,
                "totalErrors": self.errors,
                "totalLatencyMs": _milliseconds(self.seconds),
            },
            "tokens": {
                "prompt": self.input,
                "candidates": max(0, self.output - self.thoughts),
                "total": self.input + self.output,
                "cached": self.cached,
                "thoughts": self.thoughts,
                "tool": 0,
            },
            "cost": self.cost,
        }


class _Tool:
    def __init__(self) -> None:
        self.success = 0
        self.fail = 0
        self.seconds = 0.0
        self.decisions = dict.fromkeys(map(str, ApprovalOutcome), 0)

    def add(self, finished: ToolFinished) -> None:
        self.success += finished.success
        self.fail += not finished.success
        self.seconds += finished.duration
        if finished.decision is not None:
            self.decisions[finished.decision] += 1

    def body(self, count: str, seconds: str, decisions: str, total: str = "") -> JsonObject:
        members = ("totalSuccess", "totalFail") if total else ("success", "fail")
        return {
            count: self.success + self.fail,
            members[0]: self.success,
            members[1]: self.fail,
            seconds: _milliseconds(self.seconds),
            decisions: {name: self.decisions[name] for name in _DECISIONS},
        }


_DECISIONS = ("accept", "reject", "modify", "auto_accept")


class Stats:
    """Counts events; `body` has the members of gemini-cli's stats, and a few more."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._all = _Tool()
        self._tools: dict[str, _Tool] = {}
        self._added = 0
        self._removed = 0
        self._prefix: list[str] = []

    def add(self, event: AgentEvent) -> None:
        """Count one event."""
        match event:
            case UsageCounted():
                self._models.setdefault(event.model, _Model()).add(event)
            case ToolFinished():
                self._all.add(event)
                self._tools.setdefault(event.name, _Tool()).add(event)
                if event.stat is not None and event.success:
                    self._added += event.stat.model_added + event.stat.user_added
                    self._removed += event.stat.model_removed + event.stat.user_removed
            case Noticed(kind="prefix"):
                self._prefix.append(event.message)
            case _:
                pass

    def body(self) -> JsonObject:
        """The counts so far."""
        models: Mapping[str, _Model] = self._models
        read = sum(model.input for model in models.values())
        cached = sum(model.cached for model in models.values())
        return {
            "models": {name: model.body() for name, model in models.items()},
            "tools": {
                **self._all.body("totalCalls", "totalDurationMs", "totalDecisions", "total"),
                "byName": {
                    name: tool.body("count", "durationMs", "decisions")
                    for name, tool in self._tools.items()
                },
            },
            "files": {"totalLinesAdded": self._added, "totalLinesRemoved": self._removed},
            "cache": {"input": read, "cached": cached, "changes": list(self._prefix)},
        }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
