import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, subprocess
from toolwire.tools.shell.environment import hide_environment
hide_environment()
shown = open("/proc/self/environ", "rb").read()
heard = subprocess.run(["printenv", "VENDOR_KEY"], capture_output=True, text=True).stdout.strip()
print(b"hidden-value" in shown, b"PATH=/" in shown, os.environ["VENDOR_KEY"], heard)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
def test_a_key_is_not_shown_to_others_and_still_there() -> None:
    environ = {"PATH": "/usr/bin:/bin", "VENDOR_KEY": "hidden-value"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "hidden-value", "hidden-value"]
