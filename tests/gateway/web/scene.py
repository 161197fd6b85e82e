"""A gateway with things to look at: scripted models, a project, and requests of known clients."""

import contextlib
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.simulated import LONGEST, Place, Simulated
from tests.gateway.served import serving
from tests.gateway.web.chromium import Watch, page_of
from toolwire.simulator import Call, Fault, Reply, Say, Think

TOKEN = "console-token-of-this-test"
HOSTILE = (
    "Words **bold** <script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\">"
    " [click](javascript:document.title='owned') \u202ertl\u202c \x1b[31mred\x1b[0m"
    " <a href=\"javascript:document.title='owned'\">x</a>"
)
CODE = 'def price(amount, discount):\n    """What is paid."""\n    return amount - discount\n'
BAD_LINE = "    return amount - discount"
GOOD_LINE = "    return amount * (1 - discount)"
LATER = [
    f"/api/{name}" for name in ("models", "playground", "keys", "usage", "conformance", "settings")
]
_LINK = re.compile(r"https?://\S+#login=\S+")


def edit(path: Path, new: str = GOOD_LINE) -> Call:
    """A call that changes the last line of the program."""
    return Call.of(
        "replace",
        file_path=str(path),
        old_string=BAD_LINE,
        new_string=new,
        instruction="Apply the discount as a share",
    )


def script(work: Path) -> list[Reply]:
    """Replies by the words of the last message."""
    prices = work / "prices.py"
    return [
        Reply(when="fix the discount", pieces=(Think("A share."), Say("I see."), edit(prices))),
        Reply(when="Successfully modified", pieces=(Say("The discount is a share now."),)),
        Reply(when="share of one", pieces=(Say("I leave the file as it is."),)),
        Reply(when="hostile words", pieces=(Say(HOSTILE),)),
        Reply(when="one long line", pieces=(Say("x" * (5 * 1024 * 1024)),), delta=65536),
        Reply(when="wait a while", pieces=(Say("slow " * 400),), fault=Fault(wait_each=0.2)),
        Reply(when="too much", fault=Fault(status=400, message="the prompt is too long")),
        Reply(when="what is in prices.py", pieces=(read(prices),)),
        Reply(when="What is paid", pieces=(Say("It has one function, `price`."),)),
        Reply(default=True, pieces=(Think("hm"), Say("You said: {last_user_text}"))),
    ]


def read(path: Path) -> Call:
    """A call that reads a file."""
    return Call.of("read_file", absolute_path=str(path))


class Scene(msgspec.Struct, frozen=True):
    """A running gateway."""

    origin: str
    link: str
    place: Place
    upstream: Simulated
    process: Any

    @property
    def prices(self) -> Path:
        """The program that sessions change."""
        return self.place.work / "prices.py"

    def ask(self, text: str, *, client: str = "claude-cli/2.1", more: Any = None) -> str:
        """Sends a request as that client; returns its id, also of one that fails."""
        body = {
            "model": "served-model",
            "max_tokens": 500,
            "messages": [{"role": "user", "content": text}],
            **(more or {}),
        }
        asked = urllib.request.Request(
            f"{self.origin}/v1/messages",
            json.dumps(body).encode(),
            {"x-api-key": TOKEN, "content-type": "application/json", "user-agent": client},
        )
        try:
            with urllib.request.urlopen(asked, timeout=LONGEST) as answer:
                answer.read()
                return answer.headers["x-request-id"]
        except urllib.error.HTTPError as error:
            return error.headers["x-request-id"]


@contextlib.contextmanager
def scene(
    folder: Path,
    *args: str,
    settings: str = "",
    port: int = 0,
    replies: Iterable[Reply] = (),
    dialect: str = "openai-chat",
    environ: Mapping[str, str] | None = None,
) -> Generator[Scene]:
    """A gateway in a folder of its own that records all of each request."""
    place = Place(folder)
    (place.work / "prices.py").write_text(CODE)
    config = place.home / "config.toml"
    if not config.exists():
        config.write_text(f'[gateway]\nrecord = "full"\n{settings}\n')
    with Simulated([*replies, *script(place.work)]) as sim:
        words = ("--upstream", sim.upstream(dialect, model="served-model"), *args)
        with serving(place, words, token=TOKEN, port=port, env=environ) as (
            origin,
            process,
            printed,
        ):
            yield Scene(origin, _link(printed), place, sim, process)


def _link(printed: list[str]) -> str:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        found = _LINK.search("".join(printed))
        if found:
            return found[0]
        time.sleep(0.01)
    raise AssertionError(f"no link to the console:\n{''.join(printed)}")


@contextlib.contextmanager
def opened(
    browser: Any, stage: Scene, where: str = "live", **options: Any
) -> Generator[tuple[Any, Watch]]:
    """A page that is logged in."""
    with page_of(browser, stage.origin, **options) as (page, watch):
        answer = page.request.post(f"{stage.origin}/api/login", data={"token": TOKEN})
        assert answer.ok, answer.text()
        page.goto(f"{stage.origin}/console/#/{where}")
        page.get_by_role("main").wait_for()
        yield page, watch


def start_session(page: Any, prompt: str) -> None:
    """By the keyboard alone: the palette, the dialog, its first field."""
    page.keyboard.press("Control+k")
    page.keyboard.type("new session")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="New session")
    dialog.wait_for()
    page.keyboard.type(prompt)
    page.keyboard.press("Control+Enter")
    dialog.wait_for(state="detached")


def question(page: Any) -> Any:
    found = page.get_by_role("article").filter(has_text="why asked")
    found.wait_for()
    return found
