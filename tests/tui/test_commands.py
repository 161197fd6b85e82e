"""Commands of the terminal app on a real terminal, with the simulator as its model."""

import base64
import os
import re
import time

from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, replaces, says, shell
from toolwire.simulator import Question, Reply
from toolwire.simulator.script import Call, Fault
from toolwire.tui.clipboard import copied


def test_the_style_is_chosen_with_its_reason_and_stored_for_the_model(apps: Apps, place: Place):
    with Simulated([says("one"), says("two"), says("three"), says("four")]) as sim:
        app = apps.start(sim, rows=40, columns=120)
        app.press("a\r")
        answered(app, "one")
        app.press("/style\r")
        app.wait("tool style of upstream/default: native in use", "Let it decide", "XML", "JSON")
        app.press("\x1b[B")
        app.wait("xml would be used: the setting says xml")
        app.press("\x1b[B")
        app.wait("json would be used: the setting says json")
        app.press("\x1b[A")
        app.settle(0.2)
        app.press("d")
        app.wait(
            "tool style before: native",
            "tool style in use: xml",
            "stored for upstream/default",
        )
        app.press("b\r")
        answered(app, "two")
        app.press("/style native\r")
        app.wait("tool style in use: native")
        app.press("c\r")
        answered(app, "three")
        app.press("\x04")
        app.end()
        app = apps.start(sim, columns=120)
        app.press("d\r")
        answered(app, "four")
        assert ["tools" in body for body in sim.bodies] == [True, False, True, False]
        [file] = place.home.rglob("config.toml")
        assert 'tool_style = "xml"' in file.read_text()


def test_the_mode_changes_while_the_model_works(apps: Apps, place: Place):
    slow = [shell("sleep 5"), shell("touch made"), says("end of it")]
    with Simulated(slow) as sim:
        app = apps.start(sim, "--allowed-tools", "run_shell_command(sleep)", columns=120)
        app.press("go\r")
        app.wait("run_shell_command sleep 5")
        app.press("/mode plan\r")
        app.wait("approval mode: plan", "· plan")
        answered(app, "end of it", "⊘ run_shell_command touch made")
        assert not (place.work / "made").exists()
        assert sim.bodies[0]["messages"][0] == sim.bodies[1]["messages"][0]
        assert "changed the approval mode to plan" in str(sim.bodies[1]["messages"])
        assert "changed the approval mode" not in str(app.all())


def test_a_running_command_goes_to_the_background_and_is_stopped_there(apps: Apps):
    command = "echo begun; sleep 300"
    with Simulated([shell(command), says("it runs on")]) as sim:
        app = apps.start(sim, "--yolo", columns=120)
        app.press("go\r")
        app.wait(f"run_shell_command {command}", "    begun")
        began = time.monotonic()
        app.press("\x02")
        answered(app, "it runs on", "● run_shell_command")
        assert time.monotonic() - began < 60
        sent = str(sim.bodies[1]["messages"])
        assert "run on in the background" in sent
        assert "begun" in sent
        app.press("/shells\r")
        app.wait("background commands", "running", "sleep")
        app.press("x")
        app.wait("stopped:", "ended")
        app.press("\x1b")
        app.wait("default")


def test_changes_are_shown_by_file_and_by_turn(apps: Apps, place: Place):
    first = replaces(place)
    second = replaces(place, "other.py", "a = 1", "a = 2")
    with Simulated([first, says("changed one"), second, says("changed two")]) as sim:
        app = apps.start(sim, "--yolo")
        app.press("first\r")
        answered(app, "changed one")
        app.press("second\r")
        answered(app, "changed two")
        app.press("/diff\r")
        app.wait("everything", "app.py", "other.py", "+1 −1", "turn 1: first", "turn 2: second")
        app.press("/other.py")
        app.wait_gone("turn 1: first")
        app.press("\r\r")
        rows = app.wait("changes of file other.py", "1 + a = 2")
        assert not any("price" in row for row in rows)
        app.press("q")
        app.wait("changes of this session")
        app.press("\x1b[H\r")
        app.wait("all changes, in their order", "1 + price = 2", "1 + a = 2")
        app.press("q")
        app.wait("changes of this session")
        app.press("\x1b")
        app.wait("yolo")


def test_the_transcript_is_searched_folded_copied_and_opened_elsewhere(apps: Apps, place: Place):
    text = "# Title\n\nSome **needle** prose.\n\n```python\nx = 1\n```\n"
    pager = place.root / "pager.sh"
    pager.write_text(f'#!/bin/sh\ncp "$1" {place.root}/seen.md\n')
    pager.chmod(0o755)
    with Simulated([shell("seq 30"), says(text)]) as sim:
        app = apps.start(sim, "--yolo", PAGER=str(pager))
        app.press("go\r")
        answered(app, "x = 1")
        app.press("\x0f")
        app.wait("transcript", "q close", "▎ x = 1")
        app.press("c")
        app.wait("copied")
        copies = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", app.raw)
        assert "Some **needle** prose." in base64.b64decode(copies[-1]).decode()
        app.press("[z")
        app.wait("lines folded")
        app.press("/needle\r")
        app.wait("Some needle prose.")
        app.press("/nothing of it\r")
        app.wait("is not in it")
        app.press("p")
        app.wait("transcript", "q close")
        assert "x = 1" in (place.root / "seen.md").read_text()
        app.press("q")
        app.wait("yolo")


def test_an_answer_is_copied_to_this_machine_too_unless_it_is_remote(apps: Apps, place: Place):
    program, file = place.root / "bin" / "wl-copy", place.root / "copied"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat > {file}.part && mv {file}.part {file}\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    with Simulated([says("für alle"), says("far")]) as sim:
        app = apps.start(sim, PATH=path, WAYLAND_DISPLAY="x")
        app.press("go\r")
        answered(app, "für alle")
        app.press("\x19")
        app.wait("copied 8 characters")
        until = time.monotonic() + 10
        while not file.exists() and time.monotonic() < until:
            app.settle(0.05)
        assert file.read_text() == "für alle"
        file.unlink()
        app = apps.start(sim, PATH=path, WAYLAND_DISPLAY="x", SSH_TTY="/dev/pts/1")
        app.press("go\r")
        answered(app, "far")
        app.press("\x19")
        app.wait("copied 3 characters")
        app.settle()
        assert not file.exists()


def test_what_the_terminal_would_cut_is_not_copied_in_part():
    assert len(copied("x" * 700_000)) > 700_000
    assert copied("x" * 700_001) == ""


def test_results_are_shown_whole_from_now_on(apps: Apps, place: Place):
    many = "seq 1 30"
    with Simulated([shell(many), says("one"), shell(many), says("two")]) as sim:
        app = apps.start(sim, "--yolo", rows=60)
        app.press("go\r")
        app.wait("… 20 more (Ctrl-O)")
        answered(app, "one")
        app.press("/verbose\r")
        app.wait("results are shown whole")
        assert "verbose = true" in (place.home / "config.toml").read_text()
        app.press("go\r")
        answered(app, "    30", "two")


def test_copies_are_the_source_text_byte_for_byte(apps: Apps):
    first = "An answer with *marks*.\n\n```sh\necho one\n```\n"
    with Simulated([says(first), says("the second answer")]) as sim:
        app = apps.start(sim)

        def clipboard() -> str:
            app.wait("copied")
            found = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", app.raw)
            return base64.b64decode(found[-1]).decode()

        for prompt, answer in (("a", "echo one"), ("b", "the second answer")):
            app.press(f"{prompt}\r")
            answered(app, answer)
        app.press("/copy\r")
        app.wait("copied 17 characters")
        assert clipboard() == "the second answer"
        app.press("/copy 2\r")
        app.wait(f"copied {len(first)} characters")
        assert clipboard() == first
        app.press("/copy code\r")
        app.wait("copied 9 characters")
        assert clipboard() == "echo one\n"
        app.press("/copy 7\r")
        app.wait("there are 2 answers")


def test_what_fills_the_window_and_what_was_used(apps: Apps, place: Place):
    (place.work / "AGENTS.md").write_text("Use tabs.\n" * 50)
    (place.work / "data.txt").write_text("word " * 500)
    with Simulated([shell("echo hi"), says("done")]) as sim:
        app = apps.start(sim, "--yolo", rows=50, columns=120)
        app.press("see @data.txt \r")
        answered(app, "done")
        app.press("/context\r")
        rows = app.wait("system prompt", "notes", "tools", "files", "results", "cache:")
        by_name = {row.split("  ")[0].strip(): row for row in rows}
        for name in ("notes", "files", "tools"):
            assert int(re.findall(r"[\d,]+", by_name[name])[0].replace(",", "")) > 100
        app.press("/usage\r")
        app.wait("2 requests", "cached", "run_shell_command", "1 calls")
        app.press("/status\r")
        app.wait("session", "style", "native:", "sandbox")


def test_rules_are_listed_tried_added_and_removed(apps: Apps, place: Place):
    with Simulated([shell("git push"), says("done")]) as sim:
        app = apps.start(sim, columns=140)
        app.press("/permissions\r")
        app.wait("rules in default mode", "built in", "t tries a command")
        app.press("t")
        app.wait("command › ")
        app.press("git push\r")
        app.wait("ask: git push")
        app.press("a")
        app.wait("allow, ask or deny")
        app.press("deny run_shell_command(git push)\r")
        app.wait("added to", "deny")
        [file] = place.home.rglob("policy.toml")
        assert "git" in file.read_text()
        app.press("\x1b")
        app.wait("default · native")
        app.settle()
        app.press("go\r")
        answered(app, "⊘ run_shell_command git push", "done")
        app.press("/permissions try git push\r")
        app.wait("deny: git push")
        app.press("/permissions\r")
        app.wait("rules in default mode", "› deny")
        app.press("\x1b[3~")
        app.wait("removed: deny", "also from")
        assert "push" not in file.read_text()


def test_a_setting_is_filtered_changed_in_place_and_unset(apps: Apps, place: Place):
    with Simulated([]) as sim:
        app = apps.start(sim, columns=140)
        app.press("/settings\r")
        app.wait("settings; changes go to user", "default_model")
        app.press("/limits.turns\r")
        app.wait("› limits.turns", "Requests to the model in one run", "TOOLWIRE_LIMITS_TURNS")
        app.press("\r")
        app.wait("limits.turns › 0")
        app.press("\x15seven\r")
        app.wait("limits.turns must be")
        app.press("\r")
        app.wait("limits.turns › 0")
        app.press("\x157\r")
        app.wait("limits.turns is set in", "user")
        [file] = place.home.rglob("config.toml")
        assert "turns = 7" in file.read_text()
        app.press("u")
        app.wait("is no longer set")
        assert "turns" not in file.read_text()
        app.press("l")
        app.wait("changes go to project")
        app.press("\x1b")
        app.wait("default · native")
        app.settle()
        app.press("/settings limits.turns 9\r")
        app.wait("limits.turns is set in")
        assert "turns = 9" in file.read_text()


def test_tools_models_effort_and_notes_are_shown(apps: Apps, place: Place):
    (place.work / "AGENTS.md").write_text("Use tabs.\n")
    with Simulated([says("hard")]) as sim:
        app = apps.start(sim, columns=140, rows=40, EDITOR="true", VISUAL="true")
        app.press("/tools\r")
        app.wait("read_file  read  allow", "run_shell_command  execute  ask", "lines folded")
        app.press("q")
        app.wait("default · native")
        app.press("/model\r")
        app.wait("model (now upstream/default)", "s this session only", "$", "no key")
        app.press("/claude-sonnet\r")
        app.wait("anthropic/claude-sonnet", "Price per million tokens")
        app.press("\x1b\x1b")
        app.wait("default · native")
        app.settle()
        app.press("/effort high\r")
        app.wait("effort: high")
        app.press("think\r")
        answered(app, "hard")
        assert "high" in str(sim.bodies[0])
        app.press("/memory\r")
        app.wait("notes given to the model", "AGENTS.md", "bytes", "project")
        app.press("\r")
        app.wait("read again by the next session")


def test_a_model_that_is_typed_becomes_the_default_as_in_the_list(apps: Apps, place: Place):
    file = place.home / "config.toml"
    with Simulated([says("x")]) as sim:
        app = apps.start(sim, OPENAI_API_KEY="sk-none", ANTHROPIC_API_KEY="sk-none")
        app.press("/model upstream/other\r")
        app.wait("model: upstream/other")
        app.press("/model openai/gpt-5 session\r")
        app.wait("model: openai/gpt-5")
        app.press("/model openai/gpt-5 always\r")
        app.wait("takes only the word session")
        assert not file.exists() or "default_model" not in file.read_text()
        app.press("/model anthropic/claude-sonnet-4-5\r")
        app.wait("model: anthropic/claude-sonnet-4-5, also the default")
        assert 'default_model = "anthropic/claude-sonnet-4-5"' in file.read_text()


def test_a_report_of_a_bug_has_no_secret(apps: Apps, place: Place):
    key = "sk-ant-api03-" + "a1B2c3D4" * 8
    with Simulated([says("hello")]) as sim:
        app = apps.start(sim, ANTHROPIC_API_KEY=key, columns=140)
        app.press(f"my key is {key}\r")
        answered(app, "hello")
        app.press(f"/bug it broke with {key}\r")
        app.wait("report:")
        [file] = place.home.rglob("bug-*.md")
        text = file.read_text()
        assert key not in text
        assert "my key is" not in text
        assert "upstream/default" in text
        assert "terminal 140x24" in text
        app.press("/doctor offline\r")
        app.wait("toolwire doctor", "Versions", "q close")
        app.press("q")
        app.wait("default · native")
        app.press("/nonsense\r")
        app.wait('unknown command "/nonsense"')


def test_a_log_in_stores_a_key(apps: Apps, place: Place):
    with Simulated([]) as sim:
        app = apps.start(sim, columns=140)
        app.press("/login mistral --file\r")
        app.wait("Key for Mistral")
        app.settle(1.0)
        app.press("secret-value-of-a-key\r")
        app.wait("logged in to mistral")
        assert "secret-value" not in app.raw.decode("utf-8", "replace")
        app.press("/login nosuch\r")
        app.wait('unknown provider "nosuch"')


def test_the_plan_and_its_panel(apps: Apps):
    steps = [{"text": "read it", "status": "done"}, {"text": "fix it", "status": "in_progress"}]
    plan = Reply(pieces=(Call.of("todo", items=steps),))
    with Simulated([plan, says("x", fault=Fault(wait_first=3.0))]) as sim:
        app = apps.start(sim, "--yolo")
        app.press("go\r")
        app.wait("☐ 1 of 2  fix it")
        app.press("\x14")
        app.wait("☑ read it", "▸ fix it")
        app.press("\x14")
        app.wait_gone("☑ read it")
        app.wait_gone("esc stops")
        app.press("/plan\r")
        app.wait("☑ read it")


def test_changes_are_undone_by_turn_and_by_file(apps: Apps, place: Place):
    first = replaces(place)
    second = replaces(place, old="price = 2", new="price = 3")
    other = replaces(place, name="other.py", old="a", new="b")
    with Simulated([first, says("one"), second, other, says("two"), says("three")]) as sim:
        app = apps.start(sim, "--yolo", rows=40, columns=120)
        app.press("go\r")
        answered(app, "one")
        app.press("go on\r")
        answered(app, "two")
        app.press("/undo\r")
        app.wait("restored app.py", "restored other.py", "checkpoint 2 is restored")
        assert (place.work / "app.py").read_text() == "price = 2\n"
        app.press("and now\r")
        answered(app, "three")
        assert "The user restored files" in str(sim.bodies[-1]["messages"])
        app.press("/diff\r")
        app.wait("changes of this session", "u undoes")
        app.press("\x1b[B")
        app.settle(0.2)
        app.press("u")
        app.wait("undone: app.py")
        assert (place.work / "app.py").read_text() == "price = 1\n"
        app.answer("\x1b")
        app.press("/restore\r")
        app.wait("before turn 2", "before turn 1", "before a restore")
        app.answer("\x1b")
        app.press("/restore 1\r")
        app.wait("the files are as they were at checkpoint 1")


def test_words_after_compact_reach_the_model_that_summarises(apps: Apps):
    summary = says("<state_snapshot>\n<overall_goal>tables</overall_goal>\n</state_snapshot>")
    long = " ".join(f"word{number}" for number in range(3000))
    with Simulated([says(long), says("short"), summary, says("on")]) as sim:
        app = apps.start(sim)
        app.press("first\r")
        answered(app, "word2999")
        app.press("second\r")
        answered(app, "short")
        app.press("/compact the names of all tables\r")
        app.wait("shortened")
        assert "the names of all tables" in str(sim.bodies[2]["messages"][-1]["content"])


def test_a_subagent_is_seen_mentioned_and_stopped(apps: Apps):
    def answer(question: Question) -> Reply:
        system = next(one.text for one in question.request.messages if one.role == "system")
        if "You work for another agent" in system:
            return says("slow " * 4000, fault=Fault(wait_each=0.5))
        if any(one.results for one in question.request.messages):
            return says("end of it")
        return Reply(pieces=(Call.of("run_agent", agent="explore", prompt="look"),))

    with Simulated(answer) as sim:
        app = apps.start(sim, rows=40, columns=120)
        app.press("/plan\r")
        # The session is open: only then its agents are known.
        app.wait("there is no plan")
        app.press("@agent-e")
        app.wait("agent-explore")
        app.press("\t")
        app.settle(0.2)
        app.press(" go\r")
        app.wait("1 agent")
        app.press("/agents\r")
        app.wait("subagents", "explore", "working", "x stops it")
        app.press("x")
        app.wait("done")
        app.answer("\x1b")
        answered(app, "end of it")
        assert "stopped by the user" in str(sim.bodies[-1]["messages"])
