"""Pictures of the console: `make screenshots` writes docs/console/*.png.

A real `toolwire serve` with the simulator in place of the vendors, a ledger of some weeks, requests
of three clients, and a session whose edit waits for an answer: every page in both themes. Then what
a newcomer does: start, open the link, ask a model in the playground with a tool, approve an edit.
The model of that walk is the embedded one if its weights are on this machine, else a scripted one.
"""

import argparse
import base64
import contextlib
import os
import re
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.fakes.simulated import Place, Simulated
from tests.gateway.console.browser import fetch
from tests.gateway.served import serving
from tests.gateway.web.chromium import STEADY, find_chromium
from tests.gateway.web.history import fill
from tests.gateway.web.scene import CODE, TOKEN, edit, read
from toolwire.simulator import Answering, Call, Question, Reply, Say, Think, reply

HERE = Path(__file__).resolve().parent
OUT = HERE / "console"
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 720}
_PATIENCE = 60_000
_MODEL_PATIENCE = 600_000
_CONFIG = """
[gateway]
record = "full"

[gateway.routes."team-coder"]
to = ["anthropic/claude-sonnet-5", "google/gemini-3-pro-preview"]
"""
_CLIENTS = (
    ("/v1/messages", "claude-cli/2.1", "anthropic/claude-sonnet-5"),
    ("/v1/messages", "claude-cli/2.1", "google/gemini-3-pro-preview"),
    ("/v1/chat/completions", "opencode/1.0", "openai/gpt-5.6"),
)


def answering(work: Path) -> Answering:
    """What the scripted models answer: by the result of a tool, else by the user's words."""
    prices = work / "prices.py"

    def answer(question: Question) -> Reply:
        if "Successfully modified" in question.last_result:
            return reply("Fixed: the discount is a share now.")
        fails = "test fails" in question.last_user_text
        if fails and question.last_result:
            return reply(
                Think("The discount is subtracted, but it is a share."),
                "The **discount is a share**, not an amount. One line of `price` changes.",
                edit(prices),
            )
        if question.last_result:
            return reply("It has one function, `price`: what is paid after a discount.")
        if fails or "functions" in question.last_user_text:
            return reply(Think("Look first."), "I read it first.", read(prices))
        return reply("Hello.")

    return answer


def ask(
    origin: str, path: str, client: str, model: str, text: str, turns: int = 1, token: str = TOKEN
) -> None:
    """One request of a client, with a call and its result where the history has one."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    if path.endswith("messages") and turns > 1:
        call = {"type": "tool_use", "id": "toolu_01A", "name": "read_file", "input": {"path": "a"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_01A", "content": CODE}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    tool = {"name": "read_file", "description": "Reads a file.", "input_schema": _SCHEMA}
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
    if path.endswith("messages"):
        body |= {
            "max_tokens": 4096,
            "system": "You are a coding agent.",
            "tools": [tool],
            "top_k": 5,
        }
    fields = {"authorization": f"Bearer {token}", "user-agent": client}
    fetch(origin, "POST", path, body, fields)


_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@contextlib.contextmanager
def browser() -> Generator[Any]:
    """The system's Chromium."""
    path = find_chromium()
    if not path:
        sys.exit("no Chromium; install one, or name it in TOOLWIRE_CHROMIUM")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=path, args=[*root, *STEADY])
        yield one
        one.close()


@contextlib.contextmanager
def page_of(chromium: Any, origin: str, theme: str = "light", size: Any = None) -> Generator[Any]:
    """A page that is logged in."""
    context = chromium.new_context(
        viewport=size or WIDE, color_scheme=theme, reduced_motion="reduce"
    )
    context.set_default_timeout(_PATIENCE)
    page = context.new_page()
    page.request.post(f"{origin}/api/login", data={"token": TOKEN})
    yield page
    context.close()


def shot(page: Any, name: str) -> None:
    """Writes one picture with a palette, a third of the size."""
    page.wait_for_timeout(400)
    taken = page.screenshot(animations="disabled")
    painter = page.context.browser.new_page()
    made = painter.evaluate(_PALETTE, base64.b64encode(taken).decode())
    painter.close()
    width, height = made["width"], made["height"]
    pixels = base64.b64decode(made["pixels"])
    rows = b"".join(b"\0" + pixels[at : at + width] for at in range(0, width * height, width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", bytes(made["palette"])), (b"IDAT", zlib.compress(rows, 9)))
    data = b"".join(_chunk(*part) for part in (*parts, (b"IEND", b"")))
    (OUT / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    print(f"{name}: {len(data) // 1024} KB")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_PALETTE = """async (data) => {
  const image = new Image();
  image.src = `data:image/png;base64,${data}`;
  await image.decode();
  const { width, height } = image, canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const raw = context.getImageData(0, 0, width, height).data, counts = new Map();
  for (let n = 0; n < raw.length; n += 4) {
    const colour = (raw[n] << 16) | (raw[n + 1] << 8) | raw[n + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
  const index = new Map(palette.map((colour, n) => [colour, n]));
  const nearest = (colour) => {
    let best = 0, least = Infinity;
    palette.forEach((other, n) => {
      const far = [16, 8, 0].reduce((sum, bits) => {
        const step = ((colour >> bits) & 255) - ((other >> bits) & 255);
        return sum + step * step;
      }, 0);
      if (far < least) [best, least] = [n, far];
    });
    index.set(colour, best);
    return best;
  };
  let pixels = '';
  for (let n = 0; n < raw.length; n += 4) {
    const colour = (raw[n] << 16) | (raw[n + 1] << 8) | raw[n + 2];
    pixels += String.fromCharCode(index.get(colour) ?? nearest(colour));
  }
  const parts = palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]);
  return { width, height, pixels: btoa(pixels), palette: parts };
}"""


def every_page(chromium: Any) -> None:
    """All pages in both themes."""
    with tempfile.TemporaryDirectory() as made:
        place = Place(Path(made))
        (place.work / "prices.py").write_text(CODE)
        (place.home / "config.toml").write_text(_CONFIG)
        fill(place.home, 6000)
        with Simulated(answering(place.work)) as sim:
            environ = {
                "ANTHROPIC_API_KEY": "sim",
                "ANTHROPIC_BASE_URL": sim.origin,
                "GEMINI_API_KEY": "sim",
                "GOOGLE_GEMINI_BASE_URL": sim.origin,
                "OPENAI_API_KEY": "sim",
                "OPENAI_BASE_URL": f"{sim.origin}/v1",
            }
            with serving(place, (), token=TOKEN, env=environ) as (origin, _, _):
                _prepare(chromium, origin)
                for theme in ("light", "dark"):
                    _pages(chromium, origin, theme)


def _prepare(chromium: Any, origin: str) -> None:
    with page_of(chromium, origin) as page:
        page.goto(f"{origin}/console/#/sessions/new")
        page.get_by_label("What should be done?").fill("the test fails, fix it")
        page.keyboard.press("Control+Enter")
        page.get_by_role("button", name="Approve").wait_for()
        page.goto(f"{origin}/console/#/keys/new")
        for name, budget in (("ci", "0.05/day"), ("ada", "40/month")):
            page.get_by_label("Name").fill(name)
            page.get_by_label("Budgets in dollars").fill(budget)
            page.get_by_role("button", name="Create", exact=True).click()
            secret = page.locator("[data-secret]").inner_text()
            page.get_by_role("button", name="Done").click()
            for path, client, model in _CLIENTS:
                ask(origin, path, client, model, "hello", token=secret)
            page.goto(f"{origin}/console/#/keys/new")
        page.goto(f"{origin}/console/#/conformance")
        page.get_by_role("button", name="Run the suites").click()
        page.get_by_text("just now").first.wait_for()
        page.get_by_label("Model to probe").fill("anthropic/claude-sonnet-5")
        page.get_by_role("button", name="Probe", exact=True).click()
        page.get_by_role("article").get_by_text("just now").wait_for()
    for turns in (1, 2):
        for path, client, model in _CLIENTS:
            ask(origin, path, client, model, "what are the functions of prices.py?", turns)


def _pages(chromium: Any, origin: str, theme: str) -> None:
    with page_of(chromium, origin, theme) as page:
        page.goto(f"{origin}/console/#/live")
        page.get_by_role("option").nth(12).wait_for()
        shot(page, f"live-{theme}")
        page.goto(f"{origin}/console/#/live?f=upstream%3Agemini%20client%3Aclaude")
        page.get_by_role("option").first.click()
        page.locator(".stage .tree").first.wait_for()
        page.get_by_role("button", name="call read_file").first.click()
        page.locator(".lit-up").first.wait_for()
        shot(page, f"request-{theme}")
        page.goto(f"{origin}/console/#/sessions")
        page.get_by_role("link", name="the test fails").click()
        page.get_by_role("button", name="Approve").wait_for()
        shot(page, f"sessions-{theme}")
        page.goto(f"{origin}/console/#/playground")
        # The list of models fills the box when it arrives, also while one writes in it.
        page.get_by_role("checkbox", name="read_file").wait_for()
        page.wait_for_load_state("networkidle")
        for model in ("anthropic/claude-sonnet-5", "google/gemini-3-pro-preview"):
            box = page.get_by_role("combobox", name=re.compile("^Model")).last
            box.fill(model)
            box.press("Tab")
            if model.startswith("anthropic"):
                page.get_by_role("button", name="Add a model beside").click()
        page.get_by_role("checkbox", name="read_file").check()
        page.get_by_label("Prompt").fill("which functions are in prices.py?")
        page.keyboard.press("Enter")
        page.get_by_text("It has one function").nth(1).wait_for()
        shot(page, f"playground-{theme}")
        for name in ("models", "keys", "usage", "conformance", "settings"):
            page.goto(f"{origin}/console/#/{name}")
            page.locator(".panel").first.wait_for()
            shot(page, f"{name}-{theme}")
    with page_of(chromium, origin, theme, PHONE) as page:
        page.goto(f"{origin}/console/#/sessions/questions")
        page.get_by_role("button", name="Approve").wait_for()
        shot(page, f"phone-{theme}")


def walk(chromium: Any, weights: Path | None) -> None:
    """What a newcomer does, picture by picture."""
    with tempfile.TemporaryDirectory() as made:
        place = Place(Path(made))
        (place.work / "hello.py").write_text("def greet(name):\n    print('Helo, ' + name)\n")
        with contextlib.ExitStack() as stack:
            environ: dict[str, str] = {}
            if weights is not None:
                words = ()
                environ["TOOLWIRE_LOCAL_WEIGHTS"] = str(weights)
            else:
                sim = stack.enter_context(Simulated(_walk_replies(place.work / "hello.py")))
                words = ("--upstream", sim.upstream("openai-chat", model="sim-1"))
            origin, _, printed = stack.enter_context(
                serving(place, words, token=TOKEN, env=environ)
            )
            _walk(chromium, origin, printed, place.work / "hello.py")


def _walk_replies(path: Path) -> list[Reply]:
    typo = Call.of(
        "replace", file_path=str(path), old_string="Helo", new_string="Hello", instruction="Typo"
    )
    return [
        Reply(when="typo", pieces=(typo,)),
        Reply(when="Successfully modified", pieces=(Say("Fixed."),)),
        Reply(when="Read it first", pieces=(Call.of("read_file", absolute_path=str(path)),)),
        Reply(default=True, pieces=(Say("It prints a greeting with the given name."),)),
    ]


def _walk(chromium: Any, origin: str, printed: list[str], program: Path) -> None:
    until = time.monotonic() + 60
    while "#login=" not in "".join(printed) and time.monotonic() < until:
        time.sleep(0.05)
    link = re.search(r"\S+#login=\S+", "".join(printed))
    if link is None:
        sys.exit(f"toolwire serve printed no link: {printed}")
    context = chromium.new_context(viewport={"width": 1200, "height": 680}, reduced_motion="reduce")
    context.set_default_timeout(_MODEL_PATIENCE)
    page = context.new_page()
    page.goto(link[0])
    page.get_by_role("heading", name="Live requests").wait_for()
    shot(page, "walk-1-live")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.get_by_role("checkbox", name="read_file").check()
    page.get_by_label("Prompt").fill(f"What does {program} do? Read it first.")
    page.keyboard.press("Enter")
    page.locator(".md").last.wait_for()
    page.get_by_role("button", name="Send", exact=True).wait_for()
    shot(page, "walk-2-playground")
    page.goto(f"{origin}/console/#/sessions/new")
    page.get_by_label("What should be done?").fill(
        "Fix the typo in hello.py: replace Helo with Hello."
    )
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Approve").wait_for()
    shot(page, "walk-3-question")
    page.keyboard.press("y")
    page.get_by_role("article").wait_for(state="detached")
    page.get_by_role("button", name="Stop").wait_for(state="detached")
    shot(page, "walk-4-done")
    context.close()


def main() -> None:
    """Makes all pictures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", choices=("pages", "walk"))
    parser.add_argument("--weights", type=Path, help="of the embedded model, for the walk")
    parser.add_argument("--scripted", action="store_true", help="a scripted model for the walk")
    given = parser.parse_args()
    usual = Path.home() / ".cache/toolwire/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    weights = given.weights or (usual if usual.exists() else None)
    OUT.mkdir(exist_ok=True)
    with browser() as chromium:
        if given.only != "walk":
            every_page(chromium)
        if given.only != "pages":
            walk(chromium, None if given.scripted else weights)


if __name__ == "__main__":
    main()
