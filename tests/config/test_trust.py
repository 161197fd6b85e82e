import json
import stat
from pathlib import Path

import pytest

from toolwire.config.trust import (
    NO_DEFINITION,
    TrustAnswer,
    decide,
    has_changed,
    is_trusted,
    pin,
    trust,
    trust_file,
)
from toolwire.errors import BadInput


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TOOLWIRE_HOME": str(tmp_path / "home")}


def test_a_folder_no_one_spoke_of_is_neither_trusted_nor_not(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    assert is_trusted(tmp_path, environ) is None
    assert decide(tmp_path, environ) is None


def test_the_nearest_answer_counts(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path / "a", TrustAnswer.YES, environ)
    trust(tmp_path / "a" / "b", TrustAnswer.NO, environ)
    trust(tmp_path / "a" / "b" / "c", TrustAnswer.YES, environ)
    answers = [is_trusted(tmp_path / at, environ) for at in ("", "a", "a/x", "a/b/x", "a/b/c/x")]
    assert answers == [None, True, True, False, True]


def test_a_name_that_only_begins_alike_is_another_folder(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    trust(tmp_path / "a", TrustAnswer.YES, environ)
    assert is_trusted(tmp_path / "ab", environ) is None


def test_the_parent_is_trusted_with_all_in_it(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path / "a" / "b", TrustAnswer.NO, environ)
    assert trust(tmp_path / "a" / "b", TrustAnswer.PARENT, environ) == tmp_path / "a"
    assert is_trusted(tmp_path / "a" / "b", environ) is True
    assert is_trusted(tmp_path / "a" / "c", environ) is True
    assert is_trusted(tmp_path, environ) is None


def test_a_link_is_the_folder_it_leads_to(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    trust(tmp_path / "real", TrustAnswer.NO, environ)
    assert is_trusted(tmp_path / "link", environ) is False


def test_the_answers_are_for_their_owner_alone(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path, TrustAnswer.YES, environ)
    file = trust_file(environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_bytes()) == {str(tmp_path): NO_DEFINITION}


def test_an_answer_is_asked_for_once_and_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    asked: list[Path] = []

    def ask(folder: Path) -> TrustAnswer:
        asked.append(folder)
        return TrustAnswer.NO

    assert decide(tmp_path, environ, ask) is False
    assert decide(tmp_path, environ, ask) is False
    assert asked == [tmp_path]


def test_no_answer_is_kept_if_none_was_given(tmp_path: Path, environ: dict[str, str]) -> None:
    def ask(folder: Path) -> None:
        del folder

    assert decide(tmp_path, environ, ask) is None
    assert not trust_file(environ).exists()


def test_the_variable_speaks_for_one_run(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path, TrustAnswer.NO, environ)
    assert decide(tmp_path, {**environ, "TOOLWIRE_TRUST_WORKSPACE": "1"}) is True
    assert decide(tmp_path, environ) is False
    trust(tmp_path, TrustAnswer.YES, environ)
    assert decide(tmp_path, {**environ, "TOOLWIRE_TRUST_WORKSPACE": "0"}) is False
    with pytest.raises(BadInput, match="TOOLWIRE_TRUST_WORKSPACE must be 1 or 0"):
        decide(tmp_path, {**environ, "TOOLWIRE_TRUST_WORKSPACE": "perhaps"})


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"/": "yes"}', b"\xff"])
def test_answers_that_cannot_be_read_are_an_error(
    tmp_path: Path, environ: dict[str, str], content: bytes
) -> None:
    file = trust_file(environ)
    file.parent.mkdir()
    file.write_bytes(content)
    for act in (
        lambda: is_trusted(tmp_path, environ),
        lambda: trust(tmp_path, TrustAnswer.NO, environ),
    ):
        with pytest.raises(BadInput, match=r"trusted\.json cannot be read"):
            act()
    assert file.read_bytes() == content


def define(folder: Path, text: str, name: str = ".toolwire/config.toml") -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    "name", [".toolwire/config.toml", ".toolwire/system.md", ".gemini/system.md"]
)
def test_a_yes_holds_for_the_definition_it_was_given_to(
    name: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    trust(work, TrustAnswer.YES, environ)
    assert is_trusted(work, environ) is True
    for text in ("one", "two"):
        define(work, text, name)
        assert is_trusted(work, environ) is None
        assert has_changed(work, environ)
        trust(work, TrustAnswer.YES, environ)
        assert is_trusted(work, environ) is True
    (work / name).unlink()
    assert is_trusted(work, environ) is None


def test_a_no_holds_whatever_changes(tmp_path: Path, environ: dict[str, str]) -> None:
    work = tmp_path / "work"
    define(work, "one")
    trust(work, TrustAnswer.NO, environ)
    define(work, "two")
    assert is_trusted(work, environ) is False
    assert not has_changed(work, environ)


def test_a_folder_below_with_a_definition_of_its_own_is_asked_about(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    work = tmp_path / "work"
    define(work, "one")
    define(work / "vendor", "two")
    trust(work, TrustAnswer.YES, environ)
    assert is_trusted(work / "docs", environ) is True
    assert is_trusted(work / "vendor", environ) is None


def test_below_a_trusted_parent_the_first_definition_seen_is_pinned(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    trust(tmp_path / "code" / "a", TrustAnswer.PARENT, environ)
    work = tmp_path / "code" / "b"
    define(work, "one")
    assert is_trusted(work, environ) is True
    pin(work, environ)
    assert is_trusted(work, environ) is True
    define(work, "two")
    pin(work, environ)
    assert is_trusted(work, environ) is None


def test_answers_kept_before_definitions_counted_are_pinned_too(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    work = tmp_path / "work"
    define(work, "one")
    trust_file(environ).parent.mkdir()
    trust_file(environ).write_text(json.dumps({str(work): True}))
    assert is_trusted(work, environ) is True
    pin(work, environ)
    define(work, "two")
    assert is_trusted(work, environ) is None
