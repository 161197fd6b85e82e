import zipfile
from pathlib import Path

from toolwire.tools.registry import declared

GROUP = "toolwire.tools"


def package(folder: Path, name: str, group: str) -> None:
    info = folder / name
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(f"[{group}]\nmine = mine:TOOL\n")


def test_a_package_that_declares_the_group_is_found(tmp_path: Path):
    package(tmp_path / "first", "other-1.0.dist-info", "console_scripts")
    package(tmp_path / "second", "mine-1.0.dist-info", GROUP)
    assert declared(GROUP, [str(tmp_path / "first"), str(tmp_path / "second")])


def test_the_old_form_of_metadata_counts_too(tmp_path: Path):
    package(tmp_path, "mine.egg-info", GROUP)
    assert declared(GROUP, [str(tmp_path)])


def test_other_groups_and_other_folders_do_not_count(tmp_path: Path):
    package(tmp_path, "other-1.0.dist-info", "console_scripts")
    package(tmp_path, "looks-like-it", GROUP)
    (tmp_path / "bare-1.0.dist-info").mkdir()
    assert not declared(GROUP, [str(tmp_path), str(tmp_path / "absent")])


def test_an_archive_of_modules_is_left_to_the_standard_library(tmp_path: Path):
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("mine.py", "")
    assert declared(GROUP, [str(archive)])
