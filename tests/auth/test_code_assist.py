import asyncio
import json
import stat
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from tests.client.stand_in import Answer, Asked, Clock, StandIn, never, stand_in
from toolwire.auth.code_assist import CodeAssistCredential, CodeAssistSettings
from toolwire.auth.credentials import credential_for
from toolwire.auth.store import Store
from toolwire.errors import BadInput, ErrorKind, ProviderError, ToolwireError
from toolwire.providers import OAuth, Provider

REFRESH = "planted-refresh-token"
OLD, NEW = "planted-access-old", "planted-access-new"
TOKEN = "/token"
LOAD, ONBOARD = "/v1internal:loadCodeAssist", "/v1internal:onboardUser"
CORE = {"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"}
PROVIDER = Provider(
    name="code-assist",
    title="Code Assist",
    dialect="code-assist",
    base_url="https://cloudcode-pa.googleapis.com",
    auth=OAuth(flow="code-assist", env=("GOOGLE_CLOUD_ACCESS_TOKEN",), terms="the terms"),
)


def login_file(folder: Path, clock: Clock, *, seconds: float = 3600, **more: object) -> Path:
    path = folder / "gemini" / "oauth_creds.json"
    path.parent.mkdir(exist_ok=True)
    held = {
        "access_token": OLD,
        "refresh_token": REFRESH,
        "token_type": "Bearer",
        "scope": "a b",
        "expiry_date": int((clock.time + seconds) * 1000),
        **more,
    }
    path.write_text(json.dumps(held))
    path.chmod(0o600)
    return path


def environment(vendor: StandIn, path: Path, **more: str) -> dict[str, str]:
    return {
        "TOOLWIRE_CODE_ASSIST_CREDENTIALS": str(path),
        "TOOLWIRE_CODE_ASSIST_CLIENT_ID": "client-of-mine",
        "TOOLWIRE_CODE_ASSIST_CLIENT_SECRET": "planted-client-secret",
        "TOOLWIRE_GOOGLE_TOKEN_URL": f"{vendor.url}/token",
        "CODE_ASSIST_ENDPOINT": vendor.url,
        **more,
    }


def credential(environ: dict[str, str], clock: Clock) -> CodeAssistCredential:
    settings = CodeAssistSettings.from_environ(environ)
    return CodeAssistCredential(settings, now=clock.now, sleep=clock.sleep, notice=never)


def renewed(token: str = NEW, **more: object) -> Answer:
    return 200, {"access_token": token, "expires_in": 3600, "token_type": "Bearer", **more}


def bearer(asked: CodeAssistCredential, refresh: bool = False) -> str:
    async def ask() -> str:
        return (await asked(refresh))[0][1].removeprefix("Bearer ")

    return asyncio.run(ask())


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


def test_a_token_with_time_left_is_used_as_it_is(tmp_path: Path) -> None:
    clock = Clock()
    with stand_in() as vendor:
        path = login_file(tmp_path, clock, seconds=301)
        asked = credential(environment(vendor, path), clock)
        assert bearer(asked) == OLD
        assert asked.origin == f"from {path}"
        assert vendor.asked == []


def test_it_is_refreshed_five_minutes_early_and_written_back_private_and_whole(
    tmp_path: Path,
) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(TOKEN, renewed(id_token="planted-identity"))
        path = login_file(tmp_path, clock, seconds=299, unknown={"kept": True})
        assert bearer(credential(environment(vendor, path), clock)) == NEW
    assert vendor.to(TOKEN)[0].form == {
        "grant_type": "refresh_token",
        "refresh_token": REFRESH,
        "client_id": "client-of-mine",
        "client_secret": "planted-client-secret",
    }
    assert json.loads(path.read_text()) == {
        "access_token": NEW,
        "refresh_token": REFRESH,
        "token_type": "Bearer",
        "scope": "a b",
        "id_token": "planted-identity",
        "expiry_date": int((clock.time + 3600) * 1000),
        "unknown": {"kept": True},
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(entry.name for entry in path.parent.iterdir()) == [
        ".oauth_creds.json.lock",
        "oauth_creds.json",
    ]


def test_a_new_refresh_token_takes_the_place_of_the_old(tmp_path: Path) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(TOKEN, renewed(refresh_token="planted-refresh-second"))
        path = login_file(tmp_path, clock, seconds=0)
        bearer(credential(environment(vendor, path), clock))
    assert json.loads(path.read_text())["refresh_token"] == "planted-refresh-second"


def test_a_refused_token_is_refreshed_though_it_has_time_left(tmp_path: Path) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(TOKEN, renewed())
        asked = credential(environment(vendor, login_file(tmp_path, clock)), clock)
        assert (bearer(asked), bearer(asked, refresh=True), bearer(asked)) == (OLD, NEW, NEW)
        assert len(vendor.to(TOKEN)) == 1


def test_a_token_another_program_renewed_is_taken_instead_of_refreshing(tmp_path: Path) -> None:
    clock = Clock()
    with stand_in() as vendor:
        path = login_file(tmp_path, clock)
        asked = credential(environment(vendor, path), clock)
        assert bearer(asked) == OLD
        login_file(tmp_path, clock, access_token="planted-by-another")
        assert bearer(asked, refresh=True) == "planted-by-another"
        assert vendor.asked == []


def test_many_tasks_cause_one_refresh(tmp_path: Path) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(TOKEN, renewed(), renewed("planted-too-many"))
        asked = credential(environment(vendor, login_file(tmp_path, clock, seconds=0)), clock)

        async def ask(refresh: bool) -> set[str]:
            given = await asyncio.gather(*(asked(refresh) for _ in range(8)))
            return {headers[0][1] for headers in given}

        assert asyncio.run(ask(False)) == {f"Bearer {NEW}"}
        assert len(vendor.to(TOKEN)) == 1


def test_requests_refused_together_cause_one_refresh(tmp_path: Path) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(TOKEN, renewed(), renewed("planted-too-many"))
        asked = credential(environment(vendor, login_file(tmp_path, clock)), clock)

        async def ask() -> list[str]:
            await asked(False)
            given = await asyncio.gather(*(asked(True) for _ in range(8)))
            clock.time += 10
            late = await asked(True)
            return [headers[0][1] for headers in (*given, late)]

        assert set(asyncio.run(ask())) == {f"Bearer {NEW}"}
        assert len(vendor.to(TOKEN)) == 1


PROCESS = """
import asyncio, os, time
from toolwire.auth.code_assist import CodeAssistCredential, CodeAssistSettings
from toolwire.auth.http import get_json

async def main():
    settings = CodeAssistSettings.from_environ(os.environ)
    asked = CodeAssistCredential(settings, now=time.time, sleep=asyncio.sleep, notice=print)
    await get_json(settings.endpoint + "/start")
    print((await asked(False))[0][1])

asyncio.run(main())
"""


def test_two_processes_cause_one_refresh(tmp_path: Path) -> None:
    together = threading.Barrier(2)
    clock = Clock(0)
    with stand_in() as vendor:

        def start(asked: Asked) -> Answer:
            together.wait(60)
            return 200, {}

        vendor.decide("/start", start)
        vendor.on(TOKEN, renewed(), renewed("planted-too-many"))
        environ = environment(vendor, login_file(tmp_path, clock, seconds=0))
        running = [
            subprocess.Popen(
                [sys.executable, "-c", PROCESS], env=environ, stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        said = [process.communicate(timeout=60)[0].strip() for process in running]
    assert said == [f"Bearer {NEW}"] * 2
    assert len(vendor.to(TOKEN)) == 1


def test_a_refresh_that_is_cancelled_leaves_the_file_and_frees_the_lock(tmp_path: Path) -> None:
    clock = Clock()
    reached, answer = threading.Event(), threading.Event()
    with stand_in() as vendor:

        def slow(asked: Asked) -> Answer:
            reached.set()
            answer.wait(60)
            return renewed()

        vendor.decide(TOKEN, slow)
        path = login_file(tmp_path, clock, seconds=0)
        before = path.read_bytes()
        environ = environment(vendor, path)

        async def cancelled() -> None:
            async def refresh() -> None:
                await credential(environ, clock)(False)

            async with asyncio.TaskGroup() as group:
                task = group.create_task(refresh())
                await asyncio.to_thread(reached.wait, 60)
                task.cancel()

        asyncio.run(cancelled())
        assert path.read_bytes() == before
        answer.set()
        assert bearer(credential(environ, clock)) == NEW


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((400, {"error": "invalid_grant", "error_description": f"gone {REFRESH}"}), ErrorKind.AUTH),
        ((401, {"error": "invalid_client"}), ErrorKind.AUTH),
        ((200, {"hello": 1}), ErrorKind.SERVER),
        ((503, b"busy"), ErrorKind.SERVER),
    ],
)
def test_a_refused_refresh_changes_nothing_and_reports_no_secret(
    tmp_path: Path, answer: Answer, kind: ErrorKind
) -> None:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(TOKEN, answer)
        path = login_file(tmp_path, clock, seconds=0)
        before = path.read_bytes()
        with pytest.raises(ProviderError) as caught:
            bearer(credential(environment(vendor, path), clock))
    assert caught.value.kind is kind
    assert "planted" not in shown(caught.value)
    assert path.read_bytes() == before


def test_without_a_client_a_token_is_used_to_its_end_and_no_longer(tmp_path: Path) -> None:
    clock = Clock()
    path = login_file(tmp_path, clock)
    environ = {"TOOLWIRE_CODE_ASSIST_CREDENTIALS": str(path)}
    asked = credential(environ, clock)
    assert bearer(asked) == OLD
    clock.time += 3600
    with pytest.raises(ProviderError, match="set TOOLWIRE_CODE_ASSIST_CLIENT_ID and"):
        bearer(asked)


def test_nothing_is_read_until_it_is_configured(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    home.mkdir()
    login_file(tmp_path, Clock()).rename(home / "oauth_creds.json")
    store = Store(tmp_path / "credentials.json")
    environ = {"HOME": str(tmp_path), "GOOGLE_CLOUD_ACCESS_TOKEN": "planted-ready"}
    with pytest.raises(ProviderError, match="is off until you configure it") as caught:
        credential_for(PROVIDER, environ=environ, store=store)
    assert caught.value.kind is ErrorKind.AUTH

    told: list[str] = []
    client = {"TOOLWIRE_CODE_ASSIST_CLIENT_ID": "i", "TOOLWIRE_CODE_ASSIST_CLIENT_SECRET": "s"}
    found = credential_for(
        PROVIDER, environ=environ | client, store=store, notice=told.append, now=Clock().now
    )
    assert found.origin == f"from {home / 'oauth_creds.json'}"
    assert told == ["the terms"]


def test_a_ready_token_needs_its_switch_and_is_never_refreshed(tmp_path: Path) -> None:
    store = Store(tmp_path / "credentials.json")
    environ = {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": "planted-ready"}
    found = credential_for(PROVIDER, environ=environ, store=store)
    assert found.origin == "from GOOGLE_CLOUD_ACCESS_TOKEN"

    async def ask() -> list[object]:
        return [await found(False), await found(True)]

    assert asyncio.run(ask()) == [(("authorization", "Bearer planted-ready"),)] * 2


def discover(
    tmp_path: Path, load: Answer, *onboarded: Answer, **environ: str
) -> tuple[str | ToolwireError, StandIn, Clock]:
    clock = Clock()
    with stand_in() as vendor:
        vendor.on(LOAD, load)
        vendor.on(ONBOARD, *onboarded)
        vendor.on("/v1internal/operations/7", *onboarded[1:])
        asked = credential(environment(vendor, login_file(tmp_path, clock), **environ), clock)
        found = asyncio.run(outcome(asked))
    assert "planted" not in (shown(found) if isinstance(found, ToolwireError) else found)
    return found, vendor, clock


async def outcome(asked: CodeAssistCredential) -> str | ToolwireError:
    try:
        return await asked.project()
    except ToolwireError as error:
        return error


def test_a_known_account_says_its_project(tmp_path: Path) -> None:
    known = {"currentTier": {"id": "standard-tier"}, "cloudaicompanionProject": "its-own"}
    project, vendor, _ = discover(tmp_path, (200, known), GOOGLE_CLOUD_PROJECT="mine")
    assert project == "its-own"
    (asked,) = vendor.to(LOAD)
    assert asked.json == {
        "cloudaicompanionProject": "mine",
        "metadata": {**CORE, "duetProject": "mine"},
    }
    assert asked.headers["authorization"] == f"Bearer {OLD}"
    assert vendor.to(ONBOARD) == []


def test_without_a_configured_project_none_is_sent(tmp_path: Path) -> None:
    known = {"currentTier": {"id": "free-tier"}, "cloudaicompanionProject": "its-own"}
    _, vendor, _ = discover(tmp_path, (200, known))
    assert vendor.to(LOAD)[0].json == {"metadata": CORE}


def test_a_known_account_without_a_project_uses_the_configured_one_or_fails(
    tmp_path: Path,
) -> None:
    known: Answer = (200, {"currentTier": {"id": "standard-tier"}})
    assert discover(tmp_path, known, GOOGLE_CLOUD_PROJECT_ID="mine")[0] == "mine"
    error = discover(tmp_path, known)[0]
    assert "set GOOGLE_CLOUD_PROJECT to its id" in str(error)


FREE = {"id": "free-tier", "isDefault": True}
PAID = {"id": "standard-tier", "isDefault": True, "userDefinedCloudaicompanionProject": True}
DONE: Answer = (200, {"done": True, "response": {"cloudaicompanionProject": {"id": "made"}}})
WORKING: Answer = (200, {"name": "operations/7"})


def test_a_new_free_account_is_set_up_without_a_project_and_waited_for(tmp_path: Path) -> None:
    tiers = {"allowedTiers": [{"id": "standard-tier"}, FREE]}
    project, vendor, clock = discover(
        tmp_path, (200, tiers), WORKING, WORKING, DONE, GOOGLE_CLOUD_PROJECT="mine"
    )
    assert project == "made"
    assert [asked.json for asked in vendor.to(ONBOARD)] == [
        {"tierId": "free-tier", "metadata": CORE}
    ]
    assert [asked.method for asked in vendor.to("/v1internal/operations/7")] == ["GET", "GET"]
    assert clock.slept == [5, 5]


def test_a_new_paid_account_is_set_up_in_the_configured_project(tmp_path: Path) -> None:
    project, vendor, _ = discover(
        tmp_path,
        (200, {"allowedTiers": [PAID]}),
        (200, {"done": True}),
        GOOGLE_CLOUD_PROJECT="mine",
    )
    assert project == "mine"
    assert vendor.to(ONBOARD)[0].json == {
        "tierId": "standard-tier",
        "cloudaicompanionProject": "mine",
        "metadata": {**CORE, "duetProject": "mine"},
    }
    error, vendor, _ = discover(tmp_path, (200, {"allowedTiers": [PAID]}), DONE)
    assert "needs a project of yours" in str(error)
    assert vendor.to(ONBOARD) == []


def test_an_account_without_tiers_gets_the_legacy_one(tmp_path: Path) -> None:
    _, vendor, _ = discover(tmp_path, (200, {}), DONE)
    assert vendor.to(ONBOARD)[0].json["tierId"] == "legacy-tier"


def test_setting_up_does_not_wait_for_ever(tmp_path: Path) -> None:
    error, _, clock = discover(tmp_path, (200, {"allowedTiers": [FREE]}), WORKING, WORKING)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.TIMEOUT
    assert sum(clock.slept) == 300


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (
            [
                {
                    "reasonCode": "VALIDATION_REQUIRED",
                    "reasonMessage": "verify yourself",
                    "validationUrl": "https://accounts.example/verify",
                }
            ],
            "verify yourself; open https://accounts.example/verify and try again",
        ),
        ([{"reasonCode": "UNSUPPORTED_LOCATION", "reasonMessage": "not here"}], "not here"),
        ([{"reasonCode": "DASHER_USER"}], "DASHER_USER"),
    ],
)
def test_an_account_that_may_not_gets_the_reason(tmp_path: Path, known: Any, words: str) -> None:
    error, vendor, _ = discover(tmp_path, (200, {"ineligibleTiers": known}), DONE)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.PERMISSION
    assert words in str(error)
    assert vendor.to(ONBOARD) == []


def test_inside_a_service_perimeter_the_configured_project_counts(tmp_path: Path) -> None:
    walled: Answer = (
        403,
        {"error": {"message": "no", "details": [{"reason": "SECURITY_POLICY_VIOLATED"}]}},
    )
    assert discover(tmp_path, walled, GOOGLE_CLOUD_PROJECT="mine")[0] == "mine"
    other: Answer = (403, {"error": {"message": "keep out", "details": []}})
    error = discover(tmp_path, other, GOOGLE_CLOUD_PROJECT="mine")[0]
    assert "keep out" in str(error)


def test_a_refused_token_is_refreshed_once_while_asking_for_the_project(tmp_path: Path) -> None:
    clock = Clock()
    known = {"currentTier": {}, "cloudaicompanionProject": {"id": "its-own"}}
    with stand_in() as vendor:
        vendor.on(TOKEN, renewed())
        vendor.on(LOAD, (401, {"error": {"message": "expired"}}), (200, known))
        asked = credential(environment(vendor, login_file(tmp_path, clock)), clock)

        async def twice() -> list[str]:
            return list(await asyncio.gather(asked.project(), asked.project()))

        assert asyncio.run(twice()) == ["its-own"] * 2
    assert [call.headers["authorization"] for call in vendor.to(LOAD)] == [
        f"Bearer {OLD}",
        f"Bearer {NEW}",
    ]


def test_the_project_is_taken_from_the_nearest_place(tmp_path: Path) -> None:
    path = login_file(tmp_path, Clock())
    environ = {
        "TOOLWIRE_CODE_ASSIST_CREDENTIALS": str(path),
        "TOOLWIRE_CODE_ASSIST_PROJECT": "set",
        "GOOGLE_CLOUD_PROJECT": "around",
        "GOOGLE_CLOUD_PROJECT_ID": "last",
    }
    path.with_name(".env").write_text('# x\nexport GOOGLE_CLOUD_PROJECT="beside"\nOTHER\n')
    order = ["set", "beside", "around", "last", ""]
    found: list[str] = []
    for name in (
        "TOOLWIRE_CODE_ASSIST_PROJECT",
        None,
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_PROJECT_ID",
        "",
    ):
        found.append(CodeAssistSettings.from_environ(environ).project)
        if name is None:
            path.with_name(".env").unlink()
        elif name:
            del environ[name]
    assert found == order


def test_a_projects_number_is_not_an_id() -> None:
    with pytest.raises(BadInput, match="is a project's number"):
        CodeAssistSettings.from_environ({"GOOGLE_CLOUD_PROJECT": "123456789"})
