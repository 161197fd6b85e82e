"""The system's Chromium with a page that fails on what a console must never do."""

import contextlib
import os
import shutil
from collections.abc import Generator
from typing import Any

import pytest

USUAL = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
INSTALL = (
    "no Chromium: apt-get install -y --no-install-recommends chromium fonts-dejavu-core; "
    "pip install playwright (TOOLWIRE_CHROMIUM names another one)"
)
STEADY = ("--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb")
"""Options with which pictures of the same page are the same."""
PATIENCE = 60_000
"""Milliseconds after which a page hangs, on a loaded machine too."""
_REPORTS = (
    "addEventListener('securitypolicyviolation', e => console.error("
    "`CSP: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`))"
)


def find_chromium() -> str:
    """The path of a browser; empty if there is none."""
    given = os.environ.get("TOOLWIRE_CHROMIUM", "")
    for name in (given,) if given else USUAL:
        found = shutil.which(name)
        if found:
            return found
    return ""


@contextlib.contextmanager
def chromium(*options: str) -> Generator[Any]:
    """A running browser; without one the test is skipped with the way to get it."""
    path = find_chromium()
    if not path:
        pytest.skip(INSTALL)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip(INSTALL)
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*root, *STEADY, *options])
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Everything that a page did which it must not do."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.faults: list[str] = []
        self.expected: list[str] = []
        """Parts of console messages that a test causes on purpose, such as a lost connection."""

    def attach(self, context: Any) -> None:
        """Watches all pages of a context."""
        context.set_default_timeout(PATIENCE)
        context.add_init_script(_REPORTS)
        context.on("page", self._page)
        context.route(lambda address: not self._is_own(address), self._outside)

    def _is_own(self, address: str) -> bool:
        return address.startswith((self.origin, "data:", "blob:"))

    def _outside(self, route: Any) -> None:
        self.faults.append(f"request to {route.request.url}")
        route.abort()

    def _page(self, page: Any) -> None:
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", self._message)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def _message(self, message: Any) -> None:
        text = f"{message.text} {message.location.get('url', '')}"
        if message.type in ("error", "warning") and not any(e in text for e in self.expected):
            self.faults.append(f"{message.type}: {text}")


@contextlib.contextmanager
def page_of(browser: Any, origin: str, **options: Any) -> Generator[tuple[Any, Watch]]:
    """A page in a context of its own; fails at the end if it did what it must not."""
    context = browser.new_context(reduced_motion="reduce", **options)
    watch = Watch(origin)
    watch.attach(context)
    try:
        yield context.new_page(), watch
    finally:
        context.close()
    assert not watch.faults, watch.faults
