import json
import stat
from pathlib import Path

import pytest

from toolwire.config.trust import Answer, decide, is_trusted, trust, trust_file
from toolwire.errors import BadInput


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TOOLWIRE_HOME": str(tmp_path / "home")}


def test_a_folder_nobody_spoke_of_is_neither_trusted_nor_not(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    assert is_trusted(tmp_path, environ) is None
    assert decide(tmp_path, environ) is None


def test_the_nearest_answer_counts(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path / "a", Answer.YES, environ)
    trust(tmp_path / "a" / "b", Answer.NO, environ)
    trust(tmp_path / "a" / "b" / "c", Answer.YES, environ)
    answers = [is_trusted(tmp_path / at, environ) for at in ("", "a", "a/x", "a/b/x", "a/b/c/x")]
    assert answers == [None, True, True, False, True]


def test_a_name_that_only_begins_alike_is_another_folder(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    trust(tmp_path / "a", Answer.YES, environ)
    assert is_trusted(tmp_path / "ab", environ) is None


def test_the_parent_is_trusted_with_all_in_it(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path / "a" / "b", Answer.NO, environ)
    assert trust(tmp_path / "a" / "b", Answer.PARENT, environ) == tmp_path / "a"
    assert is_trusted(tmp_path / "a" / "b", environ) is True
    assert is_trusted(tmp_path / "a" / "c", environ) is True
    assert is_trusted(tmp_path, environ) is None


def test_a_link_is_the_folder_it_leads_to(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    trust(tmp_path / "real", Answer.NO, environ)
    assert is_trusted(tmp_path / "link", environ) is False


def test_the_answers_are_for_their_owner_alone(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path, Answer.YES, environ)
    file = trust_file(environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_bytes()) == {str(tmp_path): True}


def test_an_answer_is_asked_for_once_and_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    asked: list[Path] = []

    def ask(folder: Path) -> Answer:
        asked.append(folder)
        return Answer.NO

    assert decide(tmp_path, environ, ask) is False
    assert decide(tmp_path, environ, ask) is False
    assert asked == [tmp_path]


def test_no_answer_is_kept_if_none_was_given(tmp_path: Path, environ: dict[str, str]) -> None:
    def ask(folder: Path) -> None:
        del folder

    assert decide(tmp_path, environ, ask) is None
    assert not trust_file(environ).exists()


def test_the_variable_speaks_for_one_run(tmp_path: Path, environ: dict[str, str]) -> None:
    trust(tmp_path, Answer.NO, environ)
    assert decide(tmp_path, {**environ, "TOOLWIRE_TRUST_WORKSPACE": "1"}) is True
    assert decide(tmp_path, environ) is False
    trust(tmp_path, Answer.YES, environ)
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
    for act in (lambda: is_trusted(tmp_path, environ), lambda: trust(tmp_path, Answer.NO, environ)):
        with pytest.raises(BadInput, match=r"trusted\.json cannot be read"):
            act()
    assert file.read_bytes() == content
