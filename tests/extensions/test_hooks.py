import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.extensions.hook_processes import NAMESPACE, bound
from tests.extensions.sessions import claude_settings, commanded, group, held, script, sent
from tests.fakes.scripted import calls, says
from tests.fakes.simulated import Place, Simulated
from toolwire import config
from toolwire.agent.events import HookRan
from toolwire.agent.hook_chain import HookChain
from toolwire.agent.hooks import SubagentStart, SubagentStop
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.app.extensions import hook_rows
from toolwire.app.session import AgentSession, PromptRefused
from toolwire.app.stored_sessions import stored_sessions
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.extensions.hooks.definitions import Definition, read_definitions
from toolwire.policy import Mode
from toolwire.simulator import Reply
from toolwire.simulator.script import Say
from toolwire.storage.private_files import approval_store

RUNS = ("c1", "run_shell_command", {"command": "echo one"})
REMOVES = ("c1", "run_shell_command", {"command": "rm -rf build"})
DONE = says("Done.")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def hook(event: str, command: str, **more: Any) -> str:
    rows = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    return f"[[hooks.{event}]]\ncommand = {json.dumps(command)}\n{rows}"


def prints(answer: Any) -> str:
    return f"cat > /dev/null; echo '{json.dumps(answer)}'"


def decides(decision: str, **more: Any) -> str:
    return prints({"hookSpecificOutput": {"permissionDecision": decision, **more}})


class Asked:
    """A user who allows everything, and what was asked."""

    def __init__(self) -> None:
        self.questions: list[Confirmation] = []

    async def __call__(self, question: Confirmation) -> UserAnswer:
        self.questions.append(question)
        return UserAnswer(choice=Choice.ONCE)


def denied_by_rule(place: Place) -> None:
    rule = '[[rule]]\ntool = "run_shell_command"\ndecision = "deny"\n'
    (place.home / "policy.toml").write_text(rule)


# Never more generous than the policy.


def test_allow_never_passes_a_rule_that_denies(place: Place):
    denied_by_rule(place)
    text = hook("PreToolUse", f"touch {place.root}/ran; {decides('allow')}")
    found = held(place, calls(RUNS), DONE, text=text)
    assert found.results[0][0].startswith("Tool execution denied by policy.")
    assert not (place.root / "ran").exists()


def test_allow_answers_what_the_policy_would_ask(place: Place):
    (place.work / "build").mkdir()
    text = hook("PreToolUse", decides("allow"))
    found = held(place, calls(REMOVES), DONE, text=text, mode=Mode.DEFAULT)
    assert not (place.work / "build").exists()
    assert found.ran == [("PreToolUse", "allow")]


def test_allow_does_not_answer_for_protected_files(place: Place):
    writes = ("c1", "write_file", {"file_path": str(place.work / ".bashrc"), "content": "x"})
    text = hook("PreToolUse", decides("allow")) + hook(
        "PermissionRequest",
        prints({"hookSpecificOutput": {"decision": {"behavior": "allow"}}}),
    )
    found = held(place, calls(writes), DONE, text=text, mode=Mode.DEFAULT)
    assert found.results[0][1]
    assert not (place.work / ".bashrc").exists()


def test_without_a_user_the_denial_is_the_usual_one(place: Place):
    text = hook("PreToolUse", "true")
    found = held(place, calls(REMOVES), DONE, text=text, mode=Mode.DEFAULT)
    assert found.results[0][0].startswith("Tool execution denied by policy.")


def test_ask_asks_about_a_call_that_the_policy_allows(place: Place):
    asked = Asked()
    text = hook("PreToolUse", decides("ask", permissionDecisionReason="look twice"))
    held(place, calls(RUNS), DONE, text=text, approver=asked)
    assert [one.reason for one in asked.questions] == ["look twice"]


def test_a_changed_input_is_ruled_on_and_shown(place: Place):
    asked = Asked()
    (place.work / "build").mkdir()
    text = hook("PreToolUse", prints({"hookSpecificOutput": {"updatedInput": REMOVES[2]}}))
    held(place, calls(RUNS), DONE, text=text, approver=asked, mode=Mode.DEFAULT)
    assert [getattr(one.details, "command", "") for one in asked.questions] == ["rm -rf build"]


def test_a_changed_input_that_is_not_valid_denies_the_call(place: Place):
    text = hook("PreToolUse", prints({"hookSpecificOutput": {"updatedInput": {"command": 1}}}))
    found = held(place, calls(RUNS), DONE, text=text)
    assert "no longer valid" in found.results[0][0]


def test_the_strictest_of_several_answers_wins(place: Place):
    text = "".join(
        hook("PreToolUse", one)
        for one in (decides("allow"), decides("deny"), decides("ask"), "exit 1")
    )
    found = held(place, calls(RUNS), DONE, text=text)
    assert found.results == [("PreToolUse:run_shell_command hook error: no reason given", True)]


def test_a_question_is_answered_by_a_hook(place: Place):
    asked = Asked()
    (place.work / "build").mkdir()
    answer = {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    text = hook("PermissionRequest", prints(answer), matcher="run_shell_command")
    found = held(place, calls(REMOVES), DONE, text=text, approver=asked, mode=Mode.DEFAULT)
    assert (asked.questions, found.ran) == ([], [("PermissionRequest", "allow")])
    assert not (place.work / "build").exists()


def test_a_question_notifies(place: Place):
    asked = Asked()
    text = hook("Notification", f"cat > {place.root}/noted.json", matcher="permission_prompt")
    held(place, calls(REMOVES), DONE, text=text, approver=asked, mode=Mode.DEFAULT)
    noted = json.loads((place.root / "noted.json").read_text())
    assert (noted["notification_type"], len(asked.questions)) == ("permission_prompt", 1)


# Processes.


def test_exit_code_2_blocks_whatever_is_printed(place: Place):
    command = f"{decides('allow')}; echo stopped >&2; exit 2"
    found = held(place, calls(RUNS), DONE, text=hook("PreToolUse", command))
    assert found.results == [("PreToolUse:run_shell_command hook error: stopped", True)]


def test_any_other_failure_is_reported_and_changes_nothing(place: Place):
    text = hook("PreToolUse", "echo broken >&2; exit 1", name="check")
    found = held(place, calls(RUNS), DONE, text=text)
    assert not found.results[0][1]
    assert "the PreToolUse hook check failed with code 1: broken" in found.notices


@pytest.mark.parametrize("command", ["exit 1", "sleep 60", "echo '{'"])
def test_a_required_hook_that_gives_no_answer_denies(place: Place, command: str):
    text = hook("PreToolUse", command, required=True, timeout=0.5, name="check")
    found = held(place, calls(RUNS), DONE, text=text)
    assert found.results[0][0].startswith("PreToolUse:run_shell_command hook error: the hook check")


def test_a_hook_that_forks_a_sleeper_ends_at_once_with_it(place: Place):
    command = f"sleep 300 & echo $! > {place.root}/pid; exit 0"
    began = time.monotonic()
    found = held(place, calls(RUNS), DONE, text=hook("PreToolUse", command))
    assert time.monotonic() - began < 60
    pid = int((place.root / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not found.results[0][1]


def test_a_hook_has_no_terminal_and_no_secrets(place: Place):
    command = f"env > {place.root}/env; (echo tty > /dev/tty) 2> {place.root}/tty; true"
    text = hook("PreToolUse", command)
    secrets = {"OPENAI_API_KEY": "sk-1234567890abcdef", "OTEL_SERVICE_NAME": "x"}
    held(place, calls(RUNS), DONE, text=text, variables=secrets)
    listed = (place.root / "env").read_text()
    assert "OPENAI" not in listed
    assert "OTEL" not in listed
    assert f"CLAUDE_PROJECT_DIR={place.work}" in listed
    assert (place.root / "tty").read_text()


def test_arguments_run_without_a_shell(place: Place):
    text = f'[[hooks.PreToolUse]]\nargs = ["/bin/sh", "-c", "cat > {place.root}/$1", "x", "a b"]\n'
    held(place, calls(RUNS), DONE, text=text)
    assert json.loads((place.root / "a b").read_text())["tool_name"] == "run_shell_command"


def test_long_texts_are_in_a_file(place: Place):
    command = "head -c 60000 /dev/zero | tr '\\0' x"
    found = held(place, DONE, text=hook("UserPromptSubmit", command))
    text = found.texts[0]
    assert "Output too large" in text
    assert len(text) < 51_000
    [stored] = (place.root / "temp").glob("hook-*")
    assert stored.read_text() == "x" * 60_000


def test_an_edit_after_a_formatter_hook_works(place: Place):
    file = place.work / "a.py"
    file.write_text("a=1\n")
    path = str(file)
    edit = {"file_path": path, "instruction": "x"}
    first = ("c1", "read_file", {"absolute_path": path})
    second = ("c2", "replace", {**edit, "old_string": "a=1", "new_string": "a=2"})
    third = ("c3", "replace", {**edit, "old_string": "a = 2", "new_string": "a = 3"})
    text = hook("PostToolUse", f"sed -i 's/=/ = /' {path}", matcher="replace")
    found = held(place, calls(first), calls(second), calls(third), DONE, text=text)
    assert [error for _, error in found.results] == [False, False, False]
    assert "a  =  3" in file.read_text().replace("a = 3", "a  =  3")


def test_an_edit_by_others_is_still_noticed(place: Place):
    file = place.work / "a.py"
    file.write_text("a=1\n")
    first = ("c1", "read_file", {"absolute_path": str(file)})
    change = ("c2", "run_shell_command", {"command": f"echo b=1 >> {file}"})
    edit = {"file_path": str(file), "instruction": "x", "old_string": "a=1", "new_string": "a=2"}
    text = hook("PostToolUse", "true")
    found = held(
        place, calls(first), calls(change), calls(("c3", "replace", edit)), DONE, text=text
    )
    assert "has changed since it was last read" in found.results[-1][0]


def test_stop_hooks_end_after_their_limit(place: Place):
    text = hook("Stop", prints({"decision": "block", "reason": "more"}))
    found = held(place, says("Done."), text=f"{text}\n[hooks]\nstop_limit = 3\n")
    assert len(found.model.asked) == 4
    assert any("refused the end of the turn 3 times" in words for words in found.notices)


def test_a_session_start_hook_adds_context_and_variables(place: Place):
    command = 'echo "export MARK=\'a b\' LD_PRELOAD=x" >> "$CLAUDE_ENV_FILE"; echo branch main'
    shows = ("c1", "run_shell_command", {"command": "echo [$MARK] [$LD_PRELOAD]"})
    text = hook("SessionStart", command, matcher="startup") + hook(
        "SessionEnd", f"cat > {place.root}/end.json"
    )
    found = held(place, calls(shows), DONE, text=text)
    assert found.texts[0].endswith("SessionStart hook success: branch main</hook_context>")
    assert "[a b] []" in found.results[0][0]
    assert json.loads((place.root / "end.json").read_text())["reason"] == "other"


def test_a_turn_that_fails_is_reported(place: Place):
    broken = ProviderError(ErrorKind.BAD_REQUEST, "no such thing")
    found = held(place, [broken], text=hook("StopFailure", f"cat > {place.root}/failure.json"))
    assert found.ended[0].reason == "failed"
    assert "no such thing" in json.loads((place.root / "failure.json").read_text())["error"]


LONG = says(" ".join(map(str, range(4000))))
SUMMARY = says("<state_snapshot>short</state_snapshot>")


def test_a_hook_gets_the_words_of_a_compaction(place: Place):
    text = hook("PreCompact", f"cat > {place.root}/noted.json")
    prompts, replies = ("one", "two", "three"), (LONG, LONG, LONG, SUMMARY)
    held(place, *replies, text=text, prompts=prompts, then=lambda one: one.compress("the names"))
    noted = json.loads((place.root / "noted.json").read_text())
    assert (noted["trigger"], noted["custom_instructions"]) == ("manual", "the names")


def test_a_hook_refuses_a_compaction(place: Place):
    text = hook("PreCompact", "echo 'not now' >&2; exit 2", matcher="manual")
    prompts = ("one", "two", "three")
    found = held(place, LONG, text=text, prompts=prompts, then=lambda one: one.compress())
    assert found.ran == [("PreCompact", "deny")]
    assert "the conversation is not shortened: not now" in found.notices
    assert len(found.model.asked) == 3


def test_a_compaction_is_reported_and_context_is_added_again(place: Place):
    text = "".join(
        (
            hook("PreCompact", "true", matcher="manual"),
            hook("PostCompact", "true", matcher="manual"),
            hook("SessionStart", "echo branch main", matcher="compact"),
        )
    )

    async def goes_on(session: AgentSession) -> None:
        assert await session.compress() is not None
        await sent(session, "again")

    replies = (LONG, LONG, LONG, SUMMARY, DONE)
    found = held(place, *replies, text=text, prompts=("one", "two", "three"), then=goes_on)
    assert found.ran == [("PreCompact", ""), ("PostCompact", ""), ("SessionStart", "")]
    assert found.texts[-2:] == [
        "<hook_context>SessionStart hook success: branch main</hook_context>",
        "again",
    ]


def test_a_failed_call_has_its_own_event(place: Place):
    text = hook("PostToolUseFailure", f"cat > {place.root}/failure.json")
    reads = ("c1", "read_file", {"absolute_path": str(place.work / "none.txt")})
    held(place, calls(reads), DONE, text=text)
    given = json.loads((place.root / "failure.json").read_text())
    assert (given["tool_name"], given["is_interrupt"]) == ("read_file", False)
    assert "not found" in given["error"].lower()


def test_the_transcript_is_written_for_a_hook_that_reads_it(place: Place):
    copy = f'sed -n \'s/.*"transcript_path":"\\([^"]*\\)".*/\\1/p\' | xargs cat > {place.root}/t'
    found = held(place, calls(RUNS), DONE, text=hook("Stop", copy))
    lines = [json.loads(line) for line in (place.root / "t").read_text().splitlines()]
    assert [one["type"] for one in lines] == ["user", "assistant", "user", "assistant"]
    assert lines[0]["message"] == {"role": "user", "content": "do it"}
    assert lines[1]["message"]["content"] == [
        {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "echo one"}}
    ]
    assert found.ran == [("Stop", "")]


def test_no_transcript_is_written_for_a_hook_that_does_not(place: Place):
    held(place, calls(RUNS), DONE, text=hook("PreToolUse", "true"))
    assert not (place.root / "temp" / "transcripts").exists()


class _Answering(BaseHTTPRequestHandler):
    received: list[dict[str, Any]]

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        type(self).received.append(json.loads(self.rfile.read(size)))
        body = json.dumps({"decision": "block", "reason": "by http"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    _Answering.received = []
    serving = HTTPServer(("127.0.0.1", 0), _Answering)
    Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}/hook", _Answering.received
    serving.shutdown()


def test_an_http_hook_gets_the_same_json(place: Place, server: tuple[str, list[dict[str, Any]]]):
    url, received = server
    text = f'[[hooks.PreToolUse]]\nurl = "{url}"\n'
    found = held(place, calls(RUNS), DONE, text=text)
    assert found.results == [("PreToolUse:run_shell_command hook error: by http", True)]
    assert received[0]["tool_input"] == {"command": "echo one"}


def test_an_http_hook_that_cannot_be_reached_changes_nothing(place: Place):
    text = '[[hooks.PreToolUse]]\nurl = "http://127.0.0.1:1/"\n'
    found = held(place, calls(RUNS), DONE, text=text)
    assert not found.results[0][1]
    assert found.ran == [("PreToolUse", "failed")]


# Definitions.


@pytest.mark.parametrize(
    ("matcher", "name", "matches"),
    [
        ("", "any", True),
        ("*", "any", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("my-tool", "my-tool", True),
        ("my-tool", "my", False),
        ("mcp__git__.*", "mcp__git__status", True),
        ("Notebook.*", "NotebookEdit", True),
        ("otebook.*", "NotebookEdit", False),
        ("^Bash$", "Bash", True),
    ],
)
def test_matchers(matcher: str, name: str, matches: bool):
    hook = Definition(event="PreToolUse", written="PreToolUse", matcher=matcher, command="x")
    assert hook.matches(name) is matches


def test_a_malformed_entry_is_reported_and_the_rest_works(place: Place):
    file = claude_settings(
        place,
        PreToolUse=[
            {"matcher": "[", "hooks": [{"type": "command", "command": "true"}]},
            {"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "ok?"}, 7, {"command": 1}]},
            {"matcher": "Bash"},
            *group("echo no >&2; exit 2", matcher="Bash"),
        ],
        Unheard=group("true"),
    )
    text = '[hooks]\nfrom = ["claude"]\n[[hooks.PreToolUse]]\ncommand = "true"\ntimout = 3\n'
    found = held(place, calls(RUNS), DONE, text=text)
    assert found.results == [
        ("PreToolUse:Bash hook error: [echo no >&2; exit 2]: no", True),
    ]
    skipped = [words for words in found.notices if words.startswith("a hook is skipped")]
    assert len(skipped) == 7
    assert any("timout" in words for words in skipped)
    assert any('unknown hook event "Unheard"' in words for words in skipped)
    file.write_text("{")
    broken = held(place, calls(RUNS), DONE, text=text)
    assert not broken.results[0][1]
    assert any(".claude/settings.json: the file is not JSON" in words for words in broken.notices)


def test_an_own_hook_may_use_the_names_of_gemini(place: Place):
    found = held(place, calls(RUNS), DONE, text=hook("BeforeTool", "echo no >&2; exit 2"))
    assert found.results == [("PreToolUse:run_shell_command hook error: no", True)]


def test_units_and_places_of_other_programs(tmp_path: Path):
    for program, seconds in (("claude", 5), ("gemini", 5000)):
        file = tmp_path / "home" / f".{program}" / "settings.json"
        file.parent.mkdir(parents=True)
        event = "BeforeTool" if program == "gemini" else "PreToolUse"
        hooks = [{"hooks": [{"type": "command", "command": program, "timeout": seconds}]}]
        file.write_text(json.dumps({"hooks": {event: hooks}}))
    found = read_definitions(
        (), ("claude", "gemini"), cwd=tmp_path / "work", home=tmp_path / "home", trusted=False
    )
    assert [(one.command, one.timeout, one.project) for one in found.hooks] == [
        ("claude", 5.0, False),
        ("gemini", 5.0, False),
    ]


# Trust and approval.


def project_hook(place: Place) -> None:
    script(place.work / "check.sh", f"#!/bin/sh\ntouch {place.root}/ran\n")
    claude_settings(place, PreToolUse=group("./check.sh"))


CLAUDE = '[hooks]\nfrom = ["claude"]\n'


def test_hooks_of_a_project_need_trust_and_approval(place: Place):
    project_hook(place)
    untrusted = held(place, calls(RUNS), DONE, text=CLAUDE, trusted=False)
    assert any("not trusted" in words for words in untrusted.notices)
    settings = config.load(place.environ(), place.work, trusted=False)
    [row] = hook_rows(settings, place.environ(), place.work)
    assert row.skipped_because == "this folder is not trusted: toolwire config trust"
    waiting = held(place, calls(RUNS), DONE, text=CLAUDE, approve=False)
    assert any("waits for your approval" in words for words in waiting.notices)
    assert not (place.root / "ran").exists()
    approved = held(place, calls(RUNS), DONE, text=CLAUDE)
    assert approved.ran == [("PreToolUse", "")]
    assert (place.root / "ran").exists()


def test_an_approval_is_bound_to_the_script_too(place: Place):
    project_hook(place)
    held(place, calls(RUNS), DONE, text=CLAUDE)
    script(place.work / "check.sh", "#!/bin/sh\nexit 2\n")
    changed = held(place, calls(RUNS), DONE, text=CLAUDE, approve=False)
    assert not changed.results[0][1]
    assert any("waits for your approval" in words for words in changed.notices)


def test_a_script_that_changes_in_a_session_no_longer_runs(place: Place):
    project_hook(place)
    change = ("c1", "run_shell_command", {"command": "echo 'exit 2' > check.sh"})
    found = held(place, calls(change), calls(RUNS), DONE, text=CLAUDE)
    assert found.ran == [("PreToolUse", ""), ("PreToolUse", "failed")]
    assert not found.results[-1][1]


def test_the_hooks_of_the_own_settings_of_a_project_wait_too(place: Place):
    (place.work / ".toolwire").mkdir()
    (place.work / ".toolwire" / "config.toml").write_text(hook("PreToolUse", "exit 2"))
    found = held(place, calls(RUNS), DONE, approve=False)
    assert not found.results[0][1]
    settings = config.load(place.environ(), place.work, trusted=True)
    [row] = hook_rows(settings, place.environ(), place.work)
    assert (row.origin, row.approved) == ("project", False)


def test_a_project_may_not_choose_programs(place: Place):
    (place.work / ".toolwire").mkdir()
    (place.work / ".toolwire" / "config.toml").write_text(CLAUDE)
    with pytest.raises(BadInput, match=r"hooks\.from: a project may not set this"):
        held(place, DONE)


def test_answers_of_earlier_versions_are_still_read(place: Place):
    old = {str(place.work.resolve()): {"files": "digest"}}
    (place.home / "mcp-approvals.json").write_text(json.dumps(old))
    store = approval_store(place.home)
    assert store.answer(place.work, "mcp:files", "digest") is True
    store.keep(place.work, "hook:x", "other", allowed=False)
    assert store.answer(place.work, "mcp:files", "digest") is True
    assert store.answer(place.work, "hook:x", "other") is False
    assert store.answer(place.work, "hook:x", "new") is None


# Subagents, and the cost.


def test_subagents_have_events(place: Place):
    def one(event: str, command: str) -> Definition:
        return Definition(event=event, written=event, command=command, matcher="reviewer")

    hooks = bound(
        place.work,
        [
            one("SubagentStart", prints({"hookSpecificOutput": {"additionalContext": "be brief"}})),
            one("SubagentStop", prints({"decision": "block", "reason": "go on"})),
        ],
    )
    chain = HookChain((hooks,))

    async def work() -> tuple[Any, Any, Any]:
        return (
            await chain.on(SubagentStart("a1", "reviewer")),
            await chain.on(SubagentStop("a1", "reviewer", "done")),
            await chain.on(SubagentStop("a1", "other", "done")),
        )

    started, stopped, other = asyncio.run(work())
    assert "be brief" in started.context[0]
    assert (stopped.blocked, other.blocked) == ("go on", None)


def in_namespace(*words: str) -> subprocess.CompletedProcess[str] | None:
    """How a program ended that has process ids of its own; None if this system has none."""
    try:
        return subprocess.run([*NAMESPACE, *words], capture_output=True, text=True, check=False)
    except OSError:
        return None


@pytest.mark.sweep
def test_a_thousand_hooks_cost_at_most_a_process_each():
    tried = in_namespace("true")
    if tried is None or tried.returncode != 0:
        pytest.skip("there are no namespaces of process ids here")
    done = in_namespace(sys.executable, "-m", "tests.extensions.hook_processes", "1000")
    assert done is not None
    assert done.returncode == 0, done.stderr
    # A few threads of the pool besides.
    assert 1000 <= int(done.stdout) <= 1010


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="reads names in /proc")
def test_the_shell_of_a_hook_becomes_its_program(place: Place):
    command = f"/bin/sh -c 'cat /proc/$PPID/comm > {place.root}/parent'"
    held(place, calls(RUNS), DONE, text=hook("PreToolUse", command))
    assert (place.root / "parent").read_text() != "bash\n"


# The command line.


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("hooks"))
    project_hook(place)
    (place.home / "config.toml").write_text(CLAUDE + hook("Stop", "echo fine", name="end"))
    commanded(place, "config", "trust")
    return place


def test_the_commands_list_approve_and_try_hooks(project: Place):
    listed = commanded(project, "hooks", "list", "--json")
    rows = json.loads(listed.out)
    assert [sorted(row) for row in rows] == [
        ["approved", "event", "kind", "matcher", "name", "origin", "skipped_because"]
    ] * 2
    assert [(row["event"], row["name"], row["origin"], row["approved"]) for row in rows] == [
        ("Stop", "end", "user", True),
        ("PreToolUse", "./check.sh", ".claude/settings.json", False),
    ]
    unnamed = commanded(project, "approve")
    assert (unnamed.code, "./check.sh" in unnamed.err) == (2, True)
    approved = commanded(project, "approve", "./check.sh")
    assert (approved.code, "./check.sh is approved here" in approved.err) == (0, True)
    tried = commanded(project, "hooks", "test", "PreToolUse", '{"tool_name": "x"}')
    assert (tried.code, "PreToolUse ./check.sh: no decision" in tried.out) == (0, True)
    assert "no hook matches" in commanded(project, "hooks", "test", "PreCompact").out
    wrong = commanded(project, "hooks", "test", "PreTool")
    assert wrong.code == 1
    assert 'did you mean "PreToolUse"' in wrong.err
    assert "Traceback" not in wrong.err
    gone = commanded(project, "approve", "none")
    assert (gone.code, 'unknown MCP server, hook or skill of this project "none"' in gone.err) == (
        1,
        True,
    )


def test_a_refused_prompt_ends_a_run_with_42_and_stores_nothing(place: Place):
    (place.home / "config.toml").write_text(hook("UserPromptSubmit", "echo never >&2; exit 2"))
    with Simulated([Reply(pieces=(Say("ok"),))]) as sim:
        refused = place.run(sim, "hello")
        assert sim.bodies == []
        allowed = place.run(sim, "hello", "--no-hooks")
    assert (refused.code, allowed.code) == (42, 0)
    assert "UserPromptSubmit operation blocked by hook: never" in refused.err
    assert len(json.loads(commanded(place, "sessions", "list", "--json").out)) == 1


def test_each_run_of_a_hook_is_in_the_journal_and_in_telemetry(place: Place):
    (place.home / "config.toml").write_text(
        "[telemetry]\ngemini_events = true\n" + hook("Stop", "true", name="end")
    )
    out = place.root / "telemetry.jsonl"
    with Simulated([Reply(pieces=(Say("ok"),))]) as sim:
        assert place.run(sim, "hello", "--telemetry-outfile", str(out)).code == 0
    [session] = json.loads(commanded(place, "sessions", "list", "--json").out)
    events = stored_sessions(place.environ()).read(session["id"]).events
    ran = [one for one in events if isinstance(one, HookRan)]
    assert [(one.event, one.name, one.decision) for one in ran] == [("Stop", "end", "")]
    assert "gemini_cli.hook_call" in out.read_text()


def test_no_hook_loads_nothing(place: Place):
    code = (
        "import sys, toolwire.cli.run, toolwire.app.builder; "
        "print([m for m in sys.modules if 'extensions.hooks' in m or 'app.extensions' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_refused_prompt_is_an_error_of_the_library_too(place: Place):
    with pytest.raises(PromptRefused):
        held(place, DONE, text=hook("UserPromptSubmit", prints({"continue": False})))


def test_import_takes_hooks_of_both_programs(place: Place):
    for program, event in (("claude", "Stop"), ("gemini", "AfterAgent")):
        file = place.root / f".{program}" / "settings.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"hooks": {event: group("true")}}))
    claude_settings(place, Stop=group("true"))
    imported = commanded(place, "import")
    assert imported.code == 0
    settings = config.load(place.environ(), place.work)
    assert sorted(settings.hooks.from_) == ["claude", "gemini"]
    rows = hook_rows(settings, place.environ(), place.work)
    assert [row.event for row in rows if row.approved] == ["Stop", "Stop"]
    project = commanded(place, "import", "--project")
    assert "it is run where it is" in project.out
