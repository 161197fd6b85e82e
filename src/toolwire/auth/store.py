"""Stored credentials: in the system's keyring, or else in a file of mode 0600."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from toolwire.client.redact import Secret
from toolwire.errors import BadInput
from toolwire.storage.private_files import locked_briefly, read_private, write_private
from toolwire.wire.json_access import JsonObject, obj, parse_object

SERVICE = "toolwire"
Notice: TypeAlias = Callable[[str], None]


class StoredKey(msgspec.Struct, frozen=True, kw_only=True, tag="key"):
    """A key that is sent as it is."""

    key: Secret


class StoredLogin(msgspec.Struct, frozen=True, kw_only=True, tag="login"):
    """A login's long-lived token, from which short-lived ones are requested."""

    token: Secret


Stored: TypeAlias = StoredKey | StoredLogin


class Keyring(Protocol):
    """The three calls of the `keyring` package that are used."""

    def get_password(self, service_name: str, username: str) -> str | None: ...
    def set_password(self, service_name: str, username: str, password: str) -> None: ...
    def delete_password(self, service_name: str, username: str) -> None: ...


class FoundKey(msgspec.Struct, frozen=True, kw_only=True):
    """A stored credential and a description of its location."""

    stored: Stored
    origin: str


def _no_notice(message: str) -> None:
    del message


class Store:
    """Keys and logins by provider name."""

    def __init__(
        self, file: Path, *, keyring: Keyring | None = None, notice: Notice = _no_notice
    ) -> None:
        self.file = file
        self._keyring = keyring
        self._notice = notice

    def read(self, name: str) -> FoundKey | None:
        """The stored credential of a provider; the keyring comes first."""
        held = self._from_keyring(name)
        if held is not None:
            return FoundKey(stored=_loaded(held, "the keyring"), origin="from the keyring")
        entry = self._entries().get(name)
        if entry is None:
            return None
        stored = _loaded(msgspec.json.encode(entry), str(self.file))
        return FoundKey(stored=stored, origin=f"from {self.file}")

    def write(self, name: str, stored: Stored, *, in_file: bool = False) -> str:
        """Store or replace a credential; returns where."""
        if self._keyring is not None and not in_file:
            try:
                self._keyring.set_password(SERVICE, name, _dumped(stored).decode())
            except Exception as error:  # keyring's backends raise anything
                self._notice(f"the keyring did not store it ({type(error).__name__})")
            else:
                self._change(name, None)
                return "the keyring"
        self._change(name, parse_object(_dumped(stored), "credential"))
        self._drop_from_keyring(name)
        return str(self.file)

    def delete(self, name: str) -> tuple[str, ...]:
        """Remove a credential; returns where it was."""
        gone = ["the keyring"] if self._drop_from_keyring(name) else []
        if self._change(name, None):
            gone.append(str(self.file))
        return tuple(gone)

    def _from_keyring(self, name: str) -> bytes | None:
        if self._keyring is None:
            return None
        try:
            held = self._keyring.get_password(SERVICE, name)
        except Exception as error:  # a locked or broken keyring counts as none
            self._notice(f"the keyring could not be read ({type(error).__name__})")
            return None
        return held.encode() if held else None

    def _drop_from_keyring(self, name: str) -> bool:
        if self._keyring is None or self._from_keyring(name) is None:
            return False
        try:
            self._keyring.delete_password(SERVICE, name)
        except Exception as error:
            raise BadInput(
                f'the keyring still contains the credential of "{name}" ({type(error).__name__}); '
                "remove it with the keyring's own program"
            ) from error
        return True

    def _entries(self) -> JsonObject:
        content = read_private(self.file, self._notice)
        return obj(self._document(content).get("credentials", {}), str(self.file))

    def _document(self, content: bytes | None) -> JsonObject:
        # The content is not quoted: a broken file still contains secrets.
        if content is None:
            return {}
        try:
            return parse_object(content, str(self.file))
        except BadInput:
            raise BadInput(f"{self.file} is not JSON; fix it or remove it") from None

    def _change(self, name: str, entry: JsonObject | None) -> bool:
        if entry is None and not self.file.exists():
            return False
        with locked_briefly(self.file):
            document = self._document(read_private(self.file, self._notice))
            entries = dict(obj(document.get("credentials", {}), str(self.file)))
            before = entries.pop(name, None)
            if entry is not None:
                entries[name] = entry
            elif before is None:
                return False
            write_private(self.file, msgspec.json.encode({**document, "credentials": entries}))
            return before is not None


def system_keyring(environ: Mapping[str, str]) -> Keyring | None:
    """The system's keyring, if the `keyring` extra is installed and a backend works."""
    if environ.get("TOOLWIRE_NO_KEYRING"):
        return None
    try:
        # By name: the type checker does not see an optional extra.
        keyring: Any = import_module("keyring")
        usable = keyring.get_keyring().priority > 0
    except Exception:  # the search for a backend may fail in any way; then there is none
        return None
    return cast(Keyring, keyring) if usable else None


def _dumped(stored: Stored) -> bytes:
    return msgspec.json.encode(stored, enc_hook=_plain)


def _loaded(content: bytes, where: str) -> Stored:
    try:
        return msgspec.json.decode(content, type=Stored, dec_hook=_hidden)
    except msgspec.MsgspecError:
        raise BadInput(f"{where} contains a credential that cannot be read; log in again") from None


def _plain(value: Any) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise NotImplementedError(type(value).__name__)


def _hidden(kind: type, value: Any) -> Secret:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise NotImplementedError(kind.__name__)
