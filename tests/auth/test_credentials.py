import asyncio
import copy
import json
import os
import pickle
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from tests.client.stand_in import never
from toolwire.auth.credentials import (
    Credential,
    credential_for,
    first_use_terms,
    known_secrets,
    without_secrets,
)
from toolwire.auth.store import Store, StoredKey, StoredLogin, system_keyring
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.providers import ApiKey, NoAuth, OAuth, Provider
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import read_private, write_private

PLANTED = "sk-planted-5f1c0e7a9b"
ACME = Provider(
    name="acme",
    title="Acme",
    dialect="openai-chat",
    base_url="https://api.acme.example/v1",
    auth=ApiKey(
        env=("ACME_API_KEY", "ACME_KEY"),
        header="x-acme-key",
        prefix="Key ",
        url="https://acme.example/keys",
    ),
)


class MemoryKeyring:
    """A keyring that forgets everything at the end of a test."""

    def __init__(self, broken: bool = False) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.broken = broken

    def get_password(self, service_name: str, username: str) -> str | None:
        return self.held.get((service_name, username))

    def set_password(self, service_name: str, username: str, password: str) -> None:
        if self.broken:
            raise RuntimeError(f"locked, cannot keep {password}")
        self.held[(service_name, username)] = password

    def delete_password(self, service_name: str, username: str) -> None:
        del self.held[(service_name, username)]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def headers(credential: Credential, refresh: bool = False) -> tuple[tuple[str, str], ...]:
    return asyncio.run(_headers(credential, refresh))


async def _headers(credential: Credential, refresh: bool) -> tuple[tuple[str, str], ...]:
    return await credential(refresh)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home" / "credentials.json")


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(PLANTED)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r}", f"{[secret]}"]
    shown += [repr(StoredKey(key=secret)), repr(StoredLogin(token=secret))]
    assert PLANTED not in "".join(shown)
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        copy.copy(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)


def test_known_secrets_are_taken_out_of_a_text_however_they_are_written() -> None:
    Secret('planted/with "marks"+and more')
    assert 'planted/with "marks"+and more' in known_secrets()
    said = without_secrets(
        'a planted/with "marks"+and more b planted%2Fwith%20%22marks%22%2Band%20more c '
        + json.dumps('planted/with "marks"+and more')
    )
    assert "planted" not in said
    assert said.startswith("a ")


def test_the_flag_wins_over_the_environment_and_that_over_the_store(store: Store) -> None:
    store.write("acme", StoredKey(key=Secret("sk-from-the-file")))
    environ = {"ACME_KEY": "sk-second-variable"}

    stored = credential_for(ACME, environ={}, store=store)
    assert headers(stored) == (("x-acme-key", "Key sk-from-the-file"),)
    assert stored.origin == f"from {store.file}"

    second = credential_for(ACME, environ=environ, store=store)
    assert headers(second) == (("x-acme-key", "Key sk-second-variable"),)
    assert second.origin == "from ACME_KEY"

    first = credential_for(ACME, environ={**environ, "ACME_API_KEY": "sk-first\n"}, store=store)
    assert headers(first) == (("x-acme-key", "Key sk-first"),)

    flag = credential_for(ACME, flag="sk-flagged", environ=environ, store=store)
    assert headers(flag, refresh=True) == (("x-acme-key", "Key sk-flagged"),)
    assert flag.origin == "from the command line"


def test_an_empty_variable_counts_as_not_set(store: Store) -> None:
    environ = {"ACME_API_KEY": "  ", "ACME_KEY": "sk-second"}
    assert credential_for(ACME, environ=environ, store=store).origin == "from ACME_KEY"


def test_without_a_key_the_error_says_every_way_to_give_one(store: Store) -> None:
    with pytest.raises(ProviderError) as caught:
        credential_for(ACME, environ={}, store=store)
    assert caught.value.kind is ErrorKind.AUTH
    assert str(caught.value) == (
        'no credentials for Acme; set ACME_API_KEY or ACME_KEY, or run "toolwire login acme"; '
        "get a key at https://acme.example/keys"
    )


def test_a_local_server_needs_no_key(store: Store) -> None:
    local = Provider(
        name="local",
        title="Local",
        dialect="openai-chat",
        base_url="http://127.0.0.1:1",
        auth=ApiKey(env=("LOCAL_KEY",), optional=True),
    )
    bare = Provider(
        name="bare", title="Bare", dialect="openai-chat", base_url="http://x", auth=NoAuth()
    )
    assert headers(credential_for(local, environ={}, store=store)) == ()
    assert headers(credential_for(bare, environ={}, store=store)) == ()
    named = credential_for(local, environ={"LOCAL_KEY": "sk-local"}, store=store)
    assert headers(named) == (("authorization", "Bearer sk-local"),)


def test_the_keyring_is_used_first_and_a_key_is_never_in_both(store: Store) -> None:
    keyring = MemoryKeyring()
    both = Store(store.file, keyring=keyring)
    store.write("acme", StoredKey(key=Secret("sk-in-the-file")))
    assert both.write("acme", StoredKey(key=Secret(PLANTED))) == "the keyring"
    assert credential_for(ACME, environ={}, store=both).origin == "from the keyring"
    assert "sk-in-the-file" not in store.file.read_text()
    assert PLANTED not in store.file.read_text()

    assert both.write("acme", StoredKey(key=Secret(PLANTED)), in_file=True) == str(store.file)
    assert keyring.held == {}
    assert both.delete("acme") == (str(store.file),)
    assert both.delete("acme") == ()


def test_a_keyring_that_fails_is_reported_without_the_secret_and_the_file_serves(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    file = tmp_path / "credentials.json"
    store = Store(file, keyring=MemoryKeyring(broken=True), notice=told.append)
    assert store.write("acme", StoredKey(key=Secret(PLANTED))) == str(file)
    assert told == ["the keyring did not store it (RuntimeError)"]


def test_without_the_keyring_package_there_is_no_keyring() -> None:
    code = (
        "import sys; sys.modules['keyring'] = None\n"
        "from toolwire.auth.store import system_keyring; assert system_keyring({}) is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert system_keyring({"TOOLWIRE_NO_KEYRING": "1"}) is None


def test_the_file_is_private_from_its_first_moment(store: Store) -> None:
    before = os.umask(0)
    try:
        store.write("acme", StoredKey(key=Secret(PLANTED)))
    finally:
        os.umask(before)
    assert mode(store.file) == 0o600
    assert mode(store.file.parent) == 0o700


def test_a_file_others_can_read_is_closed_and_reported(store: Store) -> None:
    told: list[str] = []
    store.write("acme", StoredKey(key=Secret(PLANTED)))
    store.file.chmod(0o644)
    watching = Store(store.file, notice=told.append)
    assert watching.read("acme") is not None
    assert mode(store.file) == 0o600
    assert len(told) == 1
    assert str(store.file) in told[0]
    assert PLANTED not in told[0]


def test_what_another_version_wrote_is_kept(store: Store) -> None:
    content = {"later": [1], "credentials": {"other": {"type": "new", "x": 1}}}
    write_private(store.file, json.dumps(content).encode())
    store.write("acme", StoredKey(key=Secret(PLANTED)))
    store.delete("acme")
    assert json.loads(store.file.read_bytes()) == content
    with pytest.raises(BadInput, match="cannot be read; log in again"):
        store.read("other")


@pytest.mark.parametrize("content", [b'{"credentials":{"acme":{"key":"' + PLANTED.encode(), b"[]"])
def test_a_broken_file_is_neither_quoted_nor_overwritten(store: Store, content: bytes) -> None:
    write_private(store.file, content)
    for work in (
        lambda: store.read("acme"),
        lambda: store.write("acme", StoredKey(key=Secret("sk-new"))),
    ):
        with pytest.raises(BadInput) as caught:
            work()
        assert str(store.file) in str(caught.value)
        assert PLANTED not in "".join(traceback.format_exception(caught.value))
    assert store.file.read_bytes() == content


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    write_private(path, b"old")
    unwritable: Any = "not bytes"
    with pytest.raises(TypeError):
        write_private(path, unwritable)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["credentials.json"]
    assert read_private(tmp_path / "none", never) is None


def test_writers_in_several_processes_lose_nothing(store: Store) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from toolwire.auth.store import Store, StoredKey\n"
        "from toolwire.client.redact import Secret\n"
        "for number in range(20):\n"
        "    name = f'{sys.argv[2]}{number}'\n"
        "    Store(Path(sys.argv[1])).write(name, StoredKey(key=Secret('sk-of-' + name)))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(store.file), name]) for name in "abc"
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(json.loads(store.file.read_bytes())["credentials"]) == 60


def test_a_login_stored_in_the_file_is_read_back(store: Store) -> None:
    store.write("acme", StoredLogin(token=Secret(PLANTED)))
    found = store.read("acme")
    assert found is not None
    assert found.stored == StoredLogin(token=Secret(PLANTED))
    assert PLANTED not in repr(found)


def test_terms_are_shown_once_and_again_when_they_change(store: Store) -> None:
    def with_terms(terms: str) -> Provider:
        return Provider(
            name="acme",
            title="Acme",
            dialect="openai-chat",
            base_url="https://x",
            auth=OAuth(flow="copilot", env=("ACME_TOKEN",), terms=terms),
        )

    environ = {"ACME_TOKEN": "gho_planted_token"}
    told: list[str] = []
    credential_for(with_terms("be nice"), environ=environ, store=store)
    for terms in ("be nice", "be nice", "be nicer"):
        credential_for(with_terms(terms), environ=environ, store=store, notice=told.append)
    assert told == ["be nice", "be nicer"]
    assert first_use_terms(with_terms("be nicer"), store.file) == ""
    assert first_use_terms(ACME, store.file) == ""


def test_the_home_variable_holds_everything(tmp_path: Path) -> None:
    found = state_paths({"TOOLWIRE_HOME": str(tmp_path)})
    assert found.config == tmp_path
    assert found.cache == tmp_path / "cache"
    assert found.credentials == tmp_path / "credentials.json"


def test_without_it_the_platforms_own_directories_do() -> None:
    pytest.importorskip("platformdirs")
    found = state_paths({})
    assert len({found.config, found.cache, found.credentials.parent}) == 3
    assert all("toolwire" in str(path) for path in (found.config, found.cache, found.credentials))


def test_importing_credentials_loads_nothing_heavy() -> None:
    code = "import sys; import toolwire.auth.credentials; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"aiohttp", "keyring", "google.auth", "platformdirs", "toolwire.auth.copilot"}
    assert set(done.stdout.split()).isdisjoint(heavy)
