import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST, Done, Place, Simulated, command
from toolwire.simulator import Question, Reply
from toolwire.simulator.script import Call, Fault, Say, Think

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="limits and closed streams are POSIX's"),
]
DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def says(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Say(text),), **more)


def shell(text: str, **more: Any) -> Reply:
    return Reply(pieces=(Call.of("run_shell_command", command=text),), **more)


def run(place: Place, sim: Simulated, *args: str, **more: Any) -> Done:
    """`toolwire run` with streams and limits of one's own."""
    dialect = more.pop("dialect", "openai-chat")
    usual: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    done = subprocess.run(
        command(
            ("run", "--upstream", sim.upstream(dialect), "--yolo", more.pop("prompt", "go"), *args)
        ),
        env=place.environ(**more.pop("env", {})),
        cwd=more.pop("cwd", place.work),
        timeout=LONGEST,
        check=False,
        **{**usual, **more},
    )
    return Done(done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode())


def assert_told(ended: Done, code: int, *words: str) -> None:
    """The code, and a message for people that says these words."""
    assert "Traceback" not in ended.err
    assert ended.code == code, ended.err
    for word in words:
        assert word in ended.err


def assert_goes_on(
    place: Place, sim: Simulated, *args: str, prompt: str = "go on"
) -> list[dict[str, Any]]:
    """The session is there and whole; returns what the model is told of it."""
    ended = run(place, sim, *(args or ("--continue",)), prompt=prompt)
    assert_told(ended, 0)
    assert not sim.refusals
    return sim.bodies[-1]["messages"]


def kept_text(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(one.get("content")) for one in messages)


class Stumbling:
    """Steps that each write a line; every answer fails in its own way before it comes whole."""

    def __init__(self, faults: list[Fault], tries: int = 1) -> None:
        self._faults = faults
        self._tries = tries
        self._failed = [0] * len(faults)
        self.stumbles = 0

    def __call__(self, question: Question) -> Reply:
        step = sum(bool(message.calls) for message in question.request.messages)
        if step == len(self._faults):
            return says("all done")
        fault = Fault()
        if self._failed[step] < self._tries:
            self._failed[step] += 1
            self.stumbles += 1
            fault = self._faults[step]
        pieces = (Think("Let me see."), Say(f"Step {step} of some."))
        call = Call.of("run_shell_command", command=f"echo {step} >> log")
        return Reply(pieces=(*pieces, call), fault=fault, delta=4)

    @property
    def lines(self) -> list[str]:
        return [str(step) for step in range(len(self._faults))]


def cuts() -> list[Fault]:
    by_events = [Fault(cut_events=count) for count in (0, 1, 3, 6, 9, 12, 16, 20)]
    ended = [Fault(cut_events=count, cut_how="body") for count in (1, 5, 10, 15)]
    by_bytes = [Fault(cut_bytes=count) for count in (1, 7, 150, 400, 900, 1400, 2000)]
    return [*by_events, *ended, *by_bytes]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.sweep
def test_answers_cut_anywhere_are_asked_for_again_and_calls_run_once(
    place: Place, counted: Callable[[str], None], dialect: str
):
    model = Stumbling(cuts())
    with Simulated(model) as sim:
        ended = run(place, sim, dialect=dialect)
        assert_told(ended, 0, "retrying")
        assert ended.out.endswith("all done\n")
        assert not sim.refusals
    assert (place.work / "log").read_text().split() == model.lines
    counted(f"faults: {model.stumbles} cut answers over {dialect}, every call ran once")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.sweep
def test_noise_errors_and_rate_limits_are_passed_over(place: Place, dialect: str):
    model = Stumbling(
        [
            Fault(noise_after=0),
            Fault(noise_after=1),
            Fault(noise_after=4),
            Fault(noise_after=9, noise=b"data: [1, 2\n\n"),
            Fault(error_after=1),
            Fault(error_after=8),
            Fault(status=429, retry_after="0.05"),
            Fault(status=503, retry_after="0.05"),
            Fault(status=500, retry_after="0.05"),
            Fault(status=529, retry_after="0.05"),
        ]
    )
    with Simulated(model) as sim:
        assert_told(run(place, sim, dialect=dialect), 0)
        assert not sim.refusals
    assert (place.work / "log").read_text().split() == model.lines


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(cut_events=4), "broke in the middle of the answer"),
        (Fault(cut_events=4, cut_how="body"), "ended without"),
        (Fault(noise_after=4), "unreadable"),
        (Fault(error_after=4, message="the engine fell over"), "the engine fell over"),
    ],
)
@pytest.mark.sweep
def test_an_answer_that_never_comes_whole_fails_and_its_words_are_kept(
    place: Place, fault: Fault, words: str
):
    replies = [says("Half of a sentence that", fault=fault, delta=6, times=3), says("fine")]
    with Simulated(replies) as sim:
        ended = run(place, sim)
        assert_told(ended, 1, words, "--session")
        assert ended.out == "Half of a sentence" * 3 + "\n"
        assert len(sim.bodies) == 3
        messages = assert_goes_on(place, sim)
    assert [one["role"] for one in messages[-3:]] == ["user", "assistant", "user"]
    assert messages[-2]["content"].startswith("Half")


def test_a_server_that_speaks_another_language_is_given_up(place: Place):
    other = says("x", fault=Fault(noise_after=0, noise=b"data: <html>\n\n"), times=9)
    with Simulated([other]) as sim:
        assert_told(run(place, sim), 1, "unreadable", "--session")
    assert len(sim.bodies) == 3


def test_a_storm_of_rate_limits_ends_with_the_vendors_words(place: Place):
    storm = Fault(status=429, message="slow down, please", retry_after="0.05")
    with Simulated([Reply(fault=storm, times=5), says("fine")]) as sim:
        ended = run(place, sim)
        assert_told(ended, 1, "slow down, please", "5 attempts", "--session")
        assert len(sim.bodies) == 5
        assert_goes_on(place, sim)


def test_a_server_that_asks_for_an_hour_is_not_waited_for(place: Place):
    with Simulated([Reply(fault=Fault(status=429, retry_after="3600"))]) as sim:
        ended = run(place, sim)
    assert_told(ended, 1, "3600 s")
    assert len(sim.bodies) == 1


@pytest.mark.parametrize(
    "fault", [Fault(wait_first=600), Fault(hang_after=0), Fault(hang_after=3), Fault(endless=True)]
)
@pytest.mark.sweep
def test_a_stalled_answer_is_ended_by_the_time_limit(place: Place, fault: Fault):
    replies = [says("Some words that all differ", fault=fault, delta=5), says("fine")]
    with Simulated(replies) as sim:
        ended = run(place, sim, env={"TOOLWIRE_LIMITS_SECONDS": "1"})
        assert ended.code in ((53,) if not fault.endless else (53, 54)), ended.err
        assert_told(ended, ended.code, "--session")
        messages = assert_goes_on(place, sim)
    said = kept_text(messages)
    assert ("Some" in said) == (fault.hang_after == 3 or fault.endless)


def test_a_command_that_runs_over_the_time_limit_is_ended_and_reported(place: Place):
    with Simulated([shell("echo begun > mark; sleep 600"), says("fine")]) as sim:
        ended = run(place, sim, env={"TOOLWIRE_LIMITS_SECONDS": "2"})
        assert_told(ended, 53, "--session")
        messages = assert_goes_on(place, sim)
    assert (place.work / "mark").exists()
    assert "it had started" in kept_text(messages).lower()


def test_a_server_that_is_not_there_is_named(place: Place):
    with Simulated([]) as sim:
        upstream = sim.upstream()
    ended = place.toolwire("run", "--upstream", upstream, "go")
    assert_told(ended, 1, "cannot reach 127.0.0.1", "--session")


def limited(size: int) -> Callable[[], None]:
    """No file of the process grows beyond this: what a full disk says, without one."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.sweep
def test_a_full_disk_stops_the_session_where_it_can_still_be_kept(
    place: Place, counted: Callable[[str], None]
):
    def model(question: Question) -> Reply:
        steps = sum(bool(message.calls) for message in question.request.messages)
        return shell(f"echo {steps} >> log") if "again" not in question.words else says("fine")

    for size in range(36_000, 150_000, 9_300):
        here = Place(place.root / str(size))
        here.root.mkdir()
        with Simulated(model) as sim:
            ended = run(here, sim, preexec_fn=limited(size))
            assert_told(ended, 1, "cannot write session", "disk full", "--session")
            log = here.work / "log"
            ran = log.read_text().split() if log.exists() else []
            messages = assert_goes_on(here, sim, prompt="again")
        assert ran == [str(number) for number in range(len(ran))]
        answers = [one["content"] for one in messages if one["role"] == "tool"]
        known = [one for one in answers if "Exit Code: 0" in one]
        # The last one may have run without that being kept: then it is not called done.
        assert len(ran) - 1 <= len(known) <= len(ran)
    counted("faults: disk full at 13 places of a session, each goes on")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1_000, ("cannot create a session in", "free some space")),
        # Room for the file, not for the log beside it.
        (20_000, ("cannot open session", "is the disk full or read-only?")),
    ],
)
def test_a_run_on_a_disk_too_full_for_a_session_is_not_stored(
    place: Place, size: int, words: tuple[str, ...]
):
    with Simulated([says("fine"), says("fine")]) as sim:
        ended = run(place, sim, preexec_fn=limited(size))
        assert_told(ended, 0, "the session is not stored", *words)
        assert list((place.home / "sessions").rglob("*.sqlite*")) == []
        assert_told(run(place, sim), 0)


def test_a_disk_too_full_for_anything_is_reported_before_anything_is_sent(place: Place):
    with Simulated([says("fine")]) as sim:
        ended = run(place, sim, preexec_fn=limited(0))
        assert_told(ended, 1, "cannot create a temporary folder", "free some space", "TMPDIR")
        assert not sim.bodies
        assert_told(run(place, sim), 0)


def test_output_that_does_not_fit_on_the_disk_is_reported_as_unsaved(place: Place):
    long = "for i in $(seq 60000); do echo line $i; done"
    settings = {"TOOLWIRE_TOOLS_OUTPUT_CHARACTERS": "2000"}
    with Simulated([shell(long), says("fine")]) as sim:
        ended = run(place, sim, preexec_fn=limited(300_000), env=settings)
    assert_told(ended, 0)
    result = sim.bodies[1]["messages"][-1]["content"]
    assert "line 60000" in result
    assert "not the whole" in result or "Could not save" in result


def tiny_disk(place: Place, *args: str) -> list[str]:
    """A command whose workspace is a file system of 64 KB; needs a mount of one's own."""
    mounted = f"mount -t tmpfs -o size=64k tiny {place.work} && cd {place.work} && exec "
    line = " ".join(f"'{one}'" for one in command(args))
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted + line]


def test_a_file_that_does_not_fit_is_not_left_half_written(place: Place):
    probe = subprocess.run(
        tiny_disk(place, "--version"), check=False, capture_output=True, env=place.environ()
    )
    if probe.returncode:
        pytest.skip("no mounts of one's own on this system")
    file = str(place.work / "a.txt")
    first = Call.of("write_file", file_path=file, content="short\n")
    second = Call.of("write_file", file_path=file, content="long " * 30_000)
    look = shell("ls -A; cat a.txt")
    with Simulated([Reply(pieces=(first,)), Reply(pieces=(second,)), look, says("fine")]) as sim:
        args = ("run", "--upstream", sim.upstream(), "--yolo", "go")
        done = subprocess.run(
            tiny_disk(place, *args),
            check=False,
            capture_output=True,
            env=place.environ(),
            timeout=LONGEST,
        )
    assert_told(Done(done.returncode, done.stdout.decode(), done.stderr.decode()), 0)
    results = [one["content"] for one in sim.bodies[-1]["messages"] if one["role"] == "tool"]
    assert "No space left" in results[1]
    assert "Output: a.txt\nshort" in results[2]


def in_the_way(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")


def test_a_run_in_a_home_that_cannot_be_written_is_not_stored(place: Place):
    # Also holds for root, to whom permissions mean nothing.
    home = place.root / "other"
    in_the_way(home / "sessions")
    with Simulated([says("fine")]) as sim:
        ended = run(place, sim, env={"TOOLWIRE_HOME": str(home)})
        words = ("the session is not stored", str(home), "a file is where a folder should be")
        assert_told(ended, 0, *words, "TOOLWIRE_HOME")
        assert ended.out == "fine\n"


def test_a_home_that_is_a_file_is_reported_before_anything_is_sent(place: Place):
    home = place.root / "other"
    in_the_way(home)
    with Simulated([says("fine")]) as sim:
        ended = run(place, sim, env={"TOOLWIRE_HOME": str(home)})
        assert_told(ended, 42, str(home), "Not a directory")
        assert not sim.bodies


@pytest.mark.parametrize("what", ["cache", "audit.jsonl"])
def test_what_a_run_can_do_without_does_not_stop_it(place: Place, what: str):
    if what == "cache":
        in_the_way(place.home / what)
    else:
        (place.home / what).mkdir()
    long = "for i in $(seq 3000); do echo line $i; done"
    settings = {"TOOLWIRE_TOOLS_OUTPUT_CHARACTERS": "2000"}
    with Simulated([shell(long), says("fine")]) as sim:
        ended = run(place, sim, env=settings)
    assert_told(ended, 0)
    assert "line 3000" in sim.bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.toml", b"[limits", "not TOML"),
        ("config.toml", b"limitz = 3", 'did you mean "limits"'),
        ("config.toml", b"\xff\xfe", "not UTF-8"),
        ("config.toml", b"\0\0\0", "not TOML"),
        ("config.toml", b'[limits]\nturns = "x"', "limits.turns must be a whole number"),
        ("config.toml", None, "Is a directory"),
        ("policy.toml", b"[[rule", "policy.toml"),
        ("policy.toml", None, "Is a directory"),
    ],
)
def test_broken_settings_are_bad_input_and_named(
    place: Place, name: str, text: bytes | None, words: str
):
    file = place.home / name
    if text is None:
        file.mkdir()
    else:
        file.write_bytes(text)
    with Simulated([says("fine")]) as sim:
        assert_told(run(place, sim), 42, str(file), words)
        assert not sim.bodies
    assert text is None or file.read_bytes() == text


def test_a_workspace_that_is_gone_before_the_start_is_reported(place: Place):
    gone = place.root / "gone"
    gone.mkdir()
    with Simulated([says("fine")]) as sim:
        ended = run(place, sim, cwd=gone, preexec_fn=gone.rmdir)
        assert_told(ended, 42, "no longer exists")
        assert not sim.bodies


def test_a_workspace_that_goes_while_it_is_worked_in_is_reported_to_the_model(place: Place):
    work = place.work
    note = str(work / "a.txt")
    tries = (
        Call.of("run_shell_command", command="echo hi"),
        Call.of("list_directory", path=str(work)),
        Call.of("read_file", absolute_path=note),
        Call.of("glob", pattern="**/*"),
        Call.of("search_file_content", pattern="x"),
    )
    replies = [shell(f"rm -rf {work}"), Reply(pieces=tries), says("fine"), says("still fine")]
    with Simulated(replies) as sim:
        # A sandbox would keep the folder itself.
        ended = run(place, sim, "--output-format", "json", "--sandbox", "off")
        assert_told(ended, 0)
        session = json.loads(ended.out)["session_id"]
        assert len(assert_goes_on(place, sim, "--session", session)) > 8
    results = [one["content"] for one in sim.bodies[2]["messages"] if one["role"] == "tool"]
    assert len(results) == 6
    assert "no directory" in results[1]


def sessions_of(place: Place) -> list[Path]:
    return sorted(place.home.rglob("*.sqlite"))


def damage(file: Path, how: str) -> None:
    data = bytearray(file.read_bytes())
    match how:
        case "truncated":
            file.write_bytes(data[: len(data) * 2 // 3])
        case "overwritten":
            data[len(data) // 2 : len(data) // 2 + 3_000] = b"\xa5" * 3_000
            file.write_bytes(data)
        case "head":
            data[:100] = bytes(100)
            file.write_bytes(data)
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize("how", ["truncated", "overwritten", "head"])
def test_a_damaged_session_goes_on_with_what_is_good(place: Place, how: str):
    replies = [shell(f"echo {number}") for number in range(12)]
    with Simulated([*replies, says("done"), says("fine")]) as sim:
        assert_told(run(place, sim), 0)
        (file,) = sessions_of(place)
        damage(file, how)
        ended = run(place, sim, "--session", file.stem)
        assert_told(ended, 0, "damaged", "kept as")
        assert not sim.refusals
    kept = [path for path in file.parent.iterdir() if ".damaged-" in path.name]
    assert kept


def test_a_session_file_without_a_word_of_ours_is_reported(place: Place):
    with Simulated([says("a"), says("fine")]) as sim:
        assert_told(run(place, sim), 0)
        (file,) = sessions_of(place)
        file.write_bytes(b"not a database at all\n" * 400)
        ended = run(place, sim, "--session", file.stem)
    assert_told(ended, 0, "nothing of it could be saved")


def closing(descriptor: int) -> Callable[[], None]:
    return lambda: os.close(descriptor)


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_stream_the_parent_closed_is_done_without(place: Place, descriptor: int):
    with Simulated([shell("echo hi >> log; echo there"), says("fine")] * 2) as sim:
        ended = run(place, sim, preexec_fn=closing(descriptor))
        assert_told(ended, 0)
        assert ended.out == ("" if descriptor == 1 else "fine\n")
        assert_goes_on(place, sim)
    assert (place.work / "log").read_text() == "hi\nhi\n"


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_an_answer_that_cannot_be_printed_is_a_failure_and_kept(place: Place, form: str):
    with (
        Simulated([says("a fine answer"), says("fine")]) as sim,
        Path("/dev/full").open("w") as full,
    ):
        ended = run(place, sim, "--output-format", form, stdout=full)
        assert_told(ended, 1, "standard output cannot be written: No space left on device")
        if form == "stream-json":
            # Its first line already fails: nobody said anything.
            assert not sim.bodies
        else:
            assert "a fine answer" in kept_text(assert_goes_on(place, sim))


def test_progress_that_cannot_be_printed_stops_nothing(place: Place):
    with Simulated([shell("echo hi"), says("fine")]) as sim, Path("/dev/full").open("w") as full:
        ended = run(place, sim, stderr=full)
    assert (ended.code, ended.out) == (0, "fine\n")


def shifted(place: Place, seconds: float) -> None:
    """All records of the session as another clock would have dated them."""
    import sqlite3

    from toolwire.sessions import records

    (file,) = sessions_of(place)
    connection = sqlite3.connect(file)
    found = connection.execute("SELECT seq, at, kind, body FROM records").fetchall()
    for seq, at, kind, body in found:
        crc = records.checksum(seq, at + seconds, kind, body)
        change = "UPDATE records SET at = ?, crc = ? WHERE seq = ?"
        connection.execute(change, (at + seconds, crc, seq))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("years", [-60, -1, 1, 40])
def test_a_clock_that_jumped_loses_nothing(place: Place, years: int):
    with Simulated([shell("echo hi"), says("first"), says("second"), says("third")]) as sim:
        assert_told(run(place, sim), 0)
        shifted(place, years * 365.25 * 86_400)
        began = time.monotonic()
        ended = run(place, sim, "--continue", "--output-format", "json")
        took = time.monotonic() - began
        assert_told(ended, 0)
        messages = assert_goes_on(place, sim)
    assert "first" in kept_text(messages)
    assert "second" in kept_text(messages)
    models = json.loads(ended.out)["stats"]["models"]
    (latency,) = [one["api"]["totalLatencyMs"] for one in models.values()]
    assert 0 <= latency <= took * 1000


def test_geminis_answers_without_an_end_mark_are_accepted(place: Place):
    unmarked = Fault(cut_events=1, cut_how="body")
    call = Call.of("run_shell_command", command="echo once >> log")
    first = Reply(pieces=(call, Say("lost")), fault=unmarked, delta=99)
    with Simulated([first, says("all lost", fault=unmarked, delta=3, times=2)]) as sim:
        ended = run(place, sim, dialect="gemini")
        assert_told(ended, 0, "without a finishReason")
        assert len(sim.bodies) == 3
        assert not sim.refusals
    assert (place.work / "log").read_text() == "once\n"
    assert ended.out == "allall\n"
