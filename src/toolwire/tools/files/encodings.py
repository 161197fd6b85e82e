"""Bytes as text and back, byte for byte: encoding, mark and line ends are preserved."""

import codecs
import re

import msgspec

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16
_SCRIPTS = [
    "cp1251",
    "koi8_r",
    "cp866",
    "cp932",
    "euc_jp",
    "gb18030",
    "big5",
    "cp949",
    "cp1253",
    "cp1255",
    "cp1256",
    "cp874",
]


class Encoding(msgspec.Struct, frozen=True):
    """How a file's bytes spell text."""

    name: str = "utf-8"
    bom: bytes = b""

    @property
    def wide(self) -> bool:
        """Whether a line end is more than one byte."""
        return self.name.startswith(("utf-16", "utf-32"))

    def decode(self, data: bytes) -> str:
        """The text after the mark; undecodable bytes become lone surrogates or U+FFFD."""
        return data.removeprefix(self.bom).decode(self.name, _errors(self.name))

    def encode(self, text: str) -> bytes:
        """The bytes, mark included; UnicodeEncodeError if the encoding lacks a character."""
        return self.bom + text.encode(self.name, _errors(self.name, writing=True))


UTF8 = Encoding()


def _errors(name: str, *, writing: bool = False) -> str:
    if name == "utf-8":
        return "surrogateescape"
    return "strict" if writing else "replace"


def bom_of(head: bytes) -> bytes:
    """The byte order mark at the start; empty if there is none."""
    return next((mark for mark, _ in _MARKS if head.startswith(mark)), b"")


def detect(sample: bytes, *, whole: bool = True) -> Encoding:
    """The encoding of a text by its mark or its bytes; `whole` if nothing follows the sample."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return Encoding(name, mark)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, whole)
    except UnicodeDecodeError:
        return Encoding(_legacy(sample[:_SAMPLE]))
    return UTF8


def _legacy(sample: bytes) -> str:
    """UTF-8 with a few broken bytes stays UTF-8; else the likeliest of the older encodings."""
    text = sample.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = sum(letter > "\x7f" for letter in text) - broken
    if sound > broken:
        return "utf-8"
    if _japanese(sample):
        return "cp932"
    words = [word for word in re.findall(rb"[A-Za-z\x80-\xff]+", sample) if not word.isascii()]
    high = sum(byte > 0x7F for word in words for byte in word)
    # Western words have a few such letters among plain ones; in other scripts all are.
    if high < 8 or high < 0.7 * sum(map(len, words)):
        return "cp1252" if _returns(sample, "cp1252") else "latin-1"
    from charset_normalizer import from_bytes  # noqa: PLC0415 - only a legacy file needs it

    best = from_bytes(b"\n".join(words), cp_isolation=_SCRIPTS).best()
    likely = (best.encoding if best else "", "cp1252")
    return next((name for name in likely if name and _returns(sample, name)), "latin-1")


def _japanese(sample: bytes) -> bool:
    """Shift JIS has plain letters as second bytes, which hides it from the check of words."""
    if not _returns(sample, "cp932"):
        return False
    text = codecs.getincrementaldecoder("cp932")().decode(sample, False)
    return len(re.findall("[\u3040-\u30ff]", text)) > 0.2 * len(re.findall(r"[^\x00-\x7f]", text))


def _returns(sample: bytes, name: str) -> bool:
    try:
        # A character cut by the end of the sample does not rule out the encoding.
        text = codecs.getincrementaldecoder(name)().decode(sample, False)
        return sample.startswith(text.encode(name))
    except (UnicodeError, LookupError):
        return False


def printable(text: str) -> str:
    """The text with U+FFFD for bytes that were none: fit for JSON and for a model."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in text)
    return text


def line_end(text: str) -> str:
    """The line end that a text uses most; a newline if it has no lines."""
    pairs = text.count("\r\n")
    return "\r\n" if pairs > text.count("\n") - pairs else "\n"


def with_line_end(text: str, end: str) -> str:
    """The text with every line ended so."""
    plain = text.replace("\r\n", "\n")
    return plain if end == "\n" else plain.replace("\n", end)
