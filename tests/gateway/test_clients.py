"""Command-line clients that people use, through the gateway to every kind of upstream."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.gateway.clients import CLIENTS, FOUR, PAGE, TOKEN, installed, recipe, run_client
from tests.gateway.served import served
from toolwire.simulator import replies, reply

RUNS = [
    (name, upstream, scenario)
    for name, client in CLIENTS.items()
    for scenario in client.scenarios
    for upstream in FOUR
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "upstream", "scenario"), RUNS)
def test_a_client_that_people_use_reads_a_file_through_the_gateway(
    tmp_path: Path, name: str, upstream: str, scenario: str
):
    client = CLIENTS[name]
    if not installed(client):
        pytest.skip("not installed; run: python -m tests.gateway.clients install")
    outcome = run_client(client, upstream, scenario, tmp_path)
    assert outcome.complaint(scenario) == ""


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_has_a_recipe_that_points_it_at_the_gateway(name: str):
    found = recipe(CLIENTS[name].recipe, "http://127.0.0.1:1234")
    written = "\n".join((*found.variables.values(), *found.files.values()))
    assert "http://127.0.0.1:1234" in written
    assert TOKEN in written


@pytest.fixture(scope="module")
def greeting() -> Generator[str]:
    script = replies(reply("Hello.", default=True))
    with served("anthropic", script, token=TOKEN) as gateway:
        yield gateway.origin


@pytest.mark.parametrize("name", ["openai", "anthropic", "google"])
def test_the_recipe_of_an_sdk_runs_as_it_is_written(
    greeting: str, name: str, capsys: pytest.CaptureFixture[str]
):
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (program,) = [text for text in programs if text.startswith(f"from {name} import")]
    program = program.replace("http://127.0.0.1:8787", greeting).replace("YOUR_TOKEN", TOKEN)
    exec(compile(program, f"docs/gateway.md, {name}", "exec"), {})
    assert capsys.readouterr().out.split() == ["Hello."] * (3 if name == "openai" else 1)
