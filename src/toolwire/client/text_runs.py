"""Runs of text in an answer whose bytes pass: read without decoding each frame."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from toolwire.events import ModelEvent, TextDelta
from toolwire.request import AnswerTap
from toolwire.wire.json_access import encode
from toolwire.wire.sse import Frame

_PADDING = b'"obfuscation":"'
"""OpenAI hides the lengths of words by a member of random length."""
_UNLIKE = ("", b"", b"", b"")
_string = msgspec.json.Decoder(str).decode


class TextRuns:
    """Decodes the frames of an answer whose bytes pass; a run of text becomes one event.

    Most frames differ from the one before only in their text, which is then read without the rest.
    """

    def __init__(self, decode: Callable[[Frame], Sequence[ModelEvent]], tap: AnswerTap) -> None:
        self._decode = decode
        self._tap = tap
        self._like: tuple[str, bytes, bytes, bytes] = _UNLIKE
        """A frame that had nothing but text: its name, what precedes the text, what follows it up
        to random padding, if the server adds some, and what follows the padding.
        """

    def decode(self, frames: Iterable[Frame], events: list[ModelEvent]) -> None:
        """Adds the events of the frames."""
        run: list[Frame] = []
        words: list[bytes] = []
        name, start, middle, end = self._like
        for frame in frames:
            data = frame.data
            if start and data.startswith(start) and data.endswith(end) and frame.event == name:
                at = data.find(middle, len(start))
                stop = at + len(middle)
                if end:
                    stop = data.find(b'"', stop)
                if at >= 0 and stop == len(data) - len(end):
                    run.append(frame)
                    words.append(data[len(start) : at])
                    continue
            if run:
                self._join(run, words, events)
                run, words = [], []
            found = self._decode(frame)
            events += found
            self._learn(frame, found)
            name, start, middle, end = self._like
        if run:
            self._join(run, words, events)

    def _join(self, run: list[Frame], words: list[bytes], events: list[ModelEvent]) -> None:
        joined = b"".join(words)
        try:
            if b"\\" in joined:
                text = "".join([_string(b'"%b"' % word) for word in words])
            else:
                text = _string(b'"%b"' % joined)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Quotes in a text, or half a character: the decoder may have to wait for the rest.
            self._like = _UNLIKE
            for frame in run:
                events += self._decode(frame)
            return
        if text:
            events.append(TextDelta(text))
            self._tap.joined += len(run) - 1

    def _learn(self, frame: Frame, found: Sequence[ModelEvent]) -> None:
        self._like = _UNLIKE
        if len(found) != 1 or type(found[0]) is not TextDelta:
            return
        before, text, after = frame.data.partition(encode(found[0].text))
        if len(text) > 2 and text not in after:
            middle, padding, rest = (b'"' + after).partition(_PADDING)
            end = rest[rest.find(b'"') :] if padding else b""
            self._like = (frame.event, before + b'"', middle + padding, end)
