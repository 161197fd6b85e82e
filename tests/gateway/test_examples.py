"""The examples of the operation page, as far as this machine can check them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gateway.md").read_text("utf-8")


def example(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE[PAGE.index("## Operation") :], re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_of_systemd_is_valid(tmp_path: Path):
    unit = tmp_path / "toolwire.service"
    unit.write_text(example("ini").replace("/usr/local/bin/toolwire", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60
    )
    wrong = [line for line in done.stderr.splitlines() if "toolwire.service" in line]
    assert wrong == []


def test_the_unit_and_the_image_run_without_rights():
    unit = example("ini")
    for line in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "Type=notify"):
        assert line in unit
    image = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER toolwire$", image, re.MULTILINE)
    assert "--read-only" in example("sh")


def test_nginx_does_not_hold_streams_back():
    for line in ("proxy_buffering off;", "proxy_http_version 1.1;", "proxy_read_timeout 3600s;"):
        assert line in example("nginx")
