"""What a newcomer types first: prompts without a command, and the options of a session."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from tests.fakes.simulated import Place, Simulated
from tests.fakes.terminal import Terminal
from toolwire.cli.commands import with_command
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say, refused

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63"
    "64f8cf500f0003860180d5a7c1d50000000049454e44ae426082"
)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ADA = '{"name": "Ada", "age": 36}'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def shell(command: str, **more: str) -> Reply:
    return Reply(pieces=(Call.of("run_shell_command", command=command, **more),))


@pytest.mark.parametrize(
    ("args", "terminal", "pipe"),
    [
        ([], ["chat"], ["chat"]),
        (["explain this"], ["chat", "explain this"], ["run", "explain this"]),
        (["hello"], ["chat", "hello"], ["run", "hello"]),
        (["-p", "explain"], ["run", "-p", "explain"], ["run", "-p", "explain"]),
        (["-pexplain"], ["run", "-pexplain"], ["run", "-pexplain"]),
        (["--prompt=x"], ["run", "--prompt=x"], ["run", "--prompt=x"]),
        (["a b", "--output-format=json"],) + (["run", "a b", "--output-format=json"],) * 2,
        (["-c"], ["chat", "-c"], ["run", "-c"]),
        (["-m", "sonnet", "a b"], ["chat", "-m", "sonnet", "a b"], ["run", "-m", "sonnet", "a b"]),
        (["models", "--json"],) * 3,
        (["--version"],) * 3,
        (["-h"],) * 3,
        (["help"], ["--help"], ["--help"]),
        (["help", "run"], ["run", "--help"], ["run", "--help"]),
    ],
)  # fmt: skip
def test_arguments_without_a_command_mean_chat_or_run(
    args: list[str], terminal: list[str], pipe: list[str]
):
    assert with_command(args, at_terminal=True) == terminal
    assert with_command(args, at_terminal=False) == pipe


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnu"], 'did you mean "run"?'),
        (["modles"], 'did you mean "models"?'),
        (["Doctr", "--json"], 'did you mean "doctor"?'),
        (["session", "list"], 'did you mean "sessions"?'),
        (["explain", "this"], 'toolwire "explain this'),
    ],
)
def test_a_word_that_is_nearly_a_command_is_not_a_prompt(args: list[str], words: str):
    with pytest.raises(click.UsageError, match="unknown command") as caught:
        with_command(args, at_terminal=True)
    assert words in str(caught.value)


def test_a_mistyped_command_is_one_line_and_wrong_usage(place: Place):
    ended = place.toolwire("rnu")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] == (
        'toolwire: unknown command "rnu"; did you mean "run"? As a prompt: toolwire -p rnu'
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("run", "--modle", "x"), "--model"),
        (("providers", "antropic"), 'did you mean "anthropic"?'),
        (("run", "hi", "--model", "antropic/claude"), 'did you mean "anthropic"?'),
        (("run", "hi", "--model", "sonet"), 'did you mean "anthropic/claude-sonnet-'),
    ],
)
def test_mistyped_options_providers_and_models_name_the_nearest(
    place: Place, args: tuple[str, ...], words: str
):
    ended = place.toolwire(*args)
    assert ended.code in (2, 42)
    assert ended.err.splitlines()[-1].startswith("toolwire: ")
    assert words in ended.err


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(place: Place, flag: str):
    for args in ([], ["run"], ["chat"], ["tools", "call"]):
        ended = place.toolwire(*args, flag)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith("Usage: ")


def test_a_prompt_alone_is_run_where_standard_output_is_no_terminal(place: Place):
    with Simulated([says("because"), says("so")]) as sim:
        first = place.toolwire("why is that?", "--upstream", sim.upstream())
        second = place.toolwire("-p", "and that?", "-c", "--upstream", sim.upstream())
    assert (first.out, second.out) == ("because\n", "so\n")
    assert [one["content"] for one in sim.bodies[1]["messages"] if one["role"] == "assistant"][
        -1
    ] == "because"


def test_a_short_model_name_is_resolved_and_shown(place: Place):
    with Simulated([says("hi")]) as sim:
        env = {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": sim.upstream().partition("=")[2][:-3],
        }
        ended = place.toolwire("run", "hi", "--model", "sonnet", env=env)
    assert (ended.code, ended.out) == (0, "hi\n")
    assert f'"sonnet" is anthropic/{sim.bodies[0]["model"]}' in ended.err


def test_a_misspelt_model_of_a_provider_is_suggested_when_the_vendor_does_not_know_it(
    place: Place,
):
    with Simulated([Reply(pieces=(), fault=refused(404, "model_not_found: no such model"))]) as sim:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": sim.upstream().partition("=")[2]}
        ended = place.toolwire("run", "hi", "--model", "openai/gpt5", env=env)
    assert ended.code == 1
    assert 'did you mean "openai/gpt-5"?' in ended.err


def test_resume_names_a_session_or_takes_the_most_recent(place: Place):
    with Simulated([says("one"), says("two"), says("three"), says("four")]) as sim:
        ended = place.run(sim, "first", "--output-format", "json")
        id = json.loads(ended.out)["session_id"]
        place.run(sim, "second")
        by_id = place.run(sim, "go on", "--resume", id)
        latest = place.run(sim, "and on", "-r")
        clash = place.run(sim, "x", "-r", id, "-c")
    assert (by_id.out, latest.out) == ("three\n", "four\n")
    assert "first" in str(sim.bodies[2])
    assert "go on" in str(sim.bodies[3])
    assert clash.code == 2


def test_no_session_stores_nothing(place: Place):
    with Simulated([shell("ls"), says("ok")]) as sim:
        ended = place.run(sim, "hi", "--no-session")
        assert place.run(sim, "hi", "--no-session", "--continue").code == 2
    assert (ended.code, ended.out) == (0, "ok\n")
    assert not list(place.home.rglob("*.db*"))
    assert "no sessions" in place.toolwire("sessions", "list", "--all").err


def test_a_home_that_cannot_be_written_is_a_warning_not_an_error(place: Place):
    env = {"TOOLWIRE_HOME": "/proc/toolwire"}
    with Simulated([shell("ls"), says("ok"), says("no")]) as sim:
        ended = place.run(sim, "hi", env=env)
        explicit = place.run(sim, "hi", "--continue", env=env)
    assert (ended.code, ended.out) == (0, "ok\n")
    assert "the session is not stored" in ended.err
    assert "Traceback" not in ended.err + explicit.err
    assert explicit.code == 1


@pytest.mark.parametrize("command", ["cat {}/b.txt", "echo hi > {}/made.txt", "cat b.txt"])
def test_an_added_folder_belongs_to_the_workspace_for_commands(place: Place, command: str):
    other = place.root / "other"
    other.mkdir()
    (other / "b.txt").write_text("BBB\n")
    run = shell(command.format(other), **({"directory": "other"} if "{}" not in command else {}))
    options = ("--approval-mode", "auto_edit", "--output-format", "stream-json")
    with Simulated([run, says("ok"), run, says("ok")]) as sim:
        without = place.run(sim, "go", *options)
        ended = place.run(sim, "go", "--add-dir", str(other), *options)
    assert ended.code == 0, ended.err
    refused, done = (
        next(
            line for line in map(json.loads, one.out.splitlines()) if line["type"] == "tool_result"
        )
        for one in (without, ended)
    )
    assert refused["status"] == "error" or "BBB" not in refused["output"]
    assert done["status"] == "success", done
    if "made" in command:
        assert (other / "made.txt").read_text() == "hi\n"
    else:
        assert "BBB" in done["output"]


def test_an_added_folder_belongs_to_the_workspace_for_the_file_tools(place: Place):
    other = place.root / "other"
    other.mkdir()
    (other / "b.txt").write_text("BBB\n")
    file = str(other / "b.txt")
    edit = {"instruction": "x", "old_string": "BBB", "new_string": "CCC"}
    script = [
        Reply(pieces=(Call.of("read_file", absolute_path=file),)),
        Reply(pieces=(Call.of("replace", file_path=file, **edit),)),
        Reply(pieces=(Call.of("search_file_content", pattern="CCC"),)),
        says("{last_result}"),
    ]
    with Simulated(script) as sim:
        ended = place.run(sim, "go", "--add-dir", str(other), "--approval-mode", "auto_edit")
        assert place.run(sim, "go", "--add-dir", str(other / "none")).code == 2
    assert ended.code == 0
    assert (other / "b.txt").read_text() == "CCC\n"
    assert "b.txt" in ended.out
    assert str(other) in str(sim.bodies[0]["messages"])


def test_pictures_documents_and_text_are_attached_from_anywhere(place: Place):
    (place.root / "p.png").write_bytes(PIXEL)
    (place.root / "d.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    (place.root / "t.txt").write_text("the text\n")
    names = [str(place.root / name) for name in ("p.png", "d.pdf", "t.txt")]
    with Simulated([says("ok")]) as sim:
        attached = [word for name in names for word in ("--attach", name)]
        ended = place.run(sim, "what is it?", *attached, dialect="anthropic-messages")
    assert ended.code == 0, ended.err
    parts = sim.bodies[0]["messages"][-1]["content"]
    assert {part["type"] for part in parts} == {"text", "image", "document"}
    assert "the text" in str(parts)


@pytest.mark.parametrize("name", ["missing.png", "folder", "x.zip"])
def test_a_file_that_cannot_be_attached_is_bad_input(place: Place, name: str):
    (place.work / "folder").mkdir()
    (place.work / "x.zip").write_bytes(b"PK\0\0")
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "hi", "--attach", name)
    assert ended.code in (2, 42)
    assert ended.err.splitlines()[-1].startswith("toolwire: ")
    assert name in ended.err
    assert not sim.bodies


def test_settings_of_one_run_reach_the_request(place: Place):
    (place.work / "s.md").write_text("From a file.")
    options = ("--temperature", "0.25", "--effort", "high", "--append-system", "Be brief.")
    with Simulated([says("ok")] * 4) as sim:
        place.run(sim, "hi", *options, "--system", "You are a test.")
        place.run(sim, "hi", "--system", "@s.md", "--append-system", "@s.md")
        place.run(sim, "hi", "--system", "s.md")
        missing = place.run(sim, "hi", "--system", "none.md")
    first, second, third = sim.bodies
    assert (first["temperature"], first["reasoning_effort"]) == (0.25, "high")
    assert first["messages"][0]["content"] == "You are a test.\n\nBe brief."
    assert second["messages"][0]["content"] == "From a file.\n\nFrom a file."
    assert third["messages"][0]["content"] == "From a file."
    assert missing.code == 42
    assert "no such file" in missing.err


@pytest.mark.parametrize(
    ("option", "value", "stop"),
    [("--max-tokens", "5", "token_limit"), ("--max-cost", "0.000001", "cost_limit")],
)
def test_limits_of_one_run_stop_it(place: Place, option: str, value: str, stop: str):
    (place.home / "config.toml").write_text(
        '[models."upstream/default"]\nprices = { input = 5.0, output = 5.0 }\n'
    )
    with Simulated([shell("ls"), says("never")]) as sim:
        ended = place.run(sim, "go", option, value, "--output-format", "json")
    assert (ended.code, json.loads(ended.out)["stop"]) == (53, stop)
    assert f"raise it with {option}" in json.loads(ended.out)["error"]["message"]


def test_a_cost_limit_without_a_known_price_is_reported(place: Place):
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "go", "--max-cost", "1")
    assert (ended.code, ended.out) == (0, "ok\n")
    assert "the price of upstream/default is not known" in ended.err


def test_the_answer_is_held_to_a_schema(place: Place):
    (place.work / "person.json").write_text(json.dumps(PERSON))
    with Simulated([says("Ada is 36"), says(f"```json\n{ADA}\n```")] * 2) as sim:
        text = place.run(sim, "who?", "--output-schema", "person.json")
        body = place.run(sim, "who?", "--output-schema", "person.json", "--output-format", "json")
    assert (text.code, text.out) == (0, f"{ADA}\n")
    assert "asking again (1 of 2)" in text.err
    assert json.loads(body.out)["output"] == {"name": "Ada", "age": 36}
    assert json.loads(body.out)["response"] == ADA
    format = sim.bodies[0]["response_format"]["json_schema"]
    assert (format["schema"], format["strict"]) == (PERSON, True)
    assert "JSON Schema" in sim.bodies[0]["messages"][0]["content"]


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic-messages", "gemini"])
def test_every_wire_format_takes_the_schema(place: Place, dialect: str):
    (place.work / "person.json").write_text(json.dumps(PERSON))
    with Simulated([says(ADA)]) as sim:
        ended = place.run(sim, "who?", "--output-schema", "person.json", dialect=dialect)
    assert (ended.code, ended.out, sim.refusals) == (0, f"{ADA}\n", [])
    body = sim.bodies[0]
    sent = body.get("text") or body.get("output_config") or body.get("generationConfig")
    assert "integer" in json.dumps(sent)


def test_an_answer_that_never_fits_is_a_typed_error(place: Place):
    (place.work / "person.json").write_text(json.dumps(PERSON))
    with Simulated([says("no")] * 3) as sim:
        ended = place.run(sim, "x", "--output-schema", "person.json", "--output-format", "json")
    body = json.loads(ended.out)
    assert (ended.code, body["output"], body["error"]["type"]) == (1, None, "invalid_output")
    assert len(sim.bodies) == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "objekt"}', None])
def test_a_schema_file_that_cannot_be_used_is_bad_input(place: Place, text: str | None):
    if text is not None:
        (place.work / "s.json").write_text(text)
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "x", "--output-schema", "s.json")
    assert ended.code == 42
    assert ended.err.startswith("toolwire: --output-schema: s.json")
    assert not sim.bodies


def test_the_approval_mode_in_force_is_in_machine_readable_output(place: Place):
    with Simulated([says("ok")] * 2) as sim:
        body = place.run(sim, "x", "--approval-mode", "plan", "--output-format", "json")
        lines = place.run(sim, "x", "-y", "--output-format", "stream-json")
    assert json.loads(body.out)["approval_mode"] == "plan"
    assert json.loads(lines.out.splitlines()[0])["approval_mode"] == "yolo"


def test_a_run_whose_only_change_was_denied_ends_with_that(place: Place):
    target = str(place.work / "x.txt")
    write = Reply(pieces=(Call.of("write_file", file_path=target, content="hi"),))
    with Simulated([write, says("Done!"), write, says("Done!"), write, says("Done!")]) as sim:
        denied = place.run(sim, "go", "-q")
        body = place.run(sim, "go", "--output-format", "json")
        allowed = place.run(sim, "go", "--approval-mode", "auto_edit")
    last = denied.err.splitlines()[-1]
    # A long path is shortened.
    assert re.match(r"… nothing was changed: write_file \S+ needed approval and was denied", last)
    [listed] = json.loads(body.out)["denied"]
    assert listed.startswith(f"write_file {target[:20]}")
    assert "nothing was changed" not in allowed.err


def test_a_chat_begins_with_the_prompt_of_the_command_line(place: Place):
    with Simulated([says("because"), says("so")]) as sim:
        terminal = Terminal(
            ["why is that?", "--upstream", sim.upstream()], cwd=place.work, env=place.environ()
        )
        terminal.wait_for("> why is that?")
        terminal.wait_for("because")
        terminal.wait_for("> ")
        terminal.leave()
        terminal.close()
    assert sim.bodies[0]["messages"][-1]["content"] == "why is that?"


@pytest.mark.parametrize(
    "args",
    [
        ("--version",),
        ("--help",),
        ("models",),
        ("providers", "--json"),
        ("config", "show"),
        ("tools", "list"),
        ("tools", "call", "glob", '{"pattern": "*"}'),
        ("sessions", "--help"),
        ("schema", "--to", "gemini"),
    ],
)
def test_a_full_device_is_one_line(place: Place, args: tuple[str, ...]):
    with Path("/dev/full").open("wb") as full:
        process = place.start(*args, stdin=subprocess.PIPE, stdout=full)
        _, err = process.communicate(b"{}", timeout=60)
    assert (process.returncode, err.decode()) == (
        1,
        "toolwire: standard output cannot be written: No space left on device\n",
    )


def test_a_reader_that_leaves_early_is_not_an_error(place: Place):
    process = place.start("models", "--json")
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (1, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252:strict"])
def test_output_is_utf_8_whatever_the_environment_says(place: Place, encoding: str):
    (place.work / "ä.txt").write_text("→ 漢\n")
    env = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "LANG": "C"}
    with Simulated([says("→ 漢")]) as sim:
        ended = place.run(sim, "hé", env=env)
    call = place.toolwire("tools", "call", "glob", '{"pattern": "*"}', "--json", env=env)
    assert (ended.code, ended.out) == (0, "→ 漢\n")
    assert "ä.txt" in json.loads(call.out)["parts"][0]["functionResponse"]["response"]["output"]


def test_a_refused_key_names_its_provider_and_variable(place: Place):
    with Simulated([Reply(pieces=(), fault=refused(401, "the API key is not valid"))] * 3) as sim:
        address = sim.upstream().partition("=")[2]
        env = {"OPENAI_API_KEY": "sk-secret-0123456789", "OPENAI_BASE_URL": address}
        ended = place.toolwire("run", "hi", "--model", "openai/gpt-4.1", env=env)
    assert ended.code == 41
    assert "openai: the API key is not valid (credential from OPENAI_API_KEY)" in ended.err
    assert "sk-secret" not in ended.err


def test_a_tool_call_without_a_terminal_advises_its_own_options(place: Place):
    ended = place.toolwire("tools", "call", "run_shell_command", '{"command": "touch x"}')
    assert ended.code == 1
    assert ended.err.startswith("Tool execution denied by policy.")
    assert "--yes" in ended.err
    assert "--allowed-tools" not in ended.err
    assert "--approval-mode" not in ended.err


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("nosuch", 2),
        ("write_fil", 2),
        ("run_shel_command(git)", 2),
        ("write_file", 0),
        ("ShellTool(git status)", 0),
        ("mcp_github_create_issue", 0),
        ("github__create_issue", 0),
        ("read_*", 0),
    ],
)
def test_an_allowed_tool_has_to_exist(place: Place, entry: str, code: int):
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "hi", "--allowed-tools", entry)
    assert ended.code == code, ended.err
    if code:
        assert f'unknown tool in --allowed-tools "{entry.partition("(")[0]}"' in ended.err
        assert not sim.bodies
    if entry == "write_fil":
        assert 'did you mean "write_file"?' in ended.err


def test_a_web_search_is_offered_only_where_it_works(place: Place):
    with Simulated([says("ok")] * 2) as sim:
        place.run(sim, "hi")
        place.run(sim, "hi", dialect="gemini")
    chat, gemini = (json.dumps(body["tools"]) for body in sim.bodies)
    assert "google_web_search" not in chat
    assert "web_fetch" in chat
    assert "google_web_search" in gemini


def test_notes_go_to_our_own_file_and_gemini_cli_s_is_only_read(place: Place):
    theirs = place.root / ".gemini" / "GEMINI.md"
    theirs.parent.mkdir()
    theirs.write_text("I like coffee.\n")
    save = Reply(pieces=(Call.of("save_memory", fact="I like tea."),))
    with Simulated([save, says("ok"), says("ok"), save, says("ok")]) as sim:
        place.run(sim, "remember", "--allowed-tools", "save_memory")
        place.run(sim, "what do I like?")
        (place.home / "config.toml").write_text('[tools]\nmemory_file = ".gemini/GEMINI.md"\n')
        assert theirs.read_text() == "I like coffee.\n"
        place.run(sim, "remember", "--allowed-tools", "save_memory")
    assert (place.home / "AGENTS.md").read_text() == "## Saved notes\n- I like tea.\n"
    system = sim.bodies[2]["messages"][0]["content"]
    assert "I like tea." in system
    assert "I like coffee." in system
    assert theirs.read_text() == "I like coffee.\n\n## Gemini Added Memories\n- I like tea.\n"


def test_what_a_conversion_loses_at_no_cost_is_for_verbose(place: Place):
    write = Reply(pieces=(Call.of("write_file", file_path=str(place.work / "x"), content="hi"),))
    with Simulated([write, says("no"), write, says("no"), says("ok")]) as sim:
        plain = place.run(sim, "go", dialect="openai-responses")
        verbose = place.run(sim, "go", "--verbose", dialect="openai-responses")
        lines = place.run(sim, "go", "-c", "--output-format", "stream-json", dialect="gemini")
    assert "is_error" not in plain.err
    assert "is_error: error flag" in verbose.err
    assert "seal" not in lines.out + lines.err
    assert "is_error" not in lines.out


def test_a_setting_that_is_not_applied_is_reported(place: Place):
    with Simulated([says("ok")]) as sim:
        address = sim.upstream().partition("=")[2]
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": address}
        ended = place.toolwire("run", "x", "-m", "openai/gpt-5", "--temperature", "0.1", env=env)
    assert "temperature is not applied: " in ended.err
    assert ended.code == 0


def test_the_usual_cache_is_searched_for_a_model_too(place: Place):
    from toolwire.client.http.transport import HttpTransport
    from toolwire.embedded.catalogue import DEFAULT
    from toolwire.embedded.weights import DownloadConsent, WeightStore, on_disk
    from toolwire.storage.paths import state_paths, usual_cache

    environ = place.environ(XDG_CACHE_HOME=str(place.root / "cache"))
    usual = usual_cache(environ)
    assert usual is not None
    store = WeightStore.of(state_paths(environ), environ, HttpTransport(), DownloadConsent())
    assert on_disk(DEFAULT, store) is None
    file = usual / "models" / DEFAULT.file
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF")
    assert on_disk(DEFAULT, store) == file
    own = place.home / "cache" / "models" / DEFAULT.file
    own.parent.mkdir(parents=True)
    own.write_bytes(b"GGUF")
    assert on_disk(DEFAULT, store) == own
