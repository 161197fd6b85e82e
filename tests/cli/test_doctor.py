import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

SENTINEL = "sk-sentinel-0123456789abcdef"


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


def doctor(home: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "TOOLWIRE_HOME": str(home), **variables}
    program = Path(sys.executable).with_name("toolwire")
    command = [str(program), "doctor", *args]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)


def test_doctor_reports_versions_places_and_the_way_out(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--offline", OLLAMA_HOST="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert "toolwire" in done.stdout
    assert str(tmp_path) in done.stdout
    assert "(toolwire providers NAME shows what one needs)" in done.stdout


def test_doctor_reaches_a_server_and_says_which_style_and_why(tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Hello)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        done = doctor(tmp_path, "--json", ANTHROPIC_API_KEY=SENTINEL, ANTHROPIC_BASE_URL=address)
    finally:
        server.shutdown()
    report = json.loads(done.stdout)
    found = next(entry for entry in report["providers"] if entry["name"] == "anthropic")
    assert found["credential"] == "from ANTHROPIC_API_KEY"
    assert found["reached"] == "yes (HTTP 404)"
    assert found["style"] == "native"
    assert "anthropic" in found["reason"]
    assert report["problems"] == []


def test_a_broken_configuration_is_named_with_its_file_and_doctor_goes_on(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('defualt_model = "a/b"\n')
    done = doctor(tmp_path, "--offline")
    assert done.returncode == 1
    assert 'unknown setting "defualt_model"; did you mean "default_model"?' in done.stdout
    assert "Versions" in done.stdout


def test_no_secret_is_shown(tmp_path: Path) -> None:
    keys = {f"{name}_API_KEY": f"{SENTINEL}-{name}" for name in ("ANTHROPIC", "OPENAI", "GROQ")}
    (tmp_path / "config.toml").write_text(
        f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        f'key_env = "MINE_KEY"\n[providers.mine.headers]\nx-secret = "{SENTINEL}"\n'
    )
    for args in (("--offline",), ("--offline", "--json")):
        done = doctor(tmp_path, *args, MINE_KEY=f"{SENTINEL}-mine", **keys)
        assert "mine" in done.stdout, done.stderr
        assert SENTINEL not in done.stdout + done.stderr


def test_doctor_reports_which_configuration_files_count_and_whether_the_folder_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / ".toolwire").mkdir(parents=True)
    (work / ".toolwire" / "config.toml").write_text('tool_style = "xml"')
    monkeypatch.chdir(work)
    places = json.loads(doctor(tmp_path, "--offline", "--json").stdout)["places"]
    assert places["this folder"] == "not trusted; you have not been asked yet"
    assert "skipped: the folder is not trusted" in places["project"]
    assert places["user"] == f"{tmp_path / 'config.toml'} (does not exist)"
    trusted = doctor(tmp_path, "--offline", "--json", TOOLWIRE_TRUST_WORKSPACE="1")
    places = json.loads(trusted.stdout)["places"]
    assert places["this folder"] == "trusted"
    assert places["project"] == f"{work / '.toolwire' / 'config.toml'} (read)"
    assert places["read"] == str(work / ".toolwire" / "config.toml")


def test_doctor_says_which_model_would_be_asked_and_why(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--offline", "--json", OPENAI_API_KEY=SENTINEL)
    found = json.loads(done.stdout)["model"]
    assert found["name"].startswith("openai/")
    assert found["reason"] == "OPENAI_API_KEY is set"


def test_without_anything_doctor_names_the_embedded_model(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--offline")
    _, _, told = done.stdout.partition("Model\n")
    assert told.startswith("  local/qwen2.5-coder-")
    assert "because nothing is configured, and servers were not probed" in told
    assert "  ready: " in told


@pytest.mark.parametrize(("level", "may_be_active"), [("auto", True), ("off", False)])
def test_doctor_shows_the_sandbox(level: str, may_be_active: bool, tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json", "--offline", TOOLWIRE_TOOLS_SANDBOX=level)
    found = json.loads(done.stdout)["sandbox"]
    assert found["active"] == (may_be_active and found["kind"] != "none")
    assert found["level"] == level


def test_doctor_names_stored_answers_that_are_ignored(tmp_path: Path) -> None:
    rule = '[[rule]]\ndecision = "allow"\ntool = "run_shell_command"\ncommand = ["rm"]\n'
    (tmp_path / "policy.toml").write_text(f"# answered: always\n{rule}")
    done = doctor(tmp_path, "--offline", "--json")
    problems = [line for line in json.loads(done.stdout)["problems"] if "policy.toml" in line]
    assert len(problems) == 1
    assert "allow run_shell_command(rm)" in problems[0]
    assert 'remove the line "# answered: always"' in problems[0]
