"""The terminal app beside codex and Claude Code: one answer of 2,000 pieces at 200 a second."""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from bench import terminal_clients
from bench.agent_turn import serving
from bench.report import Goal, Section, Table
from bench.terminal_clients import EVERY, LAST, PROMPT, Client
from bench.terminal_screen import Program, Relay
from toolwire.sessions.files import INSERT
from toolwire.sessions.records import checksum

_REAL_TURNS = 50
"""Turns of a long session that are really done; the others are copies."""
_KEY = "z"
_LETTERS = "abcdefghijkmnopqrstuvw"


class Figures(msgspec.Struct, kw_only=True):
    """What one run of a program gave."""

    first_s: float = 0.0
    first_key_s: float = 0.0
    """Until a key that is pressed at the first prompt is on the screen."""
    first_cpu_s: float = 0.0
    cpu_ms: float = 0.0
    written: float = 0.0
    memory_mb: float = 0.0
    idle_keys_ms: list[float] = []
    busy_keys_ms: list[float] = []
    idle: float = 0.0


def measure(rounds: int, *, quick: bool = False) -> Section:
    """All figures, and the goals."""
    pieces = 600 if quick else 1990
    rounds = 1 if quick else max(rounds // 2, 1)
    with tempfile.TemporaryDirectory(prefix="terminal-") as made:
        place = Path(made).resolve()
        script = place / "script.toml"
        script.write_text(terminal_clients.script(pieces))
        with serving(script) as origin:
            clients, left_out = terminal_clients.clients(origin, place)
            taken = _taken(clients, rounds, pieces, left_out)
            ours = _ours_alone(clients[0], place, quick=quick)
            ours.behind_ms = _behind(clients[0], origin, rounds)
    middle = {name: _middle(runs) for name, runs in taken.items() if runs}
    return Section("terminal", _tables(middle, ours, left_out, pieces), _goals(middle, ours))


def _taken(
    clients: list[Client], rounds: int, pieces: int, left_out: list[str]
) -> dict[str, list[Figures]]:
    taken: dict[str, list[Figures]] = {client.name: [] for client in clients}
    for _ in range(rounds):
        for client in clients:
            try:
                taken[client.name].append(_run(client, pieces))
            except (TimeoutError, OSError) as error:
                if client is clients[0]:
                    raise
                left_out.append(f"{client.name}: {str(error).partition(chr(10))[0]}")
    return taken


def _run(client: Client, pieces: int) -> Figures:
    program = Program(client.command, client.folder, client.environ)
    found = Figures()
    try:
        _open(program, client, found)
        _settle(program, client)
        found.idle_keys_ms = _keys(program)
        program.press(b"\x15")
        time.sleep(0.5)
        program.press(PROMPT.encode())
        time.sleep(0.5)
        before, written = program.cpu(), program.written
        _send(program)
        found.busy_keys_ms = _keys(program)
        program.wait(LAST, pieces * EVERY * 10 + 60)
        found.cpu_ms = (program.cpu() - before) * 1000 / pieces
        found.written = (program.written - written) / pieces
        found.memory_mb = program.memory()
        time.sleep(2.0)
        found.idle = _share(program, 4.0)
    finally:
        program.close()
    return found


def _send(program: Program) -> None:
    """Presses Enter until the answer begins: some take one that comes too early for a paste."""
    for _ in range(8):
        program.press(b"\r")
        with suppress(TimeoutError):
            program.wait("Section 1", 5.0)
            return
    program.wait("Section 1", 30.0)


def _open(program: Program, client: Client, found: Figures) -> None:
    """Waits for the first prompt and for a key on it, then for what shows that it is open."""
    pages = list(client.confirm)

    def prompted(rows: list[str], words: str = "") -> bool:
        page = any(one in row for one, _ in client.confirm for row in rows)
        marked = [row.strip() for row in rows if row.strip().startswith(client.prompt)]
        return not page and any(words in row for row in marked)

    until = time.monotonic() + 90
    while time.monotonic() < until:
        with suppress(TimeoutError):
            found.first_s = program.until(prompted, 0.5) - program.started
            break
        _leave_pages(program, pages)
    program.press(_KEY.encode())
    with suppress(TimeoutError):
        shown = program.until(lambda rows: prompted(rows, _KEY), 10.0)
        found.first_key_s = shown - program.started
    program.press(b"\x7f")
    while client.ready not in "\n".join(program.rows()):
        _leave_pages(program, pages)
        if time.monotonic() > until:
            shown = "\n".join(program.rows()).strip()
            raise TimeoutError(f"no prompt appeared: {shown[-300:]}")
        time.sleep(0.01)
    found.first_cpu_s = program.cpu()


def _leave_pages(program: Program, pages: list[tuple[str, bytes]]) -> None:
    rows = "\n".join(program.rows())
    for page in list(pages):
        if page[0] in rows:
            pages.remove(page)
            time.sleep(0.3)
            program.press(page[1])


def _settle(program: Program, client: Client) -> None:
    """Leaves pages that come over the first prompt."""
    pages = list(client.confirm)
    until = time.monotonic() + (8.0 if pages else 1.0)
    while time.monotonic() < until:
        _leave_pages(program, pages)
        time.sleep(0.1)


def _keys(program: Program) -> list[float]:
    """Milliseconds from a key to its letter on the screen, for a few keys."""
    found: list[float] = []
    typed = ""
    for letter in _LETTERS:
        typed += letter
        begun = time.monotonic()
        program.press(letter.encode())
        with suppress(TimeoutError):
            found.append((program.wait(typed, 3.0) - begun) * 1000)
        time.sleep(0.05)
    return found


def _share(program: Program, seconds: float) -> float:
    before = program.cpu()
    time.sleep(seconds)
    return (program.cpu() - before) / seconds * 100


class Alone(msgspec.Struct, kw_only=True):
    """Figures of ours that no other program is asked for."""

    resumed_s: float = 0.0
    resumed_cpu_s: float = 0.0
    resumed_mb: float = 0.0
    items: int = 0
    calling: float = 0.0
    big_share: float = 0.0
    big_frames: float = 0.0
    behind_ms: float = 0.0
    """From the end of a stream to its last word on the screen."""


def _ours_alone(client: Client, place: Path, *, quick: bool) -> Alone:
    found = Alone()
    _calls(client, found)
    _resume(client, place, found, turns=100 if quick else 2500)
    return found


def _calls(client: Client, found: Alone) -> None:
    program = Program(client.command, client.folder, client.environ)
    try:
        program.wait(client.ready)
        program.press(b"run the slow one\r")
        program.wait("sleep 20  ")
        time.sleep(1.0)
        before = program.cpu(tree=False)
        time.sleep(8.0)
        found.calling = (program.cpu(tree=False) - before) / 8.0 * 100
        program.press(b"\x1b")
        program.wait("stopped")
        time.sleep(0.5)
        before, frames, begun = program.cpu(tree=False), program.frames, time.monotonic()
        program.press(b"run the big one\r")
        program.wait(LAST, 120)
        took = time.monotonic() - begun
        found.big_share = (program.cpu(tree=False) - before) / took * 100
        found.big_frames = (program.frames - frames) / took
    finally:
        program.close()


def _behind(client: Client, origin: str, rounds: int) -> float:
    """Milliseconds from the last byte of an answer to its last word on the screen, the longest."""
    relay = Relay(origin, b"[DONE]")
    through = [word.replace(origin, relay.origin) for word in client.command]
    found: list[float] = []
    try:
        for _ in range(max(rounds, 2)):
            program = Program(through, client.folder, client.environ)
            try:
                program.wait(client.ready)
                program.press(PROMPT.encode() + b"\r")
                shown = program.wait(LAST, 240)
                time.sleep(0.5)
                found.append((shown - relay.ended) * 1000)
            finally:
                program.close()
    finally:
        relay.close()
    return max(*found, 0.0)


def _resume(client: Client, place: Path, found: Alone, turns: int) -> None:
    home = place / "long"
    home.mkdir()
    some = min(turns, _REAL_TURNS)
    words = ["-m", "bench.agent_session", "openai-chat", str(some), "0", str(home), str(some)]
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    (file,) = (home / "state").rglob("*.sqlite")
    _repeat(file, turns // some)
    found.items = turns * 4
    environ = {**client.environ, "HOME": str(home), "TOOLWIRE_HOME": str(home / "state")}
    program = Program([*client.command, "--continue"], home / "work", environ)
    try:
        program.wait(client.ready, 120)
        found.resumed_s = time.monotonic() - program.started
        found.resumed_cpu_s = program.cpu()
        time.sleep(1.0)
        found.resumed_mb = program.memory()
    finally:
        program.close()


def _repeat(file: Path, times: int) -> None:
    """Makes a session that many times as long, by its own records again."""
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT seq, at, kind, body FROM records ORDER BY seq").fetchall()
        begin = next(at for at, row in enumerate(rows) if row[2] == "turn_started")
        last = rows[-1][0]
        for _ in range(times - 1):
            for _, at, kind, body in rows[begin:]:
                last += 1
                check = checksum(last, at, kind, body)
                connection.execute(INSERT, (last, at, kind, body, check))
        connection.commit()


def _middle(runs: list[Figures]) -> Figures:
    def of(part: Callable[[Figures], float]) -> float:
        return statistics.median(map(part, runs))

    return Figures(
        first_s=of(lambda run: run.first_s),
        first_key_s=of(lambda run: run.first_key_s),
        first_cpu_s=of(lambda run: run.first_cpu_s),
        cpu_ms=of(lambda run: run.cpu_ms),
        written=of(lambda run: run.written),
        memory_mb=of(lambda run: run.memory_mb),
        idle_keys_ms=sorted(key for run in runs for key in run.idle_keys_ms),
        busy_keys_ms=sorted(key for run in runs for key in run.busy_keys_ms),
        idle=of(lambda run: run.idle),
    )


def _key(keys: list[float], share: float) -> float | None:
    return keys[min(int(len(keys) * share), len(keys) - 1)] if keys else None


def _tables(
    found: dict[str, Figures], ours: Alone, left_out: list[str], pieces: int
) -> tuple[Table, ...]:
    rows = tuple(
        (
            name,
            one.cpu_ms,
            one.written,
            one.memory_mb,
            _key(one.idle_keys_ms, 0.5),
            _key(one.busy_keys_ms, 0.5),
            _key(one.busy_keys_ms, 0.99),
            one.first_s,
            one.first_key_s,
            one.first_cpu_s,
            one.idle,
        )
        for name, one in found.items()
    )
    note = f"One answer of {pieces} pieces at 200 a second on a terminal of 120×40. " + "; ".join(
        f"left out: {words}" for words in left_out
    )
    columns = (
        "program", "CPU ms/piece", "bytes/piece", "MB", "key ms, idle", "key ms, streaming",
        "key ms, p99", "first prompt s", "a key on it s", "CPU s until it is open", "idle %",
    )  # fmt: skip
    alone = (
        ("resume: items", ours.items),
        ("resume: seconds until it is open", ours.resumed_s),
        ("resume: CPU seconds", ours.resumed_cpu_s),
        ("resume: MB", ours.resumed_mb),
        ("% of a core while a command runs", ours.calling),
        ("% of a core while a command prints 100 MB", ours.big_share),
        ("frames a second meanwhile", ours.big_frames),
        ("ms from the end of a stream to its last word", ours.behind_ms),
    )
    return (
        Table("The terminal app", columns, rows, note.strip()),
        Table("The terminal app alone", ("what", "figure"), alone),
    )


def _goals(found: dict[str, Figures], ours: Alone) -> tuple[Goal, ...]:
    own, *peers = found.items()
    one = own[1]
    goals = [
        Goal("CPU per streamed piece", 0.6, one.cpu_ms, unit="ms"),
        Goal("bytes per piece", 60, one.written, unit="bytes"),
        Goal("key to screen, idle, median", 10, _key(one.idle_keys_ms, 0.5) or 0, unit="ms"),
        Goal("key to screen, streaming, median", 20, _key(one.busy_keys_ms, 0.5) or 0, unit="ms"),
        Goal("key to screen, streaming, p99", 50, _key(one.busy_keys_ms, 0.99) or 0, unit="ms"),
        Goal("CPU to the first prompt", 0.35, one.first_cpu_s, unit="s"),
        Goal("memory after the answer", 80, one.memory_mb, unit="MB"),
        Goal("memory, resumed", 150, ours.resumed_mb, f"{ours.items:,} items", unit="MB"),
        Goal("CPU to resume", 1.5, ours.resumed_cpu_s, f"{ours.items:,} items", unit="s"),
        Goal("idle", 0.5, one.idle, unit="%"),
        Goal("idle while a command runs", 1.0, ours.calling, unit="%"),
        Goal("a command that prints 100 MB", 10.0, ours.big_share, unit="%"),
        Goal("frames a second meanwhile", 15.5, ours.big_frames, unit=""),
        Goal("end of the stream to its last word", 100, ours.behind_ms, unit="ms"),
    ]
    for name, peer in peers:
        if name.casefold().startswith("codex"):
            goals.append(Goal("CPU per piece to codex's", 0.45, one.cpu_ms / peer.cpu_ms))
            goals.append(Goal("first prompt to codex's", 1.0, one.first_s / peer.first_s))
            first_key = one.first_key_s / (peer.first_key_s or 10.0)
            goals.append(Goal("a key on the first prompt to codex's", 1.0, first_key))
    return tuple(goals)
