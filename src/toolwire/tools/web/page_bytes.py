"""The body of a page as text: compression and character sets, within a size."""

import codecs
import re
import zlib

OFFERED = "gzip, deflate"
# What browsers read. Python knows other codecs by name that unpack, run escapes or take very long.
_BROWSERS = """
    utf-8 utf-16 utf-16-le utf-16-be ascii gbk gb2312 gb18030 big5 big5hkscs euc_jp shift_jis cp932
    iso2022_jp euc_kr cp949 koi8-r koi8-u mac-roman mac-cyrillic cp866 cp874 tis-620
    iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9
    iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
"""
_ENCODINGS = frozenset(_BROWSERS.split())
_DECLARED = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{1,500}charset=[\"']?([\w-]{1,40})", re.IGNORECASE)
_START = 2048


class BadBody(ValueError):
    """A body that cannot be read; the text says why."""


class Body:
    """Takes a body chunk by chunk and keeps no more of it than the limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadBody(f"the page is compressed in a way that is not supported: {name[:40]}")
        self._name = name
        self._limit = limit
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if "gzip" in name else None
        self._kept = bytearray()

    def add(self, chunk: bytes) -> bool:
        """Whether more is needed."""
        left = self._limit - len(self._kept)
        if self._name == "deflate" and self._inflate is None and chunk:
            # Some servers leave out the header that the standard asks for.
            bare = chunk[0] & 0x0F != 8
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
        if self._inflate is None:
            self._kept += chunk[:left]
        elif chunk:
            try:
                self._kept += self._inflate.decompress(chunk, left)
            except zlib.error as error:
                raise BadBody(f"the compressed page cannot be read: {error}") from error
        return len(self._kept) < self._limit

    def text(self, content_type: str) -> str:
        """What was kept, decoded."""
        data = bytes(self._kept)
        return data.decode(charset(content_type, data[:_START]), "replace")


def charset(content_type: str, start: bytes) -> str:
    """The encoding that the header or the page names; UTF-8 if it is none that browsers read."""
    declared, meta = _DECLARED.search(content_type), _META.search(start)
    for name in (declared[1] if declared else "", meta[1].decode() if meta else ""):
        try:
            found = codecs.lookup(name).name if name else ""
        except (LookupError, ValueError):
            continue
        if found in _ENCODINGS:
            return found
    return "utf-8"
