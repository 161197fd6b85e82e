"""The nine cases captured from Claude Code, and gemini-cli's examples, with unchanged scripts."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.sessions import claude_settings, group, held, script
from tests.fakes.scripted import calls, says
from tests.fakes.simulated import Place
from toolwire.app.session import PromptRefused

CLAUDE = '[hooks]\nfrom = ["claude"]\n'
GEMINI = '[hooks]\nfrom = ["gemini"]\n'
RUNS = ("c1", "run_shell_command", {"command": "echo one"})
DONE = says("Done.")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def prints(place: Place, answer: Any, name: str = "hook.sh") -> str:
    """The command of a script that stores its input and prints an answer."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    body = f"#!/bin/sh\ncat > {place.root}/input.json\ncat <<'END'\n{text}\nEND\n"
    script(place.work / ".claude" / "hooks" / name, body)
    return f'"$CLAUDE_PROJECT_DIR"/.claude/hooks/{name}'


def given(place: Place) -> dict[str, Any]:
    return json.loads((place.root / "input.json").read_text())


def test_exit_code_2_refuses_a_call_with_the_command_and_its_errors(place: Place):
    script(place.work / "deny.sh", "#!/bin/sh\necho 'no rm here' >&2\nexit 2\n")
    claude_settings(place, PreToolUse=group("./deny.sh", matcher="Bash"))
    found = held(place, calls(RUNS), DONE, text=CLAUDE)
    assert found.results == [("PreToolUse:Bash hook error: [./deny.sh]: no rm here", True)]


def test_a_decision_to_deny_refuses_a_call_with_its_reason(place: Place):
    answer = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "not today",
        }
    }
    claude_settings(place, PreToolUse=group(prints(place, answer), matcher="Bash"))
    found = held(place, calls(RUNS), DONE, text=CLAUDE)
    assert found.results == [("PreToolUse:Bash hook error: not today", True)]
    received = given(place)
    session, prompt = received.pop("session_id"), received.pop("prompt_id")
    assert session
    assert prompt
    assert received == {
        "transcript_path": str(place.root / "temp" / "transcripts" / f"{session}.jsonl"),
        "cwd": str(place.work),
        "permission_mode": "bypassPermissions",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo one"},
        "tool_use_id": "c1",
    }


def test_a_changed_input_runs_and_the_history_has_the_models_call(place: Place):
    answer = {"hookSpecificOutput": {"updatedInput": {"command": "echo two"}}}
    claude_settings(place, PreToolUse=group(prints(place, answer), matcher="Bash"))
    found = held(place, calls(RUNS), DONE, text=CLAUDE)
    assert "two" in found.results[0][0]
    call = found.model.asked[-1].messages[1].calls[0]
    assert json.loads(call.arguments) == {"command": "echo one"}


def test_additional_context_is_behind_the_result(place: Place):
    answer = {"hookSpecificOutput": {"additionalContext": "mind the gap"}}
    claude_settings(place, PreToolUse=group(prints(place, answer), matcher="Bash"))
    found = held(place, calls(RUNS), DONE, text=CLAUDE)
    text, error = found.results[0]
    assert text.endswith("\n\n<hook_context>mind the gap</hook_context>")
    assert "one" in text
    assert not error


def test_a_blocked_result_stays_with_the_reason_behind_it(place: Place):
    command = prints(place, {"decision": "block", "reason": "lint failed"})
    claude_settings(place, PostToolUse=group(command, matcher="Bash"))
    found = held(place, calls(RUNS), DONE, text=CLAUDE)
    text, error = found.results[0]
    assert "one" in text
    assert text.endswith(
        f'\n\nPostToolUse:Bash hook blocking error from command: "{command}": lint failed'
    )
    assert not error
    assert given(place)["tool_response"]["stdout"]
    assert given(place)["duration_ms"] >= 0


def test_a_refused_prompt_makes_no_request(place: Place):
    script(place.work / "no.sh", "#!/bin/sh\necho 'say please' >&2\nexit 2\n")
    claude_settings(place, UserPromptSubmit=group("./no.sh"))
    with pytest.raises(PromptRefused, match="UserPromptSubmit operation blocked by hook: say plea"):
        held(place, DONE, text=CLAUDE)


def test_plain_output_is_context_before_the_prompt(place: Place):
    claude_settings(place, UserPromptSubmit=group(prints(place, "it is Monday")))
    found = held(place, DONE, text=CLAUDE)
    context = "<hook_context>UserPromptSubmit hook success: it is Monday</hook_context>"
    assert found.texts == [context, "do it"]
    assert given(place)["prompt"] == "do it"


def test_a_blocked_stop_is_one_more_request(place: Place):
    body = """#!/bin/sh
if grep -q '"stop_hook_active":true' ; then exit 0; fi
echo '{"decision": "block", "reason": "run the tests"}'
"""
    script(place.work / "stop.sh", body)
    claude_settings(place, Stop=group("./stop.sh"))
    found = held(place, says("First."), says("Second."), text=CLAUDE)
    assert found.texts == ["do it", "First.", "Stop hook feedback:\nrun the tests"]
    assert len(found.model.asked) == 2
    assert found.ran == [("Stop", "deny"), ("Stop", "")]


def test_continue_false_makes_no_further_request(place: Place):
    answer = {"continue": False, "stopReason": "enough"}
    claude_settings(place, PostToolUse=group(prints(place, answer), matcher="Bash"))
    found = held(place, calls(RUNS), DONE, text=CLAUDE)
    assert len(found.model.asked) == 1
    assert "a hook ended the turn: enough" in found.notices
    assert found.ended[0].reason == "done"


def gemini_settings(place: Place, **events: Any) -> None:
    file = place.work / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("// as gemini-cli allows\n" + json.dumps({"hooks": events}))


def gemini_group(command: str, **more: Any) -> list[dict[str, Any]]:
    hook = {"type": "command", "command": command, "name": "own", "timeout": 5000}
    return [{**more, "hooks": [hook]}]


def test_gemini_hooks_block_secrets_with_their_own_text(place: Place):
    # The example block-secrets.sh of its documentation.
    body = """#!/usr/bin/env bash
input=$(cat)
if echo "$input" | grep -qE 'api[_-]?key|password|secret'; then
  echo "Blocked potential secret" >&2
  cat <<END
{
  "decision": "deny",
  "reason": "Security Policy: Potential secret detected in content.",
  "systemMessage": "Security scanner blocked operation"
}
END
  exit 0
fi
echo '{"decision": "allow"}'
"""
    script(place.work / ".gemini" / "hooks" / "block-secrets.sh", body)
    command = "$GEMINI_PROJECT_DIR/.gemini/hooks/block-secrets.sh"
    gemini_settings(place, BeforeTool=gemini_group(command, matcher="write_file|replace"))
    writes = ("c1", "write_file", {"file_path": str(place.work / "a"), "content": "password=1"})
    found = held(place, calls(writes), DONE, text=GEMINI)
    reason = "Security Policy: Potential secret detected in content."
    assert found.results == [(f"Tool execution blocked: {reason}", True)]
    assert "Security scanner blocked operation" in found.notices


def test_gemini_hooks_merge_input_and_add_context_to_prompts(place: Place):
    body = """#!/bin/sh
cat > "$GEMINI_PROJECT_DIR/../input.json"
echo '{"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"limit": 1}}}'
"""
    script(place.work / "merge.sh", body)
    context = """#!/bin/sh
echo '{"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "git: clean"}}'
"""
    script(place.work / "context.sh", context)
    gemini_settings(
        place,
        BeforeTool=gemini_group("./merge.sh", matcher="read_.*", sequential=True),
        BeforeAgent=gemini_group("./context.sh"),
        BeforeModel=gemini_group("./never.sh"),
    )
    (place.work / "a.txt").write_text("one\ntwo\n")
    reads = ("c1", "read_file", {"absolute_path": str(place.work / "a.txt")})
    found = held(place, calls(reads), DONE, text=GEMINI)
    assert found.texts[0] == "<hook_context>git: clean</hook_context>"
    assert "two" not in found.results[0][0]
    end = "\n\n[System] Tool input parameters were modified by a hook before execution."
    assert found.results[0][0].endswith(end)
    assert given(place)["tool_input"] == {"file_path": str(place.work / "a.txt")}
    assert given(place)["hook_event_name"] == "BeforeTool"
    assert "timestamp" in given(place)
    skipped = [words for words in found.notices if "BeforeModel" in words]
    assert len(skipped) == 1
    assert "not supported" in skipped[0]


def test_a_gemini_hook_refuses_a_result_with_an_error(place: Place):
    script(place.work / "after.sh", "#!/bin/sh\necho leaked >&2\nexit 2\n")
    gemini_settings(place, AfterTool=gemini_group("./after.sh"))
    found = held(place, calls(RUNS), DONE, text=GEMINI)
    assert found.results == [("leaked", True)]
