import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.terminal_text import TerminalText, one_line, terminal_text

KEPT = (
    "plain text\twith tabs\nand lines",
    "Grüße, 中文, русский, हिन्दी क्\u200dष, فارسی می\u200cخواهم, עברית",
    "👩\u200d👩\u200d👧 ❤\ufe0f 🏳\ufe0f\u200d🌈 葛\U000e0100",
)
ATTACKS = {
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x1b\\",
    "link": "\x1b]8;;http://evil\x1b\\good\x1b]8;;\x1b\\",
    "c1 csi": "\x9b2J",
    "c1 osc": "\x9d0;t\x9c",
    "device": "\x1bP+q544e\x1b\\",
    "overwrite": "rm -rf /\rls      ",
    "backspace": "evil\b\b\b\bgood",
    "delete": "a\x7fb",
    "bell": "\x07",
    "bidi override": "\u202egnp.exe",
    "bidi isolate": "\u2066x\u2069",
    "bidi mark": "a\u200eb\u200fc\u061cd",
    "zero width": "rm\u200b -rf\u2060 \ufeff/",
    "filler": "\u3164\u115f\uffa0",
    "soft hyphen": "a\xadb",
    "tags": "\U000e0041\U000e0042\U000e007f",
    "separators": "a\u2028b\u2029c\x85d",
    "half": "\ud800\udc80",
    "shift out": "\x0e\x0f",
}
SAFE_ESCAPES = set("\n\t")


def is_harmless(text: str) -> bool:
    allowed = {"\u200c", "\u200d"}
    return all(
        one in SAFE_ESCAPES
        or one in allowed
        or (one >= " " and not 0x7F <= ord(one) <= 0x9F and not 0xD800 <= ord(one) <= 0xDFFF)
        for one in text
    ) and not any(one in text for one in "\u202e\u2066\u200e\u200b\u2060\ufeff\U000e0041\u2028")


@pytest.mark.parametrize("text", KEPT)
def test_text_of_all_scripts_stays(text: str) -> None:
    assert terminal_text(text) == text
    assert TerminalText().feed(text) == text


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_what_a_terminal_would_obey_is_written_out(attack: str) -> None:
    shown = terminal_text(attack)
    assert shown != attack
    assert is_harmless(shown)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_json_stays_the_same_json(attack: str) -> None:
    if attack == ATTACKS["half"]:
        return
    text = json.dumps({"a": attack}, ensure_ascii=False)
    assert json.loads(terminal_text(text)) == {"a": attack}


@given(st.lists(st.text(st.sampled_from("a\r\n\x1b\x9b[2J\u202e\U000e0041é\t"))))
def test_cuts_do_not_matter(pieces: list[str]) -> None:
    text = "".join(pieces) + "."
    stream = TerminalText()
    assert "".join(map(stream.feed, [*pieces, "."])) == terminal_text(text)


@given(st.text())
def test_every_text_becomes_harmless(text: str) -> None:
    assert is_harmless(terminal_text(text))


def test_line_ends_stay_and_one_line_has_none() -> None:
    assert terminal_text("a\r\nb\rc\n") == "a\nb\\u000dc\n"
    assert one_line(" a\r\n\tb\x1b ") == "a b\\u001b"


def test_the_cost_is_linear() -> None:
    for text in ("\r" * 2_000_000, "\x1b[" * 1_000_000, "a\n" * 1_000_000):
        began = time.process_time()
        terminal_text(text)
        TerminalText().feed(text)
        assert time.process_time() - began < 10
