"""Parses script files: TOML, one `[[reply]]` per answer."""

import tomllib
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec

from toolwire.errors import BadInput
from toolwire.events import StopReason, Usage
from toolwire.messages import Media, MediaKind
from toolwire.simulator.script import Call, Decline, Fault, Piece, Reply, Say, Script, Show, Think
from toolwire.wire.json_access import dump


class _UsageTable(msgspec.Struct, forbid_unknown_fields=True):
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def usage(self) -> Usage:
        return msgspec.convert(self, Usage, from_attributes=True)


class _CallTable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""
    complete: bool = True

    def piece(self) -> Call:
        given = self.arguments
        text = given if isinstance(given, str) else dump(given)
        return Call(name=self.name, arguments=text, id=self.id, complete=self.complete)


class _PieceTable(msgspec.Struct, forbid_unknown_fields=True):
    text: str | None = None
    thinking: str | None = None
    refusal: str | None = None
    call: _CallTable | None = None
    image_file: str | None = None

    def pieces(self, folder: Path) -> list[Piece]:
        found: list[Piece] = []
        if self.thinking is not None:
            found.append(Think(self.thinking))
        if self.text is not None:
            found.append(Say(self.text))
        if self.refusal is not None:
            found.append(Decline(self.refusal))
        if self.image_file is not None:
            found.append(Show(_image(folder / self.image_file)))
        if self.call is not None:
            found.append(self.call.piece())
        return found


class _ReplyTable(_PieceTable, forbid_unknown_fields=True):
    pieces_in_order: list[_PieceTable] = msgspec.field(
        name="pieces", default_factory=list[_PieceTable]
    )
    calls: list[_CallTable] = []
    stop: StopReason | None = None
    usage: _UsageTable | None = None
    when: str = ""
    times: int = 1
    default: bool = False
    delta: int = 16
    body_file: str = ""
    fault: Fault = Fault()

    def reply(self, folder: Path) -> Reply:
        found = self.pieces(folder)
        for table in self.pieces_in_order:
            found += table.pieces(folder)
        found += [call.piece() for call in self.calls]
        return Reply(
            pieces=tuple(found),
            stop=self.stop,
            usage=self.usage.usage() if self.usage is not None else None,
            when=self.when,
            times=self.times,
            default=self.default,
            delta=self.delta,
            body=_bytes(folder / self.body_file) if self.body_file else None,
            fault=self.fault,
        )


class _ScriptTable(msgspec.Struct, forbid_unknown_fields=True):
    reply: list[_ReplyTable]
    model: str = "simulated"


def load(path: Path) -> Script:
    """Returns the script in a file; files it names are relative to it."""
    return parse(_bytes(path).decode("utf-8", "replace"), path.parent)


def parse(text: str, folder: Path = Path()) -> Script:
    """Parses a script from TOML text."""
    try:
        table = tomllib.loads(text)
        found = msgspec.convert(table, _ScriptTable)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"script: {error}") from error
    return Script(replies=tuple(reply.reply(folder) for reply in found.reply), model=found.model)


def _image(path: Path) -> Media:
    kind = path.suffix.removeprefix(".").replace("jpg", "jpeg") or "png"
    data = b64encode(_bytes(path)).decode("ascii")
    return Media(kind=MediaKind.IMAGE, mime=f"image/{kind}", base64=data, name=path.name)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f'script: cannot read "{path}": {error.strerror}') from error
