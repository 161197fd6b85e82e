"""Owner-only files: replaced atomically, locked against other processes."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from toolwire.errors import BadInput
from toolwire.platform import lock_file

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PAUSE = 0.05
_PATIENCE = 120.0


def read_private(path: Path, notice: Callable[[str], None]) -> bytes | None:
    """The file's bytes, None if it is missing; fixes a mode that lets others read it."""
    try:
        with path.open("rb") as file:
            if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & _OTHERS:
                os.fchmod(file.fileno(), 0o600)
                notice(f"others could read {path}; its mode is now 0600. replace the secrets in it")
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def write_private(path: Path, content: bytes) -> None:
    """Replace the file atomically, mode 0600."""
    try:
        path.resolve().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, content)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from error


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace the content atomically; a link stays a link, and without a `mode` it is 0600."""
    import tempfile  # noqa: PLC0415 - start-up time

    target = path.resolve()
    # mkstemp creates with mode 0600: others can never read it.
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def locked_briefly(path: Path) -> Generator[None]:
    """Hold the file's lock for a read and a write; other processes wait."""
    handle = _open_lock(path, "write.lock")
    try:
        lock_file(handle, wait=True)
        yield
    finally:
        os.close(handle)


@asynccontextmanager
async def locked(
    path: Path,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    patience: float | None = _PATIENCE,
) -> AsyncGenerator[None]:
    """Hold the file's lock during a refresh; other tasks and processes wait."""
    handle = _open_lock(path, "lock")
    try:
        waited = 0.0
        while not lock_file(handle):
            if patience is not None and waited >= patience:
                raise BadInput(f"another program has been refreshing {path} for {patience:.0f} s")
            await sleep(_PAUSE)
            waited += _PAUSE
        yield
    finally:
        # Closing releases the lock, and so does the end of the process.
        os.close(handle)


def _open_lock(path: Path, kind: str) -> int:
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(target.with_name(f".{target.name}.{kind}"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInput(f"cannot lock {path}: {error.strerror}") from error


_answers = msgspec.json.Decoder(dict[str, dict[str, str]])


class ApprovalStore:
    """The user's answers about what projects bring, each bound to a digest of the definition."""

    def __init__(self, file: Path, older: Path | None = None, prefix: str = "") -> None:
        self._file = file
        self._older = older
        """A file of earlier versions: its names have no `prefix` yet."""
        self._prefix = prefix

    def answer(self, folder: Path, key: str, digest: str) -> bool | None:
        """The answer; None if the user was not asked about it as it is now."""
        found = self._read().get(str(folder.resolve()), {}).get(key, "")
        if found == digest:
            return True
        return False if found == f"no {digest}" else None

    def keep(self, folder: Path, key: str, digest: str, *, allowed: bool) -> None:
        """Stores an answer."""
        with locked_briefly(self._file):
            answers = self._read()
            here = answers.setdefault(str(folder.resolve()), {})
            here[key] = digest if allowed else f"no {digest}"
            data = msgspec.json.format(msgspec.json.encode(answers), indent=2)
            write_private(self._file, data + b"\n")

    def _read(self) -> dict[str, dict[str, str]]:
        found = _decoded(self._file)
        if found is not None or self._older is None:
            return found or {}
        return {
            folder: {f"{self._prefix}{name}": value for name, value in answers.items()}
            for folder, answers in (_decoded(self._older) or {}).items()
        }


def _decoded(file: Path) -> dict[str, dict[str, str]] | None:
    try:
        return _answers.decode(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {file}: {error}; fix it or remove it") from error


def approval_store(config: Path) -> ApprovalStore:
    """The one store of these answers, in the folder of the settings."""
    return ApprovalStore(config / "approved.json", config / "mcp-approvals.json", "mcp:")
