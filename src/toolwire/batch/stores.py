"""Where a batch is stored: in a file of its folder, or on the server of `sessions.store`."""

import os
from contextlib import suppress
from pathlib import Path

from toolwire.batch.spec import FILE as SPEC_FILE
from toolwire.batch.spec import BatchSpec, read_spec
from toolwire.batch.sqlite import SqliteBatch, already_there
from toolwire.batch.store import BatchStore
from toolwire.client.redact import redaction
from toolwire.errors import BadInput, ToolwireError
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import SessionStore

SESSION_ID = "id"
"""File with the id of a session on a server."""


def open_batch(out: Path, url: str = "") -> BatchStore:
    """Returns the batch of a folder, in its file or on the server of `sessions.store`."""
    spec = read_spec(out)
    if not spec.shared:
        return SqliteBatch(out)
    from toolwire.batch.postgres import PostgresBatch  # noqa: PLC0415 - optional

    return PostgresBatch(url or store_url(), spec.id)


def create_batch(out: Path, spec: BatchSpec) -> BatchStore:
    """Returns a new batch without tasks."""
    if not spec.shared:
        return SqliteBatch.create(out)
    from toolwire.batch.postgres import PostgresBatch  # noqa: PLC0415 - optional

    if (out / SPEC_FILE).exists():
        raise already_there(out)
    out.mkdir(parents=True, exist_ok=True)
    return PostgresBatch.create(store_url(), spec.id)


def session_of(spec: BatchSpec, folder: Path, url: str = "") -> tuple[SessionStore, str]:
    """Returns where the session of an attempt is stored, and its id; empty before it began.

    `folder` is that of the attempt's session.
    """
    if not spec.shared:
        files = SqliteStore(folder, redact=redaction())
        found = files.list() if folder.exists() else []
        return files, found[0].id if found else ""
    from toolwire.sessions.postgres.store import PostgresStore  # noqa: PLC0415 - optional

    known = folder / SESSION_ID
    store = PostgresStore(url or store_url(), redact=redaction())
    return store, known.read_text(encoding="utf-8") if known.exists() else ""


def note_session(folder: Path, session: str) -> None:
    """Notes the id of a session on a server in the attempt's folder, for those who read it."""
    known = folder / SESSION_ID
    if known.exists() and known.read_text(encoding="utf-8") == session:
        return
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{SESSION_ID}.draft"
    draft.write_text(session, encoding="utf-8")
    draft.replace(known)


def export_session(url: str, session: str, folder: Path) -> None:
    """Copies a session of a server to a file in the attempt's folder, as far as it can be read."""
    from toolwire.sessions.postgres.store import PostgresStore  # noqa: PLC0415 - optional

    # The session itself is on the server: an attempt does not fail for want of its copy.
    with suppress(ToolwireError, OSError):
        SqliteStore(folder).import_rows(PostgresStore(url).export_rows(session))


def store_url() -> str:
    """Returns the server of the user's settings; its address is never stored with a batch."""
    from toolwire import config  # noqa: PLC0415 - start-up time

    url = config.load(os.environ, Path.cwd()).sessions.store
    if not url:
        raise BadInput(
            "the batch is on a server, and sessions.store names none here; set it with toolwire "
            "config set sessions.store postgresql://…"
        )
    return url
