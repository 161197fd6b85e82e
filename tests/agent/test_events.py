import subprocess
import sys

LOAD = """
import sys
import toolwire.agent.events
print(*sorted(name for name in sys.modules if name.split(".")[0] == "toolwire"))
"""


def test_events_load_values_only():
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded == [
        "toolwire",
        "toolwire.agent",
        "toolwire.agent.events",
        "toolwire.agent.questions",
        "toolwire.events",
        "toolwire.messages",
        "toolwire.tools",
        "toolwire.tools.proposals",
    ]
