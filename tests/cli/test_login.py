import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from tests.client.stand_in import Answer, Asked, StandIn, stand_in

PLANTED = "sk-planted-4410ab77"


class Shell:
    """The two commands in a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            "TOOLWIRE_HOME": str(home),
            "TOOLWIRE_NO_KEYRING": "1",
            "HOME": str(home),
            "PATH": os.environ["PATH"],
        }

    def line(self, command: str, *args: str) -> list[str]:
        code = f"from toolwire.cli.login import {command}_command as run; run()"
        return [sys.executable, "-c", code, *args]

    def run(
        self, command: str, *args: str, stdin: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.line(command, *args),
            input=stdin,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def start(self, command: str, *args: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.line(command, *args),
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def file(self) -> Path:
        return self.home / "credentials.json"

    @property
    def stored(self) -> dict[str, dict[str, str]]:
        return json.loads(self.file.read_text())["credentials"] if self.file.exists() else {}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_piped_key_is_stored_and_forgotten_and_never_shown(shell: Shell) -> None:
    done = shell.run("login", "anthropic", stdin=f"{PLANTED}\n")
    assert done.returncode == 0, done.stderr
    assert str(shell.file) in done.stderr
    assert done.stdout == ""
    assert shell.stored == {"anthropic": {"type": "key", "key": PLANTED}}
    assert stat.S_IMODE(shell.file.stat().st_mode) == 0o600

    gone = shell.run("logout", "anthropic", ANTHROPIC_API_KEY=PLANTED)
    assert gone.returncode == 0
    assert "ANTHROPIC_API_KEY is still set" in gone.stderr
    assert shell.stored == {}
    assert "nothing was stored" in shell.run("logout", "anthropic").stderr
    assert PLANTED not in done.stderr + gone.stderr


def test_a_key_may_be_an_option_or_come_after_a_dash(shell: Shell) -> None:
    assert shell.run("login", "groq", "--key", PLANTED).returncode == 0
    assert shell.run("login", "mistral", "--key", "-", stdin=PLANTED).returncode == 0
    assert set(shell.stored) == {"groq", "mistral"}


def test_a_typed_key_is_not_echoed(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        shell.line("login", "anthropic"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=shell.environ,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"Key for" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, PLANTED.encode() + b"\n")
    try:
        while True:
            shown += os.read(ours, 1000)
    except OSError:
        pass
    os.close(ours)
    assert child.wait(60) == 0
    assert shell.stored["anthropic"]["key"] == PLANTED
    assert PLANTED.encode() not in shown


@pytest.mark.parametrize(
    ("args", "stdin"),
    [
        (("anthropic",), ""),
        (("anthropic",), "  \n"),
        (("anthropic",), f"two {PLANTED}\n"),
        (("anthropic", "--key", f"{PLANTED}é"), ""),
        (("anthropic", "--oauth"), ""),
        (("openrouter", "--oauth", "--key", PLANTED), ""),
        (("code-assist", "--key", PLANTED), ""),
        (("antropic",), PLANTED),
        ((), ""),
    ],
)
def test_wrong_usage_leaves_with_2_and_stores_nothing(
    shell: Shell, args: tuple[str, ...], stdin: str
) -> None:
    done = shell.run("login", *args, stdin=stdin)
    assert done.returncode == 2
    assert PLANTED not in done.stderr + done.stdout
    assert shell.stored == {}


def test_a_misspelt_provider_is_answered_with_the_nearest(shell: Shell) -> None:
    assert 'did you mean "anthropic"?' in shell.run("login", "antropic").stderr
    assert shell.run("logout", "antropic").returncode == 2


def copilot(vendor: StandIn) -> dict[str, str]:
    return {
        "TOOLWIRE_COPILOT_CLIENT_ID": "client-of-mine",
        "TOOLWIRE_COPILOT_GITHUB_URL": vendor.url,
        "TOOLWIRE_COPILOT_API_URL": vendor.url,
    }


DEVICE: Answer = (
    200,
    {
        "device_code": "planted-device-code",
        "user_code": "ABCD-1234",
        "verification_uri": "https://github.example/device",
        "interval": 1,
    },
)


def test_copilots_code_is_shown_with_the_terms_and_the_token_is_stored(shell: Shell) -> None:
    with stand_in() as vendor:
        vendor.on("/login/device/code", DEVICE, (404, {}))
        vendor.on("/login/oauth/access_token", (200, {"access_token": PLANTED}))
        done = shell.run("login", "copilot", **copilot(vendor))
        again = shell.run("login", "copilot", **copilot(vendor))
    assert (done.returncode, again.returncode) == (0, 1)
    assert "ABCD-1234" in done.stderr
    assert "https://github.example/device" in done.stderr
    assert "GitHub's terms" in done.stderr
    assert "GitHub's terms" not in again.stderr
    assert "planted" not in done.stderr + done.stdout
    assert shell.stored == {"copilot": {"type": "login", "token": PLANTED}}


def test_a_login_without_configuration_or_refused_leaves_with_41(shell: Shell) -> None:
    done = shell.run("login", "copilot")
    assert done.returncode == 41
    assert "TOOLWIRE_COPILOT_CLIENT_ID" in done.stderr
    done = shell.run("login", "code-assist")
    assert done.returncode == 41
    assert "TOOLWIRE_CODE_ASSIST_CLIENT_ID" in done.stderr
    with stand_in() as vendor:
        vendor.on("/login/device/code", DEVICE)
        vendor.on("/login/oauth/access_token", (200, {"error": "access_denied"}))
        refused = shell.run("login", "copilot", **copilot(vendor))
    assert refused.returncode == 41
    assert "Traceback" not in done.stderr + refused.stderr
    assert not shell.file.exists()


def test_ctrl_c_in_the_device_flow_leaves_nothing_behind(shell: Shell) -> None:
    polled, over = threading.Event(), threading.Event()
    before = {"groq": {"type": "key", "key": "sk-kept"}}
    shell.run("login", "groq", "--key", "sk-kept")
    content = shell.file.read_bytes()
    with stand_in() as vendor:

        def waiting(asked: Asked) -> Answer:
            polled.set()
            over.wait(60)
            return 200, {"access_token": PLANTED}

        vendor.on("/login/device/code", DEVICE)
        vendor.decide("/login/oauth/access_token", waiting)
        running = shell.start("login", "copilot", **copilot(vendor))
        assert polled.wait(60)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        over.set()
    assert running.returncode == 130
    assert "cancelled" in err
    assert "Traceback" not in out + err
    assert shell.file.read_bytes() == content
    assert shell.stored == before
    left = {entry.name for entry in shell.home.iterdir()}
    assert left - {"cache"} == {
        "credentials.json",
        ".credentials.json.write.lock",
        "terms-shown",
        ".terms-shown.write.lock",
    }


def test_openrouters_browser_login_stores_a_key(shell: Shell) -> None:
    with stand_in() as vendor:
        vendor.on("/api/v1/auth/keys", (200, {"key": PLANTED}))
        running = shell.start("login", "openrouter", "--oauth", TOOLWIRE_OPENROUTER_SITE=vendor.url)
        assert running.stderr is not None
        said = ""
        while not (found := re.search(r"(http\S+/auth\?\S+)", said)):
            line = running.stderr.readline()
            assert line, said
            said += line
        callback = parse_qs(urlsplit(found[1]).query)["callback_url"][0]
        with urlopen(f"{callback}&code=planted-code") as page:
            assert page.status == 200
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert "planted" not in said + out + err
    assert shell.stored["openrouter"]["token"] == PLANTED


def test_vertex_is_checked_and_nothing_of_it_stored(shell: Shell, tmp_path: Path) -> None:
    account = tmp_path / "adc.json"
    account.write_text(
        json.dumps(
            {
                "type": "authorized_user",
                "client_id": "client-of-mine",
                "client_secret": "planted-client-secret",
                "refresh_token": "planted-refresh-token",
            }
        )
    )
    with stand_in() as vendor:
        vendor.on("/token", (200, {"access_token": PLANTED}), (400, {"error": "invalid_grant"}))
        environ = {
            "GOOGLE_APPLICATION_CREDENTIALS": str(account),
            "TOOLWIRE_GOOGLE_TOKEN_URL": f"{vendor.url}/token",
        }
        good = shell.run("login", "vertex", **environ)
        bad = shell.run("login", "vertex", **environ)
    assert (good.returncode, bad.returncode) == (0, 41)
    assert str(account) in good.stderr
    assert "planted" not in good.stderr + bad.stderr
    assert shell.stored == {}


def test_a_broken_credentials_file_is_named_and_left_alone(shell: Shell) -> None:
    shell.file.write_text(PLANTED)
    shell.file.chmod(0o600)
    done = shell.run("login", "groq", stdin="sk-new-key")
    assert done.returncode == 1
    assert str(shell.file) in done.stderr
    assert PLANTED not in done.stderr
    assert shell.file.read_text() == PLANTED
