"""Checkpoints of stored sessions: listed, restored, and what is reported about them."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.agent.events import (
    Checkpointed,
    MessageAdded,
    Noticed,
    ToolFinished,
    ToolStarted,
)
from toolwire.app.checkpoints import folder_of
from toolwire.messages import Message, Text
from toolwire.sessions.replay import replay
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.sqlite_journal import SqliteJournal
from toolwire.sessions.store import Record, SessionStore
from toolwire.sessions.transcript import record_after

if TYPE_CHECKING:
    from toolwire.extensions.checkpoints.folder import Entry
    from toolwire.extensions.checkpoints.restore import Done, Plan, Restorer


def restorer_of(journal: Path, environ: Mapping[str, str]) -> "Restorer":
    """Reads the checkpoints of a stored session, to restore one."""
    from toolwire.extensions.checkpoints.folder import CheckpointFolder  # noqa: PLC0415 - start-up
    from toolwire.extensions.checkpoints.restore import Restorer  # noqa: PLC0415
    from toolwire.extensions.checkpoints.shadow import NAME  # noqa: PLC0415

    return Restorer(
        journal.stem,
        CheckpointFolder(folder_of(journal)),
        journal.parent / NAME,
        environ=environ,
        clock=time.time,
    )


class CheckpointLine(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint in a list."""

    n: int
    turn: int
    at: float
    kind: str
    """`tree`, `files`, or `restore`: the state before a restore."""
    files: tuple[str, ...]
    """Files that edit tools changed after it, before the next one."""
    calls: tuple[str, ...]
    """The calls that changed files, in order."""


def checkpoint_lines(entries: "Sequence[Entry]", records: Sequence[Record]) -> list[CheckpointLine]:
    """The checkpoints of a session, oldest first."""
    from toolwire.extensions.checkpoints.folder import Checkpoint, Edited, Ran  # noqa: PLC0415

    names = {
        record.event.call_id: record.event.name
        for record in records
        if isinstance(record.event, ToolFinished | ToolStarted)
    }
    found: list[tuple[Checkpoint, dict[str, None], dict[str, None]]] = []
    for entry in entries:
        if isinstance(entry, Checkpoint):
            found.append((entry, {}, {}))
        elif isinstance(entry, Edited | Ran) and found:
            _, files, calls = found[-1]
            calls[entry.call] = None
            if isinstance(entry, Edited):
                files[entry.path] = None
    return [
        CheckpointLine(
            n=one.n,
            turn=one.turn,
            at=one.at,
            kind=one.kind,
            files=tuple(files),
            calls=tuple(names.get(call, call) for call in calls),
        )
        for one, files, calls in found
    ]


class Restore(msgspec.Struct, frozen=True, kw_only=True):
    """What to restore."""

    n: int
    files: bool = True
    conversation: bool = True
    force: bool = False


class RestoreOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did, or would do."""

    lines: tuple[str, ...]
    """For the user."""
    left: bool = False
    """Whether files were left as they are."""
    copy: str = ""
    """The id of the session with the conversation up to there."""


async def restore_stored(
    store: SqliteStore,
    name: str,
    wanted: Restore,
    environ: Mapping[str, str],
    *,
    dry: bool = False,
) -> RestoreOutcome:
    """Restores a checkpoint of a session that is not in use."""
    from toolwire.extensions.checkpoints.restore import find  # noqa: PLC0415 - start-up time

    journal = store.open(name)
    try:
        restorer = restorer_of(journal.path, environ)
        to = find(restorer.entries, wanted.n)
        folder = Path(to.roots[0])
        lines: list[str] = []
        left = False
        if wanted.files and dry:
            plan = await asyncio.to_thread(restorer.plan, wanted.n, force=wanted.force)
            lines += planned_text(plan, folder)
        elif wanted.files:
            done = await asyncio.to_thread(restorer.restore, wanted.n, force=wanted.force)
            past = replay(await journal.read(journal.session))
            await _recorded(journal, done, wanted.n, informs=not past.open)
            lines += restored_text(done, wanted.n, folder)
            left = bool(done.conflicts)
        if not wanted.conversation:
            return RestoreOutcome(lines=tuple(lines), left=left)
        if dry:
            lines.append(f"would copy the conversation up to turn {to.turn - 1} to a new session")
            return RestoreOutcome(lines=tuple(lines), left=left)
        copy = copy_conversation(store, journal.session, to.turn)
        words = f"the conversation before turn {to.turn} is session {copy}"
        return RestoreOutcome(lines=(*lines, words), left=left, copy=copy)
    finally:
        await journal.close()


def copy_conversation(store: SessionStore, session: str, turn: int) -> str:
    """Copies a session up to the turn before this one; returns the id of the copy."""
    upto = record_after(store.read(session).records, turn - 1)
    return store.fork(session, upto)


async def _recorded(journal: SqliteJournal, done: "Done", to: int, *, informs: bool) -> None:
    """Stores what was restored, so that the session knows it."""
    if not done.n:
        return
    await journal.append(journal.session, Checkpointed(n=done.n))
    words = f"checkpoint {to} was restored"
    await journal.append(journal.session, Noticed(kind="checkpoint", message=words))
    if informs and (text := informed(done)):
        message = Message(role="user", parts=(Text(text),))
        await journal.append(journal.session, MessageAdded(message=message, context=True))


def planned_text(plan: "Plan", folder: Path) -> list[str]:
    """What the user reads about a restore that is not made."""
    lines = [
        f"would {'restore' if one.target else 'move to the trash'} {_short(one.path, folder)}"
        for one in plan.steps
    ]
    lines += [f"would leave {_short(one.path, folder)}: {one.why}" for one in plan.conflicts]
    return lines or [f"the files are as they were at checkpoint {plan.to.n}"]


def _short(path: str, folder: Path) -> str:
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


def restored_text(done: "Done", to: int, folder: Path) -> list[str]:
    """What the user reads after a restore."""
    lines = [f"restored {_short(path, folder)}" for path in done.restored]
    lines += [f"moved to the trash {_short(path, folder)}" for path in done.trashed]
    lines += [f"left as it is {_short(one.path, folder)}: {one.why}" for one in done.conflicts]
    if done.n:
        back = f"checkpoint {done.n} is the state before"
        lines.append(f"checkpoint {to} is restored; {back}")
    elif not done.conflicts:
        lines.append(f"the files are as they were at checkpoint {to}")
    if done.trash:
        lines.append(f"the trash is {done.trash}")
    return lines


def informed(done: "Done") -> str:
    """What the model reads after a restore of files; empty if nothing changed."""
    changed = (*done.restored, *done.trashed)
    if not changed:
        return ""
    shown = "\n".join(changed[:50]) + ("\n…" if len(changed) > 50 else "")
    return (
        "The user restored files to an earlier state; read them again before you rely on them:\n"
        f"{shown}"
    )
