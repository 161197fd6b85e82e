"""Agent events as the log records and counters of gemini-cli; pure."""

from collections.abc import Iterator

from toolwire.agent.events import (
    AgentEvent,
    ApprovalOutcome,
    ChildEvent,
    HistoryReplaced,
    HookRan,
    MessageAdded,
    ModelAsked,
    Noticed,
    RequestBuilt,
    Retrying,
    SessionOpened,
    ToolFinished,
    TurnEnd,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.request import ModelRequest
from toolwire.telemetry.attributes import messages_json
from toolwire.telemetry.signals import Attributes, LogRecord, Measure, Signal

_FILE_OPERATIONS = {"write_file": "create", "replace": "update", "read_file": "read"}


class GeminiRecords:
    """The records of one session."""

    def __init__(self, session: str, *, prompts: bool, content: bool) -> None:
        self._session = session
        self._prompts = prompts
        self._content = content
        self._turns = 0
        self._counted: tuple[UsageCounted, int] | None = None
        """A request that was answered, whose message follows, and when."""
        self._built: ModelRequest | None = None
        self._mode = ""
        self._auth = ""
        self._retries = 0
        """Of the present turn."""
        self._agents: dict[str, int] = {}
        """When each agent that a call runs began."""

    def feed(self, event: AgentEvent, now: int) -> Iterator[Signal]:
        """The records that an event gives."""
        if self._counted is not None:
            yield from self._answered(*self._counted, event)
            self._counted = None
        match event:
            case SessionOpened() if event.changed:
                self._mode, self._auth = event.mode, auth_type(event.model)
            case SessionOpened():
                self._mode, self._auth = event.mode, auth_type(event.model)
                yield self._record("config", now, _config(event))
                yield _count("session.count", now, {})
            case TurnStarted():
                self._turns += 1
            case MessageAdded():
                yield from self._added(event, now)
            case RequestBuilt():
                self._built = event.request
            case ModelAsked():
                asked: Attributes = {"model": _plain(event.model)}
                if self._content and self._built is not None:
                    asked["request_text"] = messages_json(self._built.messages)
                yield self._record("api_request", now, asked)
            case UsageCounted() if event.failed:
                yield from self._failed(event, now)
            case UsageCounted():
                self._counted = event, now
            case Retrying():
                error: Attributes = {
                    "error_type": str(event.status or ""),
                    "attempt": event.attempt,
                }
                self._retries += 1
                yield self._record("chat.content_retry", now, error)
            case Noticed():
                yield from self._noticed(event, now)
            case ChildEvent():
                yield from self._child(event, now)
            case ToolFinished():
                yield from self._finished(event, now)
            case HookRan():
                yield from self._hook(event, now)
            case HistoryReplaced():
                sizes: Attributes = {"tokens_before": event.before, "tokens_after": event.after}
                yield self._record("chat_compression", now, sizes)
            case TurnEnded():
                if self._retries and event.reason is TurnEnd.FAILED:
                    gave_up: Attributes = {
                        "total_attempts": self._retries + 1,
                        "final_error_type": event.error,
                    }
                    yield self._record("chat.content_retry_failure", now, gave_up)
                self._retries = 0
                ended: Attributes = {"approvalMode": self._mode, "turnCount": self._turns}
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

    def _hook(self, event: HookRan, now: int) -> Iterator[Signal]:
        success, duration = event.decision != "failed", round(event.seconds * 1000)
        attributes: Attributes = {
            "hook_event_name": event.event,
            "hook_type": "command",
            "hook_name": event.name,
            "duration_ms": duration,
            "success": success,
            "decision": event.decision,
        }
        yield self._record("hook_call", now, attributes)
        labels: Attributes = {"hook_event_name": event.event, "success": success}
        yield _count("hook_call.count", now, labels)
        yield _latency("hook_call.latency", duration, now, labels)

    def _noticed(self, event: Noticed, now: int) -> Iterator[Signal]:
        if event.kind == "ide":
            yield self._record("ide_connection", now, {"connection_type": "session"})
        elif event.kind == "fallback":
            yield self._record("flash_fallback", now, {"auth_type": self._auth})

    def _child(self, event: ChildEvent, now: int) -> Iterator[Signal]:
        about: Attributes = {"agent_id": event.session, "agent_name": event.agent}
        match event.event:
            case TurnStarted() if event.session not in self._agents:
                self._agents[event.session] = now
                yield self._record("agent.start", now, about)
            case TurnEnded() as ended:
                began = self._agents.pop(event.session, now)
                about |= {
                    "duration_ms": (now - began) // 1_000_000,
                    "turn_count": ended.requests,
                    "terminate_reason": str(ended.reason),
                }
                yield self._record("agent.finish", now, about)
            case _:
                pass

    def _added(self, event: MessageAdded, now: int) -> Iterator[Signal]:
        if event.message.role == "user" and not event.context and event.message.text:
            text = event.message.text
            said: Attributes = {"prompt_length": len(text), "auth_type": self._auth}
            if self._prompts:
                said["prompt"] = text
            yield self._record("user_prompt", now, said)

    def _failed(self, event: UsageCounted, now: int) -> Iterator[Signal]:
        model, why = _plain(event.model), event.error or "failed"
        status: Attributes = {"status_code": int(why)} if why.isdigit() else {}
        failure: Attributes = {
            "model": model,
            "duration_ms": round(event.seconds * 1000),
            "error": f"HTTP {why}" if status else why,
            "error_type": why,
            "auth_type": self._auth,
            **status,
        }
        yield self._record("api_error", now, failure)
        yield _count("api.request.count", now, {"model": model, "error_type": why, **status})

    def _answered(self, event: UsageCounted, now: int, then: AgentEvent) -> Iterator[Signal]:
        """The records of a request that was answered; its message is the event after it."""
        model, usage = _plain(event.model), event.usage
        duration = round(event.seconds * 1000)
        finish, said = "", ""
        if isinstance(then, MessageAdded) and then.finished is not None:
            finish, said = str(then.finished.reason), then.message.text
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
                "finish_reasons": (finish,) if finish else (),
                "auth_type": self._auth,
                **({"response_text": said} if self._content and said else {}),
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


_AUTH_TYPES = {
    "google": "gemini-api-key",
    "vertex": "vertex-ai",
    "code-assist": "oauth-personal",
}


def auth_type(model: str) -> str:
    """gemini-cli's word for the login of a model; empty for vendors that it does not know."""
    return _AUTH_TYPES.get(model.partition("/")[0], "")


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
