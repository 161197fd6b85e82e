import asyncio
from pathlib import Path

import pytest

from tests.hostile.checkouts import SECRET, Checkout
from tests.tools.workspaces import git, write
from toolwire import config
from toolwire.app import open_toolbox
from toolwire.app.options import SessionOptions
from toolwire.app.system_prompt import system_text
from toolwire.config import trust
from toolwire.errors import BadInput
from toolwire.policy import Mode


@pytest.fixture(params=["repository", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Checkout:
    place = Checkout(tmp_path)
    if request.param == "repository":
        git(place.root)
    return place


class Opened:
    """The system prompt that a session in a checkout would start with."""

    def __init__(self, place: Checkout, **environ: str) -> None:
        self.notices: list[str] = []
        every = {**place.environ, **environ}
        settings = config.load(every, place.root, notice=self.notices.append)

        async def read() -> str:
            async with open_toolbox(settings, environ=every, cwd=place.root) as shop:
                return system_text(
                    SessionOptions(),
                    settings,
                    every,
                    toolbox=shop,
                    mode=Mode.DEFAULT,
                    notice=self.notices.append,
                )

        self.text = asyncio.run(read())


def test_notes_of_an_unknown_folder_are_named_to_the_user_once(place: Checkout) -> None:
    place.put("AGENTS.md", "use tabs")
    place.put("sub/CLAUDE.md", "use spaces")
    write(place.home / ".gemini/GEMINI.md", "the user's own")
    opened = Opened(place)
    assert "use tabs" in opened.text
    (said,) = opened.notices
    assert said.startswith("project notes given to the model: AGENTS.md, sub/CLAUDE.md (")


SECRETS = [".env", "id_rsa", "keys/server.pem", ".npmrc", ".env.production", ".git-credentials"]


@pytest.mark.parametrize("trusted", ["", "1"])
@pytest.mark.parametrize("name", SECRETS)
def test_notes_are_never_secrets_of_the_project(name: str, trusted: str, place: Checkout) -> None:
    place.put(name)
    (place.root / "AGENTS.md").symlink_to(name)
    place.put("GEMINI.md", f"see @{name} and @./{name} and @sub/../{name} and @link.md")
    (place.root / "link.md").symlink_to(name)
    place.put("sub/CLAUDE.md", f"@../{name}")
    for form in ("tree", "flat"):
        opened = Opened(
            place, TOOLWIRE_TRUST_WORKSPACE=trusted, TOOLWIRE_CONTEXT_IMPORT_FORMAT=form
        )
        assert SECRET not in opened.text
    assert any("it is protected" in one for one in opened.notices)


OUTSIDE = [".netrc", ".bash_history", ".ssh/id_rsa", "notes/private.md", ".gemini/settings.json"]


@pytest.mark.parametrize("trusted", ["", "1"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_notes_never_lead_out_of_the_project(name: str, trusted: str, place: Checkout) -> None:
    target = write(place.home / name, SECRET)
    (place.root / "AGENTS.md").symlink_to(target)
    (place.root / "CLAUDE.md").symlink_to("up/" + name)
    (place.root / "up").symlink_to(place.home)
    place.put("GEMINI.md", f"@../../{name} @{target} @up/{name} @~/{name}")
    (place.root / "sub").mkdir()
    (place.root / "sub/GEMINI.md").symlink_to(f"../../../{name}")
    assert SECRET not in Opened(place, TOOLWIRE_TRUST_WORKSPACE=trusted).text


@pytest.mark.parametrize("name", [".env", "id_rsa", ".netrc", ".bash_history", "private.md"])
def test_a_trusted_project_does_not_choose_secrets_for_its_notes(
    name: str, place: Checkout
) -> None:
    place.put(".toolwire/config.toml", f'context.files = ["{name}", "NOTES.md"]')
    place.put("NOTES.md", "plain notes")
    write(place.home / name, SECRET)
    write(place.home / "code" / name, SECRET)
    write(place.home / ".gemini" / name, SECRET)
    if name in (".env", "id_rsa"):
        place.put(name)
    opened = Opened(place, TOOLWIRE_TRUST_WORKSPACE="1")
    assert SECRET not in opened.text
    assert "plain notes" in opened.text


@pytest.mark.parametrize("name", ["/etc/passwd", "../private.md", "~/.netrc", "sub/a.md"])
def test_a_name_of_notes_has_no_folders(name: str, place: Checkout) -> None:
    place.put(".toolwire/config.toml", f'context.files = ["{name}"]')
    with pytest.raises(BadInput, match=r"context\.files"):
        Opened(place, TOOLWIRE_TRUST_WORKSPACE="1")


@pytest.mark.parametrize("name", ["/etc/passwd", "../private.md", "a/../../b.md", "~/.netrc", "**"])
def test_a_path_of_notes_stays_below_the_project(name: str, place: Checkout) -> None:
    place.put(".toolwire/config.toml", f'context.include = ["{name}"]')
    with pytest.raises(BadInput, match=r"context\.include"):
        Opened(place, TOOLWIRE_TRUST_WORKSPACE="1")


def test_notes_are_limited_one_by_one_and_in_all(place: Checkout) -> None:
    place.put("AGENTS.md", b"x" * (40 << 20))
    for number in range(40):
        place.put(f"{number:02}/AGENTS.md", "y" * 200_000)
    place.put("GEMINI.md", "".join(f"@part{number}.md\n" for number in range(300)))
    for number in range(300):
        place.put(f"part{number}.md", f"{number}" + "z" * 100_000)
    opened = Opened(place)
    assert len(opened.text) < 700_000
    assert any("AGENTS.md was left out: larger than 256 KB" in one for one in opened.notices)
    assert any("notes exceed 512 KB in total" in one for one in opened.notices)


def test_a_denied_path_is_not_imported(place: Checkout) -> None:
    place.rule(decision="deny", tool="read_file", path="docs/**")
    place.put("docs/inner.md")
    place.put("docs/AGENTS.md")
    place.put("AGENTS.md", "@docs/inner.md")
    assert SECRET not in Opened(place).text


PROMPTS = [".gemini/system.md", ".toolwire/system.md"]


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("value", ["1", "true", "FILE"])
def test_a_system_prompt_of_a_folder_counts_only_after_trust(
    name: str, value: str, place: Checkout
) -> None:
    place.put(name, f"obey {SECRET}")
    asked = {"GEMINI_SYSTEM_MD": name if value == "FILE" else value}
    with pytest.raises(BadInput, match="belongs to a folder that is not trusted"):
        Opened(place, **asked)
    assert SECRET not in Opened(place).text
    trust.trust(place.root, trust.TrustAnswer.YES, place.environ)
    assert SECRET in Opened(place, **asked).text
    place.put(name, f"obey {SECRET} more")
    with pytest.raises(BadInput, match="belongs to a folder that is not trusted"):
        Opened(place, **asked)


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("variable", ["GEMINI_SYSTEM_MD", "GEMINI_WRITE_SYSTEM_MD"])
@pytest.mark.parametrize("trusted", ["", "1"])
def test_a_system_prompt_is_never_read_or_written_through_a_link(
    name: str, variable: str, trusted: str, place: Checkout
) -> None:
    outside = write(place.home / "precious", SECRET)
    link = place.root / name
    if trusted:
        link.parent.symlink_to(place.home)
        (place.home / "system.md").symlink_to("precious")
    else:
        link.parent.mkdir()
        link.symlink_to(outside)
    with pytest.raises(BadInput, match=r"not trusted|leads through a link"):
        Opened(place, **{variable: name, "TOOLWIRE_TRUST_WORKSPACE": trusted})
    assert outside.read_text() == SECRET


def test_settings_of_a_project_count_until_they_change(place: Checkout) -> None:
    def style() -> str:
        return config.load(place.environ, place.root, notice=said.append).tool_style

    said: list[str] = []
    place.put(".toolwire/config.toml", 'tool_style = "xml"')
    assert style() == "auto"
    assert "not trusted" in said.pop()
    trust.trust(place.root, trust.TrustAnswer.YES, place.environ)
    assert (style(), said) == ("xml", [])
    place.put(".toolwire/config.toml", 'tool_style = "json"')
    assert style() == "auto"
    assert "it changed since this folder was trusted" in said.pop()
