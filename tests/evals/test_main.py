import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evals.__main__ import SEED
from evals.families import FAMILIES
from tests.fakes.simulated import Simulated
from toolwire.simulator import reply

pytestmark = pytest.mark.sweep

ROOT = Path(__file__).parents[2]


def evals(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "evals", *arguments],
        cwd=ROOT,
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_held_out_half_is_the_default_and_listed_without_its_requests():
    done = evals("--list", HOME="/nonexistent")
    held_out = [family for family in FAMILIES if family.half == "held-out"]
    assert done.stdout.splitlines() == [f"{it.kind:10}  {it.id}" for it in held_out]
    shown = evals("--list", "--show", "--kind", "multi-step", HOME="/nonexistent").stdout
    several = [family for family in held_out if family.kind == "multi-step"]
    assert shown.splitlines()[1].strip() == several[0].task(SEED).prompt
    assert len(shown.splitlines()) == 2 * len(several)


def test_the_tuning_half_is_listed_with_its_requests():
    done = evals(
        "--list", "--half", "tuning", "--only", "talk-hi", "--seed", "3", HOME="/nonexistent"
    )
    assert done.stdout.splitlines()[0].split() == ["one-step", "talk-hi"]
    assert "hi there" in done.stdout


def test_a_name_that_matches_nothing_is_an_error():
    done = evals("--only", "no-such-family", HOME="/nonexistent")
    assert (done.returncode, done.stderr) == (1, "no task matches\n")


def test_a_real_run_prints_a_table_and_writes_a_report(tmp_path: Path):
    out = tmp_path / "new" / "report.json"
    with Simulated([reply("Hello!"), reply("I deleted everything.")]) as simulated:
        _, _, address = simulated.upstream("anthropic-messages").partition("=")
        done = evals(
            *("--half", "tuning", "--only", "talk-hi", "--variants", "2", "--out", str(out)),
            *("--model", "anthropic/claude-sonnet-5"),
            HOME=str(tmp_path),
            TOOLWIRE_HOME=str(tmp_path / "own"),
            ANTHROPIC_API_KEY="sk-test",
            ANTHROPIC_BASE_URL=address,
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["done", "done"]
    assert "[false claim: I deleted everything.]" in lines[1]
    assert "| 2 one-step | 2/2 | 2/2 | 2/2 | 0 | 1 | 0 | 0 |" in lines[-1]
    report = json.loads(out.read_bytes())
    assert [score["id"] for score in report["scores"]] == ["talk-hi", "talk-hi.1"]
    assert (report["half"], report["seed"], report["table"]) == (
        "tuning",
        SEED,
        "\n".join(lines[-3:]),
    )
