"""Agent events as the log records and counters of gemini-cli; pure."""

from collections.abc import Iterator

from toolwire.agent.events import (
    AgentEvent,
    ApprovalOutcome,
    HistoryReplaced,
    MessageAdded,
    ModelAsked,
    Retrying,
    SessionOpened,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.telemetry.signals import Attributes, LogRecord, Measure, Signal

_FILE_OPERATIONS = {"write_file": "create", "replace": "update", "read_file": "read"}


class GeminiRecords:
    """The records of one session."""

    def __init__(self, session: str, *, prompts: bool, content: bool) -> None:
        self._session = session
        self._prompts = prompts
        self._content = content
        self._turns = 0
        self._finish = ""

    def feed(self, event: AgentEvent, now: int) -> Iterator[Signal]:
        """The records that an event gives."""
        match event:
            case SessionOpened() if not event.changed:
                yield self._record("config", now, _config(event))
                yield _count("session.count", now, {})
            case TurnStarted():
                self._turns += 1
            case MessageAdded():
                yield from self._added(event, now)
            case ModelAsked():
                yield self._record("api_request", now, {"model": _plain(event.model)})
            case UsageCounted():
                yield from self._counted(event, now)
            case Retrying():
                error: Attributes = {
                    "error_type": str(event.status or ""),
                    "attempt": event.attempt,
                }
                yield self._record("chat.content_retry", now, error)
            case ToolFinished():
                yield from self._finished(event, now)
            case HistoryReplaced():
                sizes: Attributes = {"tokens_before": event.before, "tokens_after": event.after}
                yield self._record("chat_compression", now, sizes)
            case TurnEnded():
                ended: Attributes = {"approvalMode": "", "turnCount": self._turns}
                yield self._record("conversation_finished", now, ended)
            case _:
                pass

    def _record(self, name: str, now: int, attributes: Attributes) -> LogRecord:
        full = f"gemini_cli.{name}"
        common: Attributes = {
            "session.id": self._session,
            "event.name": full,
            "event.timestamp": _iso(now),
            "prompt_id": f"{self._session}########{self._turns}",
        }
        return LogRecord(name=full, at=now, attributes={**common, **attributes}, body=full)

    def _added(self, event: MessageAdded, now: int) -> Iterator[Signal]:
        if event.message.role == "user" and not event.context and event.message.text:
            text = event.message.text
            said: Attributes = {"prompt_length": len(text)}
            if self._prompts:
                said["prompt"] = text
            yield self._record("user_prompt", now, said)
        elif event.finished is not None:
            self._finish = str(event.finished.reason)

    def _counted(self, event: UsageCounted, now: int) -> Iterator[Signal]:
        model, usage = _plain(event.model), event.usage
        duration = round(event.seconds * 1000)
        if event.failed:
            failure: Attributes = {"model": model, "duration_ms": duration, "error": "failed"}
            yield self._record("api_error", now, failure)
            yield _count("api.request.count", now, {"model": model, "error_type": "failed"})
            return
        kinds = {
            "input": usage.total_input,
            "output": usage.output or 0,
            "thought": usage.reasoning or 0,
            "cache": usage.cached or 0,
            "tool": 0,
        }
        yield self._record(
            "api_response",
            now,
            {
                "model": model,
                "status_code": 200,
                "duration_ms": duration,
                "input_token_count": kinds["input"],
                "output_token_count": kinds["output"],
                "cached_content_token_count": kinds["cache"],
                "thoughts_token_count": kinds["thought"],
                "tool_token_count": 0,
                "total_token_count": usage.total_input + usage.total_output,
                "finish_reasons": (self._finish,) if self._finish else (),
            },
        )
        yield _count("api.request.count", now, {"model": model, "status_code": 200})
        yield _latency("api.request.latency", duration, now, {"model": model})
        for kind, tokens in kinds.items():
            if tokens:
                yield _count("token.usage", now, {"model": model, "type": kind}, tokens)

    def _finished(self, event: ToolFinished, now: int) -> Iterator[Signal]:
        decision = str(event.decision or ApprovalOutcome.AUTO_ACCEPT)
        kind = "mcp" if event.server else "native"
        attributes: Attributes = {
            "function_name": event.name,
            "duration_ms": round(event.duration * 1000),
            "success": event.success,
            "decision": decision,
            "tool_type": kind,
            "content_length": len(event.result.text),
        }
        if self._content:
            attributes["function_args"] = event.arguments
        if event.server:
            attributes["mcp_server_name"] = event.server
        if event.error_type:
            attributes["error_type"] = event.error_type
        if event.stat is not None:
            attributes |= {
                "metadata.model_added_lines": event.stat.model_added,
                "metadata.model_removed_lines": event.stat.model_removed,
                "metadata.user_added_lines": event.stat.user_added,
                "metadata.user_removed_lines": event.stat.user_removed,
            }
        yield self._record("tool_call", now, attributes)
        labels: Attributes = {
            "function_name": event.name,
            "success": event.success,
            "decision": decision,
            "tool_type": kind,
        }
        yield _count("tool.call.count", now, labels)
        yield _latency(
            "tool.call.latency", event.duration * 1000, now, {"function_name": event.name}
        )
        if event.success and event.name in _FILE_OPERATIONS:
            operation: Attributes = {"operation": _FILE_OPERATIONS[event.name]}
            yield self._record("file_operation", now, {**operation, "tool_name": event.name})
            yield _count("file.operation.count", now, operation)


def _config(event: SessionOpened) -> Attributes:
    return {
        "model": _plain(event.model),
        "approval_mode": event.mode,
        "mcp_servers": ",".join(server.name for server in event.mcp),
        "mcp_servers_count": len(event.mcp),
        "mcp_tools_count": sum(server.tools for server in event.mcp),
    }


def _count(name: str, now: int, labels: Attributes, value: float = 1) -> Measure:
    return Measure(
        name=f"gemini_cli.{name}", unit="", value=value, at=now, attributes=labels, counter=True
    )


def _latency(name: str, value: float, now: int, labels: Attributes) -> Measure:
    return Measure(name=f"gemini_cli.{name}", unit="ms", value=value, at=now, attributes=labels)


def _plain(model: str) -> str:
    return model.partition("/")[2] or model


def _iso(now: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - start-up time

    return datetime.fromtimestamp(now / 1e9, UTC).isoformat(timespec="milliseconds")
