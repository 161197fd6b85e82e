"""Trusted folders: a project's settings apply only in these."""

import hashlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from toolwire.config.schema import truth
from toolwire.errors import BadInput
from toolwire.storage.paths import state_paths

FILE = "trusted.json"
VARIABLE = "TOOLWIRE_TRUST_WORKSPACE"
PROMPT_FILES = (Path(".toolwire") / "system.md", Path(".gemini") / "system.md")
DEFINITION_FILES = (Path(".toolwire") / "config.toml", *PROMPT_FILES)
"""Files that define how the agent works in a project; trust covers their current content."""
NO_DEFINITION = hashlib.sha256().hexdigest()
_MOST_READ = 4 << 20


class TrustAnswer(StrEnum):
    """The user's answer about a folder."""

    YES = "yes"
    NO = "no"
    PARENT = "parent"
    """Trust it and everything in its parent."""


Ask: TypeAlias = Callable[[Path], TrustAnswer | None]
"""Asks the user about a folder; None without an answer."""

_Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
_kept = msgspec.json.Decoder(dict[str, bool | _Digest])
# False: not trusted. A text: trusted, with this definition. True: trusted with all folders in it,
# whose definitions are pinned when each is first used.


def trust_file(environ: Mapping[str, str]) -> Path:
    """Returns the file of the answers."""
    return state_paths(environ).config / FILE


def definition(folder: Path) -> str:
    """Returns a digest of a project's definition files; `NO_DEFINITION` if it has none."""
    digest = hashlib.sha256()
    for name in DEFINITION_FILES:
        try:
            if not (folder / name).is_file():
                continue
            with (folder / name).open("rb") as file:
                data = file.read(_MOST_READ)
        except OSError:
            data = b"unreadable"
        digest.update(f"{name.as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def is_trusted(folder: Path, environ: Mapping[str, str]) -> bool | None:
    """Returns the answer for the nearest folder at or above this one; None if none applies.

    Trust in a folder applies while its definition is unchanged, and to folders below it that
    have no definition.
    """
    at, answer = _nearest(folder, environ)
    if not isinstance(answer, str):
        return answer
    expected = answer if at == folder.resolve() else NO_DEFINITION
    return True if definition(folder) == expected else None


def has_changed(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether the folder was trusted with another definition."""
    at, answer = _nearest(folder, environ)
    return isinstance(answer, str) and at == folder.resolve() and answer != definition(folder)


def pin(folder: Path, environ: Mapping[str, str]) -> None:
    """Stores the definition of a folder that is trusted with its parent."""
    _, answer = _nearest(folder, environ)
    value = environ.get(VARIABLE, "").strip()
    if answer is True and not value and definition(folder) != NO_DEFINITION:
        trust(folder, TrustAnswer.YES, environ)


def _nearest(folder: Path, environ: Mapping[str, str]) -> tuple[Path, bool | str | None]:
    answers = _read(trust_file(environ))
    here = folder.resolve()
    found = next((at for at in (here, *here.parents) if str(at) in answers), here)
    return found, answers.get(str(found))


def trust(folder: Path, answer: TrustAnswer, environ: Mapping[str, str]) -> Path:
    """Stores the answer; returns the folder it applies to."""
    from toolwire.storage.private_files import locked_briefly, write_private  # noqa: PLC0415 - loads asyncio

    here = folder.resolve()
    about = here.parent if answer is TrustAnswer.PARENT else here
    file = trust_file(environ)
    with locked_briefly(file):
        answers = _read(file)
        match answer:
            case TrustAnswer.NO:
                answers[str(about)] = False
            case TrustAnswer.PARENT:
                answers[str(about)] = True
                answers[str(here)] = definition(here)
            case TrustAnswer.YES:
                answers[str(about)] = definition(here)
        write_private(file, msgspec.json.format(msgspec.json.encode(answers), indent=2) + b"\n")
    return about


def decide(folder: Path, environ: Mapping[str, str], ask: Ask | None = None) -> bool | None:
    """Returns the variable's value, else the stored answer, else asks the user."""
    value = environ.get(VARIABLE, "").strip()
    if value:
        known = truth(value)
        if not isinstance(known, bool):
            raise BadInput(f'{VARIABLE} must be 1 or 0; found "{value}"')
        return known
    before = is_trusted(folder, environ)
    if before is not None or ask is None:
        return before
    answer = ask(folder)
    if answer is None:
        return None
    trust(folder, answer, environ)
    return answer is not TrustAnswer.NO


def _read(file: Path) -> dict[str, bool | str]:
    try:
        return _kept.decode(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; check its permissions") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}; correct it or delete it") from error
