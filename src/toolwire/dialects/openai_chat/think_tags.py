"""Thinking that a model writes into its text between two tags."""


class TagSplitter:
    """Tells thinking from text while it streams; a tag may be cut anywhere."""

    def __init__(self, tag: str) -> None:
        self._opening = f"<{tag}>"
        self._closing = f"</{tag}>"
        self._inside = False
        self._held = ""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """Pieces that are certain by now, each with whether it is thinking."""
        text = self._held + text
        self._held = ""
        pieces: list[tuple[bool, str]] = []
        while text:
            tag = self._closing if self._inside else self._opening
            before, found, after = text.partition(tag)
            if not found:
                held = _overlap(text, tag)
                before, self._held = text[: len(text) - held], text[len(text) - held :]
            if before:
                pieces.append((self._inside, before))
            if found:
                self._inside = not self._inside
            text = after
        return pieces

    def flush(self) -> list[tuple[bool, str]]:
        """What looked like the beginning of a tag and was none."""
        held, self._held = self._held, ""
        return [(self._inside, held)] if held else []


def _overlap(text: str, tag: str) -> int:
    """Length of the longest end of the text that begins the tag."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0
