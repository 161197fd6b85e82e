"""Which folders the user trusts: only there do a project's own files count."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.config.schema import truth
from toolwire.errors import BadInput
from toolwire.places import places

FILE = "trusted.json"
VARIABLE = "TOOLWIRE_TRUST_WORKSPACE"


class Answer(StrEnum):
    """What a person says of a folder."""

    YES = "yes"
    NO = "no"
    PARENT = "parent"
    """Yes, and to everything beside it."""


Ask: TypeAlias = Callable[[Path], Answer | None]
"""Asks a person about a folder; None if they do not say."""

_kept = msgspec.json.Decoder(dict[str, bool])


def trust_file(environ: Mapping[str, str]) -> Path:
    """Where the answers are kept."""
    return places(environ).config / FILE


def is_trusted(folder: Path, environ: Mapping[str, str]) -> bool | None:
    """The answer for the nearest folder at or above this one; None if there is none."""
    answers = _read(trust_file(environ))
    here = folder.resolve()
    return next((answers[str(at)] for at in (here, *here.parents) if str(at) in answers), None)


def trust(folder: Path, answer: Answer, environ: Mapping[str, str]) -> Path:
    """Keep the answer; gives the folder it is now about."""
    from toolwire.client.private_file import (  # noqa: PLC0415 - loads asyncio
        locked_briefly,
        write_private,
    )

    here = folder.resolve()
    about = here.parent if answer is Answer.PARENT else here
    file = trust_file(environ)
    with locked_briefly(file):
        answers = _read(file)
        # An answer about the parent takes the place of an older one about the folder itself.
        answers.pop(str(here), None)
        answers[str(about)] = answer is not Answer.NO
        write_private(file, msgspec.json.format(msgspec.json.encode(answers), indent=2) + b"\n")
    return about


def decide(folder: Path, environ: Mapping[str, str], ask: Ask | None = None) -> bool | None:
    """What the variable says, else what was answered before, else what a person says now."""
    said = environ.get(VARIABLE, "").strip()
    if said:
        known = truth(said)
        if not isinstance(known, bool):
            raise BadInput(f'{VARIABLE} must be 1 or 0; found "{said}"')
        return known
    before = is_trusted(folder, environ)
    if before is not None or ask is None:
        return before
    answer = ask(folder)
    if answer is None:
        return None
    trust(folder, answer, environ)
    return answer is not Answer.NO


def _read(file: Path) -> dict[str, bool]:
    try:
        return _kept.decode(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; check its permissions") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}; correct it or delete it") from error
