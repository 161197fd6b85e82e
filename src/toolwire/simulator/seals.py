"""Opaque state as the vendors issue it: created here and verified when sent back."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import msgspec

_KEY = b"toolwire simulator"
"""Not a secret: a seal must be recognised after a restart, not resist forgery."""
_SEPARATOR = b"\x00"


class Seals:
    """Issues seals, verifies them, and remembers beside which calls they were sent."""

    def __init__(self) -> None:
        self.issued: list[str] = []
        self._count = 0
        self._beside: dict[str, tuple[str, ...]] = {}
        self._thoughts: dict[str, str] = {}

    def issue(self, family: str, model: str, content: str) -> str:
        """Returns a seal on that content as base64 text."""
        self._count += 1
        head = _SEPARATOR.join(
            (family.encode(), model.encode(), str(self._count).encode(), _digest(content))
        )
        token = b64encode(_mac(head) + head).decode("ascii")
        self.issued.append(token)
        return token

    def wrong(self, token: str, family: str, model: str, content: str | None = None) -> str:
        """Returns what is wrong with a seal; empty if it is this server's and unchanged."""
        try:
            raw = b64decode(token, validate=True)
        except ValueError:
            return "it is not base64"
        mac, head = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, _mac(head)):
            return "this server did not issue it"
        maker, made_for, _, digest = head.split(_SEPARATOR)
        if maker.decode() != family:
            return f"it is one of {maker.decode()}"
        if made_for.decode() != model:
            return f'it was made by the model "{made_for.decode()}"'
        if content is not None and digest not in (_digest(content), _digest("")):
            return "what it seals was changed"
        return ""

    def remember(self, call_id: str, seals: tuple[str, ...], thoughts: str) -> None:
        """Records what was sent with a call."""
        self._beside[call_id] = seals
        self._thoughts[call_id] = thoughts

    def beside(self, call_id: str) -> tuple[str, ...]:
        """Returns the seals sent with a call; none for a foreign call."""
        return self._beside.get(call_id, ())

    def thoughts(self, call_id: str) -> str | None:
        """Returns the reasoning sent with a call; None for a foreign call."""
        return self._thoughts.get(call_id)


def call_content(name: str, arguments: object) -> str:
    """Returns what a seal on a call covers, independent of JSON formatting; empty if the arguments
    are not JSON: such a seal covers nothing.
    """
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments or "{}")
        except msgspec.DecodeError:
            return ""
    return msgspec.json.encode([name, arguments], order="deterministic").decode()


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16].encode()


def _mac(head: bytes) -> bytes:
    return hmac.digest(_KEY, head, "sha256")
